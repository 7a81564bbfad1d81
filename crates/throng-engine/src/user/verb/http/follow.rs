//! Whether requests that conflict are those that were sent before: where the data of the scenario
//! repeats, the target is right to refuse them.

use std::sync::Arc;

use throng_base::StepId;

use crate::prepared::{HttpPlan, Written};
use crate::repeats::Fingerprint;
use crate::user::exchange::Exchange;
use crate::user::task::Active;

impl Active<'_> {
    /// A request that differs from user to user is sent; one that is sent once more does not count.
    pub(in crate::user) fn follow_request(
        &self,
        step: StepId,
        (written, body): (&[u8], Option<&Arc<[u8]>>),
        again: bool,
        exchange: &mut Exchange,
    ) {
        let is_new = !again && self.task.retries == 0 && self.redirect().is_none();
        if !is_new || !self.shard.recorder.borrow().samples.follows(step) {
            return;
        }
        let print = Fingerprint::new(written, body.map_or(&[], |body| body));
        let repeated = self.shard.recorder.borrow_mut().samples.follow(step, print);
        exchange.rare(self.shard).repeated = repeated;
    }

    /// Its response is here.
    pub(in crate::user) fn follow_response(
        &self,
        step: StepId,
        plan: &HttpPlan,
        exchange: &Exchange,
    ) {
        if matches!(plan.written, Written::Varies(_)) {
            let repeated = exchange.rare.as_ref().and_then(|rare| rare.repeated);
            self.shard.recorder.borrow_mut().samples.followed(step, exchange.status, repeated);
        }
    }
}
