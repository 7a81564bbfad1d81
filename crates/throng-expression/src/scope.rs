//! What an expression sees of its user.

use throng_base::{Random, Said};

use crate::value::Value;

/// Why an expression has no value: something is missing, has the wrong type, or is out of range.
/// One sentence without a full stop, for the example of the failed step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError(pub Said);

/// A part of the response that is being checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// HTTP status, or the code of the upgrade.
    Status,
    /// The body or message as text.
    Body,
    /// The body or message as JSON.
    Json,
    /// All headers, names in lower case.
    Headers,
    /// Bytes of the body.
    Size,
    /// Milliseconds, with a fraction.
    Time,
}

/// What an expression sees. The engine implements it for a user; tests for a map.
pub trait Scope {
    /// Unique in the whole run.
    fn user_id(&self) -> u64;
    /// How many iterations the user has begun.
    fn iteration(&self) -> u64;
    /// A saved value, or an item of `for_each`; [`Value::Null`] if nothing was saved yet.
    fn slot(&self, slot: u16) -> &Value;
    /// A value that was created before the load; [`Value::Null`] without one.
    fn setup(&self, _: u16) -> &Value {
        static NOTHING: Value = Value::Null;
        &NOTHING
    }
    /// A field of the user's row of a data source; the row is taken on first use.
    fn field(&mut self, source: u16, column: u16) -> Result<Value, EvaluationError>;
    /// The complete row: a map of its fields, or the item itself if the source is a list.
    fn row(&mut self, source: u16) -> Result<Value, EvaluationError>;
    /// A part of the response; an error outside of checks and saves.
    fn answer(&mut self, part: Answer) -> Result<Value, EvaluationError>;
    /// The user's own randomness.
    fn random(&mut self) -> &mut Random;
    /// Nanoseconds since the epoch.
    fn unix_nanos(&self) -> u64;
}

/// The scope of constants: it is empty, with fixed randomness and time.
pub struct Nowhere {
    random: Random,
}

impl Nowhere {
    fn nothing() -> EvaluationError {
        EvaluationError(say!("names cannot be used in this expression"))
    }
}

impl Default for Nowhere {
    fn default() -> Nowhere {
        Nowhere { random: Random::new(0) }
    }
}

impl Scope for Nowhere {
    fn user_id(&self) -> u64 {
        0
    }

    fn iteration(&self) -> u64 {
        0
    }

    fn slot(&self, _: u16) -> &Value {
        &Value::Null
    }

    fn field(&mut self, _: u16, _: u16) -> Result<Value, EvaluationError> {
        Err(Nowhere::nothing())
    }

    fn row(&mut self, _: u16) -> Result<Value, EvaluationError> {
        Err(Nowhere::nothing())
    }

    fn answer(&mut self, _: Answer) -> Result<Value, EvaluationError> {
        Err(Nowhere::nothing())
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn unix_nanos(&self) -> u64 {
        0
    }
}
