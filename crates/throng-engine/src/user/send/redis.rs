//! Redis commands of one user.

use throng_program::redis::{Commands, Piece};
use throng_protocol::redis::{Reply, read_reply, write_word};

use crate::failure::Finding;
use crate::scope::UserScope;

/// Writes the commands of one user. The last argument that differs per user follows in the shard's
/// buffer.
pub(super) fn write(
    commands: &Commands,
    scope: &mut UserScope<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Finding> {
    let shard = scope.shard;
    let mut word = shard.content_buffer.borrow_mut();
    for piece in commands.pieces() {
        match piece {
            Piece::Fixed(bytes) => out.extend_from_slice(bytes),
            Piece::Word(text) => {
                word.clear();
                scope.render(text, &mut word)?;
                write_word(out, &word);
            }
        }
    }
    Ok(())
}

/// Commands in readable form: one per line, with the values that are sent.
#[cold]
pub(super) fn in_lines(mut commands: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    // Commands have the same format as array replies.
    while let Ok(Some((Reply::List(words), bytes))) = read_reply(commands) {
        let words = words.iter().map(|word| match word {
            Reply::Text(text) => text.as_slice(),
            _ => b"",
        });
        lines.push(words.collect::<Vec<_>>().join(&b' '));
        commands = &commands[bytes..];
    }
    lines.join(&b'\n')
}
