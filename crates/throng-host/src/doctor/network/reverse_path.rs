//! `rp_filter`: drops packets that arrive on another interface than replies would use.

use crate::doctor::{Finding, Fix, Host, Needs, Severity};

const RULE: &str = "rp-filter";
const STRICT: u64 = 1;

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    let interfaces = host.interfaces();
    let is_one_way = needs.sources.is_empty() && !needs.transparent && interfaces.len() < 2;
    // On the loopback interface, and with a single route, it drops nothing.
    if needs.is_local() || (is_one_way && !needs.is_target()) {
        return None;
    }
    let detail = say!(
        "strict filtering (1) drops packets that arrive on a different interface than a reply \
         would use, which can happen if source addresses are on several interfaces; loose \
         filtering (2) accepts such packets"
    );
    let mut finding = Finding::new(RULE, say!("reverse path filter"), detail);
    // The larger one of both applies (ip-sysctl).
    let all = host.number("net.ipv4.conf.all.rp_filter")?;
    let of = |name: &String| {
        let own = host.number(&format!("net/ipv4/conf/{name}/rp_filter"))?;
        Some((name.clone(), own.max(all)))
    };
    let filters: Vec<(String, u64)> = interfaces.iter().filter_map(of).collect();
    let strict: Vec<&str> = filters
        .iter()
        .filter(|(_, filter)| *filter == STRICT)
        .map(|(name, _)| name.as_str())
        .collect();
    finding.value = match strict.is_empty() {
        true => say!("not strict"),
        false => say!("strict on {}", strict.join(", ")),
    };
    finding.fixes = strict.iter().map(|name| Fix::setting(key(name), 2)).collect();
    let is_fit = strict.is_empty() || filters.len() < 2;
    Some(finding.judge(is_fit, Severity::Warn))
}

/// Interface names may contain dots.
fn key(interface: &str) -> String {
    match interface.contains('.') {
        true => format!("net/ipv4/conf/{interface}/rp_filter"),
        false => format!("net.ipv4.conf.{interface}.rp_filter"),
    }
}
