//! The content of a message: text, JSON, bytes, a file, or random bytes.

use throng_program::{Message, MessageKind, Segment, Text};

use crate::message::body::read_hex;
use crate::message::json::json_text;
use crate::read::Context;
use crate::read::template::{Escape, read_text};
use crate::scope::FileRole;
use crate::syntax::{Key, Node};

/// Maximum number of random bytes in a message.
const GARBAGE_BYTES_MAX: u64 = 64 * 1024;

/// The message under one of the keys `text`, `json`, `hex`, `binary`, `file` and `garbage`.
pub(crate) fn read_content(cx: &mut Context<'_>, key: &Key, node: &Node) -> Option<Message> {
    let text = |content| Message::plain(MessageKind::Text, content);
    let binary = |bytes: Vec<u8>| Message::plain(MessageKind::Binary, Text::literal(bytes));
    match key.text.as_str() {
        "text" => read_text(cx, node, say!("a text message")).map(text),
        "json" => json_text(cx, node).map(text),
        "file" => {
            cx.file(node, FileRole::Body).map(|(_, bytes)| match std::str::from_utf8(&bytes) {
                Ok(content) => text(Text::literal(content)),
                Err(_) => binary(bytes.to_vec()),
            })
        }
        "garbage" => read_garbage(cx, node),
        _ => read_hex(cx, node).map(binary),
    }
}

/// Random bytes, different each time.
fn read_garbage(cx: &mut Context<'_>, node: &Node) -> Option<Message> {
    let bytes = cx.size(node)?;
    if bytes > GARBAGE_BYTES_MAX {
        let help = say!("write at most `garbage: 64KiB`");
        return cx.bad_value(node, say!("`garbage` is larger than 64 KiB"), help);
    }
    let value = cx.compile_expression(node, &format!("random.bytes({bytes})"), 0)?;
    let segments = vec![Segment::Value { value, escape: Escape::None }];
    Some(Message::plain(MessageKind::Binary, Text { segments }))
}
