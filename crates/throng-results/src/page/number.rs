//! Numbers in columns.

use serde_json::{Value, json};

/// Without a decimal point if it is an integer.
pub(super) fn number(figure: Option<f64>) -> Value {
    match figure {
        Some(figure) if figure.fract() == 0.0 && figure.abs() < 9e15 => json!(figure as i64),
        figure => json!(figure),
    }
}
