//! MQTT: see [`crate::mqtt`].

use throng_base::{Said, Time};

use super::{Answered, Breach, Event, Fields, Input, Lent, Nature, Parts, ProtocolMachine, Traits};
use crate::mqtt::{Came, Client, ClientError, Message, MqttAnswer, Reading};
use crate::websocket::closed;

impl ProtocolMachine for Client {
    type Breach = ClientError;

    fn traits(&self) -> Traits {
        let leaves = Traits { closes: true, codes: true, goodbyes: true, ..Traits::default() };
        Traits { messages: true, pings: true, masks: true, ..leaves }
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, ClientError> {
        let Lent { limits, inflater, room, mqtt, .. } = lent;
        let mut rest = input.rest();
        let reading = Reading { now: input.now, limits: &limits.websocket };
        let came = self.next(&mut rest, reading, inflater, (mqtt, room), out)?;
        input.leave(rest);
        let text = || std::str::from_utf8(room).unwrap_or_default();
        Ok(came.map(|came| match came {
            Came::Message => Event::Message(room),
            Came::Answered { id, packet, reason, lower } => {
                Event::Answered(Answered::Mqtt(MqttAnswer {
                    id,
                    packet,
                    reason,
                    text: text(),
                    lower,
                }))
            }
            Came::Pong => Event::Pong(b""),
            Came::Ping => Event::Ping(room),
            Came::Closed { code } => Event::Closed { code, reason: text() },
        }))
    }

    fn parts(message: &[u8]) -> Parts<'_> {
        let message = Message::of(message);
        Parts { content: message.payload, fields: Fields::Mqtt(message) }
    }

    fn ping(&mut self, _: &[u8], now: Time, mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        self.say(mask, out, |session, out| session.ping(now, out));
        true
    }

    fn pong(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        self.pong(payload, mask, out);
        true
    }

    fn due(&self) -> Time {
        self.session().due()
    }

    fn keep_alive(
        &mut self,
        now: Time,
        mask: [u8; 4],
        out: &mut Vec<u8>,
    ) -> Result<(), ClientError> {
        let kept = self.say(mask, out, |session, out| session.keep_alive(now, out));
        kept.map(drop).map_err(ClientError::Mqtt)
    }

    /// The client closes (MQTT 5, 3.14.4).
    fn awaits_end(&self) -> bool {
        false
    }

    fn close(&mut self, _: u16, mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        self.disconnect(mask, out);
        true
    }

    fn lost(&mut self) -> bool {
        self.lost()
    }

    fn closed(&self, code: Option<u16>, reason: &str) -> Said {
        match code.and_then(throng_base::mqtt::code_of) {
            Some(_) => say!("the MQTT server ended the connection: {reason}"),
            None => closed(code, reason),
        }
    }

    fn half(&self) -> usize {
        self.session().half()
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl Breach for ClientError {
    fn said(&self) -> Said {
        self.said()
    }

    fn nature(&self) -> Nature<'_> {
        match self {
            ClientError::Mqtt(violation) if violation.is_our_limit() => Nature::TooLarge,
            ClientError::WebSocket(error) => error.nature(),
            ClientError::Mqtt(_) | ClientError::Text => Nature::Malformed,
        }
    }

    fn close_code(&self) -> Option<u16> {
        match self {
            ClientError::WebSocket(error) => Breach::close_code(error),
            _ => None,
        }
    }
}
