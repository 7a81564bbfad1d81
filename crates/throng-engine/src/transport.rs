//! A connection's bytes: TCP, a unix socket, TLS over one of them, datagrams of UDP, or memory in
//! tests. The only difference between them that the rest of the engine sees is in these few
//! functions.
//! `stream`: a socket of TCP. `unix`: opening one that has a name. `datagrams`: one of UDP. `pace`:
//! how fast a slow user reads and writes. `pieces`: writing from two buffers at once.

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

/// What fits into a datagram of UDP over IPv4, and on any host over IPv6 too (RFC 768).
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;
/// What may wait in the socket of a user that reads slowly; the kernel doubles it (socket(7)). With
/// the usual 128 KiB and more a target would not notice such a user for minutes.
pub(crate) const SLOW_RECEIVE_BYTES: usize = 4_096;

pub(crate) enum Transport {
    Tcp(TcpStream),
    /// The same, with stamps. Not asking for them spares every read a tenth of a microsecond.
    Stamped(TcpStream),
    /// Of it the kernel knows no receive stamps and nothing that TCP knows.
    Unix(UnixStream),
    Tls(Box<TlsStream<Stamped>>),
    /// TLS begins on it: nothing else is read or written until it has.
    Securing(Pin<Box<dyn Future<Output = Result<Transport, Failure>>>>),
    /// Connected: it hears its target alone, and of ports that nobody listens at.
    Udp(Datagrams),
    #[cfg(test)]
    Memory(crate::world::MemoryStream),
}

/// What the kernel says of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// The smoothed round-trip time.
    pub(crate) round_trip: Duration,
    /// Segments that were sent again since the connection was opened.
    pub(crate) retransmits: u64,
    /// Segments that came out of order since then.
    pub(crate) out_of_order: u64,
    /// Written to the socket and not acknowledged, whether it was sent or not.
    pub(crate) backlog_bytes: u64,
}

impl Transport {
    /// Messages come and go as they are, each in a datagram: none is ever joined or split, and
    /// there is no end that could come. One without a byte is a message too.
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

    /// Reads what is there into `buffer`; 0 is the end of the stream. Of datagrams it is the next
    /// one, however few bytes it has: `buffer` has to be as large as one can be, or its rest is
    /// lost.
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

    /// Writes as much as the socket takes; a datagram as a whole or not at all.
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

    /// Whether TLS can begin on it.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Transport::Tcp(_) | Transport::Stamped(_) | Transport::Unix(_) => true,
            Transport::Tls(_) | Transport::Securing(_) | Transport::Udp(_) => false,
            #[cfg(test)]
            Transport::Memory(_) => true,
        }
    }

    /// Goes on with the handshake of TLS, if there is one.
    pub(crate) fn poll_secure(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if let Transport::Securing(handshake) = self {
            *self = ready!(handshake.as_mut().poll(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Passes on what TLS still holds; Pending when the socket is full.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Says the last word of TLS, as far as the socket takes it at once.
    pub(crate) fn say_goodbye(&mut self, cx: &mut Context<'_>) {
        if let Transport::Tls(stream) = self {
            let _ = Pin::new(stream.as_mut()).poll_shutdown(cx);
        }
    }

    /// What both ends of TLS have agreed to speak (ALPN, RFC 7301), if they have.
    pub(crate) fn application_protocol(&self) -> Option<&[u8]> {
        match self {
            Transport::Tls(stream) => stream.get_ref().1.alpn_protocol(),
            _ => None,
        }
    }

    /// Whether the handshake of TLS went on with an earlier session; None without TLS.
    pub(crate) fn resumes_tls(&self) -> Option<bool> {
        let Transport::Tls(stream) = self else { return None };
        let kind = stream.get_ref().1.handshake_kind()?;
        Some(kind == rustls::HandshakeKind::Resumed)
    }

    /// Ends the connection with RST; what was not sent is lost. A unix socket has no RST: it is
    /// closed.
    pub(crate) fn reset(self) {
        if let Some(stream) = self.tcp() {
            // An error leaves it at FIN: the connection was over already.
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
        #[cfg(test)]
        if let Transport::Memory(stream) = self {
            stream.reset();
        }
    }

    /// The socket alone, which no runtime looks at any more; None when that cannot be had, and in
    /// memory.
    pub(crate) fn into_socket(self) -> Option<Socket> {
        match self {
            Transport::Tcp(stream) | Transport::Stamped(stream) => {
                stream.into_std().ok().map(Socket::from)
            }
            Transport::Unix(stream) => stream.into_std().ok().map(Socket::from),
            Transport::Tls(stream) => stream.into_inner().0.into_socket(),
            // It is closed: the handshake cannot be taken from it.
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

    /// Asks the kernel for the state of the connection; two system calls. Of datagrams and of unix
    /// sockets it knows nothing.
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

    /// Bytes that were written and that the target's host has not acknowledged; None where nobody
    /// knows.
    pub(crate) fn unacknowledged(&self) -> Option<u64> {
        #[cfg(test)]
        if let Transport::Memory(stream) = self {
            return Some(stream.unacknowledged());
        }
        crate::system::unacknowledged(self.tcp()?).ok()
    }

    /// The TCP connection below; there is none of datagrams, unix sockets and in memory.
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
    fn the_kernel_tells_of_a_connection_and_a_reset_ends_it() {
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

    /// Lets what comes lie in the socket for as long as this.
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

    /// The kernel stamps what comes, from now on and as long as this is kept.
    fn stamping(clock: &Clock) -> Socket {
        let kept = stream::keep_stamping().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        crate::system::stamp_arrivals(&socket).unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        // Where it did not stamp a packet that came, it does when that is read.
        loop {
            socket.send(b"x").unwrap();
            wait(clock);
            let read = crate::system::receive(&socket, &mut [0; 8]).unwrap();
            if clock.unix_nanos() - read.stamp >= LIES.as_nanos() as u64 {
                return kept;
            }
        }
    }

    /// Reads once, and says how long ago the kernel had it.
    async fn came(transport: &mut Transport, clock: &Clock) -> (usize, Duration) {
        let mut buffer = [0; 64];
        let read = poll_fn(|cx| transport.poll_read(cx, &mut buffer)).await.unwrap();
        assert!(read.stamp > 0, "the kernel gives no stamps");
        (read.bytes, Duration::from_nanos(clock.unix_nanos() - read.stamp))
    }

    #[test]
    fn what_comes_is_stamped_by_the_kernel_however_late_it_is_read() {
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
            // The stamp is that of the last byte, which makes an answer whole.
            peer.write_all(b" world").unwrap();
            let (bytes, ago) = came(&mut transport, &clock).await;
            assert!(bytes == 11 && ago < LIES, "{bytes} {ago:?}");
            peer.write_all(b"hello").unwrap();
            wait(&clock);
            let (bytes, ago) = came(&mut transport, &clock).await;
            assert!(bytes == 5 && ago >= LIES, "{bytes} {ago:?}");
            // A buffer that is filled is not the last: nothing that lies there is forgotten.
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
    fn datagrams_are_stamped_too() {
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
