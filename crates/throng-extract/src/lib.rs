//! Extracts values from responses: JSON fields, HTML and XML nodes, parts of text, and digests.
//! They are compared elsewhere.
//!
//! - [`Document`]: a body that is parsed on demand, and at most once per format.
//! - [`JsonPath`], [`JsonPaths`]: JSON fields, by name and index or by a complete RFC 9535 query.
//! - [`XPath`] (1.0) and [`Css`]: nodes of HTML and XML, from `throng-markup`.
//! - [`Pattern`]: a regular expression over bytes, with a group.
//! - [`Digest`]: digests of bodies.
//!
//! Responses are untrusted, so everything here is limited in time, memory and depth. If a limit is
//! reached, nothing is found, and [`Document::refusal`] says why.

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
