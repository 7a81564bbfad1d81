//! Decodes the fields of a submitted form, one per line.

use throng_base::{clean, form_decoded};

const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// The request with its form decoded; `None` if the body is not a form. `mask` gets the name and
/// value of each field.
pub(super) fn spelled_out(request: &[u8], mask: impl Fn(&str, &str) -> String) -> Option<String> {
    let (head, body) = std::str::from_utf8(request).ok()?.split_once("\r\n\r\n")?;
    if body.is_empty() || !head.lines().any(says_form) {
        return None;
    }
    let fields = body.split('&').filter(|field| !field.is_empty()).map(|field| {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let (name, value) = (form_decoded(name), form_decoded(value));
        format!("{} = {}", clean(&name), clean(&mask(&name, &value)))
    });
    let fields: Vec<String> = fields.collect();
    Some(format!("{head}\r\n\r\n{}", fields.join("\n")))
}

fn says_form(header: &str) -> bool {
    header.split_once(':').is_some_and(|(name, value)| {
        let media_type = value.split(';').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("content-type") && media_type.eq_ignore_ascii_case(MEDIA_TYPE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_form_are_decoded_and_masked() {
        let mask = |name: &str, value: &str| match name {
            "password" => "***".to_string(),
            _ => value.to_string(),
        };
        let head = "POST / HTTP/1.1\r\ncontent-TYPE: Application/x-www-form-urlencoded; charset=x";
        let request = format!("{head}\r\n\r\nq=a+b%26%0A&password=p%20w&empty=&flag&%C3%A4=%C3%BC");
        let shown = spelled_out(request.as_bytes(), mask).unwrap();
        let fields = "q = a b&\\n\npassword = ***\nempty = \nflag = \nä = ü";
        assert_eq!(shown, format!("{head}\r\n\r\n{fields}"));
        for other in [
            "POST / HTTP/1.1\r\nContent-Type: text/plain\r\n\r\na=b",
            "POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n",
            "a=b&c=d",
        ] {
            assert_eq!(spelled_out(other.as_bytes(), mask), None);
        }
    }
}
