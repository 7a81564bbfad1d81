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
use crate::user::task::{Active, Doing, Task, at};
use crate::user::{State, Turn, User};

/// The verb `secure`: done when TLS is spoken.
pub(in crate::user) fn secure(active: &mut Active<'_>, secure: &Secure) {
    let line = active.user.line_of(secure.link);
    active.task.line = line;
    if active.user.connection(line).is_none() {
        return active.without_connection(secure.step);
    }
    active.flight_begins(secure.step);
    active.goes_out();
    let exchange = Exchange::new(Awaits::Tls, active.user.now);
    active.wait_for(Doing::Exchange(exchange), active.user.now + secure.timeout);
    if let Err(failure) = forget_plain(active.user, line) {
        end(active, Err(failure));
    }
}

/// The handshake is over, or cannot be.
fn end(active: &mut Active<'_>, done: Result<(), Failure>) {
    let Some(exchange) = active.take_exchange() else { return };
    match done {
        Ok(()) => {
            if let Some(step) = active.instruction().step() {
                active.step_ok(step, &exchange.attempt(active.user.now, active.task.due));
            }
            exchange.forget(active.shard);
            active.next_step();
        }
        Err(failure) => {
            let finding = (failure.cause, failure.detail.clone());
            active.lose(failure, Ended::ByUs);
            active.exchange_failed(exchange, finding, false, Onward::Anew { refused: true });
        }
    }
}

/// Whether the session waits for TLS on this line.
pub(in crate::user) fn awaits_tls(session: &Task, line: u8) -> bool {
    session.exchange_on(line).is_some_and(|exchange| exchange.awaits == Awaits::Tls)
}

/// Whether TLS begins on this line with the next step.
pub(in crate::user) fn secures_next(user: &User, shard: &Lane, line: u8) -> bool {
    let User { state, session } = user;
    matches!(session.doing, Doing::Step)
        && match at(shard, state.session, session.pc).0 {
            Instruction::Do(Statement::Secure(secure)) => state.line_of(secure.link) == line,
            _ => false,
        }
}

/// Begins the handshake once all that was said before is on its way, and goes on with it.
pub(in crate::user) fn go_on(
    user: &mut User,
    shard: &Lane,
    line: u8,
    cx: &mut Context<'_>,
) -> Turn {
    let is_sent = user.state.is_sent_on(line);
    let Some(connection) = user.state.connection_mut(line) else { return Turn::Again };
    if connection.transport.is_plain() {
        if !is_sent {
            let wake = connection.slow_until();
            user.state.arm(wake);
            return Turn::Wait;
        }
        let target = connection.target;
        replace(&mut connection.transport, |plain| connector::secure(shard, target, plain));
    }
    let done = connection.transport.poll_secure(cx);
    user.state.now = shard.clock.now();
    let Poll::Ready(done) = done else { return Turn::Wait };
    end(&mut user.session(shard), done);
    user.settle(shard, cx);
    Turn::Again
}

/// Puts what is made of a transport in its place.
fn replace(transport: &mut Transport, make: impl FnOnce(Transport) -> Transport) {
    let empty = Transport::Securing(Box::pin(std::future::pending()));
    *transport = make(std::mem::replace(transport, empty));
}

/// Forgets what the target has said in plain text (RFC 3207, 4.2). What lies behind the reply that
/// agreed to TLS is a mistake of the target, or was put there on the way.
fn forget_plain(state: &mut State, line: u8) -> Result<(), Failure> {
    let Some(Connection { transport, machine, .. }) = state.connection(line) else {
        return Ok(());
    };
    if !transport.is_plain() {
        let detail = say!("the connection already uses TLS: `secure` runs once after `connect`");
        return Err(Failure::new(Cause::ScenarioFailed, detail));
    }
    let mut unread = machine.half();
    let mut later = state.take_kept(line);
    while let Some(one) = later.pop() {
        match one {
            Later::Message { .. } => state.shard.recorder.borrow_mut().messages.pushes += 1,
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
