//! The bytes of a connection: TCP, a unix socket, TLS over one of them, UDP, or memory in tests.
//! The rest of the engine sees the differences only through these few functions. `stream`: a TCP
//! socket. `unix`: opens one with a name. `datagrams`: a UDP socket. `pace`: limits how fast a slow
//! user reads and writes. `pieces`: writes from two buffers in one call.

pub(crate) mod datagrams;
pub(crate) mod pace;
pub(crate) mod pieces;
pub(crate) mod stream;
pub(crate) mod unix;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, Socket};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::failure::Failure;
use crate::system::{Received, UnixStream};
use datagrams::Datagrams;
use stream::Stamped;

/// The maximum of a UDP datagram over IPv4, and on any host over IPv6 too (RFC 768).
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Receive buffer of a user that reads slowly; the kernel doubles it (socket(7)). With the default
/// of 128 KiB and more, a target would not notice such a user for minutes.
pub(crate) const SLOW_RECEIVE_BYTES: usize = 4_096;

pub(crate) enum Transport {
    Tcp(TcpStream),
    /// TCP with timestamps. Without them, every read is a tenth of a microsecond faster.
    Stamped(TcpStream),
    /// Without timestamps and without TCP statistics.
    Unix(UnixStream),
    Tls(Box<TlsStream<Stamped>>),
    /// The TLS handshake is running: nothing else is read or written.
    Securing(Pin<Box<dyn Future<Output = Result<Transport, Failure>>>>),
    /// Connected: it only receives from its target, and ICMP errors about closed ports.
    Udp(Datagrams),
    #[cfg(test)]
    Memory(crate::world::MemoryStream),
}

/// The kernel's state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// The smoothed round-trip time.
    pub(crate) round_trip: Duration,
    /// Segments retransmitted since the connection was opened.
    pub(crate) retransmits: u64,
    /// Segments that arrived out of order since then.
    pub(crate) out_of_order: u64,
    /// Written to the socket and not acknowledged, whether sent or not.
    pub(crate) backlog_bytes: u64,
}

impl Transport {
    /// Messages are sent and received as they are, one per datagram: none is ever joined or split,
    /// and there is no end of the stream. An empty datagram is a message too.
    #[inline]
    pub(crate) fn is_datagram(&self) -> bool {
        match self {
            Transport::Udp(_) => true,
            Transport::Tcp(_)
            | Transport::Stamped(_)
            | Transport::Unix(_)
            | Transport::Tls(_)
            | Transport::Securing(_) => false,
            #[cfg(test)]
            Transport::Memory(stream) => stream.is_datagram(),
        }
    }

    /// Reads what has arrived into `buffer`; 0 is the end of the stream. For UDP, the next
    /// datagram, even an empty one: `buffer` must be as large as the largest datagram, or the rest
    /// is lost.
    #[inline]
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>> {
        match self {
            Transport::Tcp(stream) => {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
                Poll::Ready(Ok(Received { bytes: buffer.filled().len(), stamp: 0 }))
            }
            Transport::Stamped(stream) => stream::poll_receive(stream, cx, buffer),
            Transport::Unix(stream) => {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
                Poll::Ready(Ok(Received { bytes: buffer.filled().len(), stamp: 0 }))
            }
            Transport::Tls(stream) => {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(stream.as_mut()).poll_read(cx, &mut buffer))?;
                let (bytes, stamp) = (buffer.filled().len(), stream.get_ref().0.stamp());
                Poll::Ready(Ok(Received { bytes, stamp }))
            }
            Transport::Securing(_) => Poll::Pending,
            Transport::Udp(socket) => socket.poll_recv(cx, buffer),
            #[cfg(test)]
            Transport::Memory(stream) => stream.poll_read(cx, buffer),
        }
    }

    /// Writes as much as the socket takes; a datagram completely or not at all.
    #[inline]
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Transport::Tcp(stream) | Transport::Stamped(stream) => {
                stream::poll_write(stream, cx, bytes)
            }
            Transport::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
            Transport::Securing(_) => Poll::Pending,
            Transport::Udp(socket) => socket.poll_send(cx, bytes),
            #[cfg(test)]
            Transport::Memory(stream) => stream.poll_write(cx, bytes),
        }
    }

    /// Whether nothing can be read now, as far as is known without reading.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        match self {
            Transport::Tcp(stream) | Transport::Stamped(stream) => stream::is_silent(stream),
            _ => false,
        }
    }

    /// Whether TLS can start on it.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Transport::Tcp(_) | Transport::Stamped(_) | Transport::Unix(_) => true,
            Transport::Tls(_) | Transport::Securing(_) | Transport::Udp(_) => false,
            #[cfg(test)]
            Transport::Memory(_) => true,
        }
    }

    /// Continues the TLS handshake, if there is one.
    pub(crate) fn poll_secure(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if let Transport::Securing(handshake) = self {
            *self = ready!(handshake.as_mut().poll(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what TLS still buffers; Pending if the socket is full.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Sends the TLS close alert, if the socket takes it immediately.
    pub(crate) fn say_goodbye(&mut self, cx: &mut Context<'_>) {
        if let Transport::Tls(stream) = self {
            let _ = Pin::new(stream.as_mut()).poll_shutdown(cx);
        }
    }

    /// The protocol that was negotiated by ALPN (RFC 7301), if any.
    pub(crate) fn application_protocol(&self) -> Option<&[u8]> {
        match self {
            Transport::Tls(stream) => stream.get_ref().1.alpn_protocol(),
            _ => None,
        }
    }

    /// Whether the TLS handshake resumed an earlier session; `None` without TLS.
    pub(crate) fn resumes_tls(&self) -> Option<bool> {
        let Transport::Tls(stream) = self else { return None };
        let kind = stream.get_ref().1.handshake_kind()?;
        Some(kind == rustls::HandshakeKind::Resumed)
    }

    /// Ends the connection with RST; unsent data is lost. A unix socket has no RST: it is closed.
    pub(crate) fn reset(self) {
        if let Some(stream) = self.tcp() {
            // After an error it ends with FIN: the connection was over already.
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
        #[cfg(test)]
        if let Transport::Memory(stream) = self {
            stream.reset();
        }
    }

    /// The bare socket, deregistered from the runtime; `None` if that is impossible, and in memory.
    pub(crate) fn into_socket(self) -> Option<Socket> {
        match self {
            Transport::Tcp(stream) | Transport::Stamped(stream) => {
                stream.into_std().ok().map(Socket::from)
            }
            Transport::Unix(stream) => stream.into_std().ok().map(Socket::from),
            Transport::Tls(stream) => stream.into_inner().0.into_socket(),
            // It is closed: the handshake owns the socket.
            Transport::Securing(_) => None,
            Transport::Udp(socket) => socket.into_socket(),
            #[cfg(test)]
            Transport::Memory(_) => None,
        }
    }

    #[cfg(test)]
    pub(crate) fn in_memory(self, end: impl FnOnce(crate::world::MemoryStream)) {
        if let Transport::Memory(stream) = self {
            end(stream);
        }
    }

    /// Asks the kernel for the state of the connection; two system calls. `None` for UDP and unix
    /// sockets.
    pub(crate) fn tcp_info(&self) -> Option<TcpInfo> {
        #[cfg(test)]
        if let Transport::Memory(_) = self {
            let round_trip = Duration::from_micros(100);
            let (retransmits, out_of_order, backlog_bytes) = (0, 0, 0);
            return Some(TcpInfo { round_trip, retransmits, out_of_order, backlog_bytes });
        }
        let stream = self.tcp()?;
        let (round_trip, retransmits, out_of_order) = crate::system::tcp_state(stream).ok()?;
        Some(TcpInfo {
            round_trip: Duration::from_micros(u64::from(round_trip)),
            retransmits: u64::from(retransmits),
            out_of_order: u64::from(out_of_order),
            backlog_bytes: crate::system::unacknowledged(stream).ok()?,
        })
    }

    /// Bytes that were written and that the target's host has not acknowledged; `None` if unknown.
    pub(crate) fn unacknowledged(&self) -> Option<u64> {
        #[cfg(test)]
        if let Transport::Memory(stream) = self {
            return Some(stream.unacknowledged());
        }
        crate::system::unacknowledged(self.tcp()?).ok()
    }

    /// The TCP connection below; `None` for UDP, unix sockets and in memory.
    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Transport::Tcp(stream) | Transport::Stamped(stream) => Some(stream),
            Transport::Tls(stream) => stream.get_ref().0.tcp(),
            Transport::Unix(_) | Transport::Udp(_) | Transport::Securing(_) => None,
            #[cfg(test)]
            Transport::Memory(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpListener;

    use throng_base::Clock;

    use super::*;

    #[test]
    fn the_kernel_reports_the_tcp_state_and_a_reset_ends_the_connection() {
        let runtime = runtime();
        let _entered = runtime.enter();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut peer = listener.accept().unwrap().0;
        stream.write_all(b"hello").unwrap();
        peer.read_exact(&mut [0; 5]).unwrap();
        stream.set_nonblocking(true).unwrap();
        let transport = Transport::Stamped(stream::register(stream.into(), true).unwrap());
        let info = transport.tcp_info().unwrap();
        assert!(info.round_trip > Duration::ZERO && info.round_trip < Duration::from_secs(1));
        assert_eq!((info.retransmits, info.out_of_order, info.backlog_bytes), (0, 0, 0));
        transport.reset();
        let ended = peer.read(&mut [0; 1]).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
    }

    /// How long bytes stay in the socket before they are read.
    const LIES: Duration = Duration::from_millis(20);

    fn wait(clock: &Clock) {
        let begin = clock.now();
        while clock.now() - begin < LIES {
            std::thread::yield_now();
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap()
    }

    /// The kernel timestamps what arrives, as long as this is kept.
    fn stamping(clock: &Clock) -> Socket {
        let kept = stream::keep_stamping().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        crate::system::stamp_arrivals(&socket).unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        // A packet that arrives before timestamps are active is stamped when it is read.
        loop {
            socket.send(b"x").unwrap();
            wait(clock);
            let read = crate::system::receive(&socket, &mut [0; 8]).unwrap();
            if clock.unix_nanos() - read.stamp >= LIES.as_nanos() as u64 {
                return kept;
            }
        }
    }

    /// Reads once, and returns how long ago the data arrived at the kernel.
    async fn came(transport: &mut Transport, clock: &Clock) -> (usize, Duration) {
        let mut buffer = [0; 64];
        let read = poll_fn(|cx| transport.poll_read(cx, &mut buffer)).await.unwrap();
        assert!(read.stamp > 0, "the kernel gives no stamps");
        (read.bytes, Duration::from_nanos(clock.unix_nanos() - read.stamp))
    }

    #[test]
    fn data_has_its_kernel_timestamp_however_late_it_is_read() {
        let (runtime, clock) = (runtime(), Clock::start());
        let _kept = stamping(&clock);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut peer = listener.accept().unwrap().0;
        runtime.block_on(async {
            let mut transport = Transport::Stamped(stream::register(stream.into(), true).unwrap());
            peer.write_all(b"hello").unwrap();
            wait(&clock);
            // The timestamp is that of the last byte, which completes a response.
            peer.write_all(b" world").unwrap();
            let (bytes, ago) = came(&mut transport, &clock).await;
            assert!(bytes == 11 && ago < LIES, "{bytes} {ago:?}");
            peer.write_all(b"hello").unwrap();
            wait(&clock);
            let (bytes, ago) = came(&mut transport, &clock).await;
            assert!(bytes == 5 && ago >= LIES, "{bytes} {ago:?}");
            // A full buffer is not the end: what is left in the socket is still read.
            peer.write_all(&[b'x'; 100]).unwrap();
            wait(&clock);
            let pieces =
                [came(&mut transport, &clock).await.0, came(&mut transport, &clock).await.0];
            assert_eq!(pieces, [64, 36]);
            drop(peer);
            let end = poll_fn(|cx| transport.poll_read(cx, &mut [0; 8])).await.unwrap();
            assert_eq!(end, Received { bytes: 0, stamp: 0 });
        });
    }

    #[test]
    fn datagrams_have_kernel_timestamps_too() {
        let (runtime, clock) = (runtime(), Clock::start());
        let _kept = stamping(&clock);
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(peer.local_addr().unwrap()).unwrap();
        peer.connect(socket.local_addr().unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        runtime.block_on(async {
            crate::system::stamp_arrivals(&socket).unwrap();
            let socket = tokio::net::UdpSocket::from_std(socket).unwrap();
            let mut transport = Transport::Udp(Datagrams::new(socket));
            peer.send(b"one").unwrap();
            wait(&clock);
            peer.send(b"other").unwrap();
            let (one, ago) = came(&mut transport, &clock).await;
            let (other, later) = came(&mut transport, &clock).await;
            assert_eq!((one, other), (3, 5));
            assert!(ago >= LIES && later < ago, "{ago:?} {later:?}");
        });
    }
}
