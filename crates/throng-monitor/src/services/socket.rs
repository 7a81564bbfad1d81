//! A connection to a service of this host, with one deadline for request and response.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use throng_base::system::{LocalStream, connect};
use throng_base::{Clock, Said, Time};

/// The maximum size of a response.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(LocalStream),
}

/// A time limit.
pub(super) struct Deadline<'a> {
    clock: &'a Clock,
    at: Time,
}

impl<'a> Deadline<'a> {
    pub(super) fn within(clock: &'a Clock, time: Duration) -> Deadline<'a> {
        Deadline { clock, at: clock.now() + time }
    }

    /// The remaining time; `None` if there is none.
    pub(super) fn left(&self) -> Option<Duration> {
        Some(self.at.since(self.clock.now())).filter(|left| !left.is_zero())
    }
}

impl Socket {
    /// To `HOST:PORT`, or to a path.
    pub(super) fn connect(place: &str, deadline: &Deadline<'_>) -> Result<Socket, Said> {
        let failed = |error: io::Error| Said::of_error(&error);
        if place.starts_with('/') {
            return connect(place.as_ref()).map(Socket::Unix).map_err(failed);
        }
        let mut trouble = say!("it has no address");
        for address in place.to_socket_addrs().map_err(failed)? {
            let Some(left) = deadline.left() else { return Err(late()) };
            match TcpStream::connect_timeout(&address, left) {
                Ok(stream) => return Ok(Socket::Tcp(stream)),
                Err(error) => trouble = failed(error),
            }
        }
        Err(trouble)
    }

    /// Sends a request, and reads until `complete` finds the response. Its second argument is true
    /// at the end of the stream.
    pub(super) fn ask<T>(
        &mut self,
        request: &[u8],
        deadline: &Deadline<'_>,
        mut complete: impl FnMut(&[u8], bool) -> Result<Option<T>, Said>,
    ) -> Result<T, Said> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => late(),
            _ => Said::of_error(&error),
        };
        self.limit(deadline.left()).map_err(failed)?;
        self.write(request).map_err(failed)?;
        let (mut answer, mut part) = (Vec::new(), [0; 16 * 1024]);
        loop {
            self.limit(deadline.left()).map_err(failed)?;
            let count = self.read(&mut part).map_err(failed)?;
            answer.extend_from_slice(&part[..count]);
            match complete(&answer, count == 0)? {
                Some(found) => return Ok(found),
                None if count == 0 => return Err(say!("it closed the connection")),
                None if answer.len() > ANSWER_BYTES_MAX => {
                    return Err(say!("its response is larger than 4 MiB"));
                }
                None => {}
            }
        }
    }

    fn limit(&self, left: Option<Duration>) -> io::Result<()> {
        let Some(left) = left else { return Err(io::ErrorKind::TimedOut.into()) };
        match self {
            Socket::Tcp(stream) => {
                stream.set_read_timeout(Some(left))?;
                stream.set_write_timeout(Some(left))
            }
            Socket::Unix(stream) => {
                stream.set_read_timeout(Some(left))?;
                stream.set_write_timeout(Some(left))
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.write_all(bytes),
            Socket::Unix(stream) => stream.write_all(bytes),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(bytes),
            Socket::Unix(stream) => stream.read(bytes),
        }
    }
}

pub(super) fn late() -> Said {
    say!("no response in time")
}
