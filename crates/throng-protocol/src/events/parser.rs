//! The body of an event stream, in pieces of any size. Its bytes are unchanged: invalid UTF-8
//! stays.

use std::time::Duration;

use memchr::memchr2;

use super::error::EventError;
use super::message::EventMessage;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Capacity that a buffer keeps between events.
const KEPT_BYTES_MAX: usize = 512;

/// A client does not send a longer ID: it goes into a header.
const LAST_ID_BYTES_MAX: usize = 4096;

/// What a client knows when it resumes a lost stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// The last ID of a complete event, for `Last-Event-ID`; empty without one.
    pub last_id: Vec<u8>,
    /// How long it must wait first, if the stream has set that.
    pub after: Option<Duration>,
}

/// Format of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Fields of events, as in the standard.
    #[default]
    Events,
    /// Each line is the data of an event, as in JSON lines; empty lines are ignored.
    Lines,
}

/// Reads events. Unusable after an error.
#[derive(Debug, Default)]
pub struct EventParser {
    form: Form,
    /// The start of an incomplete line.
    line: Vec<u8>,
    data: Vec<u8>,
    name: Vec<u8>,
    /// The last ID, including those of incomplete events.
    id: Vec<u8>,
    resume: Resume,
    /// The event has a `data` field.
    has_data: bool,
    /// The last line ended with CR: an LF belongs to it.
    after_cr: bool,
    /// The first bytes have arrived; later ones cannot be a byte order mark.
    begun: bool,
}

impl EventParser {
    /// A parser that resumes a lost stream.
    pub fn since(resume: Resume) -> EventParser {
        EventParser { id: resume.last_id.clone(), resume, ..EventParser::default() }
    }

    /// Sets the format that the head declares.
    pub fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    /// What a client needs to resume; `None` before the stream has set any of it.
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

    /// Reads more of the body, up to the end of the next event, which is then in `room` as a
    /// message for [`EventMessage::of`]; true if there is one.
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

    /// The body is complete: returns a last line of [`Form::Lines`] without a line end. Incomplete
    /// events are dropped.
    pub fn finish(&mut self, bytes_max: usize, room: &mut Vec<u8>) -> Result<bool, EventError> {
        let line = std::mem::take(&mut self.line);
        match self.form {
            Form::Lines => self.line(&line, bytes_max, room),
            Form::Events => Ok(false),
        }
    }

    /// A line without its end; true if it ends an event.
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
            // A comment, or an unknown field: both are ignored.
            _ => {}
        }
        Ok(false)
    }

    /// An empty line ends the event. Events without data are ignored.
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

/// An empty buffer, or none if the old one is too large to keep.
fn small(buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() <= KEPT_BYTES_MAX { buffer } else { Vec::new() }
}

fn check(bytes: usize, bytes_max: usize) -> Result<(), EventError> {
    if bytes > bytes_max { Err(EventError::TooLarge { bytes_max }) } else { Ok(()) }
}
