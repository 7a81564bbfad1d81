//! What can be taken out of an answer: fields of JSON, nodes of HTML and XML, parts of text, and
//! digests. Only taking out; what was taken is compared elsewhere.
//!
//! - [`Document`]: a body that is parsed at most once per kind, and only when somebody asks.
//! - [`JsonPath`], [`JsonPaths`]: fields of JSON, by name and index or by a whole RFC 9535 query.
//! - [`XPath`] (1.0) and [`Css`]: nodes of HTML and XML, from `throng-markup`.
//! - [`Pattern`]: a regular expression over bytes, with a group.
//! - [`Digest`]: what a body is known by.
//!
//! The answers come from others, so everything here is bounded in time, memory and depth, whatever
//! they hold. Where a bound is met nothing is found, and [`Document::refusal`] says why.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod digest;
mod document;
mod json;
mod pattern;

pub use digest::{Digest, Hasher};
pub use document::Document;
pub use json::{JSON_BYTES_MAX, JsonPart, JsonPath, JsonPaths, JsonReach, JsonThere, NotJson};
pub use pattern::{PATTERN_BYTES_MAX, Pattern};
pub use throng_markup::{Beginning, Css, Page, PathError, Refusal, XPath};
