//! The interface of a protocol to [`super::Machine`]: its machine, and its violations.

use throng_base::{Said, Time};

use super::{Deflater, Event, Fields, HttpError, Input, Lent, Parts, Resume};
use crate::http2;
use crate::websocket::closed;

/// The machine of a protocol. The defaults are those of a protocol without the feature; the methods
/// of [`super::Machine`] with the same names describe them.
pub trait ProtocolMachine {
    type Breach: Breach;

    fn traits(&self) -> Traits;

    fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, Self::Breach>;

    /// Splits a message that [`ProtocolMachine::next`] has returned.
    fn parts(message: &[u8]) -> Parts<'_> {
        Parts { content: message, fields: Fields::None }
    }

    fn is_stream(&self) -> bool {
        false
    }

    fn end(&mut self) -> Result<bool, HttpError> {
        Ok(false)
    }

    fn drained(&mut self, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn backlog(&self) -> usize {
        0
    }

    fn message(
        &mut self,
        _is_text: bool,
        content: &[u8],
        _mask: [u8; 4],
        _deflater: &mut Deflater,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(content);
    }

    fn ping(&mut self, _payload: &[u8], _now: Time, _mask: [u8; 4], _out: &mut Vec<u8>) -> bool {
        false
    }

    fn pong(&self, _payload: &[u8], _mask: [u8; 4], _out: &mut Vec<u8>) -> bool {
        false
    }

    fn due(&self) -> Time {
        Time::NEVER
    }

    fn keep_alive(
        &mut self,
        _now: Time,
        _mask: [u8; 4],
        _out: &mut Vec<u8>,
    ) -> Result<(), Self::Breach> {
        Ok(())
    }

    fn roll_back(&mut self, _out: &mut Vec<u8>) {}

    fn awaits_end(&self) -> bool {
        self.traits().closes
    }

    fn close(&mut self, _code: u16, _mask: [u8; 4], _out: &mut Vec<u8>) -> bool {
        false
    }

    fn lost(&mut self) -> bool {
        false
    }

    fn closed(&self, code: Option<u16>, reason: &str) -> Said {
        closed(code, reason)
    }

    fn resume(&self) -> Option<Resume> {
        None
    }

    fn half(&self) -> usize {
        0
    }

    fn heap_bytes(&self) -> usize;

    fn is_left(&self) -> bool {
        false
    }
}

/// A protocol violation. Nothing can be read after it.
pub trait Breach {
    fn said(&self) -> Said;

    fn nature(&self) -> Nature<'_> {
        Nature::Malformed
    }

    /// The code with which the connection is closed, if the protocol has one.
    fn close_code(&self) -> Option<u16> {
        None
    }
}

/// The kind of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature<'v> {
    Malformed,
    /// It is not an error, but exceeds a limit.
    TooLarge,
    /// The port speaks another known protocol.
    Foreign,
    /// It is not an error either: the peer reset what it had started.
    Reset,
    /// The peer ends with a status other than success.
    Status(u16),
    /// An error of the HTTP below.
    Http(&'v HttpError),
    Http2(&'v http2::Violation),
}

/// The features of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// It answers requests one after another, and sends nothing else.
    pub answers: bool,
    /// It answers several requests concurrently.
    pub multiplexes: bool,
    /// Input is split into messages, which may be unsolicited.
    pub messages: bool,
    /// It has its own pings, answered by pongs.
    pub pings: bool,
    /// A pong repeats the payload of its ping.
    pub echoes: bool,
    /// It closes by a message, which is answered.
    pub closes: bool,
    /// The peer closes it with a code.
    pub codes: bool,
    /// A client that stops sends a close; otherwise its peer treats the connection as lost.
    pub goodbyes: bool,
    /// When the peer has answered our leave, we end the connection.
    pub hangs_up: bool,
    /// Messages are wrapped in frames.
    pub frames: bool,
    /// Frames are masked at random.
    pub masks: bool,
}
