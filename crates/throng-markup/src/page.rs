//! A text that is parsed on demand, and at most once.

use std::cell::{Cell, OnceCell};

use crate::fault::Refusal;
use crate::tree::{self, Tree};

/// Maximum size of HTML and XML that is parsed.
pub const PAGE_BYTES_MAX: usize = 4 << 20;

/// HTML or XML, in UTF-8.
#[derive(Debug)]
pub struct Page<'a> {
    bytes: &'a [u8],
    tree: OnceCell<Option<Tree>>,
    refusal: Cell<Option<Refusal>>,
}

impl<'a> Page<'a> {
    pub fn new(bytes: &'a [u8]) -> Page<'a> {
        Page { bytes, tree: OnceCell::new(), refusal: Cell::new(None) }
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Why something that might be present was not found, if a limit was reached.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal.get()
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refusal.set(Some(refusal));
    }

    /// The parsed tree; `None` if the text is too large.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.tree.get_or_init(|| self.parse().map_err(|refusal| self.refuse(refusal)).ok()).as_ref()
    }

    fn parse(&self) -> Result<Tree, Refusal> {
        if self.bytes.len() > PAGE_BYTES_MAX {
            return Err(Refusal::TooLarge);
        }
        let bytes = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.bytes);
        tree::build(&String::from_utf8_lossy(bytes))
    }
}
