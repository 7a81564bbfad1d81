//! Values outside response fields: tokens in scripts and attributes of a page, and cookies that a
//! script copies to a header or a field.

use regex::Regex;
use throng_base::secret::is_secret_name;

use crate::form::decoded;
use crate::model::{Response, Save};

/// The maximum occurrences of a value per text, and the length of the text before each.
const PLACES_MAX: usize = 8;
const BEFORE_BYTES_MAX: usize = 80;

/// True if a value is long enough to search all texts: short ones occur by coincidence.
pub(super) fn is_worth_it(name: &str, value: &str) -> bool {
    let has_digit = value.bytes().any(|b| b.is_ascii_digit());
    let is_word = value.bytes().all(|b| b.is_ascii_graphic()) && !value.contains("://");
    let is_long = value.len() >= 16 && has_digit || value.len() >= 8 && is_secret_name(name);
    is_word && is_long && value.len() <= 4096 && !value.starts_with('/')
}

/// The name of the cookie with this value, if the response sets one.
pub(super) fn in_cookies(response: &Response, value: &str) -> Option<(String, Save)> {
    let cookies =
        response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let mut cookies = cookies.flat_map(|(_, text)| text.lines());
    cookies.find_map(|cookie| {
        let (name, rest) = cookie.split(';').next()?.split_once('=')?;
        let (name, rest) = (name.trim(), rest.trim());
        let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let is_encoded = rest != value;
        if !is_word || is_encoded && decoded(rest, false) != value {
            return None;
        }
        Some((name.to_string(), Save::Cookie { name: name.to_string(), is_encoded }))
    })
}

/// A regular expression whose first group is the value, identified by the text before it.
pub(super) fn in_text(text: &str, value: &str) -> Option<Save> {
    let mut places = text.match_indices(value).take(PLACES_MAX);
    places.find_map(|(at, _)| {
        let end = text[at + value.len()..].chars().next()?;
        if end.is_alphanumeric() || value.contains(end) {
            return None;
        }
        let line = text[..at].rsplit(['\n', '\r', '<']).next()?;
        let from = (line.len().saturating_sub(BEFORE_BYTES_MAX)..line.len())
            .find(|from| line.is_char_boundary(*from))?;
        let line = &line[from..];
        // From the shortest prefix at a word boundary to the longest.
        let mut starts = line.char_indices().rev().filter(|(start, c)| {
            let before = line[..*start].chars().next_back();
            c.is_alphanumeric() && !before.is_some_and(char::is_alphanumeric)
        });
        starts.find_map(|(start, _)| {
            let before = &line[start..];
            if before.chars().filter(|c| c.is_alphabetic()).count() < 3 {
                return None;
            }
            let end = regex::escape(&end.to_string());
            let pattern = format!("{}([^{end}]+)", regex::escape(before));
            let found = Regex::new(&pattern).ok()?.captures(text)?.get(1)?;
            (found.as_str() == value).then_some(Save::Regex(pattern))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_a_script_is_found_by_the_text_before_it() {
        let text = "<body data-user-id=\"7\" data-csrf=\"q1w2e3r4t5y6u7i8\">\n\
                    <script>var config = {\"token\":\"q1w2e3r4t5y6u7i8\"}</script>";
        let Some(Save::Regex(pattern)) = in_text(text, "q1w2e3r4t5y6u7i8") else { panic!() };
        assert_eq!(pattern, "csrf=\"([^\"]+)");
        assert!(in_text(text, "w2e3r4t5").is_none());
        assert!(in_text("nothing", "q1w2e3r4t5y6u7i8").is_none());
    }

    #[test]
    fn a_cookie_is_found_raw_and_decoded() {
        let headers =
            vec![("Set-Cookie".into(), "a=1; Path=/\nXSRF-TOKEN=eyJ%3D%3D; Secure".into())];
        let response = Response { headers, ..Response::default() };
        let name = "XSRF-TOKEN".to_string();
        let want =
            |is_encoded| Some((name.clone(), Save::Cookie { name: name.clone(), is_encoded }));
        assert_eq!(in_cookies(&response, "eyJ%3D%3D"), want(false));
        assert_eq!(in_cookies(&response, "eyJ=="), want(true));
        assert_eq!(in_cookies(&response, "eyJ"), None);
    }
}
