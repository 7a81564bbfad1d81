//! The exit code of a capacity search.
//!
//! Without `--at-least`:
//! - 0: the limit was found, or the maximum load passed;
//! - 1: the lowest load failed, or the service never recovered and there is no promise;
//! - 5: there is no interval, because the generator, the budget or the user ended the search first.
//!
//! With it: 0 if the promise or the interval is not below it, 1 if the whole interval is below it,
//! and 5 otherwise.
//!
//! 5 means that the run does not answer the question, as when the generator falls behind schedule:
//! "at least L" without a limit does not tell the capacity, but it can answer `--at-least`.

use throng_base::{Exit, Said};

use super::{Basis, Capacity, EndedBy};

impl Capacity {
    /// The exit code, and the reasons if it is not 0.
    pub fn judge(&self) -> (Exit, Vec<Said>) {
        match self.at_least {
            Some(wanted) => self.judge_wanted(wanted),
            None => self.judge_search(),
        }
    }

    fn judge_search(&self) -> (Exit, Vec<Said>) {
        let is_answered = self.carries.is_some() && self.basis == Basis::Interval;
        match &self.ended_by {
            EndedBy::BaseFails(_) => (Exit::ThresholdsNotMet, vec![self.sentence()]),
            EndedBy::Max => (Exit::Success, Vec::new()),
            EndedBy::Found if self.carries.is_some() => (Exit::Success, Vec::new()),
            EndedBy::NotRecovered | EndedBy::CollapsedAgain if self.carries.is_some() => {
                (Exit::Success, Vec::new())
            }
            // The target is the cause, not the search.
            EndedBy::NotRecovered | EndedBy::CollapsedAgain => {
                (Exit::ThresholdsNotMet, vec![self.sentence()])
            }
            _ if is_answered => (Exit::Success, Vec::new()),
            _ => (Exit::ResultInvalid, vec![self.sentence()]),
        }
    }

    fn judge_wanted(&self, wanted: f64) -> (Exit, Vec<Said>) {
        let load = self.load(wanted);
        let reason = match (self.basis, self.low, self.high) {
            _ if self.is_at_least(wanted) => return (Exit::Success, Vec::new()),
            (Basis::Interval, Some(low), Some(high)) if high < wanted => {
                let (low, high) = (super::number(low), self.load(high));
                let reason = say!("carries less than {load}: the 95 % interval is {low} to {high}");
                return (Exit::ThresholdsNotMet, vec![reason]);
            }
            (Basis::Interval, Some(low), Some(high)) => {
                let (low, high) = (super::number(low), self.load(high));
                say!("unclear whether it carries {load}: the 95 % interval is {low} to {high}")
            }
            _ if self.fails_below(wanted) => {
                let reason = say!("carries less than {load}: {}", self.sentence());
                return (Exit::ThresholdsNotMet, vec![reason]);
            }
            _ => say!("unclear whether it carries {load}: there is no 95 % interval"),
        };
        (Exit::ResultInvalid, vec![reason])
    }

    /// An unconfirmed lower end does not count, and neither does that of a bracket.
    fn is_at_least(&self, wanted: f64) -> bool {
        let is_known = matches!(self.basis, Basis::Interval | Basis::AtLeast)
            && self.ended_by != EndedBy::NotConfirmed;
        self.carries.is_some_and(|load| load >= wanted)
            || is_known && self.low.is_some_and(|low| low >= wanted)
    }

    /// Even the lowest load fails, and it is not above the required one.
    fn fails_below(&self, wanted: f64) -> bool {
        let is_base = matches!(self.ended_by, EndedBy::BaseFails(_));
        is_base && self.lowest_tried().is_some_and(|load| load <= wanted)
    }
}
