//! Converts values to and from JSON (RFC 8259); the entries of maps keep their order.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use crate::value::{Value, write_float, write_i64, write_u64};

impl Value {
    /// Parses JSON text; the error says what is wrong with it.
    pub fn parse_json(text: &[u8]) -> Result<Value, String> {
        // serde_json rejects more than 128 levels, so nothing below overflows the stack.
        let parsed = serde_json::from_slice(text);
        let again =
            |error| within_range(text).map_or(Err(error), |text| serde_json::from_slice(&text));
        parsed.or_else(again).map_err(|error: serde_json::Error| error.to_string())
    }

    pub fn from_json(json: &serde_json::Value) -> Value {
        Value::deserialize(json).unwrap_or_default()
    }

    /// Bytes become base64 text; numbers that JSON cannot express become null.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(int) => (*int).into(),
            Value::UInt(uint) => (*uint).into(),
            Value::Float(float) => (*float).into(),
            Value::Text(text) => (&**text).into(),
            Value::Bytes(bytes) => STANDARD.encode(bytes).into(),
            Value::List(items) => items.iter().map(Value::to_json).collect(),
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.to_string(), value.to_json()));
                serde_json::Value::Object(entries.collect())
            }
        }
    }

    /// The value as compact JSON (RFC 8259). Bytes become base64 text; NaN and infinities null.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Int(int) => write_i64(*int, out),
            Value::UInt(uint) => write_u64(*uint, out),
            Value::Float(float) if float.is_finite() => write_float(*float, out),
            Value::Float(_) => out.extend_from_slice(b"null"),
            Value::Text(text) => write_string(text, out),
            Value::Bytes(bytes) => write_string(&STANDARD.encode(bytes), out),
            Value::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write_json(out);
                }
                out.push(b']');
            }
            Value::Map(entries) => {
                out.push(b'{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_string(key, out);
                    out.push(b':');
                    value.write_json(out);
                }
                out.push(b'}');
            }
        }
    }
}

/// Replaces well-formed JSON that the reader rejects (RFC 8259, 6 and 7): a number out of range
/// becomes the largest one, a lone surrogate U+FFFD. `None` if nothing was replaced. For input that
/// failed to parse.
pub fn within_range(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let (mut at, mut changed) = (0, false);
    while let Some(byte) = text.get(at) {
        let rest = &text[at..];
        let (length, instead) = match byte {
            b'"' => match string_within(rest) {
                (length, Some(string)) => {
                    out.extend_from_slice(&string);
                    changed = true;
                    at += length;
                    continue;
                }
                (length, None) => (length, None),
            },
            b'-' | b'0'..=b'9' => number_within(rest),
            _ => (1, None),
        };
        changed |= instead.is_some();
        out.extend_from_slice(instead.unwrap_or(&rest[..length]));
        at += length;
    }
    changed.then_some(out)
}

/// The length of the number, and its replacement if it exceeds `f64`.
fn number_within(text: &[u8]) -> (usize, Option<&'static [u8]>) {
    let is_of = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let length = text.iter().position(|byte| !is_of(byte)).unwrap_or(text.len());
    let number = std::str::from_utf8(&text[..length]).unwrap_or_default();
    let instead: &[u8] = match number.parse() {
        Ok(f64::INFINITY) if is_number(number) => b"1.7976931348623157e308",
        Ok(f64::NEG_INFINITY) if is_number(number) => b"-1.7976931348623157e308",
        _ => return (length, None),
    };
    (length, Some(instead))
}

/// The grammar of numbers (RFC 8259, 6).
pub fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let mantissa = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

/// The length of the string with its quotes, and its replacement if it contains a lone surrogate.
fn string_within(text: &[u8]) -> (usize, Option<Vec<u8>>) {
    let (mut at, mut copied, mut out) = (1, 0, Vec::new());
    while let Some(byte) = text.get(at) {
        at += match byte {
            b'"' => {
                at += 1;
                break;
            }
            b'\\' => match (unit(&text[at..]), text.get(at + 6..).and_then(unit)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
                (Some(0xd800..=0xdfff), _) => {
                    out.extend_from_slice(&text[copied..at]);
                    out.extend_from_slice("\u{fffd}".as_bytes());
                    copied = at + 6;
                    6
                }
                _ => 2,
            },
            _ => 1,
        };
    }
    let length = at.min(text.len());
    if copied == 0 {
        return (length, None);
    }
    out.extend_from_slice(&text[copied..length]);
    (length, Some(out))
}

/// The escaped UTF-16 unit at the start.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
    let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| all)
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape_json(text.as_bytes(), out);
    out.push(b'"');
}

/// The text of a string with only the escapes that RFC 8259, 7, requires.
pub fn escape_json(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut plain_from = 0;
    for (at, &byte) in text.iter().enumerate() {
        let letter = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text[plain_from..at]);
        out.extend_from_slice(&[b'\\', letter]);
        if letter == b'u' {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            out.extend_from_slice(&[b'0', b'0', HEX[high], HEX[low]]);
        }
        plain_from = at + 1;
    }
    out.extend_from_slice(&text[plain_from..]);
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list: Vec<Value> = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::from(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map: Vec<(Arc<str>, Value)> = Vec::new();
        while let Some((key, value)) = entries.next_entry::<std::borrow::Cow<'_, str>, Value>()? {
            map.push((key.into(), value));
        }
        Ok(Value::from(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_as_it_was_read() {
        for text in [
            r#"{"b":1,"a":[true,false,null,-5,1.5,"x"],"big":18446744073709551615}"#,
            r#""quote \" backslash \\ line \n tab \t bell \u0007 é 😀""#,
            "[]",
            "{}",
            "1e300",
        ] {
            let value = Value::parse_json(text.as_bytes()).expect(text);
            let mut out = Vec::new();
            value.write_json(&mut out);
            assert_eq!(String::from_utf8(out).expect("utf-8"), text);
            assert!(Value::from_json(&value.to_json()).equals(&value));
        }
    }

    #[test]
    fn values_that_json_lacks_are_replaced() {
        let value = Value::from(vec![
            Value::Float(f64::NAN),
            Value::Float(f64::INFINITY),
            Value::from(vec![1_u8, 2, 255]),
        ]);
        let mut out = Vec::new();
        value.write_json(&mut out);
        assert_eq!(String::from_utf8(out).expect("utf-8"), r#"[null,null,"AQL/"]"#);
    }

    #[test]
    fn json_that_is_too_deep_or_malformed_is_an_error() {
        assert!(Value::parse_json("[".repeat(100_000).as_bytes()).is_err());
        assert!(Value::parse_json(b"{\"a\":}").is_err());
        assert!(Value::parse_json(b"\"\xff\"").is_err());
        assert!(Value::parse_json(b"1 2").is_err());
    }

    #[test]
    fn fuzz_json_never_panics_and_round_trips() {
        let corpus: &[&[u8]] = &[
            br#"{"code":0,"data":{"token":"abc","items":[1,2.5,-3e10,null,true]}}"#,
            br#"["\u00e9\ud83d\ude00", 18446744073709551615, 1e308]"#,
        ];
        throng_fuzz::mutations(corpus, |input, _| {
            let Ok(value) = Value::parse_json(input) else { return };
            let mut out = Vec::new();
            value.write_json(&mut out);
            let again = Value::parse_json(&out).expect("what was written is JSON");
            assert!(again.equals(&value), "{value:?}");
        });
    }

    #[test]
    fn all_well_formed_json_is_read() {
        let max = "1.7976931348623157e308";
        for (text, read) in [
            (r#"{"a":1e400,"b":-1E+400}"#, format!(r#"{{"a":{max},"b":-{max}}}"#)),
            (&*format!("[1{}]", "0".repeat(400)), format!("[{max}]")),
            (r#""\ud800""#, "\"\u{fffd}\"".into()),
            (r#"["\udc00\ud83d\ude00","\\ud800"]"#, r#"["�\ud83d\ude00","\\ud800"]"#.into()),
            (r#"{"\ud800\u0041":"\ud800\ud800x 1e400"}"#, r#"{"�\u0041":"��x 1e400"}"#.into()),
        ] {
            let within = within_range(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(within).unwrap(), read);
            assert!(Value::parse_json(text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn malformed_json_is_not_repaired() {
        for text in ["01e400", "1.e400", "+1e400", "1e400e1", ".1e400", "1e+", "--1e400"] {
            assert!(Value::parse_json(text.as_bytes()).is_err(), "{text}");
        }
        for text in [r#""\ud8""#, r#""\ud800"#, "\"\\", "\"", "1", r#"{"a": "b\u00e4"}"#, "<p>"] {
            let within = within_range(text.as_bytes());
            assert!(within.is_none_or(|text| Value::parse_json(&text).is_err()), "{text}");
        }
    }

    #[test]
    fn numbers_follow_the_grammar_of_json() {
        for good in ["0", "-1", "1.5", "1e9", "-0.1E-3", "100"] {
            assert!(is_number(good), "{good}");
        }
        for bad in ["", "-", "01", ".5", "5.", "+1", "1_000", "0x1", "1e", "e1", "NaN"] {
            assert!(!is_number(bad), "{bad}");
        }
    }
}
