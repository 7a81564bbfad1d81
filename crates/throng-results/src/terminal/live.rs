//! The output during a run: a line per second, and a progress line.

use std::time::Duration;

use throng_base::units::format_bytes;
use throng_base::{Said, Time};
use throng_metrics::interval::add;
use throng_metrics::{Cause, Interval, StepInterval, StepKind, status_word};

use super::text::{clean, compact, cut, elapsed, nanos, span, width};
use super::{Ink, Style};
use crate::directory::RunInfo;
use crate::gauges::AllGauges;
use crate::summary::Attempts;

/// Lines per heading.
const LINES_PER_HEADER: u64 = 20;
/// The value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Time,
    Online,
    Offline,
    Ok,
    Failed,
    Rate,
    Quantile(f64),
    Max,
    Bytes,
    Delivered,
    Wanted,
}

/// Its width, including the space before it.
type Column = (usize, Said, Figure);

/// The columns before the codes; wide enough for a million users.
const COLUMNS: [Column; 9] = [
    (6, say!("time"), Figure::Time),
    (8, say!("users"), Figure::Online),
    (9, say!("ok"), Figure::Ok),
    (7, say!("failed"), Figure::Failed),
    (8, say!("ok/s"), Figure::Rate),
    (7, say!("p50"), Figure::Quantile(0.5)),
    (7, say!("p99"), Figure::Quantile(0.99)),
    (7, say!("max"), Figure::Max),
    (8, say!("bytes/s"), Figure::Bytes),
];
/// With long-lived connections, users may be present without a connection.
const LONG_LIVED_COLUMNS: [Column; 10] = [
    (6, say!("time"), Figure::Time),
    (8, say!("online"), Figure::Online),
    (8, say!("offline"), Figure::Offline),
    (7, say!("ok"), Figure::Ok),
    (7, say!("failed"), Figure::Failed),
    (7, say!("ok/s"), Figure::Rate),
    (7, say!("p50"), Figure::Quantile(0.5)),
    (7, say!("p99"), Figure::Quantile(0.99)),
    (7, say!("max"), Figure::Max),
    (8, say!("bytes/s"), Figure::Bytes),
];

/// If fewer starts begin than wanted, the wanted rate is more useful than the bytes.
const WANTED: Column = (9, say!("wanted/s"), Figure::Wanted);

/// With deliveries, their rate is more useful than the maximum time.
const DELIVERED: Column = (8, say!("deliv/s"), Figure::Delivered);

/// Columns to omit on a narrow page, in this order.
const GIVE_WAY: [Figure; 5] =
    [Figure::Bytes, Figure::Max, Figure::Quantile(0.5), Figure::Rate, Figure::Offline];
/// Minimum width of the codes.
const CODES_COLUMNS_MIN: usize = 7;

/// The columns that fit on a page.
fn fitting(mut columns: Vec<Column>, page: usize) -> Vec<Column> {
    for figure in GIVE_WAY {
        if used(&columns) + CODES_COLUMNS_MIN > page {
            columns.retain(|(_, _, own)| *own != figure);
        }
    }
    columns
}

fn used(columns: &[Column]) -> usize {
    columns.iter().map(|(columns, ..)| columns).sum()
}

/// Creates the line of each second: `ok` and `failed` since the start, the rest for that second.
#[derive(Clone, Debug)]
pub struct Live {
    style: Style,
    columns: Vec<Column>,
    attempts: Attempts,
    /// Steps that are rows of the ledger.
    deliveries: Vec<u16>,
    /// By phase.
    load_of: Vec<u16>,
    gauges: AllGauges,
    lines: u64,
    ok: u64,
    failed: u64,
    /// Results since the previous line.
    since: Option<Interval>,
    last: Time,
}

impl Live {
    pub fn new(style: Style, info: &RunInfo) -> Live {
        let attempts = Attempts::new(info);
        let is_long_lived = info.tables.steps.iter().any(|step| step.kind == StepKind::Connect);
        let deliveries: Vec<u16> = (0..)
            .zip(&info.tables.steps)
            .filter(|(_, step)| step.kind == StepKind::Delivery)
            .map(|(id, _)| id)
            .collect();
        let mut columns =
            if is_long_lived { LONG_LIVED_COLUMNS.to_vec() } else { COLUMNS.to_vec() };
        let max = columns.iter_mut().find(|(.., figure)| *figure == Figure::Max);
        if let Some(max) = max.filter(|_| is_long_lived && !deliveries.is_empty()) {
            *max = DELIVERED;
        }
        let columns = fitting(columns, style.columns());
        let (since, last) = (None, Time::ZERO);
        let load_of = info.tables.phases.iter().map(|phase| phase.load).collect();
        Live {
            style,
            columns,
            attempts,
            deliveries,
            load_of,
            gauges: AllGauges::default(),
            lines: 0,
            ok: 0,
            failed: 0,
            since,
            last,
        }
    }

    /// Adds an interval. Intervals of the same second and phase are added; those of different
    /// phases follow each other.
    pub fn add(&mut self, interval: &Interval) {
        match &mut self.since {
            None => self.since = Some(interval.clone()),
            Some(since) if (since.second, since.phase) == (interval.second, interval.phase) => {
                since.merge_shard(interval);
            }
            Some(since) => since.merge_later(interval),
        }
        let load = self.load_of.get(usize::from(interval.phase)).copied().unwrap_or_default();
        let gauges = self.gauges.add(usize::from(load), interval);
        if let Some(since) = &mut self.since {
            since.gauges = gauges;
        }
    }

    /// The line of the results since the previous line, with a heading above it when due, without a
    /// final line break. `until` is the end of the last interval.
    pub fn line(&mut self, until: Time) -> String {
        let since = self.since.take().unwrap_or_default();
        let seconds = until.since(self.last).as_secs_f64().max(1e-3);
        self.last = until;
        let total = self.attempts.total(&since);
        self.ok += total.ok;
        self.failed += total.failed();
        let now = Moment { until, seconds, since: &since, total: &total };
        let is_new = self.tells_what_is_wanted(&since);
        let mut line = String::new();
        for (columns, _, figure) in &self.columns {
            let text = self.figure(*figure, &now, columns - 1);
            let is_bad = *figure == Figure::Failed && total.failed() > 0;
            line.push_str(&" ".repeat(columns - width(&text).min(*columns)));
            line.push_str(&self.style.paint(if is_bad { Ink::Bad } else { Ink::Plain }, &text));
        }
        line.push_str(&self.codes(&since, &total));
        self.lines += 1;
        match is_new || self.lines % LINES_PER_HEADER == 1 {
            true => format!("{}\n{line}", self.header()),
            false => line,
        }
    }

    /// Whether starts wait or are dropped in this second for the first time.
    fn tells_what_is_wanted(&mut self, since: &Interval) -> bool {
        let is_behind = since.gauges.backlog > 0 || since.population.dropped > 0;
        let bytes = |column: &&mut Column| is_behind && column.2 == Figure::Bytes;
        self.columns.iter_mut().find(bytes).map(|column| *column = WANTED).is_some()
    }

    /// A value since the previous line, in at most `room` columns.
    fn figure(&self, figure: Figure, now: &Moment, room: usize) -> String {
        let (since, total, latency) = (now.since, now.total, &now.total.latency);
        let per_second = |count: u64| count as f64 / now.seconds;
        let time = |value: u64| if latency.is_empty() { "–".into() } else { nanos(value) };
        let gauges = &since.gauges;
        match figure {
            Figure::Time => elapsed(Duration::from_nanos(now.until.as_nanos())),
            Figure::Online => compact(gauges.users_online, room),
            Figure::Offline => {
                compact(gauges.users_present.saturating_sub(gauges.users_online), room)
            }
            Figure::Ok => compact(self.ok, room),
            Figure::Failed => compact(self.failed, room),
            Figure::Rate => compact(per_second(total.ok).round() as u64, room),
            Figure::Quantile(share) => time(latency.value_at(share)),
            Figure::Max => time(latency.max()),
            Figure::Delivered => {
                let delivered = self.delivered(since).map(|row| row.ok).sum();
                compact(per_second(delivered).round() as u64, room)
            }
            Figure::Wanted => compact(per_second(since.population.wanted).round() as u64, room),
            Figure::Bytes => {
                format_bytes(per_second(since.traffic.bytes_in + since.traffic.bytes_out))
            }
        }
    }

    /// Rows of the ledger.
    fn delivered<'a>(&'a self, since: &'a Interval) -> impl Iterator<Item = &'a StepInterval> {
        since.steps.iter().filter(|row| self.deliveries.contains(&row.step))
    }

    fn header(&self) -> String {
        let mut line = String::new();
        for (columns, text, _) in &self.columns {
            let text = self.style.say(text.clone());
            line.push_str(&" ".repeat(columns - width(&text).min(*columns)));
            line.push_str(&text);
        }
        self.style.paint(Ink::Dim, &format!("{line} {}", self.style.say(say!("codes"))))
    }

    /// Codes and causes of all tries in the second, each preceded by a space: as many as fit, the
    /// most frequent first, and the number of the others.
    fn codes(&self, since: &Interval, total: &StepInterval) -> String {
        let codes = total.codes.iter().map(|(code, count)| (status_word(*code), *count));
        // Retried tries are included, like their codes, although no attempt has failed yet.
        let lost = self.delivered(since).flat_map(|row| &row.errors);
        let mut causes = Vec::new();
        for (cause, count) in total.errors.iter().chain(&total.retried).chain(lost) {
            add(&mut causes, *cause, *count);
        }
        causes.retain(|(cause, _)| *cause != Cause::StatusUnexpected);
        let causes = causes.into_iter().map(|(cause, count)| (cause.word().to_string(), count));
        let dropped = ("dropped".to_string(), since.population.dropped);
        let mut items: Vec<(String, u64)> =
            codes.chain(causes).chain([dropped]).filter(|(_, count)| *count > 0).collect();
        items.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        let mut room = self.style.columns().saturating_sub(used(&self.columns));
        let mut out = String::new();
        let mut left = 0;
        let others = |left: usize| match left {
            0 => String::new(),
            left => format!(" +{}", compact(left as u64, 5)),
        };
        for (index, (word, count)) in items.iter().enumerate() {
            left = items.len() - index - 1;
            let text = format!(" {word}:{}", compact(*count, 5));
            if width(&text) + width(&others(left)) <= room {
                room -= width(&text);
                out.push_str(&text);
                continue;
            }
            // A count is shown completely or not at all.
            if index == 0 {
                let word = cut(&format!(" {word}"), room.saturating_sub(width(&others(left))));
                room = room.saturating_sub(width(&word));
                out.push_str(&word);
            } else {
                left += 1;
            }
            break;
        }
        let rest = match left {
            0 => String::new(),
            left => format!(" {}", self.style.say(say!("+{} more", compact(left as u64, 5)))),
        };
        match width(&rest) <= room {
            true => out + &rest,
            false => out + &others(left),
        }
    }
}

/// The time span of a line.
struct Moment<'a> {
    until: Time,
    /// Since the previous line.
    seconds: f64,
    since: &'a Interval,
    total: &'a StepInterval,
}

/// The state of a run for the progress line.
#[derive(Clone, Debug)]
pub struct Progress {
    pub phase: String,
    /// Counted from 1.
    pub number: usize,
    pub phases: usize,
    /// Of the phase, 0 to 1; `None` if unknown.
    pub share: Option<f64>,
    /// Until the end of the run; `None` if unknown.
    pub left: Option<Duration>,
    pub elapsed: Duration,
}

const BAR_COLUMNS_MAX: usize = 30;
/// Width of name, number, percentage and time.
const BESIDE_BAR_COLUMNS: usize = 50;
const PHASE_COLUMNS_MAX: usize = 20;

/// The progress line, without a line break and never wider than the style.
pub fn progress_line(progress: &Progress, style: &Style) -> String {
    let name = cut(&clean(&progress.phase), PHASE_COLUMNS_MAX);
    let number = match progress.phases {
        0 | 1 => String::new(),
        phases => format!(" {}/{phases}", progress.number),
    };
    let left = match progress.left {
        Some(left) => style.say(say!("{} left", rounded(left))),
        None => style.say(say!("{} so far", elapsed(progress.elapsed))),
    };
    let Some(share) = progress.share else {
        return format!("{name}{} · {left}", style.paint(Ink::Dim, &number));
    };
    let share = share.clamp(0.0, 1.0);
    let columns = style.columns().saturating_sub(BESIDE_BAR_COLUMNS).min(BAR_COLUMNS_MAX);
    let filled = (share * columns as f64).floor() as usize;
    let bar = format!(
        "{}{}",
        style.paint(Ink::Good, &"━".repeat(filled)),
        style.paint(Ink::Dim, &"─".repeat(columns - filled))
    );
    let percent = (share * 100.0).floor();
    format!("{name}{} {bar} {percent:>3.0} % · {left}", style.paint(Ink::Dim, &number))
}

/// The remaining time rounded up to seconds, so that it does not show 0s for a second.
fn rounded(left: Duration) -> String {
    let seconds = left.as_nanos().div_ceil(1_000_000_000);
    match u64::try_from(seconds).unwrap_or(u64::MAX) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => span(Duration::from_secs(seconds)),
    }
}
