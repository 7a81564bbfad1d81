//! Queries and URL-encoded forms: names and values, decoded.

use crate::text::Text;

/// Names and values of `a=1&b=2`.
pub(crate) fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name, true), decoded(value, true))
        })
        .collect()
}

/// The same for a text with embedded values, which are preserved.
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
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        let digits = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, digits.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            (b'+', _) if plus_is_space => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_string())
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
        let want = want.map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(pairs("a=1+2&b%20c=%C3%BC&d&&e=%zz%"), want);
        assert_eq!(decoded("%ff", true), "%ff");
        assert_eq!(path_encoded("/a b/ü#x"), "/a%20b/%C3%BC%23x");
    }
}
