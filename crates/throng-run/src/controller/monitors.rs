//! Records the readings of monitored sources as events.

use std::sync::Arc;
use std::time::Duration;

use throng_base::{Clock, Diagnostic, Said};
use throng_bus::nats::Nats;
use throng_monitor::poll::SERIES_MAX;
use throng_monitor::{Polled, Polls, Reached, ReadJoined};
use throng_program::Monitor;
use throng_results::{Event, MonitorInfo};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::Operator;

/// Maximum time to connect to monitored hosts over ssh.
const REACH_MAX: Duration = Duration::from_secs(20);

/// The monitors of a run; absent if the scenario names no source.
pub(crate) struct Monitors {
    pub(super) told: UnboundedReceiver<Polled>,
    sources: Vec<Source>,
    _polls: Polls,
}

struct Source {
    name: String,
    is_failing: bool,
    is_left_out: bool,
}

pub(crate) fn infos(monitors: &[Monitor], mask: impl Fn(&str) -> String) -> Vec<MonitorInfo> {
    let info = |monitor: &Monitor| MonitorInfo {
        name: mask(&monitor.name),
        url: mask(&monitor.url()),
        every_ns: u64::try_from(monitor.every.as_nanos()).unwrap_or(u64::MAX),
        machine: None,
    };
    monitors.iter().map(info).collect()
}

/// Hosts whose monitors were started before the run, and hosts that could not be reached.
#[derive(Default)]
pub(crate) struct Hosts {
    reached: Reached,
    failed: Vec<u16>,
    /// The bus that the monitors have joined.
    bus: Option<Nats>,
}

impl Hosts {
    /// For a run that is taken over: monitors are started again.
    pub(crate) fn of_bus(bus: Nats) -> Hosts {
        Hosts { bus: Some(bus), ..Hosts::default() }
    }
}

fn read_joined(bus: Option<Nats>) -> ReadJoined {
    Arc::new(move |name, window, within| {
        let Some(bus) = &bus else {
            return Err(say!("it has joined a fleet, but this run does not use one: add --fleet"));
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Said::of_error(&error))?;
        runtime.block_on(throng_fleet::monitor::ask(bus, name, window, within))
    })
}

/// Starts the monitors of other hosts, and reports what cannot be read before the load starts.
pub(crate) async fn reach(monitors: &[Monitor], bus: Option<Nats>, errors: &dyn Operator) -> Hosts {
    let (own, joined) = (monitors.to_vec(), read_joined(bus.clone()));
    let reach = move || throng_monitor::reach(&own, &joined, REACH_MAX, &Clock::start());
    // If the thread panics, each host is tried again during the run.
    let (reached, causes) = tokio::task::spawn_blocking(reach).await.unwrap_or_default();
    for (number, cause) in &causes {
        let name = monitors.get(usize::from(*number)).map_or("", |monitor| &monitor.name);
        let message = say!("{name} cannot be read: {cause}; the run continues");
        errors.diagnostic(&Diagnostic::warning("monitor-failed", message));
    }
    Hosts { reached, failed: causes.into_iter().map(|(number, _)| number).collect(), bus }
}

impl Monitors {
    pub(crate) fn begin(monitors: &[Monitor], hosts: Hosts, clock: &Clock) -> Option<Monitors> {
        if monitors.is_empty() {
            return None;
        }
        let (tell, told) = unbounded_channel();
        // The receiver no longer exists after the run.
        let Hosts { reached, failed, bus } = hosts;
        let reached = (reached, read_joined(bus));
        let polls = Polls::begin(monitors, reached, clock, move |one| drop(tell.send(one)));
        let source = |(number, monitor): (u16, &Monitor)| Source {
            name: monitor.name.clone(),
            is_failing: failed.contains(&number),
            is_left_out: false,
        };
        let sources = (0..).zip(monitors).map(source).collect();
        Some(Monitors { told, sources, _polls: polls })
    }

    /// The events of a reading, and a message that the operator must see immediately.
    pub(crate) fn take(&mut self, told: Polled) -> (Vec<Event>, Option<Said>) {
        let Polled { monitor, at, scraped } = told;
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
                } else if let Some(note) = &scraped.note {
                    Some(say!("{name}: {note}", note = note))
                } else if left_out > 0 && !std::mem::replace(&mut source.is_left_out, true) {
                    Some(say!(
                        "{name} has {left_out} more series than the limit of {}: select fewer in \
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
