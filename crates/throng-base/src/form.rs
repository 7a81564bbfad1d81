//! Submitted forms and queries: `application/x-www-form-urlencoded` (WHATWG URL).

use percent_encoding::percent_decode_str;

/// A name or a value of a form, as the URL standard decodes it.
pub fn form_decoded(value: &str) -> String {
    percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_escapes_stay_unchanged() {
        for (sent, want) in
            [("a+b%20c", "a b c"), ("%C3%A4%26", "ä&"), ("1%", "1%"), ("%zz", "%zz")]
        {
            assert_eq!(form_decoded(sent), want);
        }
    }
}
