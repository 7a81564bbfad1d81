//! Warns of handlers that are slower than their messages, and of periodic tasks that take longer
//! than their interval, as far as the scenario shows it: only pauses on every path count.

use std::sync::Arc;
use std::time::Duration;

use throng_base::units::write_duration;
use throng_program::statement;
use throng_program::{
    Audience, Beat, Content, Delivery, Every, Handler, Heartbeat, Link, Message, Session,
    Statement, Stay, TaskBody,
};
use throng_protocol::framed::{MessageId, Protocol};

use crate::read::Context;
use crate::syntax::Place;

/// The steps of a handler or of a periodic task.
pub(crate) struct Body {
    /// The session that it belongs to.
    pub(super) session: u16,
    pub(super) number: u32,
    /// The minimum total pause on any path.
    pub(super) pause: Duration,
    pub(super) place: Place,
}

/// A link of a session, and how its messages are recognized.
struct Known<'a> {
    number: u16,
    session: &'a Session,
    at: u8,
    link: &'a Link,
    protocol: Option<&'a Protocol>,
    deliveries: &'a [Delivery],
    bodies: &'a [Body],
}

/// Messages with a minimum interval: of one of these kinds, or any on a connection without kinds.
struct Coming {
    kinds: Box<[MessageId]>,
    every: Duration,
}

pub(crate) fn warn_slow(
    cx: &mut Context<'_>,
    sessions: &[Session],
    deliveries: &[Delivery],
    protocols: &[Arc<Protocol>],
    bodies: &[Body],
) {
    if cx.mistakes.has_errors() || bodies.iter().all(|body| body.pause.is_zero()) {
        return;
    }
    for (number, session) in sessions.iter().enumerate() {
        for (at, link) in (0..).zip(&session.links) {
            let protocol = link.protocol.and_then(|one| protocols.get(usize::from(one)));
            let protocol = protocol.map(Arc::as_ref);
            let number = number as u16;
            let known = Known { number, session, at, link, protocol, deliveries, bodies };
            known.warn(cx);
        }
    }
}

impl Known<'_> {
    fn warn(&self, cx: &mut Context<'_>) {
        let stays = || {
            self.session.all().filter_map(|statement| match statement {
                Statement::Stay(stay) if stay.link == self.at => Some(&**stay),
                _ => None,
            })
        };
        for every in self.link.every.iter().chain(stays().flat_map(|stay| &stay.every)) {
            self.warn_overdue(cx, every);
        }
        stays().for_each(|stay| self.warn_handlers(cx, Some(stay)));
        if stays().next().is_none() {
            self.warn_handlers(cx, None);
        }
    }

    fn body(&self, of: &TaskBody) -> Option<&Body> {
        let is_it = |body: &&Body| body.session == self.number && body.number == of.number;
        self.bodies.iter().find(is_it)
    }

    fn is_overdue(&self, every: &Every) -> bool {
        self.body(&every.body).is_some_and(|body| body.pause >= every.time)
    }

    fn warn_overdue(&self, cx: &mut Context<'_>, every: &Every) {
        let Some(body) = self.body(&every.body).filter(|_| self.is_overdue(every)) else { return };
        let message = say!("these steps are due again before they complete");
        let (pause, time) = (write_duration(body.pause), write_duration(every.time));
        let label = say!("the steps pause for at least {pause}, but are due every {time}");
        let help = say!(
            "starts that are due in the meantime are skipped: shorten the pauses, or increase \
             `time`"
        );
        cx.warn("every-too-slow", body.place, message, label, help);
    }

    /// Checks the handlers of a `stay` and of the link, or of a link without a `stay`.
    fn warn_handlers(&self, cx: &mut Context<'_>, stay: Option<&Stay>) {
        let of_stay = stay.map_or(&[][..], |stay| &stay.handlers);
        let handlers: Vec<&Handler> = of_stay.iter().chain(&self.link.handlers).collect();
        let limit = stay.and_then(|stay| stay.time);
        for coming in self.coming(stay) {
            let at = self.taker(&handlers, &coming);
            let Some(body) = at.and_then(|at| self.body(at)) else { continue };
            // A single message does not delay others.
            if body.pause < coming.every || limit.is_some_and(|limit| limit <= coming.every) {
                continue;
            }
            let message = say!("messages arrive faster than this handler can process them");
            let (pause, every) = (write_duration(body.pause), write_duration(coming.every));
            let label = say!(
                "the handler pauses for at least {pause}, but a message arrives every {every}"
            );
            let help = say!("messages queue up: shorten the pauses, or reduce the message rate");
            cx.warn("handler-too-slow", body.place, message, label, help);
        }
    }

    /// The handler that is certain to get these messages.
    fn taker<'h>(&self, handlers: &[&'h Handler], coming: &Coming) -> Option<&'h TaskBody> {
        let takes = |kinds: &[MessageId], one: Option<&MessageId>| {
            kinds.is_empty() || one.is_none_or(|one| kinds.contains(one))
        };
        let kinds: Vec<Option<&MessageId>> = match coming.kinds.is_empty() {
            true => vec![None],
            false => coming.kinds.iter().map(Some).collect(),
        };
        let is_expected = |instruction: &Statement| match instruction {
            Statement::Expect(expect) if expect.link == self.at => {
                kinds.iter().any(|one| takes(&expect.message.messages, *one))
            }
            _ => false,
        };
        if self.session.all().any(is_expected) {
            return None;
        }
        let mut takers = kinds.iter().map(|one| {
            let first = handlers.iter().find(|handler| takes(&handler.message.messages, *one))?;
            first.body.as_ref().filter(|_| first.message.checks.is_empty())
        });
        let first = takers.next()??;
        let is_first = |other: Option<&TaskBody>| other.is_some_and(|it| it.number == first.number);
        takers.all(is_first).then_some(first)
    }

    /// Messages caused by what the user itself sends repeatedly.
    fn coming(&self, stay: Option<&Stay>) -> Vec<Coming> {
        let of_stay = stay.map_or(&[][..], |stay| &stay.every);
        let all = self.session.links.iter().flat_map(|link| &link.every).chain(of_stay);
        let mut coming = Vec::new();
        for every in all.filter(|every| !self.is_overdue(every)) {
            self.said(every, &mut coming);
        }
        let own = stay.and_then(|stay| stay.heartbeat.as_ref());
        coming.extend(own.or(self.link.heartbeat.as_ref()).and_then(|beat| self.answer(beat)));
        coming
    }

    fn said(&self, every: &Every, coming: &mut Vec<Coming>) {
        let mut all: Vec<Box<[MessageId]>> = Vec::new();
        for statement in surely_done(&every.body.steps) {
            let (step, answered_by) = match statement {
                Statement::Send(send) if send.link == self.at => {
                    (send.step, self.answered_by(&send.message))
                }
                // The response of a request goes only to the request.
                Statement::Request(request) if request.link == self.at => (request.step, None),
                _ => continue,
            };
            let fans_out = |delivery: &&Delivery| {
                delivery.senders().contains(&step)
                    && delivery.protocol == self.link.protocol
                    && !delivery.without_sender
                    && !matches!(delivery.audience, Audience::To { .. })
            };
            let delivered = self.deliveries.iter().filter(fans_out);
            let delivered = delivered.map(|delivery| delivery.received.messages.clone());
            all.extend(answered_by.into_iter().chain(delivered));
        }
        coming.extend(all.iter().map(|kinds| {
            let times = all.iter().filter(|other| *other == kinds).count() as u32;
            Coming { kinds: kinds.clone(), every: every.time / times }
        }));
    }

    /// The replies to a message of the protocol, if any.
    fn answered_by(&self, message: &Message) -> Option<Box<[MessageId]>> {
        let Content::Declared(declared) = &message.content else { return None };
        let answers = &self.protocol?.info(declared.template.message).answered_by;
        (message.cut.is_none() && !answers.is_empty()).then(|| answers.clone())
    }

    /// Replies to a heartbeat that handlers get: without a protocol handlers are first, with one
    /// only if the heartbeat does not wait for a reply.
    fn answer(&self, heartbeat: &Heartbeat) -> Option<Coming> {
        let Beat::Message(message) = &heartbeat.beat else { return None };
        let kinds = match (self.protocol, heartbeat.lost_after) {
            (None, Some(_)) => Box::default(),
            (Some(_), None) => self.answered_by(message)?,
            _ => return None,
        };
        let goes_on = heartbeat.fault.stop_after.is_none();
        goes_on.then_some(Coming { kinds, every: heartbeat.every })
    }
}

/// The statements that always run, up to the first that may branch.
fn surely_done(steps: &[Statement]) -> Vec<&Statement> {
    let mut done = Vec::new();
    for statement in statement::own(steps) {
        match statement {
            Statement::While { .. }
            | Statement::If { .. }
            | Statement::Choose(_)
            | Statement::ForEach { .. }
            | Statement::Repeat { low: 0, .. }
            | Statement::Leave
            | Statement::Stop(_) => break,
            _ => done.push(statement),
        }
    }
    done
}
