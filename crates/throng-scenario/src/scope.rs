//! The meaning of names while a scenario is compiled, and the findings so far: only data, which the
//! reader passes on and its modules fill.

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

/// Caches compiled patterns, paths and selectors: the steps of a scenario repeat them, and
/// compiling a regular expression takes as long as a hundred other checks.
#[derive(Default)]
pub(crate) struct Picks {
    pub(crate) known: HashMap<(String, String), Extractor>,
    pub(crate) regexes: HashMap<String, Regex>,
}

/// The declarations of methods that a scenario can call.
#[derive(Clone, Default)]
pub(crate) enum Descriptors {
    /// It names no files.
    #[default]
    None,
    /// It names files, but a mistake makes them unknown.
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

/// The values that `setup.NAME` can name.
#[derive(Default)]
pub(crate) enum SetupNames {
    /// The scenario has no setup.
    #[default]
    None,
    /// The setup itself is being compiled.
    Open,
    /// Its mistake is already reported.
    Broken,
    /// By slot.
    Known(Vec<String>),
}

/// The role of a file that the scenario names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Another file of the scenario, merged into the recorded one.
    Include,
    /// Part of the language: a protocol file or its imports.
    Protocol,
    /// Rows of `data`.
    Data,
    /// The body of a request or message.
    Body,
    /// The shape of the load: points, an access log.
    Load,
    Certificate,
    /// A private key.
    Key,
    /// A path of a folder: where imports are searched.
    Folder,
    Socket,
}

impl FileRole {
    /// The word in the run directory.
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

/// A file that the scenario names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) place: Place,
    pub(crate) path: PathBuf,
    pub(crate) role: FileRole,
}
