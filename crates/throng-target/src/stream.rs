//! The bytes of a connection: plain TCP, or TLS over it.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use socket2::SockRef;
use throng_base::SaidError;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::system::{self, Received};

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

pub(crate) struct Tls {
    socket: TcpStream,
    machine: ServerConnection,
    /// The timestamp of the bytes that the state machine received last.
    stamp: Option<u64>,
    /// The peer has sent `close_notify`, or the socket has ended.
    ended: bool,
}

impl Stream {
    /// A connection that starts with a handshake if `config` is given.
    pub(crate) fn new(socket: TcpStream, config: Option<&Arc<ServerConfig>>) -> io::Result<Stream> {
        let Some(config) = config else { return Ok(Stream::Plain(socket)) };
        let machine = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        Ok(Stream::Tls(Box::new(Tls { socket, machine, stamp: None, ended: false })))
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => &tls.socket,
        }
    }

    pub(crate) fn options(&self) -> SockRef<'_> {
        SockRef::from(self.socket())
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>> {
        match self {
            Stream::Plain(socket) => poll_receive(socket, cx, buffer),
            Stream::Tls(tls) => tls.poll_read(cx, buffer),
        }
    }

    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_write_ready(cx)
    }

    /// The number of `bytes` that are taken now; `WouldBlock` if none.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.try_write(bytes),
            Stream::Tls(tls) => tls.try_write(bytes),
        }
    }

    /// True if accepted bytes have not reached the socket.
    pub(crate) fn holds_back(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Tls(tls) => tls.machine.wants_write(),
        }
    }

    /// Writes buffered bytes to the socket, as many as it takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(tls) => tls.flush(),
        }
    }

    /// Sends `close_notify`.
    pub(crate) fn say_goodbye(&mut self) {
        if let Stream::Tls(tls) = self {
            tls.machine.send_close_notify();
            // A peer that no longer reads does not receive it.
            let _ = tls.flush();
        }
    }
}

impl Tls {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        loop {
            let received = |bytes| Received { bytes, stamp: self.stamp };
            match self.machine.reader().read(buffer) {
                Ok(n) => return Poll::Ready(Ok(received(n))),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                Err(_) if self.ended => return Poll::Ready(Ok(received(0))),
                Err(_) => {}
            }
            ready!(self.socket.poll_read_ready(cx))?;
            match self.machine.read_tls(&mut TryRead(&self.socket, &mut self.stamp)) {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Poll::Ready(Err(error)),
            }
            let understood = self.machine.process_new_packets();
            // An alert, or the next part of the handshake.
            self.flush()?;
            understood.map_err(io::Error::other)?;
        }
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.machine.writer().write(bytes)?;
        self.flush()?;
        match taken {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.machine.wants_write() {
            match self.machine.write_tls(&mut TryWrite(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn poll_receive(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<Received>> {
    loop {
        ready!(socket.poll_read_ready(cx))?;
        match try_receive(socket, buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return Poll::Ready(result),
        }
    }
}

/// Reads the available bytes. A read that leaves room has emptied the socket: it is then marked as
/// not ready, which saves the next system call.
fn try_receive(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<Received> {
    let mut emptied = None;
    let result = socket.try_io(Interest::READABLE, || {
        let received = system::receive(socket, buffer)?;
        if (1..buffer.len()).contains(&received.bytes) {
            emptied = Some(received);
            // This tells the runtime that the socket is empty.
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(received)
    });
    emptied.map_or(result, Ok)
}

/// Reads for the TLS state machine, and keeps the timestamp.
struct TryRead<'s>(&'s TcpStream, &'s mut Option<u64>);

impl io::Read for TryRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = try_receive(self.0, buffer)?;
        *self.1 = received.stamp;
        Ok(received.bytes)
    }
}

struct TryWrite<'s>(&'s TcpStream);

impl io::Write for TryWrite<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A TLS configuration with a self-signed certificate for these names; clients need `tls: {verify:
/// false}`. With `protocols`, the first that the client offers, too, is selected by ALPN; without,
/// ALPN is not used.
pub(crate) fn self_signed(
    names: Vec<String>,
    protocols: &[&[u8]],
) -> io::Result<Arc<ServerConfig>> {
    let made = throng_certificates::self_signed(names);
    let (certificate, key) = made.map_err(|said| io::Error::other(SaidError(said)))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.pkcs8().to_vec()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder.with_no_client_auth().with_single_cert(vec![certificate.into()], key)
        })
        .map_err(io::Error::other)?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}
