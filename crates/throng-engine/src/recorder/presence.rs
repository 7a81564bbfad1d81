//! The presence of a shard's users, for audits: which are online, since when, and by which event.
//! The shard writes at every login and every loss; an audit copies all of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_base::{Share, Time, UserId};
use throng_metrics::presence::{Change, Known, Packed, Snapshot};

use crate::prepared::{LoadPlan, Prepared, own_number};

/// The presence of one shard. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Presence {
    share: Share,
    /// By load, then by the number of the user on this shard.
    lanes: Arc<Mutex<Vec<Vec<Packed>>>>,
}

impl Presence {
    pub(crate) fn new(share: Share, loads: usize) -> Presence {
        Presence { share, lanes: Arc::new(Mutex::new(vec![Vec::new(); loads])) }
    }

    /// The user is online from now on, at this target of the program.
    pub(crate) fn online(&self, plan: &LoadPlan, load: usize, user: UserId, at: Time, target: u16) {
        let node = u8::try_from(target.saturating_add(1)).unwrap_or(0);
        self.change(plan, load, user, |before| {
            let change = match before.change {
                Change::Never => Change::Login,
                _ if before.node == node => Change::Back,
                _ => Change::Moved,
            };
            Known { change, at, node }
        });
    }

    /// The user is offline from now on.
    pub(crate) fn offline(
        &self,
        plan: &LoadPlan,
        load: usize,
        user: UserId,
        at: Time,
        change: Change,
    ) {
        self.change(plan, load, user, |before| Known { change, at, node: before.node });
    }

    fn change(
        &self,
        plan: &LoadPlan,
        load: usize,
        user: UserId,
        change: impl FnOnce(Known) -> Known,
    ) {
        let local = self.share.local(plan.own(user).0.saturating_sub(1));
        let Some(local) = local.and_then(|local| usize::try_from(local).ok()) else { return };
        let lanes = &mut *self.lock();
        let Some(lane) = lanes.get_mut(load) else { return };
        if lane.len() <= local {
            lane.resize(local + 1, Packed::default());
        }
        lane[local] = Packed::new(change(lane[local].known()));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Packed>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copy_to(&self, users: &mut Vec<(u64, Packed)>, plans: &[LoadPlan]) {
        // A copy, so that the shard does not wait while numbers are computed.
        let lanes = self.lock().clone();
        for (plan, lane) in plans.iter().zip(lanes) {
            let identity = |local: usize| plan.user(self.share.user(local as u64)).0;
            users.extend(lane.into_iter().enumerate().map(|(at, known)| (identity(at), known)));
        }
    }
}

/// The presence of all shards of a process.
#[derive(Clone)]
pub struct Presences {
    prepared: Arc<Prepared>,
    shards: Vec<Presence>,
}

impl Presences {
    /// `None` without audits.
    pub(crate) fn of(prepared: &Arc<Prepared>, share: Share, shards: usize) -> Option<Presences> {
        let of = |index| {
            let share = share.thread(index as u64, shards as u64);
            Presence::new(share, prepared.program.loads.len())
        };
        let shards = prepared.program.asks_presence().then(|| (0..shards).map(of).collect());
        Some(Presences { prepared: Arc::clone(prepared), shards: shards? })
    }

    pub(crate) fn shard(&self, index: usize) -> Option<Presence> {
        self.shards.get(index).cloned()
    }

    /// Whether a number belongs to a user of this machine, which has this share: each number
    /// belongs to one machine, even if no user has it.
    pub fn owns(&self, share: Share) -> impl Fn(u64) -> bool + Send + Sync + use<> {
        let prepared = Arc::clone(&self.prepared);
        move |user| {
            let own = own_number(&prepared.loads, UserId(user));
            share.local(own.0.saturating_sub(1)).is_some()
        }
    }

    /// All users that were online at least once, and the numbers between them.
    pub fn snapshot(&self) -> Snapshot {
        let mut users = Vec::new();
        self.shards.iter().for_each(|shard| shard.copy_to(&mut users, &self.prepared.loads));
        users.sort_unstable_by_key(|(user, _)| *user);
        Snapshot { users }
    }
}
