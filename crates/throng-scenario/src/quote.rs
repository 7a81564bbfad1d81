//! YAML scalars for any text, on one line, quoted only where YAML requires it.

use std::fmt::Write as _;

pub use crate::read::template::escape;

/// A scalar that scenarios read as this text; expressions are escaped.
pub fn text(text: &str) -> String {
    scalar(&escape(text))
}

/// A scalar that is read back as the same text.
pub fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_string();
    }
    let wide = |c: char| c.is_control() || is_special(c);
    let single = text.contains(['"', '\\']) && !text.contains('\'') && !text.chars().any(wide);
    match single {
        true => format!("'{text}'"),
        false => quoted(text),
    }
}

/// The text in double quotes (YAML 1.2.2, 7.3.1).
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c.is_control() || is_special(c) => {
                let code = c as u32;
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Characters that YAML treats as line ends or does not allow.
pub fn is_special(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{a0}')
}

/// True if the text is the same without quotes, also inside brackets.
fn is_plain(text: &str) -> bool {
    let first_good = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '_');
    let good = |c: char| c.is_ascii_alphanumeric() || "/_-.+=?&%;@$()<>* :".contains(c);
    first_good
        && text.chars().all(good)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        // In brackets a comma or bracket may follow, and the parser reads `-,` as a list.
        && !text.ends_with(" -")
        && !matches!(text, "null" | "true" | "false" | "present" | "absent" | "forever" | "any")
}
