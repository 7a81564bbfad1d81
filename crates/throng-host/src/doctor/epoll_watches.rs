//! `fs.epoll.max_user_watches`: sockets that all processes of one account may watch.

use throng_base::units::format_count;

use super::{Finding, Fix, Host, Needs, Severity, rounded_up};

pub(super) const RULE: &str = "epoll-watches";
const KEY: &str = "fs.epoll.max_user_watches";

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    let detail = say!(
        "every connection is watched with epoll; this is the maximum number of watches per \
         account, including root; by default, watches may use 4 % of the memory"
    );
    let mut finding = Finding::new(RULE, say!("epoll watches"), detail);
    let Some(max) = host.number(KEY) else { return Some(finding) };
    let wanted = needs.connections().saturating_mul(needs.ends());
    finding.value = say!("{}", format_count(max));
    finding.needed = say!("{}", format_count(wanted));
    finding.ceiling = Some(needs.users_of(max / needs.ends()));
    finding.fixes = vec![Fix::setting(KEY, rounded_up(wanted.saturating_mul(5) / 4))];
    // The target on this host may run under another account, and a service need not use epoll.
    let bad = match needs.connections() > max && !needs.is_target() {
        true => needs.bad(),
        false => Severity::Warn,
    };
    Some(finding.judge(wanted <= max, bad))
}
