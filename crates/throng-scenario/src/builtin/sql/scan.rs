//! Scans SQL text for quotes, parameters and several statements.

use std::ops::Range;

use throng_protocol::sql::Dialect;

/// The result of a scan.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scan {
    pub(super) dialect: Dialect,
    pub(super) statements: usize,
    /// The highest parameter number; for MySQL, the number of parameters.
    pub(super) parameters: usize,
    /// It contains what looks like a parameter of the other dialect.
    pub(super) has_foreign: bool,
    /// Quoted texts, including quotes, that consist of a single expression.
    pub(super) quoted: Vec<Range<usize>>,
    pub(super) has_expressions: bool,
}

/// Scans the text once, like the database's lexer as far as necessary.
pub(super) fn scan(text: &str, dialect: Dialect) -> Scan {
    let (bytes, mut scan, mut at) = (text.as_bytes(), Scan { dialect, ..Scan::default() }, 0);
    let (mut is_open, is_mysql) = (false, dialect == Dialect::MySql);
    while let Some(byte) = bytes.get(at) {
        let rest = &text[at..];
        let is_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let end = match byte {
            b'\'' => {
                let escapes = is_mysql || at > 0 && matches!(bytes[at - 1], b'e' | b'E');
                quote(text, at, escapes, &mut scan)
            }
            // MySQL also uses these for text.
            b'"' if is_mysql => quote(text, at, true, &mut scan),
            b'"' => at + 1 + until(&rest[1..], "\""),
            b'`' if is_mysql => at + 1 + until(&rest[1..], "`"),
            b'#' if is_mysql => at + until(rest, "\n"),
            b'-' if rest.starts_with("--") && (!is_mysql || is_comment(rest)) => {
                at + until(rest, "\n")
            }
            b'/' if rest.starts_with("/*") && is_mysql => at + until(rest, "*/"),
            b'/' if rest.starts_with("/*") => at + comment(rest),
            b'$' if rest.starts_with("${") => {
                scan.has_expressions = true;
                at + until(rest, "}")
            }
            b'?' => {
                scan.parameters += usize::from(is_mysql);
                scan.has_foreign |= !is_mysql;
                at + 1
            }
            b'$' if is_mysql => {
                scan.has_foreign |= bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
                at + 1
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
            b'-' | b'/' | b'#' if end > at + 1 => {}
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

/// MySQL requires a space after the dashes.
fn is_comment(rest: &str) -> bool {
    rest.as_bytes().get(2).is_none_or(u8::is_ascii_whitespace)
}

/// The end of a quoted text that starts at `at`.
fn quote(text: &str, at: usize, escapes: bool, scan: &mut Scan) -> usize {
    let bytes = text.as_bytes();
    let (mark, mut end) = (bytes[at], at + 1);
    let mut has_expression = false;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' if escapes => end += 1,
            byte if *byte == mark && bytes.get(end + 1) == Some(&mark) => end += 1,
            byte if *byte == mark => break,
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

/// The end of a comment; these comments can be nested.
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

/// The length up to the end of `what`, or of the whole text without it.
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
            let scan = scan(text, Dialect::Postgres);
            assert_eq!((scan.statements, scan.parameters), (statements, parameters), "{text}");
        }
    }

    #[test]
    fn mysql_counts_question_marks_outside_of_texts_and_comments() {
        for (text, statements, parameters) in [
            ("select ?, ?", 1, 2),
            ("select '?', \"?;\", `?;`, ?", 1, 1),
            ("select 'it\\'s ?', ?", 1, 1),
            ("select 1 -- ?\n, ?", 1, 1),
            ("select 1--?", 1, 1),
            ("select ? # ; ?\n; select 2", 2, 1),
            ("select /* ? /* ; */ ?", 1, 1),
            ("# nothing", 0, 0),
        ] {
            let scan = scan(text, Dialect::MySql);
            assert_eq!((scan.statements, scan.parameters), (statements, parameters), "{text}");
        }
        assert!(scan("select $1", Dialect::MySql).has_foreign);
        assert!(scan("select ?", Dialect::Postgres).has_foreign);
    }

    #[test]
    fn expressions_in_quotes_are_found() {
        let text = "select * from t where a = '${user.id}' and b = ${iteration}";
        let found = scan(text, Dialect::Postgres);
        assert!(found.has_expressions && found.statements == 1);
        assert_eq!(
            found.quoted.iter().map(|it| &text[it.clone()]).collect::<Vec<_>>(),
            ["'${user.id}'"]
        );
        assert!(scan("select ${'a;b'}", Dialect::Postgres).quoted.is_empty());
        let text = "select \"${user.id}\"";
        assert_eq!(scan(text, Dialect::MySql).quoted, std::slice::from_ref(&(7..19)));
    }
}
