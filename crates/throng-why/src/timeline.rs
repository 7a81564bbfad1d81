//! The seconds of a run in columns, from lines in any order. Longer runs have coarser points: there
//! are at most [`POINTS_MAX`].

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use throng_metrics::{Cause, Gauges, Histogram, Interval, Merge as _, Stage, StepInterval};

/// Two hours and a quarter in seconds; for a day, a point covers 16 s.
pub const POINTS_MAX: usize = 8_192;
/// Maximum number of points per step, to limit the size of large scenarios.
const STEP_POINTS_MAX: usize = 512;
/// Number of seconds kept open for late lines.
const OPEN_MAX: usize = 4;
/// A run directory can contain any second; no run takes more than three years.
const SECONDS_MAX: u64 = 100_000_000;
/// Too many requests.
const STATUS_LIMITED: u16 = 429;
/// Service Unavailable: the response of load balancers and nginx at a limit.
const STATUS_UNAVAILABLE: u16 = 503;

macro_rules! fold {
    ($a:ident, $b:ident, $field:ident, Sum) => {
        $a.$field + $b.$field
    };
    ($a:ident, $b:ident, $field:ident, Later) => {
        if $b.lines > 0.0 { $b.$field } else { $a.$field }
    };
    ($a:ident, $b:ident, $field:ident, Larger) => {
        $a.$field.max($b.$field)
    };
    ($a:ident, $b:ident, $field:ident, Mean $weight:ident) => {{
        let weight = $a.$weight + $b.$weight;
        match weight > 0.0 {
            true => ($a.$field * $a.$weight + $b.$field * $b.$weight) / weight,
            false => 0.0,
        }
    }};
}

macro_rules! columns {
    ($($(#[doc = $doc:literal])+ $field:ident $how:ident $($weight:ident)?;)+) => {
        /// The results of one point. Times are in nanoseconds. Unmeasured values are 0.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(from = "Vec<f64>", into = "Vec<f64>")]
        pub struct Point {
            $($(#[doc = $doc])+ pub $field: f64,)+
        }

        impl From<Point> for Vec<f64> {
            fn from(point: Point) -> Vec<f64> {
                vec![$(point.$field,)+]
            }
        }

        impl From<Vec<f64>> for Point {
            fn from(values: Vec<f64>) -> Point {
                let mut values = values.into_iter();
                Point { $($field: values.next().unwrap_or_default(),)+ }
            }
        }

        impl Point {
            fn fold(&self, later: &Point) -> Point {
                Point { $($field: fold!(self, later, $field, $how $($weight)?),)+ }
            }
        }
    };
}

columns! {
    /// Seconds with lines.
    lines Sum;
    /// Seconds in measured phases.
    measured Sum;
    /// Attempts that succeeded.
    ok Sum;
    /// Attempts that failed.
    failed Sum;
    /// Attempts that began.
    begun Sum;
    /// Attempts with a response time, and the sum of these times.
    timed Sum;
    /// Sum of the response times.
    time Sum;
    /// Median of the response times.
    p50 Mean timed;
    /// 99th percentile of the response times.
    p99 Larger;
    /// Longest response time.
    max Larger;
    /// Responses with status 429.
    limited Sum;
    /// Responses with status 503.
    unavailable Sum;
    /// Requests sent again on another connection.
    resent Sum;
    /// Tries followed by another try.
    retried Sum;
    /// Starts scheduled, in loads with a rate.
    wanted Sum;
    /// Starts that did not happen, or were dropped.
    missed Sum;
    /// Iterations that finished.
    iterations Sum;
    /// Users that the load asks for.
    users_wanted Later;
    /// Users present.
    users Later;
    /// Open connections.
    open Later;
    /// Requests without a response so far.
    in_flight Later;
    /// Starts that are due and have not begun.
    backlog Later;
    /// Connections attempted.
    attempted Sum;
    /// Part of `attempted`: by users that had lost a connection.
    reconnects Sum;
    /// Connections opened.
    opened Sum;
    /// Connections ended by the target's FIN.
    closed_by_target Sum;
    /// Connections ended by the target's RST.
    reset Sum;
    /// Connections ended by throng.
    ended_by_us Sum;
    /// Connections ended because nothing was received.
    timed_out Sum;
    /// Connects that failed.
    connect_failed Sum;
    /// Part of `connect_failed`: refused.
    refused Sum;
    /// Connects that succeeded.
    connected Sum;
    /// Median time of these.
    connect_p50 Mean connected;
    /// TLS handshakes that succeeded.
    handshakes Sum;
    /// Median time of these.
    tls_p50 Mean handshakes;
    /// Logins that succeeded.
    logins Sum;
    /// Median time of these.
    login_p50 Mean logins;
    /// 99th percentile of the generator's lateness.
    lateness Larger;
    /// Share of the time in which shards did nothing although work was due.
    lost Larger;
    /// Share of a processor that the busiest shard used.
    shard_cpu Larger;
    /// Share of the host's processors that were busy.
    host_cpu Larger;
    /// Connections that listeners of this host dropped.
    listen_dropped Sum;
    /// Retransmitted segments on sampled connections.
    retransmits Sum;
    /// Time that users paused, all together.
    paused Sum;
    /// Share of this host's table of tracked connections that was taken.
    conntrack Larger;
    /// Resident memory of the generator, in bytes.
    memory Larger;
    /// Users online.
    online Later;
}

impl Point {
    /// Connections that ended unexpectedly.
    pub fn unasked(&self) -> f64 {
        self.closed_by_target + self.reset + self.timed_out
    }

    pub fn attempts(&self) -> f64 {
        self.ok + self.failed
    }
}

/// Failures by cause: positions and counts, ascending.
pub type Failures = BTreeMap<u64, u64>;

/// The results of one step in a point: attempts, failures, and the sum of the response times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepPoint(pub f64, pub f64, pub f64);

/// A second that can still receive lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    second: u64,
    measured: bool,
    total: StepInterval,
    rest: Interval,
    gauges: Gauges,
}

/// The seconds of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timeline {
    width_s: u64,
    step_width_s: u64,
    open: VecDeque<Open>,
    points: Vec<Point>,
    /// By step, then by position.
    steps: BTreeMap<u16, BTreeMap<u64, StepPoint>>,
    failures: Vec<(Cause, Failures)>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline {
            width_s: 1,
            step_width_s: 1,
            open: VecDeque::new(),
            points: Vec::new(),
            steps: BTreeMap::new(),
            failures: Vec::new(),
        }
    }
}

impl Timeline {
    /// Adds a line. `gauges` are those of all loads and machines in its second so far; `is_attempt`
    /// tells whether a step's rows count as attempts.
    pub fn add(
        &mut self,
        line: &Interval,
        measured: bool,
        gauges: &Gauges,
        is_attempt: impl Fn(u16) -> bool,
    ) {
        if line.second >= SECONDS_MAX {
            return;
        }
        self.add_steps(line, &is_attempt);
        let total = line.sum(|step| is_attempt(step.0));
        for (cause, count) in &total.errors {
            self.fail(*cause, line.second, *count);
        }
        let mut rest = rest(line);
        if let Some(open) = self.open.iter_mut().find(|open| open.second == line.second) {
            open.measured |= measured;
            open.total.merge(&total);
            rest.shards = rest.shards.max(open.rest.shards);
            open.rest.merge_later(&rest);
            open.gauges = gauges.clone();
            return;
        }
        let gauges = gauges.clone();
        self.open.push_back(Open { second: line.second, measured, total, rest, gauges });
        while self.open.len() > OPEN_MAX {
            self.close_first();
        }
    }

    /// Closes the open seconds before another run is added.
    pub fn finish(&mut self) {
        while !self.open.is_empty() {
            self.close_first();
        }
    }

    fn close_first(&mut self) {
        let earliest = (0..self.open.len()).min_by_key(|at| self.open[*at].second);
        let Some(open) = earliest.and_then(|at| self.open.remove(at)) else { return };
        while open.second / self.width_s >= POINTS_MAX as u64 {
            self.widen();
        }
        let place = (open.second / self.width_s) as usize;
        if self.points.len() <= place {
            self.points.resize(place + 1, Point::default());
        }
        self.points[place] = self.points[place].fold(&point(&open));
    }

    fn widen(&mut self) {
        self.width_s *= 2;
        let folded = self.points.chunks(2).map(|pair| match pair {
            [one, other] => one.fold(other),
            _ => pair[0].clone(),
        });
        self.points = folded.collect();
        for (_, failures) in &mut self.failures {
            let mut wider = Failures::new();
            failures.iter().for_each(|(place, n)| *wider.entry(place / 2).or_default() += n);
            *failures = wider;
        }
    }

    fn fail(&mut self, cause: Cause, second: u64, count: u64) {
        let place = second / self.width_s;
        let row = match self.failures.iter().position(|(known, _)| *known == cause) {
            Some(row) => row,
            None => {
                self.failures.push((cause, Failures::new()));
                self.failures.len() - 1
            }
        };
        *self.failures[row].1.entry(place).or_default() += count;
    }

    fn add_steps(&mut self, line: &Interval, is_attempt: &impl Fn(u16) -> bool) {
        while line.second / self.step_width_s >= STEP_POINTS_MAX as u64 {
            self.step_width_s *= 2;
            for step in self.steps.values_mut() {
                let mut wider = BTreeMap::<u64, StepPoint>::new();
                for (place, row) in std::mem::take(step) {
                    wider.entry(place / 2).or_default().add(row);
                }
                *step = wider;
            }
        }
        let place = line.second / self.step_width_s;
        for row in line.steps.iter().filter(|row| is_attempt(row.step)) {
            let time = sum(&row.latency);
            let own = StepPoint(row.latency.count() as f64, row.failed() as f64, time);
            self.steps.entry(row.step).or_default().entry(place).or_default().add(own);
        }
    }

    /// The mean number of users in a time span, and the number that their responses and pauses add
    /// up to (Little 1961).
    pub fn users(&self, from_s: f64, to_s: f64) -> Option<(f64, f64)> {
        let width = self.width_s as f64;
        let (from, to) = ((from_s / width).ceil() as usize, (to_s / width).floor() as usize);
        let points = self.points.get(from..to.min(self.points.len()))?;
        let of = |figure: fn(&Point) -> f64| points.iter().map(figure).sum::<f64>();
        let seconds = of(|point| point.lines);
        let busy_s = of(|point| point.time + point.paused) / 1e9;
        let users = of(|point| point.users * point.lines);
        (seconds > 0.0).then(|| (users / seconds, busy_s / seconds))
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Seconds of a point.
    pub fn width_s(&self) -> u64 {
        self.width_s
    }

    /// The points of all steps by position, and the seconds per point.
    pub fn steps(&self) -> (&BTreeMap<u16, BTreeMap<u64, StepPoint>>, u64) {
        (&self.steps, self.step_width_s)
    }

    pub fn failures(&self) -> &[(Cause, Failures)] {
        &self.failures
    }
}

impl StepPoint {
    fn add(&mut self, other: StepPoint) {
        self.0 += other.0;
        self.1 += other.1;
        self.2 += other.2;
    }
}

/// The small part of a line that is needed until its second ends.
fn rest(line: &Interval) -> Interval {
    Interval {
        second: line.second,
        phase: line.phase,
        shards: line.shards,
        connections: line.connections.clone(),
        population: line.population.clone(),
        retries: line.retries.clone(),
        tcp: line.tcp.clone(),
        generator: line.generator.clone(),
        ..Interval::default()
    }
}

fn sum(times: &Histogram) -> f64 {
    times.mean() * times.count() as f64
}

fn point(open: &Open) -> Point {
    let (total, rest, gauges) = (&open.total, &open.rest, &open.gauges);
    let code = |code: u16| {
        let found = total.codes.iter().find(|(it, _)| *it == code);
        found.map_or(0.0, |(_, count)| *count as f64)
    };
    let times = |stage: Stage| {
        let row = rest.stage(stage);
        row.map_or((0.0, 0.0), |row| (row.ok as f64, row.latency.value_at(0.5) as f64))
    };
    let (connected, connect_p50) = times(Stage::Connect);
    let (handshakes, tls_p50) = times(Stage::Tls);
    let (logins, login_p50) = times(Stage::Login);
    let connect = rest.stage(Stage::Connect);
    let refused = connect.map_or(0, |row| {
        let all = row.errors.iter().filter(|(cause, _)| *cause == Cause::ConnectRefused);
        all.map(|(_, count)| count).sum::<u64>()
    });
    let resources = rest.generator.resources.clone().unwrap_or_default();
    let (population, ends) = (&rest.population, &rest.connections.counts);
    let by_us = ends.closed_by_us + ends.reset_by_us + ends.vanished + ends.half_closed;
    Point {
        lines: 1.0,
        measured: f64::from(u8::from(open.measured)),
        ok: total.ok as f64,
        failed: total.failed() as f64,
        begun: total.begun as f64,
        timed: total.latency.count() as f64,
        time: sum(&total.latency),
        p50: total.latency.value_at(0.5) as f64,
        p99: total.latency.value_at(0.99) as f64,
        max: total.latency.max() as f64,
        limited: code(STATUS_LIMITED),
        unavailable: code(STATUS_UNAVAILABLE),
        resent: total.resent as f64,
        retried: rest.retries.retried as f64,
        wanted: population.wanted as f64,
        missed: (population.unmet + population.dropped) as f64,
        iterations: population.iterations_finished as f64,
        users_wanted: gauges.users_wanted as f64,
        users: gauges.users_present.max(gauges.users_online) as f64,
        open: gauges.connections_open as f64,
        in_flight: gauges.in_flight as f64,
        backlog: gauges.backlog as f64,
        attempted: ends.attempted as f64,
        reconnects: ends.reconnects as f64,
        opened: ends.opened as f64,
        closed_by_target: ends.closed_by_target as f64,
        reset: ends.reset as f64,
        ended_by_us: by_us as f64,
        timed_out: ends.timed_out as f64,
        connect_failed: connect.map_or(0.0, |row| row.failed as f64),
        refused: refused as f64,
        connected,
        connect_p50,
        handshakes,
        tls_p50,
        logins,
        login_p50,
        lateness: rest.generator.lateness.value_at(0.99) as f64,
        lost: rest.generator.lost_ns as f64 / 1e9 / f64::from(rest.shards.max(1)),
        shard_cpu: resources.cpu.shard_cpu_max,
        host_cpu: resources.host_cpu,
        listen_dropped: resources.listen_dropped as f64,
        retransmits: rest.tcp.retransmits as f64,
        paused: population.paused_us as f64 * 1e3,
        conntrack: resources.conntrack as f64 / resources.conntrack_max.max(1) as f64,
        memory: resources.memory_bytes as f64,
        online: gauges.users_online as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: u64, latency: u64) -> Interval {
        let mut row = StepInterval { count: 10, ok: 9, begun: 10, ..StepInterval::default() };
        row.latency.record_times(latency, 10);
        row.errors.push((Cause::Reset, 1));
        row.codes.push((429, 2));
        Interval { second, shards: 1, steps: vec![row], ..Interval::default() }
    }

    fn of(lines: impl IntoIterator<Item = Interval>) -> Timeline {
        let mut timeline = Timeline::default();
        let gauges = Gauges { users_present: 7, ..Gauges::default() };
        lines.into_iter().for_each(|line| timeline.add(&line, true, &gauges, |_| true));
        timeline.finish();
        timeline
    }

    #[test]
    fn lines_of_a_second_are_added_in_any_order() {
        let timeline = of([line(1, 100), line(0, 100), line(1, 300), line(2, 5), line(0, 100)]);
        let points = timeline.points();
        assert_eq!(points.iter().map(|it| it.ok).collect::<Vec<_>>(), [18.0, 18.0, 9.0]);
        assert_eq!((points[1].timed, points[1].max, points[1].lines), (20.0, 300.0, 1.0));
        assert_eq!((points[1].limited, points[1].users), (4.0, 7.0));
        assert_eq!(timeline.failures()[0].1, Failures::from([(0, 2), (1, 2), (2, 1)]));
    }

    #[test]
    fn a_long_run_has_no_more_points_and_the_same_sums() {
        let seconds = 3 * POINTS_MAX as u64 + 5;
        let timeline = of((0..seconds).map(|second| line(second, 100 + second % 3)));
        let points = timeline.points();
        assert_eq!((timeline.width_s(), points.len()), (4, seconds.div_ceil(4) as usize));
        assert_eq!(points.iter().map(|it| it.ok).sum::<f64>(), 9.0 * seconds as f64);
        let failed: u64 = timeline.failures()[0].1.values().sum();
        assert_eq!(failed, seconds);
        let (steps, width) = timeline.steps();
        assert!(steps[&0].len() <= STEP_POINTS_MAX && width >= 48, "{width}");
        assert_eq!(steps[&0].values().map(|it| it.0).sum::<f64>(), 10.0 * seconds as f64);
        let ends = of([line(0, 1), line(u64::MAX, 1)]);
        assert_eq!(ends.points().len(), 1, "a second that no run has");
    }

    #[test]
    fn it_is_written_and_read_back() {
        let timeline = of((0..20).map(|second| line(second, 1_000)));
        let text = serde_json::to_string(&timeline).unwrap();
        let back: Timeline = serde_json::from_str(&text).unwrap();
        assert_eq!(back.points(), timeline.points());
        assert_eq!(back.steps(), timeline.steps());
    }
}
