//! HTTP/1.1 with one request per connection. Clients that send too much, too little or too slowly
//! are disconnected; the number of connections is limited.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
pub use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;

/// Maximum number of connections. Above it, a new one replaces the one that has been silent for
/// longest; requests in progress are not affected.
const CONNECTIONS_MAX: usize = 128;
/// Time limit for receiving a request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);
/// Time limit for an exchange that is not a stream.
const EXCHANGE_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum size of a request's head, and of hyper's buffer for a response.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
const BODY_BYTES_MAX: usize = 16 * 1024;
/// The pause after accept(2) failed: descriptors may be exhausted for a while.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A request with its body.
pub struct Request {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub connection: Connection,
}

impl Request {
    /// The value of a header, if it is present and valid text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The value of a name in the query, not decoded.
    pub fn asked(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// A response.
pub struct Reply {
    status: StatusCode,
    kind: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Content,
}

impl Reply {
    pub fn new(status: u16, kind: &'static str, body: impl Into<Bytes>) -> Reply {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Reply { status, kind, headers: Vec::new(), body: Content::Whole(Some(body.into())) }
    }

    pub fn text(status: u16, text: impl Into<Bytes>) -> Reply {
        Reply::new(status, "text/plain; charset=utf-8", text)
    }

    /// A stream that lasts until the sender is dropped. Its connection can be long-lived.
    pub fn stream(kind: &'static str, parts: mpsc::Receiver<Bytes>) -> Reply {
        let (status, headers) = (StatusCode::OK, Vec::new());
        Reply { status, kind, headers, body: Content::Stream(parts) }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &'static str) -> Reply {
        let value = HeaderValue::from_static(value);
        self.headers.push((HeaderName::from_static(name), value));
        self
    }

    /// Makes browsers save it under this name instead of showing it. Characters that are invalid in
    /// the header become `_`.
    #[must_use]
    pub fn attachment(mut self, name: &str) -> Reply {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || ".-_".contains(it);
        let name: String = name.chars().map(|it| if is_plain(it) { it } else { '_' }).collect();
        let value = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
        self.headers.extend(value.ok().map(|value| (header::CONTENT_DISPOSITION, value)));
        self
    }

    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    fn into_response(self) -> Response<Content> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert("content-type", HeaderValue::from_static(self.kind));
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.extend(self.headers);
        response
    }
}

/// Forbids caching, framing, content sniffing, and access by other origins.
const HEADERS: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

enum Content {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Content::Whole(body) => Poll::Ready(body.take().filter(|body| !body.is_empty())),
            Content::Stream(parts) => parts.poll_recv(context),
        };
        next.map(|part| part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Content::Whole(None))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Content::Whole(body) => {
                hyper::body::SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64)
            }
            Content::Stream(_) => hyper::body::SizeHint::default(),
        }
    }
}

/// One client's connection.
#[derive(Clone)]
pub struct Connection(Rc<ServerState>);

#[derive(Default)]
struct ServerState {
    gone: Notify,
    is_heard: Cell<bool>,
    is_stream: Cell<bool>,
}

impl Connection {
    /// Closes it, even with unsent data.
    pub fn hang_up(&self) {
        self.0.gone.notify_one();
    }
}

/// A bound port.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
}

/// The open connections.
#[derive(Clone, Default)]
pub struct Connections {
    open: Rc<Cell<usize>>,
    busy: Rc<Cell<usize>>,
    silent: Rc<RefCell<VecDeque<Weak<ServerState>>>>,
}

impl Connections {
    /// The number of connections with a request.
    pub fn busy(&self) -> usize {
        self.busy.get()
    }

    /// Makes room for a new connection; false if that is impossible.
    fn make_room(&self) -> bool {
        let mut silent = self.silent.borrow_mut();
        silent.retain(|state| state.upgrade().is_some_and(|state| !state.is_heard.get()));
        if self.open.get() < CONNECTIONS_MAX {
            return true;
        }
        let longest = silent.pop_front().and_then(|state| state.upgrade());
        longest.inspect(|state| state.gone.notify_one()).is_some()
    }
}

/// Counts a connection while it exists.
struct Counted(Rc<Cell<usize>>);

impl Counted {
    fn new(count: &Rc<Cell<usize>>) -> Counted {
        count.set(count.get() + 1);
        Counted(Rc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A server in its own thread, until this is dropped.
pub struct Running {
    _stop: oneshot::Sender<Infallible>,
}

impl Server {
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Server { listener, address, tls: None })
    }

    /// Accepts only TLS connections.
    #[must_use]
    pub fn secured(self, config: Arc<ServerConfig>) -> Server {
        Server { tls: Some(TlsAcceptor::from(config)), ..self }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests in its own thread.
    pub fn run<F>(self, name: &str, answer: F) -> io::Result<Running>
    where
        F: Fn(&Request) -> Reply + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        std::thread::Builder::new().name(name.into()).spawn(move || {
            let answer = move |request: Request| std::future::ready(answer(&request));
            in_thread(async move {
                tokio::select! {
                    _ = stopped => {}
                    _ = self.serve(Connections::default(), answer) => {}
                }
            });
        })?;
        Ok(Running { _stop: stop })
    }

    /// Serves requests indefinitely, on the [`LocalSet`] of this thread.
    pub async fn serve<F, Fut>(self, connections: Connections, answer: F) -> io::Result<()>
    where
        F: Fn(Request) -> Fut + 'static,
        Fut: Future<Output = Reply> + 'static,
    {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let answer = Rc::new(answer);
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            if !connections.make_room() {
                continue;
            }
            let state = Rc::new(ServerState::default());
            connections.silent.borrow_mut().push_back(Rc::downgrade(&state));
            let (answer, connections) = (Rc::clone(&answer), connections.clone());
            let tls = self.tls.clone();
            tokio::task::spawn_local(async move {
                let _open = Counted::new(&connections.open);
                let _ = stream.set_nodelay(true);
                match tls {
                    None => serve_one(stream, state, answer, &connections).await,
                    Some(tls) => {
                        let handshake = tokio::time::timeout(REQUEST_TIME_MAX, tls.accept(stream));
                        if let Ok(Ok(stream)) = handshake.await {
                            serve_one(stream, state, answer, &connections).await;
                        }
                    }
                }
            });
        }
    }
}

/// The TLS configuration for this certificate and HTTP/1.1.
///
/// # Errors The key does not match the certificate.
pub fn tls_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions()?;
    let mut config = config.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Runs it on a runtime of this thread.
pub fn in_thread(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        LocalSet::new().block_on(&runtime, work);
    }
}

async fn serve_one<F, Fut>(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    state: Rc<ServerState>,
    answer: Rc<F>,
    connections: &Connections,
) where
    F: Fn(Request) -> Fut + 'static,
    Fut: Future<Output = Reply> + 'static,
{
    let busy = RefCell::new(None);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (answer, connection) = (Rc::clone(&answer), Connection(Rc::clone(&state)));
        busy.replace(Some(Counted::new(&connections.busy)));
        async move { Ok::<_, Infallible>(exchange(request, connection, &*answer).await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    let late = async {
        tokio::time::sleep(EXCHANGE_TIME_MAX).await;
        if state.is_stream.get() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        _ = served => {}
        () = state.gone.notified() => {}
        () = late => {}
    }
}

async fn exchange<F, Fut>(
    request: hyper::Request<Incoming>,
    connection: Connection,
    answer: &F,
) -> Response<Content>
where
    F: Fn(Request) -> Fut,
    Fut: Future<Output = Reply>,
{
    connection.0.is_heard.set(true);
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect();
    let reply = match tokio::time::timeout(REQUEST_TIME_MAX, body).await {
        Ok(Ok(body)) => {
            let request = Request {
                method: head.method,
                path: head.uri.path().to_string(),
                query: head.uri.query().unwrap_or_default().to_string(),
                headers: head.headers,
                body: body.to_bytes(),
                connection: connection.clone(),
            };
            answer(request).await
        }
        Ok(Err(_)) => Reply::text(413, "the request body is too large\n"),
        Err(_) => Reply::text(408, "the request body did not arrive in time\n"),
    };
    connection.0.is_stream.set(matches!(reply.body, Content::Stream(_)));
    reply.into_response()
}

#[cfg(test)]
mod tests;
