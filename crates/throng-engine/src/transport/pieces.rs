//! Writes from two buffers in one call.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite as _;

use super::{Transport, stream};

/// Bytes to send: some that only this connection sends, followed by some that all share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces<'a> {
    pub(crate) own: &'a [u8],
    pub(crate) shared: &'a [u8],
}

impl<'a> Pieces<'a> {
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.own.len() + self.shared.len()
    }

    /// All but the first `count`.
    #[inline]
    pub(crate) fn behind(self, count: usize) -> Pieces<'a> {
        let own = count.min(self.own.len());
        Pieces { own: &self.own[own..], shared: &self.shared[count - own..] }
    }

    /// The first `count`.
    #[inline]
    pub(crate) fn first(self, count: usize) -> Pieces<'a> {
        let own = count.min(self.own.len());
        Pieces { own: &self.own[..own], shared: &self.shared[..count - own] }
    }

    pub(crate) fn to_vec(self) -> Vec<u8> {
        [self.own, self.shared].concat()
    }
}

impl Transport {
    /// Writes as much of both as the socket takes, in one system call and without a copy.
    #[inline]
    pub(crate) fn poll_write_pieces(
        &mut self,
        cx: &mut Context<'_>,
        pieces: Pieces<'_>,
    ) -> Poll<io::Result<usize>> {
        match (pieces.own, pieces.shared) {
            (own, []) => self.poll_write(cx, own),
            ([], shared) => self.poll_write(cx, shared),
            (own, shared) => self.poll_write_both(cx, [own, shared]),
        }
    }

    fn poll_write_both(
        &mut self,
        cx: &mut Context<'_>,
        both: [&[u8]; 2],
    ) -> Poll<io::Result<usize>> {
        let slices = both.map(IoSlice::new);
        match self {
            Transport::Tcp(stream) | Transport::Stamped(stream) => {
                stream::poll_write_pieces(stream, cx, &slices)
            }
            Transport::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, &slices),
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, &slices),
            Transport::Securing(_) => Poll::Pending,
            // A message is one datagram.
            Transport::Udp(socket) => socket.poll_send(cx, &both.concat()),
            #[cfg(test)]
            Transport::Memory(stream) => stream.poll_write(cx, &both.concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use socket2::SockRef;
    use tokio::net::TcpStream;

    use super::*;

    /// The socket is small: it takes a part at a time.
    #[test]
    fn two_pieces_arrive_as_one_whatever_the_socket_takes() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _entered = runtime.enter();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut peer = listener.accept().unwrap().0;
        SockRef::from(&stream).set_send_buffer_size(4096).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut transport = Transport::Tcp(TcpStream::from_std(stream).unwrap());
        let (own, shared) = (vec![b'o'; 1000], vec![b's'; 1_000_000]);
        let pieces = Pieces { own: &own, shared: &shared };
        let reader = std::thread::spawn(move || {
            let mut heard = Vec::new();
            peer.read_to_end(&mut heard).unwrap();
            heard
        });
        let mut writes = 0;
        runtime.block_on(async {
            let mut sent = 0;
            while sent < pieces.len() {
                let left = pieces.behind(sent);
                sent +=
                    std::future::poll_fn(|cx| transport.poll_write_pieces(cx, left)).await.unwrap();
                writes += 1;
            }
        });
        assert!(writes > 1, "the socket did not take it at once");
        drop(transport);
        assert!(reader.join().unwrap() == pieces.to_vec());
    }

    #[test]
    fn pieces_can_be_split_at_every_byte() {
        let pieces = Pieces { own: b"head", shared: b"body" };
        for first in 0..=pieces.len() {
            for count in 0..=pieces.len() - first {
                let cut = pieces.behind(first).first(count);
                assert_eq!(cut.to_vec(), b"headbody"[first..first + count]);
            }
        }
    }
}
