//! Audits: compares the target's data about users and counts with throng's.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::units::{format_count, format_duration};
use throng_base::{Said, clean};
use throng_metrics::audit::{AuditFigure, Entry, Pair, Round, ViewRound};
use throng_metrics::presence::Change;
use throng_metrics::{Histogram, Measure, Subject, Threshold};

use crate::directory::AuditInfo;
use crate::event::Event;

/// The findings of an audit over the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditRow {
    pub name: String,
    /// The time in which a view must show a change.
    pub within_ns: u64,
    /// For an audit of presence.
    pub views: Vec<ViewRow>,
    /// The start of the last round in which all views were read, and the differences between pairs
    /// of views.
    pub pairs: Vec<Pair>,
    /// For an audit of counts: the step that they are compared with, and the readings.
    pub step: Option<String>,
    pub entries: Vec<(u64, Entry)>,
}

/// The results of a view over all rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewRow {
    pub name: String,
    /// Rounds in which it was read, and in which it could not be read.
    pub read: u64,
    pub failed: u64,
    /// The most recent reason.
    pub trouble: Option<Said>,
    /// The start and results of the round with the most wrong users; the last of several.
    pub worst: Option<(u64, ViewRound)>,
    pub last: Option<(u64, ViewRound)>,
    /// For all rounds, by the kind of change.
    pub times: BTreeMap<Change, Histogram>,
    /// The maximum of each value in any round, in the order of [`AuditFigure::COUNTS`].
    most: [u64; AuditFigure::COUNTS.len()],
    /// The minimum of values for which less is worse.
    least: [u64; AuditFigure::COUNTS.len()],
    /// The maximum or minimum of each value's share of what was compared.
    share: [f64; AuditFigure::COUNTS.len()],
}

impl ViewRow {
    fn add(&mut self, at_ns: u64, round: &ViewRound) {
        if let Some(trouble) = &round.trouble {
            self.failed += 1;
            self.trouble = Some(trouble.clone());
            return;
        }
        for (place, figure) in AuditFigure::COUNTS.into_iter().enumerate() {
            let count = round.count(figure);
            let share = count as f64 / round.compared.max(1) as f64;
            let is_first = self.read == 0;
            self.most[place] = self.most[place].max(count);
            self.least[place] = if is_first { count } else { self.least[place].min(count) };
            self.share[place] = match (is_first, figure.is_bad()) {
                (true, _) => share,
                (false, true) => self.share[place].max(share),
                (false, false) => self.share[place].min(share),
            };
        }
        self.read += 1;
        for (change, times) in &round.times {
            self.times.entry(*change).or_default().merge(times);
        }
        let wrong = round.wrong_users();
        if self.worst.as_ref().is_none_or(|(_, worst)| worst.wrong_users() <= wrong) {
            self.worst = Some((at_ns, round.clone()));
        }
        self.last = Some((at_ns, round.clone()));
    }

    /// All times until the view agreed.
    pub fn all_times(&self) -> Histogram {
        let mut all = Histogram::new();
        self.times.values().for_each(|times| all.merge(times));
        all
    }

    /// The worst value of any round.
    fn figure(&self, figure: AuditFigure, measure: Measure) -> Option<f64> {
        if figure == AuditFigure::TimeToAgree {
            let times = Some(self.all_times()).filter(|times| !times.is_empty())?;
            return match measure {
                Measure::Quantile(quantile) => Some(times.value_at(quantile) as f64),
                Measure::Mean => Some(times.mean()),
                Measure::Min => Some(times.min() as f64),
                Measure::Max => Some(times.max() as f64),
                _ => None,
            };
        }
        let place = AuditFigure::COUNTS.iter().position(|it| *it == figure)?;
        if self.read == 0 {
            return None;
        }
        match (measure, figure.is_bad()) {
            (Measure::ShareOfWhole, _) => Some(self.share[place]),
            (_, true) => Some(self.most[place] as f64),
            (_, false) => Some(self.least[place] as f64),
        }
    }
}

impl AuditRow {
    /// The reading with the largest difference, the last of several.
    pub fn worst_entry(&self) -> Option<&(u64, Entry)> {
        let read = self.entries.iter().filter(|(_, entry)| entry.trouble.is_none());
        read.max_by_key(|(_, entry)| entry.off().unsigned_abs())
    }

    fn figure(&self, view: Option<u16>, figure: AuditFigure, threshold: &Threshold) -> Option<f64> {
        if figure == AuditFigure::Off {
            return self.worst_entry().map(|(_, entry)| entry.off().unsigned_abs() as f64);
        }
        let of = |view: &ViewRow| view.figure(figure, threshold.measure);
        match view {
            Some(view) => self.views.get(usize::from(view)).and_then(of),
            None => self.views.iter().filter_map(of).reduce(|one, two| threshold.worse(one, two)),
        }
    }
}

impl AuditRow {
    /// One sentence per view, or for the counts; errors come first.
    pub fn sentences(&self) -> Vec<Said> {
        if self.step.is_some() {
            return self.of_books();
        }
        let mut views: Vec<&ViewRow> = self.views.iter().collect();
        let wrong = |view: &ViewRow| view.worst.as_ref().map(|(_, round)| round.wrong_users());
        // Views that were never read come first.
        views.sort_by_key(|view| std::cmp::Reverse(wrong(view).unwrap_or(u64::MAX)));
        views.into_iter().map(|view| self.of_view(view)).collect()
    }

    fn of_view(&self, view: &ViewRow) -> Said {
        let (audit, name) = (clean(&self.name), clean(&view.name));
        match (&view.worst, &view.trouble) {
            (Some((_, round)), _) if round.compared == 0 => {
                say!("{audit}: {name}: no user was compared")
            }
            (Some((_, round)), _) if round.wrong_users() == 0 => {
                let all = format_count(round.compared);
                say!("{audit}: {name} agrees about all {all} users")
            }
            (Some((at_ns, round)), _) => {
                let (wrong, all) =
                    (format_count(round.wrong_users()), format_count(round.compared));
                let at = time(*at_ns);
                say!("{audit}: {name} is wrong about {wrong} of {all} users at {at}")
            }
            (None, Some(trouble)) => {
                let trouble = trouble.clone();
                say!("{audit}: {name} could not be read: {trouble}")
            }
            (None, None) => say!("{audit}: {name} was not read during the run"),
        }
    }

    fn of_books(&self) -> Vec<Said> {
        let name = clean(&self.name);
        let step = clean(self.step.as_deref().unwrap_or_default());
        let failed = self.entries.iter().filter_map(|(_, entry)| entry.trouble.as_ref());
        let failed: Vec<&Said> = failed.collect();
        let mut said = Vec::new();
        if let Some((at_ns, entry)) = self.worst_entry() {
            let (at, least, most) =
                (time(*at_ns), format_count(entry.least), format_count(entry.most));
            let (books, off) = (entry.said, entry.off());
            let off_by = format_count(off.unsigned_abs());
            let range = match least == most {
                true => least,
                false => format!("{least} – {most}"),
            };
            said.push(match off {
                0 => say!(
                    "{name}: the service counts {books} at {at}; {step}: {range}; they \
                     agree"
                ),
                off if off < 0 => say!(
                    "{name}: the service counts {books} at {at}; {step}: {range}; {off_by} are \
                     missing"
                ),
                _ => say!(
                    "{name}: the service counts {books} at {at}; {step}: {range}; {off_by} more \
                     than expected"
                ),
            });
        }
        if let Some(trouble) = failed.last() {
            let count = format_count(failed.len() as u64);
            let all = format_count(self.entries.len() as u64);
            let trouble = (*trouble).clone();
            said.push(say!("{name}: {count} of {all} reads failed; last error: {trouble}"));
        } else if self.entries.is_empty() {
            said.push(say!("{name}: the service's count was not read during the run"));
        }
        said
    }
}

fn time(nanos: u64) -> String {
    format_duration(Duration::from_nanos(nanos))
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Audits {
    rows: Vec<AuditRow>,
}

/// Maximum number of readings kept, because a run directory can contain anything.
const ENTRIES_MAX: usize = 10_000;

impl Audits {
    pub(crate) fn new(infos: &[AuditInfo]) -> Audits {
        let view = |name: &String| ViewRow { name: name.clone(), ..ViewRow::default() };
        let row = |info: &AuditInfo| AuditRow {
            name: info.name.clone(),
            within_ns: info.within_ns,
            views: info.views.iter().map(view).collect(),
            step: info.step.clone(),
            ..AuditRow::default()
        };
        Audits { rows: infos.iter().map(row).collect() }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::Audited { at_ns, audit, round } => {
                let Some(row) = self.rows.get_mut(usize::from(*audit)) else { return };
                let Round { views, pairs, .. } = &**round;
                let own = row.views.iter_mut().zip(views);
                own.for_each(|(view, round)| view.add(*at_ns, round));
                if views.iter().all(|view| view.trouble.is_none()) {
                    row.pairs.clone_from(pairs);
                }
            }
            Event::BooksRead { at_ns, audit, entry } => {
                if let Some(row) = self.rows.get_mut(usize::from(*audit))
                    && row.entries.len() < ENTRIES_MAX
                {
                    row.entries.push((*at_ns, (**entry).clone()));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn figure(&self, threshold: &Threshold) -> Option<f64> {
        let Subject::Audit { audit, view, figure } = threshold.subject else { return None };
        self.rows.get(usize::from(audit))?.figure(view, figure, threshold)
    }

    pub(crate) fn rows(self) -> Vec<AuditRow> {
        self.rows
    }
}

/// A row as in `report --json`.
pub(crate) fn json(row: &AuditRow) -> Value {
    let english = |trouble: &Option<Said>| trouble.as_ref().map(Said::english);
    let times = |times: &Histogram| {
        json!({
            "count": times.count(),
            "p50_ns": times.value_at(0.5),
            "p99_ns": times.value_at(0.99),
            "max_ns": times.max(),
        })
    };
    let round = |round: &Option<(u64, ViewRound)>| {
        round.as_ref().map(|(at_ns, round)| {
            let mut value =
                json!({ "at_ns": at_ns, "wrong": round.wrong, "unknown": round.unknown });
            for figure in AuditFigure::COUNTS {
                value[figure.word()] = round.count(figure).into();
            }
            value
        })
    };
    let view = |view: &ViewRow| {
        let by: serde_json::Map<String, Value> =
            view.times.iter().map(|(kind, of)| (kind.word().to_string(), times(of))).collect();
        json!({
            "name": view.name,
            "read": view.read,
            "failed": view.failed,
            "trouble": english(&view.trouble),
            "worst": round(&view.worst),
            "last": round(&view.last),
            "time_to_agree": times(&view.all_times()),
            "time_to_agree_by": by,
        })
    };
    let pair = |pair: &Pair| {
        let name = |place: u16| row.views.get(usize::from(place)).map(|view| view.name.clone());
        let [none_off, other_off, one_off, both_off, none_on, other_on, one_on, both_on] =
            pair.counts;
        json!({
            "one": name(pair.one),
            "other": name(pair.other),
            "offline": {
                "neither": none_off, "other": other_off, "one": one_off, "both": both_off,
            },
            "online": { "neither": none_on, "other": other_on, "one": one_on, "both": both_on },
        })
    };
    let entry = |(at_ns, entry): &(u64, Entry)| {
        json!({
            "at_ns": at_ns,
            "said": entry.trouble.is_none().then_some(entry.said),
            "before": entry.before,
            "least": entry.least,
            "most": entry.most,
            "off": entry.trouble.is_none().then(|| entry.off()),
            "at_end": entry.is_last,
            "trouble": english(&entry.trouble),
        })
    };
    json!({
        "name": row.name,
        "agree_within_ns": row.within_ns,
        "views": row.views.iter().map(view).collect::<Vec<_>>(),
        "pairs": row.pairs.iter().map(pair).collect::<Vec<_>>(),
        "step": row.step,
        "entries": row.entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use throng_metrics::Comparison;

    use super::*;

    fn round(false_online: u64, compared: u64) -> Event {
        let agree = compared - false_online;
        let view = ViewRound { compared, agree, false_online, ..ViewRound::default() };
        let round = Box::new(Round { views: vec![view], ..Round::default() });
        Event::Audited { at_ns: 1_000 * compared, audit: 0, round }
    }

    #[test]
    fn thresholds_use_the_worst_round() {
        let info = AuditInfo {
            name: "presence".into(),
            views: vec!["redis".into()],
            ..AuditInfo::default()
        };
        let mut audits = Audits::new(&[info]);
        let threshold = |figure, measure| {
            let subject = Subject::Audit { audit: 0, view: None, figure };
            Threshold::new("", subject, measure, Comparison::Equal, 0.0)
        };
        let of = |audits: &Audits, figure| audits.figure(&threshold(figure, Measure::Count));
        assert_eq!(of(&audits, AuditFigure::FalseOnline), None, "nothing was read");
        [round(0, 10), round(3, 20), round(0, 30)].iter().for_each(|it| audits.event(it));
        assert_eq!(of(&audits, AuditFigure::FalseOnline), Some(3.0));
        assert_eq!(of(&audits, AuditFigure::Compared), Some(10.0));
        let share = threshold(AuditFigure::Agree, Measure::ShareOfWhole);
        assert_eq!(audits.figure(&share), Some(0.85));
        assert_eq!(of(&audits, AuditFigure::TimeToAgree), None);
        let rows = audits.rows();
        let at = |round: &Option<(u64, ViewRound)>| round.as_ref().map(|(at_ns, _)| *at_ns);
        let view = &rows[0].views[0];
        assert_eq!((at(&view.worst), at(&view.last)), (Some(20_000), Some(30_000)));
    }
}
