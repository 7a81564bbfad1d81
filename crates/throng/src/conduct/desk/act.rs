//! The events of a run: their own thread begins them; here they are recorded, and change the load.

use std::collections::BTreeSet;

use throng_base::{Said, Time};
use throng_program::{Action, Steering};
use throng_results::{ActionStatus, Event};

use super::Desk;
use crate::conduct::command::{Answer, Command};
use crate::conduct::events::{Events, Told};
use crate::conduct::wire::{Change, Order};

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
            Told::Amend(number) => {
                let done = self.amend(number);
                self.events.iter().for_each(|events| events.amended(number, done.clone()));
            }
        }
    }

    /// Records it, here and for a desk that takes over, and says what a person has to know.
    fn happened(&mut self, event: &Event) {
        let event = event.masked(&self.conduct.program.secrets);
        self.order(Order::Record { event: Box::new(event.clone()) });
        if let Some(text) = sentence(&event) {
            self.say(text);
        }
        self.event(&event);
    }

    fn amend(&mut self, number: u16) -> Result<Said, Said> {
        let program = &self.conduct.program;
        let action = program.events.get(usize::from(number)).map(|event| event.action.clone());
        let Some(Action::Amend { load, change }) = action else { return Ok(Said::default()) };
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
