//! Queries and URL-encoded forms: names and values, decoded.

use throng_base::form_decoded;

use crate::text::Text;

/// Names and values of `a=1&b=2`; embedded values are preserved.
pub(crate) fn text_pairs(text: &Text) -> Vec<(String, Text)> {
    let pairs = text.split('&').into_iter().filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) => (decoded(&name.to_string(), true), of_encoded(&value)),
            None => (decoded(&pair.to_string(), true), Text::default()),
        })
        .collect()
}

fn of_encoded(value: &Text) -> Text {
    value.map_literals(|literal| Text::literal(decoded(literal, true)))
}

/// The text without percent-encoding; unchanged if the result would not be UTF-8.
pub(crate) fn decoded(text: &str, plus_is_space: bool) -> String {
    let plain = match plus_is_space {
        true => form_decoded(text),
        false => form_decoded(&text.replace('+', "%2B")),
    };
    Some(plain).filter(|plain| !plain.contains('\u{fffd}')).unwrap_or_else(|| text.to_string())
}

/// A literal, encoded for a path or a query.
pub(crate) fn path_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'#' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                out.push_str(&format!("%{byte:02X}"));
            }
            0x21..=0x7e => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_decoded_and_malformed_ones_are_kept() {
        let want = [("a", "1 2"), ("b c", "ü"), ("d", ""), ("e", "%zz%")];
        let want = want.map(|(name, value)| (name.to_string(), value.into()));
        assert_eq!(text_pairs(&"a=1+2&b%20c=%C3%BC&d&&e=%zz%".into()), want);
        assert_eq!(decoded("%ff", true), "%ff");
        assert_eq!(path_encoded("/a b/ü#x"), "/a%20b/%C3%BC%23x");
    }
}
