//! A TCP connection that knows when its bytes arrived: by the kernel's timestamp, however late they
//! are read. Below TLS it may be a unix socket, whose bytes have no timestamps.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::system::{self, Received, UnixStream};

/// A socket that only requests timestamps: the kernel starts them shortly after the first request,
/// and continues while there is one.
pub(crate) fn keep_stamping() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    system::stamp_arrivals(&socket)?;
    Ok(socket)
}

/// Registers a connecting socket, with or without timestamps.
pub(crate) fn register(socket: Socket, stamps: bool) -> io::Result<TcpStream> {
    if stamps {
        // Without timestamps, its bytes arrive when they are read.
        let _ = system::stamp_arrivals(&socket);
    }
    TcpStream::from_std(socket.into())
}

/// Reads what has arrived. A partly filled buffer means that the socket is drained: the runtime
/// then knows, and the next poll costs no system call (epoll(7), edge-triggered).
#[inline]
pub(crate) fn poll_receive(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<Received>> {
    loop {
        ready!(socket.poll_read_ready(cx))?;
        let mut drained = None;
        let read = socket.try_io(Interest::READABLE, || {
            let received = system::receive(socket, buffer)?;
            if received.bytes == 0 || received.bytes == buffer.len() {
                return Ok(received);
            }
            drained = Some(received);
            Err(io::ErrorKind::WouldBlock.into())
        });
        match (drained, read) {
            (Some(received), _) | (None, Ok(received)) => return Poll::Ready(Ok(received)),
            (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            (None, Err(error)) => return Poll::Ready(Err(error)),
        }
    }
}

/// Writes as much as the socket takes.
#[inline]
pub(crate) fn poll_write(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    poll_send(socket, cx, bytes.len(), || {
        SockRef::from(socket).send_with_flags(bytes, system::MSG_NOSIGNAL)
    })
}

/// Writes as much of the pieces as the socket takes.
pub(crate) fn poll_write_pieces(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    pieces: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    poll_send(socket, cx, pieces.iter().map(|piece| piece.len()).sum(), || {
        SockRef::from(socket).send_vectored_with_flags(pieces, system::MSG_NOSIGNAL)
    })
}

/// Sends so many bytes. As in [`poll_receive`], a part of them is a sign that the socket is full.
/// It hardly ever is: the runtime is asked to wake the user only when it is, and takes nothing from
/// what the user may do before the others have their turn.
#[inline]
fn poll_send(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    all: usize,
    mut send: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        let mut full = None;
        let written = socket.try_io(Interest::WRITABLE, || {
            let count = send()?;
            if count == all {
                return Ok(count);
            }
            full = Some(count);
            Err(io::ErrorKind::WouldBlock.into())
        });
        match (full, written) {
            (Some(count), _) | (None, Ok(count)) => return Poll::Ready(Ok(count)),
            (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                ready!(socket.poll_write_ready(cx))?;
            }
            (None, Err(error)) => return Poll::Ready(Err(error)),
        }
    }
}

/// Whether nothing has come, as far as the runtime knows.
#[inline]
pub(crate) fn is_silent(socket: &TcpStream) -> bool {
    socket.try_io(Interest::READABLE, || Ok(())).is_err()
}

/// The socket below TLS. It keeps the timestamp of the last read, for the records that it
/// completed.
pub(crate) struct Stamped {
    below: Below,
    stamp: u64,
}

/// What carries the TLS records.
pub(crate) enum Below {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stamped {
    pub(crate) fn new(below: Below) -> Stamped {
        Stamped { below, stamp: 0 }
    }

    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match &self.below {
            Below::Tcp(socket) => Some(socket),
            Below::Unix(_) => None,
        }
    }

    pub(crate) fn into_socket(self) -> Option<Socket> {
        match self.below {
            Below::Tcp(socket) => socket.into_std().ok().map(Socket::from),
            Below::Unix(socket) => socket.into_std().ok().map(Socket::from),
        }
    }

    /// Copies the first bytes that have arrived and leaves them in the socket.
    pub(crate) fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match &self.below {
            Below::Tcp(socket) => {
                let mut buffer = ReadBuf::new(buffer);
                socket.poll_peek(cx, &mut buffer).map_ok(|_| buffer.filled().len())
            }
            // The runtime has no peek for it: the kernel is asked.
            Below::Unix(socket) => match system::peek(socket, buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                read => Poll::Ready(read),
            },
        }
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }
}

impl AsyncRead for Stamped {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let socket = match &mut this.below {
            Below::Tcp(socket) => socket,
            Below::Unix(socket) => return Pin::new(socket).poll_read(cx, buffer),
        };
        let received = ready!(poll_receive(socket, cx, buffer.initialize_unfilled()))?;
        this.stamp = received.stamp;
        buffer.advance(received.bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().below {
            Below::Tcp(socket) => poll_write(socket, cx, bytes),
            Below::Unix(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().below {
            Below::Tcp(socket) => poll_write_pieces(socket, cx, pieces),
            Below::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().below {
            Below::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            Below::Unix(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
