//! Secrets in a command: passwords, tokens and cookies. Diagnostics quote the command, so these
//! words are masked.

use std::sync::Arc;

use throng_base::secret::{MASK, is_secret_name};
use throng_base::{Diagnostic, Source, Span};

use super::words::Word;
use crate::syntax::Place;

/// Options whose value is or contains a secret.
const OPTIONS: [&str; 8] = [
    "--user",
    "--proxy-user",
    "--oauth2-bearer",
    "--cookie",
    "--cert",
    "--pass",
    "--aws-sigv4",
    "--tlspassword",
];
const LETTERS: [&str; 4] = ["-u", "-U", "-b", "-E"];
/// Headers with credentials.
const HEADERS: [&str; 3] = ["authorization:", "proxy-authorization:", "cookie:"];

/// The words that must not be shown.
pub(super) fn places(words: &[Word]) -> Vec<Place> {
    let mut places = Vec::new();
    let mut option = String::new();
    for word in words {
        let text = word.text();
        let attached = OPTIONS
            .iter()
            .any(|option| text.strip_prefix(option).is_some_and(|behind| behind.starts_with('=')))
            || LETTERS.iter().any(|letter| text.starts_with(letter) && text.len() > letter.len());
        let lower = text.trim_start_matches("-H").trim_start().to_ascii_lowercase();
        let is_header = HEADERS.iter().any(|name| lower.starts_with(name))
            || lower.split_once(':').is_some_and(|(name, _)| is_secret_name(name.trim()));
        let has_user = without_user(&text) != text;
        // The name of a cookie file and a proxy without credentials are not secrets.
        let is_value = match option.as_str() {
            "-b" | "--cookie" => text.contains('='),
            "-E" | "--cert" => text.contains(':'),
            "-x" | "--proxy" => text.contains('@'),
            option => OPTIONS.contains(&option) || has_secret_letter(option),
        };
        if is_value || attached || is_header || has_user {
            places.push(word.place);
        }
        option = text;
    }
    places
}

/// True if the last letter of combined short options, such as `-u` and `-sSku`, is an option with a
/// secret value.
fn has_secret_letter(option: &str) -> bool {
    let letters = option.strip_prefix('-').filter(|it| it.chars().all(|c| c.is_ascii_alphabetic()));
    letters.is_some_and(|letters| LETTERS.iter().any(|one| letters.ends_with(&one[1..])))
}

/// A URL without its credentials.
pub(super) fn without_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_string();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{MASK}{}", &rest[at..]),
        None => text.to_string(),
    }
}

/// Masks these words in the source that diagnostics quote.
pub(super) fn hide(source: &Arc<Source>, places: &[Place], told: &mut [Diagnostic]) {
    if places.is_empty() || told.is_empty() {
        return;
    }
    let mut text = source.text.clone().into_bytes();
    for place in places {
        // The same number of bytes, so that all places stay valid.
        let bytes = &mut text[place.start()..place.end()];
        bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|it| *it = b'*');
    }
    let Ok(text) = String::from_utf8(text) else { return };
    let shown = Source::new(source.name.clone(), text);
    for diagnostic in told {
        if let Some(span) = &mut diagnostic.span {
            *span = Span { source: Arc::clone(&shown), ..span.clone() };
        }
    }
}
