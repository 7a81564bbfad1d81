//! What stands in `run.json`, and how run directories are named. The format is documented in
//! `docs/run-directory.md`; names and units here are that format.

pub(crate) mod spelling;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::private::Private as _;
use throng_host::HostFacts;
use throng_metrics::{Interval, StepKind, Threshold, TrendUnit, Verdict, flat, plain};

/// The major version of the format. A reader refuses what is newer; new fields do not raise it. 2:
/// steps that are no attempts (transactions, rendezvous), and runs that a rule stopped; what reads
/// 1 would count the first twice and call the second good. 3: tries that are no failures,
/// thresholds that are indeterminate, numbered lines; what reads 2 would miss attempts that were
/// interrupted, and not know the verdict. 4: lines of several machines; what reads 3 would not see
/// that one of them was late. 5: segments of long runs; what reads 4 would find none of their
/// lines.
pub const FORMAT: u32 = 5;
/// The oldest format that is still read.
pub const FORMAT_MIN: u32 = 1;

pub const SCENARIO_FILE: &str = "scenario.yaml";
/// No file of a record is larger that is read at once: `run.json`, `scenario.yaml`.
pub(crate) const FILE_BYTES_MAX: usize = 256 << 20;

/// Where run directories are created unless the user names one, relative to the working directory.
pub const RECORDS: &str = "throng-runs";
/// Length of the start time with which the name of a run directory begins: `20261121-120301`.
pub(crate) const STAMP_BYTES: usize = 15;

pub const RUN_FILE: &str = "run.json";
pub const INTERVALS_FILE: &str = "intervals.ndjson";
pub const EVENTS_FILE: &str = "events.ndjson";
/// The field of every line that numbers it.
pub(crate) const SEQ: &str = "seq";
/// The field that says of which of several machines a line is.
pub(crate) const MACHINE: &str = "machine";

/// Makes a file of a record that is not there yet; what is written goes to its end. Records hold
/// what was sent and what came: their files and folders are for who made them.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).private().open(path)
}

flat! {
    plain
    /// Who, when, where and what: written when a run begins and again when it ends. The file has
    /// the fields of its groups as if they were its own, in this order.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct RunInfo {
        pub format: Format;
        /// No other run has it; `run.id` in expressions.
        pub id: String;
        flat build
        /// The binary that made the record.
        struct BuildInfo {
            pub version: String = "throng_version";
            /// Of the sources that the binary was built from, as `--version` has it; empty where
            /// the build did not know it, and in older records.
            #[serde(skip_serializing_if = "String::is_empty")]
            pub commit: String = "throng_commit";
        }
        pub name: String;
        /// By their names; those of the command are among them.
        pub labels: BTreeMap<String, String>;
        pub command: Vec<String>;
        flat time
        /// When the run began and ended.
        struct TimeInfo {
            /// RFC 3339, UTC; made by [`timestamp`].
            pub started: String;
            /// The zero of all times of the record, in nanoseconds since the Unix epoch; 0 in older
            /// ones.
            #[serde(skip_serializing_if = "is_zero")]
            pub zero_unix_ns: u64;
            /// Absent while the run goes on, and for ever when it was killed.
            pub ended: Option<String>;
        }
        pub seed: u64;
        /// What the command has changed of the load that the scenario has, in words.
        pub changes: Vec<throng_base::Said>;
        flat generator
        /// What made the load.
        struct GeneratorInfo {
            pub host: HostFacts;
            pub shards: u64;
            /// The machines whose lines these are, by the `machine` of each line; empty where there
            /// is only one that has the whole load.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub machines: Vec<MachineInfo>;
        }
        flat targets
        /// Where the load went.
        struct TargetsInfo {
            pub urls: Vec<String> = "targets";
            /// By target, the first one that users may get in its place: both are addresses of one
            /// service. Empty where each is a service of its own, and in older records.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub services: Vec<u16>;
            /// A target is on a machine that makes the load, so that both compete for its
            /// processors.
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub same_host: bool;
        }
        flat mode
        /// What kind of run it was; all are false in most runs, and in older records.
        struct ModeInfo {
            /// The load is long to see whether all stays as it is (`--soak`).
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub soak: bool;
            /// It compared two targets: machine 0 is side A, machine 1 is side B.
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub duel: bool;
            /// Each request asks the target to close its connection (`keep_alive: false`).
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub no_keep_alive: bool;
        }
        flat tables
        /// What intervals and events refer to by its index.
        struct TablesInfo {
            /// What was read beside the run, by the `monitor` of events.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub monitors: Vec<MonitorInfo>;
            /// What was compared with the target's own knowledge, by the `audit` of events.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub audits: Vec<AuditInfo>;
            /// By the `step` of intervals and events.
            pub steps: Vec<StepInfo>;
            /// The names of the loads that go on side by side; empty where there is only one.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub loads: Vec<String>;
            /// The names of the sessions; empty where there is only one, and in older records.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub sessions: Vec<String>;
            /// The networks that users of a session have.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub networks: Vec<NetworkInfo>;
            /// By the `phase` of intervals and events.
            pub phases: Vec<PhaseInfo>;
            pub thresholds: Vec<ThresholdInfo>;
        }
        /// The most users that the load asks for at one time.
        pub users_planned: u64;
        /// How late what was due might be done so that wakings were shared; 0 in older records.
        pub precision_ns: u64;
        /// Service times are known: those of lines that have none are those of `latency`.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub service_times: bool;
        pub interrupted: bool;
        /// Lines that could not be written.
        pub lines_lost: u64;
        flat sources
        /// What the run was made of.
        struct SourcesInfo {
            /// The scenario and the files that it names; those of older records are not known.
            pub files: Vec<FileInfo>;
            /// What else the run was made of; absent in older records, which cannot be repeated.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub bundle: Option<BundleInfo>;
            /// The id of the run that this one repeats.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rerun_of: Option<String>;
        }
        flat end
        /// How the run ended; absent until then.
        struct EndInfo {
            /// Absent in records of older versions, too.
            pub totals: Option<Totals>;
            pub outcome: Option<Outcome>;
        }
    }
}

/// That of this version, where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format(pub u32);

impl Default for Format {
    fn default() -> Format {
        Format(FORMAT)
    }
}

fn is_zero(nanos: &u64) -> bool {
    *nanos == 0
}

impl RunInfo {
    /// A run that begins at `started` (since the Unix epoch).
    pub fn new(name: impl Into<String>, started: Duration) -> RunInfo {
        let time = TimeInfo { started: timestamp(started), ..TimeInfo::default() };
        RunInfo { name: name.into(), time, ..RunInfo::default() }
    }

    /// The name of a step, also of one that this file does not know.
    pub fn step_name(&self, step: u16) -> String {
        match self.tables.steps.get(usize::from(step)) {
            Some(info) => info.name.clone(),
            None => format!("step {step}"),
        }
    }
}

impl BuildInfo {
    /// As `throng -V` names it: `0.1.0 (108dfbd41)`.
    pub fn text(&self) -> String {
        match self.commit.as_str() {
            "" => self.version.clone(),
            commit => format!("{} ({commit})", self.version),
        }
    }
}

/// One of several machines of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineInfo {
    pub name: String,
    /// What the others do not have: by what was told of one of them.
    pub host: HostFacts,
    pub shards: u64,
    /// Its part of the load: of every `of` events the `width` that follow the first `first`.
    pub first: u64,
    pub width: u64,
    pub of: u64,
    /// What was added to its times so that they count from the start of the run.
    pub offset_ns: i64,
    /// What its agent is called; of a run that was merged, what that run was.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// An audit; named by its index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditInfo {
    pub name: String,
    /// Of an audit of presence: the time that a view may take, and its views.
    pub within_ns: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<String>,
    /// Of an audit of books: the step that they are compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

/// A source of series; named by its index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitorInfo {
    pub name: String,
    pub url: String,
    pub every_ns: u64,
    /// Which of several machines asked it, by its index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepInfo {
    pub name: String,
    pub kind: StepKind,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Of a trend: what its values are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<TrendUnit>,
}

/// What is between the users of a session and their targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkInfo {
    pub session: String,
    /// `delay 50ms..200ms, loss 0.5%, rate 1Mbit/s`
    pub network: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseInfo {
    pub name: String,
    /// Among the loads of the run.
    #[serde(default)]
    pub load: u16,
    /// False keeps the phase out of the summary and the thresholds.
    pub measured: bool,
    /// Absent when the phase lasts until its work is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_ns: Option<u64>,
    /// The users who shall be there at its end; absent when they come as starts are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_planned: Option<u64>,
    /// Absent if users do not start in steps, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stairs: Option<Stairs>,
}

/// Users that start in steps: `size` at once, and again after each `every_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stairs {
    /// Users before the first step.
    pub from: u64,
    pub size: u64,
    pub every_ns: u64,
}

/// A file that the scenario names, as it was when the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileInfo {
    /// `scenario`, `include`, `protocol`, `data`, `body`, `load`, `certificate`, `key`; empty in
    /// older records.
    pub role: String,
    /// Empty for the scenario of a command line.
    pub path: String,
    /// Where its copy is in the run directory; absent where there is none.
    pub copy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_copy: Option<NoCopy>,
    pub bytes: u64,
    /// Of what was read; absent for files that could not be.
    pub sha256: Option<String>,
    /// Of the scenario as it is recorded, which is not as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_sha256: Option<String>,
}

/// Why a file has no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoCopy {
    /// What it has stands in the recorded scenario.
    Merged,
    /// It is a key, or there are secrets in it.
    Secret,
    /// More than is copied.
    Large,
    Unreadable,
}

/// What a run is made of beside its files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BundleInfo {
    /// What `--set` gave, secrets masked.
    pub set: BTreeMap<String, String>,
    pub changed: ChangedInfo,
    pub environment: Vec<VariableInfo>,
    /// Secrets are masked in the recorded scenario.
    pub masked: bool,
    /// The options of a search for the capacity, which sets the load in place of the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<serde_json::Value>,
}

/// What the command has changed of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangedInfo {
    pub users: Option<u64>,
    pub time_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak_ns: Option<u64>,
    pub rate: Option<f64>,
    pub precision_ns: Option<u64>,
}

/// A variable of the environment that the scenario reads. One that is not secret and has no digest
/// was not set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VariableInfo {
    pub name: String,
    pub secret: bool,
    /// Of its value.
    pub sha256: Option<String>,
}

/// What the record of a run must come to: by this a reader knows whether it is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// The number of the last line of each file.
    pub intervals: u64,
    pub events: u64,
    /// Of all rows of all intervals.
    pub count: u64,
    pub ok: u64,
    pub failed: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl Totals {
    pub(crate) fn interval(&mut self, interval: &Interval) {
        for step in &interval.steps {
            self.count += step.count;
            self.ok += step.ok;
            self.failed += step.errors.iter().map(|(_, count)| count).sum::<u64>();
        }
        self.bytes_in += interval.traffic.bytes_in;
        self.bytes_out += interval.traffic.bytes_out;
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub exit_code: u8,
    /// Why it is not 0, one sentence each.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// A threshold with all that is needed to judge it again, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThresholdInfo {
    #[serde(flatten)]
    pub threshold: Threshold,
    /// Absent until the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

impl From<&Threshold> for ThresholdInfo {
    fn from(threshold: &Threshold) -> ThresholdInfo {
        ThresholdInfo { threshold: threshold.clone(), verdict: None }
    }
}

/// A time since the Unix epoch as RFC 3339, UTC, to the millisecond.
pub fn timestamp(wall: Duration) -> String {
    instant(wall).strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// How many runs of one name may begin in the same second.
const COLLISIONS_MAX: u32 = 10_000;
/// Of the name of a run directory.
const SLUG_CHARS_MAX: usize = 48;

/// Makes a new directory such as `20261121-120301-quick-check` in `parent`, by the time in UTC
/// and the name of the scenario. `parent` is made when it is not there; a number is appended
/// when the name is taken.
pub fn create_directory(parent: &Path, started: Duration, name: &str) -> io::Result<PathBuf> {
    std::fs::create_dir_all(parent)?;
    let base = match slug(name) {
        slug if slug.is_empty() => stamp(started),
        slug => format!("{}-{slug}", stamp(started)),
    };
    for number in 1..=COLLISIONS_MAX {
        let path = match number {
            1 => parent.join(&base),
            _ => parent.join(format!("{base}-{number}")),
        };
        match std::fs::DirBuilder::new().private().create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| path),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

fn stamp(wall: Duration) -> String {
    instant(wall).strftime("%Y%m%d-%H%M%S").to_string()
}

fn instant(wall: Duration) -> jiff::Timestamp {
    let seconds = i64::try_from(wall.as_secs()).unwrap_or(i64::MAX);
    let nanos = i32::try_from(wall.subsec_nanos()).unwrap_or(0);
    jiff::Timestamp::new(seconds, nanos).unwrap_or(jiff::Timestamp::MAX)
}

/// A name as part of a path: small letters and digits of any script, the rest a hyphen.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let short: String = slug.chars().take(SLUG_CHARS_MAX).collect();
    short.trim_end_matches('-').to_string()
}

#[cfg(test)]
mod tests {
    use throng_base::StepId;
    use throng_metrics::{Comparison, Counter, Measure, Subject};

    use super::*;

    const NOON: Duration = Duration::from_millis(1_795_262_581_042);

    #[test]
    fn directories_are_named_by_time_and_name_and_never_shared() {
        let parent = tempfile::tempdir().unwrap();
        let runs = parent.path().join("throng-runs");
        let mut names = Vec::new();
        for name in ["Quick check!", "quick-check", "../../etc", "压测 登录", "", &"x".repeat(300)]
        {
            let path = create_directory(&runs, NOON, name).unwrap();
            assert_eq!(path.parent(), Some(runs.as_path()));
            names.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
        assert_eq!(names[0], "20261121-120301-quick-check");
        assert_eq!(names[1], "20261121-120301-quick-check-2");
        assert_eq!(names[2], "20261121-120301-etc");
        assert_eq!(names[3], "20261121-120301-压测-登录");
        assert_eq!(names[4], "20261121-120301");
        assert_eq!(names[5].len(), "20261121-120301-".len() + SLUG_CHARS_MAX);
        assert_eq!(timestamp(NOON), "2026-11-21T12:03:01.042Z");
        assert_eq!(timestamp(Duration::MAX).len(), "9999-12-30T22:00:00.999Z".len());
    }

    #[test]
    fn thresholds_are_written_and_read_back() {
        let subject = Subject::Counter(Counter::ConnectionsReset);
        let (measure, comparison) = (Measure::Count, Comparison::LessOrEqual);
        let (text, phase, with_pauses) = ("connections.reset <= 5", Some(3), false);
        let value = 0.1 + 0.2;
        let threshold = Threshold {
            phase,
            with_pauses,
            ..Threshold::new(text, subject, measure, comparison, value)
        };
        let mut info = ThresholdInfo::from(&threshold);
        for verdict in [None, Some(Verdict::Met(1.5)), Some(Verdict::Unknown)] {
            info.verdict = verdict;
            let text = serde_json::to_string(&info).unwrap();
            let back: ThresholdInfo = serde_json::from_str(&text).unwrap();
            assert_eq!(back, info, "{text}");
        }
    }

    #[test]
    fn thresholds_of_the_first_format_are_read() {
        let text = r#"{"text":"http p99 < 50ms","subject":{"steps":[0,7]},
            "measure":{"quantile":0.99},"comparison":"<","value":50000000.0,
            "verdict":{"verdict":"not-met","figure":3.5}}"#;
        let info: ThresholdInfo = serde_json::from_str(text).unwrap();
        assert_eq!(info.threshold.subject, Subject::Steps(vec![StepId(0), StepId(7)]));
        assert_eq!((info.threshold.value, info.threshold.with_pauses), (50e6, false));
        assert_eq!(info.verdict, Some(Verdict::NotMet(3.5)));
    }
}
