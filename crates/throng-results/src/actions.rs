//! Events of the scenario and marks of the operator, and what they changed.

use throng_base::{Said, say};
use throng_why::{Effect, Happened};

use crate::event::{ActionStatus, Event};

/// Maximum number of actions kept; the run directory has all.
pub const ACTIONS_MAX: usize = 200;
/// The recorded action of a mark.
pub(crate) const MARK: &str = "mark";

/// An event of the scenario, or a mark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionRow {
    /// Number in the scenario; `None` for a mark that the operator set.
    pub number: Option<u16>,
    pub name: String,
    /// `run`, `http`, `mark`, `amend`.
    pub action: String,
    pub due_ns: Option<u64>,
    /// When it started; `None` if it never did.
    pub at_ns: Option<u64>,
    pub status: ActionStatus,
    pub took_ns: Option<u64>,
    pub detail: Said,
    pub output: String,
    /// `None` if the seconds of the run are unknown or the action never started.
    pub effect: Option<Effect>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Actions {
    rows: Vec<ActionRow>,
}

impl Actions {
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::ActionBegun { at_ns, number, name, action, due_ns } => {
                let Some(row) = self.row(*number, name, action) else { return };
                (row.at_ns, row.due_ns) = (Some(*at_ns), Some(*due_ns));
            }
            Event::ActionEnded {
                number, name, action, status, took_ns, detail, output, ..
            } => {
                let Some(row) = self.row(*number, name, action) else { return };
                row.status = *status;
                row.took_ns = row.at_ns.map(|_| *took_ns);
                (row.detail, row.output) = (detail.clone(), output.clone());
            }
            Event::Marked { at_ns, name } if self.rows.len() < ACTIONS_MAX => {
                self.rows.push(ActionRow {
                    name: name.clone(),
                    action: MARK.into(),
                    at_ns: Some(*at_ns),
                    status: ActionStatus::Done,
                    took_ns: Some(0),
                    ..ActionRow::default()
                });
            }
            _ => {}
        }
    }

    fn row(&mut self, number: u16, name: &str, action: &str) -> Option<&mut ActionRow> {
        let found = self.rows.iter().position(|row| row.number == Some(number));
        if found.is_none() && self.rows.len() < ACTIONS_MAX {
            let (number, name, action) = (Some(number), name.to_string(), action.to_string());
            self.rows.push(ActionRow { number, name, action, ..ActionRow::default() });
            return self.rows.last_mut();
        }
        found.map(|at| &mut self.rows[at])
    }

    /// Sorted by time; actions that never started are last.
    pub(crate) fn rows(&mut self) -> Vec<ActionRow> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by_key(|row| row.at_ns.unwrap_or(u64::MAX));
        rows
    }
}

impl ActionRow {
    /// When it happened, and the load changes before and after it, in seconds of the run.
    pub(crate) fn happened(&self, changes_s: &[f64], lasted_s: f64) -> Option<Happened> {
        let begun_s = self.at_ns? as f64 / 1e9;
        let ended_s = begun_s + self.took_ns.unwrap_or(0) as f64 / 1e9;
        // Its own load change is its effect, not a boundary.
        let own_s = if self.action == "amend" { begun_s + OWN_CHANGE_S } else { begun_s };
        let before = changes_s.iter().copied().filter(|at| *at <= begun_s);
        let behind = changes_s.iter().copied().filter(|at| *at > own_s);
        Some(Happened {
            begun_s,
            ended_s,
            same_from_s: before.fold(0.0, f64::max),
            same_to_s: behind.fold(lasted_s, f64::min),
        })
    }

    /// The message to the operator if the action failed.
    pub(crate) fn trouble(&self) -> Option<Said> {
        let name = &self.name;
        let detail = self.detail.clone().cleaned();
        Some(match self.status {
            ActionStatus::Done => return None,
            ActionStatus::Unknown => say!("the outcome of the event `{name}` is not recorded"),
            ActionStatus::Failed => say!("the event `{name}` failed: {detail}"),
            ActionStatus::TimedOut => say!("the event `{name}` timed out: {detail}"),
            ActionStatus::Stopped => say!("the run ended before the event `{name}` was complete"),
            ActionStatus::NotReached => say!("the event `{name}` did not happen: {detail}"),
            ActionStatus::Missed => say!("the event `{name}` was missed: {detail}"),
        })
    }

    /// Describes what changed; `None` if nothing did.
    pub fn paragraph(&self) -> Option<Said> {
        let told = self.effect.as_ref().map(Effect::told).unwrap_or_default();
        told.into_iter().reduce(|before, next| say!("{before}; {next}"))
    }
}

/// A load change of an event takes effect within this time.
const OWN_CHANGE_S: f64 = 3.0;
