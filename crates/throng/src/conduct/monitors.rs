//! What is read of other sources while the run goes on: each reading becomes events of the record.

use throng_base::{Clock, Said};
use throng_monitor::poll::SERIES_MAX;
use throng_monitor::{Polls, Told};
use throng_program::Monitor;
use throng_results::{Event, MonitorInfo};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// See the module's description. There is none where the scenario names no source.
pub(super) struct Monitors {
    told: UnboundedReceiver<Told>,
    sources: Vec<Source>,
    _polls: Polls,
}

struct Source {
    name: String,
    is_failing: bool,
    is_left_out: bool,
}

pub(super) fn infos(monitors: &[Monitor], mask: impl Fn(&str) -> String) -> Vec<MonitorInfo> {
    let info = |monitor: &Monitor| MonitorInfo {
        name: mask(&monitor.name),
        url: mask(&monitor.url),
        every_ns: u64::try_from(monitor.every.as_nanos()).unwrap_or(u64::MAX),
        machine: None,
    };
    monitors.iter().map(info).collect()
}

impl Monitors {
    pub(super) fn begin(monitors: &[Monitor], clock: &Clock) -> Option<Monitors> {
        if monitors.is_empty() {
            return None;
        }
        let (tell, told) = unbounded_channel();
        // A run that is over takes nothing more.
        let polls = Polls::begin(monitors, clock, move |one| drop(tell.send(one)));
        let source = |monitor: &Monitor| Source {
            name: monitor.name.clone(),
            is_failing: false,
            is_left_out: false,
        };
        Some(Monitors { told, sources: monitors.iter().map(source).collect(), _polls: polls })
    }

    /// What was read next; never where there is no source.
    pub(super) async fn next(monitors: &mut Option<Monitors>) -> Option<Told> {
        match monitors {
            Some(monitors) => monitors.told.recv().await,
            None => std::future::pending().await,
        }
    }

    /// The events of a reading, and what a person has to know at once.
    pub(super) fn take(&mut self, told: Told) -> (Vec<Event>, Option<Said>) {
        let Told { monitor, at, scraped } = told;
        let at_ns = at.as_nanos();
        let source = &mut self.sources[usize::from(monitor)];
        let was_failing = std::mem::replace(&mut source.is_failing, scraped.is_err());
        let name = &source.name;
        match scraped {
            Err(detail) => {
                let text = (!was_failing).then(|| {
                    say!("{name} cannot be read: {detail}; the run continues", detail = &detail)
                });
                (vec![Event::ScrapeFailed { at_ns, monitor, detail }], text)
            }
            Ok(scraped) => {
                let left_out = scraped.left_out;
                let missing = scraped.missing.join("`, `");
                let text = if !missing.is_empty() {
                    Some(say!("{name} has no metric that matches `{missing}`"))
                } else if was_failing {
                    Some(say!("{name} can be read again"))
                } else if left_out > 0 && !std::mem::replace(&mut source.is_left_out, true) {
                    Some(say!(
                        "{name} has {left_out} series more than the limit of {}: select fewer in \
                         `metrics`",
                        SERIES_MAX
                    ))
                } else {
                    None
                };
                let new = scraped.new.into_iter().map(|new| Event::Series {
                    at_ns,
                    monitor,
                    number: new.number,
                    name: new.name,
                    counter: new.is_counter,
                });
                let mut events: Vec<Event> = new.collect();
                events.push(Event::Scrape { at_ns, monitor, values: scraped.values, left_out });
                (events, text)
            }
        }
    }
}
