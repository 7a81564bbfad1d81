//! `fs.file-max`: open files of the whole host.

use throng_base::units::format_count;

use super::host::CAP_SYS_ADMIN;
use super::{Finding, Fix, Host, Needs, Severity, descriptors, rounded_up};

pub(super) const RULE: &str = "file-max";

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    let detail = say!(
        "every socket is an open file, and this limit applies to the whole host; only root \
         (CAP_SYS_ADMIN) can exceed it, and other processes can then no longer open files"
    );
    let mut finding = Finding::new(RULE, say!("open files on the host"), detail);
    let (Some(max), Some([open, _, _])) =
        (host.number("fs.file-max"), host.numbers::<3>("fs.file-nr"))
    else {
        return Some(finding);
    };
    let kept = descriptors::kept(host, needs);
    let sockets = needs.connections().saturating_mul(needs.ends()).saturating_add(kept);
    let wanted = open.saturating_add(sockets);
    // The kernel's own maximum means no limit.
    finding.value = match max > u64::MAX / 4 {
        true => say!("unlimited"),
        false => say!("{} ({} open)", format_count(max), format_count(open)),
    };
    finding.needed = say!("{}", format_count(wanted));
    finding.ceiling =
        Some(needs.users_of(max.saturating_sub(open).saturating_sub(kept) / needs.ends()));
    finding.fixes = vec![Fix::setting("fs.file-max", rounded_up(wanted.saturating_mul(5) / 4))];
    let is_root = host.can(CAP_SYS_ADMIN);
    if is_root {
        finding.ceiling = None;
    }
    // The target on this host may run as root.
    let bad = match open.saturating_add(descriptors::connections(host, needs)) > max && !is_root {
        true => needs.bad(),
        false => Severity::Warn,
    };
    Some(finding.judge(wanted <= max, bad))
}
