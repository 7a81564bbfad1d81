//! What is promised in print: examples, tutorials, recipes, the manual, files for build servers.

mod ci;
mod cookbook;
mod examples;
mod manual;
pub(crate) mod tutorials;
