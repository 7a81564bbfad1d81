//! A body that is looked at. Nothing is parsed before somebody asks, and nothing twice.

use std::cell::{Cell, OnceCell};

use throng_markup::{Page, Refusal};

/// How large JSON may be to be looked into.
pub const JSON_BYTES_MAX: usize = 16 << 20;

/// A body or a message.
#[derive(Debug)]
pub struct Document<'a> {
    page: Page<'a>,
    json: OnceCell<Option<serde_json::Value>>,
    refusal: Cell<Option<Refusal>>,
}

impl<'a> Document<'a> {
    pub fn new(bytes: &'a [u8]) -> Document<'a> {
        Document { page: Page::new(bytes), json: OnceCell::new(), refusal: Cell::new(None) }
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.page.bytes()
    }

    /// The body as HTML or XML.
    pub fn page(&self) -> &Page<'a> {
        &self.page
    }

    /// The body as JSON; `None` if it is none, or too large or too deep, see [`Self::refusal`].
    pub fn json(&self) -> Option<&serde_json::Value> {
        self.json.get_or_init(|| self.parse_json()).as_ref()
    }

    /// Why something was not found that might be there, if that happened since the beginning.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal.get().or(self.page.refusal())
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refusal.set(Some(refusal));
    }

    fn parse_json(&self) -> Option<serde_json::Value> {
        match crate::json::parse(self.bytes()) {
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
