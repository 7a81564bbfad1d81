//! Steal: processor time that other virtual machines of the hypervisor took.

use super::{Finding, Fix, Host, Needs, Severity};

const RULE: &str = "cpu-steal";
/// A higher share is visible in latencies.
const SHARE_MAX: f64 = 0.02;

pub(super) fn examine(host: &Host, _: &Needs) -> Option<Finding> {
    let detail = say!(
        "time that the hypervisor gave to other virtual machines; during that time, this virtual \
         machine can neither send nor measure"
    );
    let mut finding = Finding::new(RULE, say!("CPU steal time"), detail);
    let Some(share) = since_start(host) else { return Some(finding) };
    finding.value = say!("{:.1} % since boot", share * 100.0);
    let is_fit = share <= SHARE_MAX;
    if !is_fit {
        finding.needed = say!("at most {:.0} %", SHARE_MAX * 100.0);
    }
    let advice =
        say!("use a machine with dedicated processors, or another instance size or location");
    finding.fixes = vec![Fix::Advice(advice)];
    Some(finding.judge(is_fit, Severity::Warn))
}

/// The stolen share of the time in which the host was runnable.
fn since_start(host: &Host) -> Option<f64> {
    let text = host.root.read("proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let [user, nice, system, _, _, irq, softirq, steal, ..] = ticks[..] else { return None };
    let busy = user + nice + system + irq + softirq + steal;
    (busy > 0.0 && busy.is_finite()).then(|| (steal / busy).clamp(0.0, 1.0))
}
