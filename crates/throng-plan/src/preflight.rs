//! Before the first packet: whether this host has the addresses, ports, descriptors and memory that
//! a run will need. It stops only what cannot work; `throng doctor` tells the rest.

use throng_base::units::format_count;
use throng_base::{Diagnostic, Said};
use throng_host::Root;
use throng_host::doctor::{Finding, Fix, Host, examine};
use throng_program::Program;

use crate::needs::{needs, users_at_once};

/// Fewer users fit on anything that can run throng, unless the scenario itself leaves them few
/// ports; names are not looked up for them.
const USERS_MIN: u64 = 1_000;

/// What this host lacks for the run: errors, or warnings if the user forces the run. Empty if the
/// host is fit.
pub fn preflight(program: &Program, force: bool) -> Vec<Diagnostic> {
    if users_at_once(program) < USERS_MIN && program.connection.sources.ports.is_none() {
        return Vec::new();
    }
    let needs = needs(program);
    let examination = examine(&Host::new(Root::default()), &needs);
    let stops = examination.findings.iter().filter(|finding| finding.stops_a_run());
    stops.map(|finding| diagnostic(finding, needs.users, force)).collect()
}

fn diagnostic(finding: &Finding, users: u64, force: bool) -> Diagnostic {
    let message = say!(
        "this host does not meet the requirements for {} users: {}",
        format_count(users),
        finding.title
    );
    let diagnostic = match force {
        true => Diagnostic::warning("host-unfit", message),
        false => Diagnostic::error("host-unfit", message),
    };
    let diagnostic = diagnostic
        .note(say!("found: {}; needed: {}", finding.value, finding.needed))
        .note(&finding.detail);
    let diagnostic = match finding.ceiling {
        Some(ceiling) => {
            diagnostic.note(say!("that is enough for {} users", format_count(ceiling)))
        }
        None => diagnostic,
    };
    match first_cure(&finding.fixes) {
        Some(cure) => diagnostic.help(cure),
        None => diagnostic,
    }
}

/// What cures a finding first, as one line.
fn first_cure(fixes: &[Fix]) -> Option<Said> {
    let commands = fixes.iter().filter_map(Fix::now);
    let lines = fixes.iter().flat_map(Fix::for_good);
    let advice = fixes.iter().filter_map(Fix::advice).cloned();
    commands.chain(lines).map(Said::of_others).chain(advice).next()
}
