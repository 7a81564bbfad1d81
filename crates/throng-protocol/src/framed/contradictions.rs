//! Contradictions between the parts of a declaration: framing, kinds, replies, heartbeats.

mod parts;

use throng_base::Said;

use super::constant::constant_of;
use super::declaration::{
    BYTES_ALLOWED_MAX, BYTES_MAX, Coding, Counts, Declaration, Field, Format, Framing, Literal,
    Message, MessageKind, Mistake, PlaceId, Placed, Role, Transport,
};
use super::path::suggestion;
use super::table::{Base, Frame, Job, Length, Node, Repeats, Selector, Shape, Table};
use super::{MessageId, MessageInfo, members};
use crate::fields::number::{VARINT_BYTES_MAX, write_unsigned};

/// The maximum size of a datagram over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;

struct Finder<'a> {
    declaration: &'a Declaration,
    table: &'a mut Table,
    mistakes: &'a mut Vec<Mistake>,
}

/// Finds contradictions, and completes the table if there are none.
pub(super) fn find(declaration: &Declaration, table: &mut Table, mistakes: &mut Vec<Mistake>) {
    let mut finder = Finder { declaration, table, mistakes };
    finder.roles();
    finder.names();
    match finder.table.document.is_some() {
        true => members::complete(declaration, finder.table, finder.mistakes),
        false => finder.kinds(),
    }
    finder.replies();
    finder.heartbeat();
    // Sizes are meaningful only if the fields are valid.
    if finder.mistakes.is_empty() {
        finder.framing();
    }
}

impl Finder<'_> {
    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    fn say(
        &mut self,
        code: &'static str,
        place: PlaceId,
        message: Said,
        label: Said,
        help: Said,
    ) -> &mut Mistake {
        let label = label.to_owned();
        self.mistakes.push(Mistake { code, message, label, help, place, other: None });
        let last = self.mistakes.len() - 1;
        &mut self.mistakes[last]
    }

    /// Some roles can belong to only one field.
    fn purposes(&mut self) {
        let declaration = self.declaration;
        // A message may have its own correlation field.
        let bodies = declaration.messages.iter().map(|message| message.body.as_slice());
        let lists = std::iter::once(&[][..]).chain(bodies);
        for (word, list) in lists.flat_map(|list| {
            [say!("length"), say!("correlation"), say!("body")].map(|word| (word, list))
        }) {
            let is_it = |field: &&Field| role_word(&field.role).as_ref() == Some(&word);
            let own = list.iter().filter(is_it).count();
            let mut fields = declaration.packet.iter().chain(list).filter(is_it);
            let first = fields.next();
            for again in fields.filter(|_| list.is_empty() || own > 0) {
                let message = say!("two fields of the packet have the same purpose: {word}");
                let help = say!("give this purpose to only one of them");
                let label = say!("second occurrence");
                let mistake = self.say("protocol-role-twice", again.place, message, label, help);
                mistake.other = first.map(|first| (first.place, say!("first occurrence")));
            }
        }
    }

    fn roles(&mut self) {
        let declaration = self.declaration;
        self.purposes();
        let find =
            |job: Job| self.table.members(0).find(|(_, node)| node.job == job).map(|(id, _)| id);
        let (correlator, body) = (find(Job::Correlation), find(Job::Body));
        (self.table.correlator, self.table.body) = (correlator, body);
        let selectors = self.table.selectors.clone();
        for selector in &selectors {
            let field = &declaration.packet[selector.node as usize];
            if body.is_some_and(|body| selector.node > body) {
                let message = say!("`{}` comes after the body that it selects", field.id.value);
                let help = say!("put the field with `selects` before the body");
                self.say("protocol-bad-role", field.place, message, say!("after the body"), help);
            }
            let node = self.table.node(selector.node);
            let asked = node.condition.as_ref().map(|test| test.node);
            if selectors.len() > 1 && selector.shift + node.bits() > u64::BITS {
                let text = say!(
                    "`{}` cannot select the message together with other fields",
                    field.id.value
                );
                let help = say!(
                    "use unsigned integers with at most 64 bits in total, or a single field with \
                     text"
                );
                self.say("protocol-bad-role", field.place, text, say!("does not fit"), help);
            }
            if asked.is_some_and(|asked| selectors.iter().all(|other| other.node != asked)) {
                let text = say!(
                    "the condition of `{}` depends on a field that does not select the message",
                    field.id.value
                );
                let help = say!("compare an earlier field with `selects`, or remove `if`");
                self.say("protocol-bad-role", field.place, text, say!("not allowed here"), help);
            }
        }
        let with_fields = declaration.messages.iter().find(|message| !message.body.is_empty());
        if let (None, Some(message)) = (body, with_fields) {
            let name = &message.name.value;
            let message_text = say!("`{name}` has fields, but the packet has no body for them");
            let help = say!("add `{{id: body}}` to `packet` where these fields belong");
            let label = say!("this message has fields");
            self.say("protocol-no-body", message.name.place, message_text, label, help);
        }
    }

    fn names(&mut self) {
        let declaration = self.declaration;
        if declaration.messages.is_empty() || declaration.packet.is_empty() {
            let (message, help) = match declaration.packet.is_empty() {
                true => (
                    say!("the packet has no fields"),
                    say!("under `packet`, list the fields that each packet starts with"),
                ),
                false => {
                    (say!("there are no messages"), say!("declare the messages under `messages`"))
                }
            };
            let place = declaration.place;
            self.say("protocol-empty", place, message, say!("it is empty"), help);
        }
        for (index, message) in declaration.messages.iter().enumerate() {
            let earlier = &declaration.messages[..index];
            let twin = earlier.iter().find(|other| other.name.value == message.name.value);
            self.twin(say!("message"), &message.name, twin.map(|twin| twin.name.place));
        }
        for (index, structure) in declaration.types.iter().enumerate() {
            let earlier = &declaration.types[..index];
            let twin = earlier.iter().find(|other| other.name.value == structure.name.value);
            self.twin(say!("type"), &structure.name, twin.map(|twin| twin.name.place));
        }
    }

    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    fn twin(&mut self, word: Said, name: &Placed<String>, twin: Option<PlaceId>) {
        let Some(twin) = twin else { return };
        let message = say!("the {word} `{}` is declared twice", name.value);
        let help = say!("give one of them another name");
        let mistake =
            self.say("protocol-name-twice", name.place, message, say!("second occurrence"), help);
        mistake.other = Some((twin, say!("first occurrence")));
    }

    fn kinds(&mut self) {
        let declaration = self.declaration;
        let Some(first) = self.table.selectors.first() else {
            return self.without_kinds();
        };
        let first = &declaration.packet[first.node as usize];
        for (index, message) in declaration.messages.iter().enumerate() {
            let name = &message.name.value;
            let Some(kind) = &message.kind else {
                let text = say!("`{name}` has no `kind`");
                let help =
                    say!("give it a `kind`: the value of `{}` in this message", first.id.value);
                let label = say!("without a kind");
                self.say("protocol-bad-kind", message.name.place, text, label, help);
                continue;
            };
            match &kind.value {
                MessageKind::Numbers(numbers) => self.numbers(index, message, kind.place, numbers),
                MessageKind::Text(text) => self.text(index, first, kind, text),
            }
            let from = declaration.comes_from_target(message);
            let same = |(at, other): &(usize, &Message)| {
                other.kind.as_ref().is_some_and(|twin| self.are_alike((*at, twin), (index, kind)))
                    && declaration.comes_from_target(other) == from
            };
            if let Some((_, other)) = declaration.messages[..index].iter().enumerate().find(same) {
                let text =
                    say!("`{}` and `{name}` both have the kind {}", other.name.value, kind.value);
                let help = say!(
                    "give one of them a different kind; otherwise throng cannot tell them \
                         apart"
                );
                let place = other.kind.as_ref().map_or(other.place, |kind| kind.place);
                let label = say!("second occurrence");
                let mistake = self.say("protocol-kind-twice", kind.place, text, label, help);
                mistake.other = Some((place, say!("first occurrence")));
            }
        }
        self.sort_kinds();
    }

    /// Whether a packet could be either of two messages of the same direction.
    fn are_alike(
        &self,
        one: (usize, &Placed<MessageKind>),
        other: (usize, &Placed<MessageKind>),
    ) -> bool {
        let text = |index: usize| self.table.messages.get(index)?.text.as_ref();
        match (text(one.0), text(other.0)) {
            (Some(a), Some(b)) => {
                a.written.starts_with(&b.written) || b.written.starts_with(&a.written)
            }
            _ => one.1.value == other.1.value,
        }
    }

    /// Checks that the kind of a message fits the fields that select it.
    fn numbers(&mut self, index: usize, message: &Message, place: PlaceId, numbers: &[i64]) {
        let declaration = self.declaration;
        let name = &message.name.value;
        let selectors = self.table.selectors.clone();
        let mut raws = vec![None; selectors.len()];
        for (at, selector) in selectors.iter().enumerate() {
            let field = &declaration.packet[selector.node as usize];
            let id = &field.id.value;
            let node = self.table.node(selector.node);
            let (low, high) = node.range();
            let is_there = node.condition.as_ref().is_none_or(|test| {
                let asked = selectors.iter().position(|other| other.node == test.node);
                let raw = asked.and_then(|asked| raws[asked]);
                raw.is_some_and(|raw| test.holds(self.table.node(test.node).whole(raw)))
            });
            let (text, help) = match (numbers.get(at), is_there) {
                (Some(value), true) if (low..=high).contains(&i128::from(*value)) => {
                    raws[at] = Some(*value as u64);
                    continue;
                }
                (None, false) => continue,
                (Some(value), true) => (
                    say!("`{id}` cannot encode the kind {value}"),
                    say!("its range is {low} to {high}; change the kind or the type of the field"),
                ),
                (Some(value), false) => (
                    say!("`{id}` cannot be {value} here, because its `if` is not true"),
                    say!("remove the last number of the `kind` of `{name}`"),
                ),
                (None, true) => (
                    say!("the `kind` of `{name}` has no value for `{id}`"),
                    say!("write one value for each field with `selects`: `kind: [10, 11]`"),
                ),
            };
            let mistake = self.say("protocol-bad-kind", place, text, say!("does not fit"), help);
            mistake.other = Some((field.place, say!("the field")));
            return;
        }
        if let Some(value) = numbers.get(selectors.len()) {
            let text = say!(
                "no field with `selects` corresponds to the {value} in the `kind` of `{name}`"
            );
            let help = say!("write one value for each field with `selects`: `kind: [10, 11]`");
            self.say("protocol-bad-kind", place, text, say!("one too many"), help);
        }
        if let Some(made) = self.table.messages.get_mut(index) {
            made.raws = raws.into_iter().map(Option::unwrap_or_default).collect();
        }
    }

    fn text(&mut self, index: usize, field: &Field, kind: &Placed<MessageKind>, text: &[u8]) {
        let Some(selector) = self.table.selectors.first() else { return };
        let node = self.table.node(selector.node);
        match constant_of(node, Format::Json, &Literal::Bytes(text.to_vec())) {
            Ok(made) if !made.written.is_empty() => {
                if let Some(message) = self.table.messages.get_mut(index) {
                    message.text = Some(made);
                }
            }
            other => {
                let reason = other.err().unwrap_or(say!("it is empty"));
                let text =
                    say!("`{}` cannot encode the kind {}: {reason}", field.id.value, kind.value);
                let help = say!("change the kind or the type of the field");
                let mistake =
                    self.say("protocol-bad-kind", kind.place, text, say!("does not fit"), help);
                mistake.other = Some((field.place, say!("the field")));
            }
        }
    }

    /// For each side, its own messages go first.
    fn sort_kinds(&mut self) {
        let table = &mut *self.table;
        for (side, kinds) in table.kinds.iter_mut().enumerate() {
            let own = |message: &Message| usize::from(self.declaration.comes_from_target(message));
            let messages = self.declaration.messages.iter().map(own).zip(&table.messages);
            let messages = messages.enumerate();
            let (ours, others): (Vec<_>, Vec<_>) =
                messages.partition(|(_, (from, _))| *from == side);
            for (index, (_, message)) in ours.into_iter().chain(others) {
                match &message.text {
                    Some(text) => kinds.add_text(&text.written, index as u16),
                    None => {
                        let raws = message.raws.iter().zip(&table.selectors);
                        let raw = raws.fold(0, |all, (raw, at)| all | raw << at.shift);
                        kinds.add_number(raw, index as u16);
                    }
                }
            }
            kinds.complete();
        }
    }

    /// Without a selecting field, there is one message per direction.
    fn without_kinds(&mut self) {
        let declaration = self.declaration;
        let comes = |message: &Message| message.push || !message.answers.is_empty();
        for (index, message) in declaration.messages.iter().enumerate() {
            if let Some(kind) = &message.kind {
                let text = say!(
                    "`{}` has a kind, but no field of the packet contains the kind",
                    message.name.value
                );
                let help = say!("add `selects: message` to a field of the packet");
                let label = say!("no field contains this kind");
                self.say("protocol-bad-kind", kind.place, text, label, help);
            }
            let mut earlier = declaration.messages[..index].iter();
            if let Some(first) = earlier.find(|other| comes(other) == comes(message)) {
                let (a, b) = (&first.name.value, &message.name.value);
                let text = say!("`{a}` and `{b}` cannot be told apart");
                let help =
                    say!("add a field with `selects: message`, and give each message a `kind`");
                let place = message.name.place;
                let mistake =
                    self.say("protocol-ambiguous", place, text, say!("the second message"), help);
                mistake.other = Some((first.name.place, say!("the first message")));
            }
        }
        let only = (!declaration.messages.is_empty()).then_some(0);
        self.table.only = [false, true].map(|from_target| {
            let mut messages = declaration.messages.iter();
            let found = messages.position(|message| comes(message) == from_target);
            found.or(only).map(|index| index as u16)
        });
    }

    fn replies(&mut self) {
        let declaration = self.declaration;
        for message in &declaration.messages {
            let name = &message.name.value;
            for (index, answered) in message.answers.iter().enumerate() {
                let wanted = &answered.value;
                let place = answered.place;
                let earlier = &message.answers[..index];
                if let Some(first) = earlier.iter().find(|other| other.value == *wanted) {
                    let text = say!("`answers` of `{name}` lists `{wanted}` twice");
                    let help = say!("list each message only once");
                    let label = say!("second occurrence");
                    let mistake = self.say("protocol-bad-reply", place, text, label, help);
                    mistake.other = Some((first.place, say!("first occurrence")));
                } else if wanted == name && !self.may_answer_itself() {
                    let text = say!("`{name}` lists itself in `answers`");
                    let help = say!(
                        "declare one message per direction, or a field with `correlates: \
                         request`; otherwise requests and replies cannot be told apart"
                    );
                    self.say("protocol-bad-reply", place, text, say!("the message itself"), help);
                } else if !self.is_message(wanted) {
                    let text =
                        say!("`answers` of `{name}` lists `{wanted}`, which is not a message");
                    let help = self.messages_like(wanted);
                    self.say("protocol-bad-reply", place, text, say!("unknown"), help);
                }
            }
            self.parts(message);
            let is_part = message.more.is_some()
                || message.answers.iter().any(|first| self.is_long_push(&first.value));
            if let (true, false, Some(answered)) = (message.push, is_part, message.answers.first())
            {
                let text = say!("`{name}` is a push, but `answers` lists `{}`", answered.value);
                let help =
                    say!("remove `push: true` or `answers`: a push is sent without a request");
                let place = message.name.place;
                let mistake = self.say("protocol-bad-reply", place, text, say!("a push"), help);
                mistake.other = Some((answered.place, say!("a reply")));
            }
        }
    }

    /// If there is no other message, or a number identifies the request, a message may be the reply
    /// to its own kind: lines, an echo.
    fn may_answer_itself(&self) -> bool {
        self.declaration.messages.len() == 1 || self.table.correlator.is_some()
    }

    fn is_message(&self, name: &str) -> bool {
        self.declaration.messages.iter().any(|message| message.name.value == name)
    }

    fn messages_like(&self, name: &str) -> Said {
        let names: Vec<&str> =
            self.declaration.messages.iter().map(|message| &*message.name.value).collect();
        suggestion(name, &names)
    }

    fn heartbeat(&mut self) {
        let declaration = self.declaration;
        let Some(heartbeat) = &declaration.heartbeat else { return };
        let expected = heartbeat.expect.iter();
        for name in std::iter::once(&heartbeat.send).chain(expected) {
            if !self.is_message(&name.value) {
                let text = say!("the heartbeat uses `{}`, which is not a message", name.value);
                let help = self.messages_like(&name.value);
                self.say("protocol-bad-heartbeat", name.place, text, say!("unknown"), help);
            }
        }
        let Some(expect) = &heartbeat.expect else { return };
        let answer = declaration.messages.iter().find(|one| one.name.value == expect.value);
        let send = &heartbeat.send.value;
        if let Some(answer) = answer
            && self.is_message(send)
            && !answer.answers.iter().any(|answered| answered.value == *send)
        {
            let text =
                say!("the heartbeat expects `{}`, which is not a reply to `{send}`", expect.value);
            let help = say!("add `answers: {send}` to `{}`", expect.value);
            let label = say!("not a reply to the heartbeat");
            let mistake = self.say("protocol-bad-heartbeat", expect.place, text, label, help);
            mistake.other = Some((answer.name.place, say!("this message")));
        }
        if heartbeat.every.is_zero() {
            let text = say!("the heartbeat interval must be more than 0");
            let help = say!("set the time between two heartbeats: `every: 30s`");
            self.say("protocol-bad-heartbeat", heartbeat.place, text, say!("zero interval"), help);
        }
    }

    fn framing(&mut self) {
        self.trailer();
        let declaration = self.declaration;
        let stream = declaration.transport.is_stream();
        self.table.packet_bytes_max = match declaration.transport {
            Transport::Udp => DATAGRAM_BYTES_MAX,
            _ => BYTES_MAX as usize,
        };
        let field =
            declaration.packet.iter().position(|field| matches!(field.role, Role::Length { .. }));
        if let Some(index) = field {
            self.length(index, &declaration.packet[index]);
        }
        match &declaration.framing {
            Framing::Length if stream && field.is_none() => {
                let text = say!("the protocol does not define where a packet ends");
                let help = say!("add a field with `counts: body`, or set `delimiter` or `fixed`");
                let label = say!("no length field");
                self.say("protocol-no-length", declaration.place, text, label, help);
            }
            Framing::Length if stream => self.table.frame = Frame::Length,
            Framing::Length => self.table.frame = Frame::Whole,
            Framing::Delimiter { bytes, bytes_max } => {
                if bytes.value.is_empty() {
                    let text = say!("the packet delimiter is empty");
                    let help = say!("give at least one byte, as in `delimiter: \"\\n\"`");
                    self.say("protocol-bad-delimiter", bytes.place, text, say!("empty"), help);
                } else {
                    self.delimited(bytes);
                }
                let most = *bytes_max as usize;
                self.table.packet_bytes_max = most;
                self.table.frame =
                    Frame::Delimited { bytes: bytes.value.as_slice().into(), bytes_max: most };
            }
            Framing::Fixed(Placed { place, .. }) | Framing::Fields { place, .. }
                if self.table.document.is_some() =>
            {
                let text = say!("the end of a document cannot be declared in this way");
                let help = say!("use `transport: ws`, or `delimiter`");
                self.say("protocol-no-length", *place, text, say!("does not fit"), help);
            }
            Framing::Document { root, bytes_max, place } => {
                self.documents(root.as_ref(), *place);
                let bytes_max = *bytes_max as usize;
                self.table.packet_bytes_max = bytes_max;
                let root = root.as_ref().map_or(&[][..], |root| root.value.as_bytes()).into();
                self.table.frame = Frame::Document { root, bytes_max };
            }
            Framing::Fixed(bytes) => return self.fixed(bytes),
            Framing::Fields { bytes_max, place } => {
                self.ends_of_fields(*place);
                let bytes_max = *bytes_max as usize;
                self.table.packet_bytes_max = bytes_max;
                self.table.frame = Frame::Fields { bytes_max };
            }
        }
        self.too_long(field);
    }

    /// If the packet ends with its last field, every field must determine its own end.
    fn ends_of_fields(&mut self, place: PlaceId) {
        let declaration = self.declaration;
        let is_length = |field: &&Field| matches!(field.role, Role::Length { .. });
        if let Some(field) = declaration.packet.iter().find(is_length) {
            let name = &field.id.value;
            let text = say!("`{name}` gives the length of the packet, so `frame` is not needed");
            let help = say!("remove `frame: fields`, or `counts`");
            let label = say!("a second definition of the packet end");
            self.say("protocol-no-length", place, text, label, help);
        }
        let bodies = declaration.messages.iter().zip(&self.table.messages);
        let bodies = bodies.map(|(message, made)| (made.list, &message.body));
        let mut wrong = Vec::new();
        for (list, fields) in std::iter::once((0, &declaration.packet)).chain(bodies) {
            let is_endless =
                |(_, node): &(u32, &Node)| node.is_optional || node.is_open(&self.table.lists);
            let fields = self.table.members(list).zip(fields);
            wrong.extend(fields.filter(|(node, _)| is_endless(node)).map(|(_, field)| field));
        }
        for field in wrong {
            let name = &field.id.value;
            let text = say!("`{name}` has no defined end, so the end of the packet is unknown");
            let help = say!("give it a length or a `terminator`, or use another framing");
            let mistake =
                self.say("protocol-no-length", field.place, text, say!("no defined end"), help);
            mistake.other = Some((place, say!("the packet ends with its last field")));
        }
    }

    /// Every message must fit the largest packet; `length` is the index of the field that limits
    /// it.
    fn too_long(&mut self, length: Option<usize>) {
        let declaration = self.declaration;
        let most = self.table.packet_bytes_max as u64;
        let packet = self.written_min(0);
        // A packet that is too long without any message was reported already.
        if packet > most {
            return;
        }
        for (index, message) in declaration.messages.iter().enumerate() {
            let Some(kind) = self.table.messages.get(index) else { continue };
            let least = packet.saturating_add(self.written_min(kind.list));
            if least <= most {
                continue;
            }
            let name = &message.name.value;
            let place = message.name.place;
            let text =
                say!("`{name}` has at least {least} bytes, but a packet can have at most {most}");
            match length.map(|index| &declaration.packet[index]) {
                Some(field) => {
                    let help = say!(
                        "raise `max` of `{}`, use a wider type for it, or shorten the message",
                        field.id.value
                    );
                    let mistake =
                        self.say("protocol-bad-length", place, text, say!("too long"), help);
                    mistake.other = Some((field.place, say!("the length field")));
                }
                None => {
                    let help = say!("raise `max`, or shorten the message");
                    self.say("protocol-too-large", place, text, say!("too long"), help);
                }
            }
        }
    }

    /// The fewest bytes of a list, with its constants as encoded.
    fn written_min(&self, list: u32) -> u64 {
        let lists = &self.table.lists;
        let nodes = self.table.members(list).map(|(_, node)| match (&node.constant, &node.shape) {
            _ if node.condition.is_some() || node.repeat != Repeats::Once => node.bytes_min(lists),
            (_, Shape::Bits(_)) | (None, _) => node.bytes_min(lists),
            (Some(constant), _) => constant.written.len() as u64,
        });
        nodes.fold(0, u64::saturating_add)
    }

    /// The delimiter of packets must not occur in anything that throng itself writes: the packet
    /// would end there.
    fn delimited(&mut self, delimiter: &Placed<Vec<u8>>) {
        let declaration = self.declaration;
        let mut wrong = Vec::new();
        // Whether a document contains it is checked when the document is written.
        let is_document = self.table.document.is_some();
        let fields = self.table.members(0).zip(&declaration.packet).filter(|_| !is_document);
        for ((_, node), field) in fields {
            let (_, high) = node.range();
            let (most, help) = match (&field.role, &self.table.length, delimiter.value.len()) {
                (Role::Length { .. }, Some(length), _) => (
                    length.value_max,
                    say!(
                        "remove `delimiter` and add a field with its bytes as `const` after the \
                         body, or remove the length field"
                    ),
                ),
                // Longer delimiters occur in few numbers: such a packet is rejected when it is
                // written.
                (Role::Correlates, _, 1) => (
                    high as u64,
                    say!("replace `delimiter` with a length field that has `counts: after`"),
                ),
                _ => continue,
            };
            if delimiter.value.iter().any(|byte| holds_byte(node, most, *byte)) {
                let name = &field.id.value;
                let text =
                    say!("a packet could end inside `{name}`, which can contain the delimiter");
                wrong.push((field.place, text, help));
            }
        }
        for (message, made) in declaration.messages.iter().zip(&self.table.messages) {
            let Some(kind) = &message.kind else { continue };
            let written = |(raw, selector): (&u64, &Selector)| {
                let node = self.table.node(selector.node);
                let mut written = Vec::new();
                match node.shape {
                    Shape::Unsigned(width) | Shape::Signed(width) => {
                        write_unsigned(*raw, width, node.is_little, &mut written);
                    }
                    _ => {}
                }
                written
            };
            let mut all: Vec<Vec<u8>> =
                made.raws.iter().zip(&self.table.selectors).map(written).collect();
            all.extend(made.text.iter().map(|text| text.written.to_vec()));
            if all.iter().any(|one| memchr::memmem::find(one, &delimiter.value).is_some()) {
                let text = say!("the kind {} contains the packet delimiter", kind.value);
                wrong.push((kind.place, text, say!("change the kind or the delimiter")));
            }
        }
        for (place, text, help) in wrong {
            let help = help.to_owned();
            let label = say!("a packet could end here");
            let mistake = self.say("protocol-bad-delimiter", place, text, label, help);
            mistake.other = Some((delimiter.place, say!("the delimiter")));
        }
    }

    /// The fields after the body must have a fixed size: otherwise the end of the body is unknown.
    fn trailer(&mut self) {
        let body = self.table.body.filter(|_| self.table.document.is_none());
        let Some(body) = body else { return };
        let declaration = self.declaration;
        let mut trailer = 0u64;
        for id in body + 1..self.table.list(0).nodes.end {
            match self.table.node(id).bytes(&self.table.lists) {
                Some(bytes) => trailer = trailer.saturating_add(bytes),
                None => {
                    let field = &declaration.packet[id as usize];
                    let text =
                        say!("`{}` comes after the body and has no fixed size", field.id.value);
                    let help = say!("put it before the body, or give it a fixed size");
                    let place = field.place;
                    self.say("protocol-bad-role", place, text, say!("variable size"), help);
                    return;
                }
            }
        }
        self.table.trailer = trailer as usize;
    }

    fn length(&mut self, index: usize, field: &Field) {
        let Role::Length { counts, plus, bytes_max } = &field.role else { return };
        let declaration = self.declaration;
        let name = &field.id.value;
        let nodes: Vec<u32> = self.table.list(0).nodes.clone().collect();
        let lists = &self.table.lists;
        let bytes = |id: &u32| self.table.node(*id).bytes(lists);
        let behind: Option<u64> =
            nodes[index + 1..].iter().filter(|id| Some(**id) != self.table.body).map(bytes).sum();
        let (before, least) =
            (nodes[..index].iter().map(bytes).sum::<Option<u64>>(), lists[0].bytes_min);
        let node = self.table.node(index as u32);
        let (_, holds) = node.range();
        let width = node.bytes(&self.table.lists).unwrap_or(VARINT_BYTES_MAX as u64);
        // The bytes of a group count with its first field; a length may be in the middle of it.
        let before = before.map(|before| match node.shape {
            Shape::Bits(bits) if bits.first > 0 => before - u64::from(bits.group_bytes),
            _ => before,
        });
        let Some(offset) = before else {
            let text =
                say!("`{name}` comes after fields of variable size, so its position is unknown");
            let help = say!("move the length field before these fields");
            let label = say!("not at a fixed position");
            self.say("protocol-bad-length", field.place, text, label, help);
            return;
        };
        let Some(base) = self.counted_from(index, field, counts, behind) else { return };
        if let Some(most) = bytes_max {
            self.limit(field, most, holds);
        }
        let wanted = bytes_max.as_ref().map_or(BYTES_MAX, |most| most.value);
        let value_max = i128::from(wanted).min(holds) as u64;
        let end = offset.saturating_add(width);
        let counted_max = value_max.saturating_add_signed(plus.saturating_neg());
        let most = match base {
            Base::Packet => counted_max,
            Base::Behind(bytes) => end.saturating_add(bytes as u64).saturating_add(counted_max),
        };
        if most < least {
            let text =
                say!("a packet has at least {least} bytes, but `{name}` allows at most {most}");
            let help = say!("raise `max`, or use a wider type");
            self.say("protocol-bad-length", field.place, text, say!("too small"), help);
        }
        let magic = self.magic(index);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.table.packet_bytes_max = match declaration.transport {
            Transport::Udp => most.min(DATAGRAM_BYTES_MAX),
            _ => most,
        };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let packet_bytes_min = usize::try_from(least).unwrap_or(usize::MAX);
        let node = index as u32;
        let plus = *plus;
        let length = Length { node, offset, base, plus, value_max, packet_bytes_min, magic };
        self.table.length = Some(length);
    }

    /// What a length counts; `behind` is the fixed number of bytes after it that are not the body.
    fn counted_from(
        &mut self,
        index: usize,
        field: &Field,
        counts: &Counts,
        behind: Option<u64>,
    ) -> Option<Base> {
        let name = &field.id.value;
        let base = match (counts, behind) {
            (Counts::Packet, _) => Base::Packet,
            (Counts::After, _) => Base::Behind(0),
            (Counts::Body, Some(behind)) => Base::Behind(behind as usize),
            (Counts::Body, None) => {
                let text = say!(
                    "`{name}` counts the body, but the packet has later fields without a fixed size"
                );
                let help = say!("count everything after this field: `counts: after`");
                self.say("protocol-bad-length", field.place, text, say!("counts the body"), help);
                return None;
            }
        };
        if *counts == Counts::Body && self.table.body.is_none_or(|body| (body as usize) < index) {
            let text = say!("`{name}` counts the body, but no body follows it");
            let help = match self.table.body {
                Some(_) => say!("put it before the body, or write `counts: packet`"),
                None => say!("write `counts: packet`, or give the packet a body"),
            };
            self.say("protocol-bad-length", field.place, text, say!("counts the body"), help);
            return None;
        }
        Some(base)
    }

    /// The limit of a length must be a value that it can hold.
    fn limit(&mut self, field: &Field, most: &Placed<u64>, holds: i128) {
        let name = &field.id.value;
        let limit = most.value;
        // 64 KiB is the usual way to say what 16 bits hold.
        if i128::from(limit) > holds + 1 {
            let text = say!("the type of `{name}` cannot represent its `max`, {limit}");
            let help = say!("its maximum is {holds}: lower `max`, or use a wider type");
            let mistake =
                self.say("protocol-bad-length", most.place, text, say!("above the maximum"), help);
            mistake.other = Some((field.place, say!("the length field")));
        } else if limit > BYTES_ALLOWED_MAX {
            let text =
                say!("the limit of {limit} bytes exceeds the maximum of {BYTES_ALLOWED_MAX}");
            let help = say!("packets cannot be larger: lower the limit");
            self.say("protocol-bad-length", most.place, text, say!("above the maximum"), help);
        }
    }

    /// Bytes at fixed positions before the length that are always the same.
    fn magic(&self, index: usize) -> Box<[(u32, u8, u8)]> {
        let mut magic = Vec::new();
        let mut at = 0u32;
        for (_, node) in self.table.members(0).take(index) {
            let Some(bytes) = node.bytes(&self.table.lists) else { break };
            if let (Some(constant), false) = (&node.constant, matches!(node.shape, Shape::Bits(_)))
            {
                let bytes = constant.written.iter().take(super::EXCERPT_BYTES_MAX);
                magic.extend(bytes.zip(at..).map(|(byte, at)| (at, 0xff, *byte)));
            }
            at = at.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        magic.into()
    }

    fn fixed(&mut self, bytes: &Placed<u32>) {
        let declaration = self.declaration;
        let fixed = u64::from(bytes.value);
        let packet = self.table.list(0).bytes_min;
        let nodes = self.table.members(0);
        let header: Option<u64> = nodes
            .filter(|(id, _)| Some(*id) != self.table.body)
            .map(|(_, node)| node.bytes(&self.table.lists))
            .sum();
        if fixed == 0 || packet > fixed || fixed > BYTES_ALLOWED_MAX {
            let text = match fixed {
                0 => say!("a packet cannot have 0 bytes"),
                _ if fixed > BYTES_ALLOWED_MAX => {
                    say!("a packet can have at most {BYTES_ALLOWED_MAX} bytes, not {fixed}")
                }
                _ => say!("a packet has at least {packet} bytes, but `fixed` is {fixed}"),
            };
            let help = say!("set `fixed` to the size of each packet in bytes");
            self.say("protocol-bad-fixed", bytes.place, text, say!("does not fit"), help);
        } else if self.table.body.is_none() && header.is_some_and(|header| header != fixed) {
            let header = header.unwrap_or_default();
            let text =
                say!("the fields of a packet have {header} bytes in total, but `fixed` is {fixed}");
            let help = say!("set `fixed` to the size of each packet in bytes");
            self.say("protocol-bad-fixed", bytes.place, text, say!("does not fit"), help);
        }
        for (index, message) in declaration.messages.iter().enumerate() {
            let Some(kind) = self.table.messages.get(index) else { continue };
            let least = packet.saturating_add(self.table.list(kind.list).bytes_min);
            if packet <= fixed && least > fixed {
                let name = &message.name.value;
                let text =
                    say!("`{name}` has at least {least} bytes, but a packet has only {fixed}");
                let help = say!("raise `fixed`, or shorten the message");
                let place = message.name.place;
                let mistake = self.say("protocol-bad-fixed", place, text, say!("too long"), help);
                mistake.other = Some((bytes.place, say!("the packet size")));
            }
        }
        self.table.is_padded = true;
        self.table.packet_bytes_max = bytes.value as usize;
        self.table.frame = Frame::Fixed(bytes.value as usize);
    }
}

/// Whether an encoded number of up to `most` can contain this byte.
fn holds_byte(node: &Node, most: u64, byte: u8) -> bool {
    let byte = u64::from(byte);
    match node.shape {
        Shape::Coded(Coding::Varint) => byte <= most || most > 0x7f,
        // Neighbouring fields share its bytes.
        Shape::Bits(_) | Shape::Coded(_) => true,
        // Larger numbers contain every byte, small ones zeros.
        _ => byte <= most,
    }
}

/// Roles that only one field of a packet can have.
fn role_word(role: &Role) -> Option<Said> {
    match role {
        Role::Length { .. } => Some(say!("length")),
        Role::Correlates => Some(say!("correlation")),
        Role::Body => Some(say!("body")),
        Role::Value | Role::Selects | Role::Checksum { .. } => None,
    }
}

/// Describes the messages of a declaration without contradictions.
pub(super) fn infos(declaration: &Declaration) -> Box<[MessageInfo]> {
    let messages = &declaration.messages;
    let id_of = |name: &str| {
        let index = messages.iter().position(|message| message.name.value == name)?;
        Some(MessageId(index as u16))
    };
    let infos = messages.iter().map(|message| {
        let answered_by = messages.iter().enumerate().filter(|(_, other)| {
            other.answers.iter().any(|answered| answered.value == message.name.value)
        });
        MessageInfo {
            name: message.name.value.clone(),
            answers: message.answers.iter().filter_map(|name| id_of(&name.value)).collect(),
            answered_by: answered_by.map(|(index, _)| MessageId(index as u16)).collect(),
            push: message.push,
            may_go_on: message.more.is_some(),
        }
    });
    infos.collect()
}
