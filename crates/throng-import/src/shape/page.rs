//! The parts of an HTML page that later requests use: hidden fields, tokens in `meta`, and links.

use std::collections::HashMap;

use throng_extract::{Css, Page};

use crate::model::Save;

/// The maximum number of fields, and of links, per page.
const EACH_MAX: usize = 2_000;

pub(super) struct Field {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) save: Save,
    pub(super) is_hidden: bool,
}

/// Hidden fields and `meta` tags. A selector finds the first element with a name, an XPath the
/// others.
pub(super) fn fields(page: &Page<'_>) -> Vec<Field> {
    let mut out: Vec<Field> = Vec::new();
    for (selector, tag, attribute, is_hidden) in [
        ("input[type=hidden i][name][value]", "input", "value", true),
        ("meta[name][content]", "meta", "content", false),
    ] {
        let names = all(page, &format!("{selector}@name"));
        let values = all(page, &format!("{selector}@{attribute}"));
        let mut places: HashMap<String, usize> = HashMap::new();
        for (name, value) in names.into_iter().zip(values) {
            let place = places.entry(name.clone()).or_default();
            *place += 1;
            let save = match *place {
                _ if name.is_empty() => continue,
                1 => Save::Css(format!("{tag}[name={}]@{attribute}", quoted(&name))),
                place if is_hidden && !name.contains('\'') => {
                    let tests = format!("[@type='hidden' and @name='{name}']");
                    Save::XPath(format!("(//{tag}{tests})[{place}]/@{attribute}"))
                }
                _ => continue,
            };
            out.push(Field { name, value, save, is_hidden });
        }
    }
    out
}

/// The targets of links and forms, as written: the element with its attribute, and the values in
/// order.
pub(super) fn links(page: &Page<'_>) -> [(&'static str, &'static str, Vec<String>); 2] {
    [("a", "href", all(page, "a[href]@href")), ("form", "action", all(page, "form[action]@action"))]
}

/// The names of password fields, and of text fields in the same forms.
pub(super) fn login_fields(page: &Page<'_>) -> (Vec<String>, Vec<String>) {
    let passwords = all(page, "input[type=password i][name]@name");
    if passwords.is_empty() {
        return (passwords, Vec::new());
    }
    let text = ":is([type=text i], [type=email i], [type=tel i], :not([type]))";
    let users = format!("form:has(input[type=password i]) input{text}[name]@name");
    (passwords, all(page, &users))
}

fn all(page: &Page<'_>, selector: &str) -> Vec<String> {
    let found = Css::parse(selector).map(|css| css.all(page)).unwrap_or_default();
    found.iter().take(EACH_MAX).map(|value| value.to_text().to_string()).collect()
}

/// The value of an attribute in a selector.
pub(super) fn quoted(value: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let is_name = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    match is_name && value.chars().all(is_word) {
        true => value.to_string(),
        false => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use throng_extract::XPath;

    use super::*;

    #[test]
    fn each_field_has_a_working_selector_and_unusual_names_are_quoted() {
        let html = "<form><input type=HIDDEN name='post[_token]' value=one>\
                    <input type=hidden name=id value=1></form>\
                    <form><input type=hidden name=id value=2><input name=q value=x></form>\
                    <meta name=csrf-token content=two>";
        let page = Page::new(html.as_bytes());
        let fields = fields(&page);
        let want = [
            ("input[name=\"post[_token]\"]@value", "one"),
            ("input[name=id]@value", "1"),
            ("(//input[@type='hidden' and @name='id'])[2]/@value", "2"),
            ("meta[name=csrf-token]@content", "two"),
        ];
        assert_eq!(fields.len(), want.len());
        for (field, (path, value)) in fields.iter().zip(want) {
            let found = match &field.save {
                Save::Css(css) => Some(css).zip(Css::parse(css).unwrap().first(&page)),
                Save::XPath(xpath) => Some(xpath).zip(XPath::parse(xpath).unwrap().first(&page)),
                _ => None,
            };
            let (own, found) = found.unwrap();
            assert_eq!((own.as_str(), &*found.to_text()), (path, value));
            assert_eq!(field.value, value);
        }
    }

    #[test]
    fn login_fields_are_recognized_by_type() {
        let html = "<form><input name=q></form><form><input name=u><input type=hidden name=h>\
                    <input type=email name=mail><input type=password name=p></form>";
        let (passwords, users) = login_fields(&Page::new(html.as_bytes()));
        assert_eq!((passwords, users), (vec!["p".into()], vec!["u".into(), "mail".into()]));
    }
}
