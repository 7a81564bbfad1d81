//! Syntax of other tools: placeholders, typographic quotes, and words and operators from other
//! languages for checks.

use super::Context;
use super::names::ROOTS;
use crate::syntax::{Kind, Node, OTHER_QUOTES};
use crate::words::shorten;

/// Maximum length of the name of a placeholder.
const NAME_BYTES_MAX: usize = 60;

/// Warns if a text to send contains `{{name}}`, `#{name}`, `{user.id}` or `$user.id`, or JSON with
/// typographic quotes.
pub(crate) fn warn_placeholders(cx: &mut Context<'_>, node: &Node, text: &str) {
    if cx.mistakes.is_full() {
        return;
    }
    if text.contains(['{', '$']) {
        warn_names(cx, node, text);
    }
    if let Some((at, quote)) = quoted_json(text) {
        let place = cx.place_in(node, at, quote.len_utf8());
        let label = say!("a typographic quote");
        let help = say!("use straight quotes `\"`, or write the whole body as YAML: `json: {{…}}`");
        cx.warn("other-quotes", place, say!("`{quote}` is not a valid quote in JSON"), label, help);
    }
}

fn warn_names(cx: &mut Context<'_>, node: &Node, text: &str) {
    for (at, written, name) in bare_names(text) {
        let known = match is_rooted(name) {
            true => Some(name.to_string()),
            false if is_of_graphql(text, written) => None,
            false => known_name(cx, name),
        };
        let Some(known) = known else { continue };
        let place = cx.place_in(node, at, written.len());
        let label = say!("did you mean `${{{known}}}`?");
        let help = say!("an expression requires `$` and both braces: `${{user.id}}`");
        cx.warn("other-placeholder", place, say!("`{written}` is sent literally"), label, help);
    }
    for (at, written, name) in placeholders(text) {
        let place = cx.place_in(node, at, written.len());
        let message = say!("`{written}` is sent literally");
        let mut warning = cx.warning("other-placeholder", message, place);
        warning = match known_name(cx, name) {
            Some(known) => warning.label(say!("did you mean `${{{known}}}`?")),
            None => warning.label(say!("placeholder syntax of another tool")),
        };
        cx.note(
            warning.help(say!(
                "in throng, write `${{saved.name}}`, `${{vars.name}}` or `${{user.id}}`"
            )),
        );
    }
}

/// The full name for a name without its root.
fn known_name(cx: &Context<'_>, name: &str) -> Option<String> {
    if cx.session.slot_of(name).is_some() {
        return Some(format!("saved.{name}"));
    }
    if cx.vars.has(name) {
        return Some(format!("vars.{name}"));
    }
    let source = cx.data.with_column(name.rsplit('.').next()?)?;
    Some(format!("data.{source}.{}", name.rsplit('.').next()?))
}

/// Reports an operator or word before a value that has no meaning there; None after a mistake.
pub(crate) fn check_sign(cx: &mut Context<'_>, node: &Node) -> Option<()> {
    let Kind::Scalar { text, plain } = &node.kind else { return Some(()) };
    if let Some(sign) = sign(text) {
        let message = say!("`{sign}` is not supported before a value");
        let help = match sign {
            "=~" => say!("write `{{matches: 'id=\\d+'}}`"),
            _ => {
                say!(
                    "write `that: \"${{response.json.code != 0}}\"`; to match text that starts \
                     with this operator, write `\"${{'!'}}= 0\"`"
                )
            }
        };
        let place = cx.place_of(node, sign);
        return cx.refuse("bad-value", place, message, say!("unknown"), help);
    }
    if *plain && text.starts_with("not ") && other_word(text).is_none() {
        let message = say!("`{}` is compared as text", shorten(text));
        let help = say!(
            "to negate, write `that: \"${{response.json.code != 0}}\"`; to compare with this \
             text, put it in quotes"
        );
        cx.warn("other-word", node.place, message, say!("`not` is part of the text"), help);
    }
    Some(())
}

/// Warns of a word that is compared as text and looks like `present` or `absent`.
pub(crate) fn warn_word(cx: &mut Context<'_>, node: &Node) {
    let Kind::Scalar { text, plain: true } = &node.kind else { return };
    let Some(meant) = other_word(text) else { return };
    let label = say!("did you mean `{meant}`?");
    let help = say!(
        "to check whether a value exists, write `present` or `absent`; to compare with this \
         text, put it in quotes"
    );
    cx.warn("other-word", node.place, say!("`{}` is compared as text", shorten(text)), label, help);
}

/// An operator of another language before a value.
pub(crate) fn sign(text: &str) -> Option<&'static str> {
    ["!~", "!=", "=~"].into_iter().find(|sign| text.starts_with(sign))
}

/// Other words for `absent` and `present`; `_` and `-` can replace the spaces.
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

/// `present` or `absent` if the text is a synonym.
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

/// True if it starts with a root of expressions, like `user.id`.
fn is_rooted(name: &str) -> bool {
    const FUNCTIONS: [&str; 3] = ["random", "now", "run"];
    name.split_once('.').is_some_and(|(root, rest)| {
        !rest.is_empty() && (ROOTS.contains(&root) || FUNCTIONS.contains(&root))
    })
}

/// Names in a text without `$` or braces: `{user.id}` and `$user.id`.
fn bare_names(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let signs =
        text.match_indices(['{', '$']).filter(|(at, _)| !text[..*at].ends_with(['$', '{', '#']));
    signs.filter_map(|(at, sign)| {
        let inner = &text[at + 1..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '(' | ')');
        let end = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
        let (name, length) = match sign {
            "{" => (inner[..end].trim(), inner[end..].starts_with('}').then_some(end + 2)?),
            _ => {
                let name = inner[..end].trim_end_matches('.');
                (name, name.len() + 1)
            }
        };
        let good =
            name.len() <= NAME_BYTES_MAX && name.starts_with(|c: char| c.is_ascii_alphabetic());
        good.then(|| (at, &text[at..at + length], name))
    })
}

/// True for GraphQL syntax: a variable that the text declares with a type, like `$stars` in
/// `mutation Add($stars: Int!) {…}`, or a field selection after an operation, like `{id}`.
fn is_of_graphql(text: &str, written: &str) -> bool {
    const OPERATIONS: [&str; 4] = ["query", "mutation", "subscription", "fragment"];
    let is_type = |c: char| c == '[' || c == '_' || c.is_ascii_alphabetic();
    match written.starts_with('$') {
        true => text.split(written).skip(1).any(|rest| {
            let declared = rest.trim_start().strip_prefix(':');
            declared.is_some_and(|rest| rest.trim_start().starts_with(is_type))
        }),
        false => OPERATIONS.iter().any(|word| {
            let rest = text.trim_start().strip_prefix(word);
            rest.is_some_and(|rest| rest.starts_with([' ', '\n', '(', '{']))
        }),
    }
}

/// The first typographic quote in JSON syntax.
fn quoted_json(text: &str) -> Option<(usize, char)> {
    if text.is_ascii() || !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut found = text.char_indices().filter(|(_, c)| OTHER_QUOTES.contains(c));
    found.find(|(at, _)| text[..*at].trim_end().ends_with(['{', '[', ',', ':']))
}

/// The placeholders in a text: the start, the written form and the name of each.
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
    fn names_without_dollar_or_braces_are_found() {
        let found = |text| bare_names(text).map(|(_, written, _)| written).collect::<Vec<_>>();
        let text = "/a/{user.id}/$user.id. {random.u64()}";
        assert_eq!(found(text), ["{user.id}", "$user.id", "{random.u64()}"]);
        assert!(
            found("${user.id} $${user.id} {{user.id}} #{user.id} {\"a\":1} $5 {} $ {").is_empty()
        );
        assert!(
            is_rooted("user.id") && is_rooted("run.id") && !is_rooted("user") && !is_rooted("a.b")
        );
        assert_eq!(quoted_json("{“a”: 1}"), Some((1, '“')));
        assert_eq!(quoted_json("[1, “a”]").map(|(at, _)| at), Some(4));
        assert_eq!(quoted_json("{\"a\": \"he said “yes”\"}"), None);
    }

    #[test]
    fn graphql_variables_are_not_placeholders() {
        let typed = "mutation Add($stars: Int!, $of:[ID!]) { add(stars: $stars) {id} }";
        assert!(["$stars", "$of", "{id}"].into_iter().all(|written| is_of_graphql(typed, written)));
        assert!(
            !is_of_graphql(typed, "$star") && !is_of_graphql("query { a(id: \"$id\") }", "$id")
        );
        assert!(!is_of_graphql("query/{id}", "{id}") && !is_of_graphql("at $time: 7", "$time"));
    }

    #[test]
    fn synonyms_of_present_and_absent_are_known() {
        assert_eq!(other_word("missing"), Some("absent"));
        assert_eq!(other_word("not_present"), Some("absent"));
        assert_eq!(other_word("exists"), Some("present"));
        assert_eq!(other_word("not found"), None);
    }
}
