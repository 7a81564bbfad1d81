//! What is made of messages that nobody has asked for, as the handlers have it.

use throng_metrics::Cause;
use throng_program::{Handler, OnError};

use crate::failure::Finding;
use crate::looked::Looked;
use crate::prepared::HandlerPlan;
use crate::recorder::Attempt;
use crate::scope::scope;
use crate::user::State;
use crate::user::agenda::{Waiting, no_room};
use crate::user::flow::Session;
use crate::user::listen::Inbound;
use crate::user::outcome::Onward;
use crate::user::send::wire_bytes;
use crate::user::task::Doing;

impl Inbound<'_, '_> {
    /// Does with a message what its handler says.
    pub(super) fn handle(
        &mut self,
        (handler, plan): (&Handler, &HandlerPlan),
        looked: &Looked<'_>,
    ) {
        let payload = looked.whole();
        let state = &mut self.user.state;
        let busy = plan.body.filter(|body| state.is_running(*body));
        let mut scope = scope!(state, self.shard);
        // What a body works with is saved when it begins.
        let saves = if busy.is_some() { &[][..] } else { &handler.saves };
        let mut verdict = plan.look.judge(&handler.checks, saves, looked, &mut scope);
        self.shard.recorder.borrow_mut().messages.pushes += 1;
        state.follow_audiences();
        state.life(self.line).first_message();
        if let (Some(body), Ok(())) = (busy, &verdict) {
            verdict = state.wait_for_body(self.line, body, payload);
        }
        let bytes_in = wire_bytes(state.protocol(self.line), payload);
        let attempt = Attempt { bytes_in, latency: looked.between, ..Attempt::default() };
        let Err(finding) = verdict else {
            self.shard.recorder.borrow_mut().came(handler.step, &attempt);
            state.tell_end(handler.step, &attempt, None);
            if let (Some(body), None) = (plan.body, busy) {
                self.user.answer(self.shard, self.line, body, self.cx);
            }
            return;
        };
        state.failed_apart(handler.step, &attempt, &finding);
        let mut session = self.user.session(self.shard);
        match handler.failing.then {
            OnError::Stop => session.stop_for(handler.step, finding.0, finding.1.clone()),
            then => Session::new(&mut session).answer_unasked(then),
        }
    }
}

impl State {
    /// Keeps a message until the body is free. A user that has to leave keeps none.
    fn wait_for_body(&mut self, line: u8, body: u32, payload: &[u8]) -> Result<(), Finding> {
        if self.shard.seats.borrow().must_leave(self.slot) {
            self.shard.recorder.borrow_mut().messages.skipped += 1;
            return Ok(());
        }
        let waiting = &mut self.agenda.get_or_insert_default().waiting;
        if waiting.has_room(payload.len()) {
            waiting.push(Waiting { line, body, payload: payload.to_vec() });
            return Ok(());
        }
        self.shard.recorder.borrow_mut().messages.dropped += 1;
        Err((Cause::MessagesDropped, no_room(say!("the steps of this handler take too long"))))
    }
}

impl Session<'_, '_> {
    /// What the session does when something fails that no step is about.
    pub(in crate::user) fn answer_unasked(&mut self, then: OnError) {
        let pauses = matches!(self.active.task.doing, Doing::Pause | Doing::Stay);
        match then {
            OnError::Next if pauses && self.active.user.running && !self.active.user.leaving => {
                self.leave_iteration(Onward::NextStep);
            }
            OnError::Count | OnError::Next => {}
            OnError::Leave | OnError::Stop => self.active.user.told_to_leave(),
        }
    }
}
