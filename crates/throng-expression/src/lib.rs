//! Expressions of scenarios, `${…}`: values, the names an expression may use, and what evaluating
//! it costs nobody who does not use it.
//!
//! - [`value`]: what variables, saved values, fields of rows and results of expressions are.
//! - [`scope`]: what an expression sees of the user it is evaluated for.

#![forbid(unsafe_code)]

pub mod scope;
pub mod value;

pub use scope::{Answer, Fault, Scope};
pub use value::Value;
