//! Secrets whose text the scenario also contains elsewhere, such as the password `admin` of the
//! user `admin`: they are masked only where the scenario inserts them. Any other secret is masked
//! anywhere, and where it is inserted even if its neighbors are letters.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::{Secrets, VALUE_BYTES_MIN, forms, is_plain_word};

/// Shorter sequences of letters are searched within the words of the scenario.
const LETTERS_MAX: usize = 8;
/// Longer texts are never common words.
const WORD_BYTES_MAX: usize = 64;
/// Maximum number of words.
const WORDS_MAX: usize = 100_000;
/// Maximum number of uses, and of values in them.
const USES_MAX: usize = 10_000;
const PLACED_MAX: usize = 10_000;

/// A use of a secret: its insertion into a text of the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// The secret as in an expression: `vars.password`, `data.users.pwd`.
    pub of: String,
    /// The text directly before and after it.
    pub before: String,
    pub after: String,
    /// Whether another inserted value, whose text is unknown, is before or after it.
    pub is_open: (bool, bool),
    /// The key of the text.
    pub key: Option<String>,
}

impl Use {
    /// Whether the text consists only of the secret.
    fn is_alone(&self) -> bool {
        self.before.is_empty() && self.after.is_empty() && self.is_open == (false, false)
    }
}

/// A value at its place of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    before: Vec<u8>,
    value: Vec<u8>,
    after: Vec<u8>,
    is_open: (bool, bool),
    /// The key if the text consists only of the secret.
    key: Option<String>,
}

/// The uses of secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// The non-secret text of the scenario.
    words: Arc<HashSet<String>>,
    uses: Arc<Vec<Use>>,
    placed: Vec<Placed>,
    /// Values that are masked in binary data regardless of adjacent bytes.
    values: Vec<Vec<u8>>,
}

impl Secrets {
    /// Sets the non-secret text of the scenario: whole texts and their words.
    pub fn set_words<'t>(&mut self, texts: impl Iterator<Item = &'t str>) {
        let mut words = HashSet::new();
        for text in texts {
            if words.len() >= WORDS_MAX {
                break;
            }
            // The results of expressions are unknown here.
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

    /// Sets the places where the scenario inserts secrets.
    pub fn set_uses(&mut self, mut uses: Vec<Use>) {
        uses.truncate(USES_MAX);
        self.places.uses = Arc::new(uses);
    }

    /// Adds the value of a secret: it is masked where the scenario inserts it and, unless it is a
    /// common word, anywhere.
    pub fn learn(&mut self, of: &str, value: &str) {
        let value = value.trim();
        if !self.is_word(super::credentials(value)) {
            self.add_header(value);
        }
        self.learn_placed(of, value);
    }

    /// Adds the value of a secret that also occurs elsewhere: it is masked only where the scenario
    /// inserts it.
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

    /// Whether the same text can have another meaning: it is too short to search for, or the
    /// scenario contains it elsewhere.
    pub fn is_word(&self, value: &str) -> bool {
        let is_said = || self.places.words.contains(value) && !is_unmistakable(value);
        value.len() < VALUE_BYTES_MIN || is_said()
    }

    /// Finds common words that are secret at their place in a text.
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

    /// Whether the scenario inserts this value as the whole text of this key.
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

    /// The ranges of values as separate words, even of common words: for text without structure.
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

    /// A message can consist of only the secret, and in binary data no name identifies a value.
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

/// Long and with several kinds of characters: never a common word.
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
    fn a_common_word_is_masked_only_where_it_is_inserted() {
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
    fn an_uncommon_secret_is_masked_anywhere() {
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
    fn an_inserted_secret_is_masked_between_any_letters() {
        let mut secrets = Secrets::default();
        secrets.set_uses(vec![of("vars.password", "id-x", "y", "")]);
        secrets.learn("vars.password", "hunter");
        assert_eq!(secrets.mask("id-xhuntery or hunter"), "id-x***y or ***");
    }
}
