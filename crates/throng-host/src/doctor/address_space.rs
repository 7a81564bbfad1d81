//! The limit of this process's address space (`ulimit -v`): an allocation beyond it ends the
//! process during the run.

use super::memory::Cost;
use super::{Finding, Fix, Host, Needs, Severity, descriptors, in_bytes};
use crate::facts::kilobytes;
use crate::memory::ADDRESS_SPACE;

pub(super) const RULE: &str = "address-space";

/// What each shard takes in addition to its users: its thread's stack.
const SHARD_BYTES: u64 = 2 << 20;

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    // The service under test has its own limit.
    let limit = match needs.is_target() {
        true => return None,
        false => host.limits(ADDRESS_SPACE)?.0,
    };
    if limit == u64::MAX {
        return None;
    }
    let status = host.root.read("proc/self/status").unwrap_or_default();
    let shards = descriptors::shards(host, needs).map_or(1, |(shards, _)| shards);
    let taken = kilobytes(&status, "VmSize").unwrap_or(0) + shards.saturating_mul(SHARD_BYTES);
    // The memory of the kernel and the target is not part of it.
    let (least, most) = Cost::of(host, &Needs { routes: Vec::new(), ..needs.clone() }).ours;
    let of_users = |each: u64| each.saturating_mul(needs.users).saturating_add(taken);
    let detail = say!(
        "this process has an address space limit (`ulimit -v`); the run ends if it needs more \
         memory"
    );
    let finding = Finding {
        value: say!("{} allowed", in_bytes(limit)),
        needed: say!("{}", in_bytes(of_users(most))),
        ceiling: Some(limit.saturating_sub(taken) / most.max(1)),
        fixes: vec![Fix::Command { now: "ulimit -v unlimited".into(), for_good: String::new() }],
        ..Finding::new(RULE, say!("address space"), detail)
    };
    let bad = match of_users(least) <= limit {
        true => Severity::Warn,
        false => Severity::Unfit,
    };
    Some(finding.judge(of_users(most) <= limit, bad))
}
