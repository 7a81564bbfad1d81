//! How far a selector without a match leads: its longest prefix with a match. For debugging, so it
//! may be slow.

/// The longest prefix of a CSS selector or an XPath with a match, and the number of matches; the
/// shortest one with a count of 0 if none matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    pub text: String,
    pub count: usize,
}

/// Prefixes of a selector, longest first, each with fewer pieces than the one before: a name is
/// never split. `pieces` counts those of a text, if it is a selector.
pub fn beginnings(
    text: &str,
    pieces: impl Fn(&str) -> Option<usize>,
) -> impl Iterator<Item = &str> {
    let mut fewest = pieces(text).unwrap_or(0);
    let ends = (1..text.len()).rev().filter(|end| text.is_char_boundary(*end));
    ends.map(|end| text[..end].trim_end()).filter(move |shorter| {
        let fewer = pieces(shorter).filter(|count| *count < fewest);
        fewest = fewer.unwrap_or(fewest);
        fewer.is_some()
    })
}

/// The first prefix with a match.
pub(crate) fn longest<'t>(
    beginnings: impl Iterator<Item = &'t str>,
    count: impl Fn(&str) -> usize,
) -> Option<Beginning> {
    let mut last = None;
    for text in beginnings {
        let found = Beginning { text: text.to_string(), count: count(text) };
        if found.count > 0 {
            return Some(found);
        }
        last = Some(found);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Css, Page, XPath};

    const PAGE: &[u8] = b"<form id=login><input name=user><input name=csrf value=t></form>";

    fn beginning(text: &str, count: usize) -> Option<Beginning> {
        Some(Beginning { text: text.into(), count })
    }

    #[test]
    fn a_css_selector_is_shortened_by_elements_and_tests() {
        let page = Page::new(PAGE);
        for (selector, want) in [
            ("form#login input[name=crsf]@value", beginning("form#login input", 2)),
            ("form#login input[name=user]@value", beginning("form#login input[name=user]", 1)),
            ("form#logon > input", beginning("form", 1)),
            ("table.big td", beginning("table", 0)),
            ("input:not(input)", beginning("input", 2)),
            ("td, form.x", beginning("td, form", 1)),
            ("table", None),
        ] {
            let css = Css::parse(selector).unwrap();
            assert_eq!(css.first(&page), None, "{selector}");
            assert_eq!(css.beginning(&page), want, "{selector}");
        }
        assert_eq!(page.refusal(), None);
    }

    #[test]
    fn an_xpath_is_shortened_by_steps_and_predicates() {
        let page = Page::new(PAGE);
        for (path, want) in [
            ("//form[@id='login']//input[@name='crsf']/@value", "//form[@id='login']//input 2"),
            ("//form[@id='logon']//input", "//form 1"),
            ("//input[1]/text()", "//input[1] 1"),
            ("//table/tr", "//table 0"),
            ("(//input)[3]", "(//input) 2"),
            ("/html/body/div", "/html/body 1"),
        ] {
            let found = XPath::parse(path).unwrap().beginning(&page).unwrap();
            assert_eq!(format!("{} {}", found.text, found.count), want, "{path}");
        }
    }
}
