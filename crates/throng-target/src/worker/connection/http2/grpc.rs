//! A gRPC call on an HTTP/2 stream. Faults of requests apply once per call; latency applies to each
//! request message that gets a reply.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Method as HttpMethod, Request, Response};
use prost::Message;
use throng_base::grpc::Code;
use throng_base::{Random, Time};

use super::{Gone, PollReset, Stream, send_data};
use crate::arrival::Arrival;
use crate::grpc::{
    CountRequest, Encoding, MESSAGE_BYTES_MAX, Messages, Method, ReflectionRequest, SayReply,
    SayRequest, Status, timeout, write_message,
};
use crate::queue::Refused;
use crate::stats::GrpcStats;
use crate::turn::{Fault, WAITING_ANSWERS_MAX};
use crate::worker::{Due, QueuePlace};

/// True if a request is a call with protobuf messages.
pub(super) fn is_call(request: &Request<RecvStream>) -> bool {
    let kind = request.headers().get("content-type").map(HeaderValue::as_bytes);
    let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    let rest = rest.map(|rest| rest.strip_prefix(b"+proto").unwrap_or(rest));
    request.method() == HttpMethod::POST && matches!(rest, Some([] | [b';', ..]))
}

/// Serves a call until its end.
pub(super) async fn serve(
    stream: &Stream,
    request: Request<RecvStream>,
    respond: &mut SendResponse<Bytes>,
) -> Result<(), Gone> {
    let (head, body) = request.into_parts();
    let method = Method::at(head.uri.path());
    let encoding = Encoding::named(head.headers.get("grpc-encoding"));
    let time = head.headers.get("grpc-timeout").map(timeout).transpose();
    let mut call = Call {
        stream,
        respond,
        replies: None,
        body,
        messages: Messages::new(*encoding.as_ref().unwrap_or(&Encoding::Identity)),
        encoding: *encoding.as_ref().unwrap_or(&Encoding::Identity),
        deadline: deadline(stream.arrived, time.as_ref().ok().copied().flatten()),
        woken: Time::NEVER,
        is_counted: method != Some(Method::Reflection),
        is_drawn: false,
        served: None,
    };
    if call.is_counted {
        stream.count();
        stream.connection.worker.figures().counts.grpc.calls += 1;
    }
    let end = match encoding.and(time) {
        Ok(_) => call.answer(method).await,
        Err(status) => Err(End::Status(status)),
    };
    let ended = match end {
        Ok(()) => call.end(&Status::ok()),
        Err(End::Status(status)) => call.end(&status),
        Err(End::Reset) => {
            call.reset();
            Ok(())
        }
        Err(End::Gone(gone)) => Err(gone),
    };
    if ended.is_err() && call.is_counted {
        stream.connection.worker.figures().counts.unanswered += 1;
    }
    ended
}

fn deadline(arrived: Time, timeout: Option<Duration>) -> Time {
    timeout.map_or(Time::NEVER, |timeout| arrived + timeout)
}

/// Why a call ends early.
enum End {
    Status(Status),
    /// A fault resets it.
    Reset,
    Gone(Gone),
}

impl From<Status> for End {
    fn from(status: Status) -> End {
        End::Status(status)
    }
}

impl From<Gone> for End {
    fn from(gone: Gone) -> End {
        End::Gone(gone)
    }
}

impl From<h2::Error> for End {
    fn from(error: h2::Error) -> End {
        End::Gone(error.into())
    }
}

/// The event that a waiting call receives.
enum Heard {
    /// A message and its arrival.
    Message(Vec<u8>, Time),
    /// The end of the messages, and its time.
    Ended(Time),
    /// The awaited time.
    Due,
}

/// Output of a chat that waits for its time.
enum Said {
    Reply(SayRequest, Time),
    End,
}

struct Call<'a> {
    stream: &'a Stream,
    respond: &'a mut SendResponse<Bytes>,
    /// Present after the response head is sent.
    replies: Option<SendStream<Bytes>>,
    body: RecvStream,
    messages: Messages,
    /// The encoding of replies, the same as that of the requests.
    encoding: Encoding,
    deadline: Time,
    /// The time for which the timer is set, so that it is set once.
    woken: Time,
    is_counted: bool,
    /// The faults for this call are drawn.
    is_drawn: bool,
    /// The arrival of the request that the end of the call answers.
    served: Option<Time>,
}

impl Call<'_> {
    fn count(&self, count: impl FnOnce(&mut GrpcStats)) {
        if self.is_counted {
            count(&mut self.stream.connection.worker.figures().counts.grpc);
        }
    }

    async fn answer(&mut self, method: Option<Method>) -> Result<(), End> {
        match method {
            Some(Method::Say) => {
                let request: SayRequest = self.only().await?;
                let reply = request.answer(1)?;
                self.reply(&reply).await
            }
            Some(Method::Count) => self.count_up().await,
            Some(Method::Collect) => self.collect().await,
            Some(Method::Chat) => self.chat().await,
            Some(Method::Reflection) => self.reflect().await,
            None => {
                self.served = Some(self.stream.arrived);
                self.wait_to_answer(self.stream.arrived).await?;
                Err(Status::new(Code::Unimplemented, "there is no such method").into())
            }
        }
    }

    async fn count_up(&mut self) -> Result<(), End> {
        let request: CountRequest = self.only().await?;
        request.check()?;
        // The duration of a server stream is the requested one, so it is not counted as service
        // time.
        self.served = None;
        let pause = Duration::from_millis(request.pause_ms as u64);
        let latency = self.stream.connection.worker.setup.options.latency;
        let mut due = self.stream.connection.worker.clock.now();
        for number in 1..=request.to {
            if number > 1 && !pause.is_zero() {
                due = latency.release(due + pause);
                self.wait_until(due).await?;
            }
            let reply = SayReply { text: String::new(), number: i64::from(number) };
            self.reply(&reply).await?;
        }
        Ok(())
    }

    async fn collect(&mut self) -> Result<(), End> {
        let (mut texts, mut bytes, mut number) = (Vec::new(), 0, 0);
        let arrived = loop {
            match self.hear(Time::NEVER, true).await? {
                Heard::Message(message, arrived) => {
                    let request: SayRequest = decode(&message)?;
                    if let Err(status) = request.check() {
                        self.served = Some(arrived);
                        self.wait_to_answer(arrived).await?;
                        return Err(status.into());
                    }
                    bytes += request.text.len() + 1;
                    number += 1;
                    if bytes > MESSAGE_BYTES_MAX {
                        return Err(too_long().into());
                    }
                    texts.push(request.text);
                }
                Heard::Ended(arrived) => break arrived,
                Heard::Due => {}
            }
        };
        self.served = Some(arrived);
        self.wait_to_answer(arrived).await?;
        self.reply(&SayReply { text: texts.join(" "), number }).await
    }

    /// Echoes each message when it is due, in order, and reads the next ones meanwhile.
    async fn chat(&mut self) -> Result<(), End> {
        let mut waiting = VecDeque::new();
        let (mut last, mut number, mut is_open) = (Time::ZERO, 0, true);
        loop {
            let until = waiting.front().map_or(Time::NEVER, |(due, _)| *due);
            let reads = is_open && waiting.len() < WAITING_ANSWERS_MAX;
            let (said, arrived) = match self.hear(until, reads).await? {
                Heard::Message(message, arrived) => {
                    (Said::Reply(decode(&message)?, arrived), arrived)
                }
                Heard::Ended(arrived) => {
                    is_open = false;
                    (Said::End, arrived)
                }
                Heard::Due => match waiting.pop_front() {
                    Some((_, Said::Reply(request, arrived))) => {
                        self.served = Some(arrived);
                        self.suffer()?;
                        number += 1;
                        let reply = request.answer(number)?;
                        self.reply(&reply).await?;
                        self.stream.shared.given.borrow_mut().extend(self.served.take());
                        continue;
                    }
                    _ => return self.suffer(),
                },
            };
            last = self.due(arrived).max(last);
            waiting.push_back((last, said));
        }
    }

    async fn reflect(&mut self) -> Result<(), End> {
        while let Heard::Message(message, _) = self.hear(Time::NEVER, true).await? {
            let request: ReflectionRequest = decode(&message)?;
            self.reply(&request.answer()).await?;
        }
        Ok(())
    }

    /// The only request of a call, when its reply is due.
    async fn only<M: Message + Default>(&mut self) -> Result<M, End> {
        let wrong = || Status::new(Code::Unimplemented, "the method takes exactly one message");
        let Heard::Message(message, _) = self.hear(Time::NEVER, true).await? else {
            return Err(wrong().into());
        };
        let Heard::Ended(arrived) = self.hear(Time::NEVER, true).await? else {
            return Err(wrong().into());
        };
        self.served = Some(arrived);
        self.wait_to_answer(arrived).await?;
        Ok(decode(&message)?)
    }

    /// When the reply to a message with this arrival is due.
    fn due(&self, arrived: Time) -> Time {
        let worker = &self.stream.connection.worker;
        let random: &mut Random = &mut worker.random.borrow_mut();
        let arrival = Arrival { at: arrived, read: worker.clock.now() };
        worker.setup.options.latency.due(arrival, random)
    }

    async fn wait_to_answer(&mut self, arrived: Time) -> Result<(), End> {
        match self.stream.connection.worker.enter_queue(arrived) {
            Ok(None) => self.wait_until(self.due(arrived)).await?,
            Ok(Some(place)) => self.wait_in_queue(&place).await?,
            Err(refused) => return Err(refused_with(refused).into()),
        }
        self.suffer()
    }

    /// Waits for the server's queue. If the deadline of the call passes, the request leaves the
    /// queue.
    async fn wait_in_queue(&mut self, place: &QueuePlace) -> Result<(), End> {
        poll_fn(|cx| match place.poll_departed(cx) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => self.poll_hear(cx, Time::NEVER, false).map_ok(drop),
        })
        .await
    }

    async fn wait_until(&mut self, due: Time) -> Result<(), End> {
        self.hear(due, false).await.map(drop)
    }

    /// Applies the faults to the call at its first reply.
    fn suffer(&mut self) -> Result<(), End> {
        if std::mem::replace(&mut self.is_drawn, true) {
            return Ok(());
        }
        let worker = &self.stream.connection.worker;
        let random = &mut *worker.random.borrow_mut();
        let fault = Fault::draw(&worker.setup.options, random, &mut worker.figures().counts);
        match fault {
            Fault::None => Ok(()),
            Fault::Reset => Err(End::Reset),
            Fault::Error => {
                let code = if random.unit() < 0.5 { Code::Internal } else { Code::Unavailable };
                Err(Status::new(code, "an injected fault").into())
            }
        }
    }

    /// Waits for a time or an earlier event. The deadline of the call ends it.
    async fn hear(&mut self, until: Time, reads: bool) -> Result<Heard, End> {
        poll_fn(|cx| self.poll_hear(cx, until, reads)).await
    }

    fn poll_hear(
        &mut self,
        cx: &mut Context<'_>,
        until: Time,
        reads: bool,
    ) -> Poll<Result<Heard, End>> {
        let now = self.stream.connection.worker.clock.now();
        if until <= self.deadline && until <= now {
            return Poll::Ready(Ok(Heard::Due));
        }
        if self.deadline <= now {
            let status = Status::new(Code::DeadlineExceeded, "the deadline has passed");
            return Poll::Ready(Err(status.into()));
        }
        if reads && let Poll::Ready(heard) = self.poll_message(cx) {
            return Poll::Ready(heard);
        }
        let gone = match &mut self.replies {
            Some(replies) => replies.poll_gone(cx),
            None => self.respond.poll_gone(cx),
        };
        if let Poll::Ready(gone) = gone {
            return Poll::Ready(Err(gone.into()));
        }
        if self.woken <= now {
            self.woken = Time::NEVER;
        }
        let next = until.min(self.deadline);
        if next < self.woken {
            self.woken = next;
            let timer = &self.stream.connection.worker.timer;
            timer.at(next, Due::Wake(cx.waker().clone()));
        }
        Poll::Pending
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Heard, End>> {
        loop {
            if let Some(message) = self.messages.take()? {
                self.count(|counts| counts.messages_in += 1);
                return Poll::Ready(Ok(Heard::Message(message, self.now_arrived())));
            }
            let Some(bytes) = ready!(self.body.poll_data(cx)) else { break };
            let bytes = bytes?;
            self.body.flow_control().release_capacity(bytes.len())?;
            self.messages.receive(&bytes);
        }
        if !self.messages.is_empty() {
            let status = Status::new(Code::Internal, "the last message is not complete");
            return Poll::Ready(Err(status.into()));
        }
        Poll::Ready(Ok(Heard::Ended(self.now_arrived())))
    }

    /// The arrival of a message that is read now.
    fn now_arrived(&self) -> Time {
        self.stream.connection.state.borrow().arrived
    }

    async fn reply(&mut self, message: &impl Message) -> Result<(), End> {
        let bytes = Bytes::from(write_message(self.encoding, message));
        let replies = match &mut self.replies {
            Some(replies) => replies,
            none => none.insert(self.respond.send_response(head(self.encoding), false)?),
        };
        send_data(replies, bytes, false).await?;
        self.count(|counts| counts.messages_out += 1);
        Ok(())
    }

    /// Sends the status of the call: after its messages, or with the head if it has none.
    fn end(&mut self, status: &Status) -> Result<(), Gone> {
        match &mut self.replies {
            Some(replies) => {
                let mut trailers = HeaderMap::new();
                status.write(&mut trailers);
                replies.send_trailers(trailers)?;
            }
            None => {
                let mut head = head(Encoding::Identity);
                status.write(head.headers_mut());
                self.respond.send_response(head, true)?;
            }
        }
        self.count(|counts| *counts.statuses.entry(status.name()).or_default() += 1);
        self.stream.shared.given.borrow_mut().extend(self.served);
        Ok(())
    }

    fn reset(&mut self) {
        match &mut self.replies {
            Some(replies) => replies.send_reset(Reason::INTERNAL_ERROR),
            None => self.respond.send_reset(Reason::INTERNAL_ERROR),
        }
    }
}

fn head(encoding: Encoding) -> Response<()> {
    let mut head = Response::new(());
    let headers = head.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-accept-encoding", HeaderValue::from_static("identity,gzip"));
    if encoding == Encoding::Gzip {
        headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
    }
    head
}

fn decode<M: Message + Default>(message: &[u8]) -> Result<M, Status> {
    M::decode(message).map_err(|_| Status::new(Code::Internal, "a message does not match its type"))
}

/// The status of a call that the server's limits refuse.
fn refused_with(refused: Refused) -> Status {
    match refused {
        Refused::Full => Status::new(Code::Unavailable, "the queue is full"),
        Refused::Limited(_) => Status::new(Code::ResourceExhausted, "too many requests"),
    }
}

fn too_long() -> Status {
    Status::new(Code::ResourceExhausted, "the reply is too long")
}
