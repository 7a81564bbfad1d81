//! WebSocket: see [`crate::websocket`].

use throng_base::{Said, Time};

use super::{Breach, Deflater, Event, Input, Lent, Nature, ProtocolMachine, Traits};
use crate::websocket::{
    FrameReader, Message, Opcode, WebSocketError, write_close, write_frame, write_message_deflated,
};

impl ProtocolMachine for FrameReader {
    type Breach = WebSocketError;

    fn traits(&self) -> Traits {
        let frames = Traits { frames: true, masks: true, echoes: true, ..Traits::default() };
        Traits { messages: true, pings: true, closes: true, codes: true, ..frames }
    }

    #[inline(always)]
    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        _: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, WebSocketError> {
        let Lent { limits, inflater, room, .. } = lent;
        let mut rest = input.rest();
        let read = self.next(&mut rest, &limits.websocket, inflater, room)?;
        input.leave(rest);
        Ok(read.map(|message| match message {
            Message::Text(text) => Event::Message(text.as_bytes()),
            Message::Binary(bytes) => Event::Message(bytes),
            Message::Ping(payload) => Event::Ping(payload),
            Message::Pong(payload) => Event::Pong(payload),
            Message::Close { code, reason } => Event::Closed { code, reason },
        }))
    }

    fn message(
        &mut self,
        is_text: bool,
        content: &[u8],
        mask: [u8; 4],
        deflater: &mut Deflater,
        out: &mut Vec<u8>,
    ) {
        let opcode = if is_text { Opcode::Text } else { Opcode::Binary };
        match self.deflate() {
            Some(deflate) => {
                let window_bits = deflate.own_window_bits;
                write_message_deflated(out, opcode, Some(mask), content, window_bits, deflater);
            }
            None => write_frame(out, opcode, true, false, Some(mask), content),
        }
    }

    fn ping(&mut self, payload: &[u8], _: Time, mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        write_frame(out, Opcode::Ping, true, false, Some(mask), payload);
        true
    }

    fn pong(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        write_frame(out, Opcode::Pong, true, false, Some(mask), payload);
        true
    }

    fn close(&mut self, code: u16, mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        write_close(out, Some(code), "", Some(mask));
        true
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn is_left(&self) -> bool {
        self.is_done()
    }
}

impl Breach for WebSocketError {
    fn said(&self) -> Said {
        Said::of_others(self.to_string())
    }

    fn nature(&self) -> Nature<'_> {
        match self {
            WebSocketError::FrameTooLarge { .. } | WebSocketError::MessageTooLarge { .. } => {
                Nature::TooLarge
            }
            _ => Nature::Malformed,
        }
    }

    fn close_code(&self) -> Option<u16> {
        Some(self.close_code())
    }
}
