//! A scope without a user, for expressions.

use throng_base::Random;
use throng_expression::{Answer, Fault, Scope, Value};

pub(crate) static NOTHING: Value = Value::Null;

/// A scope without a user, for texts without expressions.
pub(crate) struct Nobody(pub(crate) Random);

impl Scope for Nobody {
    fn user_id(&self) -> u64 {
        0
    }

    fn iteration(&self) -> u64 {
        0
    }

    fn slot(&self, _: u16) -> &Value {
        &NOTHING
    }

    fn field(&mut self, _: u16, _: u16) -> Result<Value, Fault> {
        Err(no_source())
    }

    fn row(&mut self, _: u16) -> Result<Value, Fault> {
        Err(no_source())
    }

    fn answer(&mut self, _: Answer) -> Result<Value, Fault> {
        Err(Fault(say!("there is no response here")))
    }

    fn random(&mut self) -> &mut Random {
        &mut self.0
    }

    fn unix_nanos(&self) -> u64 {
        0
    }
}

pub(crate) fn no_source() -> Fault {
    Fault(say!("there is no such data source"))
}
