//! The client side of a connection: commands that wait for their replies, and the command of each
//! reply.

use std::collections::VecDeque;
use std::ops::Range;

use super::json::write_json;
use super::message::{Message, subscriptions};
use super::reply::text;
use super::scan::{Found, Head, Scan, head};
use super::violation::Violation;
use crate::field::Field;

/// See the module.
#[derive(Debug, Default)]
pub struct Client {
    /// The start of an incomplete reply.
    held: Vec<u8>,
    scan: Scan,
    asked: VecDeque<Asked>,
    /// The number of the last request.
    number: u32,
    /// There are subscriptions: messages may arrive.
    is_subscribed: bool,
    /// The replies of an incomplete pipeline so far, as JSON.
    gathered: Vec<u8>,
    /// The first error among them.
    error: Option<Box<[u8]>>,
}

/// Commands that were sent together, a pipeline if there are several.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: u32,
    replies: u32,
    /// How many of them have not arrived.
    left: u32,
    /// Whether a check, save or trace reads their content.
    is_read: bool,
}

/// An event. It does not borrow from the client.
#[derive(Clone, Copy, Debug)]
pub enum Came<'a> {
    /// See [`Message::of`].
    Message(&'a [u8]),
    Answer(RedisAnswer<'a>),
    /// An error before anything was asked: the server accepts no more clients.
    Refused(&'a [u8]),
}

/// The replies to commands that were sent together.
#[derive(Clone, Copy, Debug)]
pub struct RedisAnswer<'a> {
    /// The number that [`Client::ask`] returned.
    pub number: u32,
    pub replies: u32,
    pub form: Form,
    /// A text or an error unchanged, a number in digits, a list or the replies of a pipeline as
    /// JSON; empty for a list that is not read.
    pub content: &'a [u8],
    /// The first error among them, without its type byte.
    pub error: Option<&'a [u8]>,
}

/// The type of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Number,
    Nil,
    List,
    Error,
}

impl Form {
    pub fn word(self) -> &'static str {
        match self {
            Form::Text => "text",
            Form::Number => "number",
            Form::Nil => "nil",
            Form::List => "list",
            Form::Error => "error",
        }
    }
}

impl<'a> RedisAnswer<'a> {
    /// Its fields by name: `value`, `type`, and for an error `error` (its first word).
    pub fn fields(self) -> impl Iterator<Item = (&'a str, Field<'a>)> {
        ["value", "type", "error"]
            .into_iter()
            .filter_map(move |name| Some((name, self.field(name)?)))
    }

    pub fn field(self, name: &str) -> Option<Field<'a>> {
        match (name, self.form) {
            ("value", Form::Error) => None,
            ("value", Form::Nil) => Some(Field::Null),
            ("value", Form::Number) => {
                let digits = std::str::from_utf8(self.content).ok()?;
                digits.parse().ok().map(Field::Number)
            }
            ("value", _) => Some(Field::Bytes(self.content)),
            ("type", form) => Some(Field::Bytes(form.word().as_bytes())),
            ("error", _) => self.error_word().map(Field::Bytes),
            _ => None,
        }
    }

    /// The first word of its error: `WRONGTYPE`.
    pub fn error_word(self) -> Option<&'a [u8]> {
        self.error.map(first_word)
    }
}

fn first_word(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == b' ').next().unwrap_or_default()
}

/// The position of data that is returned.
#[derive(Clone)]
enum ReplyPlace<'a> {
    Input(&'a [u8]),
    Room(Range<usize>),
}

impl<'a> ReplyPlace<'a> {
    fn within<'r>(self, room: &'r [u8]) -> &'r [u8]
    where
        'a: 'r,
    {
        match self {
            ReplyPlace::Input(bytes) => bytes,
            ReplyPlace::Room(range) => room.get(range).unwrap_or_default(),
        }
    }
}

/// An event whose data may be in several places.
enum Event<'a> {
    Message(ReplyPlace<'a>),
    Refused(ReplyPlace<'a>),
    Answer { asked: Asked, form: Form, content: ReplyPlace<'a>, error: Option<ReplyPlace<'a>> },
}

impl Client {
    /// Registers sent commands with this many replies; returns the number of their answer. Their
    /// content is returned only if it is read.
    pub fn ask(&mut self, replies: u32, is_read: bool) -> u32 {
        // 0 marks unsolicited data.
        self.number = self.number.checked_add(1).unwrap_or(1);
        self.asked.push_back(Asked { number: self.number, replies, left: replies, is_read });
        self.number
    }

    /// Bytes of an incomplete reply.
    pub fn half(&self) -> usize {
        self.held.len()
    }

    pub fn heap_bytes(&self) -> usize {
        let asked = self.asked.capacity() * size_of::<Asked>();
        self.held.capacity() + self.gathered.capacity() + asked + self.scan.heap_bytes()
    }

    /// Reads up to the next event for the caller; its data is in the input or in `room`. A reply
    /// has at most `limit` bytes.
    ///
    /// # Errors
    /// Input that is not RESP2, or exceeds a limit. Nothing is read after it.
    pub fn next<'a: 'r, 'r>(
        &mut self,
        rest: &mut &'a [u8],
        limit: usize,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<Came<'r>>, Violation> {
        room.clear();
        std::mem::swap(room, &mut self.gathered);
        let event = loop {
            let Some((reply, found)) = self.next_reply(rest, limit)? else {
                // Other replies of the pipeline are still missing.
                if !room.is_empty() {
                    self.gathered = std::mem::take(room);
                }
                return Ok(None);
            };
            let event = match reply {
                Reply::Input(reply) => self.take(reply, found, Some(reply), room)?,
                Reply::Held(reply) => self.take(&reply, found, None, room)?,
            };
            if let Some(event) = event {
                break event;
            }
        };
        let room = &**room;
        Ok(Some(match event {
            Event::Message(place) => Came::Message(place.within(room)),
            Event::Refused(place) => Came::Refused(place.within(room)),
            Event::Answer { asked, form, content, error } => Came::Answer(RedisAnswer {
                number: asked.number,
                replies: asked.replies,
                form,
                content: content.within(room),
                error: error.map(|place| place.within(room)),
            }),
        }))
    }

    /// The next complete reply. An incomplete one is kept.
    fn next_reply<'a>(
        &mut self,
        rest: &mut &'a [u8],
        limit: usize,
    ) -> Result<Option<(Reply<'a>, Found)>, Violation> {
        if rest.is_empty() {
            return Ok(None);
        }
        if self.held.is_empty() {
            let Some(found) = self.scan.next(rest, limit)? else {
                self.held.extend_from_slice(rest);
                *rest = &[];
                return Ok(None);
            };
            let (reply, behind) = rest.split_at(found.bytes);
            *rest = behind;
            return Ok(Some((Reply::Input(reply), found)));
        }
        let before = self.held.len();
        self.held.extend_from_slice(rest);
        let Some(found) = self.scan.next(&self.held, limit)? else {
            *rest = &[];
            return Ok(None);
        };
        *rest = &rest[found.bytes.saturating_sub(before).min(rest.len())..];
        let mut reply = std::mem::take(&mut self.held);
        reply.truncate(found.bytes);
        Ok(Some((Reply::Held(reply), found)))
    }

    /// Assigns a reply to its command. Data that is not in the input is copied.
    fn take<'a>(
        &mut self,
        reply: &[u8],
        found: Found,
        input: Option<&'a [u8]>,
        room: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, Violation> {
        let is_message = self.is_subscribed && Message::is_one(reply);
        if is_message {
            // It may arrive between the replies of a pipeline.
            std::mem::swap(room, &mut self.gathered);
        }
        let mut given = |range: Range<usize>| match input {
            Some(input) => ReplyPlace::Input(&input[range]),
            None => {
                let begin = room.len();
                room.extend_from_slice(&reply[range]);
                ReplyPlace::Room(begin..room.len())
            }
        };
        if is_message {
            return Ok(Some(Event::Message(given(0..reply.len()))));
        }
        let Some(asked) = self.asked.front_mut() else {
            let error = found.error.ok_or(Violation::Unasked)?;
            return Ok(Some(Event::Refused(given(error))));
        };
        asked.left -= 1;
        let asked = *asked;
        if reply[0] == b'*'
            && let Some(subscriptions) = subscriptions(reply)
        {
            self.is_subscribed = subscriptions > 0;
        }
        let is_alone = asked.replies == 1;
        if is_alone && found.error.as_ref().is_none_or(|error| error.start == 1) {
            let (form, range) = simple(reply);
            if form != Form::List {
                self.asked.pop_front();
                let content = given(range);
                let error = (form == Form::Error).then(|| content.clone());
                return Ok(Some(Event::Answer { asked, form, content, error }));
            }
        }
        if let Some(error) = found.error.filter(|_| self.error.is_none()) {
            self.error = Some(reply[error].into());
        }
        if asked.is_read {
            if !is_alone {
                room.push(if room.is_empty() { b'[' } else { b',' });
            }
            write_json(&mut &*reply, room);
        }
        if asked.left > 0 {
            return Ok(None);
        }
        if asked.is_read && !is_alone {
            room.push(b']');
        }
        self.asked.pop_front();
        let content = ReplyPlace::Room(0..room.len());
        let error = self.error.take().map(|error| {
            let begin = room.len();
            room.extend_from_slice(&error);
            ReplyPlace::Room(begin..room.len())
        });
        Ok(Some(Event::Answer { asked, form: Form::List, content, error }))
    }
}

/// A reply that is complete.
enum Reply<'a> {
    Input(&'a [u8]),
    Held(Vec<u8>),
}

/// The type of a reply, and the range of its value; for a list all of it.
fn simple(reply: &[u8]) -> (Form, Range<usize>) {
    let all = 0..reply.len();
    let Ok(Some((head, bytes))) = head(reply) else { return (Form::List, all) };
    let line = 1..bytes - 2;
    match head {
        Head::Status(_) => (Form::Text, line),
        Head::Error(_) => (Form::Error, line),
        Head::Number(_) => (Form::Number, line),
        Head::Nothing => (Form::Nil, 0..0),
        Head::Text(length) => {
            let length = text(&mut &reply[bytes..], length).len();
            (Form::Text, bytes..bytes + length)
        }
        Head::List(_) => (Form::List, all),
    }
}
