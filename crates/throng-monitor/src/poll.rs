//! A thread for each source, which asks it again and again until the run has ended.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use throng_base::{Clock, Said, Time};
use throng_program::{Metric, Monitor};

use crate::exposition::{self, Read, Sample};
use crate::scrape::{ANSWER_MAX, Page};

/// Of a source; what more matches is counted and left out.
pub const SERIES_MAX: usize = 128;
/// Of what a series is called.
const NAME_CHARS_MAX: usize = 200;

/// What one asking of a source, its `monitor` by its number, has brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub monitor: u16,
    /// When it was asked.
    pub at: Time,
    pub scraped: Result<Scraped, Said>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scraped {
    /// Those that were not there before.
    pub new: Vec<NewSeries>,
    /// By the number of their series. A figure that is not finite is left out.
    pub values: Vec<(u16, f64)>,
    /// What nothing has matched so far, told once.
    pub missing: Vec<String>,
    /// Series that match and for which there is no room.
    pub left_out: u64,
}

/// Numbered for each source, from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSeries {
    pub number: u16,
    pub name: String,
    /// It only grows, and begins again at 0.
    pub is_counter: bool,
}

/// All sources of a run. When it goes, nothing is asked any more.
pub struct Polls {
    _stop: Vec<Sender<()>>,
}

impl Polls {
    /// `tell` takes what each asking brings, in the threads that ask.
    pub fn begin(
        monitors: &[Monitor],
        clock: &Clock,
        tell: impl Fn(Told) + Send + Sync + 'static,
    ) -> Polls {
        let tell: Arc<dyn Fn(Told) + Send + Sync> = Arc::new(tell);
        let begin = |(number, monitor): (u16, &Monitor)| {
            let (stop, stopped) = channel();
            let (monitor, clock, tell) = (monitor.clone(), clock.clone(), Arc::clone(&tell));
            let thread = std::thread::Builder::new().name("monitor".into());
            let work = move || work(number, &monitor, &clock, &stopped, tell.as_ref());
            thread.spawn(work).ok()?;
            Some(stop)
        };
        Polls { _stop: (0..).zip(monitors).filter_map(begin).collect() }
    }
}

fn work(
    number: u16,
    monitor: &Monitor,
    clock: &Clock,
    stopped: &Receiver<()>,
    tell: &(dyn Fn(Told) + Send + Sync),
) {
    let page = Page::new(&monitor.url, &monitor.headers, ANSWER_MAX.min(monitor.every));
    let mut known = Known::new(monitor.metrics.clone());
    let mut due = clock.now();
    loop {
        let at = clock.now();
        let scraped = page.text().and_then(|text| known.take(&text));
        // What comes late would look like what was so when it was asked.
        match stopped.try_recv() {
            Err(TryRecvError::Empty) => tell(Told { monitor: number, at, scraped }),
            _ => return,
        }
        let now = clock.now();
        // A source that was slow is not asked several times at once to catch up.
        while due <= now {
            due = due.saturating_add(monitor.every.max(Duration::from_millis(1)));
        }
        match stopped.recv_timeout(due - now) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

/// The series of a source, as far as they have been seen.
pub struct Known {
    metrics: Vec<Metric>,
    is_read: bool,
    /// By the metric that they are of, and their names.
    numbers: HashMap<(usize, String), u16>,
}

impl Known {
    pub fn new(metrics: Vec<Metric>) -> Known {
        Known { metrics, is_read: false, numbers: HashMap::new() }
    }

    /// What a text of the source says.
    pub fn take(&mut self, text: &str) -> Result<Scraped, Said> {
        let wanted = |name: &str, labels: &[(&str, _)]| {
            self.metrics.iter().any(|metric| metric.selector.matches(name, labels))
        };
        let Read { samples, unreadable } = exposition::read(text, wanted);
        let mut scraped = Scraped::default();
        for index in 0..self.metrics.len() {
            let metric = &self.metrics[index];
            let own = |sample: &&Sample<'_>| metric.selector.matches(sample.name, &sample.labels);
            let own: Vec<&Sample<'_>> = samples.iter().filter(own).collect();
            if metric.is_sum {
                if let Some(first) = own.first() {
                    let name = metric.name.clone().unwrap_or_else(|| first.name.to_string());
                    let sum = own.iter().map(|sample| sample.value).sum();
                    self.add(&mut scraped, (index, name), first.is_counter, sum);
                }
            } else {
                let named = own.into_iter().map(|it| (called(metric, it), it.is_counter, it.value));
                for (name, is_counter, value) in named.collect::<Vec<_>>() {
                    self.add(&mut scraped, (index, name), is_counter, value);
                }
            }
        }
        if scraped.values.is_empty() && scraped.left_out == 0 {
            return Err(match unreadable {
                0 => say!("it has none of these metrics"),
                _ => say!("its response is not in the Prometheus text format"),
            });
        }
        if !std::mem::replace(&mut self.is_read, true) {
            let metrics = self.metrics.iter().enumerate();
            let is_missing = |number: usize| !self.numbers.keys().any(|(of, _)| *of == number);
            let named = metrics.filter(|(_, metric)| !metric.is_optional);
            let missing = named.filter(|(number, _)| is_missing(*number));
            scraped.missing = missing.map(|(_, metric)| metric.selector.text.clone()).collect();
        }
        Ok(scraped)
    }

    fn add(
        &mut self,
        scraped: &mut Scraped,
        series: (usize, String),
        is_counter: bool,
        value: f64,
    ) {
        if !value.is_finite() {
            return;
        }
        let count = self.numbers.len();
        let number = match self.numbers.get(&series) {
            Some(number) => *number,
            None if count >= SERIES_MAX => {
                scraped.left_out += 1;
                return;
            }
            None => {
                let number = count as u16;
                let name = series.1.clone();
                scraped.new.push(NewSeries { number, name, is_counter });
                self.numbers.insert(series, number);
                number
            }
        };
        // The same series twice in one text is against the format.
        if !scraped.values.iter().any(|(it, _)| *it == number) {
            scraped.values.push((number, value));
        }
    }
}

/// `node_load1`, `node_cpu_seconds_total{cpu="0",mode="idle"}`; of one that has a name of its own,
/// the labels that its selector leaves open: `idle{cpu="0"}`.
fn called(metric: &Metric, sample: &Sample<'_>) -> String {
    let mut text = metric.name.clone().unwrap_or_else(|| sample.name.to_string());
    let is_told = |label: &str| metric.name.is_none() || !metric.selector.is_fixed(label);
    let mut sign = '{';
    for (label, value) in sample.labels.iter().filter(|(label, _)| is_told(label)) {
        let _ = write!(text, "{sign}{label}={value:?}");
        sign = ',';
    }
    if sign == ',' {
        text.push('}');
    }
    match text.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use throng_program::Selector;

    use super::*;

    fn metric(name: Option<&str>, selector: &str, is_sum: bool) -> Metric {
        let selector = Selector::parse(selector).expect("a selector");
        Metric { name: name.map(str::to_string), selector, is_sum, is_optional: false }
    }

    #[test]
    fn series_keep_their_numbers_and_sums_are_one() {
        let mut known = Known::new(vec![
            metric(None, "load", false),
            metric(Some("idle"), "cpu_total{mode=\"idle\"}", false),
            metric(Some("busy"), "cpu_total{mode!=\"idle\"}", true),
            metric(None, "memory", false),
        ]);
        let text = "# TYPE load gauge\ncpu_total{cpu=\"0\",mode=\"idle\"} 5\nload 0.5\n\
                    cpu_total{cpu=\"0\",mode=\"user\"} 1\ncpu_total{cpu=\"1\",mode=\"user\"} 2\n";
        let told = known.take(text).expect("read");
        let names: Vec<(&str, bool)> =
            told.new.iter().map(|it| (it.name.as_str(), it.is_counter)).collect();
        assert_eq!(names, [("load", false), ("idle{cpu=\"0\"}", true), ("busy", true)]);
        assert_eq!(told.values, [(0, 0.5), (1, 5.0), (2, 3.0)]);
        assert_eq!(told.missing, ["memory"]);
        let text = "cpu_total{cpu=\"1\",mode=\"idle\"} 9\nload NaN\nload 7\n\
                    cpu_total{cpu=\"0\",mode=\"idle\"} 6\n";
        let told = known.take(text).expect("read");
        assert_eq!(told.new.len(), 1);
        assert_eq!(told.new[0].number, 3);
        assert_eq!(told.values, [(0, 7.0), (3, 9.0), (1, 6.0)]);
        assert_eq!(told.missing, [""; 0], "once");
    }

    #[test]
    fn there_are_only_so_many_series_and_their_names_are_short() {
        let mut known = Known::new(vec![metric(None, "up", false)]);
        let long = "x".repeat(1_000);
        let line = |at: usize| format!("up{{a=\"{at}\",b=\"{long}\"}} {at}\n");
        let told = known.take(&(0..150).map(line).collect::<String>()).expect("read");
        assert_eq!((told.new.len(), told.values.len(), told.left_out), (128, 128, 22));
        assert!(told.new.iter().all(|it| it.name.chars().count() <= NAME_CHARS_MAX + 1));
    }

    #[test]
    fn a_text_without_these_metrics_is_a_failure() {
        let mut known = Known::new(vec![metric(None, "up", false)]);
        let why = |text: &str, known: &mut Known| known.take(text).expect_err("none").english();
        assert_eq!(why("down 1\n", &mut known), "it has none of these metrics");
        assert_eq!(why("", &mut known), "it has none of these metrics");
        let page = "<html>\n<body>It works</body>";
        let told = "its response is not in the Prometheus text format";
        assert_eq!(why(page, &mut known), told);
    }
}
