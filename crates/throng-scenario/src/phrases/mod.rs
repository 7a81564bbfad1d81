//! Parts of the lines of steps as written in scenarios: names, checks, limits, and texts.

mod shown;

use std::time::Duration;

use throng_base::StepId;
use throng_base::units::{format_bytes, write_duration};
use throng_expression::Value;
use throng_metrics::{Comparison, status_word};
use throng_program::{
    Check, Extractor, Failing, Matcher, OnError, Program, Retry, RetryOn, Save, Session,
};

pub(crate) use shown::{expression, shorten, shown};

/// The default, which needs no note.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Access to the names of rows and slots.
pub(crate) struct Words<'p> {
    pub(crate) program: &'p Program,
    pub(crate) session: &'p Session,
}

impl Words<'_> {
    pub(crate) fn slot(&self, slot: u16) -> &str {
        self.session.slots.get(usize::from(slot)).map_or("", String::as_str)
    }

    /// Adds the name of the row as a note, unless it equals the written form.
    pub(crate) fn name(&self, step: StepId, written: &str, notes: &mut Vec<String>) {
        let name = &self.program.step(step).name;
        if name != written {
            notes.push(format!("name {name}"));
        }
    }

    pub(crate) fn notes(&self, checks: &[Check], saves: &[Save], notes: &mut Vec<String>) {
        notes.extend(checks.iter().map(|one| format!("check {}", check(one))));
        for save in saves {
            let all = if save.all { "all " } else { "" };
            notes.push(format!(
                "save {} = {all}{}",
                self.slot(save.slot),
                extractor(&save.extractor)
            ));
        }
    }
}

pub(crate) fn limits(timeout: Option<Duration>, failing: Failing, notes: &mut Vec<String>) {
    limits_but(TIMEOUT, timeout, failing, notes);
}

pub(crate) fn limits_but(
    usual: Duration,
    timeout: Option<Duration>,
    failing: Failing,
    notes: &mut Vec<String>,
) {
    if let Some(timeout) = timeout.filter(|timeout| *timeout != usual) {
        notes.push(format!("timeout {}", write_duration(timeout)));
    }
    notes.extend(failing.retry.map(|retry| attempts("retry", retry)));
    match failing.then {
        OnError::Count => {}
        OnError::Next => notes.push("on_error next".into()),
        OnError::Leave => notes.push("on_error leave".into()),
        OnError::Stop => notes.push("on_error stop".into()),
    }
}

/// `retry 5, wait 1s..30s`
pub(crate) fn attempts(key: &str, Retry { on, times, low, high }: Retry) -> String {
    let (low, high) = (write_duration(low), write_duration(high));
    let text = match times {
        Some(0) => format!("{key} never"),
        Some(times) => format!("{key} {times}, wait {low}..{high}"),
        None => format!("{key} forever, wait {low}..{high}"),
    };
    let RetryOn::Only { statuses, causes } = on else { return text };
    let statuses = statuses.iter().flatten().map(|range| match range.0 == range.1 {
        true => self::statuses(range),
        false => format!("{}..{}", range.0, range.1),
    });
    let causes = causes.iter().flatten().map(|cause| cause.word().to_string());
    let on: Vec<String> = statuses.chain(causes).collect();
    format!("{text}, on {}", on.join(" "))
}

pub(crate) fn check(check: &Check) -> String {
    let what = extractor(&check.extractor);
    // For a time, numbers are nanoseconds.
    let number = |value: &Value| match (&check.extractor, value.as_f64()) {
        (Extractor::Time, Some(nanos)) => write_duration(Duration::from_nanos(nanos as u64)),
        (Extractor::Size, Some(bytes)) => format_bytes(bytes),
        _ => value.to_text().to_string(),
    };
    match &check.matcher {
        Matcher::Present => format!("{what} present"),
        Matcher::Absent => format!("{what} absent"),
        Matcher::Null => format!("{what} null"),
        Matcher::Bool(value) => format!("{what} {value}"),
        Matcher::Number(Comparison::Equal, value) => format!("{what} {}", number(value)),
        Matcher::Number(comparison, value) => {
            format!("{what} {} {}", symbol(*comparison), number(value))
        }
        Matcher::Statuses(set) => {
            let ranges: Vec<String> = set.ranges.iter().map(statuses).collect();
            format!("{what} {}", ranges.join(", "))
        }
        Matcher::Equals(text) => format!("{what} equals {}", shown(text)),
        Matcher::Contains(text) => format!("{what} contains {}", shown(text)),
        Matcher::Topic(filter) => format!("topic {}", shown(filter)),
        Matcher::Matches(regex) => format!("{what} matches {}", shorten(regex.as_str())),
        Matcher::Count(comparison, count) => {
            format!("{what} count {} {count}", symbol(*comparison))
        }
        Matcher::True => what,
    }
}

fn statuses((low, high): &(u16, u16)) -> String {
    match (low, high) {
        (low, high) if low == high => status_word(*low),
        (low, high) if low % 100 == 0 && *high == low + 99 => format!("{}xx", low / 100),
        (low, high) => format!("{low}..{high}"),
    }
}

fn symbol(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Equal => "=",
        Comparison::GreaterOrEqual => ">=",
        Comparison::Greater => ">",
    }
}

pub(crate) fn extractor(extractor: &Extractor) -> String {
    match extractor {
        Extractor::Status => "status".into(),
        Extractor::Header(name) => format!("header {name}"),
        Extractor::Cookie(name) => format!("cookie {name}"),
        Extractor::Body => "body".into(),
        Extractor::Field(paths) => {
            paths.first().map_or(String::new(), |path| path.written.to_string())
        }
        Extractor::Proto(path) => path.written.to_string(),
        Extractor::Result(name) | Extractor::Kind(_, name) => name.clone(),
        Extractor::Json(path) => format!("json {}", shorten(&path.to_string())),
        Extractor::XPath(path) => format!("xpath {}", shorten(&path.to_string())),
        Extractor::Css(selector) => format!("css {}", shorten(&selector.to_string())),
        Extractor::Pattern(pattern) => format!("regex {}", shorten(&pattern.to_string())),
        Extractor::Size => "size".into(),
        Extractor::Time => "time".into(),
        Extractor::Digest(digest) => digest.to_string(),
        Extractor::Expression(found) => expression(found),
    }
}
