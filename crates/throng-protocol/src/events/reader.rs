//! An event stream as HTTP/1.1 carries it.

use super::error::{EventError, NotEvents};
use super::parser::EventParser;
use crate::http1::{ContentDecoder, Event, Excerpt, Head, Limits, ResponseReader};

/// Whether an answer is an event stream.
pub fn check_head(head: &Head<'_>) -> Result<(), NotEvents> {
    if head.status != 200 {
        return Err(NotEvents::Status(head.status));
    }
    let Some(kind) = head.headers.get("content-type") else {
        return Err(NotEvents::ContentTypeMissing);
    };
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or(kind).trim_ascii();
    match essence.eq_ignore_ascii_case(b"text/event-stream") {
        true => Ok(()),
        false => Err(NotEvents::ContentType(Excerpt::of(kind))),
    }
}

/// Reads one answer from its first byte on. After an error it is of no more use.
#[derive(Debug, Default)]
pub struct EventReader(Option<Box<Reading>>);

#[derive(Debug, Default)]
struct Reading {
    http: ResponseReader,
    content: Option<ContentDecoder>,
    events: EventParser,
}

/// What the head and the body of the answer say.
struct Sink<'a, S> {
    content: &'a mut Option<ContentDecoder>,
    events: &'a mut EventParser,
    bytes_max: usize,
    sink: &'a mut S,
    goes_on: bool,
}

impl EventReader {
    /// One that has read nothing, and whose stream goes on where another was lost.
    pub fn since(last_id: &[u8]) -> EventReader {
        let reading = Reading { events: EventParser::since(last_id), ..Reading::default() };
        EventReader(Some(Box::new(reading)))
    }

    /// The last id that was said, empty without one.
    pub fn last_id(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |reading| reading.events.last_id())
    }

    pub fn heap_bytes(&self) -> usize {
        let bytes = |reading: &Reading| size_of::<Reading>() + reading.events.heap_bytes();
        self.0.as_deref().map_or(0, bytes)
    }

    /// Reads bytes and gives out each event as [`EventParser::receive`] does; whether the answer is
    /// complete.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        bytes_max: usize,
        sink: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, EventError> {
        let Reading { http, content, events } = &mut **self.0.get_or_insert_default();
        let mut sink = Sink { content, events, bytes_max, sink, goes_on: true };
        let mut verdict = Ok(());
        let progress = http.receive(bytes, limits, &mut |event| {
            if verdict.is_ok() && sink.goes_on {
                verdict = sink.take(&event);
            }
        });
        verdict?;
        Ok(progress.map_err(EventError::Http)?.complete)
    }
}

impl<S: FnMut(&[u8]) -> bool> Sink<'_, S> {
    fn take(&mut self, event: &Event<'_>) -> Result<(), EventError> {
        match event {
            Event::Head(head) => {
                check_head(head).map_err(EventError::NotEvents)?;
                *self.content = ContentDecoder::for_head(head, u64::MAX)?;
                Ok(())
            }
            Event::Body(bytes) => match self.content.take() {
                None => self.body(bytes),
                Some(mut decoder) => {
                    let decoded = decoder.write(bytes, &mut |piece| self.body(piece));
                    *self.content = Some(decoder);
                    decoded
                }
            },
            Event::Informational(_) | Event::Trailers(_) => Ok(()),
        }
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), EventError> {
        if self.goes_on {
            self.goes_on = self.events.receive(bytes, self.bytes_max, self.sink)?;
        }
        Ok(())
    }
}
