//! Queues of the network interfaces: each is served by one processor.

use crate::doctor::{Finding, Fix, Host, Needs, Severity};

const RULE: &str = "nic-queues";
/// The number of other processors that one processor can serve.
const CORES_PER_QUEUE: u64 = 4;

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if needs.is_local() {
        return None;
    }
    let detail = say!(
        "one processor handles all packets of a receive queue; with few queues and many \
         processors, a few processors are busy while the others are idle"
    );
    let mut finding = Finding::new(RULE, say!("network interface queues"), detail);
    let cores = host.cores()?;
    let queues = host.interfaces().into_iter().map(|name| (queues(host, &name), name));
    // The best interface is the one that a test uses.
    let ((count, is_spread), name) = queues.max()?;
    finding.value = match is_spread {
        true => say!("{name}: {count} for {cores} processors, spread by RPS"),
        false => say!("{name}: {count} for {cores} processors"),
    };
    let is_fit = is_spread || count.saturating_mul(CORES_PER_QUEUE) >= cores;
    finding.fixes = spread(&name, cores);
    Some(finding.judge(is_fit, Severity::Warn))
}

/// Receive queues, and whether the kernel distributes their packets over processors.
fn queues(host: &Host, interface: &str) -> (u64, bool) {
    let directory = format!("sys/class/net/{interface}/queues");
    let entries = std::fs::read_dir(host.root.path(&directory)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<String> = names.filter(|name| name.starts_with("rx-")).collect();
    let is_spread = names.iter().any(|name| {
        let mask = host.root.line(format!("{directory}/{name}/rps_cpus")).unwrap_or_default();
        mask.contains(|digit: char| digit.is_ascii_hexdigit() && digit != '0')
    });
    (names.len() as u64, is_spread)
}

fn spread(interface: &str, cores: u64) -> Vec<Fix> {
    let mask =
        if cores >= 32 { "ffffffff".to_string() } else { format!("{:x}", (1u64 << cores) - 1) };
    let ethtool = format!("ethtool -L {interface} combined {cores}");
    let rps = format!(
        "for q in /sys/class/net/{interface}/queues/rx-*; do echo {mask} > $q/rps_cpus; done"
    );
    vec![
        Fix::Command { now: ethtool, for_good: String::new() },
        Fix::Command { now: rps, for_good: String::new() },
    ]
}
