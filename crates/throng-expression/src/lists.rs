//! Functions of lists, and of everything that has a size.

use crate::call::Call;
use crate::scope::EvaluationError;
use crate::value::Value;

pub(crate) fn size(call: &mut Call<'_>) -> Result<Value, EvaluationError> {
    let value = call.value(0);
    if value.as_text().is_some() {
        call.text(0)?;
    }
    value.len().map(Value::from).ok_or_else(|| call.unsuited(0, value))
}

pub(crate) fn reverse(call: &mut Call<'_>) -> Result<Value, EvaluationError> {
    if call.value(0).as_list().is_some() {
        let items = call.list(0)?;
        return Ok(Value::List(items.iter().rev().cloned().collect()));
    }
    Ok(Value::from(call.text(0)?.chars().rev().collect::<String>()))
}
