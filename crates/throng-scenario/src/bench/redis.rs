//! Redis of a command line: users send one command again and again, alone or in pipelines.

use std::iter::repeat_n;

use super::Writer;
use crate::quote::{quoted, scalar, text};

/// What a command line says of Redis.
#[derive(Clone, Debug, Default)]
pub struct BenchRedis {
    /// As redis-cli reads it, with expressions.
    pub command: Option<String>,
    /// So many are sent in one write; 0 counts as 1.
    pub pipeline: u32,
}

/// What users send if nobody says it.
const COMMAND: &str = "PING";

impl Writer<'_> {
    pub(super) fn redis_session(&mut self) {
        let once = self.bench.keep_alive == Some(false);
        if self.stays() {
            self.line("    steps:");
            self.redis_connect();
            self.redis_step();
            return self.line("      - stay: forever");
        }
        if once {
            self.line("    steps:                 # each iteration opens a connection");
            self.redis_connect();
            self.redis_step();
            self.line("      - disconnect");
            return self.think();
        }
        self.line("    before:                # once, when the user starts");
        self.redis_connect();
        self.line("    steps:                 # repeatedly");
        self.redis_step();
        self.think();
    }

    fn redis_connect(&mut self) {
        self.line("      - connect");
        if let Some((user, password)) = &self.bench.basic_auth {
            let line = format!("      - redis: [AUTH, {}, {}]", text(user), text(password));
            self.line(&line);
        }
    }

    fn redis_step(&mut self) {
        let redis = &self.bench.redis;
        let command = redis.command.as_deref().unwrap_or(COMMAND).trim();
        let is_line = !command.contains(|c: char| c.is_control());
        let commands: Vec<&str> = repeat_n(command, redis.pipeline.max(1) as usize).collect();
        match commands.as_slice() {
            [one] => self.line(&format!("      - redis: {}", scalar(one))),
            // A block of lines is read back as it is.
            many if is_line && !command.is_empty() => {
                self.line("      - redis: |");
                many.iter().for_each(|one| self.line(&format!("          {one}")));
            }
            many => self.line(&format!("      - redis: {}", quoted(&many.join("\n")))),
        }
        self.timeout();
        self.checks();
    }
}
