//! The keys of the catalog: each English line that is followed by a translation.

use std::collections::HashSet;
use std::sync::OnceLock;

pub(crate) const FILE: &str = "crates/throng-base/words/zh.txt";

const CHINESE: &str = include_str!("../../throng-base/words/zh.txt");

pub(crate) fn has(key: &str) -> bool {
    static KEYS: OnceLock<HashSet<String>> = OnceLock::new();
    KEYS.get_or_init(|| keys(CHINESE)).contains(key)
}

/// Lines of English before the line of the translation, which starts with a tab.
fn keys(text: &str) -> HashSet<String> {
    let mut keys = HashSet::new();
    let mut key = String::new();
    for line in text.lines() {
        if line.starts_with('\t') && !key.is_empty() {
            keys.insert(std::mem::take(&mut key));
        } else if line.is_empty() || line.starts_with(['#', '\t']) {
            key.clear();
        } else {
            let between = if key.is_empty() { "" } else { "\n" };
            key.extend([between, line]);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_lines_above_translations() {
        let keys = keys("# c\na {}\n\t一\n\ntwo\n  lines\n\t两\n\t行\n");
        let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["a {}", "two\n  lines"]);
        assert!(has("error") && !has("no sentence of ours"));
    }
}
