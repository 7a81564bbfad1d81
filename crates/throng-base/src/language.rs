//! The language in which throng speaks to people.
//!
//! English is what the code says; another language is a catalogue of those sentences,
//! `words/zh.txt`, with `{}` for the values in them. [`crate::Said`] renders them.

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

    /// As `--lang` has it.
    pub fn word(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh",
        }
    }

    /// Of `en`, `zh`, or a locale such as `zh_CN.UTF-8`.
    pub fn parse(text: &str) -> Option<Language> {
        let word = text.split(['_', '-', '.', '@']).next().unwrap_or_default();
        Language::ALL.into_iter().find(|language| language.word().eq_ignore_ascii_case(word))
    }

    /// The language of the locale: what the first of `LC_ALL`, `LC_MESSAGES` and `LANG` says that
    /// says anything (POSIX.1-2024, 8.2). `variable` reads one of the environment.
    pub fn of_locale(variable: impl Fn(&str) -> Option<String>) -> Language {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(set);
        locale.and_then(|locale| Language::parse(&locale)).unwrap_or_default()
    }
}

static SPOKEN: AtomicU8 = AtomicU8::new(Language::English as u8);

/// Speaks this language from now on, in the whole process.
pub fn speak(language: Language) {
    SPOKEN.store(language as u8, Ordering::Relaxed);
}

pub fn spoken() -> Language {
    match SPOKEN.load(Ordering::Relaxed) {
        1 => Language::Chinese,
        _ => Language::English,
    }
}

/// The rendering of a key in Chinese, if there is one.
pub(crate) fn rendering(key: &str) -> Option<&'static str> {
    catalogue().get(key).map(String::as_str)
}

/// What the catalogue says of one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'t> {
    /// Where the sentence stands in the catalogue, from 1.
    pub line: usize,
    pub english: &'t str,
    pub translated: String,
}

/// The entries of a catalogue: lines of English, and below them, each behind a tab, the lines of
/// the translation; `#` begins a comment.
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

/// What operating systems and parsers say that people often meet: no words of ours, and stable.
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

/// Unpacked where Chinese is spoken.
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
    fn entries_are_told_with_their_lines() {
        let lines: Vec<(usize, &str)> =
            entries(TEXT).iter().map(|entry| (entry.line, entry.english)).collect();
        assert_eq!(lines[..3], [(2, "this is {}"), (4, "a text"), (6, "there is no {} `{}`")]);
        assert_eq!(lines.last(), Some(&(8, "two\n  lines")));
        assert!(entries("\tlost\n").is_empty());
    }

    #[test]
    fn what_others_say_is_known_too() {
        assert!(OF_OTHERS.iter().all(|text| rendering(text).is_some()));
    }

    #[test]
    fn no_sentence_stands_twice() {
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
