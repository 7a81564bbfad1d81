//! The thread limits of control groups.

use throng_base::units::format_count;

use super::threads::OTHERS;
use super::{Finding, Fix, Host, Needs, Severity, descriptors};

const RULE: &str = "cgroup-pids";

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    // The service under test has its own control groups.
    let max = match needs.is_target() {
        true => return None,
        false => host.group_min("pids", "pids.max")?,
    };
    let (shards, usable) = descriptors::shards(host, needs)?;
    let wanted = shards.saturating_add(OTHERS);
    let detail = say!(
        "a control group (container, systemd service) limits the total number of processes and \
         threads, and each shard is a thread"
    );
    let finding = Finding {
        value: say!("{}", format_count(max)),
        needed: say!("{}", format_count(wanted)),
        ceiling: Some(max.saturating_sub(OTHERS).saturating_mul(usable)),
        fixes: vec![Fix::Command { now: String::new(), for_good: tasks_max(wanted) }],
        ..Finding::new(RULE, say!("control group threads"), detail)
    };
    Some(finding.judge(wanted <= max, Severity::Unfit))
}

fn tasks_max(count: u64) -> String {
    format!("systemd: [Service] TasksMax={count}")
}
