//! The table of gauges: values at the end of a second, and resources used by the generator. Each
//! has its rule ([`crate::merge`]), its unit, the first format with it, its outputs and one line of
//! documentation. The recorded structs and their merging, the fields of `generator` in the
//! summary's JSON, the columns of CSV, the exported metrics, the generator's memory in the
//! terminal, and the tables of `docs/run-directory.md` and `docs/json.md` are generated from it.

use serde::{Deserialize, Serialize};
use throng_base::Said;

use crate::figures::is_zero;
use crate::merge::FIELDS_MAX;
use crate::quantity::Unit;

/// A gauge of `T` as a row of the table.
pub struct Gauge<T: 'static> {
    /// The recorded field.
    pub field: &'static str,
    /// The field of `generator` in the summary's JSON.
    pub json: Option<&'static str>,
    pub unit: Unit,
    /// The first format with this gauge.
    pub since: u32,
    outputs: &'static [Output],
    pub export: Option<Exported>,
    /// The line of the terminal that contains it if it is above zero, and its words.
    pub line: Option<(Line, fn() -> Said)>,
    pub of: fn(&T) -> Reading,
    rule: Rule,
    doc: &'static str,
}

/// The identification of a gauge in exported metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    pub name: &'static str,
    pub help: &'static str,
    /// Distinguishes gauges with the same name.
    pub state: Option<&'static str>,
}

/// An output with some of the gauges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The columns of CSV.
    Csv,
    /// The curves of the page.
    Page,
}

/// A line about the generator in the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The use of its memory.
    Memory,
    /// Scarce resources of the host.
    Short,
}

/// The value of a gauge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reading {
    Count(u64),
    Share(f64),
    /// Unknown, or not a number.
    Unknown,
}

/// How readings are combined over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Sum,
    Most,
    Least,
    LeastKnown,
    Any,
}

impl Reading {
    pub fn number(self) -> Option<f64> {
        match self {
            Reading::Count(count) => Some(count as f64),
            Reading::Share(share) => Some(share),
            Reading::Unknown => None,
        }
    }
}

macro_rules! readings {
    ($($type:ty: |$value:ident| $reading:expr;)+) => {
        $(impl From<$type> for Reading {
            fn from($value: $type) -> Reading {
                $reading
            }
        })+
    };
}

readings! {
    u64: |count| Reading::Count(count);
    f64: |share| Reading::Share(share);
    Option<u64>: |count| count.map_or(Reading::Unknown, Reading::Count);
    bool: |_is| Reading::Unknown;
}

impl<T> Gauge<T> {
    /// Whether an output contains it.
    pub fn is_in(&self, output: Output) -> bool {
        self.outputs.contains(&output)
    }

    /// Its row in `docs/run-directory.md`, optionally with its rule.
    pub fn record_row(&self, is_combined: bool) -> String {
        let (rule, unknown) = match self.rule {
            Rule::Sum => ("sum", ""),
            Rule::Most => ("maximum", ""),
            Rule::Least => ("minimum", "; absent if unknown"),
            Rule::LeastKnown => ("minimum", "; 0 if unknown"),
            Rule::Any => ("true if any is", ""),
        };
        let rule = if is_combined { format!(" {rule} |") } else { String::new() };
        format!("| `{}` | {}{unknown} |{rule}", self.field, self.doc.trim_start())
    }

    /// Its row in `docs/json.md`, if JSON contains it: name, type and meaning.
    pub fn json_row(&self) -> Option<[String; 3]> {
        let (or_null, of_all) = match self.rule {
            Rule::Sum | Rule::Any => ("", ""),
            Rule::Most => ("", "; the maximum of all seconds"),
            Rule::Least | Rule::LeastKnown => {
                (" or null", "; the lowest value of any second, `null` if unknown")
            }
        };
        let kind = match self.unit {
            Unit::Nanoseconds => "integer (ns)",
            Unit::Bytes => "integer (bytes)",
            Unit::Share => "number (share)",
            _ => "integer",
        };
        let doc = format!("{}{of_all}", self.doc.trim_start());
        Some([self.json?.to_string(), format!("{kind}{or_null}"), doc])
    }
}

macro_rules! reading {
    (LeastKnown $value:expr) => {
        Some($value).filter(|value| *value > 0).into()
    };
    ($rule:ident $value:expr) => {
        $value.into()
    };
}

/// The struct to which a block of gauges belongs: its own, or the one that contains it.
macro_rules! owner {
    ($name:ident) => {
        $name
    };
    ($name:ident $owner:ident) => {
        $owner
    };
}

macro_rules! gauges {
    ($(
        $(#[doc = $about:literal])+ $(#[derive($derive:ident)])?
        $name:ident $(of $owner:ident.$place:ident)? $(with $part:ident: $part_name:ident)? {
            $(
                $(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])?
                $field:ident: $type:ty, $rule:ident $unit:ident $(, since $since:literal)?
                $(, json $json:literal)?
                $(, in $($output:ident)+)?
                $(, export [$export:expr, $help:expr $(, $state:literal)?])?
                $(, line $line:ident $words:expr)?;
            )+
        }
    )+) => {
        $(merged! {
            $(#[doc = $about])+
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
            $(#[derive($derive)])?
            #[serde(default)]
            pub struct $name {
                $(
                    /// Part of the same recorded object.
                    #[serde(flatten)]
                    pub $part: $part_name => Sum,
                )?
                $(
                    $(#[doc = $doc])+
                    $(#[serde($($serde)+)])?
                    pub $field: $type => $rule,
                )+
            }
        }

        const _: () = assert!($name::OWN.len() <= FIELDS_MAX);

        impl $name {
            const OWN: &'static [Gauge<owner!($name $($owner)?)>] = &[$(Gauge {
                field: stringify!($field),
                json: or!(None $(, Some($json))?),
                unit: Unit::$unit,
                since: or!(1 $(, $since)?),
                outputs: &[$($(Output::$output),+)?],
                export: or!(None $(, Some(Exported {
                    name: $export,
                    help: $help,
                    state: or!(None $(, Some($state))?),
                }))?),
                line: or!(None $(, Some((Line::$line, || $words)))?),
                of: |all| reading!($rule $name::within(all).$field),
                rule: Rule::$rule,
                doc: concat!($($doc),+),
            },)+];

            fn within(all: &owner!($name $($owner)?)) -> &$name {
                &all$(.$place)?
            }

            /// In the order of the table.
            pub fn gauges() -> impl Iterator<Item = &'static Gauge<owner!($name $($owner)?)>> {
                [$($part_name::OWN,)? $name::OWN].into_iter().flatten()
            }
        })+
    };
}

const USERS: &str = "throng_users";
const USERS_HELP: &str = "Users by state at the end of the second.";

gauges! {
    /// What is so at the end of the interval. Shards and machines add up; over time the last one
    /// counts.
    #[derive(Eq)]
    Gauges {
        /// users that the load requires
        users_wanted: u64, Sum Number, in Csv Page, export [USERS, USERS_HELP, "wanted"];
        /// users present, online or not
        users_present: u64, Sum Number, since 3, in Page, export [USERS, USERS_HELP, "present"];
        /// users online: logged in on an open long-lived connection; HTTP users always
        users_online: u64, Sum Number, in Csv Page, export [USERS, USERS_HELP, "online"];
        /// connections that are being opened
        connections_opening: u64, Sum Number;
        /// open connections
        connections_open: u64, Sum Number, in Csv Page,
            export ["throng_connections_open", "Open connections."];
        /// requests whose response has not arrived
        in_flight: u64, Sum Number, in Csv Page,
            export ["throng_in_flight", "Requests waiting for their response."];
        /// in loads with a rate: starts that are due but have not begun; absent if 0
        #[serde(skip_serializing_if = "is_zero")]
        backlog: u64, Sum Number, since 5, in Page;
    }

    /// The processor time of this process.
    Cpu of Resources.cpu {
        /// user CPU time of this process
        cpu_user_ns: u64, Sum Nanoseconds;
        /// system CPU time of this process
        cpu_system_ns: u64, Sum Nanoseconds;
        /// CPU usage of the busiest shard's thread
        shard_cpu_max: f64, Most Share, since 3, json "shard_cpu_max";
        /// time that load threads waited for a CPU
        run_queue_ns: u64, Sum Nanoseconds, since 3, json "run_queue_ns";
        /// periods of the CPU quota with the most throttling (`cpu.stat`); 0 without a quota
        quota_periods: u64, Sum Number, since 3, json "quota_periods";
        /// periods in which this quota throttled throng
        throttled_periods: u64, Sum Number, since 3, json "throttled_periods";
        /// throttled time, summed over all processors
        throttled_ns: u64, Sum Nanoseconds, since 3, json "throttled_ns";
    }

    /// The resources of this process and its host during the interval, measured once for all
    /// shards.
    Resources with cpu: Cpu {
        /// resident memory of this process
        memory_bytes: u64, Most Bytes, in Page,
            export ["throng_memory_bytes", "Memory used by throng."];
        /// estimated memory for users
        users_bytes: u64, Most Bytes, since 3, json "users_max_bytes",
            line Memory say!("{{}} for users");
        /// estimated memory for connections
        connections_bytes: u64, Most Bytes, since 3, json "connections_max_bytes",
            line Memory say!("{{}} for connections");
        /// estimated memory for results
        recorder_bytes: u64, Most Bytes, since 3, json "recorder_max_bytes",
            line Memory say!("{{}} for recording");
        /// kernel memory for the sockets of the whole host
        kernel_socket_bytes: u64, Most Bytes, since 3, json "kernel_sockets_max_bytes",
            line Memory say!("{{}} in kernel sockets");
        /// memory available on the host
        memory_available_bytes: u64, LeastKnown Bytes, since 3, json "memory_available_min_bytes",
            line Memory say!("at least {{}} left");
        /// CPU usage of the whole host
        host_cpu: f64, Most Share, in Page,
            export ["throng_host_cpu_ratio", "Host CPU utilization, 0 to 1."];
        /// share of the host's CPU that other virtual machines used
        host_steal: f64, Most Share, since 3, json "host_steal_max";
        /// share of the host's CPU that the kernel's soft interrupts used
        host_softirq: f64, Most Share, since 3, json "host_softirq_max";
        /// packets that this host dropped because its receive queues were full
        packets_dropped: u64, Sum Number, since 3, json "packets_dropped",
            line Short say!("{{}} packets dropped on this host");
        /// connections that listeners on this host dropped
        listen_dropped: u64, Sum Number, since 3, json "listen_dropped",
            line Short say!("{{}} connections dropped by listeners on this host");
        /// connections that the host's firewall tracks; absent if it tracks none
        #[serde(skip_serializing_if = "is_zero")]
        conntrack: u64, Most Number, since 5;
        /// maximum number of tracked connections; absent if the firewall tracks none
        #[serde(skip_serializing_if = "is_zero")]
        conntrack_max: u64, Most Number, since 5;
        /// source ports left, if they can run out
        #[serde(skip_serializing_if = "Option::is_none")]
        ports_left: Option<u64>, Least Number, since 3, json "ports_left_min";
        /// true if growth was paused because the generator reached a limit
        held: bool, Any Number, since 3;
    }
}

impl Cpu {
    pub fn time_ns(&self) -> u64 {
        self.cpu_user_ns.saturating_add(self.cpu_system_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Merge as _;

    #[test]
    fn resources_are_combined_by_their_rules() {
        let mut sum = Resources { memory_bytes: 7, host_steal: 0.5, ..Resources::default() };
        sum.packets_dropped = 2;
        let later = Resources {
            memory_bytes: 5,
            host_steal: 0.75,
            packets_dropped: 3,
            memory_available_bytes: 100,
            ports_left: Some(9),
            held: true,
            ..Resources::default()
        };
        sum.merge(&later);
        let scarcer = Resources { ports_left: Some(4), ..Resources::default() };
        sum.merge(&scarcer);
        assert_eq!((sum.memory_bytes, sum.host_steal, sum.packets_dropped), (7, 0.75, 5));
        assert_eq!((sum.memory_available_bytes, sum.ports_left, sum.held), (100, Some(4), true));
        assert_eq!(sum.weight(), 5, "what is only compared cannot overflow");
    }

    #[test]
    fn every_output_has_its_readings() {
        let read = |field: &str, of: &Resources| {
            let gauge = Resources::gauges().find(|gauge| gauge.field == field).unwrap();
            serde_json::to_string(&(gauge.of)(of)).unwrap()
        };
        let of = Resources { host_cpu: 0.5, held: true, ..Resources::default() };
        assert_eq!((read("memory_bytes", &of), read("host_cpu", &of)), ("0".into(), "0.5".into()));
        assert_eq!(read("ports_left", &of), "null");
        assert_eq!(read("memory_available_bytes", &of), "null");
        let columns = Gauges::gauges().filter(|gauge| gauge.is_in(Output::Csv)).map(|it| it.field);
        let wanted = ["users_wanted", "users_online", "connections_open", "in_flight"];
        assert_eq!(columns.collect::<Vec<_>>(), wanted);
    }
}
