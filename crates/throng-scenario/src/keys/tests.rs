//! The tables list each key once, with a description.

use super::*;

#[test]
fn keys_are_unique_and_documented() {
    for (_, kind) in MAP_KINDS {
        for (i, key) in kind.keys.iter().enumerate() {
            assert!(key.doc.ends_with('.'), "{}", key.name);
            assert!(kind.keys[..i].iter().all(|other| other.name != key.name), "{}", key.name);
        }
    }
    assert!(VERBS.iter().all(|(verb, kind)| kind.find(verb).is_some()));
    assert!(BARE_VERBS.iter().all(|bare| VERBS.iter().any(|(verb, _)| verb == bare)));
}
