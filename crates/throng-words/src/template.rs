//! Parses the text of a message: its key, and the placeholders of its values.

#[derive(Debug, PartialEq)]
pub(crate) struct Template {
    /// With `{}` for each value, and other braces unescaped.
    pub(crate) key: String,
    pub(crate) places: Vec<TemplatePlace>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct TemplatePlace {
    /// The name or number of the value; empty for the next one.
    pub(crate) name: String,
    /// The format, `{:.1}`; empty for the default.
    pub(crate) format: String,
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Template, &'static str> {
        let mut template = Template { key: String::new(), places: Vec::new() };
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            template.key.push_str(&rest[..at]);
            let brace = &rest[at..at + 1];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                template.key.push_str(brace);
                rest = after;
                continue;
            }
            let inner = rest.split_once('}').filter(|_| brace == "{");
            let (inner, after) = inner.ok_or("a brace is written twice: `{{`, `}}`")?;
            let (name, format) = inner.split_once(':').unwrap_or((inner, ""));
            let format = if format.is_empty() { String::new() } else { format!("{{:{format}}}") };
            template.key.push_str("{}");
            template.places.push(TemplatePlace { name: name.trim().to_string(), format });
            rest = after;
        }
        template.key.push_str(rest);
        Ok(template)
    }
}

/// True if there is text to translate: not in `p99` and `{}/s`, nor in codes such as `bad-value`.
/// Text in backticks is code.
pub(crate) fn has_words(key: &str) -> bool {
    let own: String = key.split('`').step_by(2).collect();
    let bytes = own.as_bytes();
    let is_code = bytes.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-');
    if is_code && bytes.contains(&b'-') {
        return false;
    }
    let is_word = bytes.windows(2).any(|pair| pair.iter().all(u8::is_ascii_lowercase));
    let are_words = bytes.windows(3).any(|three| {
        three[1] == b' ' && three[0].is_ascii_alphabetic() && three[2].is_ascii_alphabetic()
    });
    is_word || are_words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_placeholders_are_found() {
        let found = |text| {
            let template = Template::parse(text).unwrap();
            let place = |place: TemplatePlace| (place.name, place.format);
            (template.key, template.places.into_iter().map(place).collect::<Vec<_>>())
        };
        let place = |name: &str, format: &str| (name.to_string(), format.to_string());
        assert_eq!(found("a {{x: {}}}"), ("a {x: {}}".into(), vec![place("", "")]));
        let places = vec![place("what", ""), place("share", "{:.1}"), place("0", "{:?}")];
        assert_eq!(found("{what} {share:.1} {0:?}"), ("{} {} {}".into(), places));
        assert!(Template::parse("a { b").is_err() && Template::parse("a } b").is_err());
    }

    #[test]
    fn words_are_distinguished_from_signs() {
        assert!(["a step", "{}: no", "p99 of"].iter().all(|key| has_words(key)));
        assert!(["p99", "{}/s", "`code here` {}", "bad-value"].iter().all(|key| !has_words(key)));
    }
}
