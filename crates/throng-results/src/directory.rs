//! The contents of `run.json`, and the names of run directories. The format is documented in
//! `docs/run-directory.md`; names and units here are those of the format.

pub(crate) mod spelling;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::LoadPart;
use throng_base::private::Private as _;
use throng_host::HostFacts;
pub use throng_metrics::StepInfo;
use throng_metrics::{Interval, Threshold, Verdict, flat, plain};

/// The major version of the format. A reader rejects newer versions; new fields do not change it.
/// Each version added lines that older readers would misinterpret. 2: steps that are not attempts
/// (transactions, rendezvous), and runs stopped by a rule. 3: retries, indeterminate thresholds,
/// numbered lines, interrupted attempts. 4: lines of several machines. 5: segments of long runs.
pub const FORMAT: u32 = 5;
/// The oldest supported format.
pub const FORMAT_MIN: u32 = 1;

pub const SCENARIO_FILE: &str = "scenario.yaml";
/// Maximum size of a file that is read as a whole: `run.json`, `scenario.yaml`.
pub(crate) const FILE_BYTES_MAX: usize = 256 << 20;

/// Where run directories are created unless the user names one, relative to the working directory.
pub const RECORDS: &str = "throng-runs";
/// Length of the start time at the beginning of a directory's name: `20261121-120301`.
pub(crate) const STAMP_BYTES: usize = 15;

pub const RUN_FILE: &str = "run.json";
pub const INTERVALS_FILE: &str = "intervals.ndjson";
pub const EVENTS_FILE: &str = "events.ndjson";
/// The field with the number of a line.
pub(crate) const SEQ: &str = "seq";
/// The field with the machine of a line.
pub(crate) const MACHINE: &str = "machine";

/// Creates a new file of a run directory for appending. Files and directories are accessible only
/// to their owner, because they contain sent and received data.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).private().open(path)
}

flat! {
    plain
    /// Identity, time, host and targets of a run, written at its start and its end. The fields of
    /// nested groups are fields of the file, in this order.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct RunInfo {
        pub format: Format;
        /// Unique; `run.id` in expressions.
        pub id: String;
        flat build
        /// The binary that generated the load.
        struct BuildInfo {
            pub version: String = "throng_version";
            /// Commit of the sources, as in `--version`; empty if unknown, and in older run
            /// directories.
            #[serde(skip_serializing_if = "String::is_empty")]
            pub commit: String = "throng_commit";
        }
        pub name: String;
        /// By name; includes the labels of the command line.
        pub labels: BTreeMap<String, String>;
        pub command: Vec<String>;
        flat time
        /// Start and end of the run.
        struct TimeInfo {
            /// RFC 3339, UTC; see [`timestamp`].
            pub started: String;
            /// The zero of all times in the run directory, in nanoseconds since the Unix epoch; 0
            /// in older ones.
            #[serde(skip_serializing_if = "is_zero")]
            pub zero_unix_ns: u64;
            /// Absent during the run, and if the run was killed.
            pub ended: Option<String>;
        }
        pub seed: u64;
        /// The command line's changes of the scenario's load, in words.
        pub changes: Vec<throng_base::Said>;
        flat generator
        /// The generator.
        struct GeneratorInfo {
            pub host: HostFacts;
            pub shards: u64;
            /// The machines of the run, by the `machine` of each line; empty for a single machine.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub machines: Vec<MachineInfo>;
        }
        flat targets
        /// The targets of the load.
        struct TargetsInfo {
            pub urls: Vec<String> = "targets";
            /// By target: the first target of the same service. Empty if each is a separate
            /// service, and in older run directories.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub services: Vec<u16>;
            /// A target is on the same host as a generator, so they compete for its processors.
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub same_host: bool;
        }
        flat mode
        /// The kind of the run; all are false in most runs and in older run directories.
        struct ModeInfo {
            /// The load is long to test stability (`--soak`).
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub soak: bool;
            /// The run compared two targets: machine 0 is side A, machine 1 is side B.
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub duel: bool;
            /// Each request asks the target to close its connection (`keep_alive: false`).
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub no_keep_alive: bool;
        }
        flat tables
        /// Tables that intervals and events refer to by index.
        struct TablesInfo {
            /// By the `monitor` of events.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub monitors: Vec<MonitorInfo>;
            /// By the `audit` of events.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub audits: Vec<AuditInfo>;
            /// By the `step` of intervals and events.
            pub steps: Vec<StepInfo>;
            /// The names of parallel loads; empty for a single load.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub loads: Vec<String>;
            /// The names of the sessions; empty for a single one, and in older run directories.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub sessions: Vec<String>;
            /// The simulated networks of sessions.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub networks: Vec<NetworkInfo>;
            /// By the `phase` of intervals and events.
            pub phases: Vec<PhaseInfo>;
            pub thresholds: Vec<ThresholdInfo>;
        }
        /// Maximum number of concurrent users in the load.
        pub users_planned: u64;
        /// Maximum delay of due work to share wake-ups; 0 in older run directories.
        pub precision_ns: u64;
        /// Service times are recorded. Lines without them have the same service times as `latency`.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub service_times: bool;
        pub interrupted: bool;
        /// Lines that could not be written.
        pub lines_lost: u64;
        flat sources
        /// The inputs of the run.
        struct SourcesInfo {
            /// The scenario and the files that it names; unknown in older run directories.
            pub files: Vec<FileInfo>;
            /// Other inputs; absent in older run directories, which cannot be rerun.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub bundle: Option<BundleInfo>;
            /// The ID of the run that this one reruns.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rerun_of: Option<String>;
        }
        flat end
        /// The end of the run; absent until then.
        struct EndInfo {
            /// Also absent in older run directories.
            pub totals: Option<Totals>;
            pub outcome: Option<Outcome>;
        }
    }
}

/// By default, the current version.
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
    /// A run that starts at `started` (since the Unix epoch).
    pub fn new(name: impl Into<String>, started: Duration) -> RunInfo {
        let time = TimeInfo { started: timestamp(started), ..TimeInfo::default() };
        RunInfo { name: name.into(), time, ..RunInfo::default() }
    }

    /// The name of a step, or a placeholder if it is unknown.
    pub fn step_name(&self, step: u16) -> String {
        match self.tables.steps.get(usize::from(step)) {
            Some(info) => info.name.clone(),
            None => format!("step {step}"),
        }
    }
}

impl BuildInfo {
    /// As in `throng -V`: `0.1.0 (108dfbd41)`.
    pub fn text(&self) -> String {
        match self.commit.as_str() {
            "" => self.version.clone(),
            commit => format!("{} ({commit})", self.version),
        }
    }
}

/// A machine of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineInfo {
    pub name: String,
    /// What differs from the other machines.
    pub host: HostFacts,
    pub shards: u64,
    #[serde(flatten)]
    pub part: LoadPart,
    /// Added to its times, so that they count from the start of the run.
    pub offset_ns: i64,
    /// Labels of its agent or, in a merged run, of the original run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// An audit, referred to by its index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditInfo {
    pub name: String,
    /// For an audit of presence: the time in which a view must show a change, and the views.
    pub within_ns: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<String>,
    /// For an audit of counts: the compared step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

/// A monitor, referred to by its index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitorInfo {
    pub name: String,
    pub url: String,
    pub every_ns: u64,
    /// Index of the machine that read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<u16>,
}

/// A simulated network between the users of a session and their targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkInfo {
    pub session: String,
    /// `delay 50ms..200ms, loss 0.5%, rate 1Mbit/s`
    pub network: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseInfo {
    pub name: String,
    /// Index of its load.
    #[serde(default)]
    pub load: u16,
    /// If false, the phase is excluded from the summary and the thresholds.
    pub measured: bool,
    /// Absent if the phase lasts until its work is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_ns: Option<u64>,
    /// Users at its end; absent if users start as needed for scheduled starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_planned: Option<u64>,
    /// Absent if users do not start in steps, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stairs: Option<Stairs>,
}

/// Users start in steps: `size` at once, and again after each `every_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stairs {
    /// Users before the first step.
    pub from: u64,
    pub size: u64,
    pub every_ns: u64,
}

/// An input file as it was at the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileInfo {
    /// `scenario`, `include`, `protocol`, `data`, `body`, `load`, `certificate`, `key`; empty in
    /// older run directories.
    pub role: String,
    /// Empty for the scenario of a command line.
    pub path: String,
    /// Path of its copy in the run directory, if there is one.
    pub copy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_copy: Option<NoCopy>,
    pub bytes: u64,
    /// Digest of the file; absent if it could not be read.
    pub sha256: Option<String>,
    /// Digest of the recorded scenario, which differs from the original file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_sha256: Option<String>,
}

/// The reason that a file has no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoCopy {
    /// The recorded scenario contains it.
    Merged,
    /// It is a key, or contains secrets.
    Secret,
    /// It exceeds the size limit.
    Large,
    Unreadable,
}

/// The inputs of a run in addition to its files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BundleInfo {
    /// Values of `--set`, with secrets masked.
    pub set: BTreeMap<String, String>,
    pub changed: ChangedInfo,
    pub environment: Vec<VariableInfo>,
    /// Secrets are masked in the recorded scenario.
    pub masked: bool,
    /// The options of a capacity search, which replaces the scenario's load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<serde_json::Value>,
}

/// The command line's changes of the load.
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

/// An environment variable that the scenario reads. It was not set if it is not secret and has no
/// digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VariableInfo {
    pub name: String,
    pub secret: bool,
    /// Digest of its value.
    pub sha256: Option<String>,
}

/// Totals of a complete run; they show whether lines are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// The last line number of each file.
    pub intervals: u64,
    pub events: u64,
    /// Sum over all rows of all intervals.
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
    /// Reasons for an exit code other than 0, one sentence each.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// A threshold with everything needed to evaluate it again, and its result.
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

/// A time since the Unix epoch as RFC 3339 in UTC, in milliseconds.
pub fn timestamp(wall: Duration) -> String {
    instant(wall).strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Maximum number of runs with the same name and start second.
const COLLISIONS_MAX: u32 = 10_000;
/// Maximum length of the name in a directory's name.
const SLUG_CHARS_MAX: usize = 48;

/// Creates a directory such as `20261121-120301-quick-check` in `parent`, from the time in UTC and
/// the name of the scenario. Creates `parent` if it does not exist, and appends a number if the
/// name is taken.
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

/// A name as part of a path: lowercase letters and digits of any script; other characters become
/// hyphens.
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
    fn directories_are_named_by_time_and_name_and_are_unique() {
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
    fn thresholds_survive_serialization() {
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
