//! Protects services of others against load, and any service against too much: reads the lists of
//! allowed targets and the budget, and warns about a public address if there is no list. The engine
//! enforces the lists.

pub mod permit;

use std::cell::Cell;
use std::io::ErrorKind;
use std::net::SocketAddr;

use throng_base::private::user_folder;
use throng_base::{Diagnostic, Exit, Said, plain};
use throng_engine::{AllowList, Run, is_public};
use throng_plan::budget::Budget;
use throng_program::Program;

use crate::Operator;

/// Environment variable with a list of allowed targets.
const VARIABLE: &str = "THRONG_TARGETS";
/// Environment variable by which `throng mcp` passes its list, under its own name.
pub const MCP_VARIABLE: &str = "THRONG_MCP_TARGETS";
pub const MCP_LIST: &str = "throng mcp --allow";
/// List for all users of this machine.
const MACHINE_FILE: &str = "/etc/throng/targets";
const LIST_BYTES_MAX: usize = 16 << 20;

/// All existing lists, and the budget. A target must be in every list.
#[derive(Debug)]
pub struct Guard {
    pub lists: Vec<AllowList>,
    pub budget: Budget,
    has_warned: Cell<bool>,
}

impl Guard {
    /// An unreadable list allows nothing.
    pub fn read(errors: &dyn Operator) -> Result<Guard, Exit> {
        let budget = Budget::of_environment();
        let guard = read()
            .and_then(|lists| Ok(Guard { lists, budget: budget?, has_warned: Cell::new(false) }));
        guard.map_err(|told| errors.refuse(&told, Exit::Usage))
    }

    /// Warns about the first public address if no list exists.
    pub fn warn(&self, program: &Program, run: &Run, errors: &dyn Operator) {
        if !self.lists.is_empty() || self.has_warned.get() {
            return;
        }
        let targets = program.targets.iter().zip(&run.addresses);
        let mut public = targets.flat_map(|(target, addresses)| {
            let public = addresses.iter().map(SocketAddr::ip).filter(|it| is_public(*it));
            let (host, _) = program.connection.routing.next_hop(target);
            public.map(move |address| (host, address))
        });
        if let Some((host, address)) = public.next() {
            self.has_warned.set(true);
            errors.say(sentence(host, &address.to_string(), public.count()));
        }
    }
}

fn read() -> Result<Vec<AllowList>, Box<Diagnostic>> {
    let mut lists = Vec::new();
    for (variable, origin) in [(VARIABLE, VARIABLE), (MCP_VARIABLE, MCP_LIST)] {
        let text = std::env::var_os(variable).map(|text| text.to_string_lossy().into_owned());
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            lists.push(list(origin, &text)?);
        }
    }
    let own = user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("throng/targets"));
    for path in own.into_iter().chain([MACHINE_FILE.into()]) {
        let shown = path.display().to_string();
        match plain::read_text(&path, LIST_BYTES_MAX) {
            Ok(text) => lists.push(list(&shown, &text)?),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => {
                let message = say!(
                    "cannot read the list of targets {shown}: {error}",
                    error = Said::of_error(&error)
                );
                let error = Diagnostic::error("file-unreadable", message);
                return Err(Box::new(error.help(say!("make it readable, or ask its owner"))));
            }
        }
    }
    Ok(lists)
}

pub fn list(origin: &str, text: &str) -> Result<AllowList, Box<Diagnostic>> {
    AllowList::parse(origin, text).map_err(|word| {
        let message = say!("`{word}` in {origin} is not a name, address or network");
        let help =
            say!("write names, addresses and networks: `shop.test, *.staging.test, 10.1.0.0/16`");
        Box::new(Diagnostic::error("target-not-allowed", message).help(help))
    })
}

fn sentence(host: &str, address: &str, more: usize) -> Said {
    let name = if host == address { address.to_string() } else { format!("{host} ({address})") };
    match more {
        0 => say!("{name} is a public address: load only services you own"),
        more => say!("{name} and {more} more are public addresses: load only services you own"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_public_address_is_named() {
        assert_eq!(
            sentence("shop.example", "192.0.2.1", 0),
            "shop.example (192.0.2.1) is a public address: load only services you own"
        );
        assert_eq!(
            sentence("192.0.2.1", "192.0.2.1", 2),
            "192.0.2.1 and 2 more are public addresses: load only services you own"
        );
    }
}
