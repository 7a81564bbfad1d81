//! The protocol between the controller of a run and its generators: orders in one direction,
//! messages in the other. Within a process they use a channel; between processes they are lines of
//! JSON.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use throng_base::Said;
use throng_engine::{Spare, SpareLimit};
use throng_expression::Value;
use throng_fleet::wire::{Announcement, Start};
use throng_metrics::Interval;
use throng_metrics::audit::Round;
use throng_metrics::presence::Snapshot;
use throng_program::{Change, Program};
use throng_results::{Event, MachineInfo, OnceRun};

/// The first message to a process: its task.
#[derive(Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The command line of the run.
    pub words: Vec<String>,
    /// The scenario as the controller has read it, if both read the same files.
    #[serde(default)]
    pub scenario: Option<String>,
    #[serde(flatten)]
    pub inputs: Inputs,
    pub machine: MachineInfo,
    /// Number of processes of the run on this machine.
    pub neighbours: u64,
    /// This process compares its users with the views of audits; the others do not.
    #[serde(default)]
    pub audits: bool,
}

/// Inputs that all generators of a run share, in addition to the scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inputs {
    pub seed: u64,
    pub run_id: String,
    /// The values saved by `setup`.
    pub values: Vec<Plain>,
}

impl Inputs {
    pub(crate) fn of(program: &Program) -> Inputs {
        Inputs {
            seed: program.seed,
            run_id: program.run_id.clone(),
            values: program.setup_values.iter().map(Plain::from).collect(),
        }
    }

    /// The program with these values.
    pub(crate) fn put_into(&self, program: &Program) -> Program {
        Program {
            seed: self.seed,
            run_id: self.run_id.clone(),
            setup_values: self.values.iter().cloned().map(Into::into).collect(),
            ..program.clone()
        }
    }
}

/// The part of a plan that is the same for each child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanDetails {
    #[serde(flatten)]
    pub inputs: Inputs,
    /// The result of `setup`.
    #[serde(default)]
    pub setup: Option<OnceRun>,
    /// The target's counts before the load, by audit.
    #[serde(default)]
    pub books: Vec<Option<i64>>,
    /// Flags of the run that apply to each machine.
    pub flags: Vec<String>,
    /// Environment variables that the scenario reads, with their values on the controller.
    pub environment: BTreeMap<String, String>,
    /// Names of the machines, by index in the plan.
    pub names: Vec<String>,
    /// Labels of the machines, in the same order.
    #[serde(default)]
    pub labels: Vec<BTreeMap<String, String>>,
    /// The other machines take over missing load.
    pub redistribute: bool,
}

/// An order of the controller to a generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// No new work: users finish their step and leave.
    Stop,
    /// Users leave immediately.
    Abort,
    /// No users are added until `GoOn`; ordered by a user.
    Pause,
    GoOn,
    /// The load changes at a time in the future.
    Amend {
        load: u16,
        at_ns: u64,
        change: Change,
        users_max: u64,
    },
    /// From this time on, machines with a full part multiply it, because others generate less.
    /// `users_max` is the resulting number of users of the whole load.
    Take {
        at_ns: u64,
        times: f64,
        users_max: u64,
    },
    /// Does nothing: marks a moment, so that a controller that takes over records it, too.
    Mark {
        name: String,
    },
    /// Does nothing: an event of the controller that a controller that takes over records again.
    Record {
        event: Box<Event>,
    },
    /// Asks which users are online. The reply has the same number.
    Presence {
        ask: u64,
    },
    /// An event requests an audit round.
    Audit {
        audit: u16,
        event: u16,
    },
    /// The controller ordered more than the owner of this machine allows. Sent by the agent in
    /// place of the order.
    Decline,
}

/// A message to a process whose load has started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heard<A> {
    Order(Order),
    Announced(Announcement<A>),
}

/// Writes a value as a line.
pub(crate) fn write_line(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads a line as a value.
pub(crate) fn read_line<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<T> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

/// An order of an earlier controller, and its time on the clock of the run.
pub struct Past {
    pub at_ns: u64,
    /// The order was for all machines.
    pub for_all: bool,
    pub order: Order,
}

/// A message of a generator to the controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// The generator waits for the start.
    Ready(Ready),
    /// The load has started.
    Begun(Start),
    Interval(Box<Interval>),
    /// Contains no secrets.
    Event(Event),
    /// A message about the generator itself.
    Notice {
        at_ns: u64,
        text: Said,
    },
    /// The online users; without a number, those at the end of the load.
    Presence {
        ask: Option<u64>,
        #[serde(with = "snapshot")]
        known: Snapshot,
    },
    /// The comparison of its users with the views of an audit.
    Audited(Box<Tally>),
    /// The load has ended. `whole` is false if a shard panicked.
    Over {
        at_ns: u64,
        whole: bool,
    },
    /// Created by the controller's end of the connection: what the process wrote to standard error
    /// before it was lost.
    Said {
        text: String,
    },
    /// The operator of a fleet wants to stop.
    StopWanted,
    /// Created by the controller's end of the connection: no more messages follow, although the
    /// load had not ended.
    Lost {
        detail: Said,
    },
}

/// A generator that waits for the start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ready {
    pub shards: u64,
    /// Maximum number of additional users, and what limits it.
    users_spare: u64,
    #[serde(default)]
    spare_limit: SpareLimit,
}

impl Ready {
    pub(crate) fn new(shards: u64, Spare { users, limit }: Spare) -> Ready {
        Ready { shards, users_spare: users, spare_limit: limit }
    }

    pub(crate) fn spare(&self) -> Spare {
        Spare { users: self.users_spare, limit: self.spare_limit }
    }
}

/// A round of a presence audit over the users of one generator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tally {
    pub audit: u16,
    pub at_ns: u64,
    /// See [`throng_audit::Found::due`].
    pub due_ns: u64,
    pub event: Option<u16>,
    pub round: Round,
}

/// A snapshot as text: base64 of its bytes.
mod snapshot {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use throng_metrics::presence::Snapshot;

    pub(super) fn serialize<S: Serializer>(known: &Snapshot, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(known.to_bytes()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Snapshot, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        Snapshot::from_bytes(&bytes).ok_or_else(|| D::Error::custom("this is no snapshot"))
    }
}

/// A value as JSON that keeps its exact form. Plain JSON has no bytes and does not have all
/// numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    /// The bits of the number.
    Float(u64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Plain>),
    Map(Vec<(String, Plain)>),
}

impl From<&Value> for Plain {
    fn from(value: &Value) -> Plain {
        match value {
            Value::Null => Plain::Null,
            Value::Bool(value) => Plain::Bool(*value),
            Value::Int(value) => Plain::Int(*value),
            Value::UInt(value) => Plain::UInt(*value),
            Value::Float(value) => Plain::Float(value.to_bits()),
            Value::Text(text) => Plain::Text(text.to_string()),
            Value::Bytes(bytes) => Plain::Bytes(bytes.to_vec()),
            Value::List(items) => Plain::List(items.iter().map(Plain::from).collect()),
            Value::Map(entries) => {
                let entry = |(name, value): &(Arc<str>, Value)| (name.to_string(), value.into());
                Plain::Map(entries.iter().map(entry).collect())
            }
        }
    }
}

impl From<Plain> for Value {
    fn from(plain: Plain) -> Value {
        match plain {
            Plain::Null => Value::Null,
            Plain::Bool(value) => Value::Bool(value),
            Plain::Int(value) => Value::Int(value),
            Plain::UInt(value) => Value::UInt(value),
            Plain::Float(bits) => Value::Float(f64::from_bits(bits)),
            Plain::Text(text) => Value::Text(text.into()),
            Plain::Bytes(bytes) => Value::Bytes(bytes.into()),
            Plain::List(items) => Value::List(items.into_iter().map(Value::from).collect()),
            Plain::Map(entries) => {
                let entry = |(name, plain): (String, Plain)| (name.into(), plain.into());
                Value::Map(entries.into_iter().map(entry).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_serialization_unchanged() {
        let text = |text: &str| Value::Text(text.into());
        let values = [
            Value::Null,
            Value::Bool(true),
            Value::Int(i64::MIN),
            Value::UInt(u64::MAX),
            Value::Float(f64::NEG_INFINITY),
            Value::Float(0.1 + 0.2),
            text("a\u{0}\"压测"),
            Value::Bytes([0, 255, 10].as_slice().into()),
            Value::List([Value::Null, text("x")].as_slice().into()),
            Value::Map([("k".into(), Value::List(Arc::default()))].as_slice().into()),
        ];
        for value in values {
            let line = serde_json::to_string(&Plain::from(&value)).expect("JSON");
            let back: Plain = serde_json::from_str(&line).expect("a value");
            assert_eq!(Value::from(back), value, "{line}");
        }
    }

    fn same<T: Serialize + DeserializeOwned>(text: &str) -> T {
        let read: T = serde_json::from_str(text).expect(text);
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        read
    }

    /// As agents of version 4 of the fleet's protocol read and write them.
    #[test]
    fn lines_keep_their_json() {
        for order in [
            r#"{"amend":{"load":1,"at_ns":9,"change":{"times":1.5},"users_max":8}}"#,
            r#"{"amend":{"load":1,"at_ns":9,"change":{"users":3},"users_max":8}}"#,
            r#"{"amend":{"load":1,"at_ns":9,"change":{"rate":0.5},"users_max":8}}"#,
            r#"{"amend":{"load":1,"at_ns":9,"change":"end-phase","users_max":8}}"#,
        ] {
            same::<Order>(order);
        }
        same::<Message>(r#"{"begun":{"unix_ns":17}}"#);
        same::<Heard<String>>(r#"{"announced":{"announced":"x","error_ns":5}}"#);
        let details = concat!(
            r#"{"seed":18446744073709551615,"run_id":"r1","values":[{"int":-1}],"setup":null,"#,
            r#""books":[null],"flags":[],"environment":{},"names":["b1"],"labels":[{}],"#,
            r#""redistribute":true}"#,
        );
        let details: PlanDetails = same(details);
        assert_eq!((details.inputs.seed, details.inputs.run_id.as_str()), (u64::MAX, "r1"));
        assert_eq!(details.inputs.values, [Plain::Int(-1)]);
    }

    #[test]
    fn an_assignment_keeps_its_json() {
        let text = concat!(
            r#"{"words":["run"],"scenario":null,"seed":7,"run_id":"r1","values":[],"#,
            r#""machine":{"name":"b1","shards":2,"first":3,"width":4,"of":7,"offset_ns":0},"#,
            r#""neighbours":1,"audits":false}"#,
        );
        let read: Assignment = serde_json::from_str(text).expect("an assignment");
        assert_eq!((read.inputs.seed, read.machine.part.of), (7, 7));
        let written = serde_json::to_value(&read).expect("JSON");
        let mut wanted: serde_json::Value = serde_json::from_str(text).expect("JSON");
        // Facts of a host have their own defaults.
        wanted["machine"]["host"] = written["machine"]["host"].clone();
        assert_eq!(written, wanted);
    }
}
