//! Splits an XPath into tokens (XPath 1.0, 3.7).

use throng_base::Said;

use crate::fault::PathError;

/// Maximum length of an expression.
const PATH_BYTES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Literal(String),
    /// A name with its optional prefix; `None` as name is `*`.
    Name(Option<String>, Option<String>),
    /// An operator or a mark, including `and`, `or`, `div`, `mod`; `times` is `*` as an operator.
    Mark(&'static str),
}

#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) place: (usize, usize),
}

pub(super) const HELP: Said =
    say!("write an XPath 1.0 expression such as `//form[@id='login']//input[@name='csrf']/@value`");

/// Longer marks before their prefixes.
const MARKS: [&str; 20] = [
    "//", "::", "..", "!=", "<=", ">=", "/", "(", ")", "[", "]", ".", "@", ",", "|", "+", "-", "=",
    "<", ">",
];

pub(super) fn lex(text: &str) -> Result<Vec<Placed>, PathError> {
    if text.len() > PATH_BYTES_MAX {
        let message = say!("a path can have at most {PATH_BYTES_MAX} bytes");
        return Err(PathError::new((0, text.len()), message, HELP));
    }
    let mut tokens: Vec<Placed> = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let body = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        at += rest.len() - body.len();
        let Some(first) = body.chars().next() else { return Ok(tokens) };
        let operator = expects_operator(tokens.last());
        let (token, length) = match first {
            '"' | '\'' => literal(body, first, at)?,
            '0'..='9' => number(body),
            '.' if body[1..].starts_with(|c: char| c.is_ascii_digit()) => number(body),
            '*' if operator => (Token::Mark("times"), 1),
            '*' => (Token::Name(None, None), 1),
            c if is_name_start(c) => match operator_name(body).filter(|_| operator) {
                Some(name) => (Token::Mark(name), name.len()),
                None => name(body),
            },
            _ => match MARKS.into_iter().find(|mark| body.starts_with(mark)) {
                Some(mark) => (Token::Mark(mark), mark.len()),
                None => return Err(unknown(first, at)),
            },
        };
        tokens.push(Placed { token, place: (at, at + length) });
        at += length;
    }
}

/// Whether `*` and `and` are operators here: after anything that ends a value.
fn expects_operator(last: Option<&Placed>) -> bool {
    match last.map(|last| &last.token) {
        None => false,
        Some(Token::Mark(mark)) => matches!(*mark, ")" | "]" | "." | ".."),
        Some(_) => true,
    }
}

fn unknown(c: char, at: usize) -> PathError {
    let place = (at, at + c.len_utf8());
    match c {
        '$' => PathError::new(
            place,
            say!("variables are not supported in XPath"),
            say!("insert the value with `${{…}}`, and put it in quotes"),
        ),
        _ => PathError::new(place, say!("`{c}` is not allowed in an XPath expression"), HELP),
    }
}

fn literal(body: &str, quote: char, at: usize) -> Result<(Token, usize), PathError> {
    match body[1..].find(quote) {
        Some(end) => Ok((Token::Literal(body[1..=end].to_string()), end + 2)),
        None => {
            let place = (at, at + body.len());
            Err(PathError::new(place, say!("the closing quote is missing"), HELP))
        }
    }
}

fn number(body: &str) -> (Token, usize) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(body);
    if body[length..].starts_with('.') {
        length += 1 + digits(&body[length + 1..]);
    }
    (Token::Number(body[..length].parse().unwrap_or(f64::NAN)), length)
}

fn operator_name(body: &str) -> Option<&'static str> {
    let length = name_length(body);
    ["and", "or", "div", "mod"].into_iter().find(|name| *name == &body[..length])
}

/// `name`, `prefix:name`, `prefix:*`. An axis is also a name; `::` follows it.
fn name(body: &str) -> (Token, usize) {
    let length = name_length(body);
    let first = body[..length].to_string();
    let Some(local) = body[length..].strip_prefix(':') else {
        return (Token::Name(None, Some(first)), length);
    };
    if local.starts_with('*') {
        return (Token::Name(Some(first), None), length + 2);
    }
    match local.starts_with(is_name_start) {
        true => {
            let end = name_length(local);
            (Token::Name(Some(first), Some(local[..end].to_string())), length + 1 + end)
        }
        false => (Token::Name(None, Some(first)), length),
    }
}

fn name_length(body: &str) -> usize {
    let part = |c: char| is_name_start(c) || c.is_ascii_digit() || matches!(c, '-' | '.');
    body.find(|c: char| !part(c)).unwrap_or(body.len())
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}
