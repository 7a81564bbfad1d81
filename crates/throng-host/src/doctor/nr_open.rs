//! `fs.nr_open`: the maximum for limits of open files.

use throng_base::units::format_count;

use super::{Finding, Fix, Host, Needs, Severity, rounded_up};

const RULE: &str = "nr-open";

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    let detail = match needs.is_target() {
        true => say!("the open-file limit of a process cannot be set higher than this"),
        false => {
            say!(
                "the open-file limit of a process cannot be set higher than this; each shard has \
                 its own table, so the number of users is not affected"
            )
        }
    };
    let mut finding = Finding::new(RULE, say!("maximum open-file limit"), detail);
    let Some(nr_open) = host.number("fs.nr_open") else { return Some(finding) };
    finding.value = say!("{}", format_count(nr_open));
    if !needs.is_target() {
        return Some(finding.judge(true, Severity::Fit));
    }
    let wanted = needs.users.saturating_add(100);
    finding.needed = say!("{}", format_count(wanted));
    finding.ceiling = Some(nr_open.saturating_sub(100));
    finding.fixes = vec![Fix::setting("fs.nr_open", rounded_up(wanted))];
    Some(finding.judge(nr_open >= wanted, Severity::Unfit))
}
