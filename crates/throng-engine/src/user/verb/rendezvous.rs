//! The verb `rendezvous`: a user waits for others.

use std::time::Duration;

use throng_metrics::Cause;
use throng_program::{Rendezvous, Statement};

use crate::prepared::code::Instruction;
use crate::recorder::Attempt;
use crate::rendezvous::{Standing, Waiting};
use crate::user::outcome::Onward;
use crate::user::task::{Active, Doing};

/// When a user checks again for what another shard is about to write.
const SOON: Duration = Duration::from_millis(1);

/// A task that waits for others.
pub(super) struct Meeting<'v, 'a> {
    pub(super) active: &'v mut Active<'a>,
    pub(super) rendezvous: &'v Rendezvous,
}

/// A user that waits for others was woken.
pub(in crate::user) fn woken(active: &mut Active<'_>, waiting: Waiting) {
    if let Instruction::Do(Statement::Rendezvous(rendezvous)) = active.instruction() {
        Meeting { active, rendezvous }.woken(waiting);
    }
}

impl Meeting<'_, '_> {
    pub(super) fn begin(self) {
        let Meeting { active, rendezvous } = self;
        active.begin(rendezvous.step);
        let (slot, now) = (active.user.slot, active.user.now);
        let waiting = active.shard.places.arrive(rendezvous.place, rendezvous.users, now);
        active.shard.await_release(slot, waiting, now);
        active.wait_for(Doing::Rendezvous(waiting), now + rendezvous.timeout);
    }

    /// The users continue together, or the wait of this one has timed out.
    fn woken(self, waiting: Waiting) {
        let Active { shard, user, task, .. } = &*self.active;
        let again = match shard.places.standing(waiting) {
            Standing::GoesOn(moment) if moment <= user.now => {
                shard.meeting.go(user.slot, waiting.place);
                return self.over(true);
            }
            Standing::GoesOn(moment) => moment,
            Standing::Gathers if user.now < task.deadline => task.deadline,
            Standing::Gathers => match shard.places.withdraw(waiting) {
                true => {
                    shard.meeting.go(user.slot, waiting.place);
                    return self.over(false);
                }
                // The last one has just arrived.
                false => user.now + SOON,
            },
        };
        self.active.wait_for(Doing::Rendezvous(waiting), again);
    }

    fn over(self, together: bool) {
        let Meeting { active, rendezvous } = self;
        let attempt =
            Attempt { latency: Some(active.user.now - active.task.due), ..Attempt::default() };
        match together {
            true => {
                active.step_ok(rendezvous.step, &attempt);
                active.paused();
                active.next_step();
            }
            false => {
                active.paused();
                let (users, waited) = (rendezvous.users, rendezvous.timeout);
                let waited = throng_base::units::format_duration(waited);
                let detail = say!("fewer than {users} users arrived within {waited}");
                let finding = (Cause::RendezvousTimeout, detail);
                active.step_failed(rendezvous.step, &attempt, finding, Onward::NextStep);
            }
        }
    }
}
