//! A thread per source, which polls it until the run has ended.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_base::{Clock, Said, Time};
use throng_expression::Value;
use throng_extract::Document;
use throng_program::monitor::{self as program, JsonValue, Origin, SshHost};
use throng_program::{Metric, Monitor};

use crate::exposition::{self, Read, Sample};
use crate::remote::{Heard, Remote};
use crate::scrape::{ANSWER_MAX, Page};

/// The maximum number of series per source; more matches are counted and left out.
pub const SERIES_MAX: usize = 128;
/// How long a host may be silent, including the copy of the program.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long a monitor in a fleet may take to reply before the run.
const JOINED_MAX: Duration = Duration::from_secs(3);
/// The pause between two connections to a host.
const AGAIN: Duration = Duration::from_secs(5);
/// How often a thread that waits for a host checks whether the run has ended.
const SLICE: Duration = Duration::from_millis(100);
/// The longest time between two readings of a host.
const HOST_EVERY_MAX: Duration = Duration::from_secs(60);
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The maximum length of a series name.
const NAME_CHARS_MAX: usize = 200;

/// The result of one poll of a source, which is identified by the number of its `monitor`.
#[derive(Clone, Debug, PartialEq)]
pub struct Polled {
    pub monitor: u16,
    /// The time of the poll.
    pub at: Time,
    pub scraped: Result<Scraped, Said>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scraped {
    /// Series that are new.
    pub new: Vec<NewSeries>,
    /// By the number of their series. A value that is not finite is left out.
    pub values: Vec<(u16, f64)>,
    /// Metrics without a match so far, reported once.
    pub missing: Vec<String>,
    /// Matching series beyond the maximum.
    pub left_out: u64,
    /// A further note for the user.
    pub note: Option<Said>,
}

/// Numbered per source, from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSeries {
    pub number: u16,
    pub name: String,
    /// A counter: it only grows, and restarts at 0.
    pub is_counter: bool,
}

/// Reads a monitor in a fleet, by its name: a text of metrics whose maxima cover the first
/// duration, with the second as timeout.
pub type ReadJoined = Arc<dyn Fn(&str, Duration, Duration) -> Result<String, Said> + Send + Sync>;

/// All sources of a run. Dropping it ends the polls.
pub struct Polls {
    stop: Vec<Sender<()>>,
    /// Threads that close connections to other hosts.
    hosts: Vec<JoinHandle<()>>,
}

/// Hosts that were reached before the run started, by the numbers of their `monitor`.
pub type Reached = HashMap<u16, Remote>;

impl Polls {
    /// `tell` receives the result of each poll, on the polling threads.
    pub fn begin(
        monitors: &[Monitor],
        (mut reached, joined): (Reached, ReadJoined),
        clock: &Clock,
        tell: impl Fn(Polled) + Send + Sync + 'static,
    ) -> Polls {
        let tell: Arc<dyn Fn(Polled) + Send + Sync> = Arc::new(tell);
        let mut polls = Polls { stop: Vec::new(), hosts: Vec::new() };
        for (number, monitor) in (0..).zip(monitors) {
            let (stop, stopped) = channel();
            let remote = reached.remove(&number);
            let (monitor, clock, tell) = (monitor.clone(), clock.clone(), Arc::clone(&tell));
            let joined = Arc::clone(&joined);
            let is_host = matches!(monitor.origin, Origin::Host(_));
            let thread = std::thread::Builder::new().name("monitor".into());
            let work = move || {
                let asking =
                    Asking { number, monitor: &monitor, clock: &clock, tell: tell.as_ref() };
                match &monitor.origin {
                    Origin::Host(host) => asking.host(host, remote, &stopped),
                    _ => asking.text(&joined, &stopped),
                }
            };
            if let Ok(thread) = thread.spawn(work) {
                polls.stop.push(stop);
                polls.hosts.extend(is_host.then_some(thread));
            }
        }
        polls
    }
}

impl Drop for Polls {
    /// A connection to another host is closed before the program ends.
    fn drop(&mut self) {
        self.stop.clear();
        for host in self.hosts.drain(..) {
            drop(host.join());
        }
    }
}

/// Starts the monitors of other hosts, and waits until each of them has replied or failed, at most
/// for the time `within`; queries those in the fleet. Failures have the index of their entry in
/// `monitor`.
pub fn reach(
    monitors: &[Monitor],
    joined: &ReadJoined,
    within: Duration,
    clock: &Clock,
) -> (Reached, Vec<(u16, Said)>) {
    let (mut reached, mut failed) = (Reached::new(), Vec::new());
    for (number, monitor) in (0..).zip(monitors) {
        match &monitor.origin {
            Origin::Host(host) => {
                match Remote::start(host, monitor.every.min(HOST_EVERY_MAX), VERSION) {
                    Ok(remote) => drop(reached.insert(number, remote)),
                    Err(cause) => failed.push((number, cause)),
                }
            }
            Origin::Joined(_) | Origin::Page(_) | Origin::Json(..) => {}
        }
    }
    failed.extend(unanswered(monitors, joined));
    let until = clock.now() + within;
    for number in reached.keys().copied().collect::<Vec<_>>() {
        let Some(remote) = reached.get_mut(&number) else { continue };
        match remote.begins(until - clock.now()) {
            Some(Ok(())) => {}
            None => failed.push((number, say!("no reading within {} s", within.as_secs()))),
            Some(Err(cause)) => {
                failed.push((number, cause));
                reached.remove(&number);
            }
        }
    }
    (reached, failed)
}

/// Those in the fleet that did not reply; all are queried in parallel.
fn unanswered(monitors: &[Monitor], joined: &ReadJoined) -> Vec<(u16, Said)> {
    std::thread::scope(|scope| {
        let ask = |(number, monitor): (u16, &Monitor)| {
            let Origin::Joined(name) = &monitor.origin else { return None };
            let (name, every) = (name.clone(), monitor.every);
            Some((number, scope.spawn(move || joined(&name, every, JOINED_MAX).err())))
        };
        let asked: Vec<_> = (0..).zip(monitors).filter_map(ask).collect();
        let cause = |(number, thread): (u16, std::thread::ScopedJoinHandle<'_, Option<Said>>)| {
            Some((number, thread.join().ok().flatten()?))
        };
        asked.into_iter().filter_map(cause).collect()
    })
}

/// The parameters of a polling thread.
struct Asking<'a> {
    number: u16,
    monitor: &'a Monitor,
    clock: &'a Clock,
    tell: &'a (dyn Fn(Polled) + Send + Sync),
}

impl Asking<'_> {
    fn tell(&self, at: Time, scraped: Result<Scraped, Said>) {
        (self.tell)(Polled { monitor: self.number, at, scraped });
    }

    /// Polls for a text over HTTP, or over the bus of a fleet.
    fn text(&self, joined: &ReadJoined, stopped: &Receiver<()>) {
        let every = self.monitor.every;
        let answer_max = ANSWER_MAX.min(every);
        let over_http = |page: &program::Page| Page::new(&page.url, &page.headers, answer_max);
        let (page, name, values) = match &self.monitor.origin {
            Origin::Page(page) => (Some(over_http(page)), "", None),
            Origin::Json(page, values) => (Some(over_http(page)), "", Some(values)),
            Origin::Joined(name) => (None, name.as_str(), None),
            Origin::Host(_) => return,
        };
        let ask = || page.as_ref().map_or_else(|| joined(name, every, answer_max), Page::text);
        let mut known = Known::new(self.monitor.metrics.clone());
        let mut due = self.clock.now();
        loop {
            let at = self.clock.now();
            let scraped = ask().and_then(|text| match values {
                None => known.take(&text),
                Some(values) => known.take_json(&text, values),
            });
            // A late result would appear to be from the time of the poll.
            match stopped.try_recv() {
                Err(TryRecvError::Empty) => self.tell(at, scraped),
                _ => return,
            }
            let now = self.clock.now();
            // A slow source is not polled repeatedly to catch up.
            while due <= now {
                due = due.saturating_add(every.max(Duration::from_millis(1)));
            }
            match stopped.recv_timeout(due - now) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    /// Receives the readings of another host, and restarts its monitor if it has ended.
    fn host(&self, host: &SshHost, mut reached: Option<Remote>, stopped: &Receiver<()>) {
        let every = self.monitor.every.min(HOST_EVERY_MAX);
        let mut known = Known::new(self.monitor.metrics.clone());
        loop {
            let started = match reached.take() {
                Some(remote) => Ok(remote),
                None => Remote::start(host, every, VERSION),
            };
            let cause = match started {
                Ok(mut remote) => match self.readings(&mut remote, &mut known, stopped) {
                    Some(cause) => cause,
                    None => return,
                },
                Err(cause) => cause,
            };
            self.tell(self.clock.now(), Err(cause));
            match stopped.recv_timeout(AGAIN) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    /// Until the connection ends, with its cause; `None` if the run has ended.
    fn readings(
        &self,
        remote: &mut Remote,
        known: &mut Known,
        stopped: &Receiver<()>,
    ) -> Option<Said> {
        let silence_max = SILENCE_MAX.max(self.monitor.every * 3);
        let mut last = self.clock.now();
        let mut note = None;
        loop {
            match stopped.try_recv() {
                Err(TryRecvError::Empty) => {}
                _ => return None,
            }
            match remote.next(SLICE) {
                Some(Heard::Reading(text)) => {
                    last = self.clock.now();
                    let scraped = known.take(&text);
                    let scraped = scraped.map(|it| Scraped { note: note.take(), ..it });
                    self.tell(last, scraped);
                }
                Some(Heard::Note(text)) => note = Some(text),
                Some(Heard::End(cause)) => {
                    return Some(cause.unwrap_or_else(|| say!("the ssh connection ended")));
                }
                None if self.clock.now().since(last) > silence_max => {
                    return Some(say!("no reading within {} s", silence_max.as_secs()));
                }
                None => {}
            }
        }
    }
}

/// The known series of a source.
pub struct Known {
    metrics: Vec<Metric>,
    is_read: bool,
    /// By their metric, and their names.
    numbers: HashMap<(usize, String), u16>,
}

impl Known {
    pub fn new(metrics: Vec<Metric>) -> Known {
        Known { metrics, is_read: false, numbers: HashMap::new() }
    }

    /// The content of a text of the source.
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
                    let is_counter = first.is_counter || metric.is_counter;
                    self.add(&mut scraped, (index, name), is_counter, sum);
                }
            } else {
                let is_counter = |it: &Sample<'_>| it.is_counter || metric.is_counter;
                let named =
                    own.into_iter().map(|it| (called(metric, it), is_counter(it), it.value));
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
        if self.is_first() {
            let metrics = self.metrics.iter().enumerate();
            let is_missing = |number: usize| !self.numbers.keys().any(|(of, _)| *of == number);
            let named = metrics.filter(|(_, metric)| !metric.is_optional);
            let missing = named.filter(|(number, _)| is_missing(*number));
            scraped.missing = missing.map(|(_, metric)| metric.selector.text.clone()).collect();
        }
        Ok(scraped)
    }

    /// True if it has not been read before.
    fn is_first(&mut self) -> bool {
        !std::mem::replace(&mut self.is_read, true)
    }

    /// The content of a JSON document: each value is a series. A list counts its items, a numeric
    /// text is a number, and `true` is 1.
    pub fn take_json(&mut self, text: &str, values: &[JsonValue]) -> Result<Scraped, Said> {
        let document = Document::new(text.as_bytes());
        let mut scraped = Scraped::default();
        let mut missing = Vec::new();
        for (index, value) in values.iter().enumerate() {
            match value.path.first_in(&document).as_ref().and_then(number) {
                Some(figure) => {
                    let series = (index, value.name.clone());
                    self.add(&mut scraped, series, value.is_counter, figure);
                }
                None => missing.push(value.text.clone()),
            }
        }
        if scraped.values.is_empty() {
            return Err(match document.json().is_some() {
                true => say!("its response has no number at `{}`", missing.join("`, `")),
                false => say!("its response is not JSON"),
            });
        }
        if self.is_first() {
            scraped.missing = missing;
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
        // A series must not occur twice in one text.
        if !scraped.values.iter().any(|(it, _)| *it == number) {
            scraped.values.push((number, value));
        }
    }
}

/// A value as a number.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::Int(number) => Some(*number as f64),
        Value::UInt(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Text(text) => text.trim().parse().ok().filter(|it: &f64| it.is_finite()),
        Value::List(items) => Some(items.len() as f64),
        Value::Null | Value::Bytes(_) | Value::Map(_) => None,
    }
}

/// `node_load1`, `node_cpu_seconds_total{cpu="0",mode="idle"}`; for a metric with its own name, the
/// labels that its selector leaves open: `idle{cpu="0"}`.
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
        Metric {
            name: name.map(str::to_string),
            selector,
            is_sum,
            is_counter: false,
            is_optional: false,
        }
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
    fn series_and_their_names_are_limited() {
        let mut known = Known::new(vec![metric(None, "up", false)]);
        let long = "x".repeat(1_000);
        let line = |at: usize| format!("up{{a=\"{at}\",b=\"{long}\"}} {at}\n");
        let told = known.take(&(0..150).map(line).collect::<String>()).expect("read");
        assert_eq!((told.new.len(), told.values.len(), told.left_out), (128, 128, 22));
        assert!(told.new.iter().all(|it| it.name.chars().count() <= NAME_CHARS_MAX + 1));
    }

    #[test]
    fn values_of_a_document_are_series() {
        let value = |name: &str, path: &str, is_counter| JsonValue {
            name: name.to_string(),
            text: path.to_string(),
            path: throng_extract::JsonPath::parse(path).expect("a path"),
            is_counter,
        };
        let values = [
            value("clients", "clientsLen", false),
            value("done", "stats.done", true),
            value("no", "no", false),
        ];
        let mut known = Known::new(Vec::new());
        let text = r#"{"clientsLen": 17, "stats": {"done": "250"}}"#;
        let told = known.take_json(text, &values).expect("read");
        assert_eq!(told.values, [(0, 17.0), (1, 250.0)]);
        assert_eq!((told.new[0].is_counter, told.new[1].is_counter), (false, true));
        assert_eq!(told.missing, ["no"]);
        assert_eq!(known.take_json(text, &values).expect("read").missing, [""; 0], "once");
        let why = |text: &str, known: &mut Known| {
            known.take_json(text, &values).expect_err("none").english()
        };
        assert_eq!(why("<html>", &mut known), "its response is not JSON");
        assert_eq!(
            why("{}", &mut known),
            "its response has no number at `clientsLen`, `stats.done`, `no`"
        );
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
