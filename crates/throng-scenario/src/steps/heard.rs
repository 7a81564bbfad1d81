//! Background tasks: `on`, for messages from the target, and `every`, at intervals.

use std::sync::Arc;

use throng_base::Said;
use throng_program::{
    Block, Composed, Content, Every, Failing, Handler, Message, Save, Segment, Send, Statement,
    StepKind, TaskBody, Text, Which,
};
use throng_protocol::framed::{MessageId, Protocol};

use crate::ast::{self, Items, Steps};
use crate::message::answer::Answer;
use crate::message::checks::read_checks;
use crate::message::save::read_saves;
use crate::reach::Reach;
use crate::read::Context;
use crate::read::template::Escape;
use crate::scope::{Heard, Kinds};
use crate::step::failing::{read_loss, usual_timeout};
use crate::step::via::Via;
use crate::steps::Coder;
use crate::steps::background::Inside;
use crate::steps::conditions::{read_conditions, read_pattern};
use crate::syntax::{Key, Place};

/// Maximum number of handlers of a user at a time.
const HANDLERS_MAX: usize = 100;

/// Maximum number of periodic tasks at a time.
const EVERY_MAX: usize = 16;

const ON_HELP: Said = say!("write `on: [{{message: {{json: {{cmd: msg}}}}, name: broadcast}}]`");

const EVERY_HELP: Said = say!("write `every: [{{time: 5m, do: [{{send: {{text: report}}}}]}}]`");

/// A handler with the link whose messages it handles.
pub(super) type Linked = (u8, Handler);

impl<'c, 'n> Coder<'c, 'n> {
    /// The background tasks of a session, and the acknowledgements that protocols require.
    pub(super) fn read_beside(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::Session<'n>,
        key: &Key,
    ) {
        if let (Some(items), Some(said)) = (&fields.on.content, fields.on.key())
            && self.links.has_lasting(cx, said)
        {
            for (link, handler) in self.handlers(cx, items, self.links.only_lasting()) {
                self.links.opened(link).handlers.push(handler);
            }
        }
        if let (Some(items), Some(said)) = (&fields.every.content, fields.every.key())
            && let Some(via) = self.links.link_of_session(cx, said)
        {
            let every = self.every(cx, items);
            self.links.opened(via.link).every.extend(every);
        }
        let lasting: Vec<u8> = self.links.lasting().map(|(number, _)| number).collect();
        for number in lasting {
            let via = self.links.via(usize::from(number));
            let handlers = self.acknowledgements(cx, via, key.place);
            self.links.opened(number).handlers.extend(handlers);
        }
    }

    /// The settings that a `connect` has for its connection.
    pub(super) fn read_settings(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::Connect<'n>,
        via: Via<'c>,
    ) {
        self.links.read_heartbeat(cx, fields.heartbeat, via, self.rows);
        if !self.links.settle(via, fields.place) {
            return;
        }
        if let Some(items) = &fields.on.content {
            let handlers = self.handlers(cx, items, Some(via.link));
            for (link, handler) in handlers {
                self.links.opened(link).handlers.push(handler);
            }
        }
        if let Some(items) = &fields.every.content {
            let every = self.every(cx, items);
            self.links.opened(via.link).every.extend(every);
        }
    }

    /// Reads `on:`. Handlers without `from` use the connection `usual`.
    pub(super) fn handlers(
        &mut self,
        cx: &mut Context<'_>,
        items: &Items<ast::Handler<'n>>,
        usual: Option<u8>,
    ) -> Vec<Linked> {
        if items.list.is_empty() {
            cx.empty(items.place, say!("there is no message to listen for"), ON_HELP);
        }
        if let Some(item) = items.list.get(HANDLERS_MAX) {
            let message = say!("there are more than {HANDLERS_MAX} messages to listen for");
            let help = say!(
                "`message: any` counts all messages that no other item \
                                     matches"
            );
            cx.too_many(item.place, message, help);
        }
        let mut handlers: Vec<Linked> = Vec::new();
        let mut take_all: Vec<u8> = Vec::new();
        for fields in items.list.iter().take(HANDLERS_MAX) {
            let Some(via) = self.from(cx, fields, usual) else { continue };
            let one = cx.speaking(&via.reach.spoken, |cx| self.handler(cx, fields, via));
            let Some(one) = one else { continue };
            if take_all.contains(&via.link) {
                let message = say!("an earlier item matches every message");
                let label = say!("no message ever reaches this item");
                let help = say!("write `message: any` last");
                cx.warn("never-runs", fields.place, message, label, help);
            }
            if one.iter().any(|handler| handler.message.is_any()) {
                take_all.push(via.link);
            }
            handlers.extend(one.into_iter().map(|handler| (via.link, handler)));
        }
        handlers
    }

    /// The connection whose messages a handler gets.
    fn from(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::Handler<'_>,
        usual: Option<u8>,
    ) -> Option<Via<'c>> {
        let link = match (fields.from.node(), usual) {
            (Some(node), _) => self.links.link_called(cx, node, "on")?,
            (None, Some(usual)) => usual,
            (None, None) => return self.links.which(cx, "from", fields.place),
        };
        Some(self.links.via(usize::from(link)))
    }

    /// One item of `on`; it becomes several handlers if some of its messages are acknowledged.
    fn handler(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::Handler<'n>,
        via: Via<'c>,
    ) -> Option<Vec<Handler>> {
        let conditions = fields.need(cx, fields.message, ON_HELP);
        let reach = via.reach;
        let conditions = conditions.and_then(|node| match read_pattern(cx, reach, node) {
            Some(meant) => meant,
            None => read_conditions(cx, node),
        });
        let Some(conditions) = conditions else {
            // Its steps are still checked, without known fields.
            return None;
        };
        let kinds = reach.kinds(&conditions.which.messages);
        let answer = kinds.as_ref().map_or(Answer::Message, Answer::Fields);
        let checks = read_checks(cx, fields.check, answer);
        let saves = read_saves(cx, *fields.save, answer);
        let step = self.rows.row(cx, fields, StepKind::Message, conditions.name.as_deref())?;
        let failing = read_loss(cx, fields.on_error);
        let handler =
            Handler { step, message: conditions.which, checks, saves, body: None, failing };
        let steps = fields.r#do.content.as_ref();
        let acknowledged = acknowledged(via.reach, &handler.message);
        let mut all = Vec::new();
        for id in &acknowledged {
            let message = Which { messages: [*id].into(), ..handler.message.clone() };
            let one = Handler { message, ..handler.clone() };
            all.push(self.answering(cx, one, (*id, via), steps, fields.place));
        }
        let rest = handler.message.messages.iter().filter(|id| !acknowledged.contains(id));
        let rest: Vec<MessageId> = rest.copied().collect();
        if all.is_empty() || handler.message.messages.is_empty() || !rest.is_empty() {
            let message = Which { messages: rest.into(), ..handler.message.clone() };
            let one = Handler { message, ..handler };
            all.push(match steps {
                Some(steps) => self.with_body(cx, one, kinds, Some(steps), &|_, _| Block::new()),
                None => one,
            });
        }
        Some(all)
    }

    /// Messages that are acknowledged immediately, whatever the user does.
    pub(super) fn acknowledgements(
        &mut self,
        cx: &mut Context<'_>,
        via: Via<'c>,
        place: Place,
    ) -> Vec<Handler> {
        let mut handlers = Vec::new();
        for id in acknowledged(via.reach, &Which::default()) {
            let Some(protocol) = via.reach.declared() else { break };
            let name = protocol.info(id).name.clone();
            let Some(step) = self.rows.named(cx, StepKind::Message, &name, place) else { break };
            let message = Which { messages: [id].into(), checks: Vec::new() };
            let (checks, saves, body) = (Vec::new(), Vec::new(), None);
            let failing = Failing::default();
            let handler = Handler { step, message, checks, saves, body, failing };
            handlers.push(self.answering(cx, handler, (id, via), None, place));
        }
        handlers
    }

    /// A handler whose steps begin with the acknowledgement of the protocol.
    fn answering(
        &mut self,
        cx: &mut Context<'_>,
        handler: Handler,
        (id, via): (MessageId, Via<'c>),
        steps: Option<&Steps<'n>>,
        place: Place,
    ) -> Handler {
        let Some(protocol) = via.reach.declared() else { return handler };
        let kinds = Kinds::declared(protocol, &[id]);
        let first = |coder: &mut Self, cx: &mut Context<'_>| {
            coder.acknowledgement(cx, (protocol, via.link), id, place).into_iter().collect()
        };
        self.with_body(cx, handler, Some(kinds), steps, &first)
    }

    fn acknowledgement(
        &mut self,
        cx: &mut Context<'_>,
        (protocol, link): (&Protocol, u8),
        id: MessageId,
        place: Place,
    ) -> Option<Statement> {
        let acknowledging = protocol.acknowledgement(id)?;
        let mut leaves = Vec::with_capacity(acknowledging.leaves.len());
        for path in &acknowledging.leaves {
            let value = cx.heard_field(path, place)?;
            let segments = vec![Segment::Value { value, escape: Escape::None }];
            leaves.push(Text { segments });
        }
        let template = acknowledging.template.clone();
        let message = template.message;
        let step = self.rows.named(cx, StepKind::Send, &protocol.info(message).name, place)?;
        self.rows.speak(step, link, Some(message));
        let content = Content::Declared(Box::new(Composed { template, leaves: leaves.into() }));
        let message = Message { content, cut: None };
        let timeout = usual_timeout(cx);
        let failing = Failing::default();
        Some(Statement::Send(Arc::new(Send { step, link, message, timeout, failing })))
    }

    /// The handler with the steps for its message.
    fn with_body(
        &mut self,
        cx: &mut Context<'_>,
        handler: Handler,
        kinds: Option<Kinds>,
        steps: Option<&Steps<'n>>,
        first: &dyn Fn(&mut Self, &mut Context<'_>) -> Block,
    ) -> Handler {
        let (body, saves): (TaskBody, Vec<Save>) =
            cx.with_heard(Heard::new(kinds, cx.scope.spoken), |cx| {
                let first = first(self, cx);
                self.body(cx, steps, first, Inside::On).0
            });
        let saves = handler.saves.iter().cloned().chain(saves).collect();
        Handler { body: Some(body), saves, ..handler }
    }

    /// Reads `every:`.
    pub(super) fn every(
        &mut self,
        cx: &mut Context<'_>,
        items: &Items<ast::Every<'n>>,
    ) -> Vec<Every> {
        if items.list.is_empty() {
            cx.empty(items.place, say!("there are no background tasks"), EVERY_HELP);
        }
        if let Some(item) = items.list.get(EVERY_MAX) {
            let help = say!("put steps with the same interval into one item");
            cx.too_many(item.place, say!("there are more than {EVERY_MAX} background tasks"), help);
        }
        let mut all = Vec::new();
        for fields in items.list.iter().take(EVERY_MAX) {
            let time =
                fields.need(cx, fields.time, EVERY_HELP).and_then(|node| cx.time_limit(node));
            fields.need(cx, *fields.r#do, EVERY_HELP);
            let Some(steps) = &fields.r#do.content else { continue };
            let (body, _) = self.body(cx, Some(steps), Block::new(), Inside::Every);
            all.extend(time.map(|time| Every { time, body }));
        }
        all
    }
}

/// The selected messages that the protocol acknowledges immediately.
fn acknowledged(reach: &Reach, which: &Which) -> Vec<MessageId> {
    let Some(protocol) = reach.declared() else { return Vec::new() };
    let meant = |id: &MessageId| which.messages.is_empty() || which.messages.contains(id);
    let all = protocol.messages().map(|(id, _)| id);
    all.filter(|id| meant(id) && protocol.acknowledgement(*id).is_some()).collect()
}
