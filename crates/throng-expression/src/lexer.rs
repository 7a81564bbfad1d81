//! The tokens of the Common Expression Language, one at a time.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A bracket, an operator or another sign, including the word `in`.
    Sign(&'static str),
    /// A name, which may be in backticks.
    Name,
    /// `true`, `false` or `null`.
    Constant,
    /// A reserved word of CEL; it may be a field, but not a name.
    Reserved,
    Int,
    UInt,
    Float,
    Text,
    Bytes,
}

/// Longer signs before their prefixes.
const SIGNS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "+", "-",
    "*", "/", "%", "!", "=", "<", ">",
];

const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// The length of leading spaces and comments.
pub(crate) fn gap(text: &str) -> usize {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start_matches(['\t', '\n', '\x0b', '\x0c', '\r', ' ']);
        if !trimmed.starts_with("//") {
            return text.len() - trimmed.len();
        }
        rest = trimmed.split_once('\n').map_or("", |(_, rest)| rest);
    }
}

/// The first token and its length; or the length of invalid input. The text is not empty.
pub(crate) fn token(text: &str) -> Result<(TokenKind, usize), usize> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    if is_digit(0) || (bytes[0] == b'.' && is_digit(1)) {
        return number(bytes);
    }
    if bytes[0] == b'`' {
        let length = text[1..].find('`').ok_or(text.len())?;
        return Ok((TokenKind::Name, length + 2));
    }
    let length = bytes.iter().take_while(|byte| is_part_of_word(**byte)).count();
    let word = &text[..length];
    if bytes.get(length).is_some_and(|byte| matches!(byte, b'"' | b'\'')) && is_prefix(word) {
        let kind = if word.contains(['b', 'B']) { TokenKind::Bytes } else { TokenKind::Text };
        return quoted(bytes, length).map(|length| (kind, length)).ok_or(text.len());
    }
    if length > 0 {
        return Ok((kind_of(word), length));
    }
    let sign = SIGNS.into_iter().find(|sign| text.starts_with(sign)).ok_or(1_usize)?;
    Ok((TokenKind::Sign(sign), sign.len()))
}

fn is_part_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn kind_of(word: &str) -> TokenKind {
    match word {
        "in" => TokenKind::Sign("in"),
        "true" | "false" | "null" => TokenKind::Constant,
        _ if RESERVED.contains(&word) => TokenKind::Reserved,
        _ => TokenKind::Name,
    }
}

/// Whether this may precede a quote: `r` for raw text, `b` for bytes, or both.
fn is_prefix(word: &str) -> bool {
    matches!(word.to_ascii_lowercase().as_str(), "" | "r" | "b" | "rb" | "br")
}

/// The length of a quoted text with its prefix; `None` if it is not closed.
fn quoted(bytes: &[u8], prefix: usize) -> Option<usize> {
    let is_raw = bytes[..prefix].iter().any(|byte| b"rR".contains(byte));
    let three = [bytes[prefix]; 3];
    let closing = if bytes[prefix..].starts_with(&three) { &three[..] } else { &three[..1] };
    let mut at = prefix + closing.len();
    while at < bytes.len() {
        if bytes[at..].starts_with(closing) {
            return Some(at + closing.len());
        }
        at += if bytes[at] == b'\\' && !is_raw { 2 } else { 1 };
    }
    None
}

fn number(bytes: &[u8]) -> Result<(TokenKind, usize), usize> {
    let digits =
        |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is = |at: usize, letter: u8| {
        bytes.get(at).is_some_and(|byte| byte.to_ascii_lowercase() == letter)
    };
    let mut kind = TokenKind::Int;
    let mut at;
    if bytes[0] == b'0' && is(1, b'x') {
        at = 2 + bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if at == 2 {
            return Err(at);
        }
    } else {
        at = digits(0);
        if is(at, b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
            (kind, at) = (TokenKind::Float, digits(at + 1));
        }
        if is(at, b'e') {
            let start = at + 1 + usize::from(is(at + 1, b'+') || is(at + 1, b'-'));
            (kind, at) = (TokenKind::Float, digits(start));
            if at == start {
                return Err(at);
            }
        }
    }
    if kind == TokenKind::Int && is(at, b'u') {
        (kind, at) = (TokenKind::UInt, at + 1);
    }
    match bytes.get(at) {
        Some(byte) if is_part_of_word(*byte) => Err(at + 1),
        _ => Ok((kind, at)),
    }
}
