//! Looks over the text of SQL: where it has quotes, parameters and several statements.

use std::ops::Range;

/// What a text has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scan {
    pub(super) statements: usize,
    /// The highest number of a parameter.
    pub(super) parameters: usize,
    /// Expressions between single quotes, quotes and all, where there is nothing else in them.
    pub(super) quoted: Vec<Range<usize>>,
    pub(super) has_expressions: bool,
}

/// Reads the text once, as PostgreSQL's lexer does as far as it matters here.
pub(super) fn scan(text: &str) -> Scan {
    let (bytes, mut scan, mut at) = (text.as_bytes(), Scan::default(), 0);
    let mut is_open = false;
    while let Some(byte) = bytes.get(at) {
        let rest = &text[at..];
        let is_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let end = match byte {
            b'\'' => {
                let escapes = at > 0 && matches!(bytes[at - 1], b'e' | b'E');
                quote(text, at, escapes, &mut scan)
            }
            b'"' => at + 1 + until(&rest[1..], "\""),
            b'-' if rest.starts_with("--") => at + until(rest, "\n"),
            b'/' if rest.starts_with("/*") => at + comment(rest),
            b'$' if rest.starts_with("${") => {
                scan.has_expressions = true;
                at + until(rest, "}")
            }
            b'$' if !is_word => match dollar(rest) {
                Dollar::Parameter { number, length } => {
                    scan.parameters = scan.parameters.max(number);
                    at + length
                }
                Dollar::Quote { tag } => at + tag.len() + until(&rest[tag.len()..], tag),
                Dollar::Nothing => at + 1,
            },
            _ => at + rest.chars().next().map_or(1, char::len_utf8),
        };
        match byte {
            b';' => is_open = false,
            byte if byte.is_ascii_whitespace() => {}
            b'-' | b'/' if end > at + 1 => {}
            _ if !std::mem::replace(&mut is_open, true) => scan.statements += 1,
            _ => {}
        }
        at = end;
    }
    scan
}

enum Dollar<'t> {
    Parameter {
        number: usize,
        length: usize,
    },
    /// `$$` or `$tag$`.
    Quote {
        tag: &'t str,
    },
    Nothing,
}

fn dollar(rest: &str) -> Dollar<'_> {
    let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    if let Ok(number) = rest[1..=digits].parse() {
        return Dollar::Parameter { number, length: 1 + digits };
    }
    let is_tag = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = rest[1..].bytes().take_while(is_tag).count();
    match rest.as_bytes().get(1 + length) {
        Some(b'$') => Dollar::Quote { tag: &rest[..length + 2] },
        _ => Dollar::Nothing,
    }
}

/// The end of a text in single quotes that begins at `at`.
fn quote(text: &str, at: usize, escapes: bool, scan: &mut Scan) -> usize {
    let bytes = text.as_bytes();
    let mut end = at + 1;
    let mut has_expression = false;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' if escapes => end += 1,
            b'\'' if bytes.get(end + 1) == Some(&b'\'') => end += 1,
            b'\'' => break,
            b'$' if text[end..].starts_with("${") => {
                has_expression = true;
                end += until(&text[end..], "}") - 1;
            }
            _ => {}
        }
        end += 1;
    }
    let end = (end + 1).min(bytes.len());
    if has_expression {
        scan.has_expressions = true;
        scan.quoted.push(at..end);
    }
    end
}

/// The end of a comment; such comments may be nested.
fn comment(rest: &str) -> usize {
    let (mut at, mut depth) = (2, 1);
    let bytes = rest.as_bytes();
    while depth > 0 && at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'*', Some(b'/')) => (at, depth) = (at + 2, depth - 1),
            (b'/', Some(b'*')) => (at, depth) = (at + 2, depth + 1),
            _ => at += 1,
        }
    }
    at.min(bytes.len())
}

/// How long it is up to the end of `what`; all of it where that does not follow.
fn until(text: &str, what: &str) -> usize {
    text.find(what).map_or(text.len(), |at| at + what.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_parameters_are_counted_where_they_are_some() {
        for (text, statements, parameters) in [
            ("select 1", 1, 0),
            ("select 1;", 1, 0),
            (" ; ", 0, 0),
            ("begin; select $2; commit", 3, 2),
            ("select ';$9' || $1", 1, 1),
            ("select '' , 'it''s; $3'", 1, 0),
            ("select e'\\'; $3', $1", 1, 1),
            ("select \"a;$4\"", 1, 0),
            ("select 1 -- ; $5\n, $1", 1, 1),
            ("select 1 /* ; /* $5 */ ; */", 1, 0),
            ("-- nothing", 0, 0),
            ("do $$ begin; $7; end $$; select a$1", 2, 0),
            ("do $x$ ; $$ ; $x$", 1, 0),
            ("select $1, $12", 1, 12),
            ("select 'ü", 1, 0),
            ("select $", 1, 0),
        ] {
            let scan = scan(text);
            assert_eq!((scan.statements, scan.parameters), (statements, parameters), "{text}");
        }
    }

    #[test]
    fn expressions_in_quotes_are_found() {
        let text = "select * from t where a = '${user.id}' and b = ${iteration}";
        let found = scan(text);
        assert!(found.has_expressions && found.statements == 1);
        assert_eq!(
            found.quoted.iter().map(|it| &text[it.clone()]).collect::<Vec<_>>(),
            ["'${user.id}'"]
        );
        assert!(scan("select ${'a;b'}").quoted.is_empty());
    }
}
