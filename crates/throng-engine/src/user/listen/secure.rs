//! The handshake of a connection that begins TLS while it is open.

use std::task::{Context, Poll};

use throng_program::Statement;

use crate::connector;
use crate::prepared::code::Instruction;
use crate::shard::Lane;
use crate::transport::Transport;
use crate::user::task::{Doing, at};
use crate::user::{Turn, User};

impl User {
    /// Whether TLS begins on this line with the next step.
    pub(super) fn secures_next(&self, shard: &Lane, line: u8) -> bool {
        matches!(self.session.doing, Doing::Step)
            && match at(shard, self.state.session, self.session.pc).0 {
                Instruction::Do(Statement::Secure(secure)) => {
                    self.state.line_of(secure.link) == line
                }
                _ => false,
            }
    }

    /// Begins the handshake once all that was said before is on its way, and goes on with it.
    pub(super) fn secure_on(&mut self, shard: &Lane, line: u8, cx: &mut Context<'_>) -> Turn {
        let is_sent = self.state.lines.get(line).is_sent();
        let Some(connection) = self.state.lines.connection_mut(line) else { return Turn::Again };
        if connection.transport.is_plain() {
            if !is_sent {
                let wake = connection.slow_until();
                self.state.arm(wake);
                return Turn::Wait;
            }
            let target = connection.target;
            replace(&mut connection.transport, |plain| connector::secure(shard, target, plain));
        }
        let done = connection.transport.poll_secure(cx);
        self.state.now = shard.clock.now();
        match done {
            Poll::Pending => return Turn::Wait,
            Poll::Ready(Ok(())) => self.session(shard).secured(),
            Poll::Ready(Err(failure)) => self.session(shard).not_secured(failure),
        }
        self.settle(shard, cx);
        Turn::Again
    }
}

/// Puts what is made of a transport in its place.
fn replace(transport: &mut Transport, make: impl FnOnce(Transport) -> Transport) {
    let empty = Transport::Securing(Box::pin(std::future::pending()));
    *transport = make(std::mem::replace(transport, empty));
}
