//! HTTP/2: see [`crate::http2`].

use throng_base::Said;

use super::{Breach, Event, Input, Lent, Nature, ProtocolMachine, Traits};
use crate::http2::{Client, Violation};

impl ProtocolMachine for Client {
    type Breach = Violation;

    fn traits(&self) -> Traits {
        Traits { answers: true, multiplexes: true, ..Traits::default() }
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, Violation> {
        let mut rest = input.rest();
        let read = self.next(input.now, &mut rest, &lent.limits.http2, &mut lent.room, out)?;
        input.leave(rest);
        Ok(read.map(Event::Http))
    }

    #[inline]
    fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        self.drained(out)
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl Breach for Violation {
    fn said(&self) -> Said {
        Said::of_others(self.to_string())
    }

    fn nature(&self) -> Nature<'_> {
        Nature::Http2(self)
    }
}
