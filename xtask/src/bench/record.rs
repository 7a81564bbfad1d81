//! What a run directory of throng tells that the bench needs; its format is described in
//! docs/run-directory.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The figures of one phase: counters of all its seconds, gauges of its last one.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// Whole seconds of the run that are in it: the first, and the one behind the last.
    pub(super) seconds: (u64, u64),
    /// Logins that succeeded, by second from the first one on.
    pub(super) logins: Vec<u64>,
    /// At the end of each second: lines of the same second are of different shards and add up.
    users_online: BTreeMap<u64, u64>,
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) lost: u64,
    pub(super) heartbeat: Histogram,
    pub(super) connect: Histogram,
    pub(super) login: Histogram,
    pub(super) broken: u64,
    /// Ended by somebody else: by the target, by a reset, by silence.
    pub(super) ended_by_others: u64,
    /// The second behind the last one in which a connection was open.
    pub(super) open_until: Option<u64>,
    pub(super) lateness: Histogram,
}

/// Times in nanoseconds, counted in buckets.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    max_ns: u64,
}

/// What steps are, by their index.
struct Kinds<'a> {
    steps: &'a [Value],
}

/// The phases with these names; those that have one of them for their first word count to it,
/// unless they are named themselves. One that never began is empty.
pub(super) fn phases<const N: usize>(
    folder: &Path,
    names: [&str; N],
) -> Result<[Phase; N], String> {
    let run = read_run(folder)?;
    let list = |name: &str| run.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let kinds = Kinds { steps: list("steps") };
    let mut phases = names.map(|_| Phase::default());
    for line in read(folder, "intervals.ndjson")?.lines() {
        // A damaged line is one second less; the run itself says that its record is not whole.
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let index = number(&line, "/phase") as usize;
        let name = list("phases").get(index).and_then(|phase| phase.get("name")?.as_str());
        if let Some(place) = name.and_then(|name| place(&names, name)) {
            phases[place].add(&line, &kinds);
        }
    }
    Ok(phases)
}

fn place(names: &[&str], name: &str) -> Option<usize> {
    let is = |wanted: &str| names.iter().position(|name| *name == wanted);
    is(name).or_else(|| is(name.split(' ').next()?))
}

/// A second of a step.
#[derive(Debug, Default)]
pub(super) struct Second {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) latency: Histogram,
}

/// What the step with this name did in each second of the run in which it did anything.
pub(super) fn seconds(folder: &Path, step: &str) -> Result<BTreeMap<u64, Second>, String> {
    let run = read_run(folder)?;
    let name = |step: &Value| step.get("name").and_then(Value::as_str).map(str::to_string);
    let index = rows(&run, "steps").position(|found| name(found).as_deref() == Some(step));
    let index = index.ok_or_else(|| format!("the record has no step `{step}`"))? as u64;
    let mut seconds: BTreeMap<u64, Second> = BTreeMap::new();
    for line in read(folder, "intervals.ndjson")?.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        for row in rows(&line, "steps").filter(|row| number(row, "/step") == index) {
            let second = seconds.entry(number(&line, "/second")).or_default();
            let ok = number(row, "/ok");
            second.ok += ok;
            second.failed += number(row, "/count").saturating_sub(ok);
            second.latency.add(row.get("latency"));
        }
    }
    Ok(seconds)
}

fn read(folder: &Path, name: &str) -> Result<String, String> {
    let file = folder.join(name);
    fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
}

fn read_run(folder: &Path) -> Result<Value, String> {
    serde_json::from_str(&read(folder, "run.json")?)
        .map_err(|error| format!("run.json is no JSON: {error}"))
}

impl Phase {
    fn add(&mut self, line: &Value, kinds: &Kinds<'_>) {
        let second = number(line, "/second");
        if self.seconds.1 == 0 {
            self.seconds.0 = second;
        }
        self.seconds.1 = self.seconds.1.max(second + 1);
        let place = second.saturating_sub(self.seconds.0) as usize;
        self.logins.resize(self.logins.len().max(place + 1), 0);
        self.logins[place] += logins(line, kinds);
        *self.users_online.entry(second).or_default() += number(line, "/gauges/users_online");
        if number(line, "/gauges/connections_open") > 0 {
            self.open_until = Some(second + 1);
        }
        self.sent += number(line, "/heartbeats/sent");
        self.answered += number(line, "/heartbeats/answered");
        self.lost += number(line, "/heartbeats/lost");
        self.broken += number(line, "/lifecycle/broken");
        self.ended_by_others += ["closed_by_target", "reset", "timed_out"]
            .iter()
            .map(|how| number(line, &format!("/connections/{how}")))
            .sum::<u64>();
        for step in rows(line, "steps") {
            if kinds.of(step) == Some("heartbeat") {
                self.heartbeat.add(step.get("latency"));
            }
        }
        for (name, histogram) in [("connect", &mut self.connect), ("login", &mut self.login)] {
            histogram.add(stage(line, name).and_then(|stage| stage.get("latency")));
        }
        self.lateness.add(line.get("lateness"));
    }

    /// The fewest who were online from when all were there; or the most, if they never were.
    pub(super) fn online_min_after(&self, all: u64) -> Option<u64> {
        let mut full = self.users_online.values().skip_while(|online| **online < all).peekable();
        match full.peek() {
            Some(_) => full.min().copied(),
            None => self.users_online.values().max().copied(),
        }
    }
}

impl Kinds<'_> {
    fn of(&self, step: &Value) -> Option<&str> {
        self.steps.get(number(step, "/step") as usize)?.get("kind")?.as_str()
    }
}

/// By the stage of that name, or by the requests where there is none.
fn logins(line: &Value, kinds: &Kinds<'_>) -> u64 {
    match stage(line, "login") {
        Some(stage) => number(stage, "/ok"),
        None => rows(line, "steps")
            .filter(|step| kinds.of(step) == Some("request"))
            .map(|step| number(step, "/ok"))
            .sum(),
    }
}

fn rows<'a>(line: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    line.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn stage<'a>(line: &'a Value, name: &str) -> Option<&'a Value> {
    rows(line, "stages").find(|stage| stage.get("stage").and_then(Value::as_str) == Some(name))
}

/// A number that is missing is none: fields that are zero may be left out.
fn number(value: &Value, place: &str) -> u64 {
    value.pointer(place).and_then(Value::as_u64).unwrap_or(0)
}

impl Histogram {
    /// Adds what stands there as `[sum, min, max, step, count, …]`.
    fn add(&mut self, written: Option<&Value>) {
        let numbers = written.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some((head, pairs)) = numbers.split_at_checked(3) else { return };
        self.max_ns = self.max_ns.max(head[2].as_u64().unwrap_or(0));
        let mut bucket = 0;
        for pair in pairs.chunks_exact(2) {
            bucket += pair[0].as_u64().unwrap_or(0) as usize;
            if bucket > BUCKET_MAX {
                return;
            }
            self.buckets.resize(self.buckets.len().max(bucket + 1), 0);
            self.buckets[bucket] += pair[1].as_u64().unwrap_or(0);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The middle of the bucket in which the value of this rank lies.
    pub(super) fn ms_at(&self, share: f64) -> Option<f64> {
        let rank = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(middle_ns(bucket).min(self.max_ns as f64) / 1e6)
    }

    /// p50, p99 and the largest, in words.
    pub(super) fn times(&self) -> Option<String> {
        let (p50, p99) = (self.ms_at(0.5)?, self.ms_at(0.99)?);
        Some(format!("{p50:.2} / {p99:.2} / {:.2} ms", self.max_ms()?))
    }

    pub(super) fn max_ms(&self) -> Option<f64> {
        (self.count() > 0).then_some(self.max_ns as f64 / 1e6)
    }
}

const BUCKET_MAX: usize = 2623;

fn middle_ns(bucket: usize) -> f64 {
    if bucket < 64 {
        return bucket as f64;
    }
    let octave = (bucket / 64 - 1) as i32;
    (64.0 + (bucket % 64) as f64 + 0.5) * f64::from(2).powi(octave)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_count_to_their_own_name_or_to_their_first_word() {
        let names = ["fill", "fill 2", "hold"];
        let found =
            ["fill", "fill 2", "fill 3", "hold", "filling", "2 fill"].map(|it| place(&names, it));
        assert_eq!(found, [Some(0), Some(1), Some(0), Some(2), None, None]);
    }

    #[test]
    fn a_record_is_read() {
        let folder = std::env::temp_dir().join(format!("xtask-record-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let run = r#"{"steps":[{"kind":"connect"},{"kind":"heartbeat","name":"beat"}],
            "phases":[{"name":"fill"},{"name":"hold"},{"name":"drain"}]}"#;
        let lines = r#"{"second":0,"phase":0,"stages":[{"stage":"login","ok":7,"latency":[]}]}
{"second":1,"phase":0,"stages":[{"stage":"login","ok":3,"latency":[]}],"gauges":{"users_online":10}}
{"second":1,"phase":1,"gauges":{"users_online":4},"heartbeats":{"sent":4,"answered":3}}
{"second":1,"phase":1,"gauges":{"users_online":6}}
{"second":2,"phase":1,"gauges":{"users_online":9},"heartbeats":{"sent":4,"lost":1},
{"second":3,"phase":1,"gauges":{"users_online":8,"connections_open":8},"heartbeats":{"lost":1},"connections":{"reset":1},"steps":[{"step":1,"count":5,"ok":3,"latency":[60,10,40,10,3,30,1]}]}
"#;
        fs::write(folder.join("run.json"), run).unwrap();
        fs::write(folder.join("intervals.ndjson"), lines).unwrap();
        let [fill, hold, drain] = phases(&folder, ["fill", "hold", "drain"]).unwrap();
        let seconds = seconds(&folder, "beat").unwrap();
        let unknown = super::seconds(&folder, "other").unwrap_err();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(unknown, "the record has no step `other`");
        let told: Vec<(u64, u64, u64, u64)> =
            seconds.iter().map(|(at, s)| (*at, s.ok, s.failed, s.latency.count())).collect();
        assert_eq!(told, [(3, 3, 2, 4)]);
        assert_eq!((fill.logins.as_slice(), fill.seconds), (&[7, 3][..], (0, 2)));
        assert_eq!((hold.sent, hold.answered, hold.lost), (4, 3, 1));
        assert_eq!((hold.online_min_after(10), hold.ended_by_others), (Some(8), 1));
        assert_eq!((hold.online_min_after(11), drain.online_min_after(1)), (Some(10), None));
        assert_eq!((hold.seconds, hold.open_until), ((1, 4), Some(4)));
        assert_eq!(hold.heartbeat.ms_at(0.5), Some(10.0 / 1e6));
        assert_eq!((hold.heartbeat.count(), hold.heartbeat.max_ms()), (4, Some(40.0 / 1e6)));
        assert_eq!((drain.seconds, drain.heartbeat.ms_at(0.99)), ((0, 0), None));
    }

    #[test]
    fn histograms_are_as_they_are_described() {
        assert_eq!((middle_ns(63), middle_ns(64), middle_ns(128)), (63.0, 64.5, 129.0));
        let mut broken = Histogram::default();
        broken.add(Some(&serde_json::json!([1, 2])));
        broken.add(Some(&serde_json::json!([1, 2, 3, 99_999_999, 1])));
        broken.add(Some(&serde_json::json!(["x", null, 3, 1])));
        assert_eq!((broken.count(), broken.ms_at(0.5)), (0, None));
    }
}
