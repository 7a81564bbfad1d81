//! A connection's bytes: TCP, TLS over TCP, or memory in tests. The only difference between them
//! that the rest of the engine sees is in these few functions.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

pub(crate) enum Transport {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    #[cfg(test)]
    Memory(crate::world::MemoryStream),
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
}
