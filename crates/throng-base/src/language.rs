//! The language in which throng speaks to people.
//!
//! English is what the code says; another language is a catalogue of those sentences,
//! `words/zh.txt`. A sentence with values is known by its template, `there is no {} `{}``, and the
//! values are put into the translated one; what is a phrase of ours among them is translated too,
//! what a person wrote (in backticks) is not. So no code but what prints knows of languages, and a
//! sentence that is not in the catalogue is still said, in English.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

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

    /// A sentence of ours in this language.
    pub fn say(self, text: &str) -> Cow<'_, str> {
        match self {
            Language::English => Cow::Borrowed(text),
            Language::Chinese => translate(text).map_or(Cow::Borrowed(text), Cow::Owned),
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

/// A sentence of ours in the spoken language.
pub fn say(text: &str) -> Cow<'_, str> {
    spoken().say(text)
}

/// The rendering of a key in Chinese, if there is one.
pub(crate) fn rendering(key: &str) -> Option<&'static str> {
    catalogue().known.get(key).map(String::as_str)
}

/// A sentence of ours in Chinese, if the catalogue has it.
pub fn translate(text: &str) -> Option<String> {
    catalogue().translate(text, 0)
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

/// How deep phrases stand in each other.
const DEPTH_MAX: u32 = 4;
/// The longest text that is held against templates; ours are shorter.
const TEXT_BYTES_MAX: usize = 4096;
/// Less than this said by a template is found in texts of strangers too, such as the reason of an
/// operating system: such a template is no phrase inside of another.
const NESTED_WEIGHT_MIN: usize = 10;

/// What operating systems and parsers say that people often meet: no words of ours, and stable.
// words
#[cfg(test)]
const OF_OTHERS: [&str; 36] = [
    "No such file or directory (os error 2)",
    "Permission denied (os error 13)",
    "Not a directory (os error 20)",
    "Is a directory (os error 21)",
    "Too many open files (os error 24)",
    "No space left on device (os error 28)",
    "Read-only file system (os error 30)",
    "Address already in use (os error 98)",
    "Cannot assign requested address (os error 99)",
    "Network is unreachable (os error 101)",
    "Connection reset by peer (os error 104)",
    "Connection refused (os error 111)",
    "failed to lookup address information: Name or service not known",
    "failed to lookup address information: Temporary failure in name resolution",
    "Too many open files",
    "Cannot assign requested address",
    "Network is unreachable",
    "No route to host",
    "Connection reset by peer",
    "Connection refused",
    "Broken pipe",
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

const CHINESE: &str = include_str!("../words/zh.txt");

struct Catalogue {
    /// Whole sentences and templates with their translations.
    known: HashMap<&'static str, String>,
    templates: Vec<Template>,
}

struct Template {
    /// What stands between the values.
    parts: Vec<&'static str>,
    /// How much of it is said by us.
    weight: usize,
    translated: String,
}

fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| Catalogue::read(CHINESE))
}

impl Catalogue {
    fn read(text: &'static str) -> Catalogue {
        let mut known = HashMap::new();
        let mut templates = Vec::new();
        for Entry { english, translated, .. } in entries(text) {
            if english.contains("{}") {
                let parts: Vec<&str> = english.split("{}").collect();
                let weight = parts.iter().map(|part| part.len()).sum();
                templates.push(Template { parts, weight, translated: translated.clone() });
            }
            known.insert(english, translated);
        }
        // Of several templates that fit, the one that says most itself is meant.
        templates.sort_by_key(|template| std::cmp::Reverse(template.weight));
        Catalogue { known, templates }
    }

    fn translate(&self, text: &str, depth: u32) -> Option<String> {
        if let Some(translated) = self.known.get(text) {
            return Some(translated.clone());
        }
        if depth >= DEPTH_MAX || text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let lightest = if depth == 0 { 0 } else { NESTED_WEIGHT_MIN };
        let mut heavy = self.templates.iter().take_while(|template| template.weight >= lightest);
        heavy.find_map(|template| {
            let mut values = Vec::with_capacity(template.parts.len() - 1);
            template.fits(text, &mut values).then(|| self.fill(template, &values, depth))
        })
    }

    /// Puts values into a translated template: in their order, or by number: `{1}`.
    fn fill(&self, template: &Template, values: &[&str], depth: u32) -> String {
        let mut out = String::new();
        let mut rest = template.translated.as_str();
        let mut turn = 0;
        while let Some((before, number, after)) = next_place(rest) {
            out.push_str(before);
            let index = number.unwrap_or(turn);
            turn += 1;
            let value = values.get(index).copied().unwrap_or_default();
            let translated = match is_quoted(template, index) {
                true => None,
                false => self.translate(value, depth + 1),
            };
            join(&mut out, translated.as_deref().unwrap_or(value));
            rest = after;
            if rest.starts_with(is_ideograph) && out.ends_with(is_beside_space) {
                out.push(' ');
            }
        }
        out.push_str(rest);
        out
    }
}

/// Adds a value; between Chinese characters and Latin ones or code stands a space.
fn join(out: &mut String, value: &str) {
    if out.ends_with(is_ideograph) && value.starts_with(is_beside_space) {
        out.push(' ');
    }
    out.push_str(value);
}

fn is_ideograph(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

fn is_beside_space(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, ',' | '.' | ';' | ':' | '!' | '?' | '(' | ')')
}

/// Whether a value stands within backticks: then it is what a person wrote.
fn is_quoted(template: &Template, index: usize) -> bool {
    let before = template.parts.iter().take(index + 1);
    before.map(|part| part.matches('`').count()).sum::<usize>() % 2 == 1
}

/// The next `{}` or `{1}`: what stands before it, its number, what stands behind it.
pub(crate) fn next_place(text: &str) -> Option<(&str, Option<usize>, &str)> {
    let mut from = 0;
    loop {
        let open = from + text.get(from..)?.find('{')?;
        let close = open + text[open..].find('}')?;
        let inner = &text[open + 1..close];
        if inner.is_empty() || inner.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some((&text[..open], inner.parse().ok(), &text[close + 1..]));
        }
        from = open + 1;
    }
}

impl Template {
    /// Whether the text is this template with values, which are then told.
    fn fits<'t>(&self, text: &'t str, values: &mut Vec<&'t str>) -> bool {
        let Some(rest) = text.strip_prefix(self.parts[0]) else { return false };
        fits_from(&self.parts[1..], rest, values)
    }
}

fn fits_from<'t>(parts: &[&str], text: &'t str, values: &mut Vec<&'t str>) -> bool {
    let Some((part, later)) = parts.split_first() else { return text.is_empty() };
    if later.is_empty() {
        let Some(value) = text.strip_suffix(part) else { return false };
        values.push(value);
        return true;
    }
    // A part that is empty would be found everywhere: two values touch. The first takes nothing.
    for (at, _) in text.match_indices(part) {
        values.push(&text[..at]);
        if fits_from(later, &text[at + part.len()..], values) {
            return true;
        }
        values.pop();
        if part.is_empty() {
            break;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a comment\nthis is {}\n\t这是{}\na text\n\t文本\n\
                        there is no {} `{}`\n\t没有{} `{}`\nstep\n\t步骤\n\
                        {} of {}\n\t{1} 中的 {0}\nwrite `{}`\n\t写 `{}`\n\
                        say `{x: {}}`\n\t说 `{x: {}}`\n\
                        two\n  lines\n\t两\n\t  行\n";

    fn said(text: &str) -> Option<String> {
        Catalogue::read(TEXT).translate(text, 0)
    }

    #[test]
    fn sentences_are_known_by_their_templates() {
        assert_eq!(said("a text").as_deref(), Some("文本"));
        assert_eq!(said("this is a text").as_deref(), Some("这是文本"));
        assert_eq!(said("there is no step `step`").as_deref(), Some("没有步骤 `step`"));
        assert_eq!(said("there is no x `a `b``").as_deref(), Some("没有 x `a `b``"));
        assert_eq!(said("3 of 7").as_deref(), Some("7 中的 3"));
        assert_eq!(said("write `{a: {}}`").as_deref(), Some("写 `{a: {}}`"));
        assert_eq!(
            said("this is 3 of 7").as_deref(),
            Some("这是 3 of 7"),
            "too short to be a phrase"
        );
        assert_eq!(said("write `x: text`").as_deref(), Some("写 `x: text`"));
        assert_eq!(said("say `{x: a text}`").as_deref(), Some("说 `{x: a text}`"));
        assert_eq!(said("two\n  lines").as_deref(), Some("两\n  行"));
        assert_eq!(said("something else"), None);
    }

    #[test]
    fn entries_are_told_with_their_lines() {
        let lines: Vec<(usize, &str)> =
            entries(TEXT).iter().map(|entry| (entry.line, entry.english)).collect();
        assert_eq!(lines[..3], [(2, "this is {}"), (4, "a text"), (6, "there is no {} `{}`")]);
        assert_eq!(lines.last(), Some(&(16, "two\n  lines")));
        assert!(entries("\tlost\n").is_empty());
    }

    #[test]
    fn what_others_say_is_known_too() {
        assert!(OF_OTHERS.iter().all(|text| translate(text).is_some()));
    }

    #[test]
    fn no_sentence_stands_twice() {
        assert_eq!(entries(CHINESE).len(), catalogue().known.len());
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
        for (english, translated) in &catalogue().known {
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
