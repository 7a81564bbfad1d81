//! The protocol between the desk of a run and its posts: orders in one direction, messages in the
//! other. Within a process they use a channel; between processes they are lines of JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use throng_base::Said;
use throng_engine::SpareLimit;
use throng_expression::Value;
use throng_fleet::wire::{Announcement, Start};
use throng_metrics::Interval;
use throng_metrics::audit::Round;
use throng_metrics::presence::Snapshot;
use throng_program::{Change, Program};
use throng_results::{Event, MachineInfo, OnceRun};

/// What a process is told first: what it is to be.
#[derive(Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The words of the command line whose run this is a part of.
    pub words: Vec<String>,
    /// The scenario as the desk has read it, where both read the same files.
    #[serde(default)]
    pub scenario: Option<String>,
    #[serde(flatten)]
    pub inputs: Inputs,
    pub machine: MachineInfo,
    /// So many processes of the run share the machine.
    pub neighbours: u64,
    /// It compares its users with the views of audits itself, as no other process here does.
    #[serde(default)]
    pub audits: bool,
}

/// What all generators of a run have in common, besides the scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inputs {
    pub seed: u64,
    pub run_id: String,
    /// What `setup` has saved.
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

    /// The program with these.
    pub(crate) fn put_into(&self, program: &Program) -> Program {
        Program {
            seed: self.seed,
            run_id: self.run_id.clone(),
            setup_values: self.values.iter().cloned().map(Into::into).collect(),
            ..program.clone()
        }
    }
}

/// What a plan tells each child, but for its part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanDetails {
    #[serde(flatten)]
    pub inputs: Inputs,
    /// What was told of `setup`.
    #[serde(default)]
    pub setup: Option<OnceRun>,
    /// What the books of the target said before the load, by audit.
    #[serde(default)]
    pub books: Vec<Option<i64>>,
    /// Flags of the run that hold for each machine.
    pub flags: Vec<String>,
    /// Variables that the scenario reads, as they were where it was started.
    pub environment: BTreeMap<String, String>,
    /// Names of the machines, by their place in the plan.
    pub names: Vec<String>,
    /// What they are called, in the same order.
    #[serde(default)]
    pub labels: Vec<BTreeMap<String, String>>,
    /// What some leave out is made by the others.
    pub redistribute: bool,
}

/// What the desk tells a post.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// No new work; users finish their step and leave.
    Stop,
    /// Users leave at once.
    Abort,
    /// No users come, until they do again: a person says so.
    Pause,
    GoOn,
    /// A load is another from an instant on, which lies ahead.
    Amend {
        load: u16,
        at_ns: u64,
        change: Change,
        users_max: u64,
    },
    /// Machines that make all of their parts make so much more of them from an instant on, as
    /// others make less: with it the whole load has so many users.
    Take {
        at_ns: u64,
        times: f64,
        users_max: u64,
    },
    /// Nothing is to be done: a person has named this moment, and a desk that takes over tells it
    /// again.
    Mark {
        name: String,
    },
    /// Nothing is to be done: the desk has recorded this, and one that takes over records it again.
    Record {
        event: Box<Event>,
    },
    /// An audit wants to know which users are online; the answer has the same number.
    Presence {
        ask: u64,
    },
    /// An event wants a round of an audit.
    Audit {
        audit: u16,
        event: u16,
    },
    /// What the desk has ordered is more than the owner of this machine allows: its agent says this
    /// in its place.
    Decline,
}

/// What a process hears once its load has begun.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heard<A> {
    Order(Order),
    Announced(Announcement<A>),
}

/// An order that the desk before this one has given, and when by the run's clock.
pub struct Past {
    pub at_ns: u64,
    /// It was for all machines.
    pub for_all: bool,
    pub order: Order,
}

/// What a post tells the desk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// It waits for the start.
    Ready {
        shards: u64,
        /// How many users more than planned can be there at once, and what bounds them.
        users_spare: u64,
        #[serde(default)]
        spare_limit: SpareLimit,
    },
    /// Its load begins.
    Begun(Start),
    Interval(Box<Interval>),
    /// Without secrets.
    Event(Event),
    /// It has something to say about itself.
    Notice {
        at_ns: u64,
        text: Said,
    },
    /// Which users are online, as was asked; without a number, when the load is over.
    Presence {
        ask: Option<u64>,
        #[serde(with = "snapshot")]
        known: Snapshot,
    },
    /// It has compared its own users with what the views of an audit say.
    Audited(Box<Tally>),
    /// The load is over. `whole` is false where a shard ended by a panic.
    Over {
        at_ns: u64,
        whole: bool,
    },
    /// The desk's own end of the line: what the process wrote on its standard error before it was
    /// lost.
    Said {
        text: String,
    },
    /// A person has said so to a fleet.
    StopWanted,
    /// The desk's own end of the line tells it: nothing more comes, though the load was not over.
    Lost {
        detail: Said,
    },
}

/// A round of an audit of presence, over the users of one generator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tally {
    pub audit: u16,
    pub at_ns: u64,
    /// As [`throng_audit::Found::due`].
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

/// A value as JSON that is read back as it was, which plain JSON is not: bytes are no text, and no
/// JSON has all numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    /// Its bits.
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
    fn values_come_over_as_they_were() {
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

    fn same<T: Serialize + serde::de::DeserializeOwned>(text: &str) -> T {
        let read: T = serde_json::from_str(text).expect(text);
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        read
    }

    /// As agents of version 4 of the fleet's wire read and write them.
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
        // Facts of a host have defaults of their own.
        wanted["machine"]["host"] = written["machine"]["host"].clone();
        assert_eq!(written, wanted);
    }
}
