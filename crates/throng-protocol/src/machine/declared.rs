//! Declared protocols and delimited records: see [`crate::framed`].

use throng_base::Said;

use super::{Breach, Ends, Event, Input, Lent, ProtocolMachine, Traits};
use crate::framed::{Broken, PacketReader};

impl ProtocolMachine for PacketReader {
    type Breach = Broken;

    fn traits(&self) -> Traits {
        Traits { messages: true, ..Traits::default() }
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        _: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, Broken> {
        let mut rest = input.rest();
        let event = match input.ends {
            Ends::Records(records) => {
                self.next(records, &mut rest, &mut lent.room)?.map(Event::Message)
            }
            _ => input.whole(&mut rest),
        };
        input.leave(rest);
        Ok(event)
    }

    fn half(&self) -> usize {
        self.held().len()
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl Breach for Broken {
    fn said(&self) -> Said {
        self.said()
    }
}
