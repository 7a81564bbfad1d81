//! The handshake of a connection that starts TLS after it is open.

use std::task::Poll;

use throng_program::Statement;

use crate::connector;
use crate::prepared::code::Instruction;
use crate::transport::Transport;
use crate::user::Turn;
use crate::user::listen::Inbound;
use crate::user::task::{Doing, at};
use crate::user::verb::secure::{not_secured, secured};

impl Inbound<'_, '_> {
    /// Whether TLS begins on this line with the next step.
    pub(super) fn secures_next(&self) -> bool {
        matches!(self.user.session.doing, Doing::Step)
            && match at(self.shard, self.user.state.session, self.user.session.pc).0 {
                Instruction::Do(Statement::Secure(secure)) => {
                    self.user.state.line_of(secure.link) == self.line
                }
                _ => false,
            }
    }

    /// Starts the handshake once everything before it is sent, and continues it.
    pub(super) fn secure_on(&mut self) -> Turn {
        let is_sent = self.user.state.lines.get(self.line).is_sent();
        let Some(connection) = self.user.state.lines.connection_mut(self.line) else {
            return Turn::Again;
        };
        if connection.transport.is_plain() {
            if !is_sent {
                let wake = connection.slow_until();
                self.user.state.arm(wake);
                return Turn::Wait;
            }
            let target = connection.target;
            replace(&mut connection.transport, |plain| {
                connector::secure(self.shard, target, plain)
            });
        }
        let done = connection.transport.poll_secure(self.cx);
        self.user.state.now = self.shard.clock.now();
        match done {
            Poll::Pending => return Turn::Wait,
            Poll::Ready(Ok(())) => secured(&mut self.user.session(self.shard)),
            Poll::Ready(Err(failure)) => not_secured(&mut self.user.session(self.shard), failure),
        }
        self.user.settle(self.shard, self.cx);
        Turn::Again
    }
}

/// Replaces a transport by one that is made of it.
fn replace(transport: &mut Transport, make: impl FnOnce(Transport) -> Transport) {
    let empty = Transport::Securing(Box::pin(std::future::pending()));
    *transport = make(std::mem::replace(transport, empty));
}
