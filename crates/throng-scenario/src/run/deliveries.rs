//! Deliveries: messages that must reach other users, `deliveries`.

use std::collections::HashMap;
use std::time::Duration;

use throng_base::{Said, StepId};
use throng_expression::Expression;
use throng_program::{
    Audience, Begins, Content, Delivery, Extractor, Mark, Message, Session, Statement, StepInfo,
    StepKind, Which,
};
use throng_protocol::framed::{MessageId, Protocol};
use throng_protocol::protobuf::{MessageType, MethodId};

use crate::ast::{self, Field};
use crate::keys;
use crate::message::checks::json_path_of;
use crate::message::declared::read_pattern;
use crate::message::fields::field_extractor;
use crate::message::json::read_path;
use crate::message::matchers::read_extractor;
use crate::reach::Reaches;
use crate::read::Context;
use crate::scope::{Kinds, SessionNames, Spoken};
use crate::step::rows::Speech;
use crate::steps::{Compiler, read_conditions, read_reply_conditions};
use crate::syntax::{Key, Kind, Node};
use crate::words::shorten;

/// Maximum number of rows of deliveries.
const DELIVERIES_MAX: usize = 16;

/// Maximum number of saved values that audiences use.
const SAVED_MAX: usize = 64;

const LATE_AFTER: Duration = Duration::from_secs(1);
const LOST_AFTER: Duration = Duration::from_secs(10);

const HELP: Said = say!(
    "write `deliveries: {{talk: {{sent: say, received: said, match: id, audience: everyone}}}}`"
);

const BEGINS_HELP: Said = say!(
    "write `deliveries: {{gone: {{begins: disconnect, id: \"${{user.id}}\", received: left, match: \
     user}}}}`"
);

const MATCH_HELP: Said = say!(
    "write `match: id`, `match: {{sent: id, received: message_id}}` or \
                          `match: {{regex: 'id=(\\w+)'}}`"
);

const MARK_HELP: Said =
    say!("write `{{regex: 'id=(\\w+)'}}` or `{{prefix: '42', json: '[1].id'}}`");

const AUDIENCE_HELP: Said = say!(
    "write `audience: everyone`, `audience: {{same: \"${{saved.room}}\"}}` \
                             or `audience: {{to: \"${{saved.friend}}\", is: \"${{user.id}}\"}}`"
);

/// The saved values that audiences use: they have the same slot in every session.
pub(crate) fn saved_names(ledger: Option<&Node>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut texts = Vec::new();
    if let Some(Node { kind: Kind::Map(rows), .. }) = ledger {
        for (_, row) in rows {
            let Kind::Map(fields) = &row.kind else { continue };
            let audience =
                fields.iter().filter(|(key, _)| matches!(key.text.as_str(), "audience" | "id"));
            audience.for_each(|(_, node)| texts_in(node, &mut texts));
        }
    }
    for text in texts {
        for (at, found) in text.match_indices("saved.") {
            let rest = &text[at + found.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            let is_new = !name.is_empty() && !names.iter().any(|known| known == name);
            if is_new && names.len() < SAVED_MAX {
                names.push(name.to_string());
            }
        }
    }
    names
}

fn texts_in<'n>(node: &'n Node, out: &mut Vec<&'n str>) {
    match &node.kind {
        Kind::Scalar { text, .. } => out.push(text),
        Kind::Map(entries) => {
            for (_, value) in entries {
                if let Kind::Scalar { text, .. } = &value.kind {
                    out.push(text);
                }
            }
        }
        Kind::List(_) => {}
    }
}

pub(crate) fn read_deliveries(
    cx: &mut Context<'_>,
    node: &Node,
    reaches: &Reaches,
    compiler: &mut Compiler<'_, '_>,
    sessions: &[Session],
) -> Vec<Delivery> {
    let entries =
        cx.filled_map(node, say!("a map of deliveries"), say!("there are no deliveries"), HELP);
    if let Some((key, _)) = entries.get(DELIVERIES_MAX) {
        let help =
            say!("declare one delivery for all messages of a kind, regardless of the sender");
        cx.too_many(key.place, say!("there are more than {DELIVERIES_MAX} deliveries"), help);
    }
    let mut senders = HashMap::new();
    let mut all = Vec::new();
    for (key, value) in entries.into_iter().take(DELIVERIES_MAX) {
        let mut reader = DeliveriesReader {
            cx,
            reaches,
            sessions,
            spoken: &compiler.rows.spoken,
            steps: &compiler.rows.steps,
        };
        let Some(delivery) = reader.read(value) else { continue };
        let step = compiler.rows.named(cx, StepKind::Delivery, &key.text, key.place);
        for sender in delivery.senders() {
            if let Some(first) = senders.insert(*sender, key.text.clone()) {
                let name = shorten(&compiler.rows.steps[sender.index()].name);
                let message = say!("`{name}` is in two deliveries");
                let label = say!("the delivery `{}` already contains this step", shorten(&first));
                let help = say!("give the steps of one of the two deliveries a different `name`");
                cx.report("conflicting-keys", key.place, message, label, help);
            }
        }
        all.extend(step.map(|step| Delivery { step, ..delivery }));
    }
    all
}

/// The messages that a delivery sends.
struct Sent {
    steps: Vec<StepId>,
    /// Their possible kinds, if the fields are known.
    kinds: Option<Kinds>,
    protocol: Option<u16>,
    /// Replies on streaming calls, if they are sent on one.
    replies: Option<Kinds>,
}

/// The messages that a delivery receives.
struct Received {
    which: Which,
    protocol: Option<u16>,
    /// Its possible kinds on a streaming call.
    replies: Option<Kinds>,
}

struct DeliveriesReader<'r, 'a> {
    cx: &'r mut Context<'a>,
    reaches: &'r Reaches,
    sessions: &'r [Session],
    spoken: &'r [Speech],
    steps: &'r [StepInfo],
}

impl DeliveriesReader<'_, '_> {
    fn read(&mut self, node: &Node) -> Option<Delivery> {
        if !matches!(node.kind, Kind::Map(_)) {
            return self.cx.wrong_type(node, say!("a delivery"), HELP);
        }
        let fields = ast::Delivery::read(self.cx, node)?;
        ast::one_of(self.cx, &[fields.sent, fields.begins]);
        if fields.begins.is_there() {
            return self.read_departure(&fields);
        }
        self.only_with_begins(&fields);
        let sent = fields.need(self.cx, fields.sent, HELP).and_then(|node| self.sent(node));
        let received = fields.need(self.cx, fields.received, HELP);
        let received = received.and_then(|node| self.received(node, sent.as_ref()));
        let audience = self.audience_of(&fields);
        let without_sender =
            fields.without_sender.node().map_or(Some(false), |node| self.cx.bool(node));
        let times = self.times(&fields);
        let matching = fields.need(self.cx, fields.r#match, HELP);
        let (sent, Received { which: received, protocol, replies }) = (sent?, received?);
        let kinds = self.declared_kinds(protocol, &received).or(replies);
        let (sent_id, received_id) = self.matching(matching?, &sent, kinds.as_ref())?;
        let stamp = self.stamp(&fields, kinds.as_ref())?;
        let (late_after, lost_after) = times?;
        Some(Delivery {
            step: StepId(0),
            begins: Begins::Sent { steps: sent.steps.into(), id: sent_id },
            protocol,
            received,
            received_id,
            stamp,
            audience: audience?,
            without_sender: without_sender?,
            late_after,
            lost_after,
        })
    }

    /// A delivery that begins with a disconnect.
    fn read_departure(&mut self, fields: &ast::Delivery<'_>) -> Option<Delivery> {
        let begins = fields.begins.node().and_then(|node| {
            let session =
                fields.session.node().map_or(Some(None), |node| self.session(node).map(Some));
            self.cx.word(node, &[("disconnect", ())])?;
            session
        });
        let id = fields.need(self.cx, fields.id, BEGINS_HELP);
        let id = id.and_then(|node| self.membership(node));
        let received = fields.need(self.cx, fields.received, BEGINS_HELP);
        let received = received.and_then(|node| self.received(node, None));
        let audience = self.audience_of(fields);
        if let Some(key) = fields.without_sender.key() {
            let message = say!("`begins` and `without_sender` cannot be used together");
            let help = say!("remove it: a user that has disconnected receives nothing");
            self.cx.report("conflicting-keys", key.place, message, say!("has no effect"), help);
        }
        let times = self.times(fields);
        let matching = fields.need(self.cx, fields.r#match, BEGINS_HELP);
        let Received { which: received, protocol, .. } = received?;
        let kinds = self.declared_kinds(protocol, &received);
        let received_id = self.mark(matching?, kinds.as_ref())?;
        let stamp = self.stamp(fields, kinds.as_ref())?;
        let (late_after, lost_after) = times?;
        Some(Delivery {
            step: StepId(0),
            begins: Begins::Disconnect { session: begins?, id: Box::new(id?) },
            protocol,
            received,
            received_id,
            stamp,
            audience: audience?,
            without_sender: false,
            late_after,
            lost_after,
        })
    }

    /// Keys that require a disconnect.
    fn only_with_begins(&mut self, fields: &ast::Delivery<'_>) {
        for field in [fields.session, fields.id] {
            let Some(key) = field.key() else { continue };
            let message = say!("`{}` requires `begins`", key.text);
            self.cx.report("missing-key", key.place, message, say!("has no effect"), BEGINS_HELP);
        }
    }

    /// The session whose users disconnect, by its number. Its users need a long-lived connection.
    fn session(&mut self, node: &Node) -> Option<u16> {
        let name = self.cx.text(node, say!("the name of a session"))?;
        let names = || self.sessions.iter().map(|session| session.name.as_str());
        let Some(number) = names().position(|known| known == name) else {
            let message = say!("there is no session `{}`", shorten(&name));
            let (label, none) = (say!("unknown session"), Said::default());
            let names = (name.as_str(), names());
            return self.cx.unknown("unknown-name", node.place, message, names, label, none);
        };
        let is_open = |one: &Statement| matches!(one, Statement::Connect(_));
        if !self.sessions[number].all().any(is_open) && !self.cx.mistakes.has_errors() {
            let message = say!("users of `{}` have no connection that stays open", shorten(&name));
            let help = say!("add a `connect` step to the session, or name another session");
            return self.cx.bad_value(node, message, help);
        }
        u16::try_from(number).ok()
    }

    fn audience_of(&mut self, fields: &ast::Delivery<'_>) -> Option<Audience> {
        fields.audience.node().map_or(Some(Audience::Everyone), |node| self.audience(node))
    }

    fn declared_kinds(&self, protocol: Option<u16>, received: &Which) -> Option<Kinds> {
        let protocol = self.reaches.protocols.get(usize::from(protocol?))?;
        Some(Kinds::declared(protocol, &received.messages))
    }

    fn times(&mut self, fields: &ast::Delivery<'_>) -> Option<(Duration, Duration)> {
        let lost_after =
            fields.lost_after.node().map_or(Some(LOST_AFTER), |node| self.cx.time_limit(node))?;
        let late_after = match fields.late_after.node() {
            Some(node) => self.cx.time_limit(node)?,
            None => LATE_AFTER.min(lost_after),
        };
        if late_after > lost_after {
            let node = fields.late_after.node().or(fields.lost_after.node())?;
            let message = say!("`late_after` cannot be longer than `lost_after`");
            let help = say!("write a duration that is not longer than `lost_after`");
            return self.cx.bad_value(node, message, help);
        }
        Some((late_after, lost_after))
    }

    /// The sending steps: those of a message, or those with a name.
    fn sent(&mut self, node: &Node) -> Option<Sent> {
        let name = self.cx.text(node, say!("a message or the name of a step"))?;
        let protocol_of = |speech: &Speech| {
            let session = self.sessions.get(usize::from(speech.session))?;
            let number = session.links.get(usize::from(speech.link))?.protocol?;
            Some((number, self.reaches.protocols.get(usize::from(number))?))
        };
        let says = |speech: &&Speech| {
            let known = speech.message.zip(protocol_of(speech));
            known.is_some_and(|(id, (_, protocol))| protocol.info(id).name == name)
        };
        let mut found: Vec<&Speech> = self.spoken.iter().filter(says).collect();
        if found.is_empty() {
            let is_named = |speech: &&Speech| self.steps[speech.step.index()].name == name;
            found = self.spoken.iter().filter(is_named).collect();
        }
        let Some(first) = found.first() else { return self.nobody_sends(node, &name) };
        let protocol = protocol_of(first);
        let mut ids: Vec<MessageId> = found.iter().filter_map(|speech| speech.message).collect();
        ids.sort_unstable();
        ids.dedup();
        let proto = self.proto_of(first);
        let same = |speech: &&Speech| {
            self.proto_of(speech) == proto
                && protocol_of(speech).map(|one| one.0) == protocol.map(|one| one.0)
                && speech.message.is_some() == first.message.is_some()
        };
        if !found.iter().all(same) {
            let message = say!("`{}` is sent over several protocols", shorten(&name));
            let label = say!("several steps match");
            let help =
                say!("give one session's steps a `name` that is unique, and write that name here");
            return self.cx.refuse("bad-value", node.place, message, label, help);
        }
        let mut steps: Vec<StepId> = found.iter().map(|speech| speech.step).collect();
        steps.sort_unstable();
        steps.dedup();
        let declared = protocol.filter(|_| !ids.is_empty());
        let kinds = match (declared, proto) {
            (Some((_, protocol)), _) => Some(Kinds::declared(protocol, &ids)),
            (None, Some(message)) => self.of_schema(message),
            (None, None) => None,
        };
        let replies = proto.and_then(|_| self.replies_to(first));
        Some(Sent { steps, kinds, protocol: protocol.map(|one| one.0), replies })
    }

    fn of_schema(&self, message: MessageType) -> Option<Kinds> {
        let schema = self.cx.descriptors.schema()?.clone();
        Some(Kinds::Proto { schema, message })
    }

    /// The type of the sent message, if it is from a `.proto` file.
    fn proto_of(&self, speech: &Speech) -> Option<MessageType> {
        let session = self.sessions.get(usize::from(speech.session))?;
        let is_this =
            |one: &&Statement| one.step() == Some(speech.step) && one.link() == Some(speech.link);
        let of_message = |message: &Message| match &message.content {
            Content::Proto(message) => Some(message.template.message()),
            _ => None,
        };
        session.all().filter(is_this).find_map(|one| match one {
            Statement::Send(send) => of_message(&send.message),
            Statement::Request(request) => of_message(&request.message),
            Statement::Call(call) => {
                let schema = self.cx.descriptors.schema()?;
                Some(schema.method(call.opened.method).input)
            }
            _ => None,
        })
    }

    /// The messages received on streaming calls: on that of the sender, otherwise on those of the
    /// only method.
    fn replies_to(&self, speech: &Speech) -> Option<Kinds> {
        let methods = |session: &Session, link: Option<u8>| {
            let open = session.all().filter_map(|one| match one {
                Statement::Connect(one) if link.is_none_or(|link| link == one.link) => {
                    one.options.as_ref()?.call().map(|call| call.method)
                }
                _ => None,
            });
            open.collect::<Vec<MethodId>>()
        };
        let session = self.sessions.get(usize::from(speech.session))?;
        let mut all = methods(session, Some(speech.link));
        if all.is_empty() {
            all = self.sessions.iter().flat_map(|session| methods(session, None)).collect();
        }
        let only = all.first().copied().filter(|first| all.iter().all(|one| one == first))?;
        let schema = self.cx.descriptors.schema()?;
        self.of_schema(schema.method(only).output)
    }

    fn nobody_sends<T>(&mut self, node: &Node, name: &str) -> Option<T> {
        // An earlier mistake may have hidden its steps.
        if self.cx.mistakes.has_errors() {
            return None;
        }
        let message = say!("no step sends `{}`", shorten(name));
        let mut names: Vec<&str> = Vec::new();
        for speech in self.spoken {
            let step = self.steps[speech.step.index()].name.as_str();
            if !names.contains(&step) {
                names.push(step);
            }
        }
        let none = say!("add a step that sends it: `- send: {{text: hello}}`");
        let names = (name, names.into_iter());
        self.cx.unknown("unknown-name", node.place, message, names, say!("never sent"), none)
    }

    /// The messages that receivers get, and their protocol: that of the senders if it has the
    /// message.
    fn received(&mut self, node: &Node, sent: Option<&Sent>) -> Option<Received> {
        if let Some(replies) = sent.and_then(|sent| sent.replies.clone()) {
            let which = read_reply_conditions(self.cx, &replies, node)?.which;
            return Some(Received { which, protocol: None, replies: Some(replies) });
        }
        let declared =
            |which, number| Some(Received { which, protocol: Some(number), replies: None });
        let own = sent.and_then(|sent| sent.protocol);
        let mut numbers: Vec<u16> = own.into_iter().collect();
        let others = (0..self.reaches.protocols.len() as u16).filter(|one| Some(*one) != own);
        numbers.extend(others);
        let has = |protocol: &Protocol| names_in(node).all(|name| protocol.message(name).is_some());
        let named = names_in(node).next().is_some();
        for number in numbers.iter().filter(|_| named) {
            let protocol = &self.reaches.protocols[usize::from(*number)];
            if has(protocol) {
                return declared(self.pattern(node, *number)?, *number);
            }
        }
        // If no protocol has it, the first protocol reports that.
        match (own.or(numbers.first().copied()), named) {
            (Some(number), true) if !self.is_text(node) => {
                declared(self.pattern(node, number)?, number)
            }
            (_, false) if own.is_some() => declared(self.pattern(node, own?)?, own?),
            _ => {
                let spoken = self.reaches.with_headers().unwrap_or(self.cx.scope.spoken);
                let meant = self.cx.speaking(spoken, |cx| read_conditions(cx, node));
                Some(Received { which: meant?.which, protocol: None, replies: None })
            }
        }
    }

    /// True if it describes a text.
    fn is_text(&self, node: &Node) -> bool {
        let Kind::Map(entries) = &node.kind else { return false };
        entries.iter().all(|(key, _)| keys::CONDITIONS.find(&key.text).is_some())
    }

    fn pattern(&mut self, node: &Node, number: u16) -> Option<Which> {
        let protocol = self.reaches.protocols[usize::from(number)].clone();
        let spoken = Spoken::Declared(protocol.clone());
        self.cx.speaking(&spoken, |cx| match read_pattern(cx, &protocol, node) {
            Some(meant) => meant.map(|meant| meant.which),
            None => read_conditions(cx, node).map(|conditions| conditions.which),
        })
    }

    fn audience(&mut self, node: &Node) -> Option<Audience> {
        if matches!(&node.kind, Kind::Scalar { text, .. } if text == "everyone") {
            return Some(Audience::Everyone);
        }
        if !matches!(&node.kind, Kind::Map(entries) if !entries.is_empty()) {
            let message = say!("this is not a valid audience");
            return match &node.kind {
                Kind::Scalar { .. } if !node.is_null() => {
                    self.cx.bad_value(node, message, AUDIENCE_HELP)
                }
                _ => self.cx.wrong_type(node, say!("an audience"), AUDIENCE_HELP),
            };
        }
        let fields = ast::Audience::read(self.cx, node)?;
        if fields.same.is_there() {
            ast::one_of(self.cx, &[fields.same, fields.to]);
            let same = self.membership(fields.same.node()?)?;
            return Some(Audience::Same(Box::new(same)));
        }
        let to = fields.need(self.cx, fields.to, AUDIENCE_HELP);
        let is = fields.need(self.cx, fields.is, AUDIENCE_HELP);
        let (to, is) = (self.membership(to?), self.membership(is?));
        Some(Audience::To { to: Box::new(to?), is: Box::new(is?) })
    }

    /// A condition on users of all sessions.
    fn membership(&mut self, node: &Node) -> Option<Expression> {
        let mut names = SessionNames::of_ledger(&self.cx.shared_slots);
        let expression = self.cx.in_session(&mut names).expression(node, say!("a value"))?;
        let slots = expression.slots();
        let unsaved = slots.needed.iter().chain(&slots.tested).find(|slot| !self.is_saved(**slot));
        if let Some(slot) = unsaved.filter(|_| !self.cx.mistakes.has_errors()) {
            let name = self.cx.shared_slots.get(usize::from(*slot)).cloned().unwrap_or_default();
            let message = say!("no session saves `{}`", shorten(&name));
            let place = self.cx.place_of(node, &name);
            let help = say!("save it in an earlier step: `- set: {{{name}: …}}`");
            return self.cx.refuse("unknown-name", place, message, say!("never saved"), help);
        }
        Some(expression)
    }

    /// True if a step of any session saves the value.
    fn is_saved(&self, slot: u16) -> bool {
        let mut all = self.sessions.iter().flat_map(Session::all);
        all.any(|statement| statement.keeps().any(|kept| kept == slot))
    }

    fn matching(
        &mut self,
        node: &Node,
        sent: &Sent,
        received: Option<&Kinds>,
    ) -> Option<(Mark, Mark)> {
        if !matches!(node.kind, Kind::Map(_)) {
            let sent = self.mark(node, sent.kinds.as_ref())?;
            return Some((sent, self.mark(node, received)?));
        }
        let fields = ast::Match::read(self.cx, node)?;
        if !fields.sent.is_there() && !fields.received.is_there() {
            let Some(found) = ast::one_of(self.cx, &[fields.json, fields.regex]) else {
                return fields.need(self.cx, fields.json, MATCH_HELP).and(None);
            };
            let both = self.mark_of(found, fields.regex, fields.prefix)?;
            return Some((both.clone(), both));
        }
        ast::one_of(self.cx, &[fields.sent, fields.json, fields.regex]);
        let one = fields.need(self.cx, fields.sent, MATCH_HELP);
        let other = fields.need(self.cx, fields.received, MATCH_HELP);
        let one = self.mark(one?, sent.kinds.as_ref());
        let other = self.mark(other?, received);
        one.zip(other)
    }

    /// The field with the send time of a message, if the delivery measures by it.
    fn stamp(&mut self, fields: &ast::Delivery<'_>, kinds: Option<&Kinds>) -> Option<Option<Mark>> {
        fields.stamp.node().map_or(Some(None), |node| self.mark(node, kinds).map(Some))
    }

    /// The field with the ID or timestamp of a message.
    fn mark(&mut self, node: &Node, kinds: Option<&Kinds>) -> Option<Mark> {
        if !matches!(node.kind, Kind::Map(_)) {
            return self.extractor(node, kinds).map(|extractor| Mark { prefix: None, extractor });
        }
        let fields = ast::Mark::read(self.cx, node)?;
        let Some(found) = ast::one_of(self.cx, &[fields.json, fields.regex]) else {
            return fields.need(self.cx, fields.json, MARK_HELP).and(None);
        };
        self.mark_of(found, fields.regex, fields.prefix)
    }

    /// `{regex: …}`, or `{json: …}` with an optional prefix.
    fn mark_of(
        &mut self,
        (key, node): (&Key, &Node),
        regex: Field<'_>,
        prefix: Field<'_>,
    ) -> Option<Mark> {
        let text = self.cx.text(node, say!("a pattern to search for"))?;
        if regex.is(key) {
            if let Some(prefix) = prefix.key() {
                let message = say!("`regex` and `prefix` cannot be used together");
                let label = say!("`regex` is already given");
                let help = say!("match the prefix in the regular expression instead");
                self.cx.report("conflicting-keys", prefix.place, message, label, help);
            }
            let extractor = read_extractor(self.cx, "regex", &text, node.place)?;
            return Some(Mark { prefix: None, extractor });
        }
        let prefix = match prefix.node() {
            Some(node) => Some(self.cx.text(node, say!("text"))?.into_bytes().into()),
            None => None,
        };
        let extractor = read_path(self.cx, &text, node.place).map(Extractor::Json)?;
        Some(Mark { prefix, extractor })
    }

    /// A field of a declared message, or of JSON text.
    fn extractor(&mut self, node: &Node, kinds: Option<&Kinds>) -> Option<Extractor> {
        let text = self.cx.text(node, say!("the name of a field"))?;
        match kinds {
            Some(kinds) => field_extractor(self.cx, kinds, &text, node.place),
            None if text.starts_with("json.") || text.starts_with("json[") => {
                read_path(self.cx, json_path_of(&text), node.place).map(Extractor::Json)
            }
            None => {
                let message = say!("the sent message has no field `{}`", shorten(&text));
                let label = say!("this is not a field path");
                let help = say!(
                    "write `json.id`, `{{regex: 'id=(\\w+)'}}` or `{{prefix: '42', json: \
                            '[1].id'}}`; \
                            only messages of a declared protocol have fields"
                );
                self.cx.refuse("bad-value", node.place, message, label, help)
            }
        }
    }
}

/// The names of messages in a pattern.
fn names_in(node: &Node) -> impl Iterator<Item = &str> {
    let mut names: Vec<&str> = Vec::new();
    match &node.kind {
        Kind::Scalar { text, .. } if text != "any" => names.push(text),
        Kind::Scalar { .. } => {}
        Kind::List(items) => {
            names.extend(items.iter().filter_map(Node::text));
        }
        Kind::Map(entries) => names.extend(entries.iter().map(|(key, _)| key.text.as_str())),
    }
    names.into_iter()
}

#[cfg(test)]
mod tests;
