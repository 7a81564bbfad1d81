//! Detects conflicts that repeated requests cause: if the data of the scenario repeats, the target
//! is right to refuse them.

use std::sync::Arc;

use super::Request;
use crate::prepared::Written;
use crate::recorder::repeats::Fingerprint;
use crate::user::exchange::Exchange;

impl Request<'_> {
    /// A request that differs per user was sent; resends do not count.
    pub(super) fn follow_request(
        &self,
        (written, body): (&[u8], Option<&Arc<[u8]>>),
        again: bool,
        exchange: &mut Exchange,
    ) {
        let is_new = !again && self.task.retries == 0 && self.task.redirect().is_none();
        if !is_new || !self.shard.recorder.borrow().samples.follows(self.http.step) {
            return;
        }
        let print = Fingerprint::new(written, body.map_or(&[], |body| body));
        let repeated = self.shard.recorder.borrow_mut().samples.follow(self.http.step, print);
        exchange.rare(self.shard).repeated = repeated;
    }

    /// Its response has arrived.
    pub(super) fn follow_response(&self, exchange: &Exchange) {
        if matches!(self.plan.written, Written::Varies(_)) {
            let repeated = exchange.rare.as_ref().and_then(|rare| rare.repeated);
            let (step, status) = (self.http.step, exchange.status);
            self.shard.recorder.borrow_mut().samples.followed(step, status, repeated);
        }
    }
}
