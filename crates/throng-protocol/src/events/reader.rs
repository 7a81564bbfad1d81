//! An event stream over HTTP: an HTTP/1.1 response from its first byte on, or an HTTP/2 stream.

use super::error::{EventError, NotEvents};
use super::parser::{EventParser, Form, Resume};
use crate::http1::{ContentDecoder, Event as Part, Excerpt, Head, HttpError, ResponseReader};
use crate::http2::{self, Lasting, Token};
use crate::input::{Event, Input, Limits};

/// Media types of JSON lines. There is no standard: these are the ones in use.
const JSON_LINES: [&[u8]; 5] = [
    b"application/x-ndjson",
    b"application/ndjson",
    b"application/jsonl",
    b"application/jsonlines",
    b"application/x-jsonlines",
];

/// Whether a response is an event stream, or JSON lines.
pub fn check_head(head: &Head<'_>) -> Result<(), NotEvents> {
    form(head).map(|_| ())
}

fn form(head: &Head<'_>) -> Result<Form, NotEvents> {
    if head.status != 200 {
        return Err(NotEvents::Status(head.status));
    }
    let Some(kind) = head.headers.get("content-type") else {
        return Err(NotEvents::ContentTypeMissing);
    };
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or(kind).trim_ascii();
    if essence.eq_ignore_ascii_case(b"text/event-stream") {
        return Ok(Form::Events);
    }
    match JSON_LINES.iter().any(|lines| essence.eq_ignore_ascii_case(lines)) {
        true => Ok(Form::Lines),
        false => Err(NotEvents::ContentType(Excerpt::of(kind))),
    }
}

/// Most bytes that a piece of a body may decode to. Real streams stay far below.
const DECODED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads one response. Unusable after an error.
#[derive(Debug)]
pub struct EventReader(Box<Reading>);

#[derive(Debug)]
struct Reading {
    carrier: Carrier,
    body: Body,
}

#[derive(Debug)]
enum Carrier {
    Http1(ResponseReader),
    Http2(Lasting),
}

/// The body, and what the head declares about it.
#[derive(Debug)]
struct Body {
    content: Option<Content>,
    events: EventParser,
    /// An error in the head, reported after the head.
    fault: Option<EventError>,
    /// The body is complete; and that was reported.
    is_over: bool,
    is_told: bool,
}

/// A body that is decoded before it is parsed.
#[derive(Debug)]
struct Content {
    decoder: ContentDecoder,
    decoded: Vec<u8>,
    /// How much of it was read.
    read: usize,
}

impl EventReader {
    /// A new reader, which resumes a lost stream.
    pub fn since(resume: Resume) -> EventReader {
        EventReader::of(Carrier::Http1(ResponseReader::new()), resume)
    }

    /// The same for a stream over HTTP/2 whose response has not started.
    pub fn over_http2(stream: Lasting, resume: Resume) -> EventReader {
        EventReader::of(Carrier::Http2(stream), resume)
    }

    fn of(carrier: Carrier, resume: Resume) -> EventReader {
        let events = EventParser::since(resume);
        let body = Body { content: None, events, fault: None, is_over: false, is_told: false };
        EventReader(Box::new(Reading { carrier, body }))
    }

    /// As [`EventParser::resume`].
    pub fn resume(&self) -> Option<Resume> {
        self.0.body.events.resume()
    }

    pub fn heap_bytes(&self) -> usize {
        let Reading { carrier, body } = &*self.0;
        let carried = match carrier {
            Carrier::Http1(_) => 0,
            Carrier::Http2(stream) => stream.heap_bytes(),
        };
        let decoded = body.content.as_ref().map_or(0, |content| content.decoded.capacity());
        size_of::<Reading>() + carried + decoded + body.events.heap_bytes()
    }

    /// Reads up to the next event, or the head or the end of the response.
    pub fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        limits: &Limits,
        room: &'r mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, EventError> {
        let Reading { carrier, body } = &mut *self.0;
        if let Some(fault) = body.fault.take() {
            return Err(fault);
        }
        if body.next(input, limits.websocket.message_bytes_max, room)? {
            return Ok(Some(Event::Message(room)));
        }
        if body.is_over {
            return Ok((!std::mem::replace(&mut body.is_told, true)).then_some(Event::END));
        }
        let mut rest = input.rest();
        let event = match carrier {
            Carrier::Http1(http) => {
                let part = http.next(&mut rest, &limits.http1, room).map_err(EventError::Http)?;
                part.map(|part| http2::Event::Reply { token: Token(0), part })
            }
            Carrier::Http2(stream) => {
                let event = stream.next(input.now, &mut rest, &limits.http2, room, out);
                event.map_err(EventError::Http2)?
            }
        };
        input.leave(rest);
        match &event {
            Some(http2::Event::Reply { part, .. }) => body.take(part, input)?,
            Some(http2::Event::Reset { code, .. }) => return Err(EventError::Reset(*code)),
            Some(http2::Event::Failed { violation, .. }) => {
                return Err(EventError::Http2(*violation));
            }
            _ => {}
        }
        Ok(event.map(Event::Http))
    }

    /// The peer has closed: as [`ResponseReader::close`].
    pub fn close(&mut self) -> Result<bool, HttpError> {
        match &mut self.0.carrier {
            Carrier::Http1(http) => http.close(),
            Carrier::Http2(_) => Ok(false),
        }
    }

    /// The socket has taken everything written. True if more was written now.
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        match &mut self.0.carrier {
            Carrier::Http2(stream) => stream.drained(out),
            Carrier::Http1(_) => false,
        }
    }
}

impl Body {
    fn take(&mut self, part: &Part<'_>, input: &mut Input<'_>) -> Result<(), EventError> {
        match part {
            Part::Head(head) => self.fault = self.head(head).err(),
            Part::Body(bytes) => match &mut self.content {
                None => input.leave_body(bytes.len()),
                Some(content) => content.decode(bytes)?,
            },
            Part::End => self.is_over = true,
            Part::Informational(_) | Part::Trailers(_) => {}
        }
        Ok(())
    }

    fn head(&mut self, head: &Head<'_>) -> Result<(), EventError> {
        self.events.set_form(form(head).map_err(EventError::NotEvents)?);
        let decoder = ContentDecoder::for_head(head, u64::MAX)?;
        self.content = decoder.map(|decoder| Content { decoder, decoded: Vec::new(), read: 0 });
        Ok(())
    }

    /// Whether an event is complete, in `room`.
    fn next(
        &mut self,
        input: &mut Input<'_>,
        bytes_max: usize,
        room: &mut Vec<u8>,
    ) -> Result<bool, EventError> {
        let mut rest = match &self.content {
            None => input.body(),
            Some(content) => &content.decoded[content.read..],
        };
        let is_event = self.events.next(&mut rest, bytes_max, room)?;
        let left = rest.len();
        match &mut self.content {
            None => input.leave_body(left),
            Some(content) if left > 0 => content.read = content.decoded.len() - left,
            Some(content) => (content.decoded, content.read) = (Vec::new(), 0),
        }
        match is_event || !self.is_over {
            true => Ok(is_event),
            false => self.events.finish(bytes_max, room),
        }
    }
}

impl Content {
    fn decode(&mut self, bytes: &[u8]) -> Result<(), EventError> {
        let decoded = &mut self.decoded;
        self.decoder.write(bytes, &mut |piece| {
            decoded.extend_from_slice(piece);
            match decoded.len() > DECODED_BYTES_MAX {
                true => Err(EventError::TooLarge { bytes_max: DECODED_BYTES_MAX }),
                false => Ok(()),
            }
        })
    }
}
