//! Answers to messages that are sent under a number, and the task that waits for each.

use throng_base::redis as base;
use throng_metrics::Cause;
use throng_program::{Check, Pick, Statement};
use throng_protocol::machine::{Answered, Fields};
use throng_protocol::redis;
use throng_protocol::sql::Came;

use crate::connector::protocol::redis::redis_error;
use crate::failure::Finding;
use crate::looked::Looked;
use crate::prepared::code::Instruction;
use crate::trace::What;
use crate::user::listen::Inbound;
use crate::user::send::mqtt;
use crate::user::task::{Active, Task, at};
use crate::user::verb::sql::done;
use crate::user::verb::talk;

/// Continues the task that waits for it. No task waits for what was sent without waiting, or before
/// the last connection was lost.
pub(in crate::user) fn acknowledged(inbound: &mut Inbound<'_, '_>, answer: &Answered<'_>) {
    let (shard, line, session) = (inbound.shard, inbound.line, inbound.user.state.session);
    let is_its = |task: &Task| {
        let exchange = task.exchange_on(line);
        let is_sent = exchange.is_some_and(|it| it.number == answer.number());
        is_sent
            && matches!(at(shard, session, task.pc).0, Instruction::Do(Statement::Request(request))
                if request.message.content.verb().is_some())
    };
    let which = inbound.user.find(is_its);
    let is_awaited = which.is_some();
    let mut recorder = shard.recorder.borrow_mut();
    match answer {
        Answered::Mqtt(answer) => {
            recorder.messages.unasked += u64::from(!is_awaited && answer.reason.is_error());
        }
        Answered::Redis(answer) if is_awaited => {
            recorder.messages.received += u64::from(answer.replies);
        }
        Answered::Redis(answer) => recorder.messages.unasked += u64::from(answer.replies),
    }
    drop(recorder);
    let Some(which) = which else { return };
    inbound.user.with(which, shard, inbound.cx, |active| answered(active, line, answer));
}

fn answered(active: &mut Active<'_>, line: u8, answer: &Answered<'_>) {
    let (instruction, _) = active.at_pc();
    let elapsed = active.user.now - active.task.due;
    match answer {
        Answered::Mqtt(answer) => {
            let refusal = mqtt::refusal(instruction.checks(), answer);
            let status = Some(answer.reason.status());
            let mut looked = Looked::new(status, answer.text.as_bytes(), elapsed);
            looked.refusal = refusal.as_ref();
            talk::answer_came(active, &looked, None);
        }
        Answered::Redis(answer) => {
            active.user.tell(|| What::Received(active.user.shown(line, answer.content)));
            let (status, refusal) = refusal(instruction.checks(), answer).unzip();
            let mut looked = Looked::new(status, answer.content, elapsed);
            (looked.whole, looked.fields) = (Some(answer.content), Fields::Reply(*answer));
            looked.refusal = refusal.as_ref();
            talk::answer_came(active, &looked, None);
        }
    }
}

/// The status of an error among the replies, and what is wrong with it, unless the step looks at
/// errors itself.
fn refusal(checks: &[Check], answer: &redis::Answer<'_>) -> Option<(u16, Finding)> {
    let (error, word) = (answer.error?, answer.error_word()?);
    let is_error = |check: &Check| matches!(&check.pick, Pick::Header(name) if name == "error");
    if checks.iter().any(is_error) {
        return None;
    }
    let status = base::status(word);
    Some((status, (Cause::of_status(status), redis_error(error))))
}

/// Something came of a statement.
pub(in crate::user) fn queried(inbound: &mut Inbound<'_, '_>, came: &Came<'_>) {
    let Inbound { user, shard, line, cx } = inbound;
    let Some(which) = user.who_awaits_answer(*line) else { return };
    match came {
        Came::Open => {}
        Came::FirstRow => {
            let now = user.state.now;
            if let Some(exchange) = user.exchange_of(which) {
                exchange.first_byte = now;
            }
        }
        Came::Done(reply) => user.with(which, shard, cx, |active| done(active, reply)),
    }
}
