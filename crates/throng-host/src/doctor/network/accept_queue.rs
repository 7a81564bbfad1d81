//! `net.core.somaxconn`: connections that wait until the service accepts them.

use throng_base::units::format_count;

use crate::doctor::{Finding, Fix, Host, Needs, Severity, rounded_up};

const RULE: &str = "accept-queue";
const KEY: &str = "net.core.somaxconn";
/// A pause of a service, such as for garbage collection, that is not unusual.
const PAUSE_SECONDS: f64 = 0.1;
/// The kernel's own default since 5.4.
const DEFAULT: u64 = 4_096;
/// Kernels before 4.1 keep the length in 16 bits.
const MAX: u64 = 65_535;

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    // It limits the host on which the service listens.
    if !needs.has_tcp() || (!needs.is_target() && !needs.is_local()) {
        return None;
    }
    let detail = say!(
        "new connections wait in this queue until the service accepts them; when the queue is \
         full, clients retry after 1 s, 3 s and 7 s; the service must also request this length \
         in listen(2)"
    );
    let mut finding = Finding::new(RULE, say!("accept queue"), detail);
    let Some(max) = host.number(KEY) else { return Some(finding) };
    let burst = needs.opened_per_second.map_or(DEFAULT, |rate| (rate * PAUSE_SECONDS) as u64);
    let wanted = burst.min(needs.of_tcp()).min(MAX);
    finding.value = say!("{}", format_count(max));
    finding.needed = say!("{}", format_count(wanted));
    finding.fixes = vec![Fix::setting(KEY, rounded_up(wanted).clamp(DEFAULT, MAX))];
    Some(finding.judge(max >= wanted, Severity::Warn))
}
