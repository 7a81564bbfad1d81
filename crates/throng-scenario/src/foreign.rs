//! What people bring along from elsewhere: placeholders of other tools, the quotes of text
//! processors, words and signs of other languages of checks.

use crate::read::{Context, shorten};
use crate::syntax::{Kind, Node, OTHER_QUOTES};

/// The longest name of a placeholder.
const NAME_BYTES_MAX: usize = 60;

impl Context<'_> {
    /// Warns where a text that is sent holds `{{name}}` or `#{name}`.
    pub(crate) fn warn_placeholders(&mut self, node: &Node, text: &str) {
        if !(text.contains("{{") || text.contains("#{")) || self.is_full() {
            return;
        }
        for (at, written, name) in placeholders(text) {
            let place = self.place_in(node, at, written.len());
            let message = format!("`{written}` is sent as it is written");
            let mut warning = self.warning("other-placeholder", message, place);
            warning = match self.known_name(name) {
                Some(known) => warning.label(format!("did you mean `${{{known}}}`?")),
                None => warning.label("a placeholder of another tool"),
            };
            self.note(
                warning.help("throng writes `${saved.name}`, `${vars.name}` or `${user.id}`"),
            );
        }
    }

    /// What a name without its beginning means here.
    fn known_name(&self, name: &str) -> Option<String> {
        if self.session.slot_of(name).is_some() {
            return Some(format!("saved.{name}"));
        }
        if self.vars.has(name) {
            return Some(format!("vars.{name}"));
        }
        let source = self.data.with_column(name.rsplit('.').next()?)?;
        Some(format!("data.{source}.{}", name.rsplit('.').next()?))
    }

    /// Warns of a text that stands in quotes which YAML does not know.
    pub(crate) fn warn_quotes(&mut self, node: &Node, text: &str) {
        let first = text.chars().next().filter(|c| OTHER_QUOTES.contains(c));
        let Some(first) = first.filter(|_| text.ends_with(OTHER_QUOTES)) else { return };
        let message = "these quotes are part of the text".to_string();
        let place = self.place_in(node, 0, first.len_utf8());
        let warning = self.warning("other-quotes", message, place);
        let help =
            "write the quotes `\"` or `'` of the keyboard; to keep these, put those around them";
        self.note(warning.label("a quote of a text processor").help(help));
    }

    /// A sign or a word in front of a value that means nothing there; None after a mistake.
    pub(crate) fn check_sign(&mut self, node: &Node) -> Option<()> {
        let Kind::Scalar { text, plain } = &node.kind else { return Some(()) };
        if let Some(sign) = sign(text) {
            let message = format!("`{sign}` means nothing in front of a value");
            let error = self.error("bad-value", message, self.place_of(node, sign));
            let help = match sign {
                "=~" => "write `{matches: 'id=\\d+'}`",
                _ => {
                    "write `that: \"${response.json.code != 0}\"`; a text that begins so is \
                     `\"${'!'}= 0\"`"
                }
            };
            return self.fail(error.label("not known here").help(help));
        }
        if *plain && text.starts_with("not ") && other_word(text).is_none() {
            let message = format!("`{}` is compared as a text", shorten(text));
            let warning = self.warning("other-word", message, node.place).label("`not` is a word");
            let help = "write `that: \"${response.json.code != 0}\"` to say what it is not; the \
                        text itself stands in quotes";
            self.note(warning.help(help));
        }
        Some(())
    }

    /// Warns of a word that is compared as a text and looks like `present` or `absent`.
    pub(crate) fn warn_word(&mut self, node: &Node) {
        let Kind::Scalar { text, plain: true } = &node.kind else { return };
        let Some(meant) = other_word(text) else { return };
        let message = format!("`{}` is compared as a text", shorten(text));
        let warning = self.warning("other-word", message, node.place);
        let help = "`present` and `absent` say whether it is there; the text itself stands in \
                    quotes";
        self.note(warning.label(format!("did you mean `{meant}`?")).help(help));
    }
}

/// The sign of another language in front of a value.
pub(crate) fn sign(text: &str) -> Option<&'static str> {
    ["!~", "!=", "=~"].into_iter().find(|sign| text.starts_with(sign))
}

/// Other words for `absent` and `present`; `_` and `-` may stand for the spaces.
const OTHER_WORDS: [(&str, &[&str]); 2] = [
    (
        "absent",
        &[
            "missing",
            "none",
            "empty",
            "undefined",
            "not present",
            "not there",
            "not exist",
            "not exists",
            "does not exist",
            "abssent",
            "absend",
        ],
    ),
    (
        "present",
        &["exists", "exist", "defined", "is present", "not null", "not empty", "presnt", "presen"],
    ),
];

/// `present` or `absent`, when the text is another word for it.
fn other_word(text: &str) -> Option<&'static str> {
    let same = |word: &&str| {
        let letter = |byte: u8| match byte {
            b'_' | b'-' => b' ',
            other => other.to_ascii_lowercase(),
        };
        word.len() == text.len() && word.bytes().eq(text.bytes().map(letter))
    };
    let found = OTHER_WORDS.iter().find(|(_, words)| words.iter().any(&same));
    found.map(|(meant, _)| *meant)
}

/// The placeholders in a text: where each begins, as it is written, and its name.
fn placeholders(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let ends = [("{{", "}}"), ("#{", "}")];
    ends.into_iter().flat_map(move |(open, close)| {
        text.match_indices(open).filter_map(move |(at, _)| {
            let inner = &text[at + open.len()..];
            let length = inner.find(close).filter(|length| *length <= NAME_BYTES_MAX)?;
            let name = inner[..length].trim().trim_start_matches(['$', '.']);
            let good = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '(' | ')');
            let is_name = name.starts_with(char::is_alphabetic) && name.chars().all(good);
            let written = &text[at..at + open.len() + length + close.len()];
            is_name.then_some((at, written, name))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_have_names() {
        let found = |text| placeholders(text).map(|(_, _, name)| name).collect::<Vec<_>>();
        assert_eq!(found("/a/{{id}}/#{name}?x={{ $guid }}"), ["id", "guid", "name"]);
        assert!(found("{\"a\":{\"b\":{}}} {{}} #{ {{1}} {{a b}}").is_empty());
    }

    #[test]
    fn words_for_present_and_absent() {
        assert_eq!(other_word("missing"), Some("absent"));
        assert_eq!(other_word("not_present"), Some("absent"));
        assert_eq!(other_word("exists"), Some("present"));
        assert_eq!(other_word("not found"), None);
    }
}
