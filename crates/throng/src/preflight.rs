//! Before the first packet: whether this host has the addresses, ports, descriptors and memory that
//! a run will need. It stops only what cannot work; `throng doctor` tells the rest.

use throng_base::units::format_count;
use throng_base::{Diagnostic, Exit};
use throng_host::Root;
use throng_host::doctor::{Finding, Host, examine};
use throng_program::Program;

use crate::doctor::{first_cure, needs, users_at_once};
use crate::screen::Screen;

/// Fewer users fit on anything that can run throng, unless the scenario itself leaves them few
/// ports; names are not looked up for them.
const USERS_MIN: u64 = 1_000;

pub(crate) fn preflight(program: &Program, force: bool, errors: Screen) -> Result<(), Exit> {
    if users_at_once(program) < USERS_MIN && program.connection.sources.ports.is_none() {
        return Ok(());
    }
    let needs = needs(program);
    let examination = examine(&Host::new(Root::default()), &needs);
    let stops: Vec<&Finding> =
        examination.findings.iter().filter(|finding| finding.stops_a_run()).collect();
    if stops.is_empty() {
        return Ok(());
    }
    stops.iter().for_each(|finding| errors.diagnostic(&diagnostic(finding, needs.users, force)));
    if force {
        return Ok(());
    }
    errors.say(say!(
        "nothing was sent; `throng doctor` shows all limits, and --force starts the run anyway"
    ));
    Err(Exit::HostUnfit)
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
