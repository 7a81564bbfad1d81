//! Redis: see [`crate::redis`].

use throng_base::Said;

use super::{Answered, Breach, Event, Fields, Input, Lent, Nature, Parts, ProtocolMachine, Traits};
use crate::redis::{Came, Client, Message, Violation};

impl ProtocolMachine for Client {
    type Breach = Violation;

    fn traits(&self) -> Traits {
        Traits { messages: true, ..Traits::default() }
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        _: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, Violation> {
        let mut rest = input.rest();
        let bytes_max = lent.limits.websocket.message_bytes_max;
        let came = self.next(&mut rest, bytes_max, &mut lent.room)?;
        input.leave(rest);
        Ok(came.map(|came| match came {
            Came::Message(message) => Event::Message(message),
            Came::Answer(answer) => Event::Answered(Answered::Redis(answer)),
            Came::Refused(reason) => {
                let reason = std::str::from_utf8(reason).unwrap_or_default();
                Event::Closed { code: None, reason }
            }
        }))
    }

    fn parts(message: &[u8]) -> Parts<'_> {
        let message = Message::of(message);
        Parts { content: message.payload, fields: Fields::Redis(message) }
    }

    fn closed(&self, _: Option<u16>, reason: &str) -> Said {
        say!("the Redis server closed the connection: {reason}")
    }

    fn half(&self) -> usize {
        self.half()
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl Breach for Violation {
    fn said(&self) -> Said {
        self.said()
    }

    fn nature(&self) -> Nature<'_> {
        match self {
            Violation::Foreign(_) => Nature::Foreign,
            violation if violation.is_our_limit() => Nature::TooLarge,
            _ => Nature::Malformed,
        }
    }
}
