//! Connection tracking: a stateful firewall has an entry for every connection.

use throng_base::units::format_count;

use crate::doctor::{Finding, Fix, Host, Needs, Severity, descriptors, rounded_up};

const RULE: &str = "conntrack";
const KEY: &str = "net.netfilter.nf_conntrack_max";

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    let detail = say!(
        "a stateful firewall or NAT keeps an entry for every connection and drops packets that \
         have no entry; entries for closed connections remain for up to 2 minutes"
    );
    let mut finding = Finding::new(RULE, say!("connection tracking"), detail);
    let Some(max) = host.number(KEY) else {
        // If other network settings exist, the module is not loaded.
        host.setting("net.ipv4.tcp_mem")?;
        finding.value = say!("not loaded");
        return Some(finding.judge(true, Severity::Fit));
    };
    let Some(count) = host.number("net.netfilter.nf_conntrack_count") else {
        return Some(finding);
    };
    if count == 0 {
        // Loaded, but no firewall rule uses it: the kernel tracks nothing.
        finding.value = say!("no connections tracked (limit {})", format_count(max));
        return Some(finding.judge(true, Severity::Fit));
    }
    let kept = descriptors::kept(host, needs);
    let wanted = count.saturating_add(needs.connections()).saturating_add(kept);
    finding.value = say!("{} ({} in use)", format_count(max), format_count(count));
    finding.needed = say!("{}", format_count(wanted));
    finding.ceiling = Some(needs.users_of(max.saturating_sub(count).saturating_sub(kept)));
    finding.fixes = vec![
        Fix::setting(KEY, rounded_up(wanted.saturating_mul(5) / 4)),
        Fix::Advice(say!(
            "or exempt the test connections from tracking with `notrack` in an nft rule"
        )),
    ];
    Some(finding.judge(wanted <= max, needs.bad()))
}
