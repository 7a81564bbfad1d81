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

/// The verb `rendezvous`.
pub(super) fn begin(active: &mut Active<'_>, rendezvous: &Rendezvous) {
    active.begin(rendezvous.step);
    let (slot, now) = (active.user.slot, active.user.now);
    let waiting = active.shard.places.arrive(rendezvous.place, rendezvous.users, now);
    active.shard.await_release(slot, waiting, now);
    active.wait_for(Doing::Rendezvous(waiting), now + rendezvous.timeout);
}

/// A user that waits for others was woken: they continue together, or its wait has timed out.
pub(in crate::user) fn woken(active: &mut Active<'_>, waiting: Waiting) {
    let Active { shard, user, task, .. } = &*active;
    let again = match shard.places.standing(waiting) {
        Standing::GoesOn(moment) if moment <= user.now => {
            shard.meeting.go(user.slot, waiting.place);
            return over(active, true);
        }
        Standing::GoesOn(moment) => moment,
        Standing::Gathers if user.now < task.deadline => task.deadline,
        Standing::Gathers => match shard.places.withdraw(waiting) {
            true => {
                shard.meeting.go(user.slot, waiting.place);
                return over(active, false);
            }
            // The last one has just arrived.
            false => user.now + SOON,
        },
    };
    active.wait_for(Doing::Rendezvous(waiting), again);
}

fn over(active: &mut Active<'_>, together: bool) {
    let Instruction::Do(Statement::Rendezvous(rendezvous)) = active.instruction() else { return };
    let latency = Some(active.user.now - active.task.due);
    let attempt = Attempt { latency, ..Attempt::default() };
    if together {
        active.step_ok(rendezvous.step, &attempt);
        active.paused();
        return active.next_step();
    }
    active.paused();
    let (users, waited) = (rendezvous.users, rendezvous.timeout);
    let waited = throng_base::units::format_duration(waited);
    let detail = say!("fewer than {users} users arrived within {waited}");
    let finding = (Cause::RendezvousTimeout, detail);
    active.step_failed(rendezvous.step, &attempt, finding, Onward::NextStep);
}
