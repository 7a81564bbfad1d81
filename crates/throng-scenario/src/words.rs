//! Words that people write: in messages, as names, as switches.

use throng_base::Said;

/// What words of switches mean.
pub(crate) fn switch(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "y" | "1" | "enabled" => Some(true),
        "false" | "off" | "no" | "n" | "0" | "disabled" => Some(false),
        _ => None,
    }
}

/// A text that somebody wrote, short enough for a message of one line.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    match text.chars().count() > SHOWN_MAX {
        true => text.chars().take(SHOWN_MAX - 1).map(clean).chain(['…']).collect(),
        false => text.chars().map(clean).collect(),
    }
}

/// `ws, wss and udp`.
pub(crate) fn listed<'w>(words: impl IntoIterator<Item = &'w str>) -> Said {
    let mut words: Vec<&str> = words.into_iter().collect();
    let last = words.pop().unwrap_or_default();
    match words.is_empty() {
        true => Said::of_others(last),
        false => say!("{} and {last}", words.join(", ")),
    }
}

/// Whether a word can name a variable, a source of data or a saved value in expressions.
pub(crate) fn is_name(word: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    word.starts_with(first) && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A text as it stands between the quotes of JSON (RFC 8259, 7).
pub(crate) fn escape_json(text: &str, out: &mut Vec<u8>) {
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\x1f' => out.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes()),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

pub(crate) const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY"];
