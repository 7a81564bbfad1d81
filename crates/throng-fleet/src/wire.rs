//! What controller and agents tell each other, as it stands on the bus: JSON, but for the lines of
//! a run, which are packed behind a line of JSON. What the child of an agent hears and tells is
//! none of the fleet's business: it is handed on as it is.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use throng_base::{LoadPart, Said};

use crate::presence::Incarnation;

/// What a machine of the fleet has to understand of another. Other numbers are refused.
pub const WIRE: u32 = 4;
/// What is said at once may be no longer than this when it is unpacked.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// Names on the bus.
pub mod names {
    /// Of the controller, once a second.
    pub const BEACON: &str = "beacon";
    /// Of each agent, once a second: `heartbeat.AGENT`.
    pub const HEARTBEATS: &str = "heartbeat.*";
    /// A question for the controller's time.
    pub const TIME: &str = "time";
    /// A person's wish that the run ends; answered with the id of the run.
    pub const STOP: &str = "stop";
    /// The register of the controller that commands.
    pub const LEASE: &str = "lease";
    /// The registers of agents: `agent.NAME`.
    pub const AGENTS: &str = "agent.*";

    pub fn heartbeat(agent: &str) -> String {
        format!("heartbeat.{agent}")
    }

    pub fn agent(name: &str) -> String {
        format!("agent.{name}")
    }

    /// Questions for the monitor of this name.
    pub fn monitor(name: &str) -> String {
        format!("monitor.{name}")
    }

    /// What it answers.
    pub fn reading(name: &str) -> String {
        format!("reading.{name}")
    }

    pub fn plan(run: &str) -> String {
        format!("run.{run}.plan")
    }

    pub fn desired(run: &str) -> String {
        format!("run.{run}.desired")
    }

    /// What is told when the register is written.
    pub fn written(key: &str) -> String {
        format!("written.{key}")
    }

    /// The lines of an agent in the log.
    pub fn lines(run: &str, agent: &str) -> String {
        format!("lines.{run}.{agent}")
    }

    /// What the child of an agent announces to those of the others.
    pub fn announced(run: &str, agent: &str) -> String {
        format!("announced.{run}.{agent}")
    }

    pub fn all_announced(run: &str) -> String {
        format!("announced.{run}.*")
    }

    pub fn all_lines(run: &str) -> String {
        format!("lines.{run}.*")
    }
}

/// What an agent is, in its register. Its owner has said how much of it throng may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    pub wire: u32,
    pub life: Incarnation,
    /// Of throng: all that take part have the same.
    pub version: String,
    pub cores: f64,
    pub memory_bytes: u64,
    pub descriptors: u64,
    pub ports: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub ceiling: Ceiling,
    /// What a record says of a host.
    pub host: Raw,
}

/// What the owner of a machine allows, whatever a controller says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Users at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u64>,
    /// Starts per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// A run as it is signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub wire: u32,
    pub run: String,
    pub version: String,
    /// Before and after this, in milliseconds since the Unix epoch, it is no order to anybody.
    pub valid_from_ms: u64,
    pub valid_until_ms: u64,
    /// Of the whole run: nothing that is ordered later goes beyond it.
    pub users_max: u64,
    pub rate_max: Option<f64>,
    pub parts: Vec<Assigned>,
    pub files: Vec<FileRef>,
    /// What each child is told first, but for its part.
    pub told: Raw,
}

/// The part of one agent, in one of its lives: one that has begun anew has no part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    pub agent: String,
    pub life: Incarnation,
    #[serde(flatten)]
    pub part: LoadPart,
}

/// A file of the run: its path beside the scenario, and its name among the blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    pub path: String,
    pub sha256: String,
    pub bytes: u64,
}

/// The register of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signed {
    /// The plan as it was signed, byte by byte.
    pub plan: String,
    /// In hexadecimal digits.
    pub signature: String,
}

/// The register of what has to be: all that was ordered so far. The last value says all, so that
/// whoever missed some of it needs nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Desired {
    /// Of the controller that has written it; they only grow.
    pub epoch: u64,
    pub start: Option<SignedStart>,
    pub orders: Vec<Ordered>,
    /// The run is over for all: nothing begins any more.
    #[serde(default)]
    pub over: bool,
}

/// When the load of a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Nanoseconds since the Unix epoch, by the controller's clock.
    pub unix_ns: u64,
}

/// The start as the operator has signed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignedStart {
    #[serde(flatten)]
    pub start: Start,
    /// The operator's, for this run.
    pub signature: String,
}

impl SignedStart {
    /// What is signed: it holds in this run alone.
    pub fn signed_text(&self, run: &str) -> String {
        String::from_utf8_lossy(&to_json(&(run, "begins", self.start.unix_ns))).into_owned()
    }
}

/// What children are told behind their start; its number is its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ordered {
    /// When it was given, by the run's clock: a controller that takes over tells it so.
    pub at_ns: u64,
    /// Not for this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub except: Option<String>,
    pub order: Raw,
    /// The operator's, of all that in this run at this place.
    pub signature: String,
}

impl Ordered {
    /// What is signed: it holds in this run and at this place alone.
    pub fn signed_text(&self, run: &str, place: usize) -> String {
        let Ordered { at_ns, except, order, .. } = self;
        String::from_utf8_lossy(&to_json(&(run, place, at_ns, except, order))).into_owned()
    }
}

/// Orders of one run; amendments that come together are one.
pub const ORDERS_MAX: usize = 20_000;

/// The controller is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beacon {
    pub epoch: u64,
    pub run: String,
    /// Of the register of what has to be: who has an older one reads it.
    pub revision: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Idle,
    /// It gets its files, and its child gets ready.
    Preparing,
    Ready,
    Running,
    /// Its load is over; not all of its lines are in the log.
    Sending,
}

/// An agent is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub life: Incarnation,
    pub stage: Stage,
    pub run: Option<String>,
    /// How many orders it has handed on.
    pub applied: u64,
    /// Lines that are not in the log yet.
    pub waiting: u64,
    /// The controller's clock is so far ahead of its own, within the error.
    pub ahead_ns: Option<i64>,
    pub error_ns: Option<u64>,
}

/// How an agent's part ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// It has told so many lines.
    pub lines: u64,
    /// Why it ended, where that was not in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<Said>,
    /// Nothing was sent to the target: it could not, or would not, begin.
    #[serde(default)]
    pub refused: bool,
}

/// Some lines of an agent, in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub head: Head,
    /// Each with its end.
    pub lines: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub life: Incarnation,
    /// The number of its first line, and how many they are.
    pub first: u64,
    pub count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// Fast, and a third of what came.
const LEVEL: i32 = 3;

impl Batch {
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = to_json(&self.head);
        bytes.push(b'\n');
        // To memory it cannot fail.
        bytes.extend(zstd::bulk::compress(&self.lines, LEVEL).unwrap_or_default());
        bytes.into()
    }

    /// None where it is not what an agent writes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Batch> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(&bytes[..end]).ok()?;
        let lines = zstd::bulk::decompress(&bytes[end + 1..], BATCH_BYTES_MAX).ok()?;
        let count = lines.iter().filter(|byte| **byte == b'\n').count();
        let is_whole = lines.last().is_none_or(|last| *last == b'\n');
        let is_so = is_whole && head.count == count as u64;
        let ends = head.first.checked_add(head.count)?;
        let is_end = head.end.as_ref().is_none_or(|end| end.lines == ends);
        (is_so && is_end).then_some(Batch { head, lines })
    }
}

/// What the generator of one machine announces to those of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announcement<A = String> {
    pub announced: A,
    /// How far its clock may be from the controller's, or from that of who reads this.
    pub error_ns: u64,
}

impl Announcement {
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = to_json(&self.error_ns);
        bytes.push(b'\n');
        // To memory it cannot fail.
        bytes.extend(zstd::bulk::compress(self.announced.as_bytes(), LEVEL).unwrap_or_default());
        bytes.into()
    }

    /// None where it is not what an agent says.
    pub fn from_bytes(bytes: &[u8]) -> Option<Announcement> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let error_ns = serde_json::from_slice(&bytes[..end]).ok()?;
        let text = zstd::bulk::decompress(&bytes[end + 1..], BATCH_BYTES_MAX).ok()?;
        // Of nothing packed is nothing, too: it was cut off.
        let text = String::from_utf8(text).ok().filter(|text| !text.is_empty())?;
        Some(Announcement { announced: text, error_ns })
    }
}

/// JSON that is handed on as it came.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Raw(Box<RawValue>);

impl Raw {
    pub fn new(value: &impl Serialize) -> Raw {
        // As `to_json`.
        Raw(serde_json::value::to_raw_value(value).unwrap_or_default())
    }

    pub fn text(&self) -> &str {
        self.0.get()
    }

    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.0.get()).ok()
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Raw) -> bool {
        self.text() == other.text()
    }
}

pub fn to_json(value: &impl Serialize) -> Vec<u8> {
    // None of these values has a key that is no text, or a number that JSON has not.
    serde_json::to_vec(value).unwrap_or_default()
}

pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests;
