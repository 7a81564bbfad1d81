//! Connects to a unix socket (unix(7)): a name instead of addresses and ports.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use socket2::{Domain, SockAddr, Type};
use throng_base::Said;
use throng_metrics::Cause;
use throng_program::UnixSocket;

use crate::failure::{Failure, cause_of};
use crate::system::{self, Timer, UnixStream};

/// How long a connection waits before it tries again if the queue of the socket is full. It doubles
/// each time: TCP would resend its first packet after a second.
const WAIT: Duration = Duration::from_millis(1);
const WAIT_MAX: Duration = Duration::from_millis(64);

/// Opens a connection, as soon as the target accepts it.
pub(crate) async fn connect(to: &UnixSocket) -> Result<UnixStream, Failure> {
    let failed = |error: io::Error| refused(to, &error);
    let address = SockAddr::unix(to.sun_path()).map_err(failed)?;
    let socket = system::socket(Domain::UNIX, Type::STREAM, None).map_err(failed)?;
    let mut wait = WAIT;
    while let Err(error) = socket.connect(&address) {
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(failed(error));
        }
        // The queue is full (listen(2)), and the kernel does not report when it has room again.
        pause(wait).await.map_err(failed)?;
        wait = (wait * 2).min(WAIT_MAX);
    }
    UnixStream::from_std(socket.into()).map_err(failed)
}

async fn pause(time: Duration) -> io::Result<()> {
    let timer = Timer::new()?;
    timer.set(time)?;
    poll_fn(|cx| timer.poll(cx)).await;
    Ok(())
}

fn refused(to: &UnixSocket, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => Failure::new(
            Cause::ConnectRefused,
            say!(
                "{to}: this socket does not exist; check the path, and check that the target is \
                 running"
            ),
        ),
        Some(libc::ECONNREFUSED) => Failure::new(
            Cause::ConnectRefused,
            say!("{to}: no program listens on this socket; check that the target is running"),
        ),
        Some(libc::EACCES | libc::EPERM) => Failure::new(
            Cause::Denied,
            say!(
                "{to}: this user does not have permission to write to the socket or enter its \
                 directory"
            ),
        ),
        Some(libc::EPROTOTYPE) => Failure::new(
            Cause::WrongScheme,
            say!("{to}: this is a datagram socket, not a stream socket"),
        ),
        _ => Failure::new(cause_of(error), say!("{to}: {}", Said::reason(error))),
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap()
    }

    /// A name that no other test uses.
    fn name(of: &str) -> UnixSocket {
        UnixSocket::Abstract(format!("throng-{of}-{}", std::process::id()))
    }

    #[test]
    fn a_full_queue_is_waited_for() {
        let to = name("queue");
        let listener = socket2::Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(to.sun_path()).unwrap()).unwrap();
        listener.listen(0).unwrap();
        runtime().block_on(async {
            connect(&to).await.unwrap();
            let mut second = std::pin::pin!(connect(&to));
            let polled = poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx))).await;
            assert!(polled.is_pending(), "the queue has no room for a second");
            listener.accept().unwrap();
            second.await.unwrap();
            listener.accept().unwrap();
        });
    }

    #[test]
    fn a_refusal_is_reported_with_its_cause() {
        let failing = |to: &UnixSocket| runtime().block_on(connect(to)).unwrap_err();
        let failure = failing(&UnixSocket::Path("/nowhere/it.sock".into()));
        assert_eq!(failure.cause, Cause::ConnectRefused);
        assert!(
            failure.detail.english().starts_with("/nowhere/it.sock: this socket does not exist")
        );
        let to = name("nobody");
        let failure = failing(&to);
        assert_eq!(failure.cause, Cause::ConnectRefused);
        assert!(
            failure.detail.english().starts_with(&format!("{to}: no program listens")),
            "{failure:?}"
        );
        // Root may connect to all of them.
        for (error, cause) in
            [(libc::EACCES, Cause::Denied), (libc::EPROTOTYPE, Cause::WrongScheme)]
        {
            assert_eq!(refused(&to, &io::Error::from_raw_os_error(error)).cause, cause);
        }
    }
}
