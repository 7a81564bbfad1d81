//! JSON as values of scenarios.

use throng_expression::{Passed, Value};

/// Why a text is not valid JSON, and the column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub what: String,
    pub column: usize,
}

/// Reads the text as one JSON value.
pub(crate) fn parse(text: &str) -> Result<Value, Mistake> {
    serde_json::from_str(text).map_err(|error| mistake(&error))
}

/// Checks that the text is one JSON value that can be read.
pub(crate) fn check(text: &str) -> Result<(), Mistake> {
    serde_json::from_str::<Passed>(text).map(|_| ()).map_err(|error| mistake(&error))
}

fn mistake(error: &serde_json::Error) -> Mistake {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
    Mistake { what: what.to_string(), column: error.column() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_a_column() {
        for (text, what) in [
            ("{\"a\":1,}", "trailing comma"),
            ("{\"a\":1} x", "trailing characters"),
            ("[1e999]", "number out of range"),
            (r#"{"a":"\ud800"}"#, "unexpected end of hex escape"),
            ("{", "EOF while parsing an object"),
        ] {
            let mistake = check(text).unwrap_err();
            assert_eq!(mistake.what, what, "{text}");
            assert!(mistake.column > 0);
            assert!(parse(text).is_err());
        }
        assert!(check(&"[".repeat(100_000)).is_err());
    }
}
