//! Connections that were left without a word: their sockets stay open for a while and hear nothing,
//! so that the kernel answers nothing either. A phone that lost its network looks like that.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use socket2::{SockFilter, SockRef, Socket};
use throng_base::Time;
use tokio::net::TcpStream;

use crate::system;

/// How long a connection stays silent. Many targets have noticed by then; the others get a reset:
/// when they speak again, or, where sockets may not be left silently, at once.
pub(crate) const KEPT_MAX: Duration = Duration::from_secs(120);
/// How many are kept on one shard, where its table of descriptors is large enough.
pub(crate) const KEPT_COUNT_MAX: usize = 4096;

/// A filter that lets no packet through: it returns how many bytes of it are kept.
const DROP: SockFilter = SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0);

/// The vanished connections of one shard, the oldest first.
pub(crate) struct Vanished {
    kept: RefCell<VecDeque<(Time, Silent)>>,
    count_max: usize,
}

impl Vanished {
    pub(crate) fn new(count_max: usize) -> Vanished {
        Vanished { kept: RefCell::default(), count_max: count_max.clamp(1, KEPT_COUNT_MAX) }
    }

    /// Keeps a connection from now on silent. One that cannot be made so ends with a reset.
    pub(crate) fn keep(&self, stream: TcpStream, now: Time) {
        let filtered = SockRef::from(&stream).attach_filter(&[DROP]);
        let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        let (Ok(()), Ok(stream)) = (filtered, stream.into_std()) else { return };
        self.forget(now);
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= self.count_max {
            kept.pop_front();
        }
        kept.push_back((now, Silent(stream.into())));
    }

    /// Lets those go that were kept long enough.
    pub(crate) fn forget(&self, now: Time) {
        let mut kept = self.kept.borrow_mut();
        while kept.pop_front_if(|(since, _)| now - *since >= KEPT_MAX).is_some() {}
    }
}

/// The socket of a vanished connection. It is closed without a word where we may do that, else
/// with a reset.
struct Silent(Socket);

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = system::set_tcp_repair(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use tokio::runtime::Builder;

    use super::*;

    /// Both ends of a connection; the second is the peer.
    fn pair() -> (TcpStream, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let peer = listener.accept().unwrap().0;
        peer.set_nonblocking(true).unwrap();
        (TcpStream::from_std(stream).unwrap(), peer)
    }

    #[test]
    fn a_vanished_connection_answers_nothing() {
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        let _entered = runtime.enter();
        let vanished = Vanished::new(2);
        let (stream, mut peer) = pair();
        vanished.keep(stream, Time::ZERO);
        peer.write_all(b"are you there?").unwrap();
        let mut buffer = [0; 8];
        let heard = peer.read(&mut buffer);
        assert_eq!(heard.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        // What the peer sent stays unacknowledged.
        assert_eq!(system::unacknowledged(&peer).unwrap(), 14);
        assert_eq!(vanished.kept.borrow().len(), 1);
    }

    #[test]
    fn the_oldest_goes_first_and_none_stays_for_ever() {
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        let _entered = runtime.enter();
        let vanished = Vanished::new(2);
        let mut peers = Vec::new();
        for second in 0..3 {
            let (stream, peer) = pair();
            vanished.keep(stream, Time::from_secs(second));
            peers.push(peer);
        }
        assert_eq!(vanished.kept.borrow().len(), 2);
        vanished.forget(Time::from_secs(1) + KEPT_MAX);
        assert_eq!(vanished.kept.borrow().len(), 1);
        vanished.forget(Time::from_secs(2) + KEPT_MAX);
        assert!(vanished.kept.borrow().is_empty());
    }
}
