//! HTML and XML, and searches in them: bytes in, values out.
//!
//! - [`Page`]: a text that is parsed on demand, and at most once.
//! - [`XPath`] (1.0) and [`Css`]: select its nodes.
//! - [`PathError`], [`PathText`], [`Refusal`], [`Work`], [`beginnings`]: shared by all paths into a
//!   response.
//!
//! The texts are untrusted, so everything here is limited in time, memory and depth. If a limit is
//! reached, nothing is found, and [`Page::refusal`] says why.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod css;
mod fault;
mod near;
mod page;
mod scan;
mod tree;
mod xpath;

pub use css::Css;
pub use fault::{PathError, Refusal, Work};
pub use near::{Beginning, beginnings};
pub use page::{PAGE_BYTES_MAX, Page};
pub use scan::PathText;
pub use xpath::XPath;
