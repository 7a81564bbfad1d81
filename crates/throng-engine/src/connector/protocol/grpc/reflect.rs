//! Asks a target for the descriptors of its gRPC services before the load starts: one blocking
//! connection, and one call after another over it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, SockAddr, Socket, Type};
use throng_base::grpc::Code;
use throng_base::units::format_duration;
use throng_base::{Clock, Said, Time};
use throng_metrics::Cause;
use throng_program::{Program, Target, UnixSocket};
use throng_protocol::grpc::reflection::{Discovery, FILES_BYTES_MAX, METHOD, METHOD_ALPHA};
use throng_protocol::grpc::{self, Encoding, Response, Status, metadata};
use throng_protocol::http1::{Event as Part, RequestKind};
use throng_protocol::http2::{self, Ask, Body, Event};

use crate::connector;
use crate::connector::allowed::AllowList;
use crate::connector::resolve;
use crate::failure::Failure;
use crate::failure::io_failure;
use crate::network;
use crate::network::tls;
use crate::start_error::StartError;

/// How long the target may be silent, and how long all of it may take.
const SILENCE: Duration = Duration::from_secs(10);
const TIME: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 64 * 1024;

/// Why reflection gave no descriptors.
#[derive(Debug)]
pub enum ReflectError {
    /// Nothing was sent.
    Start(StartError),
    /// What is wrong, and the fix.
    Failed { message: Said, help: Said },
}

/// A connection that is not shared.
trait Carrier: Read + Write {}

impl<T: Read + Write> Carrier for T {}

/// Asks the first target of a program for these services, or for all of its services.
pub fn reflect(
    program: &Program,
    services: &[String],
    metadata: &[(String, String)],
    allowed: &[AllowList],
) -> Result<Discovery, ReflectError> {
    let addresses = resolve::all(program).map_err(ReflectError::Start)?;
    resolve::check_allowed(program, &addresses, allowed).map_err(ReflectError::Start)?;
    let Some(target) = program.targets.first() else {
        return Err(failed(say!("there is no target to query"), FILES_HELP));
    };
    let clock = Clock::start();
    let carrier = connect(program, target, &addresses[0])?;
    let mut asker = Asker {
        carrier,
        client: http2::Client::new(&http2::Limits::default()),
        limits: http2::Limits::default(),
        until: clock.now() + TIME,
        clock,
        target,
        metadata,
    };
    let mut discovery = Discovery::new(services.iter().map(String::as_str));
    let mut methods = [METHOD, METHOD_ALPHA].into_iter();
    let mut method = methods.next().unwrap_or(METHOD);
    while let Some(question) = discovery.question() {
        let mut bytes = Vec::new();
        question.write(&mut bytes);
        let (status, answer) = asker.call(method, &bytes)?;
        match (status.code, answer) {
            (Code::Ok, Some(answer)) => {
                discovery.answer(&answer).map_err(|reason| failed(reason, SERVICE_HELP))?;
            }
            (Code::Unimplemented, _) => match methods.next() {
                Some(other) => method = other,
                None => return Err(without_reflection(target)),
            },
            (Code::Ok, None) => {
                let message = say!("server reflection ended without a reply");
                return Err(failed(message, FILES_HELP));
            }
            _ => return Err(failed(refused(&status), status_help(&status))),
        }
    }
    Ok(discovery)
}

const FILES_HELP: Said = say!(
    "give the .proto files of the service instead: `proto` in a scenario, --proto FILE on the \
     command line"
);
const SERVICE_HELP: Said =
    say!("check the service name, or give its .proto files with --proto FILE");

fn without_reflection(target: &Target) -> ReflectError {
    let message = say!("{} does not support server reflection", target.authority());
    let help =
        say!("enable it on the server, or give the .proto files of the service with --proto FILE");
    failed(message, help)
}

fn refused(status: &Status) -> Said {
    say!("server reflection was refused: {}", status.said())
}

fn status_help(status: &Status) -> Said {
    match status.code {
        Code::Unauthenticated | Code::PermissionDenied => {
            say!(
                "authenticate with -H 'authorization: Bearer …', or give .proto files with \
                 --proto FILE"
            )
        }
        _ => FILES_HELP,
    }
}

fn failed(message: Said, help: Said) -> ReflectError {
    ReflectError::Failed { message, help }
}

/// The error of a failed connection.
fn lost(target: &Target, failure: &Failure) -> ReflectError {
    let message = say!("cannot query {}: {}", target.authority(), failure.detail);
    let help = match target.scheme.is_secure() {
        true => {
            say!("check the port and the certificate; for a server without TLS, write `grpc://`")
        }
        false => {
            say!(
                "check the host and the port, and that a gRPC server is running; with TLS, write \
                 `grpcs://`"
            )
        }
    };
    failed(message, help)
}

/// A connection that is ready for HTTP/2.
fn connect(
    program: &Program,
    target: &Target,
    addresses: &[SocketAddr],
) -> Result<Box<dyn Carrier>, ReflectError> {
    let broken = |error: &io::Error| lost(target, &io_failure(error));
    if let Some(path) = &target.unix_socket {
        return connect_unix(path).map_err(|error| broken(&error));
    }
    if let Some(proxy) = program.connection.routing.proxy_of(target) {
        let message =
            say!("server reflection is not supported through the proxy {}", proxy.authority());
        return Err(failed(message, FILES_HELP));
    }
    let stream = connect_any(program, addresses).map_err(|failure| lost(target, &failure))?;
    let ready = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(SILENCE)));
    ready.and_then(|()| stream.set_write_timeout(Some(SILENCE))).map_err(|error| broken(&error))?;
    match target.scheme.is_secure() {
        true => secured(program, target, stream),
        false => Ok(Box::new(stream)),
    }
}

/// Connects to the first address that accepts; if all refuse, the error names each.
fn connect_any(program: &Program, addresses: &[SocketAddr]) -> Result<TcpStream, Failure> {
    let mut refused = None;
    for address in addresses {
        match TcpStream::connect_timeout(address, program.connection.connect_timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                let failure = match addresses.len() {
                    1 => io_failure(&error),
                    _ => connector::refused(*address, &error),
                };
                refused = Some(match refused {
                    None => failure,
                    Some(before) => failure.behind(before),
                });
            }
        }
    }
    Err(refused.unwrap_or_else(|| io_failure(&io::ErrorKind::AddrNotAvailable.into())))
}

fn connect_unix(path: &UnixSocket) -> io::Result<Box<dyn Carrier>> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_read_timeout(Some(SILENCE))?;
    socket.set_write_timeout(Some(SILENCE))?;
    socket.connect(&SockAddr::unix(path.sun_path())?)?;
    Ok(Box::new(socket))
}

fn secured(
    program: &Program,
    target: &Target,
    mut stream: TcpStream,
) -> Result<Box<dyn Carrier>, ReflectError> {
    let config = tls::config(&program.tls).map_err(|reason| {
        let reason = StartError::Tls(reason);
        ReflectError::Start(reason)
    })?;
    let config = tls::offering(&config, tls::HTTP2);
    let Some(name) = network::server_name(&program.tls, target) else {
        let message = say!("`{}` is not a valid TLS server name", target.host);
        return Err(failed(message, say!("give another name with --server-name NAME")));
    };
    let tls_failed = |error: &io::Error| lost(target, &connector::tls_failure(error));
    let mut connection = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| tls_failed(&io::Error::other(error)))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| tls_failed(&error))?;
    }
    match connection.alpn_protocol() {
        Some(b"h2") => Ok(Box::new(StreamOwned::new(connection, stream))),
        _ => Err(no_http2(target)),
    }
}

fn no_http2(target: &Target) -> ReflectError {
    let message = say!("{} does not speak HTTP/2, which gRPC requires", target.authority());
    let help = match target.scheme.is_secure() {
        true => say!("check that this is the port of the gRPC server"),
        false => say!("check that this is the port of the gRPC server; with TLS write `grpcs://`"),
    };
    failed(message, help)
}

/// Makes calls one after another.
struct Asker<'a> {
    carrier: Box<dyn Carrier>,
    client: http2::Client,
    limits: http2::Limits,
    clock: Clock,
    until: Time,
    target: &'a Target,
    metadata: &'a [(String, String)],
}

/// State of a call.
#[derive(Default)]
struct Called {
    response: Response,
    reply: Option<Vec<u8>>,
    is_over: bool,
    broken: Option<Said>,
    is_foreign: bool,
}

impl Asker<'_> {
    /// Makes a call with one message; returns its status and the last message of the response.
    fn call(
        &mut self,
        method: &str,
        message: &[u8],
    ) -> Result<(Status, Option<Vec<u8>>), ReflectError> {
        let mut out = Vec::new();
        if self.client.is_new() {
            self.client.open(&self.limits, &mut out);
        }
        let block = self.block(method)?;
        let mut framed = Vec::new();
        let written = grpc::write_message(Encoding::Identity, &mut framed, |out| {
            out.extend_from_slice(message);
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = written;
        let (kind, body) = (RequestKind::Normal, Body::Bytes(&framed));
        let ask = Ask { kind, block: &block, indexed: &[], body, body_bytes_max: u64::MAX };
        let asked = self.client.ask(&ask, &mut out);
        asked.map_err(|_| self.lost(say!("it accepts no more requests on this connection")))?;
        self.send(&mut out)?;
        let mut called = Called::default();
        let mut buffer = vec![0; READ_BYTES];
        while !called.is_over {
            self.read(&mut buffer, &mut called)?;
        }
        if called.is_foreign {
            return Err(no_http2(self.target));
        }
        if let Some(reason) = called.broken {
            return Err(self.lost(reason));
        }
        let status = called.response.end(false);
        let status = status.map_err(|violation| self.lost(violation.said()))?;
        Ok((status, called.reply))
    }

    /// The header block of a call.
    fn block(&self, method: &str) -> Result<Vec<u8>, ReflectError> {
        let mut block = Vec::new();
        let scheme = if self.target.scheme.is_secure() { "https" } else { "http" };
        http2::write_request(&mut block, "POST", scheme, &self.target.authority(), method);
        grpc::request_fields(Encoding::Identity, Some(TIME), &mut |name, value| {
            http2::write_field(&mut block, name, value);
        });
        for (name, value) in self.metadata {
            let mut written = Vec::new();
            let wrong = |mistake: metadata::MetadataMistake| ReflectError::Failed {
                message: mistake.message,
                help: mistake.help,
            };
            metadata::check_name(name).map_err(wrong)?;
            metadata::write_value(name, value.as_bytes(), &mut written).map_err(wrong)?;
            http2::write_field(&mut block, &name.to_ascii_lowercase(), &written);
        }
        Ok(block)
    }

    fn send(&mut self, out: &mut Vec<u8>) -> Result<(), ReflectError> {
        loop {
            let sent = self.carrier.write_all(out).and_then(|()| self.carrier.flush());
            sent.map_err(|error| lost(self.target, &io_failure(&error)))?;
            out.clear();
            if !self.client.drained(out) {
                return Ok(());
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8], called: &mut Called) -> Result<(), ReflectError> {
        let now = self.clock.now();
        let silent = || say!("it did not respond within {}", format_duration(SILENCE));
        let count = match self.carrier.read(buffer) {
            Ok(count) if now < self.until => count,
            Err(error) if !is_timeout(&error) => {
                return Err(lost(self.target, &io_failure(&error)));
            }
            _ => return Err(self.lost(silent())),
        };
        let mut out = Vec::new();
        if count == 0 {
            self.client.close(&mut |event: Event<'_>| called.hear(&event));
            called.is_over = true;
            return Ok(());
        }
        let (mut rest, mut room) = (&buffer[..count], Vec::new());
        loop {
            match self.client.next(now, &mut rest, &self.limits, &mut room, &mut out) {
                Ok(Some(event)) => called.hear(&event),
                Ok(None) => return self.send(&mut out),
                Err(http2::Violation::NotHttp2(_)) => return Err(no_http2(self.target)),
                Err(violation) => return Err(self.lost(Said::of_others(violation.to_string()))),
            }
        }
    }

    fn lost(&self, reason: Said) -> ReflectError {
        lost(self.target, &Failure::new(Cause::Malformed, reason))
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Called {
    /// There is one call at a time: every event belongs to it.
    fn hear(&mut self, event: &Event<'_>) {
        let broken = match event {
            Event::Reply { part, .. } => self.part(part).err().map(|violation| violation.said()),
            Event::Reset { code, .. } => Some(say!("it reset the stream: {code}")),
            Event::Failed { violation, .. } => Some(Said::of_others(violation.to_string())),
            _ => None,
        };
        let not_http2 = |violation: &_| matches!(violation, http2::Violation::NotHttp2(_));
        self.is_foreign |= matches!(event, Event::Failed { violation, .. } if not_http2(violation));
        self.is_over |= broken.is_some();
        self.broken = self.broken.take().or(broken);
    }

    fn part(&mut self, part: &Part<'_>) -> Result<(), grpc::Violation> {
        let response = &mut self.response;
        match part {
            Part::Head(head) => response.head(head.status, head.headers.iter())?,
            Part::Body(bytes) => {
                let mut rest = *bytes;
                while let Some(message) = response.next(&mut rest, FILES_BYTES_MAX)? {
                    let message = message.unpack(FILES_BYTES_MAX, &mut Vec::new())?.to_vec();
                    self.reply = Some(message);
                }
            }
            Part::Trailers(trailers) => response.trailers(trailers.iter())?,
            Part::End => self.is_over = true,
            Part::Informational(_) => {}
        }
        Ok(())
    }
}
