//! Finds the verb of a step, and reports steps without one.

use throng_base::Said;

use super::Verb;
use crate::keys::{BARE_VERBS, VERBS};
use crate::read::Context;
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::{Key, Node};
use crate::words::{METHODS, shorten};

fn lookup(word: &str) -> Option<&'static str> {
    words().find(|verb| *verb == word)
}

fn words() -> impl Iterator<Item = &'static str> {
    VERBS.iter().map(|(verb, _)| *verb)
}

fn verb_list() -> Said {
    let verbs: Vec<String> = words().map(|verb| format!("`{verb}`")).collect();
    say!("a step must have one of these verbs: {}", verbs.join(", "))
}

/// The verb of a step that is a single word.
pub(crate) fn bare_verb<'n>(cx: &mut Context<'_>, node: &Node, word: &str) -> Option<Verb<'n>> {
    if BARE_VERBS.contains(&word) {
        return Verb::bare(word, node.place);
    }
    let known = lookup(word).is_some();
    let message = match known {
        true => say!("`{word}` requires a value"),
        false => say!("`{}` is not a step", shorten(word)),
    };
    let method = word.split_once(' ').is_some_and(|(first, rest)| {
        rest.starts_with('/') && first.chars().all(|c| c.is_ascii_uppercase())
    });
    let help = match method {
        true => say!("write `- http: {}`", shorten(word)),
        false => verb_list(),
    };
    let label = match known {
        true => say!("its value is missing"),
        false => near_label(did_you_mean(word, words()), say!("here")),
    };
    cx.refuse("unknown-step", node.place, message, label, help)
}

/// The only verb of a step that is a map.
pub(crate) fn find_verb(
    cx: &mut Context<'_>,
    node: &Node,
    entries: &[(Key, Node)],
) -> Option<&'static str> {
    let has = |word: &str| entries.iter().any(|(key, _)| key.text == word);
    // `expect` is both a verb and a modifier of `request`.
    let is_verb = |verb: &&str| !(*verb == "expect" && has("request"));
    let mut verbs = entries.iter().filter_map(|(key, _)| {
        let verb = lookup(&key.text).filter(is_verb)?;
        Some((verb, key))
    });
    let Some((first, _)) = verbs.next() else { return no_verb(cx, node, entries) };
    if let Some((second, key)) = verbs.find(|(second, _)| *second != first) {
        let message = say!("a step can have only one verb, not both `{}` and `{}`", first, second);
        let help = say!("make it a separate step: `- {}: …`", second);
        return cx.refuse("several-verbs", key.place, message, say!("the second verb"), help);
    }
    Some(first)
}

fn no_verb<T>(cx: &mut Context<'_>, node: &Node, entries: &[(Key, Node)]) -> Option<T> {
    match entries.first() {
        Some((key, _)) => {
            let message = say!("`{}` is not a key of a step", shorten(&key.text));
            let label = near_label(did_you_mean(&key.text, words()), say!("here"));
            let upper = key.text.to_ascii_uppercase();
            let help = match METHODS.contains(&upper.as_str()) {
                true => say!("write `- http: {upper} /path`"),
                false => verb_list(),
            };
            cx.refuse("unknown-key", key.place, message, label, help)
        }
        None => {
            let help = verb_list();
            cx.refuse("empty", node.place, say!("this step does nothing"), say!("empty"), help)
        }
    }
}
