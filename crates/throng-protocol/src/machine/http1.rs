//! HTTP/1.1: see [`crate::http1`].

use throng_base::Said;

use super::{Breach, Event, HttpError, Input, Lent, Nature, ProtocolMachine, Traits};
use crate::http1::ResponseReader;
use crate::http2::{self, Token};

impl ProtocolMachine for ResponseReader {
    type Breach = HttpError;

    fn traits(&self) -> Traits {
        Traits { answers: true, ..Traits::default() }
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        _: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, HttpError> {
        let mut rest = input.rest();
        let part = self.next(&mut rest, &lent.limits.http1, &mut lent.room)?;
        input.leave(rest);
        Ok(part.map(|part| Event::Http(http2::Event::Reply { token: Token(0), part })))
    }

    fn end(&mut self) -> Result<bool, HttpError> {
        self.close()
    }

    /// The body belongs to the exchange; the head is small.
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Breach for HttpError {
    fn said(&self) -> Said {
        Said::of_others(self.to_string())
    }

    fn nature(&self) -> Nature<'_> {
        Nature::Http(self)
    }
}
