//! Checks before the first packet whether this host has the addresses, ports, descriptors and
//! memory that a run needs. Stops only runs that cannot work; `throng doctor` reports the rest.

use throng_base::units::format_count;
use throng_base::{Diagnostic, Said};
use throng_host::Root;
use throng_host::doctor::{Finding, Fix, Host, examine};
use throng_program::Program;

use crate::needs::{needs, users_at_once};

/// Fewer users fit on any host that can run throng, unless the scenario itself limits their ports;
/// target names are not resolved for them.
const USERS_MIN: u64 = 1_000;

/// What is missing on this host for the run: errors, or warnings if the user forces the run. Empty
/// if nothing is missing.
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

/// The first fix of a finding, in one line.
fn first_cure(fixes: &[Fix]) -> Option<Said> {
    let commands = fixes.iter().filter_map(Fix::now);
    let lines = fixes.iter().flat_map(Fix::for_good);
    let advice = fixes.iter().filter_map(Fix::advice).cloned();
    commands.chain(lines).map(Said::of_others).chain(advice).next()
}
