//! Explains why a text is not valid YAML. The parser reports where it stopped; the mistake is often
//! on an earlier line, and different from what the parser says.

use throng_base::{Diagnostic, Said, Source};

/// Typographic quotes.
pub(crate) const OTHER_QUOTES: [char; 7] = ['“', '”', '„', '‘', '’', '«', '»'];

/// Maximum number of lines that are examined before the mistake.
const LINES_MAX: usize = 500;

/// Maximum number of lines in which a bracket is searched that a comment keeps open.
const BRACKET_LINES_MAX: usize = 20;

/// Maximum length of a text repeated in a help.
const SHOWN_CHARS_MAX: usize = 60;

const OTHER_QUOTES_HELP: Said = say!("use the straight quotes `\"` or `'`");

/// A message, and the bytes that it refers to.
pub(super) struct Mistake {
    message: Said,
    start: usize,
    end: usize,
    label: Said,
    help: Said,
}

impl Mistake {
    /// The bytes that it refers to.
    pub(super) fn bytes(&self) -> (usize, usize) {
        (self.start, self.end)
    }

    pub(super) fn diagnostic(self) -> Diagnostic {
        Diagnostic::error("yaml-syntax", self.message).label(self.label).help(self.help)
    }
}

/// The mistake that stopped the parser at byte `at` with the reason `info`.
pub(super) fn find(source: &Source, info: &str, at: usize) -> Mistake {
    let lines = Lines::new(&source.text, at);
    let found = match info {
        // The parser's own message is good.
        _ if info.contains("tab") => None,
        _ if info.contains("escape") => escaped(source, at),
        _ if info.contains("quoted scalar") => {
            open_quote(&lines, info, at).or_else(|| other_quotes(&lines))
        }
        _ => other_quotes(&lines)
            .or_else(|| comment_in_brackets(&lines, at))
            .or_else(|| bracket_in_key(&lines, info, at))
            .or_else(|| missing_colon(&lines, info, at))
            .or_else(|| indentation(&lines, info, at)),
    };
    found.unwrap_or_else(|| as_the_parser_says(source, info, at))
}

fn as_the_parser_says(source: &Source, info: &str, at: usize) -> Mistake {
    let end = source.text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
    let line = source.line_at(at);
    let expression = line.contains("${") && line.contains('{');
    let help = match info {
        _ if info.contains("tab") => say!("indent with spaces: YAML does not allow tabs"),
        _ if expression => say!("inside `{{ }}` and `[ ]`, put text with `${{…}}` in quotes"),
        _ if info.contains("invalid indentation") || info.contains("block mapping") => {
            say!("check the indentation: keys of one map must start in the same column")
        }
        _ if info.contains("flow") || info.contains("placement of ':'") => {
            say!("check the brackets, commas and quotes on this line and the line before")
        }
        _ if info.contains("mapping values") => match two_keys(line) {
            Some((key, inner)) => say!(
                "write `{key}: {{{inner}}}` for a map on one line; put text that contains `: ` \
                 in quotes"
            ),
            None => say!("put text that contains `: ` in quotes"),
        },
        _ => say!("put text with special characters in quotes: `\"a: b\"`"),
    };
    Mistake {
        message: say!("this is not valid YAML: {}", Said::of_others(info)),
        start: at,
        end,
        label: say!("the parser stopped here"),
        help,
    }
}

/// `check: status: 200` as `check` and `status: 200`.
fn two_keys(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (key, inner) = line.strip_prefix("- ").unwrap_or(line).trim().split_once(": ")?;
    let (name, value) = inner.split_once(": ")?;
    let is_word = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
    };
    let is_short = inner.chars().count() <= SHOWN_CHARS_MAX && !value.contains(": ");
    (is_word(key) && is_word(name) && is_short).then_some((key, inner.trim_end()))
}

/// `{json.rows[0].price: 1}`: in brackets, a key ends at a bracket.
fn bracket_in_key(lines: &Lines<'_>, info: &str, at: usize) -> Option<Mistake> {
    let here = lines.here();
    let (before, behind) = here.text.split_at_checked(at.checked_sub(here.start)?)?;
    let begin = before.rfind([' ', ',', '{']).map_or(0, |byte| byte + 1);
    let key = &here.text[begin..before.len() + behind.find(": ")?];
    let is_key = key.contains('[') && !key.contains(['"', '\'', '{', '}', ',', ' ']);
    (is_key && info.contains("flow mapping")).then(|| Mistake {
        message: say!("this is not valid YAML: a key with `[` must be in quotes inside `{{ }}`"),
        start: here.start + begin,
        end: here.start + begin + key.len(),
        label: say!("this key"),
        help: say!("put the key in quotes: `\"{key}\"`"),
    })
}

/// A `#` after a space in brackets: the rest of the line is a comment, including the closing
/// bracket.
fn comment_in_brackets(lines: &Lines<'_>, at: usize) -> Option<Mistake> {
    let line = lines.lines.iter().take(BRACKET_LINES_MAX).find_map(|line| {
        let byte = comment(line.text).filter(|byte| line.start + byte < at.max(line.start + 1))?;
        let (before, comment) = line.text.split_at(byte);
        let open = |open: char, close: char| {
            before.matches(open).count() > before.matches(close).count() && comment.contains(close)
        };
        (open('{', '}') || open('[', ']')).then_some((line, byte))
    });
    let (line, byte) = line?;
    let value = line.text[..byte].rsplit([',', ':', '{', '[']).next().unwrap_or("").trim();
    let rest = line.text[byte..].trim_end_matches(['}', ']', ' ']);
    let rest = rest.split([',', '}', ']']).next().unwrap_or(rest);
    let shown = format!("{value} {rest}");
    let help = match shown.chars().count() <= SHOWN_CHARS_MAX && !shown.contains(['"', '\'']) {
        true => say!("put the text in quotes: `\"{shown}\"`"),
        false => say!("put the text that contains `#` in quotes"),
    };
    Some(Mistake {
        message: say!("this is not valid YAML: `#` starts a comment, so the bracket is not closed"),
        start: line.start + byte,
        end: line.start + line.text.len(),
        label: say!("the comment starts here"),
        help,
    })
}

/// The start of a line's comment, outside of quotes.
fn comment(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = ' ';
    for (byte, c) in line.char_indices() {
        match quote {
            None if c == '#' && before == ' ' => return Some(byte),
            None if matches!(c, '"' | '\'') && " {[,:".contains(before) => quote = Some(c),
            Some(open) if c == open && before != '\\' => quote = None,
            _ => {}
        }
        before = c;
    }
    None
}

/// The line at which the parser stopped and the non-empty lines before it, the last first.
struct Lines<'t> {
    lines: Vec<Line<'t>>,
}

#[derive(Clone, Copy)]
struct Line<'t> {
    text: &'t str,
    /// Its first byte, and its number from 1.
    start: usize,
    number: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str, at: usize) -> Lines<'t> {
        let mut end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        let mut number = text[..at].matches('\n').count() + 1;
        let mut lines = Vec::new();
        for _ in 0..LINES_MAX {
            let start = text[..end].rfind('\n').map_or(0, |newline| newline + 1);
            let line = text[start..end].trim_end();
            let content = line.trim_start();
            // The first one is the line of the place itself, even if empty.
            if lines.is_empty() || !(content.is_empty() || content.starts_with('#')) {
                lines.push(Line { text: line, start, number });
            }
            if start == 0 {
                break;
            }
            end = start - 1;
            number -= 1;
        }
        Lines { lines }
    }

    fn here(&self) -> Line<'t> {
        self.lines[0]
    }

    fn before(&self) -> &[Line<'t>] {
        &self.lines[1..]
    }
}

impl<'t> Line<'t> {
    /// The number of leading spaces.
    fn indent(self) -> usize {
        self.text.len() - self.text.trim_start().len()
    }

    fn is_item(self) -> bool {
        let content = self.text.trim_start();
        content == "-" || content.starts_with("- ")
    }

    /// The position of its first key, after `- `, and the text from there.
    fn content(self) -> (usize, &'t str) {
        let mut content = self.text.trim_start();
        while let Some(rest) = content.strip_prefix("- ") {
            content = rest.trim_start();
        }
        (self.text.len() - content.len(), content)
    }

    /// The position of the colon after its first key.
    fn colon(self) -> Option<usize> {
        let (begin, content) = self.content();
        let end = content.find(": ").or(content.ends_with(':').then(|| content.len() - 1))?;
        let key = &content[..end];
        let is_key = !key.is_empty() && !key.contains(['{', '[', '"', '\'']);
        is_key.then_some(begin + end)
    }

    /// The column of a byte of the line, from 1.
    fn column(self, byte: usize) -> usize {
        self.text[..byte].chars().count() + 1
    }
}

/// A quote that is not closed, or is closed unintentionally.
fn open_quote(lines: &Lines<'_>, info: &str, at: usize) -> Option<Mistake> {
    let here = lines.here();
    let trailing = info.contains("trailing content");
    let unclosed = ["invalid indentation", "end of stream", "document indicator"];
    if !trailing {
        let closes_nowhere = unclosed.iter().any(|part| info.contains(part));
        return closes_nowhere.then(|| unclosed_at(lines, at).map(not_closed))?;
    }
    // The quote that closed the text precedes the place.
    let before = here.text.get(..at.checked_sub(here.start)?)?.trim_end();
    let quote = before.chars().last().filter(|c| matches!(c, '"' | '\''))?;
    let before = &before[..before.len() - 1];
    if let Some(open) = opening(before, quote) {
        let end = here.start + here.text.len();
        let shown = whole(here.text[open..].trim_end_matches(['}', ']', ',']), quote);
        let help = match shown.chars().count() <= SHOWN_CHARS_MAX {
            true => say!("put the whole text in single quotes: `'{shown}'`"),
            false => say!("put the whole text in single quotes: `'… \"…\" …'`"),
        };
        return Some(Mistake {
            message: say!("this is not valid YAML: there is more text after the closing quote"),
            start: at,
            end,
            label: say!("unexpected text"),
            help,
        });
    }
    let line = lines.before().iter().find(|line| opening(line.text, quote).is_some())?;
    opening(line.text, quote).map(|byte| not_closed(line.start + byte))
}

/// `"(\d+)"`: in double quotes a backslash starts an escape, and `\d` is not a valid one.
fn escaped(source: &Source, at: usize) -> Option<Mistake> {
    let text = source.text.get(at..)?.strip_prefix('"')?;
    let known = |c: char| "0abt\tnvfre \"/\\N_LPxuU\n\r".contains(c);
    let mut chars = text.char_indices();
    while let Some((start, c)) = chars.next() {
        match (c, chars.clone().next()) {
            ('"', _) | (_, None) => return None,
            ('\\', Some((_, next))) if known(next) => {
                chars.next();
            }
            ('\\', Some((behind, next))) => {
                let wrong = &text[start..behind + next.len_utf8()];
                let inner = text.split('\n').next().and_then(|line| line.split_once('"'));
                let shown = inner.map(|(inner, _)| inner).filter(|inner| {
                    inner.chars().count() <= SHOWN_CHARS_MAX && !inner.contains('\'')
                });
                let start = at + 1 + start;
                return Some(Mistake {
                    message: say!(
                        "this is not valid YAML: `{wrong}` is not an escape sequence in double \
                         quotes"
                    ),
                    start,
                    end: start + wrong.len(),
                    label: say!("a backslash"),
                    help: match shown {
                        Some(inner) => {
                            say!(
                                "in single quotes, a backslash is an ordinary character: \
                                  `'{inner}'`"
                            )
                        }
                        None => say!("write `\\{wrong}`: the first backslash escapes the second"),
                    },
                });
            }
            _ => {}
        }
    }
    None
}

/// The probable intended text; names in expressions need no quotes.
fn whole(text: &str, quote: char) -> String {
    let rest = &text[1..];
    let text = match rest.split_once(quote) {
        Some((name, rest)) if ROOTS.iter().any(|root| name.starts_with(root)) => {
            format!("{name}{rest}")
        }
        _ => text.to_string(),
    };
    text.replace('\'', "\"")
}

/// Roots of names in expressions.
const ROOTS: [&str; 6] = ["saved.", "vars.", "data.", "user.", "run.", "response."];

/// The last quote in a line that starts a text and is not closed.
fn opening(line: &str, quote: char) -> Option<usize> {
    let mut open = None;
    for (byte, c) in line.char_indices().filter(|(_, c)| *c == quote) {
        let before = line[..byte].chars().next_back();
        let begins = before.is_none_or(|c| matches!(c, ' ' | '{' | '[' | ',' | ':'));
        open = match open {
            None if begins => Some((byte, c)),
            // A backslash escapes a double quote.
            Some(open) if quote == '"' && before == Some('\\') => Some(open),
            _ => None,
        };
    }
    open.map(|(byte, _)| byte)
}

/// The quote that is open at byte `at`: there, as the parser usually says, or the last one before
/// it.
fn unclosed_at(lines: &Lines<'_>, at: usize) -> Option<usize> {
    lines.lines.iter().find_map(|line| {
        let there = line.text.get(at.checked_sub(line.start)?..).unwrap_or("");
        if there.starts_with(['"', '\'']) {
            return Some(at);
        }
        let before = line.text.get(..at - line.start).unwrap_or(line.text);
        let open = opening(before, '"').max(opening(before, '\''))?;
        Some(line.start + open)
    })
}

fn not_closed(at: usize) -> Mistake {
    Mistake {
        message: say!("this is not valid YAML: a quote is not closed"),
        start: at,
        end: at + 1,
        label: say!("the quote that opens here is not closed"),
        help: say!("add the same quote at the end of the text"),
    }
}

/// Typographic quotes at the start of a value.
fn other_quotes(lines: &Lines<'_>) -> Option<Mistake> {
    let line = lines.here();
    let (byte, c) = line.text.char_indices().find(|(byte, c)| {
        let before = line.text[..*byte].chars().next_back();
        OTHER_QUOTES.contains(c)
            && before.is_none_or(|c| matches!(c, ' ' | '{' | '[' | ',' | ':' | '('))
    })?;
    Some(Mistake {
        message: say!("YAML does not use these quotes"),
        start: line.start + byte,
        end: line.start + byte + c.len_utf8(),
        label: say!("a typographic quote"),
        help: OTHER_QUOTES_HELP,
    })
}

/// `name products` or `name:products`: the parser stops at the next line.
fn missing_colon(lines: &Lines<'_>, info: &str, at: usize) -> Option<Mistake> {
    let lacks = |line: &&Line<'_>| {
        let (_, content) = line.content();
        let word = content.split([' ', ':']).next().unwrap_or("");
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        line.colon().is_none() && !word.is_empty() && word.chars().all(is_word)
    };
    let line = if info.contains("simple key") {
        let stopped = lines.here();
        let here = Some(&lines.lines[0]).filter(|line| lacks(line) && at > stopped.start);
        here.or_else(|| lines.before().iter().find(lacks))?
    } else if info.contains("mapping values") {
        // A line that looks like a key continues the text of the previous line.
        let here = lines.here();
        let (begin, _) = here.content();
        let before = lines.before().first()?;
        let is_first = here.colon() == Some(at - here.start) && begin == before.content().0;
        Some(before).filter(|line| is_first && lacks(line))?
    } else {
        return None;
    };
    let (begin, content) = line.content();
    let word = content.split([' ', ':']).next().unwrap_or("");
    let value = content[word.len()..].trim_start_matches(':').trim_start();
    let value = if value.is_empty() || value.len() > 60 { "…" } else { value };
    Some(Mistake {
        message: say!("this is not valid YAML: `: ` is missing after a key"),
        start: line.start + begin,
        end: line.start + begin + word.len(),
        label: say!("a colon and a space must follow"),
        help: say!("write `{word}: {value}`"),
    })
}

/// A key or item whose column differs from those that it belongs to.
fn indentation(lines: &Lines<'_>, info: &str, at: usize) -> Option<Mistake> {
    let here = lines.here();
    let reasons = ["expected '-' indicator", "expected key", "<document start>"];
    let is_first = || here.colon() == Some(at - here.start);
    let is_told = reasons.iter().any(|reason| info.contains(reason))
        || (info.contains("mapping values") && is_first());
    if !is_told {
        return None;
    }
    let begin = here.indent();
    // The column of things of this kind in a line.
    let column_of = |line: &Line<'_>| match here.is_item() {
        true => line.is_item().then(|| line.indent()),
        false => line.colon().map(|_| line.content().0),
    };
    let mut nearest: Option<(usize, Line<'_>, usize)> = None;
    for line in lines.before() {
        let Some(found) = column_of(line) else { continue };
        let distance = found.abs_diff(begin);
        if distance > 0 && nearest.is_none_or(|(least, _, _)| distance < least) {
            nearest = Some((distance, *line, found));
        }
        // The following line belongs to something else.
        if found == 0 {
            break;
        }
    }
    let (_, line, found) = nearest?;
    let word = here.text[begin..].split([' ', ':']).next().unwrap_or("");
    Some(Mistake {
        message: say!("this is not valid YAML: the indentation is wrong"),
        start: here.start + begin,
        end: here.start + begin + word.len().max(1),
        label: say!("this starts in column {}", here.column(begin)),
        help: say!(
            "keys of one map or items of one list must start in the same column; on line {}, \
             they start in column {}",
            line.number,
            line.column(found)
        ),
    })
}

#[cfg(test)]
mod tests {
    use throng_base::{Random, Source};

    use crate::syntax::parse;

    /// The line and column of the mistake, its message, label and help.
    fn said(text: &str) -> String {
        let source = Source::new("t.yaml", text);
        let wrong = parse(&source, 0).unwrap_err();
        let (line, column) = source.line_column(wrong.span.unwrap().start);
        format!(
            "{line}:{column} {}; {}",
            wrong.label.unwrap().english(),
            wrong.help.unwrap().english()
        )
    }

    #[test]
    fn wrong_columns_are_compared_with_an_earlier_line() {
        let steps = "steps:\n  - http: GET /\n";
        for (line, want) in [
            ("     check: {}\n", "3:6 this starts in column 6; line 2 column 5"),
            ("   check: {}\n", "3:4 this starts in column 4; line 2 column 5"),
            ("  check: {}\n", "3:3 this starts in column 3; line 2 column 5"),
            ("   - think: 1s\n", "3:4 this starts in column 4; line 2 column 3"),
            (" - think: 1s\n", "3:2 this starts in column 2; line 2 column 3"),
        ] {
            let (place, columns) = want.split_once("; ").unwrap();
            let (number, column) = columns.split_once(" column ").unwrap();
            let found = said(&format!("{steps}{line}"));
            assert!(found.starts_with(place), "{found}");
            let end = format!("on {number}, they start in column {column}");
            assert!(found.ends_with(&end), "{found}");
        }
        assert!(said(" a: 1\nb: 2\n").ends_with("line 1, they start in column 2"));
    }

    #[test]
    fn missing_colons_and_quotes_are_found_at_their_places() {
        for (text, place, help) in [
            ("a:\n  - b: 1\n    name products\n    c: 1\n", "3:5", "write `name: products`"),
            ("a:\n  - b: 1\n    name:products\n    c: 1\n", "3:5", "write `name: products`"),
            ("a:\n  - b: 1\n    name:products\n", "3:5", "write `name: products`"),
            ("target http://a\nb: 1\n", "1:1", "write `target: http://a`"),
            ("a: 1\nload\n  - {users: 1}\n", "2:1", "write `load: …`"),
            ("a: \"x\nb: 1\n", "1:4", "the same quote"),
            ("- {a: \"x, b: c}\n- {a: \"d\"}\n", "1:7", "the same quote"),
            ("if: \"a\" == \"1\"\n", "1:9", "single quotes: `'\"a\" == \"1\"'`"),
            ("a: “b: c”\n", "1:4", "straight quotes"),
            ("a: b: c\n", "1:5", "in quotes"),
            ("- http: GET /\n  check: status: 200\n", "2:16", "write `check: {status: 200}`"),
            ("a: {b: abc #1}\nc: 1\n", "1:12", "in quotes: `\"abc #1\"`"),
            ("- {a: [x, b #c], d: 1}\n- e: 1\n", "1:13", "in quotes: `\"b #c\"`"),
            ("a: {b: 1, json.rows[0].x: 2}\n", "1:11", "quotes: `\"json.rows[0].x\"`"),
            ("a: \"_rev: (\\d+)\"\n", "1:12", "character: `'_rev: (\\d+)'`"),
            ("a: \"it's \\n \\w\"\n", "1:13", "write `\\\\w`"),
        ] {
            let found = said(text);
            assert!(found.starts_with(&format!("{place} ")), "{text}: {found}");
            assert!(found.contains(help), "{text}: {found}");
        }
    }

    #[test]
    fn fuzz_no_text_makes_it_panic() {
        let pieces =
            ["a", ": ", ":", "- ", "\n", "  ", " ", "\"", "'", "“", "[", "{", "}", "é", "#"];
        let mut random = Random::new(7);
        for _ in 0..20_000 {
            let count = random.below(24);
            let text: String =
                (0..count).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect();
            let source = Source::new("t.yaml", text.as_str());
            if let Err(wrong) = parse(&source, 0) {
                wrong.render(false);
            }
        }
    }
}
