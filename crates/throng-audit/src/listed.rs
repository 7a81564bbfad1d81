//! The entries of a view that have been read so far, from any source.

use std::collections::HashMap;

use throng_metrics::presence::Node;
use throng_program::UserName;

/// Maximum number of names of strangers that are kept.
const UNKNOWN_MAX: usize = 8;
const UNKNOWN_CHARS_MAX: usize = 80;

/// See the module's description.
pub(crate) struct Listed<'a> {
    pub(crate) names: &'a UserName,
    pub(crate) nodes: &'a HashMap<String, Node>,
    pub(crate) online: Vec<(u64, Node)>,
    pub(crate) strangers: u64,
    pub(crate) unknown: Vec<String>,
}

impl Listed<'_> {
    /// An entry with this name, and its node if the position of the entry determines it.
    pub(crate) fn name(&mut self, name: &str, node: Node) {
        match self.names.user(name) {
            Some(user) => self.online.push((user, node)),
            None => self.stranger(name),
        }
    }

    /// A requested user, and the view's name for its node.
    pub(crate) fn user_at(&mut self, user: u64, node: Option<&str>) {
        let node = node.and_then(|name| self.nodes.get(name)).copied();
        self.online.push((user, node.unwrap_or(0)));
    }

    pub(crate) fn stranger(&mut self, name: &str) {
        self.strangers += 1;
        if self.unknown.len() < UNKNOWN_MAX {
            self.unknown.push(name.chars().take(UNKNOWN_CHARS_MAX).collect());
        }
    }
}
