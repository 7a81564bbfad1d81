//! What the flags of a command line mean for a [`Bench`], where its scheme or several of them
//! decide it.

use throng_base::clean::without_mark;
use throng_base::{Diagnostic, Said, plain};
use throng_program::Scheme;

use super::{Bench, BenchBody, schemes_with};
use crate::message::body::bytes_of_base64;
use crate::native;
use crate::syntax::SOURCE_BYTES_MAX;
use crate::words::listed;

/// A mistake of the command line.
fn mistake(code: &'static str, message: Said, help: Said) -> Diagnostic {
    Diagnostic::error(code, message).help(help)
}

/// A flag that means nothing for this scheme: better refused than silently without effect.
pub fn without_effect(flag: &str, scheme: Scheme) -> Option<Diagnostic> {
    let schemes = schemes_with(flag);
    if schemes.contains(&scheme) {
        return None;
    }
    let (own, others) = (scheme.word(), listed(schemes.iter().map(|scheme| scheme.word())));
    let message = say!("{flag} does not apply to {own}://, only to {others}");
    Some(mistake("flag-without-effect", message, say!("omit it")))
}

impl Bench {
    /// An error if there is a body where what is sent has a flag of its own.
    pub fn without_body(&self) -> Option<Diagnostic> {
        let has_body = self.hex_message.is_some() || !matches!(self.body, BenchBody::None);
        let instead = native::of_scheme(self.scheme()).in_place_of_body.filter(|_| has_body)?;
        let scheme = self.scheme()?.word();
        let message = say!("{} does not apply to {}://", "--body", scheme);
        Some(mistake("flag-without-effect", message, instead.clone()))
    }

    /// What the command line says replaces what a cURL file says, whatever it is called by: a
    /// header by its name, or `auth`. What is wrong with the headers is returned.
    pub fn replace_headers(
        &mut self,
        mut given: Vec<(String, String)>,
        auth: Option<&str>,
        has_curl: bool,
    ) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        if self.calls() {
            given = given.into_iter().filter_map(|pair| of_base64(pair, &mut errors)).collect();
        }
        let has = |name: &str| given.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        if self.basic_auth.is_some() && has_curl && has("authorization") {
            let is_ours = auth.is_some_and(|text| !text.contains("://"));
            self.basic_auth = self.basic_auth.take().filter(|_| is_ours);
        }
        let is_authorization = |name: &str| name.eq_ignore_ascii_case("authorization");
        let replaced = |name: &str| has(name) || (auth.is_some() && is_authorization(name));
        self.headers.retain(|(name, _)| !replaced(name));
        self.headers.extend(given);
        errors
    }

    /// Reads the message of a call, which the scenario has as JSON. What is wrong with it is
    /// returned.
    pub fn read_message(&mut self) -> Option<Diagnostic> {
        let text = match &self.body {
            BenchBody::None => return None,
            BenchBody::Text(text) => Ok(text.clone()),
            BenchBody::File(path) => {
                plain::read_given_text(path, SOURCE_BYTES_MAX).map_err(|error| {
                    say!("cannot read {}: {}", path.display(), Said::of_error(&error))
                })
            }
            BenchBody::Bytes(_) | BenchBody::Form(_) => {
                Err(say!("the message of a call must be JSON"))
            }
        };
        let text = text.and_then(|text| {
            let text = without_mark(&text).to_string();
            let read = serde_json::from_str::<serde_json::Value>(&text);
            let wrong =
                |error: serde_json::Error| say!("the message of the call is not JSON: {error}");
            read.map(|_| text).map_err(wrong)
        });
        match text {
            Ok(text) => {
                self.body = BenchBody::Text(text);
                None
            }
            Err(message) => {
                let help = say!("write --body '{{\"text\": \"hi\"}}', or --body @FILE");
                Some(mistake("bad-value", message, help))
            }
        }
    }
}

/// Metadata whose name ends in `-bin` is bytes, which a command line has as base64: a scenario has
/// them as escapes.
fn of_base64(
    (name, value): (String, String),
    errors: &mut Vec<Diagnostic>,
) -> Option<(String, String)> {
    if !name.to_ascii_lowercase().ends_with("-bin") {
        return Some((name, value));
    }
    match bytes_of_base64(&value) {
        // Each byte is the character of that number, which the scenario writes as `\xff`.
        Some(bytes) => Some((name, bytes.into_iter().map(char::from).collect())),
        None => {
            let message = say!("the value of `{name}` is not base64");
            let help = say!("metadata whose name ends in `-bin` is binary: write it as base64");
            errors.push(mistake("bad-value", message, help));
            None
        }
    }
}

/// `\r`, `\n`, `\t`, `\0`, `\\` and `\xHH` as the bytes they mean; anything else stays.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let hex = rest.strip_prefix('x').and_then(|hex| hex.get(..2));
        let (byte, length) = match rest.as_bytes().first() {
            Some(b'r') => (Some(b'\r'), 1),
            Some(b'n') => (Some(b'\n'), 1),
            Some(b't') => (Some(b'\t'), 1),
            Some(b'0') => (Some(0), 1),
            Some(b'\\') => (Some(b'\\'), 1),
            Some(b'x') => (hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()), 3),
            _ => (None, 0),
        };
        match byte {
            Some(byte) => {
                out.push(byte);
                rest = &rest[length..];
            }
            None => out.push(b'\\'),
        }
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_their_bytes_and_others_stay() {
        assert_eq!(unescape(r"PING\r\n"), b"PING\r\n");
        assert_eq!(unescape(r"\x00\xff\\x\q\x"), b"\x00\xff\\x\\q\\x");
        assert_eq!(unescape("é\\"), "é\\".as_bytes());
    }
}
