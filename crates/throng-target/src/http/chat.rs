//! The admin interface of a chat server.

use crate::setup::Setup;

/// `/online` for all rooms, and `/room/42` for one room.
pub(crate) fn route(setup: &Setup, method: &str, target: &str) -> Option<(u16, String)> {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    if path == "/online" {
        let online = setup.hall.online();
        return Some((200, format!("{{\"online\":{online},\"users\":{online}}}")));
    }
    let id = path.strip_prefix("/room/")?.parse().ok()?;
    if method != "GET" {
        return Some((405, r#"{"error":"use GET for a room"}"#.to_owned()));
    }
    match setup.hall.tell(id) {
        Some(told) => Some((200, told.to_string())),
        None => Some((404, r#"{"error":"no user has joined this room"}"#.to_owned())),
    }
}
