//! Answers that end what was asked, and the task that waits for each.

use throng_program::Statement;
use throng_protocol::machine::Answered;

use crate::prepared::code::Instruction;
use crate::user::listen::Inbound;
use crate::user::task::{Task, at};
use crate::user::verb;

/// Continues the task that waits for it. No task waits for what was sent without waiting, or before
/// the last connection was lost.
pub(in crate::user) fn answered(inbound: &mut Inbound<'_, '_>, answer: &Answered<'_>) {
    let (shard, line, session) = (inbound.shard, inbound.line, inbound.user.state.session);
    let acknowledged = |task: &Task| {
        let (instruction, _) = at(shard, session, task.pc);
        matches!(instruction, Instruction::Do(Statement::Request(request))
            if request.message.content.verb().is_some())
    };
    let which = match answer.number() {
        None => inbound.user.who_awaits_answer(line),
        Some(number) => inbound.user.find(|task| {
            let exchange = task.exchange_on(line);
            exchange.is_some_and(|it| it.number == number) && acknowledged(task)
        }),
    };
    let mut recorder = shard.recorder.borrow_mut();
    match which {
        Some(_) => recorder.interval.traffic.messages.received += u64::from(answer.received()),
        None => recorder.interval.traffic.messages.unasked += u64::from(answer.unasked()),
    }
    drop(recorder);
    let Some(which) = which else { return };
    inbound.user.with(which, shard, inbound.cx, |active| verb::answered(active, answer));
}

/// The first part of an answer came.
pub(in crate::user) fn begun(inbound: &mut Inbound<'_, '_>) {
    let (which, now) = (inbound.user.who_awaits_answer(inbound.line), inbound.user.state.now);
    if let Some(exchange) = which.and_then(|which| inbound.user.exchange_of(which)) {
        exchange.first_byte = now;
    }
}
