//! Messages between controller and agents on the bus: JSON, except for the lines of a run, which
//! are compressed after a line of JSON. The input and output of an agent's child are opaque to the
//! fleet and forwarded unchanged.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use throng_base::{LoadPart, Said};

use crate::presence::Incarnation;

/// The version of the protocol between machines. Others are refused.
pub const WIRE: u32 = 4;
/// Maximum uncompressed size of a batch.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// Names on the bus.
pub mod names {
    /// From the controller, once per second.
    pub const BEACON: &str = "beacon";
    /// From each agent, once per second: `heartbeat.AGENT`.
    pub const HEARTBEATS: &str = "heartbeat.*";
    /// A request for the controller's time.
    pub const TIME: &str = "time";
    /// A user's request to end the run; the reply is the ID of the run.
    pub const STOP: &str = "stop";
    /// The register of the commanding controller.
    pub const LEASE: &str = "lease";
    /// The registers of agents: `agent.NAME`.
    pub const AGENTS: &str = "agent.*";

    pub fn heartbeat(agent: &str) -> String {
        format!("heartbeat.{agent}")
    }

    pub fn agent(name: &str) -> String {
        format!("agent.{name}")
    }

    /// Requests to the monitor with this name.
    pub fn monitor(name: &str) -> String {
        format!("monitor.{name}")
    }

    /// Its replies.
    pub fn reading(name: &str) -> String {
        format!("reading.{name}")
    }

    pub fn plan(run: &str) -> String {
        format!("run.{run}.plan")
    }

    pub fn desired(run: &str) -> String {
        format!("run.{run}.desired")
    }

    /// The notification that the register was written.
    pub fn written(key: &str) -> String {
        format!("written.{key}")
    }

    /// The lines of an agent in the log.
    pub fn lines(run: &str, agent: &str) -> String {
        format!("lines.{run}.{agent}")
    }

    /// Announcements of an agent's child to the others.
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

/// The registration of an agent. Its owner has limited how much of it throng may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    pub wire: u32,
    pub life: Incarnation,
    /// The version of throng: all agents of a run have the same.
    pub version: String,
    pub cores: f64,
    pub memory_bytes: u64,
    pub descriptors: u64,
    pub ports: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub ceiling: Ceiling,
    /// The description of the host in the record.
    pub host: Raw,
}

/// The limits of a machine's owner, which controllers cannot exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Concurrent users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u64>,
    /// Starts per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// A run, in its signed form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub wire: u32,
    pub run: String,
    pub version: String,
    /// The period of validity, in milliseconds since the Unix epoch.
    pub valid_from_ms: u64,
    pub valid_until_ms: u64,
    /// For the whole run: no later order can exceed it.
    pub users_max: u64,
    pub rate_max: Option<f64>,
    pub parts: Vec<Assigned>,
    pub files: Vec<FileRef>,
    /// The first input of each child, without its share.
    pub told: Raw,
}

/// The share of one agent, in one of its lives: after a restart it has no share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    pub agent: String,
    pub life: Incarnation,
    #[serde(flatten)]
    pub part: LoadPart,
}

/// A file of the run: its path next to the scenario, and its name among the blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    pub path: String,
    pub sha256: String,
    pub bytes: u64,
}

/// The register of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signed {
    /// The plan as signed, byte by byte.
    pub plan: String,
    /// In hexadecimal.
    pub signature: String,
}

/// The register of the desired state: all orders so far. The last value is complete, so nothing
/// else is needed after a missed notification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Desired {
    /// The epoch of the controller that has written it; they only grow.
    pub epoch: u64,
    pub start: Option<SignedStart>,
    pub orders: Vec<Ordered>,
    /// The run is over for all agents: nothing starts.
    #[serde(default)]
    pub over: bool,
}

/// When the load of a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Nanoseconds since the Unix epoch, by the controller's clock.
    pub unix_ns: u64,
}

/// The start as signed by the operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignedStart {
    #[serde(flatten)]
    pub start: Start,
    /// The operator's, for this run.
    pub signature: String,
}

impl SignedStart {
    /// The signed text, which is valid only in this run.
    pub fn signed_text(&self, run: &str) -> String {
        String::from_utf8_lossy(&to_json(&(run, "begins", self.start.unix_ns))).into_owned()
    }
}

/// A line for children after their start; its index is its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ordered {
    /// When it was given, by the run's clock: a resuming controller reports it with this time.
    pub at_ns: u64,
    /// Except for this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub except: Option<String>,
    pub order: Raw,
    /// The operator's, for this order at this position in this run.
    pub signature: String,
}

impl Ordered {
    /// The signed text, which is valid only in this run and at this position.
    pub fn signed_text(&self, run: &str, place: usize) -> String {
        let Ordered { at_ns, except, order, .. } = self;
        String::from_utf8_lossy(&to_json(&(run, place, at_ns, except, order))).into_owned()
    }
}

/// Maximum number of orders of a run; simultaneous amendments are one order.
pub const ORDERS_MAX: usize = 20_000;

/// The controller's beacon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beacon {
    pub epoch: u64,
    pub run: String,
    /// The revision of the desired state: agents with an older one read it.
    pub revision: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Idle,
    /// It fetches its files, and its child prepares.
    Preparing,
    Ready,
    Running,
    /// Its load is over; not all of its lines are in the log.
    Sending,
}

/// An agent's heartbeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub life: Incarnation,
    pub stage: Stage,
    pub run: Option<String>,
    /// The number of forwarded orders.
    pub applied: u64,
    /// Lines that are not in the log yet.
    pub waiting: u64,
    /// How far the controller's clock is ahead of its own, within the error.
    pub ahead_ns: Option<i64>,
    pub error_ns: Option<u64>,
}

/// How an agent's share ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The total number of lines.
    pub lines: u64,
    /// Why it ended, if not gracefully.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<Said>,
    /// Nothing was sent to the target: it could not or must not start.
    #[serde(default)]
    pub refused: bool,
}

/// A batch of an agent's lines, in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub head: Head,
    /// Including line ends.
    pub lines: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub life: Incarnation,
    /// The number of its first line, and the number of lines.
    pub first: u64,
    pub count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// Fast, and compresses to a third.
const LEVEL: i32 = 3;

impl Batch {
    pub fn to_bytes(&self) -> Bytes {
        compressed(&self.head, &self.lines)
    }

    /// None if it is not a valid batch.
    pub fn from_bytes(bytes: &[u8]) -> Option<Batch> {
        let (head, lines): (Head, _) = decompressed(bytes)?;
        let count = lines.iter().filter(|byte| **byte == b'\n').count();
        let is_whole = lines.last().is_none_or(|last| *last == b'\n');
        let is_so = is_whole && head.count == count as u64;
        let ends = head.first.checked_add(head.count)?;
        let is_end = head.end.as_ref().is_none_or(|end| end.lines == ends);
        (is_so && is_end).then_some(Batch { head, lines })
    }
}

/// An announcement of one machine's generator to the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announcement<A = String> {
    pub announced: A,
    /// The error of its clock against the controller's, or against that of the receiver.
    pub error_ns: u64,
}

impl Announcement {
    pub fn to_bytes(&self) -> Bytes {
        compressed(&self.error_ns, self.announced.as_bytes())
    }

    /// None if it is not a valid announcement.
    pub fn from_bytes(bytes: &[u8]) -> Option<Announcement> {
        let (error_ns, text) = decompressed(bytes)?;
        // Truncated input can decompress to nothing.
        let text = String::from_utf8(text).ok().filter(|text| !text.is_empty())?;
        Some(Announcement { announced: text, error_ns })
    }
}

/// A line of JSON, and compressed text.
fn compressed(head: &impl Serialize, text: &[u8]) -> Bytes {
    let mut bytes = to_json(head);
    bytes.push(b'\n');
    // Writing to memory does not fail.
    bytes.extend(zstd::bulk::compress(text, LEVEL).unwrap_or_default());
    bytes.into()
}

fn decompressed<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, Vec<u8>)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let text = zstd::bulk::decompress(&bytes[end + 1..], BATCH_BYTES_MAX).ok()?;
    Some((serde_json::from_slice(&bytes[..end]).ok()?, text))
}

/// JSON that is forwarded unchanged.
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
    // These values have only text keys and numbers that JSON supports.
    serde_json::to_vec(value).unwrap_or_default()
}

pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests;
