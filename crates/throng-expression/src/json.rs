//! Values as JSON and back: RFC 8259, with the entries of maps in the order they were written.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use crate::value::{Value, write_float, write_i64, write_u64};

pub(crate) fn parse(text: &[u8]) -> Result<Value, String> {
    // serde_json refuses more than 128 levels, so nothing below overflows the stack.
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

pub(crate) fn from_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => {
            let whole = number.as_i64().map(Value::Int).or(number.as_u64().map(Value::UInt));
            whole.or(number.as_f64().map(Value::Float)).unwrap_or_default()
        }
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(from_json).collect()),
        serde_json::Value::Object(entries) => {
            let entries =
                entries.iter().map(|(key, value)| (key.as_str().into(), from_json(value)));
            Value::Map(entries.collect())
        }
    }
}

pub(crate) fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(int) => (*int).into(),
        Value::UInt(uint) => (*uint).into(),
        Value::Float(float) => (*float).into(),
        Value::Text(text) => (&**text).into(),
        Value::Bytes(bytes) => STANDARD.encode(bytes).into(),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.to_string(), to_json(value)));
            serde_json::Value::Object(entries.collect())
        }
    }
}

pub(crate) fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
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
                write(item, out);
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
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

/// A text between quotes with the escapes that RFC 8259 demands, and no others.
fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let letter = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[plain_from..at]);
        out.extend_from_slice(&[b'\\', letter]);
        if letter == b'u' {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            out.extend_from_slice(&[b'0', b'0', HEX[high], HEX[low]]);
        }
        plain_from = at + 1;
    }
    out.extend_from_slice(&text.as_bytes()[plain_from..]);
    out.push(b'"');
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
    fn json_comes_back_as_it_was_written() {
        for text in [
            r#"{"b":1,"a":[true,false,null,-5,1.5,"x"],"big":18446744073709551615}"#,
            r#""quote \" backslash \\ line \n tab \t bell \u0007 é 😀""#,
            "[]",
            "{}",
            "1e300",
        ] {
            let value = parse(text.as_bytes()).expect(text);
            let mut out = Vec::new();
            write(&value, &mut out);
            assert_eq!(String::from_utf8(out).expect("utf-8"), text);
            assert!(from_json(&to_json(&value)).equals(&value));
        }
    }

    #[test]
    fn what_json_does_not_have_is_written_as_what_it_has() {
        let value = Value::from(vec![
            Value::Float(f64::NAN),
            Value::Float(f64::INFINITY),
            Value::from(vec![1_u8, 2, 255]),
        ]);
        let mut out = Vec::new();
        write(&value, &mut out);
        assert_eq!(String::from_utf8(out).expect("utf-8"), r#"[null,null,"AQL/"]"#);
    }

    #[test]
    fn json_that_is_too_deep_or_broken_is_an_error() {
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse(b"{\"a\":}").is_err());
        assert!(parse(b"\"\xff\"").is_err());
        assert!(parse(b"1 2").is_err());
    }

    #[test]
    fn fuzz_json_never_panics_and_comes_back() {
        let corpus: &[&[u8]] = &[
            br#"{"code":0,"data":{"token":"abc","items":[1,2.5,-3e10,null,true]}}"#,
            br#"["\u00e9\ud83d\ude00", 18446744073709551615, 1e308]"#,
        ];
        throng_fuzz::mutations(corpus, |input, _| {
            let Ok(value) = parse(input) else { return };
            let mut out = Vec::new();
            write(&value, &mut out);
            let again = parse(&out).expect("what was written is JSON");
            assert!(again.equals(&value), "{value:?}");
        });
    }
}
