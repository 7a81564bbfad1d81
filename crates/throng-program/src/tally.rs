//! Values of `count` and `measure`.

use throng_base::Said;
use throng_expression::Value;

/// The maximum of a single value.
const TALLIED_MAX: f64 = 1e15;

/// The value to add to a counter, which only takes whole numbers, or to record in a trend, where
/// one unit is worth `scale`.
pub fn tallied(value: &Value, scale: Option<f64>) -> Result<u64, Said> {
    let number = match value {
        Value::Text(text) => Value::parse_plain(text).as_f64(),
        value => value.as_f64(),
    };
    let text = value.to_text();
    match number {
        None => Err(say!("`{text}` is not a number")),
        Some(number) if !(0.0..=TALLIED_MAX).contains(&number) => {
            Err(say!("`{text}` is below 0 or too large"))
        }
        Some(number) if scale.is_none() && number.fract() != 0.0 => {
            Err(say!("`{text}` is not a whole number"))
        }
        Some(number) => Ok((number * scale.unwrap_or(1.0)).round() as u64),
    }
}
