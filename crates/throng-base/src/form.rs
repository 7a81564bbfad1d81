//! Submitted forms and queries: `application/x-www-form-urlencoded` (WHATWG URL).

/// A name or a value of a form, as the URL standard decodes it.
pub fn form_decoded(value: &str) -> String {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        (rest, _) = match (first, after) {
            (b'+', _) => (after, out.push(b' ')),
            (b'%', [high, low, behind @ ..]) if both_digits(*high, *low).is_some() => {
                (behind, out.extend(both_digits(*high, *low)))
            }
            _ => (after, out.push(*first)),
        };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The byte of two hexadecimal digits.
fn both_digits(high: u8, low: u8) -> Option<u8> {
    let digit = |byte| char::from(byte).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
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
