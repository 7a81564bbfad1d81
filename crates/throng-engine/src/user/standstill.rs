//! Reports what a stuck user waits for: nothing is due for it, and nothing will wake it.

use throng_base::Said;

use super::User;
use super::exchange::Awaits;
use super::task::{Doing, at};
use crate::shard::Lane;
use throng_metrics::StopBy;

impl User {
    /// The shard has found that nothing will wake this user. That is a bug of throng: the run ends.
    #[cold]
    pub(super) fn tell_standstill(&self, shard: &Lane) {
        let user = self.state.id.0;
        let (what, step) = (self.session.doing.said(), self.last_step(shard));
        let reason = match step {
            Some(step) => say!(
                "user {user} is stuck: it is waiting for {what} at or after step `{step}`, and no \
                 scheduled event will wake it"
            ),
            None => say!(
                "user {user} is stuck: it is waiting for {what}, and no scheduled event will wake \
                 it"
            ),
        };
        shard.stop_because(shard.clock.now(), reason, StopBy::Bug);
    }

    /// The current step of the session, or the last one before it.
    fn last_step<'a>(&self, shard: &'a Lane) -> Option<&'a str> {
        let number = self.state.session;
        let last = shard.prepared.sessions[usize::from(number)].code.all.len() as u32;
        let mut before = (0..=self.session.pc.min(last)).rev();
        let step = before.find_map(|pc| at(shard, number, pc).0.step())?;
        Some(&shard.prepared.program.step(step).name)
    }
}

impl Doing {
    /// What the user waits for.
    fn said(&self) -> Said {
        match self {
            Doing::Step => say!("its turn"),
            Doing::Opening(_) => say!("a connection to open"),
            Doing::Queued { .. } => say!("a free connection"),
            Doing::Exchange(exchange) => match exchange.awaits {
                Awaits::Answer { .. } => say!("a response"),
                Awaits::Message => say!("a message"),
                Awaits::Tls => say!("a TLS handshake"),
                Awaits::Room => say!("space in the socket buffer"),
            },
            Doing::Join => say!("the end of its branches"),
            Doing::Pause => say!("the end of its think time"),
            Doing::Stay => say!("the end of its stay"),
            Doing::Holding => say!("the next attempt"),
            Doing::Rendezvous(_) => say!("other users"),
            Doing::Gate => say!("permission to continue"),
            Doing::Closing => say!("a connection to close"),
            Doing::Idle => say!("its next iteration"),
        }
    }
}
