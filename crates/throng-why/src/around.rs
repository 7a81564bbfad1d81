//! Computes the effect of an event: results before, during and after it, which values left their
//! usual range, and when they returned. A pure function of the seconds of a run.

use std::ops::Range;
use std::time::Duration;

use throng_base::Said;
use throng_base::units::{format_count, format_duration};

use crate::record::is_about_target;
use crate::stats;
use crate::timeline::{Point, Timeline};

/// Length of the time before an event that is compared, and of the time after it that is shown.
const BESIDE_S: f64 = 30.0;
/// Minimum number of points before an event to know what is usual.
const BEFORE_POINTS_MIN: usize = 5;
/// A change that starts later than this after the end of the event is not attributed to it.
const ONSET_S: f64 = 60.0;
/// A value has returned once it is usual in this many consecutive points or, at the end of the
/// compared time, in fewer.
const RETURN_POINTS: usize = 5;
const RETURN_POINTS_AT_END: usize = 2;
/// Minimum distance of a point from the median before, in standard deviations.
const DEVIATIONS: f64 = 5.0;
/// Minimum relative decrease of a rate, and minimum decrease in its own deviations: counts vary by
/// the square root of their mean.
const RATE_FALL: f64 = 0.2;
const COUNT_DEVIATIONS: f64 = 5.0;
/// Minimum increase of the error share, and minimum number of failures in a point.
const ERRORS_RISE: f64 = 0.01;
const FAILED_MIN: f64 = 3.0;
/// Minimum ratio of response times to the median before, and minimum number of them in a point.
const P50_RISE: f64 = 1.5;
const P99_RISE: f64 = 2.0;
const TIMED_MIN: f64 = 5.0;
/// Minimum decrease of online users, as a share of them.
const ONLINE_FALL: f64 = 0.01;

/// The start and end of an event, and the time that it can be compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Happened {
    pub begun_s: f64,
    pub ended_s: f64,
    /// The time span with the same load.
    pub same_from_s: f64,
    pub same_to_s: f64,
}

words! {
    /// The value that changed.
    Around {
        Rate, "ok_per_s";
        Errors, "error_share";
        P50, "p50_ns";
        P99, "p99_ns";
        Online, "online";
    }
}

/// A value that left its usual range.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub figure: Around,
    /// Its median before the event.
    pub before: f64,
    /// The worst value; for errors, the share of all attempts in that time.
    pub worst: f64,
    /// How long it was outside its usual range.
    pub for_s: f64,
    /// When it returned, since the start of the event; `None` if it did not.
    pub back_s: Option<f64>,
    /// The observed time since the start of the event.
    pub seen_s: f64,
}

/// Results of a time span. Response times are medians of its seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    pub from_s: f64,
    pub to_s: f64,
    pub ok_per_s: f64,
    pub error_share: Option<f64>,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    /// Minimum number of online users.
    pub online_min: f64,
}

/// The effect of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effect {
    pub before: Option<Stretch>,
    pub during: Option<Stretch>,
    pub after: Option<Stretch>,
    pub changes: Vec<Change>,
}

impl Around {
    /// `None` if the point says nothing about the target.
    fn of(self, point: &Point, width_s: f64) -> Option<f64> {
        let is_timed = point.timed >= TIMED_MIN && is_about_target(point, width_s);
        match self {
            Around::Rate => Some(point.ok / point.lines.max(1.0)),
            Around::Errors => (point.attempts() > 0.0).then(|| point.failed / point.attempts()),
            Around::P50 => is_timed.then_some(point.p50),
            Around::P99 => is_timed.then_some(point.p99),
            Around::Online => Some(point.online),
        }
    }

    /// The limit of the usual range.
    fn bound(self, usual: f64, deviation: f64) -> f64 {
        let far = DEVIATIONS * deviation;
        match self {
            Around::Rate => usual - far.max(RATE_FALL * usual).max(COUNT_DEVIATIONS * usual.sqrt()),
            Around::Errors => usual + far.max(ERRORS_RISE),
            Around::P50 => (usual + far).max(P50_RISE * usual),
            Around::P99 => (usual + far).max(P99_RISE * usual),
            // Even a single user of a few is reported.
            Around::Online => usual - far.max(ONLINE_FALL * usual).max(0.5),
        }
    }

    fn is_low(self) -> bool {
        matches!(self, Around::Rate | Around::Online)
    }

    fn worse(self, one: f64, other: f64) -> f64 {
        if self.is_low() { one.min(other) } else { one.max(other) }
    }
}

/// The effect of an event. Without enough seconds before it, no change is reported.
pub fn around(timeline: &Timeline, happened: &Happened) -> Effect {
    let points = timeline.points();
    let width_s = timeline.width_s() as f64;
    let place = |second: f64| ((second.max(0.0) / width_s) as usize).min(points.len());
    let begin = place(happened.begun_s);
    let first = place(happened.same_from_s).max(place(happened.begun_s - BESIDE_S));
    // The first point of a phase is not typical of it.
    let first = if happened.same_from_s > 0.0 { first + 1 } else { first };
    // The last point may be incomplete.
    let end = (happened.same_to_s / width_s) as usize;
    let look = Look { points, width_s, happened, begin, end: end.clamp(begin, points.len()) };
    let before = first.min(begin)..begin;
    let changes: Vec<(Change, usize)> = match before.len() >= BEFORE_POINTS_MIN {
        true => Around::ALL.iter().filter_map(|it| look.change(*it, &before)).collect(),
        false => Vec::new(),
    };
    let ended = place(happened.ended_s) + 1;
    let until = changes.iter().map(|(_, back)| *back).max().unwrap_or(ended).max(begin + 1);
    let until = until.min(look.end);
    let after = until..place(until as f64 * width_s + BESIDE_S).min(look.end);
    Effect {
        before: look.stretch(before),
        during: look.stretch(begin..until),
        after: look.stretch(after),
        changes: changes.into_iter().map(|(change, _)| change).collect(),
    }
}

struct Look<'a> {
    points: &'a [Point],
    width_s: f64,
    happened: &'a Happened,
    begin: usize,
    end: usize,
}

impl Look<'_> {
    /// Also returns the point at which it returned, or the end of the observed time.
    fn change(&self, figure: Around, before: &Range<usize>) -> Option<(Change, usize)> {
        let value = |at: usize| figure.of(&self.points[at], self.width_s);
        let usual: Vec<f64> = before.clone().filter_map(value).collect();
        if usual.len() < BEFORE_POINTS_MIN {
            return None;
        }
        let (usual, deviation) = stats::spread(&usual)?;
        let bound = figure.bound(usual, deviation);
        let is_out = |at: usize| {
            let enough = figure != Around::Errors || self.points[at].failed >= FAILED_MIN;
            let is_beyond =
                |value: f64| if figure.is_low() { value < bound } else { value > bound };
            enough && value(at).is_some_and(is_beyond)
        };
        let onset = self.onset(figure, &is_out)?;
        let back = self.back(onset, &is_out);
        let until = back.unwrap_or(self.end);
        let out: Vec<usize> = (onset..until).filter(|at| is_out(*at)).collect();
        let begun_s = self.happened.begun_s;
        let since = |at: usize| at as f64 * self.width_s - begun_s;
        let change = Change {
            figure,
            before: usual,
            worst: self.worst(figure, &out)?,
            for_s: out.len() as f64 * self.width_s,
            back_s: back.map(|at| since(at).max(0.0)),
            seen_s: since(self.end).max(0.0),
        };
        Some((change, until))
    }

    /// The first point outside the usual range. Deviations of one or two seconds are noise: most of
    /// the following points must be outside, too.
    fn onset(&self, figure: Around, is_out: &impl Fn(usize) -> bool) -> Option<usize> {
        let last = ((self.happened.ended_s + ONSET_S) / self.width_s) as usize + 1;
        let is_time = matches!(figure, Around::P50 | Around::P99);
        let follow = |at: usize| (at + 1..(at + 4).min(self.end)).filter(|it| is_out(*it)).count();
        let lasts = |at: usize| !is_time || follow(at) >= 2;
        (self.begin..last.min(self.end)).find(|at| is_out(*at) && lasts(*at))
    }

    fn back(&self, onset: usize, is_out: &impl Fn(usize) -> bool) -> Option<usize> {
        let calm = |at: usize| !(at..(at + RETURN_POINTS).min(self.end)).any(is_out);
        let enough = |at: &usize| self.end - at >= RETURN_POINTS_AT_END;
        (onset + 1..self.end).filter(enough).find(|at| calm(*at))
    }

    fn worst(&self, figure: Around, out: &[usize]) -> Option<f64> {
        if figure == Around::Errors {
            let sum =
                |of: fn(&Point) -> f64| -> f64 { out.iter().map(|at| of(&self.points[*at])).sum() };
            return Some(sum(|point| point.failed) / sum(Point::attempts).max(1.0));
        }
        let values = out.iter().filter_map(|at| figure.of(&self.points[*at], self.width_s));
        values.reduce(|one, other| figure.worse(one, other))
    }

    fn stretch(&self, range: Range<usize>) -> Option<Stretch> {
        let points = self.points.get(range.clone()).filter(|it| !it.is_empty())?;
        let sum = |of: fn(&Point) -> f64| -> f64 { points.iter().map(of).sum() };
        let times = |figure: Around| {
            let values = points.iter().filter_map(|point| figure.of(point, self.width_s));
            stats::median(&values.collect::<Vec<_>>())
        };
        let attempts = sum(Point::attempts);
        Some(Stretch {
            from_s: range.start as f64 * self.width_s,
            to_s: range.end as f64 * self.width_s,
            ok_per_s: sum(|point| point.ok) / sum(|point| point.lines).max(1.0),
            error_share: (attempts > 0.0).then(|| sum(|point| point.failed) / attempts),
            p50_ns: times(Around::P50),
            p99_ns: times(Around::P99),
            online_min: points.iter().map(|point| point.online).fold(f64::INFINITY, f64::min),
        })
    }
}

impl Effect {
    /// One sentence per changed value.
    pub fn told(&self) -> Vec<Said> {
        self.changes.iter().map(Change::told).collect()
    }
}

impl Change {
    fn told(&self) -> Said {
        let seconds = |s: f64| format!("{} s", s.ceil().max(1.0));
        let time = |ns: f64| format_duration(Duration::from_nanos(ns as u64));
        let number = |value: f64| format_count(value.round().max(0.0) as u64);
        let what = match self.figure {
            Around::Rate => {
                say!("successes fell from {}/s to {}/s", number(self.before), number(self.worst))
            }
            Around::Errors => {
                let share = format!("{:.1}", self.worst * 100.0);
                let share = share.strip_suffix(".0").unwrap_or(&share);
                return match self.back_s {
                    Some(_) => say!("errors {share} % for {}", seconds(self.for_s)),
                    None => say!(
                        "errors {share} % for {}, not recovered after {}",
                        seconds(self.for_s),
                        seconds(self.seen_s)
                    ),
                };
            }
            Around::P50 | Around::P99 => {
                let word = if self.figure == Around::P50 { "p50" } else { "p99" };
                say!("{word} rose from {} to {}", time(self.before), time(self.worst))
            }
            Around::Online => {
                let lost = number(self.before - self.worst);
                return match self.back_s {
                    Some(back) => {
                        say!("{lost} users offline, all online again after {}", seconds(back))
                    }
                    None => say!(
                        "{lost} users offline, not all online again after {}",
                        seconds(self.seen_s)
                    ),
                };
            }
        };
        match self.back_s {
            Some(back) => say!("{what}, recovered after {}", seconds(back)),
            None => say!("{what}, not recovered after {}", seconds(self.seen_s)),
        }
    }
}

#[cfg(test)]
mod tests;
