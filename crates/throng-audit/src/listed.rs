//! What has been read of a view so far, in any way.

use std::collections::HashMap;

use throng_metrics::presence::Node;
use throng_program::UserName;

/// So many names of strangers are kept.
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
    /// An entry of this name, on this node if the view tells it by where the entry stands.
    pub(crate) fn name(&mut self, name: &str, node: Node) {
        match self.names.user(name) {
            Some(user) => self.online.push((user, node)),
            None => self.stranger(name),
        }
    }

    /// A user that was asked for, and what the view calls its node.
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
