//! An event stream as HTTP carries it: an answer of HTTP/1.1 from its first byte on, or a stream of
//! HTTP/2.

use super::error::{EventError, NotEvents};
use super::parser::{EventParser, Form, Resume};
use crate::http1::{ContentDecoder, Event, Excerpt, Head, Limits, ResponseReader};
use crate::http2::{Lasting, Lent, Piece};

/// Media types of JSON lines. There is no standard: these are the ones in use.
const JSON_LINES: [&[u8]; 5] = [
    b"application/x-ndjson",
    b"application/ndjson",
    b"application/jsonl",
    b"application/jsonlines",
    b"application/x-jsonlines",
];

/// Whether an answer is an event stream, or JSON lines.
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

/// Reads one answer. After an error it is of no more use.
#[derive(Debug, Default)]
pub struct EventReader(Option<Box<Reading>>);

#[derive(Debug, Default)]
struct Reading {
    carrier: Carrier,
    body: Body,
}

#[derive(Debug)]
enum Carrier {
    Http1(ResponseReader),
    Http2(Lasting),
}

impl Default for Carrier {
    fn default() -> Carrier {
        Carrier::Http1(ResponseReader::new())
    }
}

/// What the head says of the body, and the body.
#[derive(Debug, Default)]
struct Body {
    content: Option<ContentDecoder>,
    events: EventParser,
}

/// Where events go.
struct Sink<'a, S> {
    bytes_max: usize,
    sink: &'a mut S,
    goes_on: bool,
}

impl EventReader {
    /// One that has read nothing, and whose stream goes on where another was lost.
    pub fn since(resume: Resume) -> EventReader {
        EventReader::of(Carrier::default(), resume)
    }

    /// The same of a stream over HTTP/2 whose answer has to begin.
    pub fn over_http2(stream: Lasting, resume: Resume) -> EventReader {
        EventReader::of(Carrier::Http2(stream), resume)
    }

    fn of(carrier: Carrier, resume: Resume) -> EventReader {
        let body = Body { content: None, events: EventParser::since(resume) };
        EventReader(Some(Box::new(Reading { carrier, body })))
    }

    /// As [`EventParser::resume`].
    pub fn resume(&self) -> Option<Resume> {
        self.0.as_ref()?.body.events.resume()
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.as_deref().map_or(0, |Reading { carrier, body }| {
            let carried = match carrier {
                Carrier::Http1(_) => 0,
                Carrier::Http2(stream) => stream.heap_bytes(),
            };
            size_of::<Reading>() + carried + body.events.heap_bytes()
        })
    }

    /// Reads bytes and gives out each event as [`EventParser::receive`] does; whether the answer is
    /// complete.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        lent: &mut Lent<'_>,
        bytes_max: usize,
        sink: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, EventError> {
        let Reading { carrier, body } = &mut **self.0.get_or_insert_default();
        let mut sink = Sink { bytes_max, sink, goes_on: true };
        let mut verdict = Ok(false);
        let complete = match carrier {
            Carrier::Http1(http) => {
                let progress = http.receive(bytes, limits, &mut |event| {
                    if verdict.is_ok() && sink.goes_on {
                        verdict = body.take(&event, &mut sink);
                    }
                });
                progress.map(|progress| progress.complete).map_err(EventError::Http)
            }
            Carrier::Http2(stream) => {
                let read = stream.receive(bytes, lent, &mut |piece| {
                    if verdict == Ok(false) && sink.goes_on {
                        verdict = body.take_piece(&piece, &mut sink);
                    }
                });
                read.map(|()| false).map_err(EventError::Http2)
            }
        };
        let complete = verdict? || complete?;
        if complete && sink.goes_on {
            body.events.finish(bytes_max, sink.sink)?;
        }
        Ok(complete)
    }

    /// Reads the beginning of an answer over HTTP/2, up to its head and no further: how many bytes
    /// that took. `told` gets the head.
    pub fn receive_head(
        &mut self,
        bytes: &[u8],
        lent: &mut Lent<'_>,
        told: &mut impl FnMut(&Head<'_>),
    ) -> Result<usize, EventError> {
        let Reading { carrier, body } = &mut **self.0.get_or_insert_default();
        let Carrier::Http2(stream) = carrier else { return Ok(0) };
        let mut verdict = Ok(false);
        let read = stream.receive_first(bytes, lent, &mut |piece| {
            if let Piece::Head(head) = &piece {
                told(head);
            }
            if verdict == Ok(false) {
                let mut sink = Sink { bytes_max: 0, sink: &mut |_: &[u8]| true, goes_on: true };
                verdict = body.take_piece(&piece, &mut sink);
            }
        });
        match (read, verdict?) {
            (Err(violation), _) => Err(EventError::Http2(violation)),
            (Ok(_), true) => Err(EventError::Ended),
            (Ok(used), false) => Ok(used),
        }
    }

    /// The socket has taken all that was written. True when more has been written now.
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        match self.0.as_deref_mut() {
            Some(Reading { carrier: Carrier::Http2(stream), .. }) => stream.drained(out),
            _ => false,
        }
    }
}

impl Body {
    fn take<S: FnMut(&[u8]) -> bool>(
        &mut self,
        event: &Event<'_>,
        sink: &mut Sink<'_, S>,
    ) -> Result<bool, EventError> {
        match event {
            Event::Head(head) => self.head(head)?,
            Event::Body(bytes) => self.bytes(bytes, sink)?,
            Event::Informational(_) | Event::Trailers(_) => {}
        }
        Ok(false)
    }

    /// Whether it was the end.
    fn take_piece<S: FnMut(&[u8]) -> bool>(
        &mut self,
        piece: &Piece<'_>,
        sink: &mut Sink<'_, S>,
    ) -> Result<bool, EventError> {
        match piece {
            Piece::Head(head) => self.head(head)?,
            Piece::Data(bytes) => self.bytes(bytes, sink)?,
            Piece::Trailers(_) => {}
            Piece::End => return Ok(true),
            Piece::Reset { code, .. } => return Err(EventError::Reset(*code)),
            Piece::Failed(violation) => return Err(EventError::Http2(*violation)),
        }
        Ok(false)
    }

    fn head(&mut self, head: &Head<'_>) -> Result<(), EventError> {
        self.events.set_form(form(head).map_err(EventError::NotEvents)?);
        self.content = ContentDecoder::for_head(head, u64::MAX)?;
        Ok(())
    }

    fn bytes<S: FnMut(&[u8]) -> bool>(
        &mut self,
        bytes: &[u8],
        sink: &mut Sink<'_, S>,
    ) -> Result<(), EventError> {
        let Body { content, events } = self;
        match content {
            None => sink.events(events, bytes),
            Some(decoder) => decoder.write(bytes, &mut |piece| sink.events(events, piece)),
        }
    }
}

impl<S: FnMut(&[u8]) -> bool> Sink<'_, S> {
    fn events(&mut self, events: &mut EventParser, bytes: &[u8]) -> Result<(), EventError> {
        if self.goes_on {
            self.goes_on = events.receive(bytes, self.bytes_max, self.sink)?;
        }
        Ok(())
    }
}
