//! A body that is looked at. Nothing is parsed before somebody asks, and nothing twice.

use std::cell::{Cell, OnceCell};

use crate::fault::Refusal;
use crate::markup::{self, Tree};

/// How large JSON may be to be looked into.
pub const JSON_BYTES_MAX: usize = 16 << 20;

/// How large HTML and XML may be to be looked into.
pub const DOCUMENT_BYTES_MAX: usize = 4 << 20;

/// A body or a message.
#[derive(Debug)]
pub struct Document<'a> {
    bytes: &'a [u8],
    json: OnceCell<Option<serde_json::Value>>,
    tree: OnceCell<Option<Tree>>,
    refusal: Cell<Option<Refusal>>,
}

impl<'a> Document<'a> {
    pub fn new(bytes: &'a [u8]) -> Document<'a> {
        let (json, tree) = (OnceCell::new(), OnceCell::new());
        Document { bytes, json, tree, refusal: Cell::new(None) }
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The body as JSON; `None` if it is none, or too large or too deep, see [`Self::refusal`].
    pub fn json(&self) -> Option<&serde_json::Value> {
        self.json.get_or_init(|| self.parse_json()).as_ref()
    }

    /// Why something was not found that might be there, if that happened since the beginning.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal.get()
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refusal.set(Some(refusal));
    }

    /// The body as HTML or XML, in UTF-8; `None` if it is too large.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.tree
            .get_or_init(|| self.parse_tree().map_err(|refusal| self.refuse(refusal)).ok())
            .as_ref()
    }

    fn parse_tree(&self) -> Result<Tree, Refusal> {
        if self.bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(Refusal::TooLarge);
        }
        let bytes = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.bytes);
        markup::build(&String::from_utf8_lossy(bytes))
    }

    fn parse_json(&self) -> Option<serde_json::Value> {
        match crate::json::parse(self.bytes) {
            Ok(value) => Some(value),
            Err(error) => {
                if let Some(refusal) = error.refusal() {
                    self.refuse(refusal);
                }
                None
            }
        }
    }
}
