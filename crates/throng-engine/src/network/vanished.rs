//! Connections that users left and that are kept open: silent ones receive nothing for a while, so
//! that the kernel does not answer either, as if a phone had lost its network; half-closed ones
//! stay unread until the target closes its half.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use socket2::Socket;
use throng_base::Time;

use crate::system;

/// How long a connection stays silent. Many targets have noticed by then; the others get a reset
/// when they send again, or immediately if sockets cannot be closed silently.
pub(crate) const KEPT_MAX: Duration = Duration::from_secs(120);
/// How many of both kinds are kept on one shard, if its file descriptor table is large enough.
/// Beyond that, the oldest is closed.
pub(crate) const KEPT_COUNT_MAX: usize = 4096;

/// The connections that one shard keeps, oldest first.
pub(crate) struct Vanished {
    silent: RefCell<VecDeque<(Time, Silent)>>,
    half_closed: RefCell<VecDeque<(Time, Socket)>>,
    count_max: usize,
}

impl Vanished {
    pub(crate) fn new(count_max: usize) -> Vanished {
        Vanished {
            silent: RefCell::default(),
            half_closed: RefCell::default(),
            count_max: count_max.clamp(1, KEPT_COUNT_MAX),
        }
    }

    /// Keeps a connection silent from now on. If that fails, it ends with a reset. A UDP socket is
    /// always silent: what arrives is dropped without a reply.
    pub(crate) fn keep_silent(&self, socket: Option<Socket>, now: Time) {
        let Some(socket) = socket else { return };
        let filtered = system::hear_nothing(&socket);
        // A UDP socket has nothing to linger for, and the error does not matter.
        let _ = socket.set_linger(Some(Duration::ZERO));
        if filtered.is_err() {
            return;
        }
        self.forget(now);
        self.make_room();
        self.silent.borrow_mut().push_back((now, Silent(socket)));
    }

    /// Closes our half and keeps the connection; drops one that has already ended.
    pub(crate) fn keep_half_closed(&self, socket: Option<Socket>, now: Time) {
        let Some(socket) = socket else { return };
        if socket.shutdown(std::net::Shutdown::Write).is_err() {
            return;
        }
        if self.count() >= self.count_max {
            self.forget(now);
        }
        self.make_room();
        self.half_closed.borrow_mut().push_back((now, socket));
    }

    /// Drops connections that were kept long enough, or whose target has closed its half too.
    pub(crate) fn forget(&self, now: Time) {
        let mut silent = self.silent.borrow_mut();
        while silent.pop_front_if(|(since, _)| now - *since >= KEPT_MAX).is_some() {}
        drop(silent);
        let mut half_closed = self.half_closed.borrow_mut();
        if half_closed.is_empty() {
            return;
        }
        let over = system::are_over(half_closed.iter().map(|(_, socket)| socket));
        let mut over = over.into_iter();
        half_closed.retain(|_| !over.next().unwrap_or(false));
    }

    fn count(&self) -> usize {
        self.silent.borrow().len() + self.half_closed.borrow().len()
    }

    /// Closes the oldest connection if the limit is reached.
    fn make_room(&self) {
        if self.count() < self.count_max {
            return;
        }
        let (mut silent, mut half_closed) =
            (self.silent.borrow_mut(), self.half_closed.borrow_mut());
        let since = |first: Option<Time>| first.unwrap_or(Time::NEVER);
        let oldest_silent = since(silent.front().map(|(since, _)| *since));
        if oldest_silent <= since(half_closed.front().map(|(since, _)| *since)) {
            silent.pop_front();
        } else {
            half_closed.pop_front();
        }
    }
}

/// The socket of a silent connection. It is closed silently if permitted, otherwise with a reset.
struct Silent(Socket);

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = system::set_tcp_repair(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    /// Both ends of a connection; the second is the peer.
    fn pair() -> (Option<Socket>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let peer = listener.accept().unwrap().0;
        peer.set_nonblocking(true).unwrap();
        (Some(stream.into()), peer)
    }

    #[test]
    fn a_silently_closed_connection_sends_no_reply() {
        let vanished = Vanished::new(2);
        let (stream, mut peer) = pair();
        vanished.keep_silent(stream, Time::ZERO);
        peer.write_all(b"are you there?").unwrap();
        let mut buffer = [0; 8];
        let heard = peer.read(&mut buffer);
        assert_eq!(heard.unwrap_err().kind(), ErrorKind::WouldBlock);
        // What the peer sent stays unacknowledged.
        assert_eq!(system::unacknowledged(&peer).unwrap(), 14);
        assert_eq!(vanished.count(), 1);
    }

    #[test]
    fn a_silently_closed_datagram_user_sends_no_reply() {
        let vanished = Vanished::new(2);
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(peer.local_addr().unwrap()).unwrap();
        peer.connect(socket.local_addr().unwrap()).unwrap();
        peer.set_nonblocking(true).unwrap();
        vanished.keep_silent(Some(socket.into()), Time::ZERO);
        // For a closed port, the peer would get an error with its second datagram.
        for _ in 0..3 {
            peer.send(b"are you there?").unwrap();
            assert_eq!(peer.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
        vanished.forget(Time::ZERO + KEPT_MAX);
        peer.send(b"are you there?").unwrap();
        assert_eq!(peer.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn the_oldest_is_closed_first_and_none_stays_forever() {
        let vanished = Vanished::new(2);
        let mut peers = Vec::new();
        for second in 0..3 {
            let (stream, peer) = pair();
            vanished.keep_silent(stream, Time::from_secs(second));
            peers.push(peer);
        }
        assert_eq!(vanished.count(), 2);
        vanished.forget(Time::from_secs(1) + KEPT_MAX);
        assert_eq!(vanished.count(), 1);
        vanished.forget(Time::from_secs(2) + KEPT_MAX);
        assert_eq!(vanished.count(), 0);
    }

    #[test]
    fn a_half_closed_connection_waits_for_its_target() {
        let vanished = Vanished::new(2);
        let (stream, mut peer) = pair();
        vanished.keep_half_closed(stream, Time::ZERO);
        peer.set_nonblocking(false).unwrap();
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0, "our half is closed");
        // It is not read, but accepted, however long that lasts.
        peer.write_all(b"still there").unwrap();
        vanished.forget(Time::from_secs(3_600));
        assert_eq!(vanished.count(), 1);
        drop(peer);
        let patience = Duration::from_secs(5);
        let clock = throng_base::Clock::start();
        while vanished.count() > 0 && clock.now() - Time::ZERO < patience {
            vanished.forget(Time::from_secs(3_600));
        }
        assert_eq!(vanished.count(), 0);
    }

    #[test]
    fn both_kinds_share_one_limit() {
        let vanished = Vanished::new(2);
        let mut peers = Vec::new();
        for second in 0..4 {
            let (stream, peer) = pair();
            match second % 2 {
                0 => vanished.keep_half_closed(stream, Time::from_secs(second)),
                _ => vanished.keep_silent(stream, Time::from_secs(second)),
            }
            peers.push(peer);
            assert_eq!(vanished.count(), (second as usize + 1).min(2));
        }
        // A connection that has ended has no half to close.
        let (stream, peer) = pair();
        drop(peer);
        peers.clear();
        vanished.keep_half_closed(stream, Time::from_secs(9));
        assert!(vanished.count() <= 2);
    }
}
