//! The events of a scenario, and their times if they are known.

use std::fmt::Write as _;
use std::time::Duration;

use throng_base::clean;
use throng_base::columns::left;
use throng_base::units::write_duration;
use throng_program::{Action, Change, Steering, TimedEvent, Trigger};

use unicode_width::UnicodeWidthStr as _;

use super::{ROWS_SHOWN_MAX, Report};

impl Report<'_> {
    pub(super) fn events(&self) -> String {
        let events = &self.program.events;
        if events.is_empty() {
            return String::new();
        }
        let mut out = format!("{}\n", self.style.bold(&tell!("events")));
        let shown = events.iter().take(ROWS_SHOWN_MAX);
        let rows: Vec<[String; 3]> = shown
            .map(|event| {
                let what = self.what(event);
                [self.when(event), clean(&event.name), self.told(&what)]
            })
            .collect();
        let width = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
        let (first, second) = (width(0), width(1));
        for [when, name, what] in &rows {
            let what = self.style.dim(what);
            let _ = writeln!(out, "  {}  {}  {what}", left(when, first), left(name, second));
        }
        self.more(&mut out, events.len());
        if events.iter().any(|event| event.command().is_some()) {
            let text = tell!("commands are executed only with `--allow-commands`");
            let _ = writeln!(out, "  {}", self.style.dim(&text));
        }
        out
    }

    fn when(&self, event: &TimedEvent) -> String {
        let plus = |offset: &Duration| match offset.is_zero() {
            true => String::new(),
            false => format!(" + {}", write_duration(*offset)),
        };
        match &event.trigger {
            Trigger::At(at) => write_duration(*at),
            Trigger::Phase { phase, offset } => {
                let name = self.program.phases().nth(usize::from(*phase));
                let name = name.map_or_else(String::new, |phase| clean(&phase.name));
                let planned = self.planned.get(usize::from(*phase));
                match planned.filter(|it| it.begin_is_known) {
                    Some(it) => {
                        let at = write_duration(it.begin.saturating_add(*offset));
                        format!("{at} ({name}{})", plus(offset))
                    }
                    None => format!("{name}{}", plus(offset)),
                }
            }
            Trigger::After { event, offset } => {
                let name = clean(&self.program.events[usize::from(*event)].name);
                tell!("after {name}{}", plus(offset))
            }
            Trigger::When(rule) => tell!("when {}", clean(&rule.condition.text)),
        }
    }

    fn what(&self, event: &TimedEvent) -> String {
        match &event.action {
            Action::Run { timeout, .. } => {
                let command = event.command().unwrap_or_default();
                let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
                tell!("run: {command} (timeout {})", write_duration(*timeout))
            }
            Action::Http(call) => {
                let timeout = write_duration(call.timeout);
                tell!("http: {} {} (timeout {timeout})", call.method, call.url)
            }
            Action::Mark => tell!("mark"),
            Action::Audit(number) => {
                let name = &self.program.audits[usize::from(*number)].name;
                tell!("audit: {}", clean(name))
            }
            Action::Amend { load, change } => {
                let change = match change {
                    Steering::Change(Change::Times(times)) => {
                        format!("× {}", (times * 1e3).round() / 1e3)
                    }
                    Steering::Change(Change::Users(users)) => format!("users {users}"),
                    Steering::Change(Change::Rate(rate)) => format!("rate {rate}/s"),
                    Steering::Change(Change::EndPhase) => "end-phase".to_string(),
                    Steering::Pause => "pause".to_string(),
                    Steering::GoOn => "go-on".to_string(),
                };
                let load = &self.program.loads[usize::from(*load)].name;
                match load.is_empty() {
                    true => tell!("amend: {change}"),
                    false => tell!("amend load {}: {change}", clean(load)),
                }
            }
        }
    }
}
