//! Threads: each shard is one.

use throng_base::units::format_count;

use super::host::{CAP_SYS_ADMIN, CAP_SYS_RESOURCE, PROCESSES};
use super::{Finding, Fix, Host, Needs, Severity, descriptors, rounded_up};

const RULE: &str = "threads";
/// Threads in addition to the shards: the main thread and those that resolve names and read files.
pub(super) const OTHERS: u64 = 16;

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if needs.is_target() {
        return None;
    }
    let detail = say!(
        "each shard is a thread; the kernel limits the number of threads on the host, the thread \
         IDs, and the threads per account"
    );
    let mut finding = Finding::new(RULE, say!("threads"), detail);
    let (Some(all), Some(numbers), Some((shards, usable))) = (
        host.number("kernel.threads-max"),
        host.number("kernel.pid_max"),
        descriptors::shards(host, needs),
    ) else {
        return Some(finding);
    };
    let account = match host.can(CAP_SYS_ADMIN) || host.can(CAP_SYS_RESOURCE) {
        true => u64::MAX,
        false => host.limits(PROCESSES).map_or(u64::MAX, |(soft, _)| soft),
    };
    let running = running(host).unwrap_or(0);
    let free = all.min(numbers).saturating_sub(running).min(account);
    let wanted = shards.saturating_add(OTHERS);
    finding.value = say!("{} free", format_count(free));
    finding.needed = say!("{}", format_count(wanted));
    finding.ceiling = Some(free.saturating_sub(OTHERS).saturating_mul(usable));
    let raised = rounded_up(wanted.saturating_add(running).saturating_mul(5) / 4);
    let limits = [("kernel.threads-max", all), ("kernel.pid_max", numbers)];
    let low = limits.into_iter().filter(|(_, limit)| limit.saturating_sub(running) < wanted);
    finding.fixes = low.map(|(key, _)| Fix::setting(key, raised)).collect();
    if account < wanted {
        finding.fixes.push(more_processes(raised));
    }
    Some(finding.judge(wanted <= free, Severity::Unfit))
}

/// The number of threads: the second part of `1/234` in loadavg.
fn running(host: &Host) -> Option<u64> {
    let line = host.root.line("proc/loadavg")?;
    line.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn more_processes(count: u64) -> Fix {
    let for_good = format!("/etc/security/limits.d/90-throng.conf: * - nproc {count}");
    Fix::Command { now: format!("ulimit -u {count}"), for_good }
}
