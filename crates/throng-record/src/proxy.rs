//! The connections of the browser: each is a proxy connection (RFC 9110, 7.6), in which the browser
//! opens tunnels. In a tunnel to a recorded host, the proxy acts as that host.

use std::collections::HashSet;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::AlertDescription;
use throng_base::clock::wall_now;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::entry::{Captured, Entry, Response as Received};
use crate::exchange::{Exchange, Passing, Way};
use crate::har::Har;
use crate::headers;
use crate::sockets::relay;
use crate::upstream::{Destination, First, Service, Upstream};
use crate::{Event, Judge, Passed, Setup, Verdict};

/// Maximum number of client connections; others wait.
const CONNECTIONS_MAX: usize = 1024;
/// The pause after accept(2) failed: descriptors may be exhausted for a while.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How much of a tunnel's data is read to detect its protocol.
const SNIFF_BYTES: usize = 4 * 1024;
/// How long name lookups may delay the end.
const END_TIME_MAX: Duration = Duration::from_millis(100);

/// Records traffic until `stop` is ready.
///
/// # Errors The event loop cannot be created.
pub fn record(
    listener: TcpListener,
    har: Arc<Har>,
    setup: Setup,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    listener.set_nonblocking(true)?;
    let Setup { authority, tls, certificate_words, judge, tell } = setup;
    let upstream = Upstream::new(&tls, certificate_words);
    let told = Mutex::default();
    let proxy = Arc::new(Proxy { har, authority, upstream, judge, tell, told });
    let served = runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            () = stop => {}
            () = proxy.serve(&listener) => {}
        }
        Ok(())
    });
    // Exchanges in progress are recorded when they are dropped.
    runtime.shutdown_timeout(END_TIME_MAX);
    served
}

struct Proxy {
    har: Arc<Har>,
    authority: crate::Authority,
    upstream: Upstream,
    judge: Judge,
    tell: Box<dyn Fn(&Event) + Send + Sync>,
    /// Events about hosts that were reported.
    told: Mutex<HashSet<Event>>,
}

/// A tunnel whose requests are decoded.
struct Tunnel {
    place: Destination,
    /// The connection that was opened for it, or why opening failed, until a request uses it.
    first: Mutex<Option<First>>,
}

impl Proxy {
    async fn serve(self: Arc<Self>, listener: &tokio::net::TcpListener) {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            // A tunnel counts too.
            let Ok(held) = Arc::clone(&room).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let _ = stream.set_nodelay(true);
            let (proxy, held) = (Arc::clone(&self), Arc::new(held));
            tokio::spawn(async move {
                let answer = |request| Arc::clone(&proxy).answer(request, Arc::clone(&held));
                serve_single(stream, service_fn(answer)).await;
            });
        }
    }

    /// Answers a request to the proxy.
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        held: Arc<OwnedSemaphorePermit>,
    ) -> Result<Response<Passing>, Infallible> {
        if request.method() == Method::CONNECT {
            return Ok(self.open_tunnel(request, held).await);
        }
        let authority = request.uri().authority().cloned();
        let (Some("http"), Some(authority)) = (request.uri().scheme_str(), authority) else {
            return Ok(self.own_page(request.uri().path()));
        };
        let place = Destination::find(Service::new(false, &authority)).await;
        Ok(match self.judged(&place) {
            Verdict::Refuse(list) => self.refused(&place, &list),
            verdict => self.pass(&place, None, request, verdict == Verdict::Record).await,
        })
    }

    fn judged(&self, place: &Destination) -> Verdict {
        let addresses = place.addresses.as_deref().unwrap_or_default();
        (self.judge)(&place.service.host, addresses)
    }

    fn refused(&self, place: &Destination, list: &str) -> Response<Passing> {
        let host = &place.service.host;
        self.tell_once(Event::Refused { host: host.clone(), list: list.to_string() });
        let text = say!("{host} is not allowed by {list}");
        reply(StatusCode::FORBIDDEN, text.spoken() + "\n")
    }

    /// The proxy's own page offers its certificate.
    fn own_page(&self, path: &str) -> Response<Passing> {
        if path != "/ca.pem" {
            let text = say!("this is a recording proxy; its certificate is at /ca.pem");
            return reply(StatusCode::BAD_REQUEST, text.spoken() + "\n");
        }
        let mut response = reply(StatusCode::OK, self.authority.pem());
        let kind = HeaderValue::from_static("application/x-x509-ca-cert");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }

    async fn open_tunnel(
        self: Arc<Self>,
        request: Request<Incoming>,
        held: Arc<OwnedSemaphorePermit>,
    ) -> Response<Passing> {
        let authority = request.uri().authority().filter(|authority| authority.port().is_some());
        let Some(authority) = authority else {
            return reply(StatusCode::BAD_REQUEST, "CONNECT host:port\n");
        };
        let place = Destination::find(Service::new(true, authority)).await;
        let verdict = self.judged(&place);
        if let Verdict::Refuse(list) = verdict {
            return self.refused(&place, &list);
        }
        tokio::spawn(async move {
            if let Ok(client) = hyper::upgrade::on(request).await {
                self.tunnel(client, place, verdict == Verdict::Record).await;
            }
            drop(held);
        });
        Response::new(Passing::empty())
    }

    /// Detects the protocol in a tunnel. If the service sends first, it is neither TLS nor HTTP.
    async fn tunnel(self: Arc<Self>, client: Upgraded, place: Destination, is_recorded: bool) {
        let mut client = TokioIo::new(client);
        let mut service = place.dial().await;
        let mut head = vec![0; SNIFF_BYTES];
        let mut count = 0;
        if is_recorded {
            let spoken = async {
                match &service {
                    Ok(service) => service.peek(&mut [0]).await.is_ok_and(|count| count > 0),
                    Err(_) => false,
                }
            };
            tokio::select! {
                read = client.read(&mut head) => match read {
                    Ok(read @ 1..) => count = read,
                    // Browsers open tunnels in advance, and close unused ones.
                    _ => return,
                },
                true = spoken => {}
            }
        }
        head.truncate(count);
        match carried(&head) {
            Carried::Else => {
                self.tell_once(Event::Tunnelled(place.service.host.clone()));
                if let Ok(service) = &mut service
                    && service.write_all(&head).await.is_ok()
                {
                    let _ = tokio::io::copy_bidirectional(&mut client, service).await;
                }
            }
            carried => {
                let (read, write) = tokio::io::split(client);
                let client = tokio::io::join(io::Cursor::new(head).chain(read), write);
                let is_secure = carried == Carried::Tls;
                let place =
                    Destination { service: Service { is_secure, ..place.service }, ..place };
                let tunnel = Arc::new(Tunnel { place, first: Mutex::new(Some(service)) });
                match is_secure {
                    true => self.be_host(client, tunnel).await,
                    false => serve_single(client, self.requests_of(&tunnel)).await,
                }
            }
        }
    }

    /// Acts as the host of a tunnel, with a certificate for its name.
    async fn be_host(
        self: Arc<Self>,
        client: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        tunnel: Arc<Tunnel>,
    ) {
        let host = &tunnel.place.service.host;
        let Ok(config) = self.authority.host(host) else { return };
        let client = match TlsAcceptor::from(config).accept(client).await {
            Ok(client) => client,
            Err(error) => {
                if distrusts(&error) {
                    self.tell_once(Event::Untrusted(host.clone()));
                }
                return;
            }
        };
        let service = self.requests_of(&tunnel);
        match client.get_ref().1.alpn_protocol() == Some(b"h2") {
            true => {
                let server = http2::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(client), service).await;
            }
            false => serve_single(client, service).await,
        }
    }

    /// The handler of the requests in a tunnel.
    fn requests_of(
        self: &Arc<Self>,
        tunnel: &Arc<Tunnel>,
    ) -> impl hyper::service::Service<
        Request<Incoming>,
        Response = Response<Passing>,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + 'static {
        let (proxy, tunnel) = (Arc::clone(self), Arc::clone(tunnel));
        service_fn(move |request: Request<Incoming>| {
            let (proxy, tunnel) = (Arc::clone(&proxy), Arc::clone(&tunnel));
            async move {
                let first = tunnel.first.lock().unwrap_or_else(PoisonError::into_inner).take();
                Ok(proxy.pass(&tunnel.place, first, request, true).await)
            }
        })
    }

    /// Forwards a request, and its response back.
    async fn pass(
        &self,
        place: &Destination,
        first: Option<First>,
        mut request: Request<Incoming>,
        is_recorded: bool,
    ) -> Response<Passing> {
        if request.method() == Method::CONNECT {
            return reply(StatusCode::BAD_REQUEST, "CONNECT host:port\n");
        }
        let asks_for_socket = headers::asks_for_socket(request.headers());
        let client = asks_for_socket.then(|| hyper::upgrade::on(&mut request));
        let method = request.method().to_string();
        let passed = self.prepared(place, request, asks_for_socket, is_recorded);
        let (request, exchange, url) = passed;
        let begin = exchange.as_ref().map_or(self.har.now(), |exchange| exchange.begin());
        let answered = match asks_for_socket {
            true => self.upstream.upgrade(place, first, request).await,
            false => self.upstream.send(place, first, request).await,
        };
        let took = self.har.now() - begin;
        if let Some(exchange) = &exchange {
            let mut entry = exchange.entry();
            match &answered {
                Ok(response) => entry.response = Some(received(response, took)),
                Err(error) => entry.error = Some(error.english()),
            }
        }
        if is_recorded {
            let status = answered.as_ref().map_or(502, |response| response.status().as_u16());
            let error = answered.as_ref().err().map(|error| error.spoken());
            let url = url.split('?').next().unwrap_or_default().to_string();
            (self.tell)(&Event::Request(Passed { method, url, status, took, error }));
        }
        match answered {
            Ok(response) => self.returned(response, client, exchange),
            Err(error) => {
                let text = say!("cannot reach {}: {}", place.service.authority(), error);
                reply(StatusCode::BAD_GATEWAY, text.spoken() + "\n")
            }
        }
    }

    /// A request to the service, and its exchange.
    fn prepared(
        &self,
        place: &Destination,
        request: Request<Incoming>,
        is_socket: bool,
        is_recorded: bool,
    ) -> (Request<Passing>, Option<Arc<Exchange>>, String) {
        let (mut parts, body) = request.into_parts();
        let version = version(parts.version);
        headers::drop_own(&mut parts.headers);
        headers::join_cookies(&mut parts.headers);
        if is_recorded {
            headers::ask_for_readable(&mut parts.headers);
        }
        if is_socket {
            // Compressed messages could not be decoded.
            parts.headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
            add_upgrade(&mut parts.headers);
        }
        let service = &place.service;
        let scheme = match (is_socket, service.is_secure) {
            (false, true) => "https",
            (false, false) => "http",
            (true, true) => "wss",
            (true, false) => "ws",
        };
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let url = format!("{scheme}://{}{path}", service.authority());
        let exchange = is_recorded.then(|| {
            let entry = Entry {
                begin: wall_now(),
                method: parts.method.to_string(),
                url: url.clone(),
                version,
                headers: parts.headers.clone(),
                sent: Captured::default(),
                response: None,
                error: None,
                messages: is_socket.then(Vec::new),
            };
            Exchange::new(&self.har, self.har.now(), entry)
        });
        let body = Passing::new(body, exchange.clone(), Way::Sent);
        (Request::from_parts(parts, body), exchange, url)
    }

    /// A response to the client.
    fn returned(
        &self,
        mut response: Response<Incoming>,
        client: Option<OnUpgrade>,
        exchange: Option<Arc<Exchange>>,
    ) -> Response<Passing> {
        let is_upgrade = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if let (true, Some(client)) = (is_upgrade, client) {
            let service = hyper::upgrade::on(&mut response);
            let exchange = exchange.clone();
            tokio::spawn(async move {
                if let (Ok(client), Ok(service)) = tokio::join!(client, service) {
                    relay(TokioIo::new(client), TokioIo::new(service), exchange).await;
                }
            });
        }
        let (mut parts, body) = response.into_parts();
        headers::drop_own(&mut parts.headers);
        // An alternative service would bypass the proxy.
        parts.headers.remove(header::ALT_SVC);
        if is_upgrade {
            add_upgrade(&mut parts.headers);
        }
        parts.version = Version::HTTP_11;
        Response::from_parts(parts, Passing::new(body, exchange, Way::Received))
    }

    /// Reports an event about a host once, although it occurs on each of its connections.
    fn tell_once(&self, event: Event) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.contains(&event) {
            (self.tell)(&event);
            told.insert(event);
        }
    }
}

/// HTTP/1.1 on a client connection.
async fn serve_single<S>(client: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, service: S)
where
    S: hyper::service::Service<Request<Incoming>, Response = Response<Passing>, Error = Infallible>,
    S::Future: Send + 'static,
{
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).title_case_headers(true).half_close(true);
    let _ = server.serve_connection(TokioIo::new(client), service).with_upgrades().await;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Tls,
    Http,
    Else,
}

/// The protocol by its first bytes: a TLS record (RFC 8446, 5.1), a request line, or something
/// else.
fn carried(head: &[u8]) -> Carried {
    let method = head.split(|byte| *byte == b' ').next().unwrap_or_default();
    match head {
        [0x16, 3, ..] => Carried::Tls,
        // The preface of HTTP/2, which only programs use without TLS.
        [b'P', b'R', b'I', ..] => Carried::Else,
        [_, ..] if !method.is_empty() && method.iter().all(u8::is_ascii_uppercase) => Carried::Http,
        _ => Carried::Else,
    }
}

/// True if a client closed the connection because it does not trust the authority (RFC 8446, 6.2).
fn distrusts(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::AlertReceived(alert)) = error else { return false };
    matches!(
        alert,
        AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
    )
}

fn add_upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

fn received(response: &Response<Incoming>, waited: Duration) -> Received {
    Received {
        status: response.status().as_u16(),
        version: version(response.version()),
        headers: response.headers().clone(),
        received: Captured::default(),
        waited,
    }
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

fn reply(status: StatusCode, text: impl Into<bytes::Bytes>) -> Response<Passing> {
    let mut response = Response::new(Passing::text(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_of_a_tunnel_is_detected_by_its_first_bytes() {
        assert_eq!(carried(b"\x16\x03\x01\x02"), Carried::Tls);
        assert_eq!(carried(b"GET / HTTP/1.1\r\n"), Carried::Http);
        assert_eq!(carried(b"PRI * HTTP/2.0\r\n"), Carried::Else);
        for other in [&b"SSH-2.0-x\r\n"[..], b"", b"\x16\x01", b" ", b"helo\r\n"] {
            assert_eq!(carried(other), Carried::Else, "{other:?}");
        }
    }
}
