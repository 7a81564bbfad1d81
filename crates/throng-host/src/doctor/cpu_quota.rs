//! The CPU quotas of control groups: a throttled process stops until the period ends, and its
//! measurements include the stop.

use super::{Finding, Fix, Host, Needs, Severity};
use crate::facts::HostFacts;

const RULE: &str = "cpu-quota";

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    // The service under test has its own control groups.
    if needs.is_target() {
        return None;
    }
    let facts = HostFacts::read(&host.root, "");
    let allowed = facts.cgroup_cores_max?;
    let processors = facts.cores_usable.or(facts.cores).unwrap_or(1).max(1) as f64;
    let detail = say!(
        "a control group (container, systemd service) stops this process for the rest of each \
         period (usually 100 ms) once its CPU time is used up; the longest response times are then \
         caused by throng"
    );
    let mut finding = Finding {
        value: say!("{allowed:.2} of {processors:.0} processors"),
        ..Finding::new(RULE, say!("CPU quota"), detail)
    };
    let is_fit = allowed >= processors;
    if !is_fit {
        finding.needed = say!("no quota");
    }
    let advice = say!(
        "assign whole processors instead of a quota (cpuset, `--cpuset-cpus`), or keep the CPU \
         usage below the quota"
    );
    finding.fixes = vec![Fix::Advice(advice)];
    Some(finding.judge(is_fit, Severity::Warn))
}
