//! Acknowledgements of messages, and the task that waits for each.

use std::task::Context;

use throng_program::Statement;
use throng_protocol::mqtt::Answer;

use super::User;
use super::mqtt::refusal;
use super::task::{Task, Which, at};
use crate::code::Instruction;
use crate::looked::Looked;
use crate::shard::Lane;

/// Continues the task that waits for it. No task waits for what was sent without waiting, or before
/// the last connection was lost.
pub(super) fn acknowledged(
    user: &mut User,
    shard: &Lane,
    line: u8,
    answer: &Answer<'_>,
    cx: &mut Context<'_>,
) {
    let session = user.state.session;
    let is_its = |task: &Task| {
        let exchange = task.exchange_on(line);
        let is_sent = exchange.is_some_and(|it| it.number == u32::from(answer.id));
        is_sent
            && matches!(at(shard, session, task.pc).0, Instruction::Do(Statement::Request(request))
                if request.message.content.verb().is_some())
    };
    let mut others = user.state.agenda.iter().flat_map(|agenda| agenda.tasks());
    let which = match is_its(&user.session) {
        true => Some(Which::Session),
        false => others.position(is_its).map(Which::Other),
    };
    let Some(which) = which else {
        if answer.reason.is_error() {
            shard.recorder.borrow_mut().messages.unasked += 1;
        }
        return;
    };
    let now = user.state.now;
    user.with(which, shard, cx, |active| {
        let (instruction, _) = active.at_pc();
        let (refusal, text) = (refusal(instruction.checks(), answer), answer.text.as_bytes());
        let mut looked = Looked::new(Some(answer.reason.status()), text, now - active.task.due);
        looked.refusal = refusal.as_ref();
        active.answer_came(&looked, None);
    });
}
