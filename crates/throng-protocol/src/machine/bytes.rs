//! Raw bytes: see [`crate::stream`].

use throng_base::Said;

use super::{Breach, Ends, Event, Input, Lent, Nature, ProtocolMachine, Traits};
use crate::stream::{StreamError, StreamReader, Until};

impl ProtocolMachine for StreamReader {
    type Breach = StreamError;

    fn traits(&self) -> Traits {
        Traits::default()
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        _: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, StreamError> {
        let mut rest = input.rest();
        let event = match input.ends {
            Ends::Answer(answer) if !matches!(answer.until, Until::Any) => {
                self.next(&mut rest, answer, &mut lent.room)?.map(Event::Message)
            }
            _ => input.whole(&mut rest),
        };
        input.leave(rest);
        Ok(event)
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl Breach for StreamError {
    fn said(&self) -> Said {
        Said::of_others(self.to_string())
    }

    fn nature(&self) -> Nature<'_> {
        match self {
            StreamError::TooLarge { .. } => Nature::TooLarge,
        }
    }
}
