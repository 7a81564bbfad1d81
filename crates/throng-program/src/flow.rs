//! Sessions and the instructions of their steps: a flat list with jumps, so that a user needs only
//! a program counter and a few registers.

use std::time::Duration;

use regex::bytes::Regex;
use throng_base::StepId;

use crate::check::{Check, StatusSet};
use crate::text::Text;

/// What one kind of user does.
///
/// `code[..begin]` is done once when the user comes, `code[begin..end]` once per iteration,
/// `code[end..]` once when the user leaves in peace.
#[derive(Clone, Debug)]
pub struct Session {
    pub name: String,
    pub weight: u32,
    pub code: Box<[Instruction]>,
    pub begin: u32,
    pub end: u32,
}

#[derive(Clone, Debug)]
pub enum Instruction {
    /// Opens the user's connection; a WebSocket upgrade where the target's scheme says so.
    Connect(Box<Connect>),
    /// Ends the connection in order (WebSocket close, TCP FIN).
    Disconnect,
    Http(Box<Http>),
    Send(Box<Send>),
    Expect(Box<Expect>),
    /// Sends and waits for the answer; timed as one step.
    Request(Box<Request>),
    /// Waits a time drawn evenly from this range, listening.
    Think {
        low: Duration,
        high: Duration,
    },
    /// Stays and listens: this long, or until the user is told to leave.
    Stay {
        step: StepId,
        time: Option<Duration>,
    },
    /// Begins a loop: jumps behind its `RepeatEnd` at `end` when it shall not run at all.
    RepeatBegin {
        register: u8,
        low: u32,
        high: u32,
        end: u32,
    },
    /// Counts the register down; jumps back to the instruction after `begin` while more are due.
    RepeatEnd {
        register: u8,
        begin: u32,
    },
    /// Continues at this instruction.
    Jump(u32),
}

/// Loops that may be nested in one session.
pub const REGISTERS_MAX: usize = 4;

#[derive(Clone, Debug)]
pub struct Connect {
    pub step: StepId,
    /// Path and query of a WebSocket upgrade.
    pub path: Text,
    pub headers: Vec<(String, Text)>,
    /// Offered WebSocket sub-protocols.
    pub protocols: Vec<String>,
    pub timeout: Duration,
}

/// An HTTP request and what its answer has to be.
#[derive(Clone, Debug)]
pub struct Http {
    pub step: StepId,
    pub method: String,
    /// Path and query.
    pub path: Text,
    /// Without Host, Content-Length and Connection, unless the person set them.
    pub headers: Vec<(String, Text)>,
    pub body: Body,
    /// From the moment it is sent to the last byte. Latency counts from the due time, but a start
    /// that had to wait for a free user has its whole time all the same.
    pub timeout: Duration,
    pub follow_redirects: bool,
    /// Without a status check, statuses from 400 on are failures.
    pub checks: Vec<Check>,
}

impl Http {
    /// Whether somebody looks at the body.
    pub fn needs_body(&self) -> bool {
        self.checks.iter().any(Check::needs_body)
    }

    /// The first status check, if any.
    pub fn status_check(&self) -> Option<&StatusSet> {
        self.checks.iter().find_map(|check| match check {
            Check::Status(set) => Some(set),
            _ => None,
        })
    }
}

/// What a request carries.
#[derive(Clone, Debug, Default)]
pub enum Body {
    #[default]
    None,
    Text(Text),
}

#[derive(Clone, Debug)]
pub struct Send {
    pub step: StepId,
    pub message: Message,
}

#[derive(Clone, Debug)]
pub struct Expect {
    pub step: StepId,
    pub until: Until,
    pub checks: Vec<Check>,
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub step: StepId,
    pub message: Message,
    pub until: Until,
    pub checks: Vec<Check>,
    pub timeout: Duration,
}

/// What is sent on a long-lived connection.
#[derive(Clone, Debug)]
pub struct Message {
    /// On raw TCP both kinds are only bytes.
    pub kind: MessageKind,
    pub content: Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Text,
    Binary,
}

/// Where an answer ends. On a WebSocket the answer is the next message, whatever this says.
#[derive(Clone, Debug)]
pub enum Until {
    /// Whatever comes first.
    Any,
    Length(u64),
    Delimiter(Box<[u8]>),
    Pattern(Regex),
}
