//! The result of a search in one sentence, and its parts in words.

use std::time::Duration;

use throng_base::Said;
use throng_base::units::{format_count, format_duration};

use super::{Basis, Capacity, Collapse, EndedBy, FailedBy, Level, LevelVerdict, LoadUnit};

/// Below this, seconds have a decimal.
const SECONDS_WHOLE_MIN: f64 = 10.0;
/// From this value on, a duration is in minutes.
const MINUTES_MIN: f64 = 180.0;

/// Whether a level gives information about the service.
fn is_judged(level: &Level) -> bool {
    !matches!(level.verdict, LevelVerdict::GeneratorBound(_))
}

impl Capacity {
    /// The complete sentence.
    pub fn sentence(&self) -> Said {
        let parts = [
            Some(self.head()),
            self.confirmed(),
            self.failed(),
            self.overloaded(),
            self.overload.collapse.map(|collapse| self.collapsed(collapse)),
            self.trend.map(trend),
            self.ended(),
        ];
        let all = parts.into_iter().flatten();
        all.reduce(|before, next| say!("{before}; {next}")).unwrap_or_default()
    }

    /// The sustained load, or what is known without a promise.
    fn head(&self) -> Said {
        let of = Said::listed(self.thresholds.iter().map(|text| Said::of_others(text.as_str())));
        let of = of.cleaned();
        match of.is_empty() {
            true => self.limit(),
            false => say!("{}: {of}", self.limit()),
        }
    }

    fn limit(&self) -> Said {
        let [low, high] = [self.low, self.high].map(|load| load.map(|load| self.load(load)));
        let bare = |load: Option<f64>| number(load.unwrap_or_default());
        match (self.carries.map(|load| self.load(load)), self.basis, low, high) {
            (_, Basis::Nothing, ..) => self.nothing(),
            (Some(carries), Basis::Interval, Some(_), Some(_)) => {
                say!("carries {carries} (95 %: {} to {})", bare(self.low), bare(self.high))
            }
            (Some(carries), Basis::Bracket, Some(low), Some(high)) => {
                say!("carries {carries} (met at {low}, not met at {high})")
            }
            (Some(carries), ..) => say!("carries at least {carries}"),
            (None, Basis::Interval, Some(low), Some(high)) => {
                say!("not confirmed: the capacity is between {low} and {high} (95 %)")
            }
            (None, Basis::AtLeast, Some(low), _) => {
                say!("not confirmed: at least {low}, the highest load tried")
            }
            // The next part names the load that fails.
            (None, _, Some(low), Some(high)) if self.fails_at.is_none() => {
                say!("not confirmed: thresholds met at {low}, not met at {high}")
            }
            (None, _, Some(low), _) => say!("not confirmed: thresholds met at {low}"),
            (None, ..) => say!("not confirmed"),
        }
    }

    /// Nothing passed.
    fn nothing(&self) -> Said {
        let load = self.lowest_tried().map(|load| self.load(load));
        match (&self.ended_by, load) {
            (EndedBy::BaseFails(by), Some(load)) => {
                say!("fails at the lowest load, {load} ({})", by.text())
            }
            (EndedBy::BaseFails(by), None) => say!("fails at the lowest load ({})", by.text()),
            (_, Some(load)) if self.fails_at.is_none() && !self.levels.iter().any(is_judged) => {
                say!("no result: no load could be judged, from {load} upward")
            }
            (_, Some(load)) => {
                say!("not confirmed: thresholds not met at any load, from {load} upward")
            }
            (_, None) => say!("no result: no load was tried"),
        }
    }

    /// The lowest tested load.
    pub fn lowest_tried(&self) -> Option<f64> {
        let loads = self.levels.iter().map(|level| level.load).chain(self.fails_at);
        loads.min_by(f64::total_cmp)
    }

    fn confirmed(&self) -> Option<Said> {
        let is_told = self.carries.is_some() && self.confirmed_s > 0.0;
        is_told.then(|| say!("confirmed over {}", seconds(self.confirmed_s)))
    }

    fn failed(&self) -> Option<Said> {
        let load = self.load(self.fails_at?);
        // If the first level fails, the sentence is complete.
        match (&self.ended_by, &self.fails_by) {
            (EndedBy::BaseFails(_), _) => None,
            (_, Some(by)) => Some(say!("fails at {load} ({})", by.text())),
            (_, None) => Some(say!("fails at {load}")),
        }
    }

    fn overloaded(&self) -> Option<Said> {
        let load = self.load(self.overload.at?);
        match self.overload.recovered_s {
            Some(after) => {
                Some(say!("back to normal {} after an overload of {load}", seconds(after)))
            }
            // The end or the collapse already explains it.
            None if self.ended_by == EndedBy::NotRecovered => None,
            None if self.overload.collapse.is_some() => None,
            None => Some(say!("recovery from an overload of {load} was not observed")),
        }
    }

    fn collapsed(&self, collapse: Collapse) -> Said {
        let (at, served) = (self.load(collapse.at), number(collapse.served));
        let stays = collapse.stays && self.ended_by != EndedBy::NotRecovered;
        match (collapse.recovers_at.map(|load| self.load(load)), stays) {
            (Some(load), _) => {
                say!(
                    "collapses at {at}: throughput falls to {served}/s and recovers only at {load}"
                )
            }
            (None, true) => {
                say!(
                    "collapses at {at}: throughput falls to {served}/s and does not recover at \
                     half the load that the service sustained before"
                )
            }
            (None, false) => say!("collapses at {at}: throughput falls to {served}/s"),
        }
    }

    /// Why the search ended, unless that is the result itself.
    pub fn ended(&self) -> Option<Said> {
        match &self.ended_by {
            EndedBy::Found | EndedBy::BaseFails(_) => None,
            EndedBy::Max => Some(say!("this is the highest allowed load")),
            EndedBy::Generator(by) if self.basis == Basis::AtLeast => {
                Some(say!("the generator reached its limit there: {}", by.text()))
            }
            EndedBy::Generator(by) => {
                Some(say!("the generator reached its limit and ended the search: {}", by.text()))
            }
            EndedBy::Budget => Some(say!(
                "the search ended because its budget of {} was used up: raise `--budget` \
                 for a more precise result",
                seconds(self.budget_s)
            )),
            EndedBy::NotConfirmed => Some(say!(
                "no load near the lower end of the interval met the thresholds for the \
                 required time"
            )),
            EndedBy::NotRecovered => {
                let load = self.overload.at.or(self.fails_at).map(|load| self.load(load));
                Some(match load {
                    Some(load) => {
                        say!("did not recover after {load}, even at a fraction of the load")
                    }
                    None => say!("did not recover, even at a fraction of the load"),
                })
            }
            EndedBy::CollapsedAgain => {
                Some(say!("the search ended when the service collapsed again"))
            }
            EndedBy::Asked => Some(say!("the run ended before the search was complete")),
        }
    }

    /// A load with its unit.
    pub fn load(&self, load: f64) -> Said {
        load_text(self.unit, load)
    }

    /// The zones of the load, each with the range of its end.
    pub fn zones(&self) -> Vec<Said> {
        let range = |(low, high): (f64, f64)| (number(low), self.load(high));
        let mut zones = Vec::new();
        if let Some((low, high)) = self.knee.optimal.map(range) {
            zones.push(say!(
                "light load ends at {low} to {high}: above that, 1 % more load increases the \
                 response time by more than 1 %"
            ));
        }
        // Throughput says nothing of how many users may stay.
        let by_rate = self.unit == LoadUnit::PerS;
        if let Some((low, high)) = self.knee.maximum.map(range).filter(|_| by_rate) {
            zones.push(say!(
                "heavy load ends at {low} to {high}: above that, throughput does \
                 not grow"
            ));
        }
        if let Some(load) = self.knee.collapse.map(|load| self.load(load)) {
            zones.push(say!("collapse at {load} and above: throughput falls"));
        }
        zones
    }

    /// The number of machines like this one for a peak.
    pub fn machines_text(&self) -> Option<Said> {
        let peak = self.load(self.peak?);
        let Some(machines) = self.machines() else {
            return Some(say!(
                "machines for a peak of {peak}: unknown, because no capacity was \
                 confirmed"
            ));
        };
        let (count, most) = (format_count(machines.count), format_count(machines.high));
        Some(match machines.low.map(format_count) {
            Some(least) if least == most => {
                say!("machines for a peak of {peak}: {count}, each at 70 % of its capacity")
            }
            Some(least) => say!(
                "machines for a peak of {peak}: {count} ({least} to {most}), each at 70 % of its \
                 capacity"
            ),
            None => {
                say!("machines for a peak of {peak}: at most {count}, each at 70 % of its capacity")
            }
        })
    }
}

impl FailedBy {
    /// Used after `by`: a threshold without its value.
    pub fn text(&self) -> Said {
        match self {
            FailedBy::Threshold(text) => {
                let subject = text.split(['<', '>', '=']).next().unwrap_or_default().trim();
                Said::of_others(subject).cleaned()
            }
            FailedBy::Backlog => say!("a backlog that does not shrink in time"),
            FailedBy::Offline => say!("users that are not online"),
            FailedBy::Failing => say!("failures in more than half of the attempts"),
            FailedBy::Silence => say!("no response for several seconds"),
            FailedBy::Gone => say!("the target became unreachable"),
        }
    }

    /// In one or two words, for a table.
    pub fn brief(&self) -> Said {
        match self {
            FailedBy::Threshold(_) => self.text(),
            FailedBy::Backlog => say!("backlog"),
            FailedBy::Failing => say!("failures"),
            FailedBy::Offline => say!("not online"),
            FailedBy::Silence => say!("silence"),
            FailedBy::Gone => say!("target lost"),
        }
    }

    /// The word in JSON: a threshold as written, or a keyword.
    pub fn word(&self) -> &str {
        match self {
            FailedBy::Threshold(text) => text,
            FailedBy::Backlog => "backlog",
            FailedBy::Failing => "failing",
            FailedBy::Offline => "offline",
            FailedBy::Silence => "silence",
            FailedBy::Gone => "gone",
        }
    }
}

impl Level {
    /// Whether it met the thresholds, in a few words.
    pub fn verdict_text(&self) -> Said {
        match &self.verdict {
            LevelVerdict::Met => say!("met"),
            LevelVerdict::NotMet(by) => by.brief(),
            LevelVerdict::GeneratorBound(by) => say!("generator: {}", by.text()),
        }
    }
}

fn trend(per_minute: f64) -> Said {
    let share = format!("{:.1}", per_minute.abs() * 100.0);
    match per_minute < 0.0 {
        true => say!("the capacity fell by {share} % per minute during the search"),
        false => say!("the capacity grew by {share} % per minute during the search"),
    }
}

/// A load with its unit.
pub fn load_text(unit: LoadUnit, load: f64) -> Said {
    let load = number(load);
    match unit {
        LoadUnit::PerS => Said::of_others(format!("{load}/s")),
        LoadUnit::Users => say!("{load} users"),
    }
}

/// A load without its unit.
pub fn number(load: f64) -> String {
    match load {
        load if load >= 99.5 || load.fract() == 0.0 => format_count(load.max(0.0).round() as u64),
        load if load >= 9.95 => format!("{load:.1}"),
        load => format!("{load:.2}"),
    }
}

fn seconds(seconds: f64) -> Said {
    let text = match seconds {
        s if s >= MINUTES_MIN => return Said::of_others(minutes(s)),
        s if s < SECONDS_WHOLE_MIN && s.fract() > 0.05 => format!("{s:.1}"),
        s => format!("{s:.0}"),
    };
    say!("{text} s")
}

/// `20m`; seconds are omitted if they are zero.
fn minutes(seconds: f64) -> String {
    let text = format_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    text.strip_suffix("00s").map_or_else(|| text.clone(), str::to_string)
}
