//! The body of an event stream, in whatever pieces it comes. Its bytes are given out as they are:
//! what is no UTF-8 in them stays.

use std::time::Duration;

use memchr::memchr2;

use super::error::EventError;
use super::message::EventMessage;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// So much of a buffer is kept between events; a longer one is given back.
const KEPT_BYTES_MAX: usize = 512;

/// A client does not come back with a longer id: it goes into a header.
const LAST_ID_BYTES_MAX: usize = 4096;

/// What a client that has lost a stream knows when it comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// The last id of an event that was complete, for `Last-Event-ID`; empty without one.
    pub last_id: Vec<u8>,
    /// How long it has to wait before, if the stream has said that.
    pub after: Option<Duration>,
}

/// What the body is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Fields of events, as the standard has it.
    #[default]
    Events,
    /// Each line is the data of an event, as in JSON lines; empty lines are none.
    Lines,
}

/// Reads events. After an error it is of no more use.
#[derive(Debug, Default)]
pub struct EventParser {
    form: Form,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    data: Vec<u8>,
    name: Vec<u8>,
    /// The last id, also of events that are not complete.
    id: Vec<u8>,
    resume: Resume,
    /// The event has a `data` field.
    has_data: bool,
    /// The last line ended with a CR: an LF belongs to it.
    after_cr: bool,
    /// The first bytes have come; what follows cannot be a byte order mark.
    begun: bool,
}

impl EventParser {
    /// One that goes on where another stream was lost.
    pub fn since(resume: Resume) -> EventParser {
        EventParser { id: resume.last_id.clone(), resume, ..EventParser::default() }
    }

    /// What the head says that the body is made of.
    pub fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    /// What a client comes back with; None before anything of that was said.
    pub fn resume(&self) -> Option<Resume> {
        let mut resume = self.resume.clone();
        if resume.last_id.len() > LAST_ID_BYTES_MAX {
            resume.last_id = Vec::new();
        }
        (resume != Resume::default()).then_some(resume)
    }

    pub fn heap_bytes(&self) -> usize {
        let all = [&self.line, &self.data, &self.name, &self.id, &self.resume.last_id];
        all.into_iter().map(Vec::capacity).sum()
    }

    /// Reads more of the body up to the end of the next event, which is then in `room` as a message
    /// that [`EventMessage::of`] takes apart; whether there is one.
    pub fn next(
        &mut self,
        bytes: &mut &[u8],
        bytes_max: usize,
        room: &mut Vec<u8>,
    ) -> Result<bool, EventError> {
        let mut is_event = false;
        while !is_event && !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr2(b'\r', b'\n', bytes) else {
                self.line.extend_from_slice(std::mem::take(bytes));
                return check(self.line.len(), bytes_max).map(|()| false);
            };
            self.after_cr = bytes[end] == b'\r';
            let line = &bytes[..end];
            *bytes = &bytes[end + 1..];
            is_event = match self.line.is_empty() {
                true => self.line(line, bytes_max, room)?,
                false => {
                    self.line.extend_from_slice(line);
                    let mut line = std::mem::take(&mut self.line);
                    let is_event = self.line(&line, bytes_max, room)?;
                    line.clear();
                    self.line = small(line);
                    is_event
                }
            };
        }
        Ok(is_event)
    }

    /// The body is complete: gives out a last line of [`Form::Lines`] that has no end. An event
    /// that is not complete is none.
    pub fn finish(&mut self, bytes_max: usize, room: &mut Vec<u8>) -> Result<bool, EventError> {
        let line = std::mem::take(&mut self.line);
        match self.form {
            Form::Lines => self.line(&line, bytes_max, room),
            Form::Events => Ok(false),
        }
    }

    /// A line without its end; whether an event ends with it.
    fn line(
        &mut self,
        line: &[u8],
        bytes_max: usize,
        room: &mut Vec<u8>,
    ) -> Result<bool, EventError> {
        check(line.len(), bytes_max)?;
        let line = match std::mem::replace(&mut self.begun, true) {
            false => line.strip_prefix(BOM).unwrap_or(line),
            true => line,
        };
        if self.form == Form::Lines {
            let is_event = !line.trim_ascii().is_empty();
            if is_event {
                EventMessage { name: b"", id: b"", data: line }.write(room);
            }
            return Ok(is_event);
        }
        if line.is_empty() {
            return Ok(self.dispatch(room));
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                check(self.data.len(), bytes_max)?;
            }
            b"event" => replace(&mut self.name, value),
            b"id" if !value.contains(&0) => replace(&mut self.id, value),
            b"retry" => self.resume.after = milliseconds(value).or(self.resume.after),
            // A comment, or a field that the standard does not have: both are ignored.
            _ => {}
        }
        Ok(false)
    }

    /// An empty line ends the event. One without data is none.
    fn dispatch(&mut self, room: &mut Vec<u8>) -> bool {
        if self.resume.last_id != self.id {
            replace(&mut self.resume.last_id, &self.id);
        }
        let is_event = std::mem::take(&mut self.has_data);
        if is_event {
            EventMessage { name: &self.name, id: &self.id, data: &self.data }.write(room);
        }
        for buffer in [&mut self.data, &mut self.name] {
            buffer.clear();
            *buffer = small(std::mem::take(buffer));
        }
        is_event
    }
}

/// Only digits are a valid time (in milliseconds). Anything longer than 49 days counts as 49 days.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let add = |sum: u32, digit: &u8| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    is_number.then(|| Duration::from_millis(u64::from(value.iter().fold(0, add))))
}

fn replace(kept: &mut Vec<u8>, value: &[u8]) {
    kept.clear();
    kept.extend_from_slice(value);
}

/// An empty buffer, if it is worth being kept.
fn small(buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() <= KEPT_BYTES_MAX { buffer } else { Vec::new() }
}

fn check(bytes: usize, bytes_max: usize) -> Result<(), EventError> {
    if bytes > bytes_max { Err(EventError::TooLarge { bytes_max }) } else { Ok(()) }
}
