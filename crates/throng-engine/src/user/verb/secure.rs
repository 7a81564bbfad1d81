//! The verb `secure`: TLS on an open connection, after the steps before it have agreed on it with
//! the target (STARTTLS). Nothing else is sent until the handshake is over; plain text that was
//! received before is not trusted afterwards.

use throng_metrics::Cause;
use throng_program::Secure;

use crate::failure::{Ended, Failure};
use crate::user::State;
use crate::user::connection::{Connection, Later};
use crate::user::exchange::{Awaits, Exchange};
use crate::user::outcome::Onward;
use crate::user::task::{Active, Doing};
use crate::user::verb::unanswered::Unanswered;

/// The verb `secure`: done when the TLS handshake is.
pub(in crate::user) fn secure(active: &mut Active<'_>, secure: &Secure) {
    let line = active.user.line_of(secure.link);
    active.task.line = line;
    if active.user.lines.connection(line).is_none() {
        return active.without_connection(secure.step);
    }
    active.flight_begins(secure.step);
    active.goes_out();
    let exchange = Exchange::new(Awaits::Tls, active.user.now);
    active.wait_for(Doing::Exchange(exchange), active.user.now + secure.timeout);
    if let Err(failure) = forget_plain(active.user, line) {
        not_secured(active, failure);
    }
}

pub(in crate::user) fn secured(active: &mut Active<'_>) {
    let Some(exchange) = active.task.take_exchange() else { return };
    if let Some(step) = active.instruction().step() {
        active.step_ok(step, &exchange.attempt(active.user.now, active.task.due));
    }
    exchange.forget(active.shard);
    active.next_step();
}

pub(in crate::user) fn not_secured(active: &mut Active<'_>, failure: Failure) {
    let Some(exchange) = active.task.take_exchange() else { return };
    let finding = failure.finding();
    active.lose(failure, Ended::ByUs);
    Unanswered::new(active, exchange).failed(finding, false, Onward::Anew { refused: true });
}

/// Drops what the target has sent in plain text (RFC 3207, 4.2). Bytes after the reply that agreed
/// to TLS are a bug of the target, or were injected on the way.
fn forget_plain(user: &mut State, line: u8) -> Result<(), Failure> {
    let Some(Connection { transport, machine, .. }) = user.lines.connection(line) else {
        return Ok(());
    };
    if !transport.is_plain() {
        let detail = say!("the connection already uses TLS: `secure` runs once after `connect`");
        return Err(Failure::new(Cause::ScenarioFailed, detail));
    }
    let mut unread = machine.half();
    let mut later = user.lines.get_mut(line).take_kept();
    while let Some(one) = later.pop() {
        match one {
            Later::Message { .. } => {
                user.shard.recorder.borrow_mut().interval.traffic.messages.pushes += 1;
            }
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
