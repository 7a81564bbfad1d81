//! A Redis of the bench's own: started in a folder of its own, killed as hard as a power cut, and
//! asked one thing.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::bench::child::{self, Running};
use crate::bench::server::free_port;
use crate::packages;

const START_PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Dropped, it is killed.
pub(super) struct Redis {
    pub(super) port: u16,
    /// None while it is dead.
    running: Option<Running>,
}

impl Redis {
    pub(super) fn start(folder: &Path) -> Result<Redis, String> {
        let mut redis = Redis { port: free_port()?, running: None };
        redis.start_again(folder)?;
        Ok(redis)
    }

    /// Starts it on the port that it had, empty: nothing of it is ever written to disk.
    pub(super) fn start_again(&mut self, folder: &Path) -> Result<(), String> {
        let program = packages::program("redis-server");
        let program = program.ok_or("redis-server is missing: apt-get install redis-server")?;
        let mut command = Command::new(program);
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder);
        let running = child::start(command, None, folder, "redis")?;
        let port = self.port;
        let answers = || ask(port, "PING").is_ok_and(|said| said == "+PONG");
        if !child::holds_within(START_PATIENCE, answers) {
            return Err(format!("redis-server does not answer: {}", running.errors().trim()));
        }
        self.running = Some(running);
        Ok(())
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        self.running = None;
    }

    pub(super) fn pid(&self) -> Option<i32> {
        self.running.as_ref().map(Running::pid)
    }

    /// How many are in the set `presence`.
    pub(super) fn present(&self) -> Option<u64> {
        let said = ask(self.port, "SCARD presence").ok()?;
        said.strip_prefix(':')?.parse().ok()
    }
}

/// Sends a command as a line and reads the first line of the answer.
fn ask(port: u16, command: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    write!(stream, "{command}\r\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.trim_end().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_redis_dies_and_comes_back() {
        if packages::program("redis-server").is_none() {
            return;
        }
        let folder = std::env::temp_dir().join(format!("xtask-redis-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut redis = Redis::start(&folder).unwrap();
        assert_eq!(ask(redis.port, "SADD presence d1 d2").unwrap(), ":2");
        assert_eq!((redis.present(), redis.pid().is_some()), (Some(2), true));
        redis.kill();
        assert_eq!((redis.present(), redis.pid()), (None, None));
        redis.start_again(&folder).unwrap();
        assert_eq!(redis.present(), Some(0));
        drop(redis);
        fs::remove_dir_all(&folder).unwrap();
    }
}
