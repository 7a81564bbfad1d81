//! Secrets that the scenario also says where nothing is secret, such as the password `admin` of the
//! user `admin`: they are masked only where the scenario puts them, not wherever the same text is
//! found. Any other secret is masked wherever it is found, and where it is put as well, whatever
//! stands beside it there.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::{Secrets, VALUE_BYTES_MIN, forms, is_plain_word};

/// So many letters are a word that is looked for inside of what the scenario says.
const LETTERS_MAX: usize = 8;
/// What is longer is never a word of the scenario's own.
const WORD_BYTES_MAX: usize = 64;
/// Words that are remembered.
const WORDS_MAX: usize = 100_000;
/// Places that are remembered, and values in them.
const USES_MAX: usize = 10_000;
const PLACED_MAX: usize = 10_000;

/// A place of the scenario where a secret is put into a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// The secret, as it is written in an expression: `vars.password`, `data.users.pwd`.
    pub of: String,
    /// What is written directly before and behind it.
    pub before: String,
    pub after: String,
    /// Something else that is put in stands there, whose text is not known.
    pub is_open: (bool, bool),
    /// The key under which the text stands.
    pub key: Option<String>,
}

impl Use {
    /// The text is nothing but the secret.
    fn is_alone(&self) -> bool {
        self.before.is_empty() && self.after.is_empty() && self.is_open == (false, false)
    }
}

/// A value at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    before: Vec<u8>,
    value: Vec<u8>,
    after: Vec<u8>,
    is_open: (bool, bool),
    /// It is all there is, under this key.
    key: Option<String>,
}

/// What is known of the places of secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// What the scenario itself says where nothing is secret.
    words: Arc<HashSet<String>>,
    uses: Arc<Vec<Use>>,
    placed: Vec<Placed>,
    /// Values that are masked in binary data, regardless of the bytes around them.
    values: Vec<Vec<u8>>,
}

impl Secrets {
    /// What the scenario says where nothing is secret: whole texts, and the words in them.
    pub fn set_words<'t>(&mut self, texts: impl Iterator<Item = &'t str>) {
        let mut words = HashSet::new();
        for text in texts {
            if words.len() >= WORDS_MAX {
                break;
            }
            // The result of an expression is not known here.
            let literals = text.split("${").enumerate().map(|(index, part)| match index {
                0 => part,
                _ => part.split_once('}').map_or("", |(_, behind)| behind),
            });
            let inside = literals.flat_map(|part| part.split(|c: char| !c.is_alphanumeric()));
            let inside = inside.filter(|word| word.len() <= LETTERS_MAX);
            let all = [text.trim()].into_iter().chain(inside);
            let all = all.filter(|word| (3..=WORD_BYTES_MAX).contains(&word.len()));
            words.extend(all.map(str::to_string));
        }
        self.places.words = Arc::new(words);
    }

    /// Where the scenario puts secrets.
    pub fn set_uses(&mut self, mut uses: Vec<Use>) {
        uses.truncate(USES_MAX);
        self.places.uses = Arc::new(uses);
    }

    /// The value of a secret: masked where the scenario puts it, and, unless it is a word like
    /// others, wherever it is found.
    pub fn learn(&mut self, of: &str, value: &str) {
        let value = value.trim();
        if !self.is_word(super::credentials(value)) {
            self.add_header(value);
        }
        self.learn_placed(of, value);
    }

    /// The value of a secret that is known to be said elsewhere, too: masked only where the
    /// scenario puts it.
    pub fn learn_placed(&mut self, of: &str, value: &str) {
        let value = value.trim();
        let bare = super::credentials(value);
        if is_plain_word(bare) {
            return;
        }
        if bare.len() >= 3 {
            self.add_endings(bare);
        }
        if bare.len() >= 3 && !self.places.values.iter().any(|known| known == bare.as_bytes()) {
            self.places.values.push(bare.as_bytes().to_vec());
        }
        for one in self.places.uses.iter().filter(|one| one.of == of) {
            for placed in all_forms(one, value) {
                if self.places.placed.len() < PLACED_MAX && !self.places.placed.contains(&placed) {
                    self.places.placed.push(placed);
                }
            }
        }
    }

    /// Whether the same text can be something else: it is too short to be looked for, or the
    /// scenario says it where nothing is secret.
    pub fn is_word(&self, value: &str) -> bool {
        let is_said = || self.places.words.contains(value) && !is_unmistakable(value);
        value.len() < VALUE_BYTES_MIN || is_said()
    }

    /// Where values stand that are words like others, in a text.
    pub(super) fn find_placed(&self, text: &[u8], ranges: &mut Vec<Range<usize>>) {
        for placed in &self.places.placed {
            if placed.before.is_empty()
                && placed.after.is_empty()
                && placed.is_open == (false, false)
            {
                continue;
            }
            let needle = [&*placed.before, &placed.value, &placed.after].concat();
            for start in memchr::memmem::find_iter(text, &needle) {
                let is_letter =
                    |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
                let is_inside = (
                    placed.before.is_empty() && is_letter(text[..start].last()),
                    placed.after.is_empty() && is_letter(text.get(start + needle.len())),
                );
                if (is_inside.0 && !placed.is_open.0) || (is_inside.1 && !placed.is_open.1) {
                    continue;
                }
                let start = start + placed.before.len();
                ranges.push(start..start + placed.value.len());
            }
        }
    }

    /// Whether the scenario puts this value under this key, and nothing beside it.
    pub(super) fn is_placed_under(&self, name: &str, value: &[u8]) -> bool {
        let value = value.trim_ascii();
        let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'\\');
        let start = value.iter().take_while(|byte| is_quote(byte)).count();
        let end = value.iter().rev().take_while(|byte| is_quote(byte)).count();
        let value = value.get(start..value.len() - end).unwrap_or_default();
        let is_it = |placed: &Placed| {
            placed.value == value
                && placed.key.as_ref().is_some_and(|key| key.eq_ignore_ascii_case(name))
        };
        self.places.placed.iter().any(is_it)
    }

    /// Where values stand as words of their own, also those that are words like others: for a text
    /// in which nothing says what a word is.
    pub fn word_ranges(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        for value in &self.places.values {
            for start in memchr::memmem::find_iter(text, value) {
                let end = start + value.len();
                let beside = [text[..start].last(), text.get(end)];
                if !beside.into_iter().flatten().any(u8::is_ascii_alphanumeric) {
                    ranges.push(start..end);
                }
            }
        }
        super::in_order(ranges)
    }

    pub(super) fn has_placed(&self) -> bool {
        !self.places.placed.is_empty()
    }

    /// A message may consist of the secret alone, and in binary data no name shows where a value
    /// stands.
    pub(super) fn find_in_message(&self, bytes: &[u8], ranges: &mut Vec<Range<usize>>) {
        let is_alone = |placed: &Placed| placed.before.is_empty() && placed.after.is_empty();
        let whole = bytes.trim_ascii();
        if self.places.placed.iter().any(|placed| is_alone(placed) && placed.value == whole) {
            let start = bytes.len() - bytes.trim_ascii_start().len();
            ranges.push(start..start + whole.len());
        }
        let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\r\n".contains(byte);
        let is_text = std::str::from_utf8(bytes).is_ok() && !bytes.iter().any(is_control);
        if is_text {
            return;
        }
        for value in &self.places.values {
            let found = memchr::memmem::find_iter(bytes, value);
            ranges.extend(found.map(|start| start..start + value.len()));
        }
    }
}

/// Long, and of several kinds of characters: no word of anybody.
fn is_unmistakable(value: &str) -> bool {
    let has = |is: &dyn Fn(char) -> bool| usize::from(value.chars().any(is));
    let kinds = has(&|c| c.is_lowercase())
        + has(&|c| c.is_uppercase())
        + has(&|c| c.is_numeric())
        + has(&|c| !c.is_alphanumeric());
    value.len() >= 20 || value.len() >= 12 && kinds >= 3
}

/// A value at a place, in all forms in which both are sent.
fn all_forms(one: &Use, value: &str) -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    for value in forms(value) {
        for (before, after) in forms(&one.before).into_iter().zip(forms(&one.after)) {
            let key = one.key.clone().filter(|_| one.is_alone());
            let (is_open, value) = (one.is_open, value.clone().into_bytes());
            let (before, after) = (before.into_bytes(), after.into_bytes());
            let placed = Placed { before, value, after, is_open, key };
            if !all.contains(&placed) {
                all.push(placed);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(of: &str, before: &str, after: &str, key: &str) -> Use {
        let (before, after) = (before.to_string(), after.to_string());
        let key = (!key.is_empty()).then(|| key.to_string());
        Use { of: of.to_string(), before, after, key, ..Use::default() }
    }

    fn secrets(value: &str) -> Secrets {
        let mut secrets = Secrets::default();
        let words = ["GET /checkout/dash", "production", "Aa1-Aa1-Aa1-A", "admin may open a test"];
        secrets.set_words(words.into_iter());
        secrets.set_uses(vec![
            of("vars.password", "AUTH ", "\n", "send"),
            of("vars.password", "", "", "pass_phrase"),
            of("vars.password", "<p a=\"x\">", "</p>", ""),
            of("data.users.pwd", "/as/", "/x", ""),
        ]);
        secrets.learn("vars.password", value);
        secrets.learn("data.users.pwd", value);
        secrets
    }

    #[test]
    fn a_secret_that_is_a_word_is_masked_where_it_is_put_and_nowhere_else() {
        for value in ["admin", "open", "test", "checkout", "production", "k3y"] {
            let secrets = secrets(value);
            for (text, want) in [
                (format!("GET /{value}/health"), None),
                (format!("{{\"state\":\"{value}\"}}"), None),
                (format!("AUTH {value}\n"), Some("AUTH ***\n".to_string())),
                (
                    format!("{{\"pass_phrase\":\"{value}\"}}"),
                    Some(r#"{"pass_phrase":"***"}"#.into()),
                ),
                (format!("a=1&pass_phrase={value}&b=2"), Some("a=1&pass_phrase=***&b=2".into())),
                (format!("pass_phrase={value}2"), None),
                (format!("<p a=\"x\">{value}</p>"), Some("<p a=\"x\">***</p>".into())),
                (
                    format!("{{\"d\":\"<p a=\\\"x\\\">{value}</p>\"}}"),
                    Some("{\"d\":\"<p a=\\\"x\\\">***</p>\"}".into()),
                ),
                (format!("GET /as/{value}/x?{value}"), Some(format!("GET /as/***/x?{value}"))),
                (format!("{{\"password\":\"{value}\"}}"), Some(r#"{"password":"***"}"#.into())),
                (format!("<password>{value}</password>"), Some("<password>***</password>".into())),
                (
                    format!("form-data; name=\"password\"\r\n\r\n{value}\r\n--x"),
                    Some("form-data; name=\"password\"\r\n\r\n***\r\n--x".into()),
                ),
            ] {
                let want = want.unwrap_or_else(|| text.clone());
                assert_eq!(secrets.mask(&text), want, "{value}");
                assert_eq!(secrets.mask_bytes(text.as_bytes()), want.as_bytes(), "{value}");
            }
            assert_eq!(&*secrets.mask(value), value);
            assert_eq!(&*secrets.mask_bytes(value.as_bytes()), b"***", "{value}");
            assert_eq!(secrets.mask_message(value), "***");
            let binary = format!("\x00\x05{value}\x01");
            assert_eq!(&*secrets.mask_bytes(binary.as_bytes()), b"\x00\x05***\x01", "{value}");
        }
    }

    #[test]
    fn a_secret_that_is_no_word_is_masked_wherever_it_is_found() {
        for value in
            ["swordfish", "hunter", "4711", "k3y-k3y", "999999", "Aa1-Aa1-Aa1-A", "s3cr et"]
        {
            let secrets = secrets(value);
            for (text, want) in [
                (format!("GET /x/{value}/y"), "GET /x/***/y"),
                (format!("the password {value} is wrong"), "the password *** is wrong"),
                (format!("[\"{value}\"]"), "[\"***\"]"),
                (format!("GET /as/{value}/x"), "GET /as/***/x"),
                (format!("AUTH {value}\n"), "AUTH ***\n"),
            ] {
                assert_eq!(secrets.mask(&text), want);
                assert_eq!(secrets.mask_bytes(text.as_bytes()), want.as_bytes());
            }
            let binary = format!("\x00x{value}y\x01");
            assert_eq!(&*secrets.mask_bytes(binary.as_bytes()), b"\x00x***y\x01");
        }
    }

    #[test]
    fn a_secret_is_masked_at_its_place_whatever_letters_are_beside_it() {
        let mut secrets = Secrets::default();
        secrets.set_uses(vec![of("vars.password", "id-x", "y", "")]);
        secrets.learn("vars.password", "hunter");
        assert_eq!(secrets.mask("id-xhuntery or hunter"), "id-x***y or ***");
    }
}
