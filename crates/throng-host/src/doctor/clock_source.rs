//! The clock source: how the kernel reads the time, and the cost of reading it.

use throng_base::Said;

use super::{Finding, Fix, Host, Needs, Severity};

const RULE: &str = "clock-source";
const DIRECTORY: &str = "sys/devices/system/clocksource/clocksource0";
/// Read without a system call (vdso(7)).
const FAST: [&str; 6] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "timebase",
    "riscv_clocksource",
];
/// Read from a device or with a system call: microseconds per read.
const SLOW: [&str; 5] = ["hpet", "acpi_pm", "xen", "jiffies", "refined-jiffies"];

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if needs.is_target() {
        return None;
    }
    let detail = say!(
        "throng reads the clock for every message; a clock that requires a device access or a \
         system call costs CPU time and makes measured times less precise"
    );
    let mut finding = Finding::new(RULE, say!("clock"), detail);
    let Some(clock) = host.root.line(format!("{DIRECTORY}/current_clocksource")) else {
        return Some(finding);
    };
    let available = host.root.line(format!("{DIRECTORY}/available_clocksource"));
    let better = available.unwrap_or_default();
    let better = better.split_whitespace().find(|name| FAST.contains(name));
    if let Some(better) = better {
        finding.needed = say!("{}", better.to_string());
        finding.fixes = vec![choose(better)];
    }
    let is_known = FAST.contains(&clock.as_str()) || SLOW.contains(&clock.as_str());
    let is_fast = FAST.contains(&clock.as_str());
    finding.value = say!("{}", clock);
    if is_fast {
        finding.needed = Said::default();
    }
    if !is_known {
        finding.fixes.clear();
        finding.needed = Said::default();
        return Some(finding);
    }
    Some(finding.judge(is_fast, Severity::Warn))
}

fn choose(clock: &str) -> Fix {
    Fix::Command {
        now: format!("echo {clock} > /{DIRECTORY}/current_clocksource"),
        for_good: format!("GRUB_CMDLINE_LINUX: clocksource={clock}"),
    }
}
