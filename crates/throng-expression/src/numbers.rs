//! Arithmetic, rounding and conversions to numbers. Whole numbers and fractions may be mixed; a
//! result that does not fit into 64 bits is an error and never wraps.

use std::cmp::Ordering;

use throng_base::Said;

use crate::call::Call;
use crate::scope::Fault;
use crate::value::{Value, whole};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Operator {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterEqual => ">=",
        }
    }
}

/// Combines two numbers; `None` if one of them is not a number.
pub(crate) fn arithmetic(
    operator: Operator,
    left: &Value,
    right: &Value,
) -> Option<Result<Value, Fault>> {
    let result = match (left, right) {
        (Value::Int(a), Value::Int(b)) => checked_i64(operator, *a, *b).map(Value::Int),
        (Value::UInt(a), Value::UInt(b)) => checked_u64(operator, *a, *b).map(Value::UInt),
        (Value::Int(a), Value::UInt(b)) => mixed(operator, i128::from(*a), i128::from(*b)),
        (Value::UInt(a), Value::Int(b)) => mixed(operator, i128::from(*a), i128::from(*b)),
        _ => {
            let (a, b) = (left.as_f64()?, right.as_f64()?);
            return Some(Ok(Value::Float(match operator {
                Operator::Add => a + b,
                Operator::Subtract => a - b,
                Operator::Multiply => a * b,
                Operator::Divide => a / b,
                _ => a % b,
            })));
        }
    };
    let symbol = operator.symbol();
    Some(result.ok_or_else(|| match divides(operator) && right.as_i64() == Some(0) {
        true => Fault(say!("a whole number cannot be divided by zero")),
        false => Fault(say!("the result of `{symbol}` does not fit into 64 bits")),
    }))
}

fn divides(operator: Operator) -> bool {
    matches!(operator, Operator::Divide | Operator::Remainder)
}

fn checked_i64(operator: Operator, a: i64, b: i64) -> Option<i64> {
    match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        _ => a.checked_rem(b),
    }
}

fn checked_u64(operator: Operator, a: u64, b: u64) -> Option<u64> {
    match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        _ => a.checked_rem(b),
    }
}

/// Signed and unsigned: computed with more bits, then stored in the type that fits.
fn mixed(operator: Operator, a: i128, b: i128) -> Option<Value> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        _ => a.checked_rem(b),
    }?;
    let unsigned = || u64::try_from(result).ok().map(Value::UInt);
    i64::try_from(result).ok().map(Value::Int).or_else(unsigned)
}

pub(crate) fn negate(value: &Value) -> Option<Result<Value, Fault>> {
    match value {
        Value::Float(float) => Some(Ok(Value::Float(-float))),
        other => arithmetic(Operator::Subtract, &Value::Int(0), other),
    }
}

pub(crate) fn min(call: &mut Call<'_>) -> Result<Value, Fault> {
    extreme(call, Ordering::Less)
}

pub(crate) fn max(call: &mut Call<'_>) -> Result<Value, Fault> {
    extreme(call, Ordering::Greater)
}

fn extreme(call: &mut Call<'_>, wanted: Ordering) -> Result<Value, Fault> {
    let items = match call.arguments {
        [Value::List(_)] => call.list(0)?,
        arguments => arguments,
    };
    let name = call.function.name;
    let (first, others) = items
        .split_first()
        .ok_or_else(|| Fault(say!("`{name}` cannot choose from an empty list")))?;
    let mut best = first;
    for item in items.iter().take(1).chain(others) {
        if item.as_f64().is_none() {
            return Err(call.unsuited(0, item));
        }
        if item.compare(best) == Some(wanted) {
            best = item;
        }
    }
    Ok(best.clone())
}

pub(crate) fn abs(call: &mut Call<'_>) -> Result<Value, Fault> {
    match call.value(0) {
        Value::Int(int) => Ok(Value::from(int.unsigned_abs())),
        Value::Float(float) => Ok(Value::Float(float.abs())),
        other => Ok(other.clone()),
    }
}

pub(crate) fn round(call: &mut Call<'_>) -> Result<Value, Fault> {
    rounded(call, f64::round)
}

pub(crate) fn floor(call: &mut Call<'_>) -> Result<Value, Fault> {
    rounded(call, f64::floor)
}

pub(crate) fn ceil(call: &mut Call<'_>) -> Result<Value, Fault> {
    rounded(call, f64::ceil)
}

fn rounded(call: &mut Call<'_>, round: fn(f64) -> f64) -> Result<Value, Fault> {
    match call.value(0) {
        Value::Float(float) => {
            let rounded = round(*float);
            Ok(whole(rounded).map_or(Value::Float(rounded), Value::Int))
        }
        other => Ok(other.clone()),
    }
}

pub(crate) fn int(call: &mut Call<'_>) -> Result<Value, Fault> {
    let int = match call.value(0) {
        Value::Int(int) => Some(*int),
        Value::UInt(uint) => i64::try_from(*uint).ok(),
        Value::Float(float) => whole(float.trunc()),
        Value::Bool(value) => Some(i64::from(*value)),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    int.map(Value::Int).ok_or_else(|| unconvertible(call, &say!("a whole number")))
}

pub(crate) fn uint(call: &mut Call<'_>) -> Result<Value, Fault> {
    let uint = match call.value(0) {
        Value::Int(int) => u64::try_from(*int).ok(),
        Value::UInt(uint) => Some(*uint),
        // The bound is 2^64.
        Value::Float(float) if *float > -1.0 && *float < 18_446_744_073_709_551_616.0 => {
            Some(*float as u64)
        }
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    uint.map(Value::UInt).ok_or_else(|| unconvertible(call, &say!("an unsigned whole number")))
}

pub(crate) fn double(call: &mut Call<'_>) -> Result<Value, Fault> {
    let float = match call.value(0) {
        Value::Text(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    float.map(Value::Float).ok_or_else(|| unconvertible(call, &say!("a number")))
}

pub(crate) fn bool(call: &mut Call<'_>) -> Result<Value, Fault> {
    let value = match call.value(0) {
        Value::Bool(value) => Some(*value),
        Value::Text(text) => match text.trim() {
            "true" | "True" | "TRUE" | "1" | "t" => Some(true),
            "false" | "False" | "FALSE" | "0" | "f" => Some(false),
            _ => None,
        },
        _ => None,
    };
    value.map(Value::Bool).ok_or_else(|| unconvertible(call, &say!("true or false")))
}

/// Characters of a value that a message shows.
const SHOWN_CHARS_MAX: usize = 40;

fn unconvertible(call: &Call<'_>, wanted: &Said) -> Fault {
    let value = call.value(0);
    if let Value::List(_) | Value::Map(_) | Value::Null = value {
        return Fault(say!("{} is not {wanted}", value.type_name()));
    }
    let shown: String = value.to_text().chars().take(SHOWN_CHARS_MAX).collect();
    Fault(say!("`{shown}` is not {wanted}"))
}

pub(crate) fn big_endian(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (bytes, size) = in_bytes(call)?;
    Ok(Value::from(&bytes[bytes.len() - size..]))
}

pub(crate) fn little_endian(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (mut bytes, size) = in_bytes(call)?;
    bytes.reverse();
    Ok(Value::from(&bytes[..size]))
}

/// A whole number, and its size in bytes. Negative numbers are two's complement.
fn in_bytes(call: &mut Call<'_>) -> Result<([u8; 16], usize), Fault> {
    let number = match call.value(0) {
        Value::UInt(number) => i128::from(*number),
        _ => i128::from(call.whole(0)?),
    };
    let size = call.whole(1)?;
    let Some(size) = usize::try_from(size).ok().filter(|size| (1..=8).contains(size)) else {
        return Err(Fault(say!("a number has 1 to 8 bytes, not {size}")));
    };
    let bits = size * 8;
    if number >= 1 << bits || number < -(1 << (bits - 1)) {
        return Err(Fault(say!("the number {number} is out of range for a size of {size}")));
    }
    Ok((number.to_be_bytes(), size))
}
