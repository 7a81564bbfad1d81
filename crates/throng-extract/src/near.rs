//! How far a selector that finds nothing leads: its longest beginning that finds something. For
//! people who look for their mistake, so it may take its time.

/// The longest beginning of a CSS selector or an XPath that finds something, and how often; the
/// shortest one with a count of 0 if none does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    pub text: String,
    pub count: usize,
}

/// Beginnings of a selector, the longest first, each with fewer pieces than the one before: a name
/// is never cut in two. `pieces` counts those of a text, where it is a selector.
pub(crate) fn beginnings(
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

/// The first of them that finds something.
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
    use crate::{Css, Document, JsonPath, JsonThere, XPath};

    const PAGE: &[u8] = b"<form id=login><input name=user><input name=csrf value=t></form>";

    fn beginning(text: &str, count: usize) -> Option<Beginning> {
        Some(Beginning { text: text.into(), count })
    }

    #[test]
    fn a_css_selector_is_cut_where_an_element_or_a_test_ends() {
        let document = Document::new(PAGE);
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
            assert_eq!(css.first(&document), None, "{selector}");
            assert_eq!(css.beginning(&document), want, "{selector}");
        }
        assert_eq!(document.refusal(), None);
    }

    #[test]
    fn an_xpath_is_cut_where_a_step_or_a_predicate_ends() {
        let document = Document::new(PAGE);
        for (path, want) in [
            ("//form[@id='login']//input[@name='crsf']/@value", "//form[@id='login']//input 2"),
            ("//form[@id='logon']//input", "//form 1"),
            ("//input[1]/text()", "//input[1] 1"),
            ("//table/tr", "//table 0"),
            ("(//input)[3]", "(//input) 2"),
            ("/html/body/div", "/html/body 1"),
        ] {
            let found = XPath::parse(path).unwrap().beginning(&document).unwrap();
            assert_eq!(format!("{} {}", found.text, found.count), want, "{path}");
        }
    }

    #[test]
    fn a_json_path_is_followed_as_far_as_it_leads() {
        let body = r#"{"data":{"token":"t","äö":1},"items":[{"id":7},{"id":8}],"n":null}"#;
        let document = Document::new(body.as_bytes());
        let keys =
            |keys: &[&str]| JsonThere::Keys(keys.iter().map(|key| key.to_string()).collect());
        for (path, reached, missing, there) in [
            ("data.tokn", "data", Some("tokn"), keys(&["token", "äö"])),
            ("$.data.tokn.x", "data", Some("tokn"), keys(&["token", "äö"])),
            ("date", "$", Some("date"), keys(&["data", "items", "n"])),
            ("items.id", "items", Some("id"), JsonThere::List(2)),
            ("items[2].id", "items", None, JsonThere::List(2)),
            ("$.items[*].name", "$.items[*]", Some("name"), keys(&["id"])),
            ("$['data']['tok.en']", "data", Some("tok.en"), keys(&["token", "äö"])),
            ("n.x", "n", Some("x"), JsonThere::Null),
            ("data.token.x", "data.token", Some("x"), JsonThere::Text),
        ] {
            let reach = JsonPath::parse(path).unwrap().reach(&document).unwrap();
            assert_eq!(reach.path.to_string(), reached, "{path}");
            assert_eq!(reach.missing.as_deref(), missing, "{path}");
            let (JsonThere::Keys(mut found), JsonThere::Keys(mut want)) =
                (reach.there.clone(), there.clone())
            else {
                assert_eq!(reach.there, there, "{path}");
                continue;
            };
            found.sort();
            want.sort();
            assert_eq!(found, want, "{path}");
        }
        assert_eq!(JsonPath::parse("a").unwrap().reach(&Document::new(b"<a>")), None);
    }
}
