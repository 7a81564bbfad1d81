//! The pools of one shard: one for each address of each target, created for the first connection to
//! it.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use throng_base::Share;

use super::{Plan, Pool};

/// Pools per target that are kept; for a name that keeps getting new addresses for days, the latest
/// ones.
const KEPT_MAX: usize = 64;

pub(crate) struct Pools {
    plan: Arc<Plan>,
    /// The maximum number of users, on all shards.
    users: u64,
    share: Share,
    /// The addresses of the targets at the start of the run.
    targets: Vec<Vec<SocketAddr>>,
    /// By target.
    all: RefCell<Vec<OfTarget>>,
}

/// The pool of each of its addresses.
type OfTarget = Vec<(SocketAddr, Rc<Pool>)>;

impl Pools {
    pub(super) fn new(
        plan: Arc<Plan>,
        users: u64,
        targets: Vec<Vec<SocketAddr>>,
        share: Share,
    ) -> Pools {
        let all = RefCell::new(targets.iter().map(|_| Vec::new()).collect());
        Pools { plan, users, share, targets, all }
    }

    /// The sources of connections to one of these addresses of a target.
    pub(crate) fn to(
        &self,
        target: u16,
        address: SocketAddr,
        addresses: &[SocketAddr],
    ) -> Rc<Pool> {
        let mut all = self.all.borrow_mut();
        let own = &mut all[usize::from(target)];
        if let Some((_, pool)) = own.iter().find(|(known, _)| *known == address) {
            return Rc::clone(pool);
        }
        if own.len() >= KEPT_MAX.max(addresses.len()) {
            own.remove(0);
        }
        let pool = Rc::new(self.pool(usize::from(target), address, addresses));
        own.push((address, Rc::clone(&pool)));
        pool
    }

    fn pool(&self, target: usize, address: SocketAddr, addresses: &[SocketAddr]) -> Pool {
        let is_as_begun = self.targets[target].as_slice() == addresses;
        if is_as_begun {
            return self.plan.pool(self.users, &self.targets, (target, &address), self.share);
        }
        let mut targets = self.targets.clone();
        targets[target] = addresses.to_vec();
        self.plan.pool(self.users, &targets, (target, &address), self.share)
    }
}
