//! Expressions of scenarios, `${…}`, in the Common Expression Language (CEL).
//!
//! An [`Expression`] is compiled once: names become slots, constant parts are computed, and errors
//! that can be found early are reported with their position. Evaluation walks a small tree, without
//! looking up names, within [`STEPS_MAX`] steps.
//!
//! - [`value`]: variables, saved values, fields of rows and results of expressions.
//! - [`scope`]: what an expression sees of its user.
//! - [`names`]: resolves names, implemented by the compiler of scenarios.
//! - [`expression`]: compiling and evaluating.
//! - [`functions`]: the table of all functions, for help, schema and documentation.
//! - [`scram`]: SCRAM logins, also to databases.
//!
//! It is more lenient than CEL where that would surprise users who do not program: whole numbers
//! and fractions may be mixed, `has(a.b.c)` is false if `a.b` is missing, `x.f()` and `f(x)` are
//! the same, and the keys of maps are texts.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod call;
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
pub use json::{escape_json, is_number, within_range};
pub use names::{Name, Names, UnknownName};
pub use passed::Passed;
pub use scope::{Answer, EvaluationError, Nowhere, Scope};
pub use tokens::{EXPRESSION_BYTES_MAX, NESTING_MAX, TREE_DEPTH_MAX};
pub use value::Value;
