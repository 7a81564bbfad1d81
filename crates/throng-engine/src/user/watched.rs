//! Reports what a user does to an observer, which may let it run step by step. Called only if the
//! shard is observed; costs nothing otherwise.

use throng_base::{Said, StepId};
use throng_expression::Value;
use throng_metrics::{Cause, Stage};
use throng_protocol::framed::Decoded;
use throng_protocol::machine::{Field, Parts};

use super::State;
use super::exchange::Exchange;
use crate::prepared::code::Instruction;
use crate::recorder::Attempt;
use crate::recorder::spent::Times;
use crate::shard::Lane;
use crate::trace::{Figures, SHOWN_BYTES_MAX, Shown, What, Who};

impl State {
    /// Reports what the user does, if the shard is observed.
    #[inline]
    pub(super) fn tell(&self, what: impl FnOnce() -> What) {
        if self.shard.is_traced() {
            self.shard.tell(self.who(), self.now, what);
        }
    }

    pub(super) fn who(&self) -> Who {
        Who { user: self.id, session: self.session, iteration: self.iterations }
    }

    /// Reports how a step ended.
    #[inline]
    pub(super) fn tell_end(
        &self,
        step: StepId,
        attempt: &Attempt,
        failure: Option<(Cause, &Said)>,
    ) {
        let failure = || failure.map(|(cause, detail)| (cause, detail.clone()));
        self.tell(|| What::StepEnds { step, failure: failure(), figures: figures(attempt) });
    }

    /// Whether the session starts again.
    #[cold]
    pub(super) fn begins_again(&mut self) -> bool {
        let gets_on = self.shard.gets_on(self.id);
        self.tell(|| if gets_on { What::Anew } else { What::GivenUp });
        gets_on
    }

    /// A message of a declared protocol by its name and fields; anything else unchanged.
    #[cold]
    pub(super) fn shown(&self, line: u8, bytes: &[u8]) -> Shown {
        let mut decoded = Decoded::default();
        let read = self.protocol(line).and_then(|protocol| {
            let packet = protocol.decode(bytes, &mut decoded).ok()?;
            let body = protocol.field(packet.message, "body").ok()?;
            Some((protocol, packet.message, protocol.value(bytes, &decoded, &body)))
        });
        let Some((protocol, message, body)) = read else {
            let Parts { content, fields } = self.lines.get(line).parts(bytes);
            return match fields.get("topic").or(fields.get("channel")) {
                Some(Field::Bytes(topic)) => Shown::of(&[topic, b"\n", content].concat()),
                _ => Shown::of(bytes),
            };
        };
        let mut text = protocol.info(message).name.clone().into_bytes();
        if let Some(body) = body.filter(|body| !matches!(body, Value::Map(map) if map.is_empty())) {
            text.push(b' ');
            body.write_json(&mut text);
        }
        Shown::of(&text)
    }

    pub(super) fn name_of(&self, slot: u16) -> String {
        let session = &self.shard.prepared.program.sessions[usize::from(self.session)];
        session.slots.get(usize::from(slot)).cloned().unwrap_or_default()
    }
}

/// A connection opened, with these stages.
#[cold]
pub(super) fn connected(shard: &Lane, target: u16, times: &Times) -> What {
    let target = shard.prepared.targets[usize::from(target)].authority.clone();
    let stages = Stage::ALL.into_iter().map(|stage| (stage, times[stage as usize]));
    What::Connected { target, stages: stages.filter(|(_, time)| !time.is_zero()).collect() }
}

/// Traces the body of a response, with its content coding undone.
#[cold]
pub(super) fn trace_body(user: &State, exchange: &Exchange, whole: Option<&[u8]>) {
    let kept = exchange.rare.as_ref().map_or(&[][..], |rare| &rare.body);
    let body = Shown::of(whole.unwrap_or(kept));
    if body.length > 0 {
        user.tell(|| What::Received(body));
    }
}

/// Traces a piece of a response with this status, or 0.
#[cold]
pub(super) fn trace_piece(user: &State, status: u16, bytes: &[u8]) {
    let shown = Shown::of(bytes);
    user.tell(|| match status {
        0 => What::PartOfHead(shown),
        _ => What::Received(shown),
    });
}

pub(super) fn figures(attempt: &Attempt) -> Figures {
    let Attempt { latency, first_byte, code, bytes_in, bytes_out, .. } = *attempt;
    Figures { latency, first_byte, code, bytes_in, bytes_out }
}

pub(super) fn as_text(value: &Value) -> String {
    let mut text = Vec::new();
    value.write_json(&mut text);
    text.truncate(SHOWN_BYTES_MAX);
    String::from_utf8_lossy(&text).into_owned()
}

/// The verb of an instruction that is worth reporting.
pub(super) fn verb(instruction: &Instruction) -> Option<&'static str> {
    match instruction {
        Instruction::Do(statement) => statement.verb(),
        Instruction::TransactionBegin { .. } => Some("transaction"),
        Instruction::Parallel(_) => Some("parallel"),
        _ => None,
    }
}
