//! A regular expression that searches bytes and returns text.

use std::fmt;
use std::sync::Arc;

use regex::bytes::{Captures, Regex, RegexBuilder};
use throng_expression::Value;

use throng_base::Said;
use throng_markup::PathError;

/// Maximum size of a compiled pattern.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Maximum nesting of groups.
const NEST_MAX: u32 = 100;

/// A regular expression. It returns its group named `value`, or its first group, or the whole
/// match. It is matched against bytes; the result is text, with U+FFFD for invalid UTF-8.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    group: usize,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Pattern, PathError> {
        let whole = (0, text.len());
        let help =
            say!("look-around and back-references are not supported; to match a dot, write `\\.`");
        check_syntax(text, &help)?;
        let regex = RegexBuilder::new(text)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX)
            .nest_limit(NEST_MAX)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => PathError::new(
                    whole,
                    say!("the pattern is too large when compiled"),
                    say!(
                        "use smaller counts in `{{…}}`, or replace `\\w` with `(?-u:\\w)` to \
                         match only ASCII"
                    ),
                ),
                error => PathError::new(whole, Said::of_others(error.to_string()), help),
            })?;
        let named = regex.capture_names().position(|name| name == Some("value"));
        let group = named.unwrap_or(usize::from(regex.captures_len() > 1));
        Ok(Pattern { regex, group })
    }

    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    pub fn is_match(&self, bytes: &[u8]) -> bool {
        self.regex.is_match(bytes)
    }

    /// Whether it matches in more than one record: lines or other delimiters separate two matches.
    pub fn is_in_several_records(&self, bytes: &[u8]) -> bool {
        let mut matches = self.regex.find_iter(bytes);
        let (Some(first), Some(second)) = (matches.next(), matches.next()) else { return false };
        let between = bytes.get(first.end()..second.start()).unwrap_or_default();
        between.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0x1e | 0))
    }

    /// The result of the first match. A group that is not part of the match returns nothing.
    pub fn first(&self, bytes: &[u8]) -> Option<Value> {
        if self.group == 0 {
            return self.regex.find(bytes).map(|found| text(found.as_bytes()));
        }
        self.given(&self.regex.captures(bytes)?)
    }

    /// The results of all matches, from the left, without overlaps.
    pub fn all(&self, bytes: &[u8]) -> Vec<Value> {
        if self.group == 0 {
            return self.regex.find_iter(bytes).map(|found| text(found.as_bytes())).collect();
        }
        self.regex.captures_iter(bytes).filter_map(|found| self.given(&found)).collect()
    }

    fn given(&self, captures: &Captures<'_>) -> Option<Value> {
        captures.get(self.group).map(|found| text(found.as_bytes()))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The regex crate draws errors as pictures; its parser reports their positions.
fn check_syntax(text: &str, help: &Said) -> Result<(), PathError> {
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).nest_limit(NEST_MAX).build();
    let (span, reason) = match parser.parse(text) {
        Ok(_) => return Ok(()),
        Err(regex_syntax::Error::Parse(error)) => (*error.span(), error.kind().to_string()),
        Err(regex_syntax::Error::Translate(error)) => (*error.span(), error.kind().to_string()),
        Err(error) => {
            let reason = Said::of_others(error.to_string());
            return Err(PathError::new((0, text.len()), reason, help.clone()));
        }
    };
    let reason = Said::of_others(reason);
    Err(PathError::new((span.start.offset, span.end.offset), reason, help.clone()))
}

fn text(bytes: &[u8]) -> Value {
    Value::Text(Arc::from(String::from_utf8_lossy(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(pattern: &str, bytes: &[u8]) -> Option<String> {
        match Pattern::parse(pattern).unwrap().first(bytes)? {
            Value::Text(text) => Some(text.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_right_group_is_returned() {
        let page = b"<input name=\"csrf\" value=\"t0k-en\">";
        for (pattern, want) in [
            (r#"value="([^"]*)""#, "t0k-en"),
            (r#"name="(\w+)" value="(?P<value>[^"]*)""#, "t0k-en"),
            (r#"(?<value>t\d)(k)"#, "t0"),
            (r"t\dk", "t0k"),
            (r"(?:t)\dk", "t0k"),
        ] {
            assert_eq!(first(pattern, page).as_deref(), Some(want), "{pattern}");
        }
        assert_eq!(first("nothing", page), None);
        assert_eq!(first("csrf(x)?", page), None);
        assert_eq!(first(r"a(?-u:(.))b", b"a\xffb").as_deref(), Some("\u{fffd}"));
        let all = Pattern::parse(r"id=(\d+)").unwrap().all(b"id=1 id=22 id=x id=3");
        assert_eq!(all.len(), 3);
        assert!(Pattern::parse("^h.*o$").unwrap().is_match(b"hello"));
    }

    #[test]
    fn errors_have_a_position() {
        for (pattern, start, end) in [
            ("a(b", 1, 2),
            ("a[b", 1, 2),
            ("ab**", 4, 4),
            ("x{2,1}", 1, 6),
            (r"a\1", 1, 3),
            ("(?=a)", 0, 3),
            (r"\pX", 0, 3),
            ("(?P<value>a)(?P<value>b)", 16, 21),
        ] {
            match Pattern::parse(pattern) {
                Err(error) => assert_eq!((error.start, error.end), (start, end), "{pattern}"),
                Ok(_) => assert_eq!(pattern, "ab**"),
            }
        }
        for pattern in [r"\w{900}{900}".into(), "(".repeat(5_000) + &")".repeat(5_000)] {
            let error = Pattern::parse(&pattern).unwrap_err();
            assert!(!error.message.is_empty() && error.end <= pattern.len());
        }
    }

    #[test]
    fn fuzz_any_pattern_on_any_bytes() {
        let good = [&br#"value="([^"]*)""#[..], br"(?P<value>\d{1,3})+|x*", b"[a-z&&[^b]]\\b(a|b)"];
        throng_fuzz::mutations(&good, |input, _| {
            let text = String::from_utf8_lossy(input);
            match Pattern::parse(&text) {
                Ok(pattern) => drop((pattern.first(b"value=\"12\" ab\xff"), pattern.all(input))),
                Err(error) => {
                    assert!(error.start <= error.end && error.end <= text.len(), "{error:?}");
                    assert!(text.get(error.start..error.end).is_some());
                }
            }
        });
    }
}
