//! The route to the target from a command line: the keys of `connection` for it.

use super::one_or_list;
use crate::quote::{quoted, scalar, text};

use crate::network::route::BenchProxy;

/// With the semantics of curl. Texts are in the form of scenarios.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BenchRoute {
    /// `HOST:PORT` and its addresses.
    pub resolve: Vec<(String, Vec<String>)>,
    /// `HOST:PORT`, and where connections go instead.
    pub connect_to: Vec<(String, String)>,
    /// `/run/app.sock`, or `@name`.
    pub unix_socket: Option<String>,
    pub proxy: Option<BenchProxy>,
}

impl BenchRoute {
    /// Adds the settings of another command; this one has precedence.
    pub fn extend(&mut self, other: &BenchRoute) {
        self.proxy = self.proxy.take().or_else(|| other.proxy.clone());
        self.unix_socket = self.unix_socket.take().or_else(|| other.unix_socket.clone());
        let is_new = |(place, _): &&(String, Vec<String>)| {
            !self.resolve.iter().any(|(known, _)| known == place)
        };
        let more: Vec<_> = other.resolve.iter().filter(is_new).cloned().collect();
        self.resolve.extend(more);
        other.connect_to.iter().cloned().for_each(|given| self.add_connect_to(given));
    }

    /// Sets the addresses of `HOST:PORT`, replacing earlier ones.
    pub fn add_resolve(&mut self, (place, addresses): (String, Vec<String>)) {
        self.resolve.retain(|(known, _)| *known != place);
        self.resolve.push((place, addresses));
    }

    /// Redirects connections from the first to the second, unless that is already set.
    pub fn add_connect_to(&mut self, (from, to): (String, String)) {
        if !self.connect_to.iter().any(|(known, _)| *known == from) {
            self.connect_to.push((from, to));
        }
    }

    /// The value of `target`.
    pub(super) fn target(&self, origin: &str) -> String {
        match &self.unix_socket {
            None => scalar(origin),
            Some(socket) => format!("{{url: {}, unix_socket: {}}}", quoted(origin), text(socket)),
        }
    }

    /// The entries of `connection`.
    pub(super) fn entries(&self) -> Vec<String> {
        let mut entries = Vec::new();
        let map = |name: &str, pairs: Vec<String>| format!("{name}: {{{}}}", pairs.join(", "));
        if let Some(BenchProxy { url, user }) = &self.proxy {
            let url = quoted(url);
            entries.push(match user {
                None => format!("proxy: {url}"),
                Some((name, word)) => {
                    format!("proxy: {{url: {url}, user: {}, password: {}}}", text(name), text(word))
                }
            });
        }
        if !self.resolve.is_empty() {
            let pair = |(place, addresses): &(String, Vec<String>)| {
                let all: Vec<String> = addresses.iter().map(|one| quoted(one)).collect();
                format!("{}: {}", quoted(place), one_or_list(&all))
            };
            entries.push(map("resolve", self.resolve.iter().map(pair).collect()));
        }
        if !self.connect_to.is_empty() {
            let pair = |(from, to): &(String, String)| format!("{}: {}", quoted(from), quoted(to));
            entries.push(map("connect_to", self.connect_to.iter().map(pair).collect()));
        }
        entries
    }
}
