//! A TCP server that misbehaves: each test defines what it does with a connection.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::run::PATIENCE;

/// The maximum number of connections per test.
const CONNECTIONS_MAX: u64 = 10_000;

pub(crate) struct Faulty {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Faulty {
    /// `serve` handles each connection on its own thread; the connection ends when `serve` returns.
    pub(crate) fn start(serve: impl Fn(Peer) + Send + Sync + 'static) -> Faulty {
        Faulty::start_on("127.0.0.1:0", serve)
    }

    /// On an address that the test knows in advance.
    pub(crate) fn start_on(address: &str, serve: impl Fn(Peer) + Send + Sync + 'static) -> Faulty {
        Faulty::start_by(TcpListener::bind(address).expect("a free port"), serve)
    }

    /// With a listener that the test has created.
    pub(crate) fn start_by(
        listener: TcpListener,
        serve: impl Fn(Peer) + Send + Sync + 'static,
    ) -> Faulty {
        let address = listener.local_addr().expect("an address");
        let (accepted, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end, serve) = (Arc::clone(&accepted), Arc::clone(&ends), Arc::new(serve));
        let thread = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = stream.set_nodelay(true);
                let many = count.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX;
                if many || end.load(Ordering::SeqCst) {
                    return;
                }
                let serve = Arc::clone(&serve);
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
                stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
                thread::spawn(move || serve(Peer(stream)));
            }
        });
        Faulty { address, accepted, ends, thread: Some(thread) }
    }

    /// Sends `answer` after the first bytes, then closes.
    pub(crate) fn says(answer: impl Into<Vec<u8>>) -> Faulty {
        let answer = answer.into();
        Faulty::start(move |mut peer| {
            peer.hears();
            peer.says(&answer);
            peer.closes();
        })
    }

    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}/", self.address)
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Faulty {
    /// From now on, connections are refused.
    pub(crate) fn refuse(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.ends.store(true, Ordering::SeqCst);
        // Wakes the thread; it is not a connection of the test.
        if TcpStream::connect(self.address).is_ok() {
            let _ = thread.join();
            self.accepted.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.refuse();
    }
}

/// A client of the faulty server.
pub(crate) struct Peer(TcpStream);

impl Peer {
    /// Reads once; false if the client has disconnected.
    pub(crate) fn hears(&mut self) -> bool {
        let mut buffer = [0; 64 * 1024];
        matches!(self.0.read(&mut buffer), Ok(1..))
    }

    /// The next bytes; none if the client has disconnected.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let mut buffer = vec![0; 64 * 1024];
        let many = self.0.read(&mut buffer).unwrap_or(0);
        buffer.truncate(many);
        buffer
    }

    /// A complete request with a body by its length; `None` if the client has disconnected.
    pub(crate) fn request(&mut self) -> Option<String> {
        let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let text = String::from_utf8_lossy(&request).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let head = head.to_ascii_lowercase();
                let length = head.split("content-length: ").nth(1);
                let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
                if body.len() >= length.unwrap_or(0) {
                    return Some(text);
                }
            }
            match self.0.read(&mut buffer) {
                Ok(n @ 1..) => request.extend_from_slice(&buffer[..n]),
                _ => return None,
            }
        }
    }

    /// False if the client has disconnected.
    pub(crate) fn says(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    /// Sends nothing until the client disconnects.
    pub(crate) fn waits(mut self) {
        while self.hears() {}
    }

    /// Closes the connection gracefully: no sent bytes are lost.
    pub(crate) fn closes(self) {
        let _ = self.0.shutdown(std::net::Shutdown::Write);
        self.waits();
    }

    /// The connection itself, for a server that continues in another way.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.0
    }

    /// Ends the connection by a reset.
    pub(crate) fn resets(self) {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: the socket is open, and the length is that of the structure.
        let done = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const linger).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            )
        };
        assert_eq!(done, 0, "SO_LINGER is set");
    }
}
