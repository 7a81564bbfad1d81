//! A token: one line of text with which a machine joins. It contains its identity, the public key
//! of the operator, and a digest that detects truncation.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use throng_base::Said;
use throng_base::clean::without_mark;
use throng_extract::Digest;

use crate::identity::{Certificates, Identity};
use crate::is_word;

const BEGIN: &str = "throng-join-";
/// The format version of a token; others are refused.
const FORM: u8 = 1;
const DIGEST_BYTES: usize = 16;
/// Maximum length, which bounds the cost of parsing.
const CHARS_MAX: usize = 16 << 10;

#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub identity: Identity,
    /// The public key that verifies plans.
    pub operator: String,
    /// End of its validity, in seconds since the Unix epoch.
    pub until_s: u64,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a token of {:?} until {}", self.identity, self.until_s)
    }
}

/// The form for copying.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { name, address, tls, seed } = &self.identity;
        let address = address.to_string();
        let none = Certificates { authority: Vec::new(), own: Vec::new(), key: Vec::new() };
        let Certificates { authority, own, key } = tls.as_ref().unwrap_or(&none);
        let seed = seed.as_deref().unwrap_or_default();
        let until = self.until_s.to_be_bytes();
        let mut bytes = vec![FORM];
        let texts = [name, &address, seed, &self.operator].map(str::as_bytes);
        for field in texts.into_iter().chain([&until[..], authority, own, key]) {
            let length = u16::try_from(field.len()).map_err(|_| fmt::Error)?;
            bytes.extend(length.to_be_bytes());
            bytes.extend(field);
        }
        bytes.extend(digest(&bytes));
        write!(f, "{BEGIN}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

fn digest(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    let digest = Digest::Sha256.of(bytes);
    let mut short = [0; DIGEST_BYTES];
    short.copy_from_slice(&digest.as_bytes()[..DIGEST_BYTES]);
    short
}

impl Token {
    /// Parses a copied token; line breaks and spaces are ignored.
    pub fn parse(text: &str) -> Result<Token, Said> {
        if text.len() > CHARS_MAX {
            return Err(none_such());
        }
        let text: String = without_mark(text).split_whitespace().collect();
        let Some(text) = text.strip_prefix(BEGIN) else { return Err(none_such()) };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| torn())?;
        let at = bytes.len().checked_sub(DIGEST_BYTES).ok_or_else(torn)?;
        let (bytes, told) = bytes.split_at(at);
        if digest(bytes) != told {
            return Err(torn());
        }
        match bytes.split_first() {
            Some((&FORM, fields)) => Token::read(fields).ok_or_else(torn),
            _ => Err(say!("the token is from a different version of throng")),
        }
    }

    fn read(mut rest: &[u8]) -> Option<Token> {
        let mut field = || {
            let (length, behind) = rest.split_first_chunk()?;
            let (field, behind) =
                behind.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            rest = behind;
            Some(field.to_vec())
        };
        let mut text = || String::from_utf8(field()?).ok();
        let (name, address, seed, operator) = (text()?, text()?, text()?, text()?);
        let until_s = u64::from_be_bytes(field()?.try_into().ok()?);
        let tls = Certificates { authority: field()?, own: field()?, key: field()? };
        let is_whole = rest.is_empty() && is_word(&name);
        let (seed, tls) = (Some(seed), Some(tls));
        let identity = Identity { name, address: address.parse().ok()?, tls, seed };
        is_whole.then_some(Token { identity, operator, until_s })
    }

    /// Checks that it is still valid, by the time since the Unix epoch.
    pub fn check(&self, now: Duration) -> Result<(), Said> {
        if now.as_secs() < self.until_s {
            return Ok(());
        }
        let name = &self.identity.name;
        Err(say!(
            "the token of `{name}` has expired: `throng fleet token {name}` creates a new one"
        ))
    }
}

fn none_such() -> Said {
    say!("this is not a fleet token: `throng fleet token` prints one that starts with `{BEGIN}`")
}

fn torn() -> Said {
    say!("the token is incomplete: copy the whole line that `throng fleet token` printed")
}

#[cfg(test)]
mod tests;
