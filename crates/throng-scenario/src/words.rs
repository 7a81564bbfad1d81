//! Words written by users: in messages, as names, as switches.

use throng_base::Said;

/// The meaning of a word for a switch.
pub(crate) fn switch(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "y" | "1" | "enabled" => Some(true),
        "false" | "off" | "no" | "n" | "0" | "disabled" => Some(false),
        _ => None,
    }
}

/// A user's text, short enough for a one-line message.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    match text.chars().count() > SHOWN_MAX {
        true => text.chars().take(SHOWN_MAX - 1).map(clean).chain(['…']).collect(),
        false => text.chars().map(clean).collect(),
    }
}

/// Names in a message: `` `a`, `b` ``. Of many, only the first ones.
pub(crate) fn names<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> String {
    const SHOWN_MAX: usize = 12;
    let names = names.into_iter().take(SHOWN_MAX + 1);
    let mut shown: Vec<String> =
        names.map(|name| format!("`{}`", shorten(name.as_ref()))).collect();
    if shown.len() > SHOWN_MAX {
        shown[SHOWN_MAX] = "…".into();
    }
    shown.join(", ")
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

/// True if a word can name a variable, a source of data or a saved value in expressions.
pub(crate) fn is_name(word: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    word.starts_with(first) && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(crate) const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY"];
