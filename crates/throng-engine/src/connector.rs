//! Opens connections: TCP, UDP, unix sockets, TLS, and the handshakes in `protocol`. Each stage is
//! timed. The state of an opening connection is boxed, and freed once the connection is open.

pub(crate) mod allowed;
mod offers;
pub(crate) mod protocol;
pub(crate) mod resolve;
mod secure;
mod socket;
mod tunnel;

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use throng_base::units::format_duration;
use throng_base::{Said, Time};
use throng_metrics::{Cause, Stage};
use throng_program::{Family, HttpVersion, Proxy, Scheme, Slow};
use throng_protocol::events::Resume;
use throng_protocol::http1::{Event as Part, Head, RequestKind, ResponseReader, retry_after};
use throng_protocol::http2;
use throng_protocol::machine::{Ends, Event, Input, Machine};
use tokio::io::Interest;
use tokio::net::{TcpStream, UdpSocket};
use tokio_rustls::TlsConnector;

pub(crate) use protocol::{Handshake, login_to};
pub use protocol::{ReflectError, reflect};
pub(crate) use secure::secure;
pub(crate) use socket::has_way;
#[cfg(test)]
pub(crate) use socket::tests::begin_all;

use crate::failure::shown;
use crate::failure::{Failure, cause_of, client_refused, io_failure, tls_error};
use crate::network::routes::Route;
use crate::network::sources::SourceKind;
use crate::network::{Connector, Network, tls};
use crate::recorder::spent::Times;
use crate::shard::Lane;
use crate::system;
use crate::trace::{Shown, What, Who, text_of_head};
use crate::transport::datagrams::Datagrams;
use crate::transport::stream::{self, Below, Stamped};
use crate::transport::{Transport, unix};
use socket::{Place, begin};

/// An open connection.
pub(crate) struct Opened {
    pub(crate) transport: Transport,
    /// HTTP/2 was negotiated, or the target is known to use it.
    pub(crate) multiplexes: bool,
    /// The protocol machine, if a handshake created it.
    pub(crate) machine: Option<Machine>,
    /// The traffic before, with the received bytes that the machine has not read.
    pub(crate) pulled: Pulled,
    /// The status of the upgrade response; 0 without one.
    pub(crate) status: u16,
}

impl Opened {
    /// What a handshake ends with, or nothing but a transport.
    fn by(machine: impl Into<Option<Machine>>, transport: Transport, pulled: Pulled) -> Opened {
        let machine = machine.into();
        Opened { transport, multiplexes: false, machine, pulled, status: 0 }
    }
}

/// The request of a handshake.
pub(crate) struct Ask {
    pub(crate) path: String,
    /// Without cookies.
    pub(crate) headers: Vec<(String, String)>,
    /// The Cookie header of the scenario and the user, with its line end; empty if there are no
    /// cookies.
    pub(crate) cookies: Vec<u8>,
    /// The method of an event stream; empty for GET.
    pub(crate) method: String,
    pub(crate) body: Vec<u8>,
    /// The position at which a lost event stream resumes.
    pub(crate) resume: Resume,
}

impl Ask {
    /// The value of the Host header, if the scenario sets one.
    pub(crate) fn own_host(&self) -> Option<&str> {
        let own = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        own.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// The cookies that the response to a handshake sets.
pub(crate) struct SetCookies {
    /// Of the request.
    pub(crate) path: String,
    pub(crate) host: Option<String>,
    pub(crate) values: Vec<Box<[u8]>>,
}

/// The target of a connection, and how to open it.
pub(crate) struct Order {
    pub(crate) target: u16,
    pub(crate) handshake: Option<Handshake>,
    /// How slowly the user ever reads: such sockets have small buffers.
    pub(crate) slow: Slow,
    pub(crate) progress: Rc<Progress>,
    /// The user, for the log of every step.
    pub(crate) who: Who,
}

impl Order {
    /// Keeps the cookies that the response to the handshake sets, even if it refuses the handshake.
    fn note_cookies(&self, shard: &Lane, head: &Head<'_>) {
        let Some(ask) = self.handshake.as_ref().and_then(Handshake::ask) else { return };
        if head.has_set_cookie && shard.prepared.program.connection.cookies {
            let (path, host) = (ask.path.clone(), ask.own_host().map(String::from));
            let values = head.headers.get_all("set-cookie").map(Box::from).collect();
            let set = SetCookies { path, host, values };
            self.progress.set_cookies.set(Some(Box::new(set)));
        }
    }
}

/// The current stage of an opening connection, and when that stage started.
pub(crate) struct Progress {
    pub(crate) route: Rc<Route>,
    /// The index of the route's address: incremented by each attempt and each refusal.
    pub(crate) turn: Cell<u64>,
    pub(crate) stage: Cell<Stage>,
    /// How long each finished stage took; zero where there was none.
    pub(crate) times: Cell<Times>,
    /// When the socket was connected; [`Time::NEVER`] before.
    pub(crate) established: Cell<Time>,
    pub(crate) set_cookies: Cell<Option<Box<SetCookies>>>,
    /// The machine that opens the connection, if it outlives connections; only until it is open.
    pub(crate) machine: Cell<Option<Machine>>,
}

impl Progress {
    pub(crate) fn new(route: Rc<Route>, turn: u64) -> Progress {
        Progress {
            route,
            turn: Cell::new(turn),
            stage: Cell::new(Stage::Connect),
            times: Cell::default(),
            established: Cell::new(Time::NEVER),
            set_cookies: Cell::default(),
            machine: Cell::default(),
        }
    }

    /// The row of the address that it connects to.
    pub(crate) fn place(&self) -> u16 {
        self.route.place(self.turn.get())
    }
}

/// The protocols that a connection to a target of this scheme offers in its TLS handshake. The
/// upgrade to WebSocket needs HTTP/1.1.
fn offer(shard: &Lane, scheme: Scheme, order: &Order) -> &'static tls::Offer {
    match scheme {
        Scheme::Https if !matches!(order.handshake, Some(Handshake::WebSocket(_))) => {
            tls::offer_of(shard.prepared.program.connection.http_version)
        }
        scheme if scheme.needs_http2() => tls::HTTP2,
        _ => tls::HTTP1,
    }
}

/// Opens a connection. The order's progress always shows the current stage.
#[expect(clippy::manual_async_fn, reason = "an async fn holds each of its arguments twice")]
pub(crate) fn open(shard: Rc<Lane>, order: Order) -> impl Future<Output = Result<Opened, Failure>> {
    async move {
        let result = open_stages(&shard, &order).await;
        if let Err(failure) = &result {
            let stage = order.progress.stage.get();
            shard.recorder.borrow_mut().stage_failed(stage, failure.cause);
        }
        result
    }
}

async fn open_stages(shard: &Rc<Lane>, order: &Order) -> Result<Opened, Failure> {
    let (transport, before) = match &shard.connector {
        Connector::Network(network) => reach(shard, order, network).await?,
        #[cfg(test)]
        Connector::World(world) => {
            let addresses = &order.progress.route.addresses;
            let work = pin!(to_any(shard, order, |nth| world.connect(addresses[nth])));
            let stream = timed(shard, order, Stage::Connect, work).await?;
            (Transport::Memory(stream), Pulled::default())
        }
    };
    finish(shard, order, transport, before).await
}

/// Connects to the target, with TLS if it has any, but without the handshake.
async fn reach(
    shard: &Lane,
    order: &Order,
    network: &Network,
) -> Result<(Transport, Pulled), Failure> {
    let target = &shard.prepared.targets[usize::from(order.target)].target;
    let mut carrier = carry(shard, order, network).await?;
    let mut before = Pulled::default();
    if let Some(proxy) = proxy_of(shard, order.target) {
        order.progress.stage.set(Stage::Proxy);
        let asked = tunnel::open(shard, order, proxy, &mut carrier);
        before = timed(shard, order, Stage::Proxy, Box::pin(asked)).await?;
    }
    let (tls, is_asked) = match protocol::ask_for_tls((network, target), &mut carrier, &mut before)
    {
        Some(asked) => {
            order.progress.stage.set(Stage::Upgrade);
            (asked.await?, true)
        }
        None if target.scheme.is_secure() => {
            (network.tls(offer(shard, target.scheme, order)), false)
        }
        None => (None, false),
    };
    let (tls, below) = match (tls, carrier) {
        (Some(tls), Transport::Tcp(stream) | Transport::Stamped(stream)) => {
            (tls, Below::Tcp(stream))
        }
        (Some(tls), Transport::Unix(stream)) => (tls, Below::Unix(stream)),
        (_, carrier) => return Ok((carrier, before)),
    };
    if !is_asked {
        before.nothing_more()?;
    }
    order.progress.stage.set(Stage::Tls);
    let name = network.server_names[usize::from(order.target)].clone();
    // Boxed, so that opening connections without TLS are not as large.
    let in_plain = if is_asked { secure::speaks_plain } else { speaks_no_tls };
    let work = Box::pin(handshake(tls, name, below, in_plain));
    Ok((timed(shard, order, Stage::Tls, work).await?, before))
}

/// The proxy between throng and a target, if there is one.
pub(crate) fn proxy_of(shard: &Lane, target: u16) -> Option<&Proxy> {
    let target = &shard.prepared.targets[usize::from(target)].target;
    shard.prepared.program.connection.routing.proxy_of(target)
}

impl Pulled {
    /// If the client sends first, nothing may have been received.
    fn nothing_more(&self) -> Result<(), Failure> {
        match self.surplus.is_empty() {
            true => Ok(()),
            false => {
                let detail = say!("data was received before any request was sent");
                Err(Failure::new(Cause::Malformed, detail))
            }
        }
    }
}

/// The socket of the connection: connected, or for datagrams.
async fn carry(shard: &Lane, order: &Order, network: &Network) -> Result<Transport, Failure> {
    let target = &shard.prepared.targets[usize::from(order.target)];
    if let Some(socket) = &target.target.unix_socket {
        let work = Box::pin(unix::connect(socket));
        let stream = timed(shard, order, Stage::Connect, work).await?;
        return Ok(Transport::Unix(stream));
    }
    let route = &order.progress.route;
    let pool = |nth: usize| network.pool(order.target, route, route.addresses[nth]);
    let (slow, addresses) = (order.slow, &route.addresses);
    let user = network.wired.as_ref().and_then(|wired| wired.source(order.who));
    if target.target.scheme == Scheme::Udp {
        let one = async |nth: usize| {
            let address = addresses[nth];
            let place = Place { network, pool: &pool(nth), address, slow, user };
            udp(&place, shard.clock.now())
        };
        let work = pin!(to_any(shard, order, one));
        let socket = timed(shard, order, Stage::Connect, work).await?;
        return Ok(Transport::Udp(Datagrams::new(socket)));
    }
    let one = async |nth: usize| {
        let address = addresses[nth];
        let place = Place { network, pool: &pool(nth), address, slow, user };
        tcp(shard, &place).await
    };
    let work = pin!(to_any(shard, order, one));
    let stream = timed(shard, order, Stage::Connect, work).await;
    let stream = stream.map_err(|failure| tunnel::unreached(shard, order.target, failure))?;
    Ok(match network.stamps {
        Some(_) => Transport::Stamped(stream),
        None => Transport::Tcp(stream),
    })
}

/// Connects to the next address of the target in turn and, if it refuses, to the one after it, as
/// clients do (RFC 8305). If all of them refuse, the error names each.
async fn to_any<T>(
    shard: &Lane,
    order: &Order,
    connect: impl AsyncFn(usize) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let route = &*order.progress.route;
    let first = order.progress.turn.get();
    let mut refused: Option<Failure> = None;
    let mut tried = 0;
    loop {
        let turn = first.wrapping_add(tried);
        order.progress.turn.set(turn);
        tried += 1;
        match connect(route.nth(turn)).await {
            Ok(connected) => {
                if refused.is_some() {
                    passed_over(shard, route, first..turn);
                }
                return Ok(connected);
            }
            Err(failure) => {
                let goes_on = leaves_others(failure.cause);
                if goes_on {
                    shard.routes.failed(order.target);
                }
                let failure = match refused {
                    None => failure,
                    // A problem of this host explains more than a problem of an address.
                    Some(_) if !goes_on => return Err(failure),
                    Some(before) => failure.behind(before),
                };
                if !goes_on || tried >= route.addresses.len() as u64 {
                    return Err(failure);
                }
                refused = Some(failure);
            }
        }
    }
}

/// Whether another address may accept a connection that one did not.
fn leaves_others(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::ConnectRefused
            | Cause::ConnectTimeout
            | Cause::Unreachable
            | Cause::NetworkFailed
            | Cause::Reset
    )
}

/// Counts the refusals of the addresses that were tried before one accepted the connection.
fn passed_over(shard: &Lane, route: &Route, turns: std::ops::Range<u64>) {
    let mut recorder = shard.recorder.borrow_mut();
    for turn in turns {
        if let Some(row) = recorder.targets.of(route.place(turn)) {
            row.connections_passed_over += 1;
        }
    }
}

async fn finish(
    shard: &Rc<Lane>,
    order: &Order,
    transport: Transport,
    before: Pulled,
) -> Result<Opened, Failure> {
    let Some(handshake) = &order.handshake else {
        let multiplexes = multiplexes(shard, order, &transport)?;
        return Ok(Opened { multiplexes, ..Opened::by(None, transport, before) });
    };
    if !handshake.is_greeted() {
        before.nothing_more()?;
    }
    order.progress.stage.set(Stage::Upgrade);
    let work = handshake.open(shard, order, transport, &before.surplus);
    let mut opened = timed(shard, order, Stage::Upgrade, Box::pin(work)).await?;
    opened.pulled.bytes_in += before.bytes_in;
    opened.pulled.bytes_out += before.bytes_out;
    Ok(opened)
}

/// The error of a connection that was not open in time.
pub(crate) fn no_answer(
    shard: &Lane,
    target: u16,
    (stage, missing): (Stage, Option<protocol::Missing>),
    waited: Duration,
) -> Failure {
    let waited = format_duration(waited);
    let (cause, detail) = match (stage, missing, proxy_of(shard, target)) {
        (Stage::Upgrade, Some(missing), _) => (Cause::Timeout, missing(&waited)),
        (Stage::Tls, ..) => {
            (Cause::Timeout, say!("the TLS handshake did not complete within {waited}"))
        }
        (.., Some(proxy)) => {
            let proxy = proxy.authority();
            (Cause::ProxyFailed, say!("no response from the proxy {proxy} within {waited}"))
        }
        _ => (Cause::ConnectTimeout, say!("the connection was not established within {waited}")),
    };
    Failure::new(cause, detail)
}

/// Whether this connection uses HTTP/2.
fn multiplexes(shard: &Lane, order: &Order, transport: &Transport) -> Result<bool, Failure> {
    let target = &shard.prepared.targets[usize::from(order.target)].target;
    let version = shard.prepared.program.connection.http_version;
    let agreed = || transport.application_protocol() == Some(b"h2");
    let needed = match (target.scheme, version) {
        (Scheme::Http, HttpVersion::Http2) => return Ok(true),
        (Scheme::Https, HttpVersion::Auto) => return Ok(agreed()),
        (Scheme::Https, HttpVersion::Http2) => NO_HTTP2,
        (scheme, _) if scheme.needs_http2() => match scheme.is_secure() {
            true => protocol::NEEDS_HTTP2,
            false => return Ok(true),
        },
        _ => return Ok(false),
    };
    match agreed() {
        true => Ok(true),
        false => Err(Failure::new(Cause::WrongScheme, needed)),
    }
}

const NO_HTTP2: Said = say!(
    "throng offers h2 (ALPN), but the target did not choose a protocol; use HTTP version `auto` \
     or `1.1`"
);

/// The inner future is passed pinned: passed by value, this future would contain it twice.
async fn timed<T>(
    shard: &Lane,
    order: &Order,
    stage: Stage,
    work: impl Future<Output = Result<T, Failure>> + Unpin,
) -> Result<T, Failure> {
    shard.recorder.borrow_mut().stage_begins(stage);
    let begin = shard.clock.now();
    let done = work.await?;
    let now = shard.clock.now();
    let time = now - begin;
    shard.recorder.borrow_mut().stage_ok(stage, time);
    if stage == Stage::Connect {
        order.progress.established.set(now);
    }
    let mut times = order.progress.times.get();
    times[stage as usize] = time;
    order.progress.times.set(times);
    Ok(done)
}

/// The kernel retransmits a SYN after this time at the earliest (1 s, RFC 6298, 2.1).
const SYN_PATIENCE: Duration = Duration::from_millis(900);

async fn tcp(shard: &Lane, place: &Place<'_>) -> Result<TcpStream, Failure> {
    let address = place.address;
    let failed = |error: io::Error| refused(address, &error);
    let begun = shard.clock.now();
    let socket = begin(place, SourceKind::Stream, begun)?;
    let stream = stream::register(socket, place.network.stamps.is_some()).map_err(failed)?;
    let ready = stream.ready(Interest::WRITABLE).await.map_err(failed)?;
    // A failed connection is "closed" immediately; only then is a system call made to find out why.
    if ready.is_write_closed()
        && let Some(error) = stream.take_error().map_err(failed)?
    {
        return Err(failed(error));
    }
    if shard.clock.now() - begun >= SYN_PATIENCE
        && let Ok((_, 1.., _)) = system::tcp_state(&stream)
    {
        shard.recorder.borrow_mut().interval.connections.counts.syn_resent += 1;
    }
    Ok(stream)
}

/// A UDP socket that sends to its target and receives only from it. Opening it sends no packet.
fn udp(place: &Place<'_>, now: Time) -> Result<UdpSocket, Failure> {
    let socket = begin(place, SourceKind::Datagram, now)?;
    if place.network.stamps.is_some() {
        // Without kernel timestamps, a datagram arrives when it is read.
        let _ = system::stamp_arrivals(&socket);
    }
    UdpSocket::from_std(socket.into()).map_err(|error| refused(place.address, &error))
}

pub(crate) fn refused(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(cause_of(error), say!("{address}: {}", Said::reason(error)))
}

async fn handshake(
    tls: &TlsConnector,
    name: Option<ServerName<'static>>,
    below: Below,
    in_plain: fn(&[u8]) -> Failure,
) -> Result<Transport, Failure> {
    let Some(name) = name else {
        let detail = say!("the host name is not valid as a TLS server name; set `tls.server_name`");
        return Err(Failure::new(Cause::ScenarioFailed, detail));
    };
    let mut connecting = pin!(tls.connect(name, Stamped::new(below)));
    let mut heard = Heard::default();
    let connected = std::future::poll_fn(|cx| {
        if let Some(stream) = connecting.get_ref() {
            heard.look(stream, cx);
        }
        connecting.as_mut().poll(cx)
    });
    match connected.await {
        Ok(stream) => Ok(Transport::Tls(Box::new(stream))),
        Err(error) => {
            // The peek consumed the error of a reset, so the handshake saw an end of stream.
            let error = heard.failed.take().unwrap_or(error);
            // A TLS record starts with its type (RFC 8446, 5.1).
            let is_plain = |kind: &u8| !(20..=24).contains(kind);
            if heard.bytes().first().is_some_and(is_plain) && tls_error(&error).is_some() {
                return Err(in_plain(heard.bytes()));
            }
            let failure = tls_failure(&error);
            let protocols = &tls.config().alpn_protocols;
            let told = tls_error(&error)
                .and_then(|error| offers::disagreement(error, heard.bytes(), protocols));
            Err(Failure { detail: told.unwrap_or(failure.detail), ..failure })
        }
    }
}

/// The first bytes from a target in a handshake: they show what it speaks instead of TLS.
#[derive(Default)]
struct Heard {
    bytes: [u8; 16],
    length: usize,
    failed: Option<io::Error>,
}

impl Heard {
    /// Peeks at the received bytes without consuming them.
    fn look(&mut self, stream: &Stamped, cx: &mut Context<'_>) {
        if self.length > 0 || self.failed.is_some() {
            return;
        }
        match stream.poll_peek(cx, &mut self.bytes) {
            Poll::Ready(Ok(length)) => self.length = length,
            Poll::Ready(Err(error)) => self.failed = Some(error),
            Poll::Pending => {}
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

pub(crate) fn tls_failure(error: &io::Error) -> Failure {
    let inner = tls_error(error);
    if let Some(failure) = inner.and_then(client_refused) {
        return failure;
    }
    let cause = match inner {
        Some(rustls::Error::InvalidCertificate(_)) => Cause::CertificateRefused,
        Some(_) => Cause::TlsFailed,
        None => match cause_of(error) {
            Cause::ClosedEarly | Cause::NetworkFailed => Cause::TlsFailed,
            other => other,
        },
    };
    let detail = match inner {
        Some(rustls::Error::InvalidCertificate(error)) => tls::certificate_words(error),
        _ => Said::reason(error),
    };
    Failure::new(cause, detail)
}

fn speaks_no_tls(heard: &[u8]) -> Failure {
    let detail = match heard.starts_with(b"HTTP/") {
        true => say!("this port speaks plain HTTP, without TLS: write `http://`, or `ws://`"),
        false => say!("this port does not speak TLS: it sent `{}` first", shown(heard)),
    };
    Failure::new(Cause::WrongScheme, detail)
}

/// An HTTP/1 request whose connection changes protocol after the response.
pub(crate) async fn ask_once<T>(
    shard: &Lane,
    order: &Order,
    transport: &mut Transport,
    kind: RequestKind,
    request: Vec<u8>,
    judge: impl FnMut(&Head<'_>) -> T,
) -> Result<Answer<T>, Failure> {
    let mut reader = ResponseReader::new();
    reader.expect(kind);
    shard.tell(order.who, shard.clock.now(), || What::Sent(Shown::of(&request)));
    converse(shard, order, transport, &mut Machine::Http1(reader), request, true, judge).await
}

/// The seconds that a refusal asks clients to wait (Retry-After); 0 if it does not.
fn refusal_s(head: &Head<'_>, unix_seconds: u64) -> u16 {
    let value = head.headers.get("retry-after").filter(|_| head.status >= 300);
    let seconds = value.and_then(|value| retry_after(value, unix_seconds));
    u16::try_from(seconds.unwrap_or(0)).unwrap_or(u16::MAX)
}

fn refused_by_target(
    error: &impl std::error::Error,
    (status, retry_after_s): (u16, u16),
) -> Failure {
    let failure = Failure::new(Cause::UpgradeRefused, Said::of_others(error.to_string()));
    Failure { status, retry_after_s, ..failure }
}

/// The outcome of a request that opens a connection.
pub(crate) struct Answer<T> {
    pub(crate) verdict: T,
    pub(crate) status: u16,
    /// The Retry-After of a refusal in seconds; 0 without one.
    pub(crate) retry_after_s: u16,
    pub(crate) pulled: Pulled,
}

/// Sends a request and reads the head of its response. The body of a refusal is not read.
pub(crate) async fn converse<T>(
    shard: &Lane,
    order: &Order,
    transport: &mut Transport,
    machine: &mut Machine,
    request: Vec<u8>,
    is_text: bool,
    mut judge: impl FnMut(&Head<'_>) -> T,
) -> Result<Answer<T>, Failure> {
    let unix_seconds = shard.unix_nanos(shard.clock.now()) / 1_000_000_000;
    let told = |bytes: &[u8]| {
        shard.tell(order.who, shard.clock.now(), || What::Received(Shown::of(bytes)));
    };
    let head = |event: &Event<'_>| match event {
        Event::Http(http2::Event::Reply { part: Part::Head(head), .. }) => {
            if !is_text {
                told(&text_of_head(head));
            }
            Some((head.status, refusal_s(head, unix_seconds), judge(head)))
        }
        _ => None,
    };
    let came = |bytes: &[u8]| {
        if is_text {
            told(bytes);
        }
    };
    let (said, pulled) = pull(shard, transport, machine, request, came, head).await?;
    let Some((status, retry_after_s, verdict)) = said else { return Err(closed(machine)) };
    Ok(Answer { verdict, status, retry_after_s, pulled })
}

/// The traffic until a connection was open.
#[derive(Default)]
pub(crate) struct Pulled {
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Bytes received after the response.
    pub(crate) surplus: Vec<u8>,
}

/// Sends the output of a machine, and reads until the expected event; None if the connection was
/// closed before.
async fn pull<T>(
    shard: &Lane,
    transport: &mut Transport,
    machine: &mut Machine,
    mut out: Vec<u8>,
    came: impl Fn(&[u8]),
    mut wanted: impl FnMut(&Event<'_>) -> Option<T>,
) -> Result<(Option<T>, Pulled), Failure> {
    let (mut pulled, mut found, mut count) = (Pulled::default(), None, 1);
    loop {
        write_all(transport, &out).await?;
        pulled.bytes_out += out.len() as u64;
        out.clear();
        if found.is_some() || count == 0 {
            return Ok((found, pulled));
        }
        let read = std::future::poll_fn(|cx| {
            let mut buffer = shard.read_buffer.borrow_mut();
            transport.poll_read(cx, &mut buffer).map(|read| {
                let bytes = &buffer[..read.map_err(|error| io_failure(&error))?.bytes];
                came(bytes);
                let mut input = Input::new(bytes, shard.clock.now(), Ends::Whole);
                let mut lent = shard.lent.borrow_mut();
                while found.is_none()
                    && let Some(event) = machine
                        .next(&mut input, &mut lent, &mut out)
                        .map_err(|violation| protocol::violation_failure(&violation))?
                {
                    found = wanted(&event);
                }
                pulled.bytes_in += bytes.len() as u64;
                pulled.surplus.extend_from_slice(input.rest());
                Ok::<usize, Failure>(bytes.len())
            })
        });
        count = read.await?;
    }
}

fn closed(machine: &mut Machine) -> Failure {
    let detail = match machine.end() {
        Ok(_) => say!("the connection was closed before the response"),
        Err(error) => Said::of_others(error.to_string()),
    };
    Failure::new(Cause::ClosedEarly, detail)
}

async fn write_all(transport: &mut Transport, mut bytes: &[u8]) -> Result<(), Failure> {
    while !bytes.is_empty() {
        let written = std::future::poll_fn(|cx| transport.poll_write(cx, bytes)).await;
        let written = written.map_err(|error| io_failure(&error))?;
        bytes = &bytes[written..];
    }
    let flushed = std::future::poll_fn(|cx| transport.poll_flush(cx)).await;
    flushed.map_err(|error| io_failure(&error))
}

/// Whether an address has the family that the run uses.
pub(crate) fn is_of_family(address: &SocketAddr, family: Family) -> bool {
    match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    }
}
