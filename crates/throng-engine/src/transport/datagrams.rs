//! A connected UDP socket. Unlike tokio's own, it also wakes a waiting reader when the target's
//! host reports a closed port. That arrives only as an error event (EPOLLERR without EPOLLIN),
//! which tokio does not report to readers.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use throng_base::Told;

use socket2::Socket;
use tokio::io::{Interest, Ready};
use tokio::net::UdpSocket;

use super::DATAGRAM_BYTES_MAX;
use crate::system;
use crate::system::Received;

type Watch = Pin<Box<dyn Future<Output = io::Result<Ready>> + Send>>;

pub(crate) struct Datagrams {
    /// Waits for an error of the socket.
    failed: Watch,
    socket: Arc<UdpSocket>,
}

impl Datagrams {
    /// Heap memory of each: the shared socket with its counts, and the wait.
    pub(crate) const HEAP_BYTES: [u64; 2] = [size_of::<UdpSocket>() as u64 + 16, WATCH_BYTES];

    pub(crate) fn new(socket: UdpSocket) -> Datagrams {
        let socket = Arc::new(socket);
        Datagrams { failed: watch(&socket), socket }
    }

    #[inline]
    pub(crate) fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>> {
        while let Poll::Ready(ready) = self.socket.poll_recv_ready(cx) {
            ready?;
            let receive = || system::receive(&*self.socket, buffer);
            match self.socket.try_io(Interest::READABLE, receive) {
                Ok(received) => return Poll::Ready(Ok(received)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(told(error))),
            }
        }
        loop {
            ready!(self.failed.as_mut().poll(cx))?;
            // The error may already have been returned to the next send.
            let clear = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            let _ = self.socket.try_io(Interest::ERROR, clear);
            self.failed = watch(&self.socket);
            if let Some(error) = self.socket.take_error()? {
                return Poll::Ready(Err(told(error)));
            }
        }
    }

    /// Sends all of them or none.
    #[inline]
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_send(cx, bytes).map_err(|error| unsent(error, bytes.len()))
    }

    /// The bare socket, deregistered from the runtime.
    pub(crate) fn into_socket(self) -> Option<Socket> {
        drop(self.failed);
        Arc::into_inner(self.socket)?.into_std().ok().map(Socket::from)
    }
}

/// Size of a [`watch`]; a test checks it.
const WATCH_BYTES: u64 = 160;

fn watch(socket: &Arc<UdpSocket>) -> Watch {
    Box::pin(wait_for_error(Arc::clone(socket)))
}

async fn wait_for_error(socket: Arc<UdpSocket>) -> io::Result<Ready> {
    socket.ready(Interest::ERROR).await
}

/// The meaning of an error on a UDP socket: the host of the target has reported a closed port
/// (ICMP, port unreachable).
fn told(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => {
            let text = say!("no program listens on this port (ICMP port unreachable)");
            io::Error::new(io::ErrorKind::ConnectionRefused, Told(text))
        }
        _ => error,
    }
}

/// Why a datagram of this size was not sent.
fn unsent(error: io::Error, bytes: usize) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EMSGSIZE) => {
            let text = say!(
                "a datagram of {bytes} bytes is too large: the maximum is {DATAGRAM_BYTES_MAX}, \
                 and the network may allow fewer"
            );
            io::Error::new(io::ErrorKind::InvalidInput, Told(text))
        }
        _ => told(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as Peer;

    use throng_metrics::Cause;
    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::failure::lost_failure;
    use crate::transport::Transport;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_io().build().unwrap()
    }

    /// A UDP socket, and its target.
    fn pair() -> (Transport, Peer) {
        let target = Peer::bind("127.0.0.1:0").unwrap();
        let socket = Peer::bind("127.0.0.1:0").unwrap();
        socket.connect(target.local_addr().unwrap()).unwrap();
        target.connect(socket.local_addr().unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        (Transport::Udp(Datagrams::new(UdpSocket::from_std(socket).unwrap())), target)
    }

    async fn send(transport: &mut Transport, bytes: &[u8]) -> io::Result<usize> {
        std::future::poll_fn(|cx| transport.poll_write(cx, bytes)).await
    }

    async fn receive(transport: &mut Transport) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; crate::shard::READ_BUFFER_BYTES];
        let read = std::future::poll_fn(|cx| transport.poll_read(cx, &mut buffer)).await?;
        Ok(buffer[..read.bytes].to_vec())
    }

    #[test]
    fn a_datagram_of_any_size_is_a_message() {
        runtime().block_on(async {
            let (mut transport, target) = pair();
            assert!(transport.is_datagram() && transport.tcp_info().is_none());
            let largest = vec![b'x'; DATAGRAM_BYTES_MAX];
            for message in [&b"one"[..], b"", b"two", &largest] {
                assert_eq!(send(&mut transport, message).await.unwrap(), message.len());
                let mut heard = vec![0; DATAGRAM_BYTES_MAX + 1];
                let count = target.recv(&mut heard).unwrap();
                assert!(&heard[..count] == message);
                target.send(message).unwrap();
            }
            for message in [&b"one"[..], b"", b"two", &largest] {
                assert!(receive(&mut transport).await.unwrap() == message);
            }
        });
    }

    #[test]
    fn datagram_errors_are_reported() {
        runtime().block_on(async {
            let (mut transport, _target) = pair();
            let error = send(&mut transport, &[0; DATAGRAM_BYTES_MAX + 1]).await.unwrap_err();
            let failure = lost_failure(&error);
            assert_eq!(failure.cause, Cause::ScenarioFailed);
            assert!(failure.detail.english().contains("65508 bytes"), "{:?}", failure.detail);
        });
    }

    #[test]
    fn a_waiting_reader_learns_of_a_closed_port_and_reads_from_a_later_listener() {
        runtime().block_on(async {
            let (mut transport, target) = pair();
            let address = target.local_addr().unwrap();
            drop(target);
            // Reported by its next operation, whether it waits or sends.
            for waits in [true, false] {
                send(&mut transport, b"anybody?").await.unwrap();
                let error = match waits {
                    true => receive(&mut transport).await.unwrap_err(),
                    false => send(&mut transport, b"anybody?").await.unwrap_err(),
                };
                let failure = lost_failure(&error);
                assert_eq!(failure.cause, Cause::ConnectRefused);
                assert!(
                    failure
                        .detail
                        .english()
                        .contains("no program listens on this port (ICMP port unreachable)"),
                    "{:?}",
                    failure.detail
                );
            }
            let target = Peer::bind(address).unwrap();
            send(&mut transport, b"and now?").await.unwrap();
            let (_, from) = target.recv_from(&mut [0; 8]).unwrap();
            target.send_to(b"yes", from).unwrap();
            assert_eq!(receive(&mut transport).await.unwrap(), b"yes");
        });
    }

    #[test]
    fn the_wait_for_an_error_is_small() {
        runtime().block_on(async {
            let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
            let watched = wait_for_error(Arc::clone(&socket));
            assert!(size_of_val(&watched) as u64 <= WATCH_BYTES, "{}", size_of_val(&watched));
            drop(watched);
            let socket = Arc::into_inner(socket).unwrap();
            assert!(Datagrams::new(socket).into_socket().is_some());
        });
    }
}
