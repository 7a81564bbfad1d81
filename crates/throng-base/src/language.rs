//! The language of throng's messages.
//!
//! Messages in the code are English; the catalog `words/zh.txt` contains their translations, with
//! `{}` for values. [`crate::Said`] renders them.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::packed;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    pub const ALL: [Language; 2] = [Language::English, Language::Chinese];

    /// As in `--lang`.
    pub fn word(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh",
        }
    }

    /// From `en`, `zh`, or a locale such as `zh_CN.UTF-8`.
    pub fn parse(text: &str) -> Option<Language> {
        let word = text.split(['_', '-', '.', '@']).next().unwrap_or_default();
        Language::ALL.into_iter().find(|language| language.word().eq_ignore_ascii_case(word))
    }

    /// The language of the locale: the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is set
    /// (POSIX.1-2024, 8.2). `variable` reads an environment variable.
    pub fn of_locale(variable: impl Fn(&str) -> Option<String>) -> Language {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(set);
        locale.and_then(|locale| Language::parse(&locale)).unwrap_or_default()
    }
}

static SPOKEN: AtomicU8 = AtomicU8::new(Language::English as u8);

/// Sets the language of the process.
pub fn speak(language: Language) {
    SPOKEN.store(language as u8, Ordering::Relaxed);
}

pub fn spoken() -> Language {
    match SPOKEN.load(Ordering::Relaxed) {
        1 => Language::Chinese,
        _ => Language::English,
    }
}

/// The Chinese translation of a key, if there is one.
pub(crate) fn rendering(key: &str) -> Option<&'static str> {
    catalogue().get(key).map(String::as_str)
}

/// The catalog's entry of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'t> {
    /// Its line in the catalog, from 1.
    pub line: usize,
    pub english: &'t str,
    pub translated: String,
}

/// The entries of a catalog: lines of English, followed by the translation in lines that start with
/// a tab; `#` starts a comment.
pub fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let (mut start, mut begun) = (0, None);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let end = start + line.trim_end_matches('\n').len();
        let content = &text[start..end];
        if let Some(translated) = content.strip_prefix('\t') {
            match (begun.take(), entries.last_mut()) {
                (Some((number, from)), _) => {
                    let english = text[from..start].trim_end_matches('\n');
                    let translated = translated.to_string();
                    entries.push(Entry { line: number, english, translated });
                }
                (None, Some(entry)) => entry.translated.extend(["\n", translated]),
                (None, None) => {}
            }
        } else if content.is_empty() || content.starts_with('#') {
            begun = None;
        } else if begun.is_none() {
            begun = Some((index + 1, start));
        }
        start += line.len();
    }
    entries
}

/// Common messages of operating systems and parsers. They are stable, but not throng's own.
#[cfg(test)]
const OF_OTHERS: [&str; 31] = [
    "No such file or directory",
    "Permission denied",
    "Not a directory",
    "Is a directory",
    "Too many open files",
    "No space left on device",
    "Read-only file system",
    "Address already in use",
    "Cannot assign requested address",
    "Network is unreachable",
    "No route to host",
    "Connection reset by peer",
    "Connection refused",
    "Broken pipe",
    "failed to lookup address information: Name or service not known",
    "failed to lookup address information: Temporary failure in name resolution",
    // Regular expressions.
    "unclosed group",
    "unopened group",
    "unclosed character class",
    "unrecognized escape sequence",
    "repetition operator missing expression",
    "look-around, including look-ahead and look-behind, is not supported",
    "backreferences are not supported",
    // YAML.
    "illegal placement of ':' indicator",
    "mapping values are not allowed in this context",
    "tabs disallowed within this context (block indentation)",
    "while parsing a flow mapping, did not find expected ',' or '}'",
    "while parsing a flow sequence, expected ',' or ']'",
    "while parsing node, found unknown anchor",
    "unexpected end of file",
    "invalid indentation in quoted scalar",
];

/// Unpacked when Chinese is first needed.
fn chinese() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| packed::text(throng_words::packed!("words/zh.txt")))
}

fn catalogue() -> &'static HashMap<&'static str, String> {
    static CATALOGUE: OnceLock<HashMap<&'static str, String>> = OnceLock::new();
    let entry = |entry: Entry<'static>| (entry.english, entry.translated);
    CATALOGUE.get_or_init(|| entries(chinese()).into_iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::said::next_place;

    const TEXT: &str = "# a comment\nthis is {}\n\t这是{}\na text\n\t文本\n\
                        there is no {} `{}`\n\t没有{} `{}`\n\
                        two\n  lines\n\t两\n\t  行\n";

    #[test]
    fn entries_have_their_line_numbers() {
        let lines: Vec<(usize, &str)> =
            entries(TEXT).iter().map(|entry| (entry.line, entry.english)).collect();
        assert_eq!(lines[..3], [(2, "this is {}"), (4, "a text"), (6, "there is no {} `{}`")]);
        assert_eq!(lines.last(), Some(&(8, "two\n  lines")));
        assert!(entries("\tlost\n").is_empty());
    }

    #[test]
    fn foreign_messages_have_translations() {
        assert!(OF_OTHERS.iter().all(|text| rendering(text).is_some()));
    }

    #[test]
    fn no_message_occurs_twice() {
        assert_eq!(entries(chinese()).len(), catalogue().len());
    }

    #[test]
    fn locales_name_languages() {
        for (text, language) in [
            ("zh", Some(Language::Chinese)),
            ("zh_CN.UTF-8", Some(Language::Chinese)),
            ("en-US", Some(Language::English)),
            ("C", None),
            ("", None),
        ] {
            assert_eq!(Language::parse(text), language, "{text}");
        }
        let of = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|it| it.1.into());
            Language::of_locale(value)
        };
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8")]), Language::Chinese);
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "")]), Language::Chinese);
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "C")]), Language::English);
        assert_eq!(of(&[("LANG", "C"), ("LC_MESSAGES", "zh")]), Language::Chinese);
        assert_eq!(of(&[]), Language::English);
    }

    #[test]
    fn every_translation_has_the_values_of_its_template() {
        for (english, translated) in catalogue() {
            let count = english.matches("{}").count();
            let mut used = vec![false; count];
            let (mut rest, mut turn) = (translated.as_str(), 0);
            while let Some((_, number, after)) = next_place(rest) {
                let index = number.unwrap_or(turn);
                assert!(index < count, "{english}: no value {index}");
                used[index] = true;
                turn += 1;
                rest = after;
            }
            assert!(used.iter().all(|used| *used), "{english}: a value is lost in {translated}");
            assert!(!translated.is_empty() && translated.trim() == translated, "{english}");
        }
    }
}
