//! Open files per process: a limit for a service; throng distributes its files over several tables.

use throng_base::units::format_count;

use throng_base::Said;

use super::{Finding, Fix, Host, Needs, Severity};
use crate::costs::{DESCRIPTORS_RESERVED, SHARDS_MAX, connections_of_table, kept_of_table};
use crate::kernel::OPEN_FILES;

pub(super) const RULE: &str = "descriptors";

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    let detail = match needs.is_target() {
        true => {
            say!(
                "every connection is an open file in the service; this limit applies to this \
                 shell; for a running service, see /proc/PID/limits (`throng target` uses \
                 several descriptor tables and is not affected)"
            )
        }
        false => {
            say!(
                "each shard is a thread with its own descriptor table; this limit determines how \
                 many shards are needed, but does not limit the number of users"
            )
        }
    };
    let mut finding = Finding::new(RULE, say!("open files per process"), detail);
    let Some((soft, hard)) = host.limits(OPEN_FILES) else { return Some(finding) };
    finding.value = say!("{} (hard limit {})", limit(soft), limit(hard));
    let wanted = needs.connections().saturating_add(DESCRIPTORS_RESERVED);
    if needs.is_target() {
        finding.needed = say!("{}", format_count(wanted));
        finding.ceiling = Some(hard.saturating_sub(DESCRIPTORS_RESERVED));
        finding.fixes = vec![Fix::Descriptors(wanted)];
        // The service may raise its soft limit itself.
        let bad = if hard < wanted { Severity::Unfit } else { Severity::Warn };
        return Some(finding.judge(soft >= wanted, bad));
    }
    let (usable, kept) = table(needs, hard);
    let shards = needs.connections().div_ceil(usable.max(1));
    finding.needed = match shards {
        0 | 1 => say!("1 shard"),
        shards => say!("{} shards", format_count(shards)),
    };
    if kept > 0 {
        finding.value = say!(
            "{} (hard limit {}), {} per table reserved for silently dropped connections",
            limit(soft),
            limit(hard),
            format_count(kept)
        );
    }
    finding.ceiling = Some(needs.users_of(usable.saturating_mul(SHARDS_MAX)));
    finding.fixes = vec![Fix::Descriptors(wanted.min(1_048_576))];
    Some(finding.judge(usable > 0 && shards <= SHARDS_MAX, Severity::Unfit))
}

/// The minimum number of shards for the users; `None` if the limit cannot be read.
pub(super) fn shards(host: &Host, needs: &Needs) -> Option<(u64, u64)> {
    let (_, hard) = host.limits(OPEN_FILES)?;
    let usable = table(needs, hard).0.max(1);
    Some((needs.connections().div_ceil(usable).max(host.cores()?), usable))
}

/// The user connections in a table of this size, and the dropped connections that it keeps.
fn table(needs: &Needs, descriptors: u64) -> (u64, u64) {
    let kept = if needs.leaves_behind { kept_of_table(descriptors) } else { 0 };
    (connections_of_table(descriptors) - kept, kept)
}

/// The number of silently dropped connections that are kept at the same time: their sockets,
/// descriptors and ports are in use. Zero if the tables cannot be read. How soon a service notices
/// a dropped connection is unknown.
pub(super) fn kept(host: &Host, needs: &Needs) -> u64 {
    if needs.is_target() || needs.vanished == 0 {
        return 0;
    }
    let kept = || {
        let (_, hard) = host.limits(OPEN_FILES)?;
        let (shards, _) = shards(host, needs)?;
        // Every shard has at least one user.
        let shards = shards.min(needs.users).min(SHARDS_MAX);
        Some(table(needs, hard).1.saturating_mul(shards))
    };
    kept().unwrap_or(0).min(needs.vanished)
}

/// The users' connections and those that are kept.
pub(super) fn connections(host: &Host, needs: &Needs) -> u64 {
    needs.connections().saturating_add(kept(host, needs))
}

pub(super) fn limit(limit: u64) -> Said {
    match limit {
        u64::MAX => say!("unlimited"),
        limit => say!("{}", format_count(limit)),
    }
}
