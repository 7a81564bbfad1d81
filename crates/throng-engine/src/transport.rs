//! A connection's bytes: TCP, TLS over TCP, or memory in tests. The only difference between them
//! that the rest of the engine sees is in these few functions.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

pub(crate) enum Transport {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
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
    /// Written to the socket and not acknowledged, whether it was sent or not.
    pub(crate) backlog_bytes: u64,
}

impl Transport {
    /// Reads what is there into `buffer`; 0 is the end of the stream.
    ///
    /// Reading by `poll_read` and not by `try_read` matters: the runtime then knows that a buffer
    /// filled in part has drained the socket, and the next poll costs no system call.
    #[inline]
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(match self {
            Transport::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, &mut buffer),
            #[cfg(test)]
            Transport::Memory(stream) => stream.poll_read(cx, &mut buffer),
        })?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    #[inline]
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Transport::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
            #[cfg(test)]
            Transport::Memory(stream) => stream.poll_write(cx, bytes),
        }
    }

    /// Passes on what TLS still holds; Pending when the socket is full.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            Transport::Tcp(_) => Poll::Ready(Ok(())),
            #[cfg(test)]
            Transport::Memory(_) => Poll::Ready(Ok(())),
        }
    }

    /// Says the last word of TLS, as far as the socket takes it at once.
    pub(crate) fn say_goodbye(&mut self, cx: &mut Context<'_>) {
        if let Transport::Tls(stream) = self {
            let _ = Pin::new(stream.as_mut()).poll_shutdown(cx);
        }
    }

    /// Ends the connection with RST; what was not sent is lost.
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

    /// Asks the kernel for the state of the connection; two system calls.
    pub(crate) fn tcp_info(&self) -> Option<TcpInfo> {
        let Some(stream) = self.tcp() else {
            let round_trip = Duration::from_micros(100);
            return Some(TcpInfo { round_trip, retransmits: 0, backlog_bytes: 0 });
        };
        let (round_trip, retransmits) = crate::system::tcp_state(stream).ok()?;
        Some(TcpInfo {
            round_trip: Duration::from_micros(u64::from(round_trip)),
            retransmits: u64::from(retransmits),
            backlog_bytes: crate::system::unacknowledged(stream).ok()?,
        })
    }

    /// The connection below; there is none in memory.
    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Transport::Tcp(stream) => Some(stream),
            Transport::Tls(stream) => Some(stream.get_ref().0),
            #[cfg(test)]
            Transport::Memory(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_kernel_tells_of_a_connection_and_a_reset_ends_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _entered = runtime.enter();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut peer = listener.accept().unwrap().0;
        stream.write_all(b"hello").unwrap();
        peer.read_exact(&mut [0; 5]).unwrap();
        stream.set_nonblocking(true).unwrap();
        let transport = Transport::Tcp(TcpStream::from_std(stream).unwrap());
        let info = transport.tcp_info().unwrap();
        assert!(info.round_trip > Duration::ZERO && info.round_trip < Duration::from_secs(1));
        assert_eq!((info.retransmits, info.backlog_bytes), (0, 0));
        transport.reset();
        let ended = peer.read(&mut [0; 1]).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
    }
}
