//! Permissions of a scenario's events and audits on this host: commands only if the user allows
//! them, and requests only to addresses in the lists of allowed targets.

use std::net::ToSocketAddrs as _;
use std::path::PathBuf;

use throng_base::{Diagnostic, Said, plain};
use throng_engine::AllowList;
use throng_program::event::written;
use throng_program::{Action, Audit, Program, TimedEvent};

/// Environment variable that allows all commands.
const VARIABLE: &str = "THRONG_ALLOW_COMMANDS";
/// File in the configuration directory with one allowed command per line, or `*` for all.
const FILE: &str = "throng/commands";
const FILE_BYTES_MAX: usize = 1 << 20;
const SHOWN_MAX: usize = 5;

/// Checks, before anything is sent, that the events and audits have the required permissions.
pub fn permit(
    program: &Program,
    allows_all: bool,
    lists: &[AllowList],
) -> Result<(), Box<Diagnostic>> {
    let allowed = if allows_all { vec!["*".to_string()] } else { allowed() };
    let is_allowed = |command: &str| allowed.iter().any(|it| it == "*" || it == command);
    let audits = program.audits.iter().flat_map(Audit::commands).map(written);
    let commands: Vec<String> =
        program.events.iter().filter_map(TimedEvent::command).chain(audits).collect();
    let refused: Vec<&String> = commands.iter().filter(|it| !is_allowed(it)).collect();
    if !refused.is_empty() {
        let message =
            say!("the scenario executes commands on this host, but commands are not allowed");
        let mut error = Diagnostic::error("commands-not-allowed", message);
        for command in refused.iter().take(SHOWN_MAX) {
            error = error.note(say!("command: {}", program.secrets.mask(command)));
        }
        if refused.len() > SHOWN_MAX {
            error = error.note(say!("… and {} more", refused.len() - SHOWN_MAX));
        }
        return Err(Box::new(error.help(say!(
            "review them, then add `--allow-commands`, or list them in the file `commands` in \
             throng's configuration folder"
        ))));
    }
    for event in &program.events {
        if let Action::Http(call) = &event.action {
            reachable(&call.url, lists, |stranger, origin| {
                let name = &event.name;
                say!("the event `{name}` sends to {stranger}, which {origin} does not allow")
            })?;
        }
    }
    audits_reach(&program.audits, lists)
}

/// Checks that audits read only from allowed targets.
pub fn audits_reach(audits: &[Audit], lists: &[AllowList]) -> Result<(), Box<Diagnostic>> {
    for audit in audits {
        for url in audit.urls() {
            reachable(url, lists, |stranger, origin| {
                let name = &audit.name;
                say!("the audit `{name}` reads {stranger}, which {origin} does not allow")
            })?;
        }
    }
    Ok(())
}

fn allowed() -> Vec<String> {
    let is_set = std::env::var(VARIABLE).is_ok_and(|text| !matches!(text.trim(), "" | "0"));
    if is_set {
        return vec!["*".to_string()];
    }
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let given = folder("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let Some(folder) = given.or_else(|| folder("HOME").map(|home| home.join(".config"))) else {
        return Vec::new();
    };
    // An unreadable file allows nothing.
    let text = plain::read_text(&folder.join(FILE), FILE_BYTES_MAX).unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
    lines.map(str::to_string).collect()
}

/// Checks that requests to this URL go only to allowed targets.
fn reachable(
    url: &str,
    lists: &[AllowList],
    message: impl Fn(String, &str) -> Said,
) -> Result<(), Box<Diagnostic>> {
    if lists.is_empty() {
        return Ok(());
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.bytes().all(|it| it.is_ascii_digit()));
    let (host, with_port) = match has_port {
        true => (authority.rsplit_once(':').map_or(authority, |it| it.0), authority.to_string()),
        false => (authority, format!("{authority}:80")),
    };
    let addresses: Vec<_> = with_port.to_socket_addrs().into_iter().flatten().collect();
    for list in lists {
        if let Some(stranger) = list.stranger(Some(host), &addresses) {
            let message = message(stranger.to_string(), &list.origin);
            let error = Diagnostic::error("target-not-allowed", message);
            return Err(Box::new(error.help(say!("allow it there, or remove it here"))));
        }
    }
    Ok(())
}
