//! What variables, saved values, fields of rows and results of expressions are.

use std::sync::Arc;

/// A value. Cheap to clone; large parts are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    /// Only numbers that no [`Value::Int`] holds need it: `random.u64()`.
    UInt(u64),
    Float(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<[Value]>),
    /// Entries in the order they were written; maps are small.
    Map(Arc<[(Arc<str>, Value)]>),
}

const _: () = assert!(size_of::<Value>() <= 24);
