//! The cost of a user of a scenario, measured in the record of an earlier run.

use std::path::PathBuf;

use throng_base::Diagnostic;
use throng_metrics::{Interval, StepKind};
use throng_results::Run;

/// Fewer users show nothing: other costs of the process would dominate.
pub const USERS_MIN: u64 = 500;
const REQUESTS_MIN: u64 = 1_000;
const REQUESTS_PER_S_MIN: f64 = 100.0;
/// Maximum number of seconds of a record that are kept in memory: two days.
const SAMPLES_MAX: usize = 200_000;
/// A second that opens at most this part of the highest number of connections is quiet.
const QUIET_SHARE: f64 = 0.05;
/// From this part of the users on, memory grows only with further users.
const BEGUN_SHARE: f64 = 0.1;
const HALF_SHARE: f64 = 0.5;
/// With this many users, the cost of one is known even if all start in the first second.
const AT_ONCE_MIN: u64 = 5_000;
/// At least this part of the maximum counts as all users.
const FULL_SHARE: f64 = 0.99;
/// Memory of throng without users, if the record starts too late to show it (`cargo xtask bench
/// http`: 9.8 MiB with one user).
pub(crate) const PROCESS_BYTES: u64 = 10 << 20;

/// The cost of a user, as far as the run shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub directory: PathBuf,
    pub name: String,
    /// Maximum number of concurrent users.
    pub users: u64,
    /// Memory of throng.
    pub user_bytes: Option<f64>,
    /// CPU of a connection with its upgrade and login.
    pub connect_ns: Option<f64>,
    /// CPU of a request, message or heartbeat with its response.
    pub request_ns: Option<f64>,
    /// The same in its cheapest and most expensive seconds, without a tenth of them at each end.
    pub request_range_ns: Option<(f64, f64)>,
    /// Bytes received and sent per request, message or heartbeat.
    pub request_bytes: Option<(f64, f64)>,
    /// The maximum in one second.
    pub requests_per_s: f64,
    pub answer_seconds: Option<f64>,
    /// Maximum number of successful responses in a second without delayed starts.
    pub sustained_per_s: u64,
}

pub(crate) fn measured(run: &Run) -> Result<Measured, Box<Diagnostic>> {
    let samples: Vec<Sample> =
        run.intervals()?.take(SAMPLES_MAX).map(|one| Sample::of(&one, run)).collect();
    let summary = run.summary()?;
    let latency = &summary.steps.total.latency;
    let mut measured = Measured {
        directory: run.directory.clone(),
        name: run.info.name.clone(),
        users: samples.iter().map(|one| one.users).max().unwrap_or(0),
        user_bytes: user_bytes(&samples),
        requests_per_s: samples.iter().map(|one| one.requests).max().unwrap_or(0) as f64,
        answer_seconds: (!latency.is_empty()).then_some(latency.mean_ns / 1e9),
        sustained_per_s: summary.generator.sustained_per_s,
        ..Measured::default()
    };
    (measured.connect_ns, measured.request_ns) = times(&samples);
    measured.request_range_ns = measured.request_ns.and_then(|_| request_range(&samples));
    measured.request_bytes = request_bytes(&samples);
    Ok(measured)
}

/// The figures in one line of the record.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    users: u64,
    memory_bytes: u64,
    /// The part that throng attributes to users and their connections.
    counted_bytes: u64,
    cpu_ns: u64,
    opened: u64,
    closed: u64,
    /// Responses, failures, heartbeats and unsolicited messages.
    requests: u64,
    heartbeats: u64,
    bytes_in: u64,
    bytes_out: u64,
    is_long_lived: bool,
}

impl Sample {
    fn of(interval: &Interval, run: &Run) -> Sample {
        let kind = |step: u16| run.info.tables.steps.get(usize::from(step)).map(|info| info.kind);
        let holds = [StepKind::Connect, StepKind::Stay];
        let asks = |step: u16| kind(step).is_some_and(|it| it.is_attempt() && !holds.contains(&it));
        let steps = interval.steps.iter().filter(|step| asks(step.step));
        let resources = interval.generator.resources.clone().unwrap_or_default();
        let (gauges, ended) = (&interval.gauges, &interval.connections.counts);
        let closed = [ended.closed_by_us, ended.closed_by_target, ended.reset, ended.reset_by_us];
        Sample {
            users: gauges.users_present.max(gauges.users_online),
            memory_bytes: resources.memory_bytes,
            counted_bytes: resources.users_bytes.saturating_add(resources.connections_bytes),
            cpu_ns: resources.cpu.time_ns(),
            opened: ended.opened,
            closed: closed.into_iter().fold(ended.vanished, u64::saturating_add),
            requests: steps
                .map(|step| step.count)
                .fold(interval.traffic.messages.pushes, u64::saturating_add),
            heartbeats: interval.heartbeats.sent,
            bytes_in: interval.traffic.bytes_in,
            bytes_out: interval.traffic.bytes_out,
            is_long_lived: interval.lifecycle.begun > 0,
        }
    }
}

/// Memory per user: that with all users minus that with some of them, divided by the number of the
/// others, and at least what throng attributes to a user. Before the first users start, the process
/// has not touched all of its memory; while they connect, it reuses memory of its start.
fn user_bytes(samples: &[Sample]) -> Option<f64> {
    let told = || samples.iter().filter(|one| one.memory_bytes > 0);
    let most = told().map(|one| one.users).max()?;
    let reaches = |one: &Sample, share: f64| one.users as f64 >= most as f64 * share;
    let begun = told().find(|one| reaches(one, BEGUN_SHARE))?;
    let (users, bytes) = match reaches(begun, HALF_SHARE) {
        false => (begun.users, begun.memory_bytes),
        // All users started at once: the fixed part of the memory must not distort the result.
        true if most >= AT_ONCE_MIN => (0, PROCESS_BYTES),
        true => return None,
    };
    // Connecting users need more memory, in both samples; it is soon returned.
    let comers = told().rfind(|one| reaches(one, FULL_SHARE) && one.opened > 0);
    let stayers = told().filter(|one| reaches(one, FULL_SHARE)).min_by_key(|one| one.memory_bytes);
    let of = |one: &Sample| {
        let more = one.users.checked_sub(users).filter(|more| *more >= USERS_MIN)?;
        Some(one.memory_bytes.checked_sub(bytes)? as f64 / more as f64)
    };
    let counted = stayers.map(|one| one.counted_bytes as f64 / one.users as f64);
    let figures = [comers.and_then(of), stayers.and_then(of), counted];
    figures.into_iter().flatten().reduce(f64::max)
}

/// CPU per request by seconds: from the cheapest tenth of the seconds to the most expensive tenth.
/// Fewer seconds than these show nothing.
fn request_range(samples: &[Sample]) -> Option<(f64, f64)> {
    const SECONDS_MIN: usize = 10;
    let most = samples.iter().map(|one| one.requests).max()?;
    let opened = samples.iter().map(|one| one.opened).max()?;
    let is_full = |one: &&Sample| {
        let is_quiet =
            one.opened as f64 <= opened as f64 * QUIET_SHARE || one.opened >= one.requests;
        one.cpu_ns > 0 && is_quiet && one.requests as f64 >= most as f64 * HALF_SHARE
    };
    let seconds = samples.iter().filter(is_full);
    let mut costs: Vec<f64> = seconds.map(|one| one.cpu_ns as f64 / one.requests as f64).collect();
    costs.sort_unstable_by(f64::total_cmp);
    let tenth = costs.len() / 10;
    (costs.len() >= SECONDS_MIN).then(|| (costs[tenth], costs[costs.len() - 1 - tenth]))
}

fn request_bytes(samples: &[Sample]) -> Option<(f64, f64)> {
    let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).fold(0, u64::saturating_add) as f64;
    let requests = sum(|one| one.requests);
    let of = |bytes: f64| bytes / requests;
    (requests >= REQUESTS_MIN as f64)
        .then(|| (of(sum(|one| one.bytes_in)), of(sum(|one| one.bytes_out))))
}

/// CPU of opening a connection, and of a request, in nanoseconds.
fn times(samples: &[Sample]) -> (Option<f64>, Option<f64>) {
    let busiest = samples.iter().map(|one| one.opened.max(one.closed)).max().unwrap_or(0);
    let few = (busiest as f64 * QUIET_SHARE) as u64;
    let told = || samples.iter().filter(|one| one.cpu_ns > 0);
    let sum = |lines: Vec<&Sample>, of: fn(&Sample) -> u64| {
        lines.into_iter().map(of).fold(0, u64::saturating_add) as f64
    };
    let opening = || told().filter(|one| one.opened > few).collect::<Vec<_>>();
    let quiet = told().filter(|one| one.opened <= few && one.closed <= few && one.requests > 0);
    let mut quiet: Vec<&Sample> = quiet.collect();
    // If every request opens a connection, there is no quiet second.
    let mixed = quiet.is_empty();
    if mixed {
        quiet = told().collect();
    }
    let (seconds, requests) = (quiet.len() as f64, sum(quiet.clone(), |one| one.requests));
    let enough = requests >= REQUESTS_MIN as f64 && requests / seconds >= REQUESTS_PER_S_MIN;
    let request_ns = enough.then(|| sum(quiet, |one| one.cpu_ns) / requests);
    let opened = sum(opening(), |one| one.opened);
    if mixed || opened < USERS_MIN as f64 {
        return (None, request_ns);
    }
    // The requests of a login are part of the cost of a connection.
    let besides =
        sum(opening(), |one| if one.is_long_lived { one.heartbeats } else { one.requests });
    let whole = sum(opening(), |one| one.cpu_ns);
    let own = (whole - besides * request_ns.unwrap_or(0.0)).max(whole / 5.0);
    (Some(own / opened), request_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10,000 users start in 5 s, stay for 30 s with a heartbeat every 10 s, and stop in 2 s.
    fn im() -> Vec<Sample> {
        let mut samples = Vec::new();
        let line = |users: u64| Sample {
            users,
            memory_bytes: 12_000_000 + users * 1_000,
            is_long_lived: true,
            ..Sample::default()
        };
        samples.push(Sample { cpu_ns: 1_000_000, ..line(0) });
        for second in 1..=5 {
            let more = Sample {
                opened: 2_000,
                requests: 2_000,
                heartbeats: 100,
                cpu_ns: 2_000 * 50_000 + 100 * 8_000,
                ..line(second * 2_000)
            };
            samples.push(Sample { memory_bytes: more.memory_bytes + 3_000_000, ..more });
        }
        let quiet = Sample {
            requests: 1_000,
            heartbeats: 1_000,
            cpu_ns: 8_000_000,
            is_long_lived: false,
            ..line(10_000)
        };
        samples.extend([quiet; 30]);
        samples.extend([Sample { closed: 5_000, cpu_ns: 90_000_000, ..line(5_000) }; 2]);
        samples
    }

    #[test]
    fn the_cost_of_a_user_is_derived_from_changes() {
        let samples = im();
        assert_eq!(user_bytes(&samples), Some(1_000.0));
        let (connect, request) = times(&samples);
        assert_eq!((connect, request), (Some(50_000.0), Some(8_000.0)));
        // A record that starts with all users online.
        let late = user_bytes(&samples[10..20]).expect("told");
        assert!((1_000.0..1_300.0).contains(&late), "{late}");
    }

    #[test]
    fn too_few_samples_give_no_cost() {
        assert_eq!(user_bytes(&[]), None);
        assert_eq!(times(&[]), (None, None));
        let few = [Sample { users: 100, memory_bytes: 20_000_000, cpu_ns: 1, ..Sample::default() }];
        assert_eq!(user_bytes(&few), None);
        assert_eq!(times(&few), (None, None));
        let wild = Sample {
            users: u64::MAX,
            memory_bytes: u64::MAX,
            cpu_ns: u64::MAX,
            opened: u64::MAX,
            closed: u64::MAX,
            requests: u64::MAX,
            heartbeats: u64::MAX,
            is_long_lived: true,
            ..Sample::default()
        };
        let _ = (user_bytes(&[few[0], wild]), times(&[few[0], wild]));
    }

    #[test]
    fn costs_vary_from_second_to_second() {
        let line = |cpu_ns: u64| Sample {
            requests: 1_000,
            cpu_ns: cpu_ns * 1_000,
            bytes_in: 200_000,
            bytes_out: 50_000,
            ..Sample::default()
        };
        let samples: Vec<Sample> = (0..20).map(|second| line(8_000 + second * 100)).collect();
        assert_eq!(request_range(&samples), Some((8_200.0, 9_700.0)));
        assert_eq!(request_range(&samples[..5]), None);
        assert_eq!(request_bytes(&samples), Some((200.0, 50.0)));
        assert_eq!(request_bytes(&samples[..0]), None);
    }

    #[test]
    fn a_connection_for_each_request_is_a_part_of_it() {
        let line = Sample {
            users: 64,
            opened: 1_000,
            closed: 1_000,
            requests: 1_000,
            cpu_ns: 60_000_000,
            ..Sample::default()
        };
        assert_eq!(times(&[line; 10]), (None, Some(60_000.0)));
    }
}
