//! Conditions of the scenario that end a run (`abort_when`) or pause its growth (`hold_when`).

use std::collections::BTreeSet;

use throng_base::units::format_duration;
use throng_metrics::{AbortRule, Gauges, Interval};
use throng_results::terminal::figure_text;
use throng_results::{AbortRules, Event, Ruling, RunInfo, StopBy};

use super::Desk;
use crate::control::command::Command;
use crate::wire::Order;

/// The conditions of `hold_when`.
pub(super) struct Holds {
    rules: AbortRules,
    /// Texts of the conditions that are true.
    true_now: BTreeSet<String>,
    /// Growth was paused by a condition, not by the operator.
    has_paused: bool,
}

impl Holds {
    pub(super) fn new(rules: &[AbortRule], info: &RunInfo) -> Holds {
        let rules = AbortRules::new(rules, info);
        Holds { rules, true_now: BTreeSet::new(), has_paused: false }
    }

    pub(super) fn add(&mut self, interval: &Interval, gauges: &Gauges) -> Vec<Ruling> {
        self.rules.add(interval, gauges)
    }
}

fn shown(rule: &AbortRule, figure: f64) -> String {
    figure_text(rule.condition.unit(), figure)
}

/// Records readings of monitors, and evaluates the conditions on them.
pub(super) fn read(desk: &mut Desk<'_>, read: &[Event]) {
    for event in read {
        desk.event(event);
        let now = desk.posts.clock.now();
        desk.events.iter_mut().for_each(|events| events.read(event, now));
        let (rulings, held) = (desk.rules.read(event), desk.holds.rules.read(event));
        judge(desk, rulings);
        hold(desk, held);
    }
}

/// Ends the run if a rule requires it.
pub(super) fn judge(desk: &mut Desk<'_>, rulings: Vec<Ruling>) {
    for ruling in rulings {
        if desk.stops > 0 {
            return;
        }
        let at_ns = desk.posts.clock.now().as_nanos();
        let notice = match &ruling {
            Ruling::Warned { rule, figure, left } => say!(
                "`{}` is true (value: {}); the run ends in {} unless this changes",
                rule.condition.text,
                shown(rule, *figure),
                format_duration(*left)
            ),
            Ruling::Cleared { rule } => {
                say!("`{}` is no longer true: the run continues", rule.condition.text)
            }
            Ruling::Aborted { rule, figure } => {
                desk.stops = 1;
                let reason = say!(
                    "the condition `abort_when: {}` was true (value: {})",
                    rule.condition.text,
                    shown(rule, *figure)
                );
                desk.say(say!("the run ends: {reason}", reason = &reason));
                desk.event(&Event::Stopped { at_ns, reason, by: StopBy::Rule });
                return desk.send_order(Order::Stop);
            }
        };
        desk.say(notice.clone());
        desk.event(&Event::Notice { at_ns, text: notice.english() });
    }
}

/// Pauses growth while a condition is true.
pub(super) fn hold(desk: &mut Desk<'_>, rulings: Vec<Ruling>) {
    for ruling in rulings {
        let notice = match &ruling {
            Ruling::Warned { .. } => continue,
            Ruling::Aborted { rule, figure } => {
                if !desk.holds.true_now.insert(rule.condition.text.clone()) {
                    continue;
                }
                let figure = shown(rule, *figure);
                say!("`hold_when: {}` is true (value: {figure})", rule.condition.text)
            }
            Ruling::Cleared { rule } => {
                if !desk.holds.true_now.remove(&rule.condition.text) {
                    continue;
                }
                say!("`hold_when: {}` is no longer true", rule.condition.text)
            }
        };
        let (at_ns, wanted) = (desk.posts.clock.now().as_nanos(), !desk.holds.true_now.is_empty());
        desk.say(notice.clone());
        desk.event(&Event::Notice { at_ns, text: notice.english() });
        let may = if wanted { !desk.steer.paused } else { desk.holds.has_paused };
        if may && desk.stops == 0 {
            desk.holds.has_paused = wanted;
            let command = if wanted { Command::Pause } else { Command::GoOn };
            desk.command(&command, None);
        }
    }
}
