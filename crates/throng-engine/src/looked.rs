//! A response or message as checks, saves and expressions see it.

use std::cell::OnceCell;
use std::time::Duration;

use throng_base::Said;
use throng_expression::{Answer, Fault, Value};
use throng_extract::{Digest, Document, Hasher};
use throng_metrics::status_number;
use throng_program::Pick;
use throng_protocol::framed::{Decoded, FieldPath, MessageId, Protocol};
use throng_protocol::machine::{Field, Fields, Parts};
use throng_protocol::protobuf::{self, MessageType, Schema};

use crate::failure::{Finding, shown};
use crate::prepared::cookies::SeenFrom;

/// A response or message, prepared for checks, saves and expressions.
pub(crate) struct Looked<'a> {
    /// `None` for a message.
    pub(crate) status: Option<u16>,
    pub(crate) document: Document<'a>,
    /// Since it was due.
    pub(crate) elapsed: Duration,
    /// Since the previous message of a stream.
    pub(crate) between: Option<Duration>,
    /// Results of reading the head.
    pub(crate) kept: Option<&'a Kept>,
    /// Cookies of an HTTP response, if its user has any and they are needed.
    pub(crate) cookies: Option<SeenFrom<'a>>,
    /// Digests of a body that was not kept.
    pub(crate) tally: Option<&'a Tally>,
    /// For a declared message: its fields and its kind.
    pub(crate) declared: Option<(&'a Protocol, &'a Decoded, MessageId)>,
    /// The other packets of the same reply or push.
    pub(crate) parts: Option<&'a PartsOfReply>,
    /// The type of a protobuf message.
    pub(crate) proto: Option<(&'a Schema, MessageType)>,
    /// A failure that applies whatever is checked.
    pub(crate) refusal: Option<&'a Finding>,
    /// The complete message, if it is more than its document.
    pub(crate) whole: Option<&'a [u8]>,
    /// Named fields besides the document, such as headers.
    pub(crate) fields: Fields<'a>,
    /// The document as a value, for expressions.
    json: OnceCell<Value>,
}

impl<'a> Looked<'a> {
    pub(crate) fn new(status: Option<u16>, body: &'a [u8], elapsed: Duration) -> Looked<'a> {
        Looked {
            status,
            document: Document::new(body),
            elapsed,
            between: None,
            kept: None,
            cookies: None,
            tally: None,
            declared: None,
            parts: None,
            proto: None,
            refusal: None,
            whole: None,
            fields: Fields::None,
            json: OnceCell::new(),
        }
    }

    /// A message as split by its machine.
    pub(crate) fn message(whole: &'a [u8], parts: Parts<'a>, elapsed: Duration) -> Looked<'a> {
        let looked = Looked::new(None, parts.content, elapsed);
        match parts.fields {
            Fields::None => looked,
            fields => Looked { whole: Some(whole), fields, ..looked },
        }
    }

    /// The message with the other packets of its reply.
    pub(crate) fn with_parts<'b>(&self, parts: &'b PartsOfReply) -> Looked<'b>
    where
        'a: 'b,
    {
        let Looked { status, elapsed, declared, proto, refusal, whole, fields, .. } = *self;
        let looked = Looked::new(status, self.document.bytes(), elapsed);
        Looked { declared, proto, refusal, whole, fields, parts: Some(parts), ..looked }
    }

    /// The complete message.
    pub(crate) fn whole(&self) -> &'a [u8] {
        self.whole.unwrap_or(self.document.bytes())
    }

    /// A field besides the document.
    pub(crate) fn said(&self, name: &str) -> Option<Field<'a>> {
        self.fields.get(name).or_else(|| Some(Field::Number(self.packets(name)?)))
    }

    /// `packets`: the number of packets of a reply; `packets.NAME`: how many of them are this
    /// message.
    fn packets(&self, name: &str) -> Option<i64> {
        let (protocol, _, last) = self.declared?;
        let message = match name.strip_prefix("packets")?.strip_prefix('.') {
            None => None,
            Some(name) => Some(protocol.message(name)?),
        };
        let parts = self.parts.map_or(0, |parts| parts.count(message));
        Some((parts + u64::from(message.is_none_or(|message| message == last))) as i64)
    }

    /// A field of a declared message, by the path for its kind. If the last packet of a reply does
    /// not have it, the first packet that does.
    pub(crate) fn field(&self, paths: &[FieldPath]) -> Option<Value> {
        let (protocol, decoded, message) = self.declared?;
        match paths.iter().find(|path| path.message == message) {
            Some(path) => protocol.value(self.document.bytes(), decoded, path),
            None => self.parts?.field(protocol, paths),
        }
    }

    /// True if it is a declared message of one of these kinds, or one of its packets is.
    pub(crate) fn kind(&self, kinds: &[MessageId]) -> Option<Value> {
        let (_, _, message) = self.declared?;
        let is_part = |kind: &MessageId| self.parts.is_some_and(|it| it.count(Some(*kind)) > 0);
        let is_its = kinds.contains(&message) || kinds.iter().any(is_part);
        is_its.then_some(Value::Bool(true))
    }

    /// A field of a protobuf message; `None` if the message is malformed before it.
    pub(crate) fn proto_field(&self, path: &protobuf::FieldPath) -> Option<Value> {
        let (schema, message) = self.proto?;
        let is_its = path.message == message;
        is_its.then(|| schema.value(self.document.bytes(), path).ok().flatten()).flatten()
    }

    /// Values that do not depend on the user: for the ledger.
    pub(crate) fn simple(&self, pick: &Pick) -> Option<Value> {
        match pick {
            Pick::Field(paths) => self.field(paths),
            Pick::Kind(kinds, _) => self.kind(kinds),
            Pick::Proto(path) => self.proto_field(path),
            Pick::Body => Some(text_of(self.document.bytes())),
            Pick::Json(path) => path.first_in(&self.document),
            Pick::XPath(path) => path.first(self.document.page()),
            Pick::Css(selector) => selector.first(self.document.page()),
            Pick::Pattern(pattern) => pattern.first(self.document.bytes()),
            Pick::Digest(digest) => Some(Value::Text(digest.of(self.document.bytes()).into())),
            Pick::Header(name) | Pick::Result(name) => self.said(name).map(value_of),
            Pick::Status | Pick::Cookie(_) | Pick::Size | Pick::Time | Pick::Expression(_) => None,
        }
    }

    /// The part of it that an expression names.
    pub(crate) fn part(&self, part: Answer) -> Result<Value, Fault> {
        let body = self.document.bytes();
        Ok(match part {
            Answer::Status => match self.status {
                Some(status) => number_of(status),
                None => return Err(Fault(say!("a message has no status"))),
            },
            Answer::Body => text_of(body),
            Answer::Json => {
                if self.json.get().is_none()
                    && let Some((schema, message)) = self.proto
                {
                    let value = schema.message_value(message, body);
                    let value = value.map_err(|wrong| Fault(wrong.reason))?;
                    let _ = self.json.set(value);
                }
                if self.json.get().is_none() {
                    let Some(json) = self.document.json() else {
                        return Err(Fault(not_json(&self.document)));
                    };
                    let _ = self.json.set(Value::from_json(json));
                }
                self.json.get().cloned().unwrap_or_default()
            }
            Answer::Headers => match self.kept.and_then(|kept| kept.map.clone()) {
                Some(headers) => headers,
                None if self.whole.is_some() => {
                    let mut entries = Vec::new();
                    self.fields.each(&mut |name, it| entries.push((name.into(), value_of(it))));
                    Value::Map(entries.into())
                }
                None => return Err(Fault(say!("a message has no headers"))),
            },
            Answer::Size => Value::Int(body.len() as i64),
            Answer::Time => Value::Float(self.elapsed.as_secs_f64() * 1e3),
        })
    }
}

/// The packets of a reply before its last one, or of a push after its first one: how many arrived
/// of each kind, and the first of each kind that a check or save reads.
#[derive(Debug, Default)]
pub(crate) struct PartsOfReply(Vec<PartOfReply>);

#[derive(Debug)]
struct PartOfReply {
    message: MessageId,
    count: u64,
    first: Vec<u8>,
}

impl PartsOfReply {
    /// The packets of a push after its first one.
    pub(crate) fn of_push(protocol: &Protocol, packets: &[&[u8]]) -> PartsOfReply {
        let (mut parts, mut decoded) = (PartsOfReply::default(), Decoded::default());
        for packet in packets {
            if let Ok(read) = protocol.decode(packet, &mut decoded)
                && parts.add(read.message)
            {
                parts.keep(packet);
            }
        }
        parts
    }

    /// Counts a packet; true if it is the first of its kind.
    pub(crate) fn add(&mut self, message: MessageId) -> bool {
        let known = self.0.iter_mut().find(|part| part.message == message);
        match known {
            Some(part) => part.count += 1,
            None => self.0.push(PartOfReply { message, count: 1, first: Vec::new() }),
        }
        self.0.last().is_some_and(|part| part.message == message && part.count == 1)
    }

    /// Keeps the packet that was added last.
    pub(crate) fn keep(&mut self, packet: &[u8]) {
        if let Some(part) = self.0.last_mut() {
            part.first = packet.to_vec();
        }
    }

    /// How many packets arrived of this message, or in total.
    pub(crate) fn count(&self, message: Option<MessageId>) -> u64 {
        let is_meant = |part: &&PartOfReply| message.is_none_or(|one| one == part.message);
        self.0.iter().filter(is_meant).map(|part| part.count).sum()
    }

    fn field(&self, protocol: &Protocol, paths: &[FieldPath]) -> Option<Value> {
        self.0.iter().filter(|part| !part.first.is_empty()).find_map(|part| {
            let path = paths.iter().find(|path| path.message == part.message)?;
            let mut decoded = Decoded::default();
            protocol.decode(&part.first, &mut decoded).ok()?;
            protocol.value(&part.first, &decoded, path)
        })
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Results of reading a head that are needed when the response is complete.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// By the number of the check.
    pub(crate) findings: Vec<(u16, Finding)>,
    /// By the number of the save.
    pub(crate) picked: Vec<(u16, Value)>,
    /// All headers, for expressions.
    pub(crate) map: Option<Value>,
}

impl Kept {
    pub(crate) fn picked(&self, save: usize) -> Option<Value> {
        let found = self.picked.iter().find(|(number, _)| usize::from(*number) == save);
        found.map(|(_, value)| value.clone())
    }

    pub(crate) fn clear(&mut self) {
        self.findings.clear();
        self.picked.clear();
        self.map = None;
    }
}

/// The digests of a body that is not kept.
pub(crate) struct Tally {
    pub(crate) bytes: u64,
    digests: Vec<(Digest, Hasher)>,
}

impl Tally {
    pub(crate) fn new(digests: &[Digest]) -> Tally {
        let digests = digests.iter().map(|digest| (*digest, Hasher::new(*digest)));
        Tally { bytes: 0, digests: digests.collect() }
    }

    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.digests.iter_mut().for_each(|(_, hasher)| hasher.update(piece));
    }

    pub(crate) fn digits(&self, digest: Digest) -> Option<String> {
        let known = self.digests.iter().find(|(known, _)| *known == digest);
        known.map(|(_, hasher)| hasher.digits())
    }
}

pub(crate) fn value_of(field: Field<'_>) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => Value::Bool(value),
        Field::Number(number) => Value::Int(number),
        Field::Float(number) => Value::Float(number),
        Field::Bytes(bytes) => text_of(bytes),
    }
}

/// Text if it is valid UTF-8, otherwise bytes.
pub(crate) fn text_of(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.into()),
        Err(_) => Value::Bytes(bytes.into()),
    }
}

pub(crate) fn not_json(document: &Document<'_>) -> Said {
    match document.refusal() {
        Some(refusal) => refusal.said(),
        None => say!("the body is not valid JSON: `{}`", shown(document.bytes())),
    }
}

/// A status as its protocol numbers it, for expressions.
pub(crate) fn number_of(status: u16) -> Value {
    Value::Int(i64::from(status_number(status)))
}
