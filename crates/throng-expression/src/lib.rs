//! Expressions of scenarios, `${…}`, in the Common Expression Language (CEL).
//!
//! An [`Expression`] is compiled once: the `cel` crate parses it, names become slots, constant
//! parts are computed, and what can be known to be wrong is said with its place. Evaluating it
//! walks a small tree of our own, without looking up a name, within [`STEPS_MAX`] steps.
//!
//! - [`value`]: what variables, saved values, fields of rows and results of expressions are.
//! - [`scope`]: what an expression sees of the user it is evaluated for.
//! - [`names`]: what a name in an expression means, as the compiler of scenarios knows it.
//! - [`expression`]: compiling and evaluating.
//! - [`functions`]: the table of all functions, for help, schema and documentation.
//! - [`scram`]: logins by SCRAM, also those to databases.
//!
//! It differs from CEL where people who do not program would stumble: whole numbers and fractions
//! may be mixed, `has(a.b.c)` is false when `a.b` is missing, `x.f()` and `f(x)` are the same, and
//! the keys of maps are texts.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod call;
mod digest;
mod encoding;
mod error;
mod evaluate;
pub mod expression;
pub mod functions;
mod json;
mod lexer;
mod lists;
mod lower;
mod moment;
pub mod names;
mod node;
mod numbers;
mod parser;
mod passed;
mod random;
pub mod scope;
pub mod scram;
mod text;
mod tokens;
mod types;
pub mod value;

pub use call::FunctionDoc;
pub use error::CompileError;
pub use evaluate::{STEPS_MAX, VALUE_DEPTH_MAX};
pub use expression::{Expression, Slots};
pub use functions::FUNCTIONS;
pub use json::within_range;
pub use names::{Name, Names, UnknownName};
pub use passed::Passed;
pub use scope::{Answer, Fault, Scope};
pub use tokens::{EXPRESSION_BYTES_MAX, NESTING_MAX, TREE_DEPTH_MAX};
pub use value::Value;
