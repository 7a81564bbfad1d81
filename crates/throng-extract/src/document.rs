//! A body that is parsed on demand, and at most once per format.

use std::cell::{Cell, OnceCell};

use throng_expression::Value;
use throng_markup::{Page, Refusal};

use crate::json::{self, JsonPath, JsonReach};

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

    /// The body as JSON; `None` if it is not JSON, too large or too deep, see [`Self::refusal`].
    pub fn json(&self) -> Option<&serde_json::Value> {
        self.json.get_or_init(|| self.parse_json()).as_ref()
    }

    /// Whether it is a JSON object or list followed by something else: another one, as servers join
    /// them, or a separator.
    #[cold]
    pub fn is_joined_json(&self) -> bool {
        let text = self.bytes().trim_ascii();
        if !text.starts_with(b"{") && !text.starts_with(b"[") {
            return false;
        }
        // Most messages are one value on one line: this is checked without parsing.
        let is_split = text.iter().any(|byte| byte.is_ascii_control());
        if !is_split && !text.windows(2).any(|pair| matches!(pair, b"}{" | b"][")) {
            return false;
        }
        let mut values =
            serde_json::Deserializer::from_slice(text).into_iter::<serde_json::Value>();
        matches!((values.next(), values.next()), (Some(Ok(_)), Some(_)))
    }

    /// Why something that might be present was not found, if a limit was reached.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal.get().or(self.page.refusal())
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refusal.set(Some(refusal));
    }

    fn parse_json(&self) -> Option<serde_json::Value> {
        match json::parse(self.bytes()) {
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

/// Applies paths to a body; errors are recorded in the document.
impl JsonPath {
    /// The first match in a body, as a value.
    pub fn first_in(&self, document: &Document<'_>) -> Option<Value> {
        let found = self.find(document.json()?).map_err(|refusal| document.refuse(refusal)).ok()?;
        found.first().copied().map(Value::from_json)
    }

    /// All matches in a body, as values.
    pub fn all_in(&self, document: &Document<'_>) -> Vec<Value> {
        let Some(json) = document.json() else { return Vec::new() };
        match self.find(json) {
            Ok(found) => found.into_vec().into_iter().map(Value::from_json).collect(),
            Err(refusal) => {
                document.refuse(refusal);
                Vec::new()
            }
        }
    }

    /// How far it matches; `None` if the body is not JSON.
    pub fn reach(&self, document: &Document<'_>) -> Option<JsonReach> {
        self.reach_in(document.json()?)
    }
}
