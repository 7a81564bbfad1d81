//! Databases: see [`crate::sql`].

use throng_base::Said;

use super::{Answered, Breach, Event, Input, Lent, Nature, ProtocolMachine, Traits};
use crate::sql::{Came, Client, SqlError};

impl ProtocolMachine for Client {
    type Breach = SqlError;

    fn traits(&self) -> Traits {
        Traits { answers: true, closes: true, goodbyes: true, ..Traits::default() }
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, SqlError> {
        let mut rest = input.rest();
        let bytes_max = lent.limits.websocket.message_bytes_max;
        let came = self.next(&mut rest, bytes_max, &mut lent.room, out)?;
        input.leave(rest);
        Ok(came.map(|came| match came {
            Came::Open => Event::Open,
            Came::FirstRow => Event::Begun,
            Came::Done(reply) => Event::Answered(Answered::Sql(reply)),
        }))
    }

    fn roll_back(&mut self, out: &mut Vec<u8>) {
        self.roll_back(out);
    }

    fn awaits_end(&self) -> bool {
        false
    }

    fn close(&mut self, _: u16, _: [u8; 4], out: &mut Vec<u8>) -> bool {
        self.terminate(out);
        true
    }

    fn half(&self) -> usize {
        self.half()
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

/// Or the server ends the connection with an error.
impl Breach for SqlError {
    fn said(&self) -> Said {
        self.said()
    }

    fn nature(&self) -> Nature<'_> {
        match self {
            SqlError::Server(error) => Nature::Status(error.status()),
            SqlError::NotPostgres(_) | SqlError::NotMySql(_) | SqlError::Version(_) => {
                Nature::Foreign
            }
            error if error.is_too_large() => Nature::TooLarge,
            _ => Nature::Malformed,
        }
    }
}
