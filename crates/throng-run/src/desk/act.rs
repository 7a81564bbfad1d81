//! Records the events of a run, which their own thread starts, and applies their load changes.

use std::collections::BTreeSet;

use throng_base::{Said, Time};
use throng_program::{Action, Steering};
use throng_results::{ActionStatus, Event};

use super::Desk;
use crate::control::command::{Answer, Command};
use crate::desk::events::{Events, Told};
use crate::wire::{Change, Order};

impl Desk<'_> {
    pub(super) fn begin_events(&mut self) {
        let begun = self.past.iter().filter_map(|past| match &past.order {
            Order::Record { event } => match &**event {
                Event::ActionBegun { number, .. } => Some(*number),
                _ => None,
            },
            _ => None,
        });
        let before: (BTreeSet<u16>, Time) = (begun.collect(), self.since);
        let (program, clock) = (&self.conduct.program, &self.posts.clock);
        self.events = Events::begin(program, &self.info, clock, before);
    }

    pub(super) fn act(&mut self, told: Told) {
        match told {
            Told::Event(event) => self.happened(&event),
            Told::Do(number) => {
                if let Some(done) = self.perform(number) {
                    self.done(number, &done);
                }
            }
        }
    }

    /// Records it, here and for a desk that takes over, and says what a person has to know.
    fn happened(&mut self, event: &Event) {
        let event = event.masked(&self.conduct.program.secrets);
        self.send_order(Order::Record { event: Box::new(event.clone()) });
        if let Some(text) = sentence(&event) {
            self.say(text);
        }
        self.event(&event);
    }

    /// What came of an event that the desk was to do.
    pub(super) fn done(&self, number: u16, done: &Result<Said, Said>) {
        self.events.iter().for_each(|events| events.done(number, done.clone()));
    }

    /// None where it takes its time.
    fn perform(&mut self, number: u16) -> Option<Result<Said, Said>> {
        let event = self.conduct.program.events.get(usize::from(number))?;
        match event.action {
            Action::Amend { load, change } => Some(self.amend(load, change)),
            Action::Audit(audit)
                if self.audits.as_mut().is_some_and(|it| it.wants(audit, number)) =>
            {
                self.send_order(Order::Audit { audit, event: number });
                None
            }
            Action::Audit(audit) => {
                let audits = self.audits.as_ref();
                let is_begun = audits.is_some_and(|audits| audits.round(audit, number));
                (!is_begun).then(|| Err(say!("the audit has ended")))
            }
            Action::Run { .. } | Action::Http(_) | Action::Mark => Some(Ok(Said::default())),
        }
    }

    fn amend(&mut self, load: u16, change: Steering) -> Result<Said, Said> {
        let program = &self.conduct.program;
        let name = program.loads[usize::from(load)].name.clone();
        let command = match change {
            Steering::Times(times) => Command::Change(Change::Times(times)),
            Steering::Users(users) => Command::Change(Change::Users(users)),
            Steering::Rate(rate) => Command::Change(Change::Rate(rate)),
            Steering::EndPhase => Command::Change(Change::EndPhase),
            Steering::Pause => Command::Pause,
            Steering::GoOn => Command::GoOn,
        };
        match self.command(&command, Some(name.as_str()).filter(|name| !name.is_empty())) {
            Answer::Done(said) => Ok(said),
            Answer::Refused { message, .. } => Err(message),
            Answer::Status(_) => Ok(Said::default()),
        }
    }

    /// Ends what still runs.
    pub(super) fn end_events(&mut self) {
        let left = self.events.take().map(Events::finish).unwrap_or_default();
        left.iter().for_each(|event| self.happened(event));
    }
}

fn sentence(event: &Event) -> Option<Said> {
    Some(match event {
        Event::ActionBegun { name, .. } => say!("event: {name}"),
        Event::ActionEnded { status: ActionStatus::Done, .. } => return None,
        Event::ActionEnded { name, status, detail, .. } => {
            let (status, detail) = (status.text(), detail.clone().cleaned());
            say!("event {name}: {status}: {detail}")
        }
        _ => return None,
    })
}
