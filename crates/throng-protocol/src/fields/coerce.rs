//! Converts scenario values to the type of a field: numeric text to numbers, numbers to text.
//! Errors are sentences that say what fits.

use throng_base::Said;
use throng_expression::Value;

/// Characters of a text that messages show.
const SHOWN_CHARS_MAX: usize = 40;

/// A whole number; `named` knows the names of values.
pub(crate) fn whole(value: &Value, named: &dyn Fn(&str) -> Option<i64>) -> Result<i128, Said> {
    match value {
        Value::Int(int) => Ok(i128::from(*int)),
        Value::UInt(uint) => Ok(i128::from(*uint)),
        Value::Float(float) if float.fract() == 0.0 && float.abs() < 1e19 => Ok(*float as i128),
        Value::Float(float) => Err(say!("expected a whole number, not {float}")),
        Value::Text(text) => match named(text) {
            Some(number) => Ok(i128::from(number)),
            None => whole_text(text),
        },
        other => {
            let found = other.type_name();
            Err(say!("expected a whole number, not {found}"))
        }
    }
}

pub(crate) fn whole_text(text: &str) -> Result<i128, Said> {
    let trimmed = text.trim();
    if let Ok(number) = trimmed.parse() {
        return Ok(number);
    }
    match Value::parse_plain(trimmed) {
        Value::Int(int) => Ok(i128::from(int)),
        Value::UInt(uint) => Ok(i128::from(uint)),
        _ => {
            let shown = shortened(text);
            Err(say!("expected a whole number, not the text `{shown}`"))
        }
    }
}

pub(crate) fn within(number: i128, low: i128, high: i128) -> Result<i128, Said> {
    match (low..=high).contains(&number) {
        true => Ok(number),
        false => Err(say!("{number} is out of range ({low} to {high})")),
    }
}

/// A number of up to `most`.
pub(crate) fn float(value: &Value, most: f64) -> Result<f64, Said> {
    let number = number(value, most)?;
    match number.is_finite() && number.abs() > most {
        true => Err(too_great(&format!("{number:e}"), most)),
        false => Ok(number),
    }
}

fn number(value: &Value, most: f64) -> Result<f64, Said> {
    match value {
        Value::Text(text) => match text.trim().parse::<f64>() {
            // Only an explicit infinity becomes infinite.
            Ok(number) if number.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => {
                Err(too_great(&shortened(text), most))
            }
            Ok(number) => Ok(number),
            Err(_) => {
                let shown = shortened(text);
                Err(say!("expected a number, not the text `{shown}`"))
            }
        },
        other => other.as_f64().ok_or_else(|| {
            let found = other.type_name();
            say!("expected a number, not {found}")
        }),
    }
}

fn too_great(number: &str, most: f64) -> Said {
    let (low, high) = (format!("{:.4e}", -most), format!("{most:.4e}"));
    say!("{number} is out of range ({low} to {high})")
}

pub(crate) fn bool(value: &Value) -> Result<bool, Said> {
    match value {
        Value::Bool(value) => Ok(*value),
        Value::Int(0) => Ok(false),
        Value::Int(1) => Ok(true),
        Value::Text(text) if matches!(text.trim(), "true" | "1") => Ok(true),
        Value::Text(text) if matches!(text.trim(), "false" | "0") => Ok(false),
        other => {
            let found = other.type_name();
            Err(say!("expected true or false, not {found}"))
        }
    }
}

/// Appends text; also accepts numbers, and bytes that are UTF-8.
pub(crate) fn text(value: &Value, out: &mut Vec<u8>) -> Result<(), Said> {
    match value {
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bytes(bytes) if std::str::from_utf8(bytes).is_ok() => out.extend_from_slice(bytes),
        Value::Bytes(_) => return Err(say!("expected text, but these bytes are not UTF-8")),
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => value.write_text(out),
        Value::Null | Value::List(_) | Value::Map(_) => {
            let found = value.type_name();
            return Err(say!("expected text, not {found}"));
        }
    }
    Ok(())
}

/// Appends bytes; also accepts text.
pub(crate) fn bytes(value: &Value, out: &mut Vec<u8>) -> Result<(), Said> {
    let Some(bytes) = value.as_octets() else {
        let found = value.type_name();
        return Err(say!("expected bytes, not {found}"));
    };
    out.extend_from_slice(bytes);
    Ok(())
}

pub(crate) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
