//! `--fail-if`: a condition on the change of a value, `[SUBJECT] FIGURE COMPARISON CHANGE`, such as
//! `http p99 > +10%`. The syntax is that of thresholds. The change is in percent of the baseline
//! or, for error shares, in percentage points.

use throng_base::diagnostic::{Source, Span};
use throng_base::units::parse_share;
use throng_base::{Diagnostic, Said};
pub use throng_metrics::duel::Fails;
use throng_metrics::{Comparison, Quantity};

use super::units::Subject;
use super::{
    Change, OF_GENERATOR, Sampled, Side, attempts, did_you_mean, figure, measured, subject,
};
use crate::directory::RunInfo;

const HELP: Said = say!("write `http p99 > +10%`, `rate < -5%` or `\"NAME\" failed > +0.5%`");

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub text: String,
    /// A step, a kind of steps or `connect`; empty for all attempts.
    subject: String,
    measure: Quantity,
    comparison: Comparison,
    limit: f64,
}

/// The result of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub text: String,
    pub fails: Fails,
    pub change: Option<Change>,
}

impl Condition {
    pub fn parse(text: &str) -> Result<Condition, Box<Diagnostic>> {
        let wrong = |part: &str, message: Said, help: Said| {
            let source = Source::new("--fail-if", text);
            let start = text.find(part).filter(|_| !part.is_empty()).unwrap_or(0);
            let end = start + if part.is_empty() { text.len() } else { part.len() };
            let told = Diagnostic::error("bad-threshold", message).help(help);
            Box::new(told.at(Span { source, start, end }))
        };
        let Some(at) = text.rfind(['<', '>']) else {
            return Err(wrong("", say!("the condition has no comparison operator"), HELP));
        };
        let (left, right) = text.split_at(at);
        let or_equal = right[1..].starts_with('=');
        let value = right[1 + usize::from(or_equal)..].trim();
        let comparison = match (right.starts_with('<'), or_equal) {
            (true, false) => Comparison::Less,
            (true, true) => Comparison::LessOrEqual,
            (false, false) => Comparison::Greater,
            (false, true) => Comparison::GreaterOrEqual,
        };
        let left = left.trim();
        let (subject, word) = left.rsplit_once([' ', '\t']).unwrap_or(("", left));
        let known = Quantity::named(if word == "errors" { "failed" } else { word });
        let known = known.filter(|measure| *measure != Quantity::TargetCpuPerAttempt);
        let Some(measure) = known else {
            let message = say!("`{word}` is not a metric that can be compared");
            let help = say!(
                "use `rate`, `failed`, `mean`, a percentile such as `p99`, `cores` or \
                 `cpu_per_attempt`"
            );
            return Err(wrong(word, message, help));
        };
        if OF_GENERATOR.contains(&measure) && !subject.is_empty() {
            let message = say!("`{word}` is a metric of the generator, not of a step");
            return Err(wrong(subject, message, say!("write `{word} > +10%`")));
        }
        let share = parse_share(value.trim_start_matches(['+', '-']));
        let share = share.map_err(|error| wrong(value, error.message, error.help))?;
        let limit = if value.starts_with('-') { -share } else { share };
        let is_below = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
        if limit != 0.0 && is_below != value.starts_with('-') {
            let message = say!("the condition is true even if nothing changes");
            let help = say!("write `> +10%` for an increase, `< -10%` for a decrease");
            return Err(wrong(value, message, help));
        }
        let subject = subject.trim().trim_matches('"').to_string();
        Ok(Condition { text: text.trim().to_string(), subject, measure, comparison, limit })
    }

    /// Checks that the compared run contains the subject of the condition.
    pub fn check(&self, info: &RunInfo) -> Result<(), Box<Diagnostic>> {
        if subject(info, &self.subject).is_some() {
            return Ok(());
        }
        let message = say!("the baseline has no step named `{}`", self.subject);
        let help = match did_you_mean(info, &self.subject) {
            Some(known) => say!("did you mean `{known}`?"),
            None => HELP,
        };
        let source = Source::new("--fail-if", &self.text);
        let start = self.text.find(&self.subject).unwrap_or(0);
        let span = Span { source, start, end: start + self.subject.len() };
        Err(Box::new(Diagnostic::error("unknown-step", message).at(span).help(help)))
    }

    pub(super) fn measure(&self) -> Quantity {
        self.measure
    }

    /// The subject of the condition in this run.
    pub(super) fn looks_at(&self, info: &RunInfo) -> Option<Subject> {
        match OF_GENERATOR.contains(&self.measure) {
            true => Some(Subject::Generator(attempts(info))),
            false => subject(info, &self.subject),
        }
    }

    /// The row of the condition in one run.
    pub(super) fn side(&self, run: &Sampled) -> Option<Side> {
        Some(measured(run, &self.looks_at(&run.summary.info)?, &[self.measure]))
    }

    /// The condition is true if the change exceeds the limit and is significant: the whole interval
    /// is on that side of zero.
    pub(super) fn judge(&self, before: Option<&Side>, after: Option<&Side>) -> Judged {
        let both = before.zip(after);
        self.judge_change(both.and_then(|(one, two)| figure(self.measure, 0, one, two).change))
    }

    /// The same for a known change.
    pub(super) fn judge_change(&self, change: Option<Change>) -> Judged {
        let judge = |change: &Change| {
            if !self.comparison.holds(change.by, self.limit) {
                return Fails::No;
            }
            match change.interval {
                None => Fails::Perhaps,
                Some((low, high)) if low > 0.0 || high < 0.0 => Fails::Yes,
                Some(_) => Fails::No,
            }
        };
        let fails = change.as_ref().map_or(Fails::Unknown, judge);
        Judged { text: self.text.clone(), fails, change }
    }
}
