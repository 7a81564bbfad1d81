//! Bodies: steps that run in background tasks, concurrently with the user's own.

pub(super) mod slow;

use std::sync::Arc;
use std::time::Duration;

use throng_program::{Block, Content, Statement, TaskBody};
use throng_protocol::framed::Protocol;

use crate::ast::{Steps, Verb};
use crate::message::declared::is_message;
use crate::read::Context;
use crate::step::via::Via;
use crate::steps::rest::Flow;
use crate::steps::{Coder, Section};
use crate::syntax::Place;

use slow::Body;

/// The owner of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    On,
    Every,
    Parallel,
}

impl Inside {
    fn word(self) -> &'static str {
        match self {
            Inside::On => "on",
            Inside::Every => "every",
            Inside::Parallel => "parallel",
        }
    }

    /// Steps that affect the user's own flow; in a branch also those whose messages go to the first
    /// waiter.
    fn forbids(self, verb: &Verb<'_>) -> bool {
        match verb {
            Verb::Connect(_)
            | Verb::Disconnect(_)
            | Verb::Secure(_)
            | Verb::Stay(_)
            | Verb::Rendezvous(_)
            | Verb::Transaction(_)
            | Verb::Parallel(_) => true,
            Verb::Next(_) => self != Inside::Parallel,
            Verb::Send(_) | Verb::Expect(_) | Verb::Slow(_) => self == Inside::Parallel,
            _ => false,
        }
    }
}

/// True if a step waits for the end of its connection.
fn waits_for_close(cx: &Context<'_>, verb: &Verb<'_>) -> bool {
    let Verb::Expect(expect) = verb else { return false };
    let close = expect.expect.node().and_then(|node| node.get("close"));
    close.is_some() && !is_message(cx, "close")
}

impl<'n> Coder<'_, 'n> {
    /// Compiles a body, which starts with the given steps, and its flow.
    pub(super) fn body(
        &mut self,
        cx: &mut Context<'_>,
        steps: Option<&Steps<'n>>,
        first: Block,
        inside: Inside,
    ) -> (TaskBody, Flow) {
        let block = std::mem::replace(&mut self.block, first);
        let outer = self.inside.replace(inside);
        let section = std::mem::replace(&mut self.section, Section::Steps);
        let number = self.bodies;
        self.bodies += 1;
        let mut flow = Flow::NOTHING;
        if let Some(steps) = steps {
            flow = self.steps(cx, steps);
            let (session, place) = (self.rows.session, steps.place);
            // If it ends early, it handles no further messages.
            let pause = if flow.ends.is_some() { Duration::ZERO } else { flow.pause };
            self.known.push(Body { session, number, pause, place });
        }
        let steps = std::mem::replace(&mut self.block, block);
        (self.inside, self.section) = (outer, section);
        (TaskBody { number, steps }, flow)
    }

    /// Checks whether the verb is valid in the body that is being compiled.
    pub(super) fn fits_inside(&mut self, cx: &mut Context<'_>, verb: &Verb<'_>) -> bool {
        let is_forbidden = |inside: &Inside| inside.forbids(verb) || waits_for_close(cx, verb);
        let Some(inside) = self.inside.filter(is_forbidden) else { return true };
        let (word, place) = (verb.word(), verb.place());
        let message = say!("`{word}` is not allowed in `{}`", inside.word());
        let error = cx.error("wrong-place", message, place);
        let (label, help) = match inside {
            Inside::Parallel => (
                say!("branches run at the same time"),
                say!(
                    "write the step before or after `parallel`; a branch can contain HTTP \
                     requests, think times, loops and `set`"
                ),
            ),
            Inside::On | Inside::Every => (
                say!("background tasks and handlers run in parallel with the user's steps"),
                say!(
                    "move it to `steps`; here, a user can send, request, expect, think, set \
                     values and leave"
                ),
            ),
        };
        cx.note(error.label(label).help(help));
        false
    }

    /// Checks whether a request is valid in the branch that is being compiled: its response must
    /// identify its request.
    pub(super) fn correlates(
        &self,
        cx: &mut Context<'_>,
        via: Via<'_>,
        asked: Option<&Statement>,
        place: Place,
    ) -> bool {
        let message = match asked {
            Some(Statement::Request(request)) => match &request.message.content {
                Content::Declared(declared) => Some(declared.template.message),
                _ => None,
            },
            _ => None,
        };
        let correlates = |protocol: &Arc<Protocol>| match message {
            Some(message) => protocol.correlation_max(message) > 0,
            None => protocol.correlates(),
        };
        if self.inside != Some(Inside::Parallel)
            || via.reach.scheme.is_none()
            || via.reach.declared().is_some_and(correlates)
        {
            return true;
        }
        let message = say!("`request` is not allowed in `parallel` here");
        let label = say!("a reply does not identify its request");
        let help = say!(
            "write the step before or after `parallel`, or declare a protocol whose messages \
             have a `seq`"
        );
        cx.report("wrong-place", place, message, label, help);
        false
    }
}
