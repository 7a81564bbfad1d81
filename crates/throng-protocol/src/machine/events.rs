//! Server-sent events: see [`crate::events`].

use throng_base::Said;

use super::{
    Breach, Event, Fields, HttpError, Input, Lent, Nature, Parts, ProtocolMachine, Resume, Traits,
};
use crate::events::{EventError, EventMessage, EventReader};

impl ProtocolMachine for EventReader {
    type Breach = EventError;

    fn traits(&self) -> Traits {
        Traits { messages: true, ..Traits::default() }
    }

    #[inline]
    fn is_stream(&self) -> bool {
        true
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, EventError> {
        self.next(input, &lent.limits, &mut lent.room, out)
    }

    fn parts(message: &[u8]) -> Parts<'_> {
        let event = EventMessage::of(message);
        Parts { content: event.data, fields: Fields::Event(event) }
    }

    fn end(&mut self) -> Result<bool, HttpError> {
        self.close()
    }

    fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        self.drained(out)
    }

    fn closed(&self, _: Option<u16>, _: &str) -> Said {
        say!("the target ended the event stream")
    }

    fn resume(&self) -> Option<Resume> {
        self.resume()
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl Breach for EventError {
    fn said(&self) -> Said {
        Said::of_others(self.to_string())
    }

    fn nature(&self) -> Nature<'_> {
        match self {
            EventError::Http(error) => Nature::Http(error),
            EventError::Http2(violation) => Nature::Http2(violation),
            EventError::TooLarge { .. } => Nature::TooLarge,
            EventError::Reset(_) => Nature::Reset,
            EventError::NotEvents(_) | EventError::Content(_) => Nature::Malformed,
        }
    }
}
