//! Records the events of a run, which their own thread starts, and applies their load changes.

use throng_base::Said;
use throng_program::Action;
use throng_results::{ActionStatus, Event};

use super::Desk;
use crate::control::command::Answer;
use crate::desk::events::{EventReport, Events};
use crate::wire::Order;

impl Desk<'_> {
    pub(super) fn act(&mut self, told: EventReport) {
        match told {
            EventReport::Event(event) => self.happened(&event),
            EventReport::Do(number) => {
                if let Some(done) = self.perform(number) {
                    self.done(number, &done);
                }
            }
        }
    }

    /// Records the event, here and for a desk that takes over, and prints what the operator must
    /// know.
    fn happened(&mut self, event: &Event) {
        let event = event.masked(&self.conduct.program.secrets);
        self.send_order(Order::Record { event: Box::new(event.clone()) });
        if let Some(text) = sentence(&event) {
            self.say(text);
        }
        self.event(&event);
    }

    /// Records the result of an event that the desk executed.
    pub(super) fn done(&self, number: u16, done: &Result<Said, Said>) {
        self.events.iter().for_each(|events| events.done(number, done.clone()));
    }

    /// Returns `None` if the result arrives later.
    fn perform(&mut self, number: u16) -> Option<Result<Said, Said>> {
        let event = self.conduct.program.events.get(usize::from(number))?;
        match event.action {
            Action::Amend { load, change } => {
                let name = self.conduct.program.loads[usize::from(load)].name.clone();
                let name = Some(name.as_str()).filter(|name| !name.is_empty());
                Some(match self.command(&change.into(), name) {
                    Answer::Done(said) => Ok(said),
                    Answer::Refused { message, .. } => Err(message),
                    Answer::Status(_) => Ok(Said::default()),
                })
            }
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

    /// Stops the events that still run.
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
