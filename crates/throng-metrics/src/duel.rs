//! The result of a duel: two targets under the same load in turn. The run directory contains it as
//! an event after each pair of slices, so that every report of the run shows it.

use serde::{Deserialize, Serialize};
use throng_base::{Exit, Said, Secrets};

use crate::quantity::{Quantity, Unit};

/// The result of a duel. B is compared with A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Duel {
    /// The targets A and B, as written.
    pub sides: [String; 2],
    pub slice_s: f64,
    /// Number of compared pairs of slices, without the first pair, which is a warm-up.
    pub pairs: u64,
    /// The duel ends once the interval of the first value extends at most this far to each side; a
    /// share.
    pub within: f64,
    pub budget_s: f64,
    pub ended_by: DuelEnd,
    /// The first value determines which side is faster.
    pub figures: Vec<Compared>,
    /// The conditions of `--fail-if`.
    pub conditions: Vec<DuelCondition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DuelEnd {
    /// It has not ended, or was interrupted.
    Running,
    /// The interval was narrow enough.
    Within,
    Budget,
}

/// A value of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// A word of `--fail-if`, or `target_cpu_per_attempt`.
    pub figure: String,
    /// Of all slices of a side together, in the unit of the value.
    pub a: Option<f64>,
    pub b: Option<f64>,
    pub change: Option<DuelChange>,
}

/// The change from A to B: relative to A, or a difference for error shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DuelChange {
    pub by: f64,
    /// The 95 % interval.
    pub low: f64,
    pub high: f64,
    /// It is significant, given the number of compared values.
    pub named: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DuelCondition {
    pub text: String,
    pub fails: Fails,
}

/// The result of a condition of `--fail-if`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fails {
    No,
    Yes,
    /// The change exceeds the limit, but is not significant.
    Perhaps,
    /// One side has no such value, which also fails, as with thresholds.
    Unknown,
}

impl Fails {
    /// For display; [`Fails::word`] is for programs.
    pub fn shown(self) -> &'static str {
        match self {
            Fails::No => "not triggered",
            Fails::Yes => "triggered",
            Fails::Perhaps => "undetermined",
            Fails::Unknown => "unknown",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Fails::No => "passed",
            Fails::Yes => "failed",
            Fails::Perhaps => "indeterminate",
            Fails::Unknown => "unknown",
        }
    }

    /// The exit code for these conditions.
    pub fn exit(all: impl Iterator<Item = Fails>) -> Exit {
        let all: Vec<Fails> = all.collect();
        if all.iter().any(|fails| matches!(fails, Fails::Yes | Fails::Unknown)) {
            Exit::ThresholdsNotMet
        } else if all.contains(&Fails::Perhaps) {
            Exit::ResultInvalid
        } else {
            Exit::Success
        }
    }
}

/// The outcome of a duel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// A or B is faster: by how much, and the 95 % interval, relative to the slower side.
    Faster { is_b: bool, by: f64, low: f64, high: f64 },
    /// The first value is equal, but another one differs; its index.
    Other(usize),
    /// The difference is smaller than the duel was to detect.
    Same,
    /// No difference was found, but a change of up to this share is possible.
    Undecided(f64),
    /// There are too few pairs.
    TooShort,
}

impl Compared {
    /// `None` for a word of a newer version.
    pub fn quantity(&self) -> Option<Quantity> {
        Quantity::named(&self.figure)
    }

    pub fn unit(&self) -> Unit {
        self.quantity().map_or(Unit::Nanoseconds, Quantity::unit)
    }

    fn is_better(&self, change: &DuelChange) -> bool {
        self.quantity().map_or(change.by <= 0.0, |quantity| quantity.is_better(change.by))
    }

    /// Whether B is better; `None` if the change is noise.
    pub fn verdict(&self) -> Option<bool> {
        let change = self.change.as_ref().filter(|change| change.named)?;
        Some(self.is_better(change))
    }
}

impl DuelChange {
    /// The larger distance from zero within the interval.
    pub fn reach(&self) -> f64 {
        (self.by - self.low).max(self.high - self.by)
    }
}

impl Duel {
    /// Masks secrets, because a condition can contain the name of a step.
    pub fn mask(&mut self, secrets: &Secrets) {
        let texts = self.conditions.iter_mut().map(|one| &mut one.text).chain(&mut self.sides);
        texts.for_each(|text| *text = secrets.mask(text).into_owned());
    }

    pub fn outcome(&self) -> Outcome {
        let first = self.figures.first();
        let Some((figure, change)) = first.and_then(|one| Some((one, one.change.as_ref()?))) else {
            return Outcome::TooShort;
        };
        if change.named {
            let is_b = figure.is_better(change);
            // Relative to the slower side; for times, that is reversed.
            let is_rate = figure.quantity().is_some_and(Quantity::is_more_better);
            let share = |by: f64| match is_rate {
                true if is_b => by,
                true => 1.0 / (1.0 + by) - 1.0,
                false if is_b => 1.0 / (1.0 + by) - 1.0,
                false => by,
            };
            let [by, one, other] = [change.by, change.low, change.high].map(share);
            return Outcome::Faster { is_b, by, low: one.min(other), high: one.max(other) };
        }
        let named = |one: &Compared| one.change.is_some_and(|change| change.named);
        match self.figures.iter().position(named) {
            Some(other) => Outcome::Other(other),
            None if change.reach() <= self.within => Outcome::Same,
            None => Outcome::Undecided(change.low.abs().max(change.high.abs())),
        }
    }

    /// The result in a few words.
    pub fn verdict(&self) -> Said {
        match self.outcome() {
            Outcome::Faster { is_b, by, low, high } => {
                let side = if is_b { "B" } else { "A" };
                let [by, low, high] = [by, low, high].map(percent);
                say!("{side} is faster by {by} % ({low} to {high})")
            }
            Outcome::Other(at) => {
                let Compared { figure, change, .. } = &self.figures[at];
                let change = change.as_ref().map(|it| [it.by, it.low, it.high].map(signed));
                let [by, low, high] = change.unwrap_or_default();
                say!("B differs in `{figure}` by {by} % ({low} to {high})")
            }
            Outcome::Same => say!("no difference"),
            Outcome::Undecided(most) => {
                let most = percent(most);
                say!("no difference found; a difference of up to {most} % is possible")
            }
            Outcome::TooShort => say!("too few pairs of slices for a verdict"),
        }
    }

    /// The exit code, and the reasons if it is not 0.
    pub fn judge(&self) -> (Exit, Vec<Said>) {
        let exit = Fails::exit(self.conditions.iter().map(|one| one.fails));
        let decides = |one: &&DuelCondition| match exit {
            Exit::ThresholdsNotMet => matches!(one.fails, Fails::Yes | Fails::Unknown),
            Exit::ResultInvalid => one.fails == Fails::Perhaps,
            _ => false,
        };
        let reasons = self.conditions.iter().filter(decides);
        let reasons: Vec<Said> = reasons.map(DuelCondition::text).collect();
        match (exit, self.outcome()) {
            (Exit::Success, Outcome::TooShort) => (Exit::ResultInvalid, vec![self.verdict()]),
            _ => (exit, reasons),
        }
    }
}

impl DuelCondition {
    pub fn text(&self) -> Said {
        let text = &self.text;
        match self.fails {
            Fails::No => say!("not triggered: {text}"),
            Fails::Yes => say!("triggered: {text}"),
            Fails::Perhaps => {
                say!("undetermined: {text} (too few pairs to distinguish a change from noise)")
            }
            Fails::Unknown => say!("failed: {text} (one of the targets does not have this metric)"),
        }
    }
}

/// With one decimal below 10.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = usize::from(percent.abs() < 9.95);
    let text = format!("{percent:.decimals$}");
    if text.trim_matches(['-', '0', '.']).is_empty() { "0".into() } else { text }
}

fn signed(share: f64) -> String {
    let text = percent(share);
    if text.starts_with(['-', '0']) && share <= 0.0 { text } else { format!("+{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(figure: &str, by: f64, reach: f64, named: bool) -> Compared {
        let change = DuelChange { by, low: by - reach, high: by + reach, named };
        Compared { figure: figure.into(), a: Some(1.0), b: Some(1.0), change: Some(change) }
    }

    fn duel(figures: Vec<Compared>) -> Duel {
        Duel {
            sides: ["http://a".into(), "http://b".into()],
            slice_s: 5.0,
            pairs: 20,
            within: 0.01,
            budget_s: 300.0,
            ended_by: DuelEnd::Budget,
            figures,
            conditions: Vec::new(),
        }
    }

    #[test]
    fn the_faster_side_is_named_with_its_interval() {
        let said = |figures| duel(figures).verdict().english();
        let rate = |by, reach, named| compared("rate", by, reach, named);
        assert_eq!(said(vec![rate(0.031, 0.009, true)]), "B is faster by 3.1 % (2.2 to 4.0)");
        // 100 of A against 97 of B: A has 3.1 % more.
        assert_eq!(said(vec![rate(-0.03, 0.01, true)]), "A is faster by 3.1 % (2.0 to 4.2)");
        let mean = |by| compared("mean", by, 0.01, true);
        assert_eq!(said(vec![mean(0.05)]), "A is faster by 5.0 % (4.0 to 6.0)");
        assert_eq!(said(vec![mean(-0.2)]), "B is faster by 25 % (23 to 27)");
    }

    #[test]
    fn equality_is_distinguished_from_an_undetected_difference() {
        let rate = |reach| compared("rate", 0.002, reach, false);
        assert_eq!(duel(vec![rate(0.009)]).verdict().english(), "no difference");
        let wide = duel(vec![rate(0.03)]);
        let text = "no difference found; a difference of up to 3.2 % is possible";
        assert_eq!(wide.verdict().english(), text);
        assert_eq!(wide.judge(), (Exit::Success, Vec::new()));
        let other = duel(vec![rate(0.009), compared("p99", 0.12, 0.05, true)]);
        assert_eq!(other.verdict().english(), "B differs in `p99` by +12 % (+7.0 to +17)");
        let none = duel(vec![Compared { change: None, ..rate(0.0) }]);
        assert_eq!((none.outcome(), none.judge().0), (Outcome::TooShort, Exit::ResultInvalid));
    }

    #[test]
    fn conditions_determine_the_exit_code() {
        let exit = |all: &[Fails]| {
            let condition =
                |fails: &Fails| DuelCondition { text: "p99 > +5%".into(), fails: *fails };
            let conditions = all.iter().map(condition).collect();
            let (exit, reasons) =
                Duel { conditions, ..duel(vec![compared("rate", 0., 0., false)]) }.judge();
            (exit.code(), reasons.len())
        };
        assert_eq!(exit(&[Fails::No]), (0, 0));
        assert_eq!(exit(&[Fails::No, Fails::Perhaps]), (5, 1));
        assert_eq!(exit(&[Fails::Yes, Fails::Perhaps]), (1, 1));
        assert_eq!(exit(&[Fails::Unknown, Fails::Yes]), (1, 2));
    }
}
