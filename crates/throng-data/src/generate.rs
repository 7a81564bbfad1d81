//! Generated rows: counters, and texts from patterns. Row `i` is always the same.

use std::sync::Arc;

use throng_base::{Random, Said};
use throng_expression::Value;

use crate::error::DataError;
use crate::shuffle::Permutation;

/// Maximum length of a pattern, in characters.
pub const PATTERN_CHARS_MAX: usize = 1024;

/// One column of a generated row.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// Counts with the rows from `first` to `last`, both included, and starts again.
    Range {
        first: i64,
        last: i64,
    },
    Pattern(Pattern),
    /// The same in every row.
    Constant(Value),
}

/// A text with placeholders that are chosen for each row. Texts do not repeat while combinations
/// are left: combinations are permuted, not drawn independently.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    parts: Arc<[PatternPart]>,
    /// None if the number of combinations exceeds 64 bits.
    combinations: Option<Permutation>,
}

#[derive(Clone, Debug, PartialEq)]
enum PatternPart {
    Literal(Box<str>),
    /// One character of these.
    OneOf(&'static [u8]),
}

const DIGITS: &[u8] = b"0123456789";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LETTERS_DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Generator {
    /// The meaning of a text in `generate:`: `1..1_000_000` is a range; a text with placeholders
    /// (`#` digit, `?` lowercase letter, `^` uppercase letter, `*` letter or digit, `\` makes the
    /// next character literal) is a pattern; any other text is constant. Numbers, `true` and the
    /// like are [`Generator::Constant`].
    pub fn parse(text: &str) -> Result<Generator, DataError> {
        if let Some(range) = parse_range(text) {
            return range;
        }
        if text.chars().count() > PATTERN_CHARS_MAX {
            let message = say!("the pattern has more than {PATTERN_CHARS_MAX} characters");
            return Err(DataError::new("data-generator", message)
                .help(say!("make it shorter, or put long text into `vars`")));
        }
        parse_pattern(text)
    }

    /// The number of rows until the column repeats; None if that is not certain.
    pub(crate) fn rows(&self) -> Option<u64> {
        match self {
            Generator::Range { first, last } => last.abs_diff(*first).checked_add(1),
            Generator::Pattern(_) | Generator::Constant(_) => None,
        }
    }

    /// The value in this row; each column has its own `seed`.
    pub(crate) fn value(&self, seed: u64, row: u64) -> Value {
        match self {
            Generator::Range { first, last } => {
                let step = match last.abs_diff(*first).checked_add(1) {
                    Some(count) => row % count,
                    None => row,
                };
                Value::Int(first.wrapping_add_unsigned(step))
            }
            Generator::Pattern(pattern) => Value::Text(pattern.text(seed, row).into()),
            Generator::Constant(value) => value.clone(),
        }
    }
}

impl Pattern {
    fn new(parts: Vec<PatternPart>) -> Pattern {
        let combinations = parts.iter().try_fold(1u64, |product, part| match part {
            PatternPart::Literal(_) => Some(product),
            PatternPart::OneOf(letters) => product.checked_mul(letters.len() as u64),
        });
        Pattern { parts: parts.into(), combinations: combinations.map(Permutation::new) }
    }

    fn text(&self, seed: u64, row: u64) -> String {
        let mut text = String::with_capacity(32);
        match &self.combinations {
            Some(order) => {
                let (round, position) = (row / order.size(), row % order.size());
                let key = Random::for_owner(seed, round).next_u64();
                let mut number = order.at(key, position);
                self.write(&mut text, |count| {
                    let digit = number % count;
                    number /= count;
                    digit
                });
            }
            None => {
                let mut random = Random::for_owner(seed, row);
                self.write(&mut text, |count| random.below(count));
            }
        }
        text
    }

    fn write(&self, text: &mut String, mut draw: impl FnMut(u64) -> u64) {
        for part in &*self.parts {
            match part {
                PatternPart::Literal(literal) => text.push_str(literal),
                PatternPart::OneOf(letters) => {
                    let letter = letters[draw(letters.len() as u64) as usize];
                    text.push(char::from(letter));
                }
            }
        }
    }
}

/// None if the text does not look like a range.
fn parse_range(text: &str) -> Option<Result<Generator, DataError>> {
    let (first, last) = text.trim().split_once("..")?;
    let (first, last) = (first.trim(), last.trim().trim_start_matches('='));
    let whole = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || c == '_')
    };
    if !whole(first) || !(whole(last) || last.is_empty()) {
        return None;
    }
    let number = |text: &str| text.replace('_', "").parse::<i64>().ok();
    let help = say!("write a range from the smaller to the larger whole number: `1..1_000_000`");
    let wrong =
        |message: Said| Some(Err(DataError::new("data-generator", message).help(help.clone())));
    if last.is_empty() {
        return wrong(say!("the range `{text}` has no end"));
    }
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Some(Ok(Generator::Range { first, last })),
        (Some(_), Some(_)) => {
            wrong(say!("the start of the range `{text}` is greater than its end"))
        }
        _ => wrong(say!("the range `{text}` does not fit into 64 bits")),
    }
}

fn parse_pattern(text: &str) -> Result<Generator, DataError> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let letters = match c {
            '#' => DIGITS,
            '?' => LOWER,
            '^' => UPPER,
            '*' => LETTERS_DIGITS,
            '\\' => {
                let Some(next) = chars.next() else {
                    let message = say!("the pattern `{text}` ends with a `\\`");
                    return Err(DataError::new("data-generator", message).help(say!(
                        "`\\` escapes the next character; write `\\\\` for a backslash"
                    )));
                };
                literal.push(next);
                continue;
            }
            other => {
                literal.push(other);
                continue;
            }
        };
        if !literal.is_empty() {
            parts.push(PatternPart::Literal(std::mem::take(&mut literal).into()));
        }
        parts.push(PatternPart::OneOf(letters));
    }
    if parts.is_empty() {
        return Ok(Generator::Constant(Value::Text(literal.into())));
    }
    if !literal.is_empty() {
        parts.push(PatternPart::Literal(literal.into()));
    }
    Ok(Generator::Pattern(Pattern::new(parts)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn text(generator: &Generator, row: u64) -> String {
        match generator.value(5, row) {
            Value::Text(text) => text.to_string(),
            other => panic!("{other:?} is not a text"),
        }
    }

    #[test]
    fn ranges_count_and_start_again() {
        let range = Generator::parse("1..1_000").unwrap();
        assert_eq!(range, Generator::Range { first: 1, last: 1000 });
        assert_eq!(range.rows(), Some(1000));
        assert_eq!(range.value(0, 0), Value::Int(1));
        assert_eq!(range.value(0, 999), Value::Int(1000));
        assert_eq!(range.value(0, 1000), Value::Int(1));
        let below_zero = Generator::parse("-5 .. 5").unwrap();
        assert_eq!(below_zero.value(0, 7), Value::Int(2));
        let all = Generator::Range { first: i64::MIN, last: i64::MAX };
        assert_eq!(all.rows(), None);
        assert_eq!(all.value(0, u64::MAX), Value::Int(i64::MAX));
    }

    #[test]
    fn patterns_fill_their_placeholders() {
        let pattern = Generator::parse(r"a\#-#?^*é").unwrap();
        for row in 0..500 {
            let text = text(&pattern, row);
            let drawn: Vec<char> = text.chars().collect();
            assert!(text.starts_with("a#-") && text.ends_with('é'), "{text}");
            assert!(drawn[3].is_ascii_digit() && drawn[4].is_ascii_lowercase(), "{text}");
            assert!(drawn[5].is_ascii_uppercase() && drawn[6].is_ascii_alphanumeric(), "{text}");
        }
        assert_eq!(
            Generator::parse("Rome").unwrap(),
            Generator::Constant(Value::Text("Rome".into()))
        );
    }

    #[test]
    fn patterns_do_not_repeat_while_combinations_are_left() {
        let pattern = Generator::parse("??-##").unwrap();
        let all = 26 * 26 * 100;
        let texts: HashSet<String> = (0..all).map(|row| text(&pattern, row)).collect();
        assert_eq!(texts.len() as u64, all);
        assert_eq!(text(&pattern, 77), text(&pattern, 77));
        assert_ne!(text(&pattern, 0), text(&pattern, all));
        let long = Generator::parse(&"*".repeat(40)).unwrap();
        let texts: HashSet<String> = (0..1000).map(|row| text(&long, row)).collect();
        assert_eq!(texts.len(), 1000);
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, want) in [
            ("5..1", "the start of the range `5..1` is greater than its end"),
            ("1..", "the range `1..` has no end"),
            (
                "1..99999999999999999999",
                "the range `1..99999999999999999999` does not fit into 64 bits",
            ),
            ("ab\\", "the pattern `ab\\` ends with a `\\`"),
        ] {
            let error = Generator::parse(text).unwrap_err();
            assert_eq!(error.message, want);
            assert!(error.help.is_some());
        }
        assert!(Generator::parse(&"#".repeat(PATTERN_CHARS_MAX + 1)).is_err());
        assert!(matches!(Generator::parse("a..b"), Ok(Generator::Constant(_))));
    }
}
