//! What the expressions of a scenario see of their user.

pub(crate) mod memory;

use throng_base::{Random, Time, UserId};
use throng_data::Untaken;
use throng_expression::{Answer, EvaluationError, Expression, Scope, Value};
use throng_metrics::{Cause, StopBy};
use throng_program::Text;

use crate::failure::Finding;
use crate::looked::Looked;
use crate::shard::Lane;
use crate::trace::Who;
use memory::Memory;

/// A user as expressions see it; a short-lived borrow of its parts.
pub(crate) struct UserScope<'a> {
    pub(crate) shard: &'a Lane,
    pub(crate) id: UserId,
    pub(crate) iterations: u64,
    pub(crate) session: u16,
    /// Time of the event that the user handles.
    pub(crate) now: Time,
    pub(crate) memory: &'a mut Option<Box<Memory>>,
    pub(crate) random: &'a mut Random,
    /// The response that is being checked.
    pub(crate) answer: Option<&'a Looked<'a>>,
    /// Set if a data source gave no row, or the response is not JSON: then the failure has another
    /// cause than the expression.
    pub(crate) untaken: Option<Cause>,
}

/// The scope of a user, made of parts that are borrowed separately.
macro_rules! scope {
    ($user:expr, $shard:expr) => {
        $crate::scope::scope!($user, $shard, &mut $user.random)
    };
    ($user:expr, $shard:expr, $random:expr) => {
        $crate::scope::UserScope {
            shard: $shard,
            id: $user.id,
            iterations: $user.iterations,
            session: $user.session,
            now: $user.now,
            memory: &mut $user.memory,
            random: $random,
            answer: None,
            untaken: None,
        }
    };
}
pub(crate) use scope;

impl UserScope<'_> {
    pub(crate) fn who(&self) -> Who {
        Who { user: self.id, session: self.session, iteration: self.iterations }
    }

    /// Converts an evaluation error to the cause and message of a failed step.
    pub(crate) fn finding(&self, error: EvaluationError) -> Finding {
        (self.untaken.unwrap_or(Cause::ExpressionFailed), error.0)
    }

    /// The value of an expression, or why a step fails without it.
    pub(crate) fn evaluate(&mut self, expression: &Expression) -> Result<Value, Finding> {
        expression.evaluate(self).map_err(|error| self.finding(error))
    }

    /// The value of a text.
    pub(crate) fn value_of(&mut self, text: &Text) -> Result<Value, Finding> {
        text.value(self).map_err(|error| self.finding(error))
    }

    /// Appends the rendered text.
    pub(crate) fn render(&mut self, text: &Text, out: &mut Vec<u8>) -> Result<(), Finding> {
        text.render(out, self).map_err(|error| self.finding(error))
    }

    /// The same user with a response.
    pub(crate) fn with<T>(
        &mut self,
        answer: &Looked<'_>,
        work: impl FnOnce(&mut UserScope<'_>) -> T,
    ) -> T {
        let mut inner = UserScope {
            shard: self.shard,
            id: self.id,
            iterations: self.iterations,
            session: self.session,
            now: self.now,
            memory: self.memory,
            random: self.random,
            answer: Some(answer),
            untaken: None,
        };
        let result = work(&mut inner);
        self.untaken = inner.untaken.or(self.untaken);
        result
    }

    /// The name of a slot in the scenario.
    pub(crate) fn slot_name(&self, slot: u16) -> &str {
        let session = &self.shard.prepared.program.sessions[usize::from(self.session)];
        session.slots.get(usize::from(slot)).map_or("", String::as_str)
    }

    pub(crate) fn memory(&mut self) -> &mut Memory {
        let new = || Box::new(Memory::new(&self.shard.prepared, self.session));
        self.memory.get_or_insert_with(new)
    }

    /// Takes the user's row of a source, unless it has one.
    fn take_row(&mut self, source: u16) -> Result<(), EvaluationError> {
        if self.memory().row(source).is_some() {
            return Ok(());
        }
        let taken = self.shard.readers.borrow_mut()[usize::from(source)].take(self.id, self.random);
        match taken {
            Ok(row) => {
                self.memory().keep_row(source, row);
                Ok(())
            }
            Err(untaken) => Err(self.no_row(source, &untaken)),
        }
    }

    fn no_row(&mut self, source: u16, untaken: &Untaken) -> EvaluationError {
        let name = &self.shard.prepared.program.data[usize::from(source)].name;
        self.untaken = Some(match untaken {
            Untaken::RunEnds | Untaken::RunEndsShort | Untaken::StepFails => Cause::DataExhausted,
            Untaken::Broken(_) => Cause::DataFailed,
        });
        let error = EvaluationError(say!("`data.{name}` has no row: {}", untaken.said()));
        match untaken {
            Untaken::RunEnds => self.shard.stop_run(error.0.clone(), StopBy::Data),
            Untaken::RunEndsShort => self.shard.stop_run(error.0.clone(), StopBy::DataShort),
            Untaken::StepFails | Untaken::Broken(_) => {}
        }
        error
    }
}

impl Scope for UserScope<'_> {
    fn user_id(&self) -> u64 {
        self.id.0
    }

    fn iteration(&self) -> u64 {
        self.iterations
    }

    fn slot(&self, slot: u16) -> &Value {
        let values = self.memory.as_ref().map(|memory| memory.values());
        values.and_then(|values| values.get(usize::from(slot))).unwrap_or(&Value::Null)
    }

    fn setup(&self, value: u16) -> &Value {
        self.shard.prepared.program.setup_values.get(usize::from(value)).unwrap_or(&Value::Null)
    }

    fn field(&mut self, source: u16, column: u16) -> Result<Value, EvaluationError> {
        self.take_row(source)?;
        let row = self.memory().row(source);
        row.map(|row| row.field(column).clone()).ok_or_else(no_source)
    }

    fn row(&mut self, source: u16) -> Result<Value, EvaluationError> {
        self.take_row(source)?;
        self.memory().row(source).map(|row| row.whole().clone()).ok_or_else(no_source)
    }

    fn answer(&mut self, part: Answer) -> Result<Value, EvaluationError> {
        match self.answer {
            Some(answer) => answer.part(part).inspect_err(|_| {
                // The expression is not at fault.
                if part == Answer::Json && answer.document.json().is_none() {
                    self.untaken = Some(Cause::JsonUnexpected);
                }
            }),
            None => Err(EvaluationError(say!(
                "there is no response here: use `response` only in checks"
            ))),
        }
    }

    fn random(&mut self) -> &mut Random {
        self.random
    }

    fn unix_nanos(&self) -> u64 {
        self.shard.unix_nanos(self.now)
    }
}

fn no_source() -> EvaluationError {
    EvaluationError(say!("there is no such data source"))
}
