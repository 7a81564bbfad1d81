//! Variables, saved values, fields of rows and results of expressions.

use std::cmp::Ordering;
use std::sync::Arc;

use throng_base::Said;

use crate::types::Types;

/// A value. Cheap to clone; large parts are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    /// Only for numbers that exceed [`Value::Int`]: `random.u64()`.
    UInt(u64),
    Float(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<[Value]>),
    /// Entries in their original order; maps are small.
    Map(Arc<[(Arc<str>, Value)]>),
}

const _: () = assert!(size_of::<Value>() <= 24);

impl Value {
    /// The value of a plain YAML scalar, an option like `--set users=5` or a field of a file: null,
    /// true, false, a number or text. Numbers that would lose information stay text: `007`, `+86`,
    /// more digits than fit into 64 bits.
    pub fn parse_plain(text: &str) -> Value {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
            "true" | "True" | "TRUE" => return Value::Bool(true),
            "false" | "False" | "FALSE" => return Value::Bool(false),
            ".inf" | ".Inf" | ".INF" => return Value::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => return Value::Float(f64::NEG_INFINITY),
            ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
            _ => {}
        }
        plain_number(text).unwrap_or_else(|| Value::from(text))
    }

    /// The number in a text, exact if it is a whole number of 64 bits.
    pub fn parse_number(text: &str) -> Option<Value> {
        if let Ok(int) = text.parse::<i64>() {
            return Some(Value::Int(int));
        }
        text.parse().map(Value::UInt).or_else(|_| text.parse().map(Value::Float)).ok()
    }

    /// The value as text: null is empty, bytes are unchanged, lists and maps are JSON.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => {}
            Value::Float(float) => write_float(*float, out),
            Value::Text(text) => out.extend_from_slice(text.as_bytes()),
            Value::Bytes(bytes) => out.extend_from_slice(bytes),
            other => other.write_json(out),
        }
    }

    /// The approximate written size, with shared parts counted at each use; `None` if it exceeds
    /// `most`, which takes no more steps than that.
    pub fn written_bytes(&self, most: usize) -> Option<usize> {
        let add = |sum: usize, bytes: usize| sum.checked_add(bytes).filter(|sum| *sum <= most);
        let inside = |sum: usize, item: &Value| add(sum, item.written_bytes(most - sum)? + 1);
        match self {
            Value::Null | Value::Bool(_) => add(0, 4),
            Value::Int(_) | Value::UInt(_) | Value::Float(_) => add(0, 8),
            Value::Text(text) => add(0, text.len()),
            Value::Bytes(bytes) => add(0, bytes.len()),
            Value::List(items) => items.iter().try_fold(add(0, 1)?, inside),
            Value::Map(entries) => entries
                .iter()
                .try_fold(add(0, 1)?, |sum, (name, item)| inside(add(sum, name.len() + 3)?, item)),
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as [`Value::write_text`] writes it; bytes that are not UTF-8 are replaced.
    pub fn to_text(&self) -> Arc<str> {
        if let Value::Text(text) = self {
            return Arc::clone(text);
        }
        let mut out = Vec::new();
        self.write_text(&mut out);
        String::from_utf8_lossy(&out).into()
    }

    pub(crate) fn types(&self) -> Types {
        match self {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOL,
            Value::Int(_) | Value::UInt(_) => Types::INT,
            Value::Float(_) => Types::FLOAT,
            Value::Text(_) => Types::TEXT,
            Value::Bytes(_) => Types::BYTES,
            Value::List(_) => Types::LIST,
            Value::Map(_) => Types::MAP,
        }
    }

    /// The name of this type in messages.
    pub fn type_name(&self) -> Said {
        self.types().name()
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The whole number; also for `3.0`.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(int) => Some(*int),
            Value::UInt(uint) => i64::try_from(*uint).ok(),
            Value::Float(float) => whole(*float),
            _ => None,
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(int) => Some(*int as f64),
            Value::UInt(uint) => Some(*uint as f64),
            Value::Float(float) => Some(*float),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The bytes of text or bytes.
    pub fn as_octets(&self) -> Option<&[u8]> {
        match self {
            Value::Text(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Characters of text, bytes of bytes, items of a list, entries of a map.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> Option<usize> {
        match self {
            Value::Text(text) => Some(text.chars().count()),
            Value::Bytes(bytes) => Some(bytes.len()),
            Value::List(items) => Some(items.len()),
            Value::Map(entries) => Some(entries.len()),
            _ => None,
        }
    }

    /// The entry of a map; the last one if a key is repeated.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(entries) => {
                entries.iter().rev().find(|(name, _)| &**name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The item of a list, counted from 0.
    pub fn index(&self, index: usize) -> Option<&Value> {
        self.as_list()?.get(index)
    }

    /// Equality as users expect it: `1`, `1.0` and `1u` are the same number, the order of a map's
    /// entries does not matter, and values of different types are not equal.
    pub fn equals(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals(b))
            }
            (Value::Map(a), Value::Map(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|(x, y)| {
                        // The order is usually the same; otherwise the key is searched.
                        let found = if x.0 == y.0 { Some(&y.1) } else { other.get(&x.0) };
                        found.is_some_and(|value| x.1.equals(value))
                    })
            }
            _ => compare_numbers(self, other) == Some(Ordering::Equal),
        }
    }

    /// The order of two numbers, texts, bytes, or booleans; other values have none.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            _ => compare_numbers(self, other),
        }
    }
}

/// Numbers in JSON or YAML syntax that produce the same text when written, or fractions.
fn plain_number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    if let Some(hex) = text.strip_prefix("0x").filter(|hex| is_digits_of(hex, 16)) {
        return u64::from_str_radix(hex, 16).ok().map(Value::from);
    }
    if let Some(octal) = text.strip_prefix("0o").filter(|octal| is_digits_of(octal, 8)) {
        return u64::from_str_radix(octal, 8).ok().map(Value::from);
    }
    let padded =
        digits.len() > 1 && digits.starts_with('0') && !digits[1..].starts_with(['.', 'e']);
    if padded || !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if is_digits_of(digits, 10) {
        return match text.parse::<i64>() {
            Ok(int) => Some(Value::Int(int)),
            Err(_) => text.parse::<u64>().ok().map(Value::UInt),
        };
    }
    let numeric = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    match digits.bytes().all(numeric) {
        true => text.parse::<f64>().ok().filter(|float| float.is_finite()).map(Value::Float),
        false => None,
    }
}

fn is_digits_of(text: &str, radix: u32) -> bool {
    !text.is_empty() && text.chars().all(|digit| digit.is_digit(radix))
}

/// `float` as a whole number, if it is one that fits into 64 bits.
pub(crate) fn whole(float: f64) -> Option<i64> {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    (fits && float.fract() == 0.0).then_some(float as i64)
}

/// The exact order of two numbers of any type.
fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (wide(a), wide(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => compare_with_float(a, b.as_f64()?),
        (None, Some(b)) => compare_with_float(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn wide(value: &Value) -> Option<i128> {
    match value {
        Value::Int(int) => Some(i128::from(*int)),
        Value::UInt(uint) => Some(i128::from(*uint)),
        _ => None,
    }
}

fn compare_with_float(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // The cast saturates far beyond 64 bits; then the fraction decides.
    let order = whole.cmp(&(float.trunc() as i128));
    Some(order.then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)))
}

/// Writes decimal digits without the formatting machinery: IDs are written per request.
pub(crate) fn write_u64(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

pub(crate) fn write_i64(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    write_u64(number.unsigned_abs(), out);
}

/// Short and exact: `1.5`, whole ones as `1`, very large and small ones as `1e300`.
pub(crate) fn write_float(float: f64, out: &mut Vec<u8>) {
    use std::io::Write as _;
    match whole(float).filter(|whole| whole.unsigned_abs() < 1_000_000_000_000_000_000) {
        Some(whole) => write_i64(whole, out),
        None if float.is_nan() => out.extend_from_slice(b"NaN"),
        None if float.is_infinite() && float > 0.0 => out.extend_from_slice(b"Infinity"),
        None if float.is_infinite() => out.extend_from_slice(b"-Infinity"),
        // Writing to memory cannot fail.
        None if float.abs() < 1e-5 || float.abs() >= 1e18 => drop(write!(out, "{float:e}")),
        None => drop(write!(out, "{float}")),
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Int(value.into())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Int(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        i64::try_from(value).map_or(Value::UInt(value), Value::Int)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::from(value as u64)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value.into())
    }
}

impl From<Arc<str>> for Value {
    fn from(value: Arc<str>) -> Value {
        Value::Text(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Value {
        Value::Bytes(value.into())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Value {
        Value::Bytes(value.into())
    }
}

impl From<Vec<Value>> for Value {
    fn from(value: Vec<Value>) -> Value {
        Value::List(value.into())
    }
}

impl From<Vec<(Arc<str>, Value)>> for Value {
    fn from(value: Vec<(Arc<str>, Value)>) -> Value {
        Value::Map(value.into())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(value: &Value) -> String {
        value.to_text().to_string()
    }

    #[test]
    fn the_size_of_a_value_is_none_below_every_smaller_limit() {
        let inner = Value::List([Value::from("seven b"), Value::List([].into())].into());
        let entry = ("name".into(), inner.clone());
        let outer = Value::List([inner, Value::Map([entry].into()), Value::Null].into());
        let whole = outer.written_bytes(usize::MAX).expect("it is small");
        for most in 0..whole {
            assert_eq!(outer.written_bytes(most), None, "a limit of {most} bytes");
        }
        assert_eq!(outer.written_bytes(whole), Some(whole));
    }

    #[test]
    fn a_plain_scalar_follows_yaml_unless_it_would_lose_information() {
        let cases: &[(&str, Value)] = &[
            ("", Value::Null),
            ("~", Value::Null),
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("yes", Value::from("yes")),
            ("0", Value::Int(0)),
            ("-12", Value::Int(-12)),
            ("-", Value::from("-")),
            (".", Value::from(".")),
            ("007", Value::from("007")),
            ("-007", Value::from("-007")),
            ("+8613", Value::from("+8613")),
            ("0x1f", Value::Int(31)),
            ("0o17", Value::Int(15)),
            ("0x", Value::from("0x")),
            ("1.5", Value::Float(1.5)),
            (".5", Value::Float(0.5)),
            ("0.5", Value::Float(0.5)),
            ("1e3", Value::Float(1000.0)),
            ("0e3", Value::Float(0.0)),
            ("1.2.3", Value::from("1.2.3")),
            ("10.0.0.1", Value::from("10.0.0.1")),
            ("1-2", Value::from("1-2")),
            ("2026-01-02", Value::from("2026-01-02")),
            ("inf", Value::from("inf")),
            ("infinity", Value::from("infinity")),
            (".inf", Value::Float(f64::INFINITY)),
            ("1e999", Value::from("1e999")),
            ("9223372036854775808", Value::UInt(9_223_372_036_854_775_808)),
            ("123456789012345678901234", Value::from("123456789012345678901234")),
            ("1s", Value::from("1s")),
            ("hello", Value::from("hello")),
            ("é", Value::from("é")),
            ("0é", Value::from("0é")),
        ];
        for (text, expected) in cases {
            assert_eq!(&Value::parse_plain(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_written_short() {
        let cases: &[(f64, &str)] = &[
            (1.0, "1"),
            (1.5, "1.5"),
            (-0.0, "0"),
            (-2.0, "-2"),
            (0.1, "0.1"),
            (1e17, "100000000000000000"),
            (1e18, "1e18"),
            (1e300, "1e300"),
            (i64::MIN as f64, "-9.223372036854776e18"),
            (1.5e-7, "1.5e-7"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
        ];
        for (float, expected) in cases {
            assert_eq!(text_of(&Value::Float(*float)), *expected);
        }
        assert_eq!(text_of(&Value::Int(i64::MIN)), i64::MIN.to_string());
        assert_eq!(text_of(&Value::UInt(u64::MAX)), u64::MAX.to_string());
        assert_eq!(text_of(&Value::Null), "");
        assert_eq!(text_of(&Value::Bool(true)), "true");
    }

    #[test]
    fn numbers_are_equal_and_ordered_whatever_their_type() {
        assert!(Value::Int(1).equals(&Value::Float(1.0)));
        assert!(Value::Int(1).equals(&Value::UInt(1)));
        assert!(!Value::Int(-1).equals(&Value::UInt(u64::MAX)));
        assert!(!Value::Int(1).equals(&Value::from("1")));
        assert!(!Value::Float(f64::NAN).equals(&Value::Float(f64::NAN)));
        // 2^53 + 1 is not a double: a comparison of doubles would report equality.
        let odd = Value::Int(9_007_199_254_740_993);
        assert_eq!(odd.compare(&Value::Float(9_007_199_254_740_992.0)), Some(Ordering::Greater));
        assert_eq!(Value::Int(1).compare(&Value::Float(1.5)), Some(Ordering::Less));
        assert_eq!(Value::Int(-1).compare(&Value::Float(-1.5)), Some(Ordering::Greater));
        assert_eq!(Value::Float(-1.5).compare(&Value::Int(-1)), Some(Ordering::Less));
        assert_eq!(Value::Int(1).compare(&Value::Float(f64::INFINITY)), Some(Ordering::Less));
        assert_eq!(Value::Int(1).compare(&Value::from("a")), None);
    }

    #[test]
    fn maps_are_equal_in_any_order() {
        let map = |entries: &[(&str, i64)]| {
            let entries: Vec<(Arc<str>, Value)> =
                entries.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            Value::from(entries)
        };
        assert!(map(&[("a", 1), ("b", 2)]).equals(&map(&[("b", 2), ("a", 1)])));
        assert!(!map(&[("a", 1), ("b", 2)]).equals(&map(&[("b", 2), ("c", 1)])));
        assert_eq!(map(&[("a", 1), ("a", 2)]).get("a"), Some(&Value::Int(2)));
    }
}
