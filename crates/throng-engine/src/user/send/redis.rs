//! Redis commands of one user.

use std::io;
use std::rc::Rc;
use std::task::Context;

use throng_base::redis as base;
use throng_metrics::Cause;
use throng_program::redis::{Commands, Piece};
use throng_program::{Check, Extractor};
use throng_protocol::machine::{Fields, Machine};
use throng_protocol::redis::{RedisAnswer, Reply, read_reply, write_word};

use super::{Acknowledgement, Outbound, Sent};
use crate::connector::protocol::redis::redis_error;
use crate::failure::Finding;
use crate::scope::{UserScope, scope};
use crate::trace::{Shown, What};
use crate::user::connection::Connection;

impl Outbound<'_> {
    /// Sends commands of Redis in one write.
    pub(super) fn commands(
        &mut self,
        (commands, cut): (&Commands, Option<u32>),
        cx: &mut Context<'_>,
    ) -> Result<io::Result<Sent>, Finding> {
        let shard = Rc::clone(&self.user.shard);
        let mut buffer = shard.write_buffer.borrow_mut();
        let bytes = match commands.fixed() {
            Some(fixed) => fixed,
            None => {
                buffer.clear();
                write(commands, &mut scope!(self.user, &shard), &mut buffer)?;
                &buffer
            }
        };
        let is_traced = shard.is_traced();
        self.user.tell(|| What::Sent(Shown::of(&in_lines(bytes))));
        shard.recorder.borrow_mut().interval.traffic.messages.sent += u64::from(commands.count);
        let Some(Connection { machine: Machine::Redis(client), .. }) =
            self.user.lines.connection_mut(self.line)
        else {
            return Ok(Err(io::ErrorKind::NotConnected.into()));
        };
        let number = client.ask(commands.replies, commands.is_read || is_traced);
        let cut = cut.map_or(bytes.len(), |cut| bytes.len().min(cut as usize));
        let sent = self.send(&bytes[..cut], cx);
        Ok(sent.map(|()| Sent { bytes: cut as u64, number, ..Sent::default() }))
    }
}

/// Writes the commands of one user. The last argument that differs per user follows in the shard's
/// buffer.
fn write(commands: &Commands, scope: &mut UserScope<'_>, out: &mut Vec<u8>) -> Result<(), Finding> {
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
fn in_lines(mut commands: &[u8]) -> Vec<u8> {
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

/// The replies to commands as their step looks at them.
pub(super) fn acknowledgement<'a>(
    answer: &RedisAnswer<'a>,
    checks: &[Check],
) -> Acknowledgement<'a> {
    let (status, refusal) = refusal(checks, answer).unzip();
    let (content, fields) = (answer.content, Fields::Reply(*answer));
    Acknowledgement { status, content, fields, refusal }
}

/// The status of an error among the replies, and what is wrong with it, unless the step looks at
/// errors itself.
fn refusal(checks: &[Check], answer: &RedisAnswer<'_>) -> Option<(u16, Finding)> {
    let (error, word) = (answer.error?, answer.error_word()?);
    let is_error =
        |check: &Check| matches!(&check.extractor, Extractor::Header(name) if name == "error");
    if checks.iter().any(is_error) {
        return None;
    }
    let status = base::status(word);
    Some((status, (Cause::of_status(status), redis_error(error))))
}
