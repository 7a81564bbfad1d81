//! The commands that a user can send to a run, by a key or with `throng control`.

use serde::{Deserialize, Serialize};
use throng_base::Said;
use throng_program::{Change, Steering};

/// The version of what goes over the socket.
pub const VERSION: u32 = 1;
/// Below the run directory, while the run goes on.
pub const SOCKET: &str = "control.sock";
/// Of a line, either way.
pub const LINE_BYTES_MAX: u64 = 16 * 1024;

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    Status,
    Change(Change),
    Pause,
    GoOn,
    Mark(String),
    Stop,
    Abort,
}

/// A line to the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub version: u32,
    pub command: Command,
    /// By its name; needed where there are several.
    pub load: Option<String>,
}

/// The line that it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// What is so, or will be in a moment.
    Done(Said),
    Status(Vec<LoadStatus>),
    /// Nothing was changed: why, and what to do.
    Refused {
        message: Said,
        help: Said,
    },
}

/// A load that goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadStatus {
    /// Empty where it is the only one.
    pub load: String,
    pub phase: String,
    pub users: Option<u64>,
    pub per_second: Option<f64>,
    pub paused: bool,
    pub elapsed_ns: u64,
}

impl From<Steering> for Command {
    fn from(steering: Steering) -> Command {
        match steering {
            Steering::Change(change) => Command::Change(change),
            Steering::Pause => Command::Pause,
            Steering::GoOn => Command::GoOn,
        }
    }
}

impl Command {
    /// Of a number that the flags of `throng control` refuse too; a page may send any.
    pub(crate) fn refusal(&self) -> Option<Answer> {
        let message = match self {
            Command::Change(Change::Users(0)) => say!("the number of users must be at least 1"),
            Command::Change(Change::Rate(rate) | Change::Times(rate)) if *rate <= 0.0 => {
                say!("the rate must be more than 0")
            }
            _ => return None,
        };
        let help = say!("to stop adding users, pause the run; to end the run, stop it");
        Some(Answer::Refused { message, help })
    }

    /// As the record has it: words that do not change.
    pub fn word(&self) -> String {
        match self {
            Command::Change(Change::Times(times)) => {
                format!("times {}", (times * 1e6).round() / 1e6)
            }
            Command::Change(Change::Users(users)) => format!("users {users}"),
            Command::Change(Change::Rate(rate)) => format!("rate {rate}"),
            Command::Change(Change::EndPhase) => "end-phase".into(),
            Command::Pause => "pause".into(),
            Command::GoOn => "go-on".into(),
            Command::Mark(name) => name.clone(),
            Command::Status => "status".into(),
            Command::Stop => "stop".into(),
            Command::Abort => "abort".into(),
        }
    }
}

/// What a key says; None of one that says nothing. A mark has no other name than its key's.
pub fn of_key(key: u8) -> Option<Command> {
    Some(match key {
        b'+' | b'=' => Command::Change(Change::Times(1.1)),
        b'-' | b'_' => Command::Change(Change::Times(1.0 / 1.1)),
        b'p' => Command::Pause,
        b'g' => Command::GoOn,
        b'n' => Command::Change(Change::EndPhase),
        b'm' => Command::Mark("mark".into()),
        b'q' => Command::Stop,
        _ => return None,
    })
}
