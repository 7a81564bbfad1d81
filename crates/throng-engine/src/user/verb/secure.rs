//! The verb `secure`: TLS on a connection that is open, as the steps before it have agreed on it
//! with the target (STARTTLS). Until the handshake is over, nothing else goes over the connection;
//! what was read of it before in plain text is not trusted behind it.

use std::task::{Context, Poll};

use throng_metrics::Cause;
use throng_program::{Secure, Statement};

use crate::code::Instruction;
use crate::connector;
use crate::failure::{Ended, Failure};
use crate::shard::Lane;
use crate::transport::Transport;
use crate::user::connection::{Connection, Later};
use crate::user::exchange::{Awaits, Exchange};
use crate::user::outcome::Onward;
use crate::user::task::{Active, Doing, at};
use crate::user::{State, Turn, User};

impl Active<'_> {
    /// The verb `secure`: done when TLS is spoken.
    pub(in crate::user) fn secure(&mut self, secure: &Secure) {
        let line = self.user.line_of(secure.link);
        self.task.line = line;
        if self.user.connection(line).is_none() {
            return self.without_connection(secure.step);
        }
        self.flight_begins(secure.step);
        self.goes_out();
        let exchange = Exchange::new(Awaits::Tls, self.user.now);
        self.wait_for(Doing::Exchange(exchange), self.user.now + secure.timeout);
        if let Err(failure) = self.user.forget_plain(line) {
            self.not_secured(failure);
        }
    }

    fn secured(&mut self) {
        let Some(exchange) = self.take_exchange() else { return };
        if let Some(step) = self.instruction().step() {
            self.step_ok(step, &exchange.attempt(self.user.now, self.task.due));
        }
        exchange.forget(self.shard);
        self.next_step();
    }

    fn not_secured(&mut self, failure: Failure) {
        let Some(exchange) = self.take_exchange() else { return };
        let finding = (failure.cause, failure.detail.clone());
        self.lose(failure, Ended::ByUs);
        self.exchange_failed(exchange, finding, false, Onward::Anew { refused: true });
    }
}

impl User {
    /// Whether the session waits for TLS on this line.
    pub(in crate::user) fn awaits_tls(&self, line: u8) -> bool {
        self.session.exchange_on(line).is_some_and(|exchange| exchange.awaits == Awaits::Tls)
    }

    /// Whether TLS begins on this line with the next step.
    pub(in crate::user) fn secures_next(&self, shard: &Lane, line: u8) -> bool {
        matches!(self.session.doing, Doing::Step)
            && match at(shard, self.state.session, self.session.pc).0 {
                Instruction::Do(Statement::Secure(secure)) => {
                    self.state.line_of(secure.link) == line
                }
                _ => false,
            }
    }

    /// Begins the handshake once all that was said before is on its way, and goes on with it.
    pub(in crate::user) fn secure_on(
        &mut self,
        shard: &Lane,
        line: u8,
        cx: &mut Context<'_>,
    ) -> Turn {
        let is_sent = self.state.is_sent_on(line);
        let Some(connection) = self.state.connection_mut(line) else { return Turn::Again };
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

impl State {
    /// Forgets what the target has said in plain text (RFC 3207, 4.2). What lies behind the reply
    /// that agreed to TLS is a mistake of the target, or was put there on the way.
    fn forget_plain(&mut self, line: u8) -> Result<(), Failure> {
        let Some(Connection { transport, machine, .. }) = self.connection(line) else {
            return Ok(());
        };
        if !transport.is_plain() {
            let detail =
                say!("the connection already uses TLS: `secure` runs once after `connect`");
            return Err(Failure::new(Cause::ScenarioFailed, detail));
        }
        let mut unread = machine.half();
        let mut later = self.take_kept(line);
        while let Some(one) = later.pop() {
            match one {
                Later::Message { .. } => self.shard.recorder.borrow_mut().messages.pushes += 1,
                Later::Surplus(bytes) => unread += bytes.len(),
                Later::Bytes { bytes, from } => unread += bytes.len() - from,
            }
        }
        if unread == 0 {
            return Ok(());
        }
        let detail = say!(
            "the target sent {unread} bytes in plain text after the reply that agrees to TLS; \
             nothing may follow that reply"
        );
        Err(Failure::new(Cause::Malformed, detail))
    }
}
