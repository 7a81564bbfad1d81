//! The processor time that control groups allow: who has used it stands still until the period is
//! over, and measures its own standing still.

use super::{Finding, Fix, Host, Needs, Severity};
use crate::facts::HostFacts;

const RULE: &str = "cpu-quota";

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    // The service under test has control groups of its own.
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
        title: say!("CPU quota"),
        value: say!("{allowed:.2} of {processors:.0} processors"),
        ..Finding::new(RULE, detail)
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
