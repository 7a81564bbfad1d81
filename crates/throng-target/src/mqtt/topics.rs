//! A tree of topic filters, and the search for matches of a topic.

use std::collections::HashMap;

/// Values by filter.
#[derive(Debug, Default)]
pub(super) struct Topics<T> {
    children: HashMap<Box<str>, Topics<T>>,
    value: T,
}

impl<T: Default> Topics<T> {
    /// The value of a filter, created if necessary.
    pub(super) fn of(&mut self, filter: &str) -> &mut T {
        let mut node = self;
        for level in filter.split('/') {
            node = node.children.entry(level.into()).or_default();
        }
        &mut node.value
    }

    /// Calls `found` with the value of each filter that matches a topic.
    pub(super) fn matching<'a>(&'a self, topic: &str, found: &mut impl FnMut(&'a T)) {
        let levels: Vec<&str> = topic.split('/').collect();
        // Topics that start with `$` only match filters that start with `$`.
        if topic.starts_with('$') {
            let child = self.children.get(levels[0]);
            return child.into_iter().for_each(|child| child.walk(&levels[1..], found));
        }
        self.walk(&levels, found);
    }

    fn walk<'a>(&'a self, levels: &[&str], found: &mut impl FnMut(&'a T)) {
        if let Some(all) = self.children.get("#") {
            found(&all.value);
        }
        let Some((level, rest)) = levels.split_first() else { return found(&self.value) };
        for name in [level, "+"] {
            if let Some(child) = self.children.get(name) {
                child.walk(rest, found);
            }
        }
    }
}

/// Whether a filter is valid; for a shared subscription, the filter without its group.
pub(super) fn is_filter(filter: &str) -> bool {
    let mut levels = filter.split('/').peekable();
    let mut valid = !filter.is_empty();
    while let Some(level) = levels.next() {
        valid &= !level.contains('#') || level == "#" && levels.peek().is_none();
        valid &= !level.contains('+') || level == "+";
    }
    valid
}

/// The group and the filter of a shared subscription.
pub(super) fn shared(filter: &str) -> Option<(&str, &str)> {
    filter.strip_prefix("$share/")?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_topics() {
        let filters = ["a/b", "a/+", "a/#", "#", "+", "a/+/c", "$SYS/#", "/+"];
        let mut topics = Topics::<usize>::default();
        for (index, filter) in filters.iter().enumerate() {
            *topics.of(filter) = index + 1;
        }
        for (topic, expected) in [
            ("a", vec!["a/#", "#", "+"]),
            ("a/b", vec!["a/b", "a/+", "a/#", "#"]),
            ("a/x/c", vec!["a/#", "#", "a/+/c"]),
            ("$SYS/x", vec!["$SYS/#"]),
            ("/a", vec!["#", "/+"]),
        ] {
            let mut found = Vec::new();
            topics.matching(topic, &mut |index| found.push(*index));
            let mut found: Vec<&str> =
                found.into_iter().filter(|index| *index > 0).map(|it| filters[it - 1]).collect();
            found.sort_by_key(|it| filters.iter().position(|filter| filter == it));
            assert_eq!(found, expected, "{topic}");
        }
    }

    #[test]
    fn wildcards_match_whole_levels() {
        for (filter, valid) in
            [("a/#", true), ("#", true), ("a#", false), ("#/a", false), ("a+", false), ("", false)]
        {
            assert_eq!(is_filter(filter), valid, "{filter}");
        }
        assert_eq!(shared("$share/g/a/#"), Some(("g", "a/#")));
        assert_eq!(shared("a/b"), None);
    }
}
