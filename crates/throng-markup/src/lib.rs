//! HTML and XML, and what is found in them: bytes in, values out, nothing else.
//!
//! - [`Page`]: a text that is parsed at most once, and only when somebody asks.
//! - [`XPath`] (1.0) and [`Css`]: nodes of it.
//! - [`PathError`], [`Refusal`], [`Work`], [`beginnings`]: what all paths into an answer share.
//!
//! The texts come from others, so everything here is bounded in time, memory and depth, whatever
//! they hold. Where a bound is met nothing is found, and [`Page::refusal`] says why.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod css;
mod fault;
mod near;
mod page;
mod tree;
mod xpath;

pub use css::Css;
pub use fault::{PathError, Refusal, Work};
pub use near::{Beginning, beginnings};
pub use page::{PAGE_BYTES_MAX, Page};
pub use xpath::XPath;
