//! All results of a run, computed only from its run directory, so that the summary at the end of a
//! run equals that of `throng report`.

pub(crate) mod curves;
mod latency;
mod levels;
pub mod picture;
mod validity;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::{Said, StepId};
use throng_metrics::{
    Blame, Cause, Connections, DeliveryCounter, DeliveryInterval, Ending, GeneratorInterval,
    Heartbeats, Interval, Lifecycle, Messages, Packets, Population, Resources, Retries,
    SampleInterval, Stage, StepInterval, StepKind, TargetInterval, Together, TrendUnit, Unit,
    Verdict,
};

use crate::actions::ActionRow;
use crate::audits::AuditRow;
use crate::back_off::BackOffs;
use crate::directory::{RunInfo, Totals, spelling as spelled};
use crate::event::StopBy;
use crate::evidence::FailureRow;
use crate::monitors::MonitorRow;
use crate::once::OnceRun;
pub use curves::{Curves, POINTS_MAX};
pub use latency::Latency;
pub(crate) use levels::LEVELS_DRAWN_MIN;
use picture::Picture;
use throng_metrics::Duel;
use throng_metrics::capacity::Capacity;
use throng_why::Judged;
pub use validity::{HOST_CPU_BUSY, InvalidReason, LATENESS_NS_MAX, Validity};

/// Damage in a file of lines, or in a whole run directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Unreadable lines, except the last.
    pub unreadable: u64,
    /// The last line was incomplete when the run was killed.
    pub torn: bool,
    /// Numbered lines that are missing and were not counted as lost.
    pub missing: u64,
    /// Lines with a number that occurred before; they are ignored.
    pub doubled: u64,
    /// Lines whose attempts are not all successful or failed.
    pub unequal: u64,
    /// The totals of the lines, if they differ from those recorded at the end.
    pub totals: Option<Totals>,
}

/// The start of an outage in seconds of the run, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    pub from_s: u64,
    pub seconds: u64,
}

/// The results of a run. Unless stated otherwise, they cover only measured phases.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Includes the verdicts of the thresholds and the outcome.
    pub info: RunInfo,
    /// The run directory, if there is one.
    pub directory: Option<PathBuf>,
    /// The time of the measured phases; the base of all rates.
    pub measured: Duration,
    /// The length of the whole run.
    pub lasted: Duration,
    /// The measured time in a few points.
    pub curves: Curves,
    pub verdict: RunVerdict,
    pub steps: StepTables,
    pub parts: PartTables,
    pub users: UserTables,
    pub connections: ConnectionTables,
    pub messages: MessageTables,
    pub generator: Generator,
    pub growth: Growth,
    /// Readings of monitors, in the order of the scenario.
    pub monitors: Vec<MonitorRow>,
    /// Findings of audits, in the order of the scenario.
    pub audits: Vec<AuditRow>,
    pub events: RunEvents,
    /// The result of a capacity search.
    pub capacity: Option<Box<Capacity>>,
    /// The result of a duel.
    pub duel: Option<Box<Duel>>,
}

/// The verdict of the results, and whether they are valid.
#[derive(Clone, Debug)]
pub struct RunVerdict {
    pub validity: Validity,
    /// The findings.
    pub why: Judged,
    pub thresholds: Vec<ThresholdRow>,
    /// The run was killed or is still active.
    pub unended: bool,
    pub damage: Damage,
    /// Of the whole run: rows whose started attempts do not match their ended ones.
    pub unbalanced: Vec<Unbalanced>,
}

/// The results of the scenario's steps.
#[derive(Clone, Debug)]
pub struct StepTables {
    /// The sum of all attempts ([`StepKind::is_attempt`]).
    pub total: Row,
    /// One row per step in the order of the scenario, except those of the next three fields.
    pub rows: Vec<Row>,
    /// One row per transaction in the order of the scenario.
    pub transactions: Vec<Row>,
    /// One row per kind of unsolicited message.
    pub pushed: Vec<Row>,
    /// Counters and trends of the scenario, in its order.
    pub own: Vec<OwnRow>,
    /// The most frequent first.
    pub errors: Vec<ErrorRow>,
    /// The first failures of each kind, with evidence.
    pub failures: Vec<FailureRow>,
    /// The slowest attempts, the slowest first.
    pub slowest: Vec<SlowRow>,
    /// By step name: how responses differ.
    pub samples: Vec<(String, SampleInterval)>,
    pub retries: Retries,
}

/// The same attempts by load, phase, session, target and machine.
#[derive(Clone, Debug)]
pub struct PartTables {
    /// Only with several loads.
    pub loads: Vec<LoadRow>,
    /// One row per phase, measured or not.
    pub phases: Vec<PhaseRow>,
    /// Each phase, and each part of it with a changed load, in the order of time.
    pub levels: Vec<LevelRow>,
    /// Iterations by session; empty for a single session.
    pub sessions: Vec<SessionRow>,
    /// By address, in the order of the targets; empty for a single address.
    pub targets: Vec<TargetRow>,
    /// Responses by instance, if the scenario names a header that identifies it.
    pub instances: Vec<InstanceRow>,
    /// Each machine, if there are several.
    pub machines: Vec<MachineRow>,
    /// By label, then by value, if values differ.
    pub labels: Vec<LabelRow>,
}

/// The number of users. Maxima are those of the whole run.
#[derive(Clone, Debug)]
pub struct UserTables {
    pub population: Population,
    pub online_max: u64,
    /// Online or not.
    pub present_max: u64,
    /// Maximum number of starts that were due and had not begun at the end of a second.
    pub backlog_max: u64,
    /// Their states over the time of the run; `None` without long-lived connections, and for older
    /// run directories.
    pub picture: Option<Picture>,
}

/// How connections were opened, how long they lived, and how they ended.
#[derive(Clone, Debug)]
pub struct ConnectionTables {
    pub counts: Connections,
    pub opening: Opening,
    /// Of the whole run.
    pub open_max: u64,
    /// The stages of connections that occurred, in order.
    pub stages: Vec<StageRow>,
    /// Lifetimes of connections by the side that closed them; opened ones first.
    pub residence: Vec<ResidenceRow>,
    pub lifecycle: Lifecycle,
    pub tcp: TcpRow,
    /// Of users with a simulated network.
    pub packets: Packets,
    /// All bytes of the connections, including those of no step.
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// Messages of long-lived connections.
#[derive(Clone, Debug)]
pub struct MessageTables {
    pub counts: Messages,
    pub heartbeats: HeartbeatRow,
    /// One row per row of the ledger, in the order of the scenario.
    pub deliveries: Vec<DeliveryRow>,
}

/// Events of the run itself.
#[derive(Clone, Debug)]
pub struct RunEvents {
    /// When the run ended because the target was lost, in nanoseconds of the run.
    pub target_lost_ns: Option<u64>,
    /// The longest time without a success, between many successes.
    pub outage: Option<Outage>,
    /// The second after which no user was present, although the load continued for a while.
    pub deserted_s: Option<u64>,
    /// The scenario ended the run early.
    pub stopped: Option<Stopped>,
    /// Setup and teardown, which are in no other result.
    pub once: Vec<OnceRun>,
    /// What the operator changed and marked during the run.
    pub changes: Changes,
    /// Events of the scenario and marks of the operator, in the order of time.
    pub actions: Vec<ActionRow>,
    /// The machines that backed off.
    pub back_offs: BackOffs,
    /// The lines that the scenario logged in the whole run.
    pub log: Log,
}

/// A row whose counts are inconsistent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unbalanced {
    pub name: String,
    pub begun: u64,
    pub ended: u64,
}

/// The results of a step, or of all steps together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    pub kind: StepKind,
    pub labels: BTreeMap<String, String>,
    /// Attempts that began. Those of an unmeasured phase may end in a measured one.
    pub begun: u64,
    /// Attempts that ended, successful or not.
    pub count: u64,
    pub ok: u64,
    pub failed: u64,
    /// Attempts that were interrupted.
    pub interrupted: u64,
    /// The part of `ok` that ended after the load; not included in rates.
    pub ok_after: u64,
    /// Successful attempts during the load, per second.
    pub ok_per_s: f64,
    /// Retried tries, the most frequent cause first.
    #[serde(serialize_with = "spelled::causes")]
    pub retried: Vec<(Cause, u64)>,
    pub given_up: u64,
    pub latency: Latency,
    /// For requests: from the time of sending. Older run directories do not have it.
    pub service: Latency,
    /// For transactions: the times including pauses.
    #[serde(skip)]
    pub with_pauses: Latency,
    pub first_byte: Latency,
    #[serde(serialize_with = "spelled::codes")]
    pub codes: Vec<(u16, u64)>,
    /// Requests that were sent again within the same attempt.
    pub resent: u64,
    #[serde(rename = "received_bytes")]
    pub bytes_in: u64,
    #[serde(rename = "sent_bytes")]
    pub bytes_out: u64,
}

/// The deliveries of one row of the ledger.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryRow {
    pub name: String,
    pub counts: DeliveryInterval,
    pub delivered_per_s: f64,
    /// The first example of each irregularity; losses are in the errors.
    pub examples: Vec<(DeliveryCounter, Example)>,
    /// From the sender's timestamp to each receiver, for all messages received by the end.
    pub latency: Latency,
}

/// A counter, or a trend if it has a unit: its values are a histogram in the unit times
/// [`TrendUnit::scale`].
#[derive(Clone, Debug, PartialEq)]
pub struct OwnRow {
    pub row: Row,
    pub unit: Option<TrendUnit>,
}

/// One of the slowest attempts, with the name of its step.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowRow {
    pub step: String,
    pub slow: throng_metrics::Slow,
}

/// What ended the run, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    pub at_ns: u64,
    #[serde(serialize_with = "spelled::english")]
    pub reason: Said,
    pub by: StopBy,
}

/// The lines that the scenario logged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The number of recorded lines.
    pub count: u64,
    /// At most [`Log::LINES_MAX`].
    pub first: Vec<LogLine>,
}

impl Log {
    pub const LINES_MAX: usize = 10;
}

/// If a larger share of the time is measured, reports treat all of it as measured.
const MEASURED_SHARE_TOLD: f64 = 0.95;
/// A smaller share of successes after the load does not visibly change a rate.
const AFTER_SHARE_TOLD: f64 = 0.01;
/// Maximum number of changes kept; the run directory has all.
const CHANGES_MAX: usize = 1_000;

/// The first changes by the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub count: u64,
    pub first: Vec<Change>,
}

impl Changes {
    pub(crate) fn add(&mut self, change: Change) {
        self.count += 1;
        if self.first.len() < CHANGES_MAX {
            self.first.push(change);
        }
    }
}

/// A change during the run, or a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub at_ns: u64,
    pub of: ChangeOf,
    /// `times 1.1`; the name of a mark; `shop.example: 10.0.0.1 -> 10.0.0.2`.
    pub what: String,
}

impl Change {
    /// Whether the operator changed the load.
    pub(crate) fn is_of_load(&self) -> bool {
        matches!(self.of, ChangeOf::Phase(_))
    }
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOf {
    /// The load in this phase.
    Phase(String),
    /// Nothing: the operator marked the moment.
    Mark,
    /// The addresses of a name.
    Addresses,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub at_ns: u64,
    pub user: u64,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    pub stage: Stage,
    pub began: u64,
    pub ok: u64,
    pub failed: u64,
    /// Neither, because the run ended; of the whole run. `None` for a stage that may lack an end: a
    /// missing message is not a failure.
    pub cut_off: Option<u64>,
    pub latency: Latency,
    /// The most frequent first.
    #[serde(rename = "failures", serialize_with = "spelled::failures")]
    pub errors: Vec<(Cause, u64)>,
}

/// The iterations of one of several sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionRow {
    pub name: String,
    pub begun: u64,
    pub finished: u64,
    pub failed: u64,
    pub interrupted: u64,
    pub finished_per_s: f64,
    /// Of completed iterations.
    pub time: Latency,
}

/// The results of one of several addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetRow {
    /// The target as written; empty if unknown.
    pub target: String,
    /// `None` for a unix socket.
    pub address: Option<SocketAddr>,
    pub counts: TargetInterval,
    pub ok_per_s: f64,
    pub latency: Latency,
}

/// The responses of one instance of a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceRow {
    pub target: String,
    pub instance: String,
    pub count: u64,
    pub failed: u64,
    pub ok_per_s: f64,
    pub latency: Latency,
}

/// The lifetimes of connections that ended in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResidenceRow {
    pub ended: Ending,
    /// They ended before they were open.
    pub unopened: bool,
    /// From the established connection to its end.
    pub time: Latency,
}

/// How connections were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Opening {
    /// Attempts that the target refused.
    pub refused: u64,
    pub per_s_mean: f64,
    /// The maximum in one second.
    pub per_s_max: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeartbeatRow {
    pub counts: Heartbeats,
    /// Of all heartbeats.
    pub latency: Latency,
}

/// The kernel's data about sampled connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TcpRow {
    pub count: u64,
    pub round_trip: Latency,
    pub retransmits: u64,
    #[serde(rename = "backlog_max_bytes")]
    pub backlog_bytes_max: u64,
}

/// Paused growth due to limits (`--max-cpu`, `--max-memory`), in the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// Seconds with paused growth.
    pub held_seconds: u64,
    /// The first pause.
    pub held: Option<Hold>,
    /// When growth ended.
    pub given_up: Option<Hold>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hold {
    pub at_ns: u64,
    /// The word of the limit.
    pub limit: String,
    #[serde(serialize_with = "spelled::english")]
    pub detail: Said,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseRow {
    /// The number of its load.
    #[serde(skip)]
    pub load: usize,
    pub name: String,
    pub measured: bool,
    /// False if the run ended before the phase started.
    pub begun: bool,
    #[serde(rename = "lasted_ns", serialize_with = "spelled::nanos")]
    pub lasted: Duration,
    pub count: u64,
    pub ok: u64,
    pub failed: u64,
    pub ok_per_s: f64,
    /// In its last full second, like the next two fields.
    pub users_online: u64,
    pub users_present: u64,
    /// The target number of users at its end, if it has one.
    pub users_planned: Option<u64>,
    /// Minimum and maximum online at the ends of its seconds.
    pub users_online_min: u64,
    pub users_online_max: u64,
    pub users_present_max: u64,
    pub connections_opened: u64,
    pub opened_per_s: f64,
    /// Connections that were lost.
    pub broken: u64,
    /// Seconds with paused growth.
    pub held_seconds: u64,
    pub latency: Latency,
}

/// A load that was held for a while, and the results of each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LevelRow {
    /// The number of its load.
    #[serde(skip)]
    pub load: usize,
    /// Of its phase.
    pub name: String,
    /// The load change at its start, as in [`Event::Amended`](crate::Event).
    pub change: Option<String>,
    pub measured: bool,
    pub at_ns: u64,
    #[serde(rename = "lasted_ns", serialize_with = "spelled::nanos")]
    pub lasted: Duration,
    /// The time of the next change; the second of the change belongs to this level.
    #[serde(skip)]
    pub kept_to_ns: u64,
    /// Attempts that began per second.
    pub rate_per_s: f64,
    /// At its end, like the open connections.
    pub users_online: u64,
    pub connections_open: u64,
    pub opened_per_s: f64,
    /// Mean number of processors used by the generator.
    pub cores: f64,
    /// Mean number of users present in its full seconds; `None` with several loads, or if it is too
    /// short.
    pub users_mean: Option<f64>,
    /// By Little's law: attempts per second times the sum of response time and pause.
    pub users_explained: Option<f64>,
    /// Processors used by the target, if a monitor reports it.
    pub target_cores: Option<f64>,
    /// CPU time of the target per attempt, in seconds.
    pub target_cpu_s: Option<f64>,
    /// Memory of the target at the end of the level, if a monitor reports it.
    pub target_memory_bytes: Option<u64>,
    /// Its growth since the first reading, per open connection.
    pub target_connection_bytes: Option<u64>,
    #[serde(skip)]
    pub total: Row,
    /// The steps with attempts.
    #[serde(skip)]
    pub steps: Vec<Row>,
}

/// The results of one of several loads in its measured phases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadRow {
    pub name: String,
    /// From the start of its first phase to the end of its last.
    #[serde(rename = "lasted_ns", serialize_with = "spelled::nanos")]
    pub lasted: Duration,
    pub count: u64,
    pub ok: u64,
    pub failed: u64,
    pub ok_per_s: f64,
    /// In the last full second of the load.
    pub users_online: u64,
    pub users_online_max: u64,
    pub users_present_max: u64,
    /// Users that started, and iterations that began.
    pub users_started: u64,
    pub iterations_started: u64,
    /// Starts that were due and never happened, and starts that were dropped.
    pub unmet: u64,
    pub dropped: u64,
    pub connections_opened: u64,
    pub latency: Latency,
}

/// The number of failures of a step with the same cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorRow {
    pub step: String,
    pub cause: Cause,
    #[serde(serialize_with = "spelled::blame")]
    pub blame: Blame,
    pub count: u64,
    /// Share of all ended attempts, 0 to 1. `None` for failures that are not attempts, such as
    /// rendezvous and deliveries.
    pub share: Option<f64>,
    pub example: Option<Example>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    pub at_ns: u64,
    #[serde(serialize_with = "spelled::english")]
    pub detail: Said,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThresholdRow {
    pub text: String,
    /// The name of the only measured load, and of the only measured phase.
    pub load: Option<String>,
    pub phase: Option<String>,
    #[serde(serialize_with = "spelled::unit")]
    pub unit: Unit,
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The percentile is the largest of this many values; tables do not show it.
    pub largest_of: Option<u64>,
    /// The only phase with a value; it is not measured.
    #[serde(skip)]
    pub only_in: Option<String>,
}

impl ThresholdRow {
    /// The measured value, if there is one.
    pub(crate) fn figure(&self) -> Option<f64> {
        match self.verdict {
            Verdict::Met(it) | Verdict::NotMet(it) | Verdict::Indeterminate(it) => Some(it),
            Verdict::Unknown => None,
        }
    }

    /// Why there is no value.
    pub(crate) fn unknown(&self) -> Said {
        match &self.only_in {
            Some(phase) => {
                say!("ran only in `{}`, which is not measured: add `in {}`", phase, phase)
            }
            None => say!("nothing to measure"),
        }
    }
}

/// The generator's own metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Generator {
    /// The delay between due times and actual starts.
    pub lateness: Latency,
    /// How many events it started per wake-up.
    #[serde(skip)]
    pub together: Together,
    /// Mean time in which a shard did nothing although work was due, and the longest such time.
    pub lost_ns: u64,
    pub lost_longest_ns: u64,
    /// Seconds in which the lateness was above [`LATENESS_NS_MAX`] at p99.
    pub late_seconds: u64,
    /// Seconds with results.
    pub seconds: u64,
    /// User and system time of this process.
    pub cpu_ns: u64,
    /// Mean number of processors used.
    pub cores: f64,
    /// CPU time per attempt.
    pub cpu_per_attempt_ns: f64,
    #[serde(rename = "memory_max_bytes")]
    pub memory_bytes_max: u64,
    /// CPU usage of the whole host by all programs.
    pub host_cpu_mean: f64,
    pub host_cpu_max: f64,
    /// The first second of the run with a CPU usage of the host of [`HOST_CPU_BUSY`] or more.
    #[serde(rename = "host_busy_from_s")]
    pub host_busy_from: Option<u64>,
    /// Maximum number of successes in a second that was not late.
    pub sustained_per_s: u64,
    /// The maximum, or minimum of what is left, in any second; sums for counters.
    #[serde(skip)]
    pub resources: Resources,
}

impl Generator {
    /// What follows from the sums of all shards, without what needs seconds.
    pub(crate) fn of(
        sum: &GeneratorInterval,
        shards: u64,
        attempts: u64,
        measured: Duration,
    ) -> Generator {
        let resources = sum.resources.clone().unwrap_or_default();
        let cpu_ns = resources.cpu.time_ns();
        Generator {
            lateness: Latency::of(&sum.lateness),
            together: sum.together,
            lost_ns: sum.lost_ns / shards.max(1),
            lost_longest_ns: sum.lost_max_ns,
            cpu_ns,
            cores: per_second(cpu_ns, measured) / 1e9,
            cpu_per_attempt_ns: if attempts == 0 { 0.0 } else { cpu_ns as f64 / attempts as f64 },
            memory_bytes_max: resources.memory_bytes,
            host_cpu_max: resources.host_cpu,
            resources,
            ..Generator::default()
        }
    }
}

/// The metrics of one of several machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineRow {
    pub name: String,
    pub shards: u64,
    pub generator: Generator,
    /// When and how it was lost.
    pub lost: Option<(u64, Said)>,
}

/// The results of all machines with the same value of a label.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LabelRow {
    pub label: String,
    /// `None` for machines without the label, and for a row with `others`.
    pub value: Option<String>,
    /// The number of values in this row; 0 for a single value.
    pub others: usize,
    pub machines: u64,
    pub users_max: u64,
    /// All attempts.
    pub total: Row,
    /// The steps that are attempts; empty if there would be too many.
    pub steps: Vec<Row>,
}

impl ErrorRow {
    /// A short hint at what to do next.
    pub fn next(&self) -> Said {
        match (self.cause, self.blame) {
            (Cause::DeliveryLost, Blame::Scenario) => Cause::MessagesJoined.next(),
            (cause, _) => cause.next(),
        }
    }

    /// Whether it is a failed attempt, and thus counts among the failures of all attempts.
    pub fn is_attempt(&self) -> bool {
        self.share.is_some()
    }
}

impl Summary {
    /// Whether nearly all of the run was measured, so that only that time is shown. The time in
    /// which the last users leave is not worth mentioning.
    pub(crate) fn is_measured_throughout(&self) -> bool {
        self.measured >= self.lasted.mul_f64(MEASURED_SHARE_TOLD)
    }

    /// The number of successes after the load, if it is visible in the rates.
    pub(crate) fn ok_after_told(&self) -> Option<u64> {
        let total = &self.steps.total;
        let is_told = total.ok_after as f64 > total.ok as f64 * AFTER_SHARE_TOLD;
        is_told.then_some(total.ok_after)
    }

    /// The maximum number of users at the end of a second.
    pub(crate) fn users_most(&self) -> u64 {
        self.users.present_max.max(self.users.online_max)
    }

    /// Whether the operator paused growth.
    pub(crate) fn was_paused(&self) -> bool {
        self.events.changes.first.iter().any(|change| change.is_of_load() && change.what == "pause")
    }

    /// Whether there were long-lived connections.
    pub(crate) fn is_long_lived(&self) -> bool {
        self.steps.rows.iter().any(|row| row.kind == StepKind::Connect)
            || self.connections.stages.iter().any(|row| !row.stage.opens())
    }

    /// Share of complete lives among all that ended, 0 to 1.
    pub(crate) fn complete_share(&self) -> Option<f64> {
        let ended = self.connections.lifecycle.complete + self.connections.lifecycle.broken;
        (ended > 0).then(|| self.connections.lifecycle.complete as f64 / ended as f64)
    }
}

/// The steps that took most of the users' time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slowest<'a> {
    /// The step with the longest mean time, and its share of the total time, 0 to 1.
    pub(crate) step: &'a Row,
    pub(crate) share: f64,
    /// The step with the largest share of the total time, and that share.
    pub(crate) most: (&'a Row, f64),
}

impl Summary {
    /// Whether every attempt is a request; reports then call them requests.
    pub(crate) fn only_requests(&self) -> bool {
        let mut attempts = self.steps.rows.iter().filter(|row| row.kind.is_attempt()).peekable();
        attempts.peek().is_some() && attempts.all(|row| row.kind.is_request())
    }

    /// The word for its attempts.
    pub(crate) fn attempts_word(&self) -> Said {
        if self.only_requests() { say!("requests") } else { say!("attempts") }
    }

    /// `None` if fewer than two steps have times; staying and rendezvous do not count.
    pub(crate) fn slowest(&self) -> Option<Slowest<'_>> {
        let is_timed =
            |row: &&Row| row.kind.is_timed() && row.kind.is_attempt() && !row.latency.is_empty();
        let rows: Vec<&Row> = self.steps.rows.iter().filter(is_timed).collect();
        let time = |row: &Row| row.latency.mean_ns * row.latency.count as f64;
        let whole: f64 = rows.iter().map(|row| time(row)).sum();
        if rows.len() < 2 || whole <= 0.0 {
            return None;
        }
        let by_mean = |a: &&&Row, b: &&&Row| a.latency.mean_ns.total_cmp(&b.latency.mean_ns);
        let step = rows.iter().max_by(by_mean)?;
        let most = rows.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
        Some(Slowest { step, share: time(step) / whole, most: (most, time(most) / whole) })
    }
}

impl DeliveryRow {
    /// Share of expected deliveries, 0 to 1.
    pub(crate) fn lost_share(&self) -> Option<f64> {
        let expected = self.counts.expected;
        (expected > 0).then(|| self.counts.lost as f64 / expected as f64)
    }
}

impl HeartbeatRow {
    /// Share of sent messages, 0 to 1.
    pub(crate) fn lost_share(&self) -> Option<f64> {
        let sent = self.counts.sent;
        (sent > 0).then(|| self.counts.lost as f64 / sent as f64)
    }
}

impl Row {
    pub(crate) fn new(
        name: String,
        kind: StepKind,
        figures: &StepInterval,
        measured: Duration,
    ) -> Row {
        let (mut codes, mut retried) = (figures.codes.clone(), figures.retried.clone());
        most_first(&mut codes);
        most_first(&mut retried);
        Row {
            name,
            kind,
            labels: BTreeMap::new(),
            begun: figures.begun,
            count: figures.count,
            ok: figures.ok,
            failed: figures.failed(),
            interrupted: figures.interrupted,
            ok_after: figures.ok_after,
            ok_per_s: per_second(figures.ok_in_time(), measured),
            retried,
            given_up: figures.given_up,
            latency: Latency::of(&figures.latency),
            service: Latency::default(),
            with_pauses: Latency::of(&figures.with_pauses),
            first_byte: Latency::of(&figures.first_byte),
            codes,
            resent: figures.resent,
            bytes_in: figures.bytes_in,
            bytes_out: figures.bytes_out,
        }
    }
}

/// Which steps of a run are attempts ([`StepKind::is_attempt`]). An unknown step is one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Attempts {
    by_step: Vec<bool>,
}

impl Attempts {
    pub(crate) fn new(info: &RunInfo) -> Attempts {
        Attempts { by_step: info.tables.steps.iter().map(|step| step.kind.is_attempt()).collect() }
    }

    pub(crate) fn holds(&self, step: StepId) -> bool {
        self.by_step.get(step.index()).copied().unwrap_or(true)
    }

    /// The sum of all attempts.
    pub(crate) fn total(&self, interval: &Interval) -> StepInterval {
        interval.sum(|step| self.holds(step))
    }
}

/// Whether users only connect and stay, possibly with heartbeats.
pub(crate) fn only_stays(info: &RunInfo) -> bool {
    let mut attempts = info.tables.steps.iter().filter(|step| step.kind.is_attempt()).peekable();
    attempts.peek().is_some() && attempts.all(|step| step.kind.is_idle())
}

pub(crate) fn per_second(count: u64, duration: Duration) -> f64 {
    if duration.is_zero() { 0.0 } else { count as f64 / duration.as_secs_f64() }
}

pub(crate) fn most_first<K: Ord + Copy>(counters: &mut [(K, u64)]) {
    counters.sort_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
}
