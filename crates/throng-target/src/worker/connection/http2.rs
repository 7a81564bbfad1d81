//! An HTTP/2 connection. The `h2` crate implements the protocol, so that the generator's
//! implementation is tested against a different one. Routes, latency, faults and counts are shared
//! with HTTP/1.1.

mod grpc;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use throng_base::Time;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::{spawn_local, yield_now};

use super::{Connection, End, Phase};
use crate::arrival::Arrival;
use crate::http::Pieces;
use crate::http::{
    self as http1, After, Content, DRAINED_BODY_BYTES_MAX, Events, HEAD_BYTES_MAX,
    KEPT_BODY_BYTES_MAX, Plan, Refusal, Reply,
};
use crate::output::Finish;
use crate::stats::Figures;
use crate::turn::Fault;

/// The flow-control window of a stream for request bodies.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// The limit for the overhead of waiting frames, 256 B each: gRPC calls may have as many messages
/// as streams.
const FRAMES_BUDGET_BYTES: usize = 16 * 1024 * 1024;
/// Filler is sent in pieces of this size.
static FILLER: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// Shared by the socket of a connection and its streams.
#[derive(Default)]
pub(super) struct Shared {
    /// Arrival times of the requests whose responses are queued but not written.
    pub(super) given: RefCell<Vec<Time>>,
    streams: Cell<u64>,
    /// The peer has closed its side.
    ended: Cell<bool>,
}

/// The socket for `h2`. It returns the bytes that were read before HTTP/2 was detected first.
struct Socket {
    connection: Rc<Connection>,
    shared: Rc<Shared>,
}

/// Serves the streams of a connection until its end.
pub(super) async fn serve(connection: Rc<Connection>) {
    connection.worker.figures().counts.http2.connections += 1;
    let shared = Rc::new(Shared::default());
    let end = accept(&connection, &shared).await;
    let unwritten = shared.given.borrow().len() as u64;
    connection.worker.figures().counts.unanswered += unwritten;
    connection.leave(end);
}

async fn accept(connection: &Rc<Connection>, shared: &Rc<Shared>) -> End {
    let socket = Socket { connection: Rc::clone(connection), shared: Rc::clone(shared) };
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(connection.worker.setup.options.streams_max)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .data_frame_budget(FRAMES_BUDGET_BYTES);
    let mut h2 = match builder.handshake::<_, Bytes>(socket).await {
        Ok(h2) => h2,
        Err(error) => return end_of(connection, shared, &error),
    };
    let mut taken = 0;
    loop {
        let accepted = poll_fn(|cx| {
            let over = matches!(connection.state.borrow().phase, Phase::Ended(_));
            if over { Poll::Ready(Err(())) } else { h2.poll_accept(cx).map(Ok) }
        });
        match accepted.await {
            Ok(Some(Ok((_, mut respond)))) if refuses(connection) => {
                respond.send_reset(Reason::REFUSED_STREAM);
            }
            Ok(Some(Ok((request, respond)))) => {
                taken += 1;
                if connection.worker.setup.options.goaway_after == Some(taken) {
                    connection.worker.figures().counts.http2.goaways += 1;
                    h2.graceful_shutdown();
                }
                spawn_local(Stream::open(connection, shared).serve(request, respond));
            }
            Ok(Some(Err(error))) => return end_of(connection, shared, &error),
            Ok(None) if shared.ended.get() => return End::ByPeer,
            Ok(None) => return End::ByUs,
            // The connection has reached its end time: it sends GOAWAY, which a peer that does not
            // read never receives.
            Err(()) => {
                h2.abrupt_shutdown(Reason::NO_ERROR);
                poll_fn(|cx| {
                    let _ = h2.poll_accept(cx);
                    Poll::Ready(())
                })
                .await;
                connection.state.borrow_mut().stream.say_goodbye();
                return End::ByUs;
            }
        }
    }
}

/// True if the next stream is refused, at random; counts it.
fn refuses(connection: &Connection) -> bool {
    let worker = &connection.worker;
    let share = worker.setup.options.refuse_streams;
    let refuses = share > 0.0 && worker.random.borrow_mut().chance(share);
    worker.figures().counts.http2.refused += u64::from(refuses);
    refuses
}

/// How a connection ended on an error of `h2`.
fn end_of(connection: &Connection, shared: &Shared, error: &h2::Error) -> End {
    if shared.ended.get() || (error.is_go_away() && error.is_remote()) {
        End::ByPeer
    } else if error.is_io() {
        End::Reset
    } else {
        connection.worker.figures().counts.refused += 1;
        End::ByUs
    }
}

/// One stream: a request and its response.
pub(super) struct Stream {
    pub(super) connection: Rc<Connection>,
    pub(super) shared: Rc<Shared>,
    /// The arrival of its head.
    pub(super) arrived: Time,
}

/// The peer disconnected, or has reset the stream.
pub(super) struct Gone {
    cancelled: bool,
}

impl From<h2::Error> for Gone {
    fn from(error: h2::Error) -> Gone {
        Gone { cancelled: error.is_reset() && error.is_remote() }
    }
}

/// Reports that the peer has reset the stream.
pub(super) trait PollReset {
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<Gone>;
}

impl PollReset for SendResponse<Bytes> {
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<Gone> {
        self.poll_reset(cx).map(|reset| Gone { cancelled: reset.is_ok() })
    }
}

impl PollReset for SendStream<Bytes> {
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<Gone> {
        self.poll_reset(cx).map(|reset| Gone { cancelled: reset.is_ok() })
    }
}

/// A response, and what follows its head.
struct StreamReply {
    head: Response<()>,
    body: Body,
}

enum Body {
    Bytes(Bytes),
    Filler(u64),
    Slow(Pieces),
    Events(Box<Events>),
}

impl Stream {
    /// The peer has opened a stream.
    fn open(connection: &Rc<Connection>, shared: &Rc<Shared>) -> Stream {
        let open = shared.streams.get() + 1;
        shared.streams.set(open);
        let counts = &mut connection.worker.figures().counts;
        counts.http2.streams_max = counts.http2.streams_max.max(open);
        let arrived = connection.state.borrow().arrived;
        Stream { connection: Rc::clone(connection), shared: Rc::clone(shared), arrived }
    }

    async fn serve(self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        if let Err(Gone { cancelled: true }) = self.answer(request, &mut respond).await {
            self.connection.worker.figures().counts.http2.cancelled += 1;
        }
        self.shared.streams.set(self.shared.streams.get() - 1);
    }

    async fn answer(
        &self,
        request: Request<RecvStream>,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<(), Gone> {
        if grpc::is_call(&request) {
            return grpc::serve(self, request, respond).await;
        }
        let head = head_text(&request);
        let head_only = request.method() == Method::HEAD;
        let understood = http1::parse(head.as_bytes()).and_then(|head| {
            let (plan, reply) = (http1::plan(&head, false)?, Reply::new(&head)?);
            Ok((plan, reply, head.expects_continue))
        });
        let (plan, reply, expects_continue) = match understood {
            Ok(understood) => understood,
            Err(refusal) => return self.refuse(refusal, head_only, respond).await,
        };
        let mut body = request.into_body();
        if expects_continue && !body.is_end_stream() {
            let go_on = with_status(StatusCode::CONTINUE);
            respond.send_informational(go_on)?;
        }
        let mut arrived = self.arrived;
        let mut kept = Vec::new();
        if !body.is_end_stream() {
            kept = match read(&mut body, plan.keeps_body()).await? {
                Ok(kept) => kept,
                Err(refusal) => return self.refuse(refusal, head_only, respond).await,
            };
            arrived = self.connection.state.borrow().arrived;
        }
        if let Plan::Admin(admin) = plan {
            // Without latency and uncounted: admin requests are not part of the load.
            let plan = admin.perform(&self.connection.worker.setup, &kept);
            let reply = Reply { slow: None, ..reply };
            return self.send(self.prepare(&plan, &[], reply), reply, respond).await;
        }
        // An event stream that its client leaves is not an unanswered request.
        let is_stream = matches!(plan, Plan::Events(_));
        let served = self.obey(plan, &kept, reply, arrived, respond).await;
        let unanswered = u64::from(served.is_err() && !is_stream);
        self.connection.worker.figures().counts.unanswered += unanswered;
        served
    }

    /// Responds to a complete request when the latency law or the queue allows it.
    async fn obey(
        &self,
        plan: Plan,
        body: &[u8],
        reply: Reply,
        arrived: Time,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<(), Gone> {
        self.count();
        let place = match self.connection.worker.enter_queue(arrived) {
            Ok(place) => place,
            Err(refused) => {
                let reply = Reply { slow: None, ..reply };
                let answer = self.prepare(&Plan::refused(refused), &[], reply);
                self.send(answer, reply, respond).await?;
                self.shared.given.borrow_mut().push(arrived);
                return Ok(());
            }
        };
        let (plan, due) = self.draw(plan, arrived);
        self.wait_until(due, respond).await?;
        if let Some(place) = place {
            poll_fn(|cx| match respond.poll_gone(cx) {
                Poll::Ready(gone) => Poll::Ready(Err(gone)),
                Poll::Pending => place.poll_departed(cx).map(Ok),
            })
            .await?;
        }
        let Some(plan) = plan else {
            respond.send_reset(Reason::INTERNAL_ERROR);
            return Ok(());
        };
        self.send(self.prepare(&plan, body, reply), reply, respond).await?;
        if !matches!(plan, Plan::Events(_)) {
            self.shared.given.borrow_mut().push(arrived);
        }
        Ok(())
    }

    fn count(&self) {
        let counts = &mut self.connection.worker.figures().counts;
        counts.requests += 1;
        counts.http2.requests += 1;
    }

    /// The response to a request and its time; `None` is a reset.
    fn draw(&self, plan: Plan, arrived: Time) -> (Option<Plan>, Time) {
        let worker = &self.connection.worker;
        let options = &worker.setup.options;
        let random = &mut *worker.random.borrow_mut();
        let counts = &mut worker.figures().counts;
        let plan = match Fault::draw(options, random, counts) {
            Fault::None => {
                if let Plan::Events(events) = &plan {
                    counts.event_streams += 1;
                    counts.event_streams_resumed += u64::from(events.resumed);
                }
                Some(plan)
            }
            Fault::Error => Some(Plan::Status(500)),
            Fault::Reset => None,
        };
        let arrival = Arrival { at: arrived, read: worker.clock.now() };
        (plan, options.latency.due(arrival, random))
    }

    async fn refuse(
        &self,
        refusal: Refusal,
        head_only: bool,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<(), Gone> {
        self.connection.worker.figures().counts.refused += 1;
        let reply = Reply { minor: 1, keep_alive: true, head_only, slow: None };
        let content = Content::Bytes(refusal.reason.as_bytes());
        let answer = make(reply, refusal.status, "text/plain", &[], content);
        self.send(answer, reply, respond).await
    }

    fn prepare(&self, plan: &Plan, body: &[u8], reply: Reply) -> StreamReply {
        let worker = &self.connection.worker;
        let random = &mut *worker.random.borrow_mut();
        http1::answer(plan, body, &worker.setup, random, |status, kind, extra, content| {
            make(reply, status, kind, extra, content)
        })
    }

    async fn wait_until(&self, due: Time, stream: &mut impl PollReset) -> Result<(), Gone> {
        let worker = &self.connection.worker;
        if due <= worker.clock.now() {
            return Ok(());
        }
        let mut sleep = std::pin::pin!(worker.timer.sleep(due - worker.clock.now()));
        poll_fn(|cx| match stream.poll_gone(cx) {
            Poll::Ready(gone) => Poll::Ready(Err(gone)),
            Poll::Pending => sleep.as_mut().poll(cx).map(Ok),
        })
        .await
    }

    async fn send(
        &self,
        answer: StreamReply,
        reply: Reply,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<(), Gone> {
        let StreamReply { head, body } = answer;
        let status = head.status().as_u16();
        let bodiless = reply.head_only || status == 204 || status == 304;
        let body = match body {
            Body::Slow(pieces) => return self.send_slowly(head, pieces, bodiless, respond).await,
            Body::Events(events) if !bodiless => {
                return self.send_events(head, *events, respond).await;
            }
            body => body,
        };
        let is_empty = match &body {
            Body::Bytes(bytes) => bytes.is_empty(),
            Body::Filler(left) => *left == 0,
            Body::Slow(_) | Body::Events(_) => false,
        };
        let mut stream = respond.send_response(head, bodiless || is_empty)?;
        match body {
            _ if bodiless || is_empty => Ok(()),
            Body::Bytes(bytes) => send_data(&mut stream, bytes, true).await,
            Body::Filler(size) => {
                let mut left = size;
                while left > 0 {
                    let piece = left.min(FILLER.len() as u64);
                    left -= piece;
                    let bytes = Bytes::from_static(&FILLER[..piece as usize]);
                    send_data(&mut stream, bytes, left == 0).await?;
                }
                Ok(())
            }
            Body::Slow(_) | Body::Events(_) => Ok(()),
        }
    }

    /// The head immediately, and each event when it is due.
    async fn send_events(
        &self,
        head: Response<()>,
        mut events: Events,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<(), Gone> {
        let worker = &self.connection.worker;
        let latency = worker.setup.options.latency;
        let mut due = worker.clock.now();
        let mut stream = respond.send_response(head, false)?;
        loop {
            let mut event = Vec::new();
            let (count, after) = events.step(&mut event);
            // Counted before sending, so that a client that has read it finds it counted.
            worker.figures().counts.events += count;
            send_data(&mut stream, Bytes::from(event), false).await?;
            match after {
                After::More(time) => {
                    due = latency.release(due + time);
                    self.wait_until(due, &mut stream).await?;
                }
                After::Complete => return Ok(stream.send_data(Bytes::new(), true)?),
                After::Fault(finish) => {
                    // Earlier output is written first.
                    yield_now().await;
                    match finish {
                        Finish::Reset => stream.send_reset(Reason::INTERNAL_ERROR),
                        Finish::Close | Finish::Linger => self.connection.time_over(),
                    }
                    return Ok(());
                }
            }
        }
    }

    /// The head and the first piece after one delay, and each further piece after another.
    async fn send_slowly(
        &self,
        head: Response<()>,
        pieces: Pieces,
        bodiless: bool,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<(), Gone> {
        let worker = &self.connection.worker;
        let latency = worker.setup.options.latency;
        let piece = Bytes::from(pieces.piece);
        let bodiless = bodiless || piece.is_empty();
        let mut due = latency.release(worker.clock.now() + pieces.sleep);
        self.wait_until(due, respond).await?;
        let mut stream = respond.send_response(head, bodiless)?;
        if bodiless {
            return Ok(());
        }
        for left in (0..pieces.left).rev() {
            send_data(&mut stream, piece.clone(), left == 0).await?;
            if left > 0 {
                due = latency.release(due + pieces.sleep);
                self.wait_until(due, &mut stream).await?;
            }
        }
        Ok(())
    }
}

/// Sends data as the flow-control window allows.
pub(super) async fn send_data(
    stream: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    last: bool,
) -> Result<(), Gone> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = poll_fn(|cx| match stream.poll_capacity(cx) {
            Poll::Ready(None) => stream.poll_gone(cx).map(Err),
            Poll::Ready(Some(room)) => Poll::Ready(room.map_err(Gone::from)),
            Poll::Pending => Poll::Pending,
        });
        let room = room.await?;
        let piece = bytes.split_to(room.min(bytes.len()));
        if !piece.is_empty() {
            stream.send_data(piece, last && bytes.is_empty())?;
        }
    }
    Ok(())
}

/// Reads a body to its end.
async fn read(body: &mut RecvStream, keeps: bool) -> Result<Result<Vec<u8>, Refusal>, Gone> {
    let (mut kept, mut received) = (Vec::new(), 0);
    while let Some(piece) = body.data().await {
        let piece = piece?;
        received += piece.len() as u64;
        body.flow_control().release_capacity(piece.len())?;
        if keeps {
            kept.extend_from_slice(&piece);
        }
        if received > DRAINED_BODY_BYTES_MAX || kept.len() > KEPT_BODY_BYTES_MAX {
            return Ok(Err(Refusal::new(413, "the body is too long")));
        }
    }
    Ok(Ok(kept))
}

/// The head of a request in HTTP/1.1 form, so that one parser handles both.
fn head_text(request: &Request<RecvStream>) -> String {
    let uri = request.uri();
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let host = request.headers().get("host").map(|host| String::from_utf8_lossy(host.as_bytes()));
    let host = uri.authority().map(|authority| authority.as_str().into()).or(host);
    let mut text = format!("{} {target} HTTP/1.1\r\n", request.method());
    text += &format!("host: {}\r\n", host.unwrap_or_default());
    for (name, value) in request.headers().iter().filter(|(name, _)| *name != "host") {
        text += &format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
    }
    text + "\r\n"
}

fn with_status(status: StatusCode) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = status;
    head
}

fn make(
    reply: Reply,
    status: u16,
    kind: &str,
    extra: &[(&str, &str)],
    content: Content<'_>,
) -> StreamReply {
    let status_code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut head = with_status(status_code);
    let mut add = |name: &str, value: &str| {
        let name = HeaderName::from_bytes(name.as_bytes());
        // Values that are not valid headers are left out: a cookie or a content type from the
        // request.
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            head.headers_mut().append(name, value);
        }
    };
    extra.iter().for_each(|(name, value)| add(name, value));
    let pieces = http1::pieces(reply, status, &content);
    if status != 204 && status != 304 {
        add("content-type", kind);
        let length = match &content {
            Content::Bytes(bytes) => Some(bytes.len() as u64),
            Content::Filler(size) => Some(*size),
            Content::Nothing => Some(0),
            Content::Chunked(_) | Content::Events(_) => None,
        };
        if let Some(length) = length.filter(|_| pieces.is_none()) {
            add("content-length", &length.to_string());
        }
    }
    let body = match (pieces, content) {
        (Some(pieces), _) => Body::Slow(pieces),
        (None, Content::Bytes(bytes)) => Body::Bytes(Bytes::copy_from_slice(bytes)),
        (None, Content::Filler(size) | Content::Chunked(size)) => Body::Filler(size),
        (None, Content::Nothing) => Body::Bytes(Bytes::new()),
        (None, Content::Events(events)) => Body::Events(Box::new(events.clone())),
    };
    StreamReply { head, body }
}

impl Socket {
    /// The queued output is written.
    fn written(&self, figures: &mut Figures) {
        let mut given = self.shared.given.borrow_mut();
        if given.is_empty() {
            return;
        }
        let now = self.connection.worker.clock.now();
        for arrived in given.drain(..) {
            figures.service.record((now - arrived).as_nanos() as u64);
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let state = &mut *self.connection.state.borrow_mut();
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        if !state.kept.is_empty() {
            let taken = state.kept.len().min(buffer.remaining());
            buffer.put_slice(&state.kept[..taken]);
            state.kept.drain(..taken);
            return Poll::Ready(Ok(()));
        }
        let worker = &self.connection.worker;
        let received = ready!(state.stream.poll_read(cx, buffer.initialize_unfilled()))?;
        if received.bytes == 0 {
            self.shared.ended.set(true);
        } else {
            state.arrived = worker.arrivals.note(received.stamp).at;
            worker.figures().counts.bytes_in += received.bytes as u64;
            buffer.advance(received.bytes);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            // Locked during the write, so that a client that has read a response finds it counted.
            let figures = &mut *self.connection.worker.figures();
            let stream = &mut self.connection.state.borrow_mut().stream;
            match stream.try_write(bytes) {
                Ok(written) => {
                    figures.counts.bytes_out += written as u64;
                    if written == bytes.len() {
                        self.written(figures);
                    }
                    return Poll::Ready(Ok(written));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(stream.poll_write_ready(cx))?;
                    stream.flush()?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = &mut self.connection.state.borrow_mut().stream;
        while stream.holds_back() {
            ready!(stream.poll_write_ready(cx))?;
            stream.flush()?;
        }
        self.written(&mut self.connection.worker.figures());
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.state.borrow_mut().stream.say_goodbye();
        Poll::Ready(Ok(()))
    }
}
