//! What names mean while a scenario is compiled, and what was found out so far: data alone, which
//! the reader carries and the modules behind it fill.

mod data;
mod messages;
mod session;
mod vars;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use regex::bytes::Regex;
use throng_program::Extractor;
use throng_protocol::protobuf::Schema;

use crate::syntax::Place;

pub(crate) use data::{Data, Declared, Known};
pub(crate) use messages::{Called, Kinds, Spoken, scheme_of};
pub(crate) use session::{Heard, SLOTS_MAX, Saved, SessionNames};
pub(crate) use vars::{Variable, Vars, names_in, names_in_text};

/// Patterns, paths and selectors that were compiled already: the steps of a scenario say the same
/// again and again, and a regular expression takes as long as a hundred other checks.
#[derive(Default)]
pub(crate) struct Picks {
    pub(crate) known: HashMap<(String, String), Extractor>,
    pub(crate) regexes: HashMap<String, Regex>,
}

/// What a scenario has for the methods that it calls.
#[derive(Clone, Default)]
pub(crate) enum Descriptors {
    /// It names no files.
    #[default]
    None,
    /// It names some, and a mistake keeps them from being known.
    Unknown,
    Known(Arc<Schema>),
}

impl Descriptors {
    pub(crate) fn schema(&self) -> Option<&Arc<Schema>> {
        match self {
            Descriptors::Known(schema) => Some(schema),
            Descriptors::None | Descriptors::Unknown => None,
        }
    }
}

/// What `setup.NAME` may name.
#[derive(Default)]
pub(crate) enum SetupNames {
    /// The scenario has no setup.
    #[default]
    None,
    /// Its own steps are being compiled.
    Open,
    /// A mistake is answered already.
    Broken,
    /// By slot.
    Known(Vec<String>),
}

/// What a file that the scenario names is to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Another file of the scenario; merged into what is recorded.
    Include,
    /// Part of the language: a protocol file, or what that imports.
    Protocol,
    /// Rows of `data`.
    Data,
    /// Of a request or a message.
    Body,
    /// The shape of the load: points, an access log.
    Load,
    Certificate,
    /// A private key.
    Key,
    /// Not a file, but a path all the same: where imports are looked for.
    Folder,
    Socket,
}

impl FileRole {
    /// As it stands in the record.
    pub fn word(self) -> &'static str {
        match self {
            FileRole::Include => "include",
            FileRole::Protocol => "protocol",
            FileRole::Data => "data",
            FileRole::Body => "body",
            FileRole::Load => "load",
            FileRole::Certificate => "certificate",
            FileRole::Key => "key",
            FileRole::Folder => "folder",
            FileRole::Socket => "socket",
        }
    }

    pub(crate) fn is_file(self) -> bool {
        !matches!(self, FileRole::Folder | FileRole::Socket)
    }
}

/// A file that was named while a scenario was read.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) place: Place,
    pub(crate) path: PathBuf,
    pub(crate) role: FileRole,
}
