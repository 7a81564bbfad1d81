//! Goals: `SUBJECT MEASURE COMPARISON VALUE [in PHASE]`, such as `http p99 < 50ms in hold`.

use throng_base::StepId;
use throng_base::diagnostic::did_you_mean;
use throng_base::units::{self, UnitError};
use throng_metrics::{Comparison, Measure, Stage, Subject, Threshold};
use throng_program::{Phase, Step, StepKind};

use crate::read::{Context, shorten};
use crate::syntax::{Node, Place};

const HELP: &str = "write `http p99 < 50ms`, `errors < 0.1%`, `NAME p95 <= 1s in PHASE` or \
                    `http rate > 500/s`";

/// The most goals of a scenario.
const THRESHOLDS_MAX: usize = 1_000;

/// What thresholds may speak of.
pub(crate) struct Names<'p> {
    pub(crate) steps: &'p [Step],
    pub(crate) phases: &'p [Phase],
    /// False when a mistake before kept steps or phases from being known.
    pub(crate) complete: bool,
}

pub(crate) fn read_thresholds(
    cx: &mut Context<'_>,
    node: &Node,
    names: &Names<'_>,
) -> Vec<Threshold> {
    let items = cx.items(node, "a list of goals", "write `thresholds: [\"http p99 < 50ms\"]`");
    let items = items.unwrap_or_default();
    if let Some(item) = items.get(THRESHOLDS_MAX) {
        let message = format!("more than {THRESHOLDS_MAX} goals");
        let error = cx.error("too-many", message, item.place).label("this one is too much");
        cx.note(error.help("goals of a kind hold for all steps of it: `http p99 < 50ms`"));
    }
    items
        .iter()
        .take(THRESHOLDS_MAX)
        .filter_map(|item| {
            let text = cx.text(item, "a goal")?;
            Reader { cx: &mut *cx, node: item, names }.read(&text)
        })
        .collect()
}

struct Reader<'r, 'a, 'p> {
    cx: &'r mut Context<'a>,
    node: &'r Node,
    names: &'r Names<'p>,
}

impl Reader<'_, '_, '_> {
    fn read(&mut self, text: &str) -> Option<Threshold> {
        let Some((left, comparison, right)) = split_comparison(text) else {
            return self.fail("bad-threshold", "no comparison is in this goal", text, HELP);
        };
        let (value, phase) = match right.rsplit_once(" in ") {
            Some((value, name)) => (value.trim(), Some(self.phase(name.trim())?)),
            None => (right.trim(), None),
        };
        let (subject, measure) = self.subject_and_measure(left.trim(), value)?;
        let value = self.value(measure, &subject, value)?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Threshold { text, subject, measure, comparison, value, phase })
    }

    fn fail<T>(&mut self, code: &'static str, message: &str, part: &str, help: &str) -> Option<T> {
        let place = self.place(part);
        let error = self.cx.error(code, message.to_string(), place).label("not understood");
        self.cx.fail(error.help(help))
    }

    fn place(&self, part: &str) -> Place {
        self.cx.place_of(self.node, part)
    }

    fn phase(&mut self, name: &str) -> Option<u16> {
        let phases = self.names.phases;
        let found = phases.iter().position(|phase| phase.name == name);
        let Some(index) = found else {
            let all = phases.iter().map(|phase| phase.name.as_str());
            return self.unknown("phase", name, all);
        };
        if !phases[index].measured {
            let place = self.place(name);
            let message = format!("the phase `{}` is not measured", shorten(name));
            let warning = self.cx.warning("nothing-measured", message, place);
            self.cx.note(
                warning
                    .label("`measured: false`")
                    .help("this goal has nothing to judge: name a measured phase"),
            );
        }
        u16::try_from(index).ok()
    }

    fn unknown<'n, T>(
        &mut self,
        what: &str,
        name: &str,
        all: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<T> {
        if !self.names.complete && matches!(what, "step" | "phase") {
            return None;
        }
        let place = self.place(name);
        let message = format!("there is no {what} `{}`", shorten(name));
        let mut error = self.cx.error("unknown-name", message, place);
        if let Some(near) = did_you_mean(name, all.clone()) {
            error = error.label(format!("did you mean `{near}`?"));
        }
        const SHOWN_MAX: usize = 12;
        let mut list: Vec<String> =
            all.take(SHOWN_MAX + 1).map(|name| format!("`{}`", shorten(name))).collect();
        if list.len() > SHOWN_MAX {
            list[SHOWN_MAX] = "…".into();
        }
        self.cx.fail(match list.is_empty() {
            true => error.help(format!("the scenario has no {what}")),
            false => error.help(format!("there is {}", list.join(", "))),
        })
    }

    /// `http p99`, `GET / errors`, `errors`, `users.online`; without a subject all steps are meant.
    fn subject_and_measure(&mut self, left: &str, value: &str) -> Option<(Subject, Measure)> {
        match left {
            "users.online" => return Some((Subject::UsersOnline, Measure::Count)),
            "connections" => return Some((Subject::Connections, Measure::Count)),
            _ => {}
        }
        let (subject, word) = match left.rsplit_once(char::is_whitespace) {
            Some((subject, word)) => (subject.trim(), word),
            None => ("", left),
        };
        let Some(measure) = measure(word, value.ends_with('%')) else {
            if MEASURES_LATER.contains(&word) {
                let place = self.place(word);
                self.cx.not_yet(&format!("the figure `{word}`"), place, HELP);
                return None;
            }
            if self.subject(left).is_some() {
                let help = "say which figure: `p99`, `mean`, `max`, `rate`, `count` or `errors`";
                return self.fail("bad-threshold", "this goal has no figure", left, help);
            }
            if is_quantile(word) {
                let help = "a quantile goes from p0 to p100: `p99`, `p99.9`";
                return self.fail("bad-threshold", "there is no such quantile", word, help);
            }
            let words = MEASURES.iter().map(|(word, _)| *word).chain(["p50", "p90", "p95", "p99"]);
            return self.unknown("figure", word, words);
        };
        match self.subject(subject) {
            Some(subject) => Some((subject, measure)),
            None => {
                let steps = self.names.steps;
                let words = StepKind::word;
                let mut all: Vec<&str> = steps.iter().map(|step| words(step.kind)).collect();
                all.sort_unstable();
                all.dedup();
                all.extend(steps.iter().map(|step| step.name.as_str()));
                self.unknown("step", subject, all.into_iter())
            }
        }
    }

    fn subject(&self, name: &str) -> Option<Subject> {
        let ids = |keep: &dyn Fn(&Step) -> bool| -> Vec<StepId> {
            let steps = self.names.steps.iter().enumerate();
            steps.filter(|(_, step)| keep(step)).map(|(i, _)| StepId(i as u16)).collect()
        };
        if name.is_empty() {
            return Some(Subject::Steps(ids(&|_| true)));
        }
        let words: Vec<&str> = name.split_whitespace().collect();
        let name = words.join(" ");
        let by_name = ids(&|step| step.name == name);
        let by_kind = ids(&|step| step.kind.word() == name);
        // A kind word means all steps of the kind, also when one of them has just that name.
        for found in [by_kind, by_name] {
            if !found.is_empty() {
                return Some(Subject::Steps(found));
            }
        }
        Stage::ALL.into_iter().find(|stage| stage.word() == name).map(Subject::Stage)
    }

    fn value(&mut self, measure: Measure, subject: &Subject, text: &str) -> Option<f64> {
        let parsed: Result<f64, UnitError> = match (measure, subject) {
            (_, Subject::UsersOnline | Subject::Connections)
            | (Measure::Count | Measure::Failed, _) => {
                units::parse_count(text).map(|count| count as f64)
            }
            (Measure::Rate, _) => units::parse_rate(text),
            (Measure::FailedShare | Measure::OkShare, _) => units::parse_share(text),
            _ => units::parse_duration(text).map(|time| time.as_nanos() as f64),
        };
        let reason = match parsed {
            Ok(value) if matches!(measure, Measure::FailedShare | Measure::OkShare) => {
                if value <= 1.0 {
                    return Some(value);
                }
                UnitError { message: "more than all of it".into(), help: "write at most `100%`" }
            }
            Ok(value) => return Some(value),
            Err(reason) => reason,
        };
        let message = format!("`{}` is not the value of this figure", shorten(text));
        let place = self.place(text);
        let error = self.cx.error("bad-threshold", message, place).label(reason.message);
        self.cx.fail(error.help(reason.help))
    }
}

/// Cuts at the first comparison.
fn split_comparison(text: &str) -> Option<(&str, Comparison, &str)> {
    let at = text.find(['<', '>', '=', '≤', '≥'])?;
    let (left, rest) = text.split_at(at);
    let words = [
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("==", Comparison::Equal),
        ("≤", Comparison::LessOrEqual),
        ("≥", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
        ("=", Comparison::Equal),
    ];
    words.into_iter().find_map(|(word, comparison)| {
        rest.strip_prefix(word).map(|right| (left, comparison, right))
    })
}

const MEASURES: &[(&str, Measure)] = &[
    ("mean", Measure::Mean),
    ("avg", Measure::Mean),
    ("min", Measure::Min),
    ("max", Measure::Max),
    ("rate", Measure::Rate),
    ("count", Measure::Count),
    ("errors", Measure::Failed),
    ("checks", Measure::OkShare),
    ("ok", Measure::OkShare),
];

/// Figures of the wider language: of deliveries, heartbeats, life cycles and audits.
const MEASURES_LATER: &[&str] = &[
    "lost",
    "late",
    "twice",
    "received",
    "complete",
    "false_online",
    "false_offline",
    "heartbeats.lost",
];

fn measure(word: &str, share: bool) -> Option<Measure> {
    if let Some((_, measure)) = MEASURES.iter().find(|(name, _)| *name == word) {
        return Some(match measure {
            Measure::Failed if share => Measure::FailedShare,
            measure => *measure,
        });
    }
    let percent: f64 = word.strip_prefix('p').filter(|_| is_quantile(word))?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(Measure::Quantile(percent / 100.0))
}

fn is_quantile(word: &str) -> bool {
    let number = word.strip_prefix('p').unwrap_or("");
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_and_figures() {
        assert_eq!(split_comparison("a <= 1"), Some(("a ", Comparison::LessOrEqual, " 1")));
        assert_eq!(split_comparison("a≥1"), Some(("a", Comparison::GreaterOrEqual, "1")));
        assert_eq!(split_comparison("a 1"), None);
        assert_eq!(measure("p50", false), Some(Measure::Quantile(0.5)));
        assert_eq!(measure("p101", false), None);
        assert_eq!(measure("pole", false), None);
        assert_eq!(measure("errors", true), Some(Measure::FailedShare));
    }
}
