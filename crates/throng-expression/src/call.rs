//! The description of a function, and one call during evaluation.

use throng_base::{Random, Said};

use crate::scope::{Fault, Scope};
use crate::types::Types;
use crate::value::Value;

/// A function: used by help, schema and documentation.
pub struct FunctionDoc {
    /// `random.int`, `contains`, `sha256`.
    pub name: &'static str,
    /// The names of the arguments; those from `required` on are optional.
    pub arguments: &'static [&'static str],
    pub required: usize,
    /// What it returns, in one line.
    pub doc: Said,
    /// An example call, which needs no names.
    pub example: &'static str,
    pub(crate) style: Style,
    pub(crate) parameters: &'static [Types],
    pub(crate) result: Types,
    pub(crate) body: Body,
}

/// How a function is usually called, and what it needs besides its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `name(x)`.
    Plain,
    /// `x.name()`; `name(x)` works as well.
    Member,
    /// Any number of arguments of the one type it names.
    Variadic,
    /// Draws from the user's randomness.
    Random,
    /// Reads the clock.
    Clock,
}

pub(crate) type Body = fn(&mut Call<'_>) -> Result<Value, Fault>;

impl std::fmt::Debug for FunctionDoc {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

impl FunctionDoc {
    /// Its signature: `random.int(low, high)`, `text.contains(part)`, `x.pad(length, [fill])`.
    pub fn signature(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for (index, argument) in self.arguments.iter().enumerate() {
            match index < self.required {
                true => names.push((*argument).to_string()),
                false => names.push(format!("[{argument}]")),
            }
        }
        match self.style {
            Style::Variadic => format!("{}({}, …)", self.name, names.join(", ")),
            Style::Member => {
                let target = names.remove(0);
                format!("{target}.{}({})", self.name, names.join(", "))
            }
            _ => format!("{}({})", self.name, names.join(", ")),
        }
    }

    pub(crate) fn is_pure(&self) -> bool {
        !matches!(self.style, Style::Random | Style::Clock)
    }

    /// The types that argument number `index` may have.
    pub(crate) fn parameter(&self, index: usize) -> Types {
        let last = self.parameters.last().copied().unwrap_or(Types::ANY);
        self.parameters.get(index).copied().unwrap_or(last)
    }

    pub(crate) fn takes(&self, count: usize) -> bool {
        let most = if self.style == Style::Variadic { usize::MAX } else { self.arguments.len() };
        (self.required..=most).contains(&count)
    }
}

/// One call during evaluation.
pub(crate) struct Call<'a> {
    pub function: &'static FunctionDoc,
    pub arguments: &'a [Value],
    pub scope: &'a mut dyn Scope,
    pub steps_left: &'a mut u32,
}

/// Bytes read or created that cost as much as one step.
const BYTES_PER_STEP: usize = 64;

/// Subtracts the cost of handling `bytes` from the remaining steps.
pub(crate) fn charge(steps_left: &mut u32, bytes: usize) -> Result<(), Fault> {
    let steps = u32::try_from(bytes / BYTES_PER_STEP).unwrap_or(u32::MAX);
    match steps_left.checked_sub(steps) {
        Some(left) => *steps_left = left,
        None => {
            *steps_left = 0;
            return Err(too_much());
        }
    }
    Ok(())
}

pub(crate) fn too_much() -> Fault {
    Fault(say!(
        "the expression takes too many steps to evaluate: use smaller lists or shorter text"
    ))
}

impl<'a> Call<'a> {
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Fault> {
        charge(self.steps_left, bytes)
    }

    pub(crate) fn random(&mut self) -> &mut Random {
        self.scope.random()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&'a Value> {
        self.arguments.get(index)
    }

    /// The argument; the evaluator has checked that its type is one of those in the table.
    pub(crate) fn value(&self, index: usize) -> &'a Value {
        const NULL: &Value = &Value::Null;
        self.arguments.get(index).unwrap_or(NULL)
    }

    pub(crate) fn text(&mut self, index: usize) -> Result<&'a str, Fault> {
        let text = match self.value(index) {
            Value::Text(text) => &**text,
            other => return Err(self.unsuited(index, other)),
        };
        self.charge(text.len())?;
        Ok(text)
    }

    pub(crate) fn octets(&mut self, index: usize) -> Result<&'a [u8], Fault> {
        let value = self.value(index);
        let octets = value.as_octets().ok_or_else(|| self.unsuited(index, value))?;
        self.charge(octets.len())?;
        Ok(octets)
    }

    pub(crate) fn list(&mut self, index: usize) -> Result<&'a [Value], Fault> {
        let value = self.value(index);
        let items = value.as_list().ok_or_else(|| self.unsuited(index, value))?;
        self.charge(items.len() * 8)?;
        Ok(items)
    }

    pub(crate) fn whole(&self, index: usize) -> Result<i64, Fault> {
        let value = self.value(index);
        value.as_i64().ok_or_else(|| self.unsuited(index, value))
    }

    pub(crate) fn number(&self, index: usize) -> Result<f64, Fault> {
        let value = self.value(index);
        value.as_f64().ok_or_else(|| self.unsuited(index, value))
    }

    /// A count from 0 to [`LENGTH_MAX`], whose cost is charged.
    pub(crate) fn length(&mut self, index: usize) -> Result<usize, Fault> {
        let length = self.whole(index)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= LENGTH_MAX);
        let name = self.function.name;
        let length = length.ok_or_else(|| {
            Fault(say!(
                "`{name}` takes a length from 0 to {LENGTH_MAX}, not {}",
                self.value(index).to_text()
            ))
        })?;
        self.charge(length)?;
        Ok(length)
    }

    pub(crate) fn unsuited(&self, index: usize, value: &Value) -> Fault {
        unsuited(self.function, index, value)
    }
}

/// The longest text that a function creates from a number: `random.string(n)`, `padStart(n)`.
pub(crate) const LENGTH_MAX: usize = 1 << 20;

pub(crate) fn unsuited(function: &FunctionDoc, index: usize, value: &Value) -> Fault {
    let name = function.name;
    let expected = function.parameter(index).name();
    Fault(match value {
        Value::Float(float) if expected == "a whole number" => {
            say!("`{name}` takes {expected}, not {float}")
        }
        other => say!("`{name}` takes {expected}, not {}", other.type_name()),
    })
}
