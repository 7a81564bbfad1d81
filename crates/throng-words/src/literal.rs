//! The text of a string literal, without its escapes.

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

use crate::Mistake;

/// The text and the span of the only literal in these tokens.
pub(crate) fn of(tokens: TokenStream) -> Result<(String, Span), Mistake> {
    let mut rest = tokens.into_iter();
    let (first, second) = (rest.next(), rest.next());
    match (first, second) {
        (Some(TokenTree::Literal(literal)), None) => {
            let span = literal.span();
            let text = unescaped(&literal.to_string());
            text.map(|text| (text, span)).ok_or_else(|| Mistake::new("this is no text", span))
        }
        // Tokens from a `macro_rules` macro.
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => {
            of(group.stream())
        }
        (first, _) => {
            let span = first.map_or_else(Span::call_site, |token| token.span());
            Err(Mistake::new("a sentence begins with its text", span))
        }
    }
}

fn unescaped(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('r') {
        let raw = raw.trim_matches('#');
        return Some(raw.strip_prefix('"')?.strip_suffix('"')?.to_string());
    }
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::new();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = rest[at + 1..].chars().next()?;
        rest = &rest[at + 1 + escape.len_utf8()..];
        match escape {
            '\n' => rest = rest.trim_start(),
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            '0' => out.push('\0'),
            'x' => out.push(character(rest.get(..2)?, &mut rest, 2)?),
            'u' => {
                let hex = rest.strip_prefix('{')?.split_once('}')?.0;
                out.push(character(hex, &mut rest, hex.len() + 2)?);
            }
            other => out.push(other),
        }
    }
    Some(out + rest)
}

/// A character given by its number, which takes `length` bytes of the rest.
fn character(hex: &str, rest: &mut &str, length: usize) -> Option<char> {
    let character = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)?;
    *rest = rest.get(length..)?;
    Some(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        let text = |literal| unescaped(literal).unwrap();
        assert_eq!(text(r#""a \"b\" \u{2013}\x41\n""#), "a \"b\" \u{2013}A\n");
        assert_eq!(text("\"one \\\n     two\""), "one two");
        assert_eq!(text(r##"r#"a\n"b""#"##), "a\\n\"b\"");
        assert_eq!(unescaped("b\"x\""), None);
    }
}
