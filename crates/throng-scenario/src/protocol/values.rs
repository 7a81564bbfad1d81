//! Values in a declaration: numbers, bytes, literals of a type, and conditions.

use throng_base::Said;
use throng_protocol::framed::declaration::{Comparison, Field, Literal, Type};

use crate::read::Context;
use crate::syntax::{Kind, Node};
use crate::words::shorten;

const BYTES_HELP: Said =
    say!("write `\"\\r\\n\"` in double quotes, a number such as `0`, or a list of such values");

const CONDITION_HELP: Said = say!(
    "write `flags & 1`, `kind == 2`, or only the name of an earlier field to test for a value \
     other than 0"
);

/// Negates a condition, like `!`.
const NOT: &str = "not ";

/// Maximum size of a delimiter, a terminator or constant bytes.
pub(super) const BYTES_MAX: usize = 4096;

/// `42`, `-1`, `0xC4A7`, `0b101`, `0o17`, `1_000`.
pub(super) fn parse_int(text: &str) -> Option<i128> {
    let (negative, plain) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match plain.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &plain[2..]),
        Some("0b") => (2, &plain[2..]),
        Some("0o") => (8, &plain[2..]),
        _ => (10, plain),
    };
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if negative { -value } else { value })
}

/// Letters, digits and `_`, without a leading digit.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A 64-bit integer.
#[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
pub(super) fn read_int(cx: &mut Context<'_>, node: &Node, want: Said) -> Option<i64> {
    let text = cx.text(node, want.clone())?;
    match parse_int(text.trim()).map(i64::try_from) {
        Some(Ok(number)) => Some(number),
        Some(Err(_)) => {
            let message = say!("`{}` does not fit into 64 bits", shorten(&text));
            let (label, help) = match text.trim().starts_with('-') {
                true => (say!("too small"), say!("write a larger number")),
                false => (say!("too large"), say!("write a smaller number")),
            };
            cx.refuse("bad-value", node.place, message, label, help)
        }
        None => {
            let message = say!("`{}` is not {want}", shorten(&text));
            let help = say!("write `7` or `0xC4A7`");
            cx.refuse("bad-value", node.place, message, say!("not a whole number"), help)
        }
    }
}

/// Bytes: a text, a number of one byte, or a list of both.
pub(super) fn read_bytes(cx: &mut Context<'_>, node: &Node) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match &node.kind {
        Kind::List(items) => {
            for item in items {
                add_bytes(cx, item, &mut out)?;
            }
        }
        _ => add_bytes(cx, node, &mut out)?,
    }
    if out.is_empty() {
        let label = say!("empty");
        return cx.refuse("empty", node.place, say!("the value has no bytes"), label, BYTES_HELP);
    }
    if out.len() > BYTES_MAX {
        return cx.bad_value(
            node,
            say!("this has more than 4096 bytes"),
            say!("declare a field for this many bytes"),
        );
    }
    Some(out)
}

fn add_bytes(cx: &mut Context<'_>, node: &Node, out: &mut Vec<u8>) -> Option<()> {
    let Kind::Scalar { text, plain } = &node.kind else {
        return cx.wrong_type(node, say!("bytes"), BYTES_HELP);
    };
    if node.is_null() {
        return cx.wrong_type(node, say!("bytes"), BYTES_HELP);
    }
    if let (true, Some(number)) = (*plain, parse_int(text)) {
        let Ok(byte) = u8::try_from(number) else {
            let message = say!("`{}` is not a byte", shorten(text));
            let label = say!("this does not fit into 8 bits");
            let help = say!("write a number from 0 to 255, or several bytes: `[0xCA, 0xFE]`");
            return cx.refuse("bad-value", node.place, message, label, help);
        };
        out.push(byte);
        return Some(());
    }
    check_escapes(cx, node, text)?;
    out.extend_from_slice(text.as_bytes());
    Some(())
}

/// Refuses `\r\n` that is not in double quotes.
pub(super) fn check_escapes(cx: &mut Context<'_>, node: &Node, text: &str) -> Option<()> {
    let is_escape = |pair: &[u8]| pair[0] == b'\\' && b"rnt0x".contains(&pair[1]);
    let is_double = cx.written(node.place).starts_with('"');
    if !is_double && text.as_bytes().windows(2).any(is_escape) {
        let message = say!("a backslash starts an escape sequence only in double quotes");
        let label = say!("this backslash is taken literally");
        let help = say!("write `\"{}\"`", shorten(text));
        return cx.refuse("bad-value", node.place, message, label, help);
    }
    Some(())
}

/// A value for a field of this type; `labels` are the names of its values.
pub(super) fn read_literal(
    cx: &mut Context<'_>,
    node: &Node,
    ty: &Type,
    labels: &[(String, i64)],
) -> Option<Literal> {
    match ty {
        Type::Bytes(_) => {
            // Bytes can be empty only as a value.
            return match &node.kind {
                Kind::Scalar { text, plain: false } if text.is_empty() => {
                    Some(Literal::Bytes(Vec::new()))
                }
                _ => read_bytes(cx, node).map(Literal::Bytes),
            };
        }
        Type::Struct(_)
        | Type::Fields(_)
        | Type::Json(_)
        | Type::Binary(..)
        | Type::Proto { .. } => {
            let message =
                say!("only numbers, `bool`, text and bytes can have a value in the declaration");
            let label = say!("this is a structured type");
            let help = say!("remove it, and give the value in the scenario");
            return cx.refuse("conflicting-keys", node.place, message, label, help);
        }
        _ => {}
    }
    let Kind::Scalar { text, plain } = &node.kind else {
        return cx.wrong_type(node, say!("a single value"), say!("write a number or text"));
    };
    let text = text.as_str();
    let number = parse_int(text.trim()).filter(|_| *plain);
    let read = match ty {
        Type::Text(_) => Some(Literal::Text(text.to_string())),
        Type::Bool => match text {
            "true" | "1" => Some(Literal::Bool(true)),
            "false" | "0" => Some(Literal::Bool(false)),
            _ => None,
        },
        Type::Float32 | Type::Float64 => text
            .replace('_', "")
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
            .map(Literal::Float),
        _ => {
            let named = labels.iter().find(|(name, _)| name == text);
            number.or(named.map(|(_, value)| i128::from(*value))).map(Literal::Int)
        }
    };
    if read.is_some() {
        return read;
    }
    let message = say!("`{}` is not a value of this type", shorten(text));
    let error = cx.error("bad-value", message, node.place);
    let (label, help) = match ty {
        Type::Bool => (say!("not a boolean"), say!("write `true` or `false`")),
        Type::Float32 | Type::Float64 => (say!("not a number"), say!("write `1.5`")),
        _ => (say!("not a whole number"), say!("write `7` or `0xC4A7`")),
    };
    cx.fail(error.label(label).help(help))
}

/// A value for a part of a document with type JSON.
pub(super) fn read_json(cx: &mut Context<'_>, node: &Node) -> Option<Literal> {
    let help = say!("write a number, `true`, text, or JSON in quotes: `default: \"{{}}\"`");
    let Kind::Scalar { text, plain } = &node.kind else {
        return cx.wrong_type(node, say!("a single value"), help);
    };
    let number = || text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    Some(match (*plain, text.as_str(), parse_int(text.trim())) {
        (true, "true", _) => Literal::Bool(true),
        (true, "false", _) => Literal::Bool(false),
        (true, _, Some(number)) => Literal::Int(number),
        (true, ..) => number().map_or_else(|| Literal::Text(text.clone()), Literal::Float),
        _ => Literal::Text(text.clone()),
    })
}

/// A condition: the name of a field, and a comparison.
#[derive(Debug, PartialEq)]
pub(super) struct Compared<'t> {
    pub(super) name: &'t str,
    pub(super) comparison: Comparison,
    pub(super) value: i64,
}

/// Reads `flags & 1`, `kind == 2`, `kind == ok`, `flags`, `not flags`.
pub(super) fn read_condition<'t>(
    cx: &mut Context<'_>,
    node: &Node,
    text: &'t str,
    earlier: &[Field],
) -> Option<Compared<'t>> {
    match parse_condition(text, earlier) {
        Ok(compared) => Some(compared),
        Err((label, help)) => {
            let message = say!("`{}` is not a condition", shorten(text));
            cx.refuse("bad-value", node.place, message, label, help)
        }
    }
}

fn parse_condition<'t>(text: &'t str, earlier: &[Field]) -> Result<Compared<'t>, (Said, Said)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (name, rest) = (&text[..end], text[end..].trim());
    if let Some(name) = text.strip_prefix('!').or_else(|| text.strip_prefix(NOT)) {
        let compared = parse_condition(name, earlier)?;
        return match compared.comparison {
            Comparison::NotEqual if compared.value == 0 => {
                Ok(Compared { comparison: Comparison::Equal, ..compared })
            }
            _ => Err((say!("only a name can follow `not`"), CONDITION_HELP)),
        };
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err((
            say!("a condition must start with the name of an earlier field"),
            CONDITION_HELP,
        ));
    }
    if rest.is_empty() {
        return Ok(Compared { name, comparison: Comparison::NotEqual, value: 0 });
    }
    if rest.contains("&&") || rest.contains("||") || has_word(rest, &["and", "or"]) {
        let help = say!("put the field into a structure with its own `if`: `fields: [...]`");
        return Err((say!("a condition can compare only one field"), help));
    }
    let labels = earlier.iter().find(|field| field.id.value == name);
    let labels = labels.map_or(&[][..], |field| field.labels.as_slice());
    let value = |text: &str| {
        let text = text.trim();
        let named = || labels.iter().find(|(label, _)| label.value == text).map(|(_, n)| *n);
        match text {
            "true" => Ok(1),
            "false" => Ok(0),
            _ => parse_int(text)
                .and_then(|number| i64::try_from(number).ok())
                .or_else(named)
                .ok_or((say!("the value to compare with is not a number"), CONDITION_HELP)),
        }
    };
    if let Some(mask) = rest.strip_prefix('&') {
        return bits(name, mask, value);
    }
    let (comparison, right) = Comparison::SIGNS
        .into_iter()
        .find_map(|(sign, comparison)| Some((comparison, rest.strip_prefix(sign)?)))
        .ok_or((
            say!("`==`, `!=`, `<`, `<=`, `>`, `>=` or `&` must follow the name"),
            CONDITION_HELP,
        ))?;
    Ok(Compared { name, comparison, value: value(right)? })
}

fn has_word(text: &str, words: &[&str]) -> bool {
    text.split_whitespace().any(|word| words.contains(&word))
}

/// `1`, `1 != 0`, `6 == 6`: the text after `&`.
fn bits<'t>(
    name: &'t str,
    rest: &str,
    value: impl Fn(&str) -> Result<i64, (Said, Said)>,
) -> Result<Compared<'t>, (Said, Said)> {
    let has_bits = |mask| Ok(Compared { name, comparison: Comparison::HasBits, value: mask });
    let help = say!(
        "declare the bits as separate fields (`type: b1`), and compare one of them: `name == \
             0`"
    );
    if let Some((mask, right)) = rest.split_once("==") {
        let (mask, right) = (value(mask)?, value(right)?);
        return match mask == right && mask != 0 {
            true => has_bits(mask),
            false => Err((say!("a condition can only test whether all bits are set"), help)),
        };
    }
    if let Some((mask, right)) = rest.split_once("!=") {
        let (mask, right) = (value(mask)?, value(right)?);
        return match right == 0 && mask.count_ones() == 1 {
            true => has_bits(mask),
            false => Err((say!("a condition can only test whether all bits are set"), help)),
        };
    }
    match value(rest)? {
        0 => Err((
            say!("this condition tests no bits"),
            say!("write a number in which the bits to test are set: `flags & 4`"),
        )),
        mask => has_bits(mask),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_several_bases() {
        for (text, want) in [
            ("7", Some(7)),
            ("-1", Some(-1)),
            ("0xC4A7", Some(0xc4a7)),
            ("0b101", Some(5)),
            ("0o17", Some(15)),
            ("1_000", Some(1000)),
            ("18446744073709551615", Some(i128::from(u64::MAX))),
            ("0x", None),
            ("--1", None),
            ("_1", None),
            ("1.5", None),
            ("é1", None),
            ("", None),
        ] {
            assert_eq!(parse_int(text), want, "{text}");
        }
    }

    #[test]
    fn conditions_compare_one_field() {
        use Comparison::{Equal, GreaterOrEqual, HasBits, Less, NotEqual};
        for (text, comparison, value) in [
            ("flags & 1", HasBits, 1),
            ("flags&0x10", HasBits, 16),
            ("flags & 4 != 0", HasBits, 4),
            ("flags & 6 == 6", HasBits, 6),
            ("flags == 2", Equal, 2),
            ("flags != -2", NotEqual, -2),
            ("flags<3", Less, 3),
            ("flags >= 0x10", GreaterOrEqual, 16),
            ("flags", NotEqual, 0),
            ("flags == true", Equal, 1),
            ("!flags", Equal, 0),
            ("not flags", Equal, 0),
        ] {
            let want = Compared { name: "flags", comparison, value };
            assert_eq!(parse_condition(text, &[]), Ok(want), "{text}");
        }
        for text in [
            "",
            "1 == 1",
            "flags =",
            "flags & ",
            "flags & 0",
            "flags & 1 == 0",
            "flags & 6 != 0",
            "a == 1 and b == 2",
            "a == 1 || b",
            "flags == full",
            "flags ++",
            "!flags == 3",
            "&",
        ] {
            assert!(parse_condition(text, &[]).is_err(), "{text}");
        }
    }
}
