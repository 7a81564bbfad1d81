//! One connection to a Redis: pipelines out, replies in, both with a deadline.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use throng_base::{Clock, Time};
use throng_protocol::redis::{Reply, Violation, read_reply, write_command};

use crate::address::RedisAddress;

/// What is read at once.
const READ_BYTES: usize = 16 * 1024;

/// See the module's description.
pub struct Link {
    stream: TcpStream,
    clock: Clock,
    patience: Duration,
    kept: Vec<u8>,
}

impl Link {
    /// Connects and logs in. Each exchange may take as long as `patience`.
    pub fn open(address: &RedisAddress, clock: Clock, patience: Duration) -> io::Result<Link> {
        let nowhere = || io::Error::new(ErrorKind::NotFound, "the host name has no address");
        let mut found = Err(nowhere());
        for target in address.host.to_socket_addrs()? {
            found = TcpStream::connect_timeout(&target, patience);
            if found.is_ok() {
                break;
            }
        }
        let stream = found?;
        stream.set_nodelay(true)?;
        let mut link = Link { stream, clock, patience, kept: Vec::new() };
        let mut hello = Vec::new();
        let mut commands = 0;
        if let Some(password) = &address.password {
            let mut words = vec![&b"AUTH"[..]];
            words.extend(address.user.as_ref().map(String::as_bytes));
            words.push(password.as_bytes());
            write_command(&mut hello, &words);
            commands += 1;
        }
        if address.database > 0 {
            let database = address.database.to_string();
            write_command(&mut hello, &[b"SELECT", database.as_bytes()]);
            commands += 1;
        }
        write_command(&mut hello, &[b"PING"]);
        link.exchange(&hello, commands + 1)?;
        Ok(link)
    }

    /// Writes a pipeline of so many commands and waits until all were done.
    pub fn exchange(&mut self, pipeline: &[u8], commands: usize) -> io::Result<()> {
        self.ask(pipeline, commands, |_| {})
    }

    /// Writes a pipeline of so many commands and hears their replies. After an error, which a reply
    /// may be, the connection is of no further use.
    pub fn ask(
        &mut self,
        pipeline: &[u8],
        commands: usize,
        mut hear: impl FnMut(Reply),
    ) -> io::Result<()> {
        let deadline = self.clock.now() + self.patience;
        let mut buffer = [0; READ_BYTES];
        let mut unwritten = pipeline;
        while !unwritten.is_empty() {
            self.stream.set_write_timeout(Some(self.time_until(deadline)?))?;
            match retried(|| self.stream.write(unwritten))? {
                0 => return Err(ErrorKind::WriteZero.into()),
                written => unwritten = &unwritten[written..],
            }
        }
        let mut answered = 0;
        loop {
            let mut at = 0;
            while answered < commands {
                match read_reply(&self.kept[at..]).map_err(broken)? {
                    Some((Reply::Error(reason), _)) => return Err(io::Error::other(reason)),
                    Some((reply, used)) => {
                        at += used;
                        hear(reply);
                    }
                    None => break,
                }
                answered += 1;
            }
            self.kept.drain(..at);
            if answered == commands {
                return Ok(());
            }
            self.stream.set_read_timeout(Some(self.time_until(deadline)?))?;
            match retried(|| self.stream.read(&mut buffer))? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                n => self.kept.extend_from_slice(&buffer[..n]),
            }
        }
    }

    fn time_until(&self, deadline: Time) -> io::Result<Duration> {
        let left = deadline - self.clock.now();
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

fn broken(violation: Violation) -> io::Error {
    io::Error::other(violation.said().english())
}

/// A timeout of a socket is told as the system names it; here it is always a timeout.
fn retried(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::TimedOut.into());
            }
            result => return result,
        }
    }
}
