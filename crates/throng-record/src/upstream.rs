//! Connections to the services: verified TLS, HTTP/2 if a service supports it, otherwise HTTP/1.1.
//! They are kept alive and reused, as in a browser.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::header::{self, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use throng_base::Said;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::exchange::Passing;

const LOOKUP_TIME_MAX: Duration = Duration::from_secs(10);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Until the head of a response. Some services hold a request until there is news (long polling).
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(300);
/// Maximum number of idle connections to a service.
const IDLE_MAX: usize = 32;

/// A service: the destination of requests to a host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Service {
    pub(crate) is_secure: bool,
    /// An IPv6 address has no brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Service {
    pub(crate) fn new(is_secure: bool, authority: &Authority) -> Service {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        Service { is_secure, host: host.to_ascii_lowercase(), port }
    }

    /// As in URLs and the `Host` header.
    pub(crate) fn authority(&self) -> String {
        let host = match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => self.host.clone(),
        };
        match (self.is_secure, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// A service with its addresses, or why it has none.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) service: Service,
    pub(crate) addresses: Result<Vec<SocketAddr>, Said>,
}

impl Destination {
    pub(crate) async fn find(service: Service) -> Destination {
        let found = tokio::net::lookup_host((service.host.as_str(), service.port));
        let addresses = match timeout(LOOKUP_TIME_MAX, found).await {
            Ok(Ok(addresses)) => Ok(addresses.collect()),
            Ok(Err(error)) => Err(Said::of_error(&error)),
            Err(_) => Err(no_connection(LOOKUP_TIME_MAX)),
        };
        Destination { service, addresses }
    }

    /// Connects to the first address that accepts.
    pub(crate) async fn dial(&self) -> Result<TcpStream, Said> {
        let addresses = self.addresses.clone()?;
        match timeout(CONNECT_TIME_MAX, TcpStream::connect(&*addresses)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                Ok(stream)
            }
            Ok(Err(error)) => Err(Said::of_error(&error)),
            Err(_) => Err(no_connection(CONNECT_TIME_MAX)),
        }
    }
}

/// A connection that was opened before the first request, or why that failed.
pub(crate) type First = Result<TcpStream, Said>;

fn no_connection(time: Duration) -> Said {
    say!("no connection within {} s", time.as_secs())
}

#[derive(Default)]
struct Idle {
    shared: Option<http2::SendRequest<Passing>>,
    single: Vec<http1::SendRequest<Passing>>,
}

enum Sender {
    Single(http1::SendRequest<Passing>),
    Shared(http2::SendRequest<Passing>),
}

/// See the module's description.
pub(crate) struct Upstream {
    tls: Arc<ClientConfig>,
    /// Without HTTP/2, for upgrades.
    tls_single: Arc<ClientConfig>,
    certificate_words: fn(&rustls::CertificateError) -> Said,
    idle: Mutex<HashMap<Service, Idle>>,
}

impl Upstream {
    pub(crate) fn new(
        tls: &ClientConfig,
        certificate_words: fn(&rustls::CertificateError) -> Said,
    ) -> Upstream {
        let with = |protocols: &[&[u8]]| {
            let mut tls = tls.clone();
            tls.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
            Arc::new(tls)
        };
        let (tls, tls_single) = (with(&[b"h2", b"http/1.1"]), with(&[b"http/1.1"]));
        Upstream { tls, tls_single, certificate_words, idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<Service, Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request over an existing connection or a new one; `first` is an existing one.
    pub(crate) async fn send(
        &self,
        place: &Destination,
        first: Option<First>,
        request: Request<Passing>,
    ) -> Result<Response<Incoming>, Said> {
        let mut request = request;
        while let Some(mut sender) = self.take_idle(&place.service) {
            let again = without_body(&request);
            match self.exchange(&mut sender, &place.service, request).await? {
                Ok(response) => return Ok(self.keep(&place.service, sender, response)),
                // The service closed the connection before it received the request or, for all we
                // know, while it was sent.
                Err(mut error) => match error.take_message().or(again) {
                    Some(message) => request = message,
                    None => return Err(broken(error.error())),
                },
            }
        }
        let mut sender = self.connect(place, first).await?;
        match self.exchange(&mut sender, &place.service, request).await? {
            Ok(response) => Ok(self.keep(&place.service, sender, response)),
            Err(error) => Err(broken(error.error())),
        }
    }

    /// Sends a request for an upgrade to another protocol.
    pub(crate) async fn upgrade(
        &self,
        place: &Destination,
        first: Option<First>,
        request: Request<Passing>,
    ) -> Result<Response<Incoming>, Said> {
        let stream = self.stream(place, first).await?;
        let mut sender = match place.service.is_secure {
            true => single(self.secured(&self.tls_single, &place.service, stream).await?).await,
            false => single(stream).await,
        }?;
        let request = fit_single(request, &place.service);
        match timeout(RESPONSE_TIME_MAX, sender.send_request(request)).await {
            Ok(response) => response.map_err(|error| broken(&error)),
            Err(_) => Err(no_response()),
        }
    }

    async fn exchange(
        &self,
        sender: &mut Sender,
        service: &Service,
        request: Request<Passing>,
    ) -> Result<Result<Response<Incoming>, TrySendError<Request<Passing>>>, Said> {
        let response = async {
            match sender {
                Sender::Single(sender) => {
                    sender.try_send_request(fit_single(request, service)).await
                }
                Sender::Shared(sender) => {
                    sender.try_send_request(fit_shared(request, service)).await
                }
            }
        };
        timeout(RESPONSE_TIME_MAX, response).await.map_err(|_| no_response())
    }

    fn take_idle(&self, service: &Service) -> Option<Sender> {
        let mut idle = self.idle();
        let idle = idle.get_mut(service)?;
        if idle.shared.as_ref().is_some_and(http2::SendRequest::is_closed) {
            idle.shared = None;
        }
        idle.single.retain(|sender| !sender.is_closed());
        let shared = idle.shared.clone().map(Sender::Shared);
        shared.or_else(|| {
            // The others are still receiving a response.
            let free = idle.single.iter().position(http1::SendRequest::is_ready)?;
            Some(Sender::Single(idle.single.swap_remove(free)))
        })
    }

    fn keep(
        &self,
        service: &Service,
        sender: Sender,
        response: Response<Incoming>,
    ) -> Response<Incoming> {
        let mut idle = self.idle();
        let idle = idle.entry(service.clone()).or_default();
        match sender {
            Sender::Shared(sender) => idle.shared = Some(sender),
            Sender::Single(sender) => {
                if idle.single.len() >= IDLE_MAX {
                    idle.single.remove(0);
                }
                idle.single.push(sender);
            }
        }
        response
    }

    async fn stream(&self, place: &Destination, first: Option<First>) -> Result<TcpStream, Said> {
        match first {
            Some(first) => first,
            None => place.dial().await,
        }
    }

    async fn connect(&self, place: &Destination, first: Option<First>) -> Result<Sender, Said> {
        let stream = self.stream(place, first).await?;
        if !place.service.is_secure {
            return single(stream).await.map(Sender::Single);
        }
        let stream = self.secured(&self.tls, &place.service, stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return single(stream).await.map(Sender::Single);
        }
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|error| broken(&error))?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Sender::Shared(sender))
    }

    async fn secured(
        &self,
        tls: &Arc<ClientConfig>,
        service: &Service,
        stream: TcpStream,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Said> {
        let name = ServerName::try_from(service.host.clone());
        let name = name.map_err(|error| Said::of_others(error.to_string()))?;
        let handshake = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
        match timeout(CONNECT_TIME_MAX, handshake).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(match error.get_ref().and_then(|it| it.downcast_ref()) {
                Some(rustls::Error::InvalidCertificate(error)) => (self.certificate_words)(error),
                Some(error) => Said::of_others(error.to_string()),
                None => Said::of_error(&error),
            }),
            Err(_) => Err(no_connection(CONNECT_TIME_MAX)),
        }
    }
}

async fn single<S>(stream: S) -> Result<http1::SendRequest<Passing>, Said>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let handshake = http1::Builder::new()
        .title_case_headers(true)
        .handshake::<_, Passing>(TokioIo::new(stream))
        .await;
    let (sender, connection) = handshake.map_err(|error| broken(&error))?;
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    Ok(sender)
}

/// A copy of the request, if it has no body and can be sent twice.
fn without_body(request: &Request<Passing>) -> Option<Request<Passing>> {
    use hyper::body::Body as _;
    if !request.method().is_idempotent() || !request.body().is_end_stream() {
        return None;
    }
    let mut again = Request::new(Passing::empty());
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.headers_mut() = request.headers().clone();
    Some(again)
}

/// Uses a path and a `Host` header.
fn fit_single(mut request: Request<Passing>, service: &Service) -> Request<Passing> {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    *request.version_mut() = Version::HTTP_11;
    if let Ok(host) = HeaderValue::try_from(service.authority()) {
        request.headers_mut().insert(header::HOST, host);
    }
    request
}

/// Uses a complete URL without a `Host` header.
fn fit_shared(mut request: Request<Passing>, service: &Service) -> Request<Passing> {
    request.headers_mut().remove(header::HOST);
    *request.version_mut() = Version::HTTP_2;
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTPS);
    parts.authority = service.authority().parse().ok();
    parts.path_and_query.get_or_insert(PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    request
}

fn no_response() -> Said {
    say!("no response within {} s", RESPONSE_TIME_MAX.as_secs())
}

fn broken(error: &hyper::Error) -> Said {
    use std::error::Error as _;
    let io = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    match io {
        Some(error) => Said::of_error(error),
        None => Said::of_others(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_like_in_urls() {
        let of = |is_secure, text: &str| Service::new(is_secure, &text.parse().unwrap());
        let cases = [
            (true, "Shop.example:443", "shop.example"),
            (false, "shop.example:443", "shop.example:443"),
            (false, "shop.example", "shop.example"),
            (true, "[::1]:8443", "[::1]:8443"),
        ];
        for (is_secure, text, wanted) in cases {
            assert_eq!(of(is_secure, text).authority(), wanted);
        }
        assert_eq!(of(true, "[::1]").host, "::1");
    }

    #[test]
    fn a_request_matches_the_version_of_its_connection() {
        let service = Service::new(true, &"a.example".parse().unwrap());
        let request = || {
            let mut request = Request::new(Passing::empty());
            *request.uri_mut() = "http://else.example/x?y".parse().unwrap();
            request
        };
        let single = fit_single(request(), &service);
        assert_eq!(single.uri(), "/x?y");
        assert_eq!(single.headers()["host"], "a.example");
        let shared = fit_shared(single, &service);
        assert_eq!(shared.uri(), "https://a.example/x?y");
        assert!(shared.headers().is_empty());
    }
}
