//! Commands of Redis in the words in which a person writes them.

use throng_program::Content;

/// The row of a step that nobody names.
pub(super) fn usual(content: &Content) -> Option<String> {
    let Content::Redis(commands) = content else { return None };
    Some(commands.written.clone())
}

/// `redis GET user:7`
pub(super) fn line(content: &Content) -> Option<String> {
    usual(content).map(|written| format!("redis {written}"))
}
