//! All figures of a run, made of its record and of nothing else: the summary at the end of a run
//! and the one of `throng report` are the same.

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
    Blame, Cause, Connections, DeliveryCounter, DeliveryInterval, Ending, Heartbeats, Interval,
    Lifecycle, Messages, Packets, Population, Resources, Retries, SampleInterval, Stage,
    StepInterval, StepKind, TargetInterval, Together, TrendUnit, Unit, Verdict,
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
pub use validity::{HOST_CPU_BUSY, InvalidReason, LATENESS_NS_MAX, Validity};

/// What was wrong with a file of lines, or with all of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Lines that are no record, but not the last one.
    pub unreadable: u64,
    /// The last line was being written when the run was killed.
    pub torn: bool,
    /// Lines that were numbered when they were written and are not there, nor known to be lost.
    pub missing: u64,
    /// Lines with a number that was there already; they are passed over.
    pub doubled: u64,
    /// Lines whose attempts are not all good or failed.
    pub unequal: u64,
    /// What the record comes to, where the end of the run says something else.
    pub totals: Option<Totals>,
}

/// From which second of the run on, and for how many, nothing succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    pub from_s: u64,
    pub seconds: u64,
}

/// A run in figures. Where nothing else is said they are of the measured phases only.
#[derive(Clone, Debug)]
pub struct Summary {
    /// With the verdicts of the thresholds and the outcome filled in.
    pub info: RunInfo,
    /// Where the record is, when there is one.
    pub directory: Option<PathBuf>,
    /// The time of the measured phases: what rates are counted by.
    pub measured: Duration,
    /// The time of the whole run.
    pub lasted: Duration,
    /// The measured time in a few points; empty of what older versions have summed up.
    pub curves: Curves,
    pub verdict: RunVerdict,
    pub steps: StepTables,
    pub parts: PartTables,
    pub users: UserTables,
    pub connections: ConnectionTables,
    pub messages: MessageTables,
    pub generator: Generator,
    pub growth: Growth,
    /// What was read of other sources meanwhile, in the order of the scenario.
    pub monitors: Vec<MonitorRow>,
    /// What audits found, in the order of the scenario.
    pub audits: Vec<AuditRow>,
    pub events: RunEvents,
    /// How much the service carries, where a search looked for it.
    pub capacity: Option<Box<Capacity>>,
    /// How two targets differ, if the run was a duel.
    pub duel: Option<Box<Duel>>,
}

/// What the figures come to, and whether they can be relied on.
#[derive(Clone, Debug)]
pub struct RunVerdict {
    pub validity: Validity,
    /// What was found in the record, and why; None of one that an older version has summed up.
    pub why: Option<throng_why::Judged>,
    pub thresholds: Vec<ThresholdRow>,
    /// The run has no end: it was killed, or it still goes on.
    pub unended: bool,
    pub damage: Damage,
    /// Of the whole run: rows of which attempts were begun and have no end, or the other way round.
    pub unbalanced: Vec<Unbalanced>,
}

/// What the steps of the scenario did.
#[derive(Clone, Debug)]
pub struct StepTables {
    /// All attempts together ([`StepKind::is_attempt`]): the sum of their rows.
    pub total: Row,
    /// One for each step of the scenario, in its order, but for the next three.
    pub rows: Vec<Row>,
    /// One for each transaction, in the order of the scenario.
    pub transactions: Vec<Row>,
    /// One for each kind of messages that nobody asked for: how many came.
    pub pushed: Vec<Row>,
    /// What the scenario counts and measures of its own, in its order.
    pub own: Vec<OwnRow>,
    /// The most frequent first.
    pub errors: Vec<ErrorRow>,
    /// The first failures of each kind, with what they are told by.
    pub failures: Vec<FailureRow>,
    /// The slowest attempts of the steps that are asked for, the slowest first.
    pub slowest: Vec<SlowRow>,
    /// By the name of the step: what the responses to its requests are like, where they differ.
    pub samples: Vec<(String, SampleInterval)>,
    pub retries: Retries,
}

/// The same attempts, by what they were part of.
#[derive(Clone, Debug)]
pub struct PartTables {
    /// Where there are several.
    pub loads: Vec<LoadRow>,
    /// One for each phase, measured or not.
    pub phases: Vec<PhaseRow>,
    /// Each phase, and each part of it with a load of its own, in the order of time.
    pub levels: Vec<LevelRow>,
    /// Iterations by their session; empty where there is only one.
    pub sessions: Vec<SessionRow>,
    /// What went to which address, in the order of the targets; empty where there is only one.
    pub targets: Vec<TargetRow>,
    /// Responses by the instance that they name, where the scenario names the header.
    pub instances: Vec<InstanceRow>,
    /// Each machine for itself, where there are several.
    pub machines: Vec<MachineRow>,
    /// Where these are called differently: by label, then by value.
    pub labels: Vec<LabelRow>,
}

/// Who was there. The maxima are of the whole run.
#[derive(Clone, Debug)]
pub struct UserTables {
    pub population: Population,
    pub online_max: u64,
    /// Online or not.
    pub present_max: u64,
    /// Starts that were due and had not begun at the end of a second, at most.
    pub backlog_max: u64,
    /// Their states over the time of the run; None where none has a connection that lasts, and of
    /// records of older versions.
    pub picture: Option<Picture>,
}

/// How connections began, lived and ended.
#[derive(Clone, Debug)]
pub struct ConnectionTables {
    pub counts: Connections,
    pub opening: Opening,
    /// Of the whole run.
    pub open_max: u64,
    /// The parts of a connection's life that happened, in their order.
    pub stages: Vec<StageRow>,
    /// How long connections were there, by who ended them; those that were open first.
    pub residence: Vec<ResidenceRow>,
    pub lifecycle: Lifecycle,
    pub tcp: TcpRow,
    /// Of users with a network of their own.
    pub packets: Packets,
    /// All bytes that went over the connections, those of no step too.
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// What long-lived connections carried.
#[derive(Clone, Debug)]
pub struct MessageTables {
    pub counts: Messages,
    pub heartbeats: HeartbeatRow,
    /// One for each row of the ledger, in the order of the scenario.
    pub deliveries: Vec<DeliveryRow>,
}

/// What happened to the run itself.
#[derive(Clone, Debug)]
pub struct RunEvents {
    /// When the run was given up because the target was gone, in nanoseconds of the run.
    pub target_lost_ns: Option<u64>,
    /// The longest while in which nothing succeeded, between much that did.
    pub outage: Option<Outage>,
    /// From which second on no user was there, though the load went on for a while: all had left.
    pub deserted_s: Option<u64>,
    /// The scenario ended the run before its load was done.
    pub stopped: Option<Stopped>,
    /// What was done once, before and after the load: in no other figure.
    pub once: Vec<OnceRun>,
    /// What persons have changed and marked while it ran.
    pub changes: Changes,
    /// What happened at set times, and where persons set marks, in the order of time.
    pub actions: Vec<ActionRow>,
    /// Where machines left their hosts to others.
    pub back_offs: BackOffs,
    /// The lines that the scenario wrote, of the whole run.
    pub log: Log,
}

/// A row whose figures cannot all be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unbalanced {
    pub name: String,
    pub begun: u64,
    pub ended: u64,
}

/// What one step did, or all of them together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    pub kind: StepKind,
    pub labels: BTreeMap<String, String>,
    /// Attempts that began. Those of an unmeasured phase may end in a measured one.
    pub begun: u64,
    /// Attempts that ended, well or not.
    pub count: u64,
    pub ok: u64,
    pub failed: u64,
    /// Attempts that were cut off.
    pub interrupted: u64,
    /// Of `ok` those that came after the load had ended: they are in no rate.
    pub ok_after: u64,
    /// Of what came while the load went on.
    pub ok_per_s: f64,
    /// Tries that were followed by another, the most frequent cause first.
    #[serde(serialize_with = "spelled::causes")]
    pub retried: Vec<(Cause, u64)>,
    pub given_up: u64,
    pub latency: Latency,
    /// Of what is asked and answered: from the sending on. Older records do not say it.
    pub service: Latency,
    /// Of transactions: the times with the pauses of the users in them.
    #[serde(skip)]
    pub with_pauses: Latency,
    pub first_byte: Latency,
    #[serde(serialize_with = "spelled::codes")]
    pub codes: Vec<(u16, u64)>,
    /// Requests that were sent once more; each is one attempt all the same.
    pub resent: u64,
    #[serde(rename = "received_bytes")]
    pub bytes_in: u64,
    #[serde(rename = "sent_bytes")]
    pub bytes_out: u64,
}

/// What became of messages that had to reach an audience.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryRow {
    pub name: String,
    pub counts: DeliveryInterval,
    pub delivered_per_s: f64,
    /// The first of what went wrong in each way, but for losses: those stand with the errors.
    pub examples: Vec<(DeliveryCounter, Example)>,
    /// From the stamp of the sender to each receiver; of those that had come by the end, settled
    /// or not.
    pub latency: Latency,
}

/// A counter, or a trend where it has a unit: its values are those of a histogram, in the unit
/// times [`TrendUnit::scale`].
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

/// Who ended the run, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    pub at_ns: u64,
    #[serde(serialize_with = "spelled::english")]
    pub reason: Said,
    pub by: StopBy,
}

/// The lines that the scenario wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// All that were recorded.
    pub count: u64,
    /// At most [`Log::LINES_MAX`].
    pub first: Vec<LogLine>,
}

impl Log {
    pub const LINES_MAX: usize = 10;
}

/// Of the time: what is measured of it and more is all of it, to a person.
const MEASURED_SHARE_TOLD: f64 = 0.95;
/// Of the good attempts: fewer that came after the load change no rate that a person looks at.
const AFTER_SHARE_TOLD: f64 = 0.01;
/// How many changes are kept; the record has all.
const CHANGES_MAX: usize = 1_000;

/// What persons have done to a run, the first of it.
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

/// A change while the run went on, or a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub at_ns: u64,
    pub of: ChangeOf,
    /// `times 1.1`; the name of a mark; `shop.example: 10.0.0.1 -> 10.0.0.2`.
    pub what: String,
}

impl Change {
    /// Whether a person has changed the load.
    pub(crate) fn is_of_load(&self) -> bool {
        matches!(self.of, ChangeOf::Phase(_))
    }
}

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOf {
    /// The load in this phase, by a person.
    Phase(String),
    /// Nothing: a person has marked the moment.
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
    /// Neither, as the run ended; counted over the whole run. None of a stage whose end nobody
    /// waits for: that no message came is no failure.
    pub cut_off: Option<u64>,
    pub latency: Latency,
    /// The most frequent first.
    #[serde(rename = "failures", serialize_with = "spelled::failures")]
    pub errors: Vec<(Cause, u64)>,
}

/// Iterations of one of several sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionRow {
    pub name: String,
    pub begun: u64,
    pub finished: u64,
    pub failed: u64,
    pub interrupted: u64,
    pub finished_per_s: f64,
    /// Of the finished ones.
    pub time: Latency,
}

/// What went to one of several addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetRow {
    /// The target as it was written; empty of one that the run does not know.
    pub target: String,
    /// Of a unix socket there is none.
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

/// How long those connections were there that ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResidenceRow {
    pub ended: Ending,
    /// They ended before they were open.
    pub unopened: bool,
    /// From when they were established to their end.
    pub time: Latency,
}

/// How connections were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Opening {
    /// Attempts that were refused by the target.
    pub refused: u64,
    pub per_s_mean: f64,
    /// The most in one second.
    pub per_s_max: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeartbeatRow {
    pub counts: Heartbeats,
    /// Of all steps that are heartbeats.
    pub latency: Latency,
}

/// What the kernel said of the connections that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TcpRow {
    pub count: u64,
    pub round_trip: Latency,
    pub retransmits: u64,
    #[serde(rename = "backlog_max_bytes")]
    pub backlog_bytes_max: u64,
}

/// How the generator kept to the limits that it was given (`--max-cpu`, `--max-memory`); of the
/// whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// Seconds in which it let nobody come.
    pub held_seconds: u64,
    /// The first time.
    pub held: Option<Hold>,
    /// From then on nobody came any more.
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
    /// False: the run ended before.
    pub begun: bool,
    #[serde(rename = "lasted_ns", serialize_with = "spelled::nanos")]
    pub lasted: Duration,
    pub count: u64,
    pub ok: u64,
    pub failed: u64,
    pub ok_per_s: f64,
    /// In its last whole second, as the next two.
    pub users_online: u64,
    pub users_present: u64,
    /// The users who shall be there at its end, when it is about users.
    pub users_planned: Option<u64>,
    /// Online at the ends of its seconds, at least and at most.
    pub users_online_min: u64,
    pub users_online_max: u64,
    pub users_present_max: u64,
    pub connections_opened: u64,
    pub opened_per_s: f64,
    /// Lives of connections that broke.
    pub broken: u64,
    /// Seconds in which the generator let nobody come.
    pub held_seconds: u64,
    pub latency: Latency,
}

/// A load that was kept for a while, and what each step did at it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LevelRow {
    /// The number of its load.
    #[serde(skip)]
    pub load: usize,
    /// Of its phase.
    pub name: String,
    /// The change of the load that it began with, as in [`Event::Amended`](crate::Event).
    pub change: Option<String>,
    pub measured: bool,
    pub at_ns: u64,
    #[serde(rename = "lasted_ns", serialize_with = "spelled::nanos")]
    pub lasted: Duration,
    /// The load changed then; the second of the change belongs to the level.
    #[serde(skip)]
    pub kept_to_ns: u64,
    /// Attempts that began per second.
    pub rate_per_s: f64,
    /// At its end, as the open connections.
    pub users_online: u64,
    pub connections_open: u64,
    pub opened_per_s: f64,
    /// Processors that the generator used, on average.
    pub cores: f64,
    /// Users present in its whole seconds, on average; None with several loads, and in seconds that
    /// are too short.
    pub users_mean: Option<f64>,
    /// By Little's law: attempts per second times response time and pause.
    pub users_explained: Option<f64>,
    /// Processors that worked for the target, where a source tells it.
    pub target_cores: Option<f64>,
    /// CPU time of the target for an attempt, in seconds.
    pub target_cpu_s: Option<f64>,
    /// Memory of the target at the end of the level, where a source tells it.
    pub target_memory_bytes: Option<u64>,
    /// Its growth since the first reading, for each open connection.
    pub target_connection_bytes: Option<u64>,
    #[serde(skip)]
    pub total: Row,
    /// The steps that had attempts.
    #[serde(skip)]
    pub steps: Vec<Row>,
}

/// What one of several loads did in the phases that count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadRow {
    pub name: String,
    /// From the begin of its first phase to the end of its last.
    #[serde(rename = "lasted_ns", serialize_with = "spelled::nanos")]
    pub lasted: Duration,
    pub count: u64,
    pub ok: u64,
    pub failed: u64,
    pub ok_per_s: f64,
    /// In the last whole second of the load.
    pub users_online: u64,
    pub users_online_max: u64,
    pub users_present_max: u64,
    /// Users that came, and iterations that began.
    pub users_started: u64,
    pub iterations_started: u64,
    /// Starts that were due and never happened, and those that were dropped.
    pub unmet: u64,
    pub dropped: u64,
    pub connections_opened: u64,
    pub latency: Latency,
}

/// How often a step failed for one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorRow {
    pub step: String,
    pub cause: Cause,
    #[serde(serialize_with = "spelled::blame")]
    pub blame: Blame,
    pub count: u64,
    /// Of all attempts of all steps that ended, 0 to 1. None of what is no attempt, as of a
    /// rendezvous or a delivery: it is in no such sum.
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
    /// The name of the only load, and of the only phase, that counts.
    pub load: Option<String>,
    pub phase: Option<String>,
    #[serde(serialize_with = "spelled::unit")]
    pub unit: Unit,
    #[serde(flatten)]
    pub verdict: Verdict,
    /// A percentile of so few values that it is the largest of them; tables do not show it.
    pub largest_of: Option<u64>,
    /// The unmeasured phase that alone has a figure for it.
    #[serde(skip)]
    pub only_in: Option<String>,
}

impl ThresholdRow {
    /// What was measured, if anything was.
    pub(crate) fn figure(&self) -> Option<f64> {
        match self.verdict {
            Verdict::Met(it) | Verdict::NotMet(it) | Verdict::Indeterminate(it) => Some(it),
            Verdict::Unknown => None,
        }
    }

    /// Why there is no figure.
    pub(crate) fn unknown(&self) -> Said {
        match &self.only_in {
            Some(phase) => {
                say!("ran only in `{}`, which is not measured: add `in {}`", phase, phase)
            }
            None => say!("nothing to measure"),
        }
    }
}

/// What the generator says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Generator {
    /// How late it was with what was due.
    pub lateness: Latency,
    /// What it began in one waking.
    #[serde(skip)]
    pub together: Together,
    /// How long a shard did nothing though something was due, on average; and the longest time.
    pub lost_ns: u64,
    pub lost_longest_ns: u64,
    /// Seconds in which the lateness was above [`LATENESS_NS_MAX`] at p99.
    pub late_seconds: u64,
    /// Seconds from which there are figures.
    pub seconds: u64,
    /// User and system time of this process.
    pub cpu_ns: u64,
    /// Processors used, on average.
    pub cores: f64,
    /// CPU time for each attempt.
    pub cpu_per_attempt_ns: f64,
    #[serde(rename = "memory_max_bytes")]
    pub memory_bytes_max: u64,
    /// Shares of all processors of the host, by everything that ran there.
    pub host_cpu_mean: f64,
    pub host_cpu_max: f64,
    /// The first second of the run in which the host was busy at
    /// [`HOST_CPU_BUSY`] or more.
    #[serde(rename = "host_busy_from_s")]
    pub host_busy_from: Option<u64>,
    /// The most good answers in a second that was not late.
    pub sustained_per_s: u64,
    /// The most, or the least of what is left, in any second; the counters are sums.
    #[serde(skip)]
    pub resources: Resources,
}

/// What one of several machines says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineRow {
    pub name: String,
    pub shards: u64,
    pub generator: Generator,
    /// When it was gone before its load was over, and how.
    pub lost: Option<(u64, Said)>,
}

/// The figures of all machines that have a label alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LabelRow {
    pub label: String,
    /// None of those that do not have the label, and where `others` are together.
    pub value: Option<String>,
    /// How many values are together in this row; 0 where it is that of one.
    pub others: usize,
    pub machines: u64,
    pub users_max: u64,
    /// All attempts.
    pub total: Row,
    /// The steps that are attempts; none where there would be too many.
    pub steps: Vec<Row>,
}

impl ErrorRow {
    /// What to do next, in a few words.
    pub fn next(&self) -> Said {
        match (self.cause, self.blame) {
            (Cause::DeliveryLost, Blame::Scenario) => Cause::MessagesJoined.next(),
            (cause, _) => cause.next(),
        }
    }

    /// Whether it is a failed attempt, and so among the failures of all attempts.
    pub fn is_attempt(&self) -> bool {
        self.share.is_some()
    }
}

impl Summary {
    /// What is told of the length of the run: the measured time alone, where that is nearly all.
    /// The time in which the last users leave goes without saying.
    pub(crate) fn is_measured_throughout(&self) -> bool {
        self.measured >= self.lasted.mul_f64(MEASURED_SHARE_TOLD)
    }

    /// How many good attempts came after the load had ended, where the rates show that.
    pub(crate) fn ok_after_told(&self) -> Option<u64> {
        let total = &self.steps.total;
        let is_told = total.ok_after as f64 > total.ok as f64 * AFTER_SHARE_TOLD;
        is_told.then_some(total.ok_after)
    }

    /// The most users who were there at the end of a second.
    pub(crate) fn users_most(&self) -> u64 {
        self.users.present_max.max(self.users.online_max)
    }

    /// Whether a person let nobody come for a while.
    pub(crate) fn was_paused(&self) -> bool {
        self.events.changes.first.iter().any(|change| change.is_of_load() && change.what == "pause")
    }

    /// Whether there were connections that live longer than one answer.
    pub(crate) fn is_long_lived(&self) -> bool {
        self.steps.rows.iter().any(|row| row.kind == StepKind::Connect)
            || self.connections.stages.iter().any(|row| !row.stage.opens())
    }

    /// Good ends of lives among all that ended, 0 to 1.
    pub(crate) fn complete_share(&self) -> Option<f64> {
        let ended = self.connections.lifecycle.complete + self.connections.lifecycle.broken;
        (ended > 0).then(|| self.connections.lifecycle.complete as f64 / ended as f64)
    }
}

/// Where the time of the users went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slowest<'a> {
    /// The step that took longest on average, and its share of the time that all of them took
    /// together, 0 to 1.
    pub(crate) step: &'a Row,
    pub(crate) share: f64,
    /// The step that most of the time went to, with its share.
    pub(crate) most: (&'a Row, f64),
}

impl Summary {
    /// Whether every attempt of the run is a request: that is what reports call them then.
    pub(crate) fn only_requests(&self) -> bool {
        let mut attempts = self.steps.rows.iter().filter(|row| row.kind.is_attempt()).peekable();
        attempts.peek().is_some() && attempts.all(|row| row.kind.is_request())
    }

    /// The word for its attempts.
    pub(crate) fn attempts_word(&self) -> Said {
        if self.only_requests() { say!("requests") } else { say!("attempts") }
    }

    /// Nothing where fewer than two steps have times: staying and waiting for others are none.
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
    /// Of those that were expected, 0 to 1.
    pub(crate) fn lost_share(&self) -> Option<f64> {
        let expected = self.counts.expected;
        (expected > 0).then(|| self.counts.lost as f64 / expected as f64)
    }
}

impl HeartbeatRow {
    /// Of those that were sent, 0 to 1.
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

/// Which steps of a run are attempts ([`StepKind::is_attempt`]). A step that the run file does not
/// know is.
#[derive(Clone, Debug, Serialize, Deserialize)]
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

    /// All attempts together.
    pub(crate) fn total(&self, interval: &Interval) -> StepInterval {
        interval.sum(|step| self.holds(step))
    }
}

/// Whether users only connect and stay, though their hearts may beat.
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
