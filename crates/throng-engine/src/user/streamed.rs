//! What comes of the streams of a connection: whose each is, and how it ends.

use std::io;
use std::task::Context;

use throng_metrics::Cause;
use throng_program::Statement;
use throng_protocol::http1::Jar;
use throng_protocol::http2::{self, ErrorCode, Token};
use throng_protocol::machine::Machine;

use super::User;
use super::call::Listened;
use super::exchange::{Exchange, Unheard};
use super::http::{Listening, unix_seconds};
use super::task::{Active, Doing, Task, Which, at};
use crate::code::Instruction;
use crate::failure::Ended;
use crate::failure::{Failure, http2_failure};
use crate::prepared::Plan;
use crate::scope::{UserScope, scope};
use crate::shard::Lane;

/// Who asked over a stream, and reads what comes of it.
enum Asker<'a> {
    Http(Listening<'a>),
    Call(Listened<'a>),
}

/// What of a user an answer may change.
type Parts<'a, 'b> = (&'a mut Option<Box<Jar>>, &'a mut UserScope<'b>);

/// How a stream ended.
enum End {
    Whole,
    Failed(Failure),
    /// What came of it breaks what is spoken over it: it is given up.
    Refused(Failure),
    /// The target says that it has not looked at the request: it goes away, or refused the stream.
    Unheard(ErrorCode),
}

impl End {
    /// How the stream ends that is over with this, if one is.
    fn of(event: &http2::Event<'_>) -> Option<(Token, End)> {
        match event {
            http2::Event::End { token } => Some((*token, End::Whole)),
            http2::Event::Reset { token, unprocessed: true, code } => {
                Some((*token, End::Unheard(*code)))
            }
            http2::Event::Reset { token, code, .. } => {
                let detail = say!("the target reset the stream: {code}");
                Some((*token, End::Failed(Failure::new(Cause::Reset, detail))))
            }
            http2::Event::Failed { token, violation } => {
                Some((*token, End::Failed(http2_failure(violation))))
            }
            _ => None,
        }
    }
}

impl User {
    /// Bytes of HTTP/2 came.
    pub(super) fn streams_received(
        &mut self,
        shard: &Lane,
        line: u8,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) {
        let Some(connection) = self.state.connection_mut(line) else { return };
        let stand_in = connection.machine.stand_in();
        let mut machine = std::mem::replace(&mut connection.machine, stand_in);
        let Machine::Http2(client) = &mut machine else { return };
        let wanted = u32::from(shard.prepared.program.connection.streams);
        let mut is_ready = client.is_ready();
        let (mut ended, mut out) = (Vec::new(), shard.frame_buffer.take());
        out.clear();
        let mut sink = |event: http2::Event<'_>| match event {
            http2::Event::Head { token, head } => {
                let bytes = head.headers.as_bytes().len();
                let read = self.of_stream(shard, line, token, bytes, |asker, exchange, parts| {
                    match asker {
                        Asker::Http(http) => http.head(&head, exchange, parts.0, parts.1),
                        Asker::Call(call) => return call.head(&head, exchange),
                    }
                    Ok(())
                });
                ended.extend(read.err().map(|failure| (token, End::Refused(failure))));
            }
            http2::Event::Data { token, bytes } => {
                let length = bytes.len();
                let read = self.of_stream(shard, line, token, length, |asker, exchange, parts| {
                    match asker {
                        Asker::Http(http) => exchange.piece(bytes, http.plan, shard),
                        Asker::Call(call) => return call.data(bytes, exchange, parts.1),
                    }
                    Ok(())
                });
                ended.extend(read.err().map(|failure| (token, End::Refused(failure))));
            }
            http2::Event::Trailers { token, headers } => {
                let bytes = headers.as_bytes().len();
                let read =
                    self.of_stream(shard, line, token, bytes, |asker, exchange, _| match asker {
                        Asker::Http(_) => Ok(()),
                        Asker::Call(call) => call.trailers(headers, exchange),
                    });
                ended.extend(read.err().map(|failure| (token, End::Refused(failure))));
            }
            // Once for a connection: what it allows later may be more or less.
            http2::Event::Settings { streams_max } if !is_ready => {
                is_ready = true;
                shard.recorder.borrow_mut().streams_allowed(streams_max, wanted);
            }
            other => ended.extend(End::of(&other)),
        };
        let (limits, now) = (&shard.prepared.http2_limits, shard.clock.now());
        let mut workspace = shard.workspace.borrow_mut();
        let read = client.receive(now, bytes, limits, &mut workspace, &mut out, &mut sink);
        drop(workspace);
        if let Some(connection) = self.state.connection_mut(line) {
            connection.machine = machine;
        }
        let sent = if out.is_empty() { Ok(()) } else { self.state.send(line, &out, cx) };
        shard.frame_buffer.replace(out);
        for (token, end) in ended {
            self.stream_ended(shard, line, token, end, cx);
        }
        // Who waited for the settings of the target goes on.
        self.settle(shard, cx);
        match (read, sent) {
            (Err(violation), _) => {
                self.lost(shard, line, http2_failure(&violation), Ended::ByUs, cx);
            }
            (Ok(()), Err(error)) => self.broken(shard, line, &error, cx),
            (Ok(()), Ok(())) => self.send_rest(shard, line, cx),
        }
    }

    /// Sends what had no room before what came.
    fn send_rest(&mut self, shard: &Lane, line: u8, cx: &mut Context<'_>) {
        match self.go_on_sending(line, cx) {
            Ok(()) => {
                self.state.end_if_going(line);
                // Who waited for a place to open another connection goes on.
                self.settle(shard, cx);
            }
            Err(error) => self.broken(shard, line, &error, cx),
        }
    }

    /// Sends what was asked while the answers were read; where the session goes on to ask for more,
    /// that goes with it.
    fn go_on_sending(&mut self, line: u8, cx: &mut Context<'_>) -> io::Result<()> {
        if !matches!(self.session.doing, Doing::Step) {
            self.state.push_unsent(line, cx)?;
        }
        self.state.drain(line, cx)
    }

    /// Whose stream it is.
    fn who_asked(&self, line: u8, token: Token) -> Option<Which> {
        let is_its = |task: &Task| {
            let its = |one: &Exchange| one.number == token.0 && one.awaits.is_answer();
            task.exchange_on(line).is_some_and(its)
        };
        if is_its(&self.session) {
            return Some(Which::Session);
        }
        self.state.agenda.as_ref()?.tasks().iter().position(is_its).map(Which::Other)
    }

    /// Lets something be done with the exchange of a stream while it is read.
    fn of_stream(
        &mut self,
        shard: &Lane,
        line: u8,
        token: Token,
        bytes: usize,
        work: impl FnOnce(&Asker<'_>, &mut Exchange, Parts<'_, '_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(which) = self.who_asked(line, token) else { return Ok(()) };
        let mut taken = match which {
            Which::Session => None,
            Which::Other(place) => {
                let tasks = self.state.agenda.as_mut().map(|agenda| agenda.tasks_mut());
                tasks.map(|tasks| tasks.swap_remove(place))
            }
        };
        let task = taken.as_mut().unwrap_or(&mut self.session);
        let iteration = task.iteration(self.state.iterations);
        let Task { doing, detour, pc, due, .. } = task;
        let state = &mut self.state;
        let target = state.connection(line).map(|connection| connection.target);
        let asker = match (at(shard, state.session, *pc), target) {
            ((Instruction::Do(Statement::Http(http)), Plan::Http(plan)), Some(target)) => {
                let redirect = detour.as_ref().and_then(|detour| detour.redirect.as_ref());
                let unix_seconds = unix_seconds(shard, state.now);
                let listening = Listening { shard, http, plan, redirect, target, unix_seconds };
                Some(Asker::Http(listening))
            }
            ((Instruction::Do(Statement::Call(call)), Plan::Call(plan)), _) => {
                Some(Asker::Call(Listened { shard, call, plan, due: *due }))
            }
            _ => None,
        };
        let mut read = Ok(());
        if let (Doing::Exchange(exchange), Some(asker)) = (doing, asker) {
            exchange.came(bytes as u64, state.now);
            let jar = &mut state.jar;
            let mut scope = scope!(state, shard);
            scope.iterations = iteration;
            read = work(&asker, exchange, (jar, &mut scope));
        }
        if let (Some(task), Some(agenda)) = (taken, &mut self.state.agenda) {
            agenda.tasks_mut().push(task);
        }
        read
    }

    fn stream_ended(
        &mut self,
        shard: &Lane,
        line: u8,
        token: Token,
        end: End,
        cx: &mut Context<'_>,
    ) {
        let Some(which) = self.who_asked(line, token) else { return };
        self.with(which, shard, cx, |active| match end {
            End::Whole if matches!(active.instruction(), Instruction::Do(Statement::Call(_))) => {
                active.call_complete();
            }
            End::Whole => active.answer_complete(true, None),
            End::Refused(failure) => {
                active.user.cancel(line, token.0);
                active.stream_lost(&failure, Unheard::No);
            }
            End::Failed(failure) => active.stream_lost(&failure, Unheard::No),
            End::Unheard(code) => active.stream_lost(&unheard(code), Unheard::Told),
        });
    }
}

impl Active<'_> {
    /// The stream ended before its answer was complete. A target that was told the deadline gives
    /// up when we do.
    fn stream_lost(&mut self, failure: &Failure, unheard: Unheard) {
        if let Some(exchange) = self.take_exchange() {
            if self.user.now >= self.task.deadline {
                return self.exchange_timed_out(exchange);
            }
            self.answer_lost(exchange, failure, unheard, self.task.deadline);
        }
    }
}

/// Why a request failed that the target says it has not looked at, where it is not sent again.
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
