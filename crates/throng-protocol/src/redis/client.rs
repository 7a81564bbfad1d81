//! The client side of a connection: which commands wait for their replies, and whose a reply is.

use std::collections::VecDeque;
use std::ops::Range;

use super::json::write_json;
use super::message::{Message, subscriptions};
use super::reply::text;
use super::scan::{Found, Head, Scan, head};
use super::violation::Violation;
use crate::field::Field;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Client {
    /// The beginning of a reply.
    held: Vec<u8>,
    scan: Scan,
    asked: VecDeque<Asked>,
    /// What was asked last.
    number: u32,
    /// There are subscriptions: messages may come.
    is_subscribed: bool,
    /// The replies that came of a pipeline whose others have not, as JSON.
    gathered: Vec<u8>,
    /// The first error among them.
    error: Option<Box<[u8]>>,
}

/// Commands that were sent together, a pipeline if there are several.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: u32,
    replies: u32,
    /// Of these so many have not come.
    left: u32,
    /// Whether somebody looks at what they say.
    is_read: bool,
}

/// What came. Nothing of it is the client's.
#[derive(Clone, Copy, Debug)]
pub enum Came<'a> {
    /// See [`Message::of`].
    Message(&'a [u8]),
    Answer(Answer<'a>),
    /// An error before anything was asked: the server takes no more clients.
    Refused(&'a [u8]),
}

/// The replies to commands that were sent together.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What [`Client::ask`] gave.
    pub number: u32,
    pub replies: u32,
    pub form: Form,
    /// A text or an error as it is, a number in digits, a list or the replies of a pipeline as
    /// JSON; of a list that nobody reads it is empty.
    pub content: &'a [u8],
    /// The first error among them, without its mark.
    pub error: Option<&'a [u8]>,
}

/// What a reply is.
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

impl<'a> Answer<'a> {
    /// What it says, by name: `value`, `type`, and of an error `error` (its first word).
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

/// Where something lies that is given out.
#[derive(Clone)]
enum Place<'a> {
    Input(&'a [u8]),
    Room(Range<usize>),
}

impl<'a> Place<'a> {
    fn within<'r>(self, room: &'r [u8]) -> &'r [u8]
    where
        'a: 'r,
    {
        match self {
            Place::Input(bytes) => bytes,
            Place::Room(range) => room.get(range).unwrap_or_default(),
        }
    }
}

/// What came, while what it is about lies in several places.
enum Event<'a> {
    Message(Place<'a>),
    Refused(Place<'a>),
    Answer { asked: Asked, form: Form, content: Place<'a>, error: Option<Place<'a>> },
}

impl Client {
    /// Commands are sent that so many replies follow; gives the number of their answer. What they
    /// say is given out only if somebody reads it.
    pub fn ask(&mut self, replies: u32, is_read: bool) -> u32 {
        // 0 is for what nobody has asked for.
        self.number = self.number.checked_add(1).unwrap_or(1);
        self.asked.push_back(Asked { number: self.number, replies, left: replies, is_read });
        self.number
    }

    /// How many bytes of a reply have come that is not complete.
    pub fn half(&self) -> usize {
        self.held.len()
    }

    pub fn heap_bytes(&self) -> usize {
        let asked = self.asked.capacity() * size_of::<Asked>();
        self.held.capacity() + self.gathered.capacity() + asked + self.scan.heap_bytes()
    }

    /// Reads up to the next thing that came for somebody; what it is about lies in the input or in
    /// `room`. A reply has at most `limit` bytes.
    ///
    /// # Errors
    /// What is not RESP2, or larger than allowed. Behind it nothing is read.
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
                // The other replies of the pipeline are still to come.
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
            Event::Answer { asked, form, content, error } => Came::Answer(Answer {
                number: asked.number,
                replies: asked.replies,
                form,
                content: content.within(room),
                error: error.map(|place| place.within(room)),
            }),
        }))
    }

    /// The next reply that is complete. What came of another one is held.
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

    /// Whose a reply is. Where it does not lie in the input, what is given out of it is copied.
    fn take<'a>(
        &mut self,
        reply: &[u8],
        found: Found,
        input: Option<&'a [u8]>,
        room: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, Violation> {
        let is_message = self.is_subscribed && Message::is_one(reply);
        if is_message {
            // It may come between the replies of a pipeline.
            std::mem::swap(room, &mut self.gathered);
        }
        let mut given = |range: Range<usize>| match input {
            Some(input) => Place::Input(&input[range]),
            None => {
                let begin = room.len();
                room.extend_from_slice(&reply[range]);
                Place::Room(begin..room.len())
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
        let content = Place::Room(0..room.len());
        let error = self.error.take().map(|error| {
            let begin = room.len();
            room.extend_from_slice(&error);
            Place::Room(begin..room.len())
        });
        Ok(Some(Event::Answer { asked, form: Form::List, content, error }))
    }
}

/// A reply that is complete.
enum Reply<'a> {
    Input(&'a [u8]),
    Held(Vec<u8>),
}

/// What a reply is, and where its value lies in it; of a list all of it.
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
