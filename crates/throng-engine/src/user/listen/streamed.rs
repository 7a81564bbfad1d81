//! Routes the responses of multiplexed requests to their tasks, and ends them.

use throng_metrics::Cause;
use throng_program::Statement;
use throng_protocol::http1::Event as Part;
use throng_protocol::http2;
use throng_protocol::http2::{ErrorCode, Token};
use throng_protocol::machine::Machine;

use crate::failure::{Ended as Closed, Failure, http_failure, http2_failure};
use crate::prepared::Plan;
use crate::prepared::code::Instruction;
use crate::scope::scope;
use crate::user::connection::{Connection, Loss};
use crate::user::exchange::answer::{Ended, Piece};
use crate::user::exchange::{Exchange, Unheard};
use crate::user::listen::Inbound;
use crate::user::task::{Active, Doing, Task, Which, at};
use crate::user::verb::http::{Listening, answer_complete, trace_head};
use crate::user::verb::unanswered::Unanswered;
use crate::user::verb::{Asker, stream_complete};
use crate::user::watched;

impl Inbound<'_, '_> {
    /// Handles an event of one request, or of all on their connection.
    pub(super) fn replied(&mut self, event: &http2::Event<'_>, ended: &mut Vec<Ended>) {
        let (token, end) = match *event {
            http2::Event::Reply { token, part: Part::End } => (token, Ok(())),
            http2::Event::Reply { token, ref part } => match self.read_part(token, part) {
                Ok(()) => return,
                Err(failure) => {
                    self.user.state.outbound(self.line).cancel(token.0);
                    (token, Err((failure, Unheard::No)))
                }
            },
            http2::Event::Reset { token, unprocessed: true, code } => {
                (token, Err((unheard(code), Unheard::Told)))
            }
            http2::Event::Reset { token, code, .. } => {
                let detail = say!("the target reset the stream: {code}");
                (token, Err((Failure::new(Cause::Reset, detail), Unheard::No)))
            }
            http2::Event::Failed { token, ref violation } => {
                (token, Err((http2_failure(violation), Unheard::No)))
            }
            // Once per connection: later settings may raise or lower the limit.
            http2::Event::Settings { streams_max, is_first: true } => {
                let wanted = u32::from(self.shard.prepared.program.connection.streams);
                return self.shard.recorder.borrow_mut().streams_allowed(streams_max, wanted);
            }
            _ => return,
        };
        // What follows shows whether the connection takes another request.
        ended.push((token, end));
    }

    /// A request has ended: its response is complete, or the reason is known.
    pub(super) fn reply_ended(&mut self, (token, end): Ended) {
        let Some(which) = self.who_asked(token) else { return };
        self.user.with(which, self.shard, self.cx, |active| match end {
            Ok(()) => stream_complete(active),
            Err((failure, unheard)) => stream_lost(active, &failure, unheard),
        });
    }

    /// The task that opened the stream.
    fn who_asked(&self, token: Token) -> Option<Which> {
        let its = |one: &Exchange| one.number == token.0 && one.awaits.is_answer();
        self.user.find(|task| task.exchange_on(self.line).is_some_and(its))
    }

    fn read_part(&mut self, token: Token, part: &Part<'_>) -> Result<(), Failure> {
        let bytes = match part {
            Part::Head(head) => head.headers.as_bytes().len(),
            Part::Body(bytes) => bytes.len(),
            Part::Trailers(trailers) => trailers.as_bytes().len(),
            Part::Informational(_) | Part::End => return Ok(()),
        };
        let (shard, line) = (self.shard, self.line);
        let Some(which) = self.who_asked(token) else { return Ok(()) };
        let mut taken = match which {
            Which::Session => None,
            Which::Other(place) => {
                let tasks = self.user.state.agenda.as_mut().map(|agenda| &mut agenda.tasks);
                tasks.map(|tasks| tasks.swap_remove(place))
            }
        };
        let task = taken.as_mut().unwrap_or(&mut self.user.session);
        let iteration = task.iteration(self.user.state.iterations);
        let Task { doing, detour, pc, due, .. } = task;
        let state = &mut self.user.state;
        let connection = state.lines.connection(line);
        let asker = connection.and_then(|connection| {
            let at = at(shard, state.session, *pc);
            Asker::of(shard, at, detour.as_deref(), (connection.target, *due))
        });
        let mut read = Ok(());
        if let (Doing::Exchange(exchange), Some(asker)) = (doing, asker) {
            exchange.came(bytes as u64, state.now);
            let jar = &mut state.jar;
            let mut scope = scope!(state, shard);
            scope.iterations = iteration;
            read = asker.read(part, exchange, (jar, &mut scope));
        }
        if let (Some(task), Some(agenda)) = (taken, &mut self.user.state.agenda) {
            agenda.tasks.push(task);
        }
        read
    }

    /// Sends what had no room before what came, and what was asked while the answers were read;
    /// where the session goes on to ask for more, that goes with it.
    pub(super) fn send_rest(&mut self) {
        let pushed = match self.user.session.doing {
            Doing::Step => Ok(()),
            _ => self.user.state.outbound(self.line).push(self.cx),
        };
        match pushed.and_then(|()| self.user.state.outbound(self.line).drain(self.cx)) {
            Ok(()) => {
                self.user.state.end_if_going(self.line);
                // Who waited for a place to open another connection goes on.
                self.user.settle(self.shard, self.cx);
            }
            Err(error) => self.broken(&error),
        }
    }
}

/// Bytes of the response arrived that this task waits for. It is the only one on its connection, so
/// it is read in one go.
pub(super) fn answer_received(active: &mut Active<'_>, bytes: &[u8]) {
    let (shard, line) = (active.shard, active.task.line);
    let (instruction, plan) = active.at_pc();
    let (user, task) = (&mut *active.user, &mut *active.task);
    let connection = &mut user.lines.get_mut(line).connection;
    let (
        Doing::Exchange(exchange),
        Instruction::Do(Statement::Http(http)),
        Plan::Http(plan),
        Some(Connection { machine: Machine::Http1(reader), target, .. }),
    ) = (&mut task.doing, instruction, plan, connection)
    else {
        return;
    };
    exchange.came(bytes.len() as u64, user.now);
    let redirect = task.detour.as_ref().and_then(|detour| detour.redirect.as_ref());
    let listening = Listening { shard, http, plan, redirect, target: *target };
    let (jar, mut scope) = (&mut user.jar, scope!(user, shard));
    let (limits, mut rest, mut room) = (&shard.prepared.limits.http1, bytes, Vec::new());
    let mut all = Piece { bytes, whole: None };
    let mut is_interim = false;
    let failed = loop {
        match reader.next(&mut rest, limits, &mut room) {
            Ok(Some(Part::Head(head))) => listening.head(&head, exchange, jar, &mut scope),
            Ok(Some(Part::Body(piece))) => exchange.piece(piece, plan, Some(&mut all), shard),
            Ok(Some(Part::End)) => {
                if !rest.is_empty() {
                    exchange.has_surplus(rest.len(), shard);
                }
                return answer_complete(active, rest.is_empty(), all.take_whole());
            }
            Ok(Some(Part::Informational(head))) => {
                is_interim = true;
                trace_head(&head, &scope);
            }
            Ok(Some(Part::Trailers(_))) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    exchange.keep_body(&mut all, plan.streamed.as_deref(), shard);
    let is_open = exchange.status == 0 && !is_interim;
    if shard.is_traced() && (is_open || failed.is_some()) {
        watched::trace_piece(user, exchange.status, bytes);
    }
    if let Some(error) = failed {
        user.lose(line, Loss::new(http_failure(&error), Closed::ByUs));
    }
}

/// The stream ended before its response was complete. A target that knows the deadline gives up
/// when we do.
fn stream_lost(active: &mut Active<'_>, failure: &Failure, unheard: Unheard) {
    if let Some(exchange) = active.task.take_exchange() {
        if active.user.now >= active.task.deadline {
            return Unanswered::new(active, exchange).timed_out();
        }
        let until = active.task.deadline;
        Unanswered::new(active, exchange).answer_lost(failure, unheard, until);
    }
}

/// Failure of a request that the target did not process, if it is not resent.
fn unheard(code: ErrorCode) -> Failure {
    match code {
        ErrorCode::REFUSED_STREAM => {
            Failure::new(Cause::Reset, say!("the target reset the stream: {code}"))
        }
        ErrorCode::NO_ERROR => {
            let detail = say!("the target sent GOAWAY before it processed the request");
            Failure::new(Cause::ClosedEarly, detail)
        }
        code => {
            let detail = say!("the target sent GOAWAY before it processed the request: {code}");
            Failure::new(Cause::ClosedEarly, detail)
        }
    }
}
