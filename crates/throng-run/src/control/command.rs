//! The commands that a user can send to a run, by a key or with `throng control`.

use serde::{Deserialize, Serialize};
use throng_base::Said;
use throng_program::{Change, Steering};

/// Version of the socket protocol.
pub const VERSION: u32 = 1;
/// Path of the socket in the run directory while the run is active.
pub const SOCKET: &str = "control.sock";
/// Maximum length of a request or reply.
pub const LINE_BYTES_MAX: u64 = 16 * 1024;

/// A command to a run.
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

/// A request to the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub version: u32,
    pub command: Command,
    /// Name of the load; required if there are several.
    pub load: Option<String>,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// What has changed, or is about to.
    Done(Said),
    Status(Vec<LoadStatus>),
    /// Nothing was changed: the reason, and what to do.
    Refused {
        message: Said,
        help: Said,
    },
}

/// A load that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadStatus {
    /// Empty if there is only one load.
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
    /// Rejects values that `throng control` also rejects; the live page can send any value.
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

    /// The word that the run directory uses; it never changes.
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

/// The command of a key, or `None`. A mark is named after its key.
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
