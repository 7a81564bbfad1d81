//! The keys of the catalogue: every line of English that a translation stands below.

use std::collections::HashSet;
use std::sync::OnceLock;

pub(crate) const FILE: &str = "crates/throng-base/words/zh.txt";

const CHINESE: &str = include_str!("../../throng-base/words/zh.txt");

pub(crate) fn has(key: &str) -> bool {
    static KEYS: OnceLock<HashSet<String>> = OnceLock::new();
    KEYS.get_or_init(|| keys(CHINESE)).contains(key)
}

/// Lines of English, up to the line of the translation, which begins with a tab.
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
