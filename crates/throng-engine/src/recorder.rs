//! What one shard records: the counts of the current interval, and one example per kind of error.
//! Its size depends on the steps, never on users or time.

pub(crate) mod evidence;
pub(crate) mod instances;
pub(crate) mod logs;
pub(crate) mod presence;
pub(crate) mod repeats;
mod rows;
mod samples;
mod sessions;
pub(crate) mod spent;
mod targets;

use std::time::Duration;

use throng_base::{Said, StepId, Time};
use throng_metrics::{
    Cause, CellCounter, Chain, DeliveryInterval, Ending, Histogram, Interval, LOST_NS_MIN,
    ResidenceInterval, Slow, SlowBounds, Stage, StepInterval,
};

use crate::network::routes::Places;
use crate::transport::TcpInfo;
use evidence::{Evidence, Exchange};
use instances::Instances;
use spent::{OpeningTimes, Spent, nanos};

use rows::Rows;
use samples::Samples;
use sessions::Sessions;
use targets::Targets;

pub(crate) use sessions::Iteration;

/// Examples of errors kept per shard and run.
const EXAMPLES_MAX: usize = 64;
const EXAMPLE_CHARS_MAX: usize = 240;
/// Connections whose kernel statistics are sampled, per shard and second.
const TCP_SAMPLES_MAX: u64 = 32;

/// The longest `Retry-After` that is respected.
pub(crate) const RETRY_AFTER_MAX_S: u64 = 60;

/// Typical number of different times of one step in one second of one shard.
const TIMES_USUAL: u64 = 125;

/// The message of the first error of its kind on its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub at: Time,
    pub step: StepId,
    pub cause: Cause,
    pub detail: Said,
    /// For a failure of a user at a step.
    pub evidence: Option<Box<Evidence>>,
}

/// The measurements of one attempt at a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) latency: Option<Duration>,
    /// The part of `latency` before the request was handed over for sending.
    pub(crate) waited: Duration,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) code: u16,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// How long the response asks clients to wait; 0 if it does not.
    pub(crate) retry_after_s: u64,
    /// The trace ID that was sent.
    pub(crate) trace: Option<u128>,
    /// The connection that was opened for it.
    pub(crate) opening: Option<OpeningTimes>,
}

/// What identifies a slow attempt; computed only for slow ones.
pub(crate) struct Found {
    pub(crate) at: Time,
    pub(crate) user: u64,
    pub(crate) cause: Option<Cause>,
    /// How long ago its last byte arrived.
    pub(crate) read: Duration,
    pub(crate) retransmits: Option<u64>,
}

pub(crate) struct Recorder {
    steps: Rows<StepInterval>,
    pub(crate) targets: Targets,
    pub(crate) instances: Instances,
    pub(crate) sessions: Sessions,
    /// By step: the slowest attempts of the phase.
    slow_bounds: Rows<SlowBounds>,
    pub(crate) samples: Samples,
    pub(crate) cells: CellCounter,
    /// All other results of the current interval.
    pub(crate) interval: Interval,
    /// Starts in the current wake-up.
    begun_now: u64,
    /// Kinds of errors that have an example.
    shown: Vec<(StepId, Cause, u16)>,
    /// Of the failure that is about to be recorded, if it is the first of its kind.
    pub(crate) exchange: Exchange,
    /// Attempts and stages that ended, of the whole run.
    ended: u64,
    examples: Vec<Example>,
    /// The load has ended, and users finish what they have started.
    is_after: bool,
    open: Open,
}

/// Attempts that have started and not ended, by step. Debug builds track each of them: none ends
/// that has not started, and none is open when the shard ends.
#[derive(Default)]
struct Open {
    by_step: Vec<u64>,
}

impl Open {
    #[inline]
    fn begin(&mut self, step: StepId) {
        if cfg!(debug_assertions) {
            let steps = self.by_step.len().max(step.index() + 1);
            self.by_step.resize(steps, 0);
            self.by_step[step.index()] += 1;
        }
    }

    #[inline]
    fn end(&mut self, step: StepId) {
        if cfg!(debug_assertions) {
            let open = self.by_step.get_mut(step.index()).filter(|open| **open > 0);
            *open.unwrap_or_else(|| panic!("an attempt at {step:?} ends that was not begun")) -= 1;
        }
    }
}

impl Recorder {
    /// For this many steps, and for these addresses if there are several.
    pub(crate) fn new(steps: usize, places: &Places) -> Recorder {
        Recorder {
            steps: Rows::new(steps),
            targets: Targets::new(places),
            instances: Instances::default(),
            sessions: Sessions::new(0),
            slow_bounds: Rows::new(steps),
            samples: Samples::default(),
            cells: CellCounter::default(),
            interval: Interval::default(),
            begun_now: 0,
            shown: Vec::new(),
            exchange: Exchange::default(),
            ended: 0,
            examples: Vec::new(),
            is_after: false,
            open: Open::default(),
        }
    }

    /// For this many sessions, if they are counted separately.
    pub(crate) fn with_sessions(self, sessions: usize) -> Recorder {
        Recorder { sessions: Sessions::new(sessions), ..self }
    }

    /// Its memory, including the active steps and the range of recorded times.
    pub(crate) fn bytes(&self) -> u64 {
        let Interval { connections, generator, tcp, slowest, .. } = &self.interval;
        let stages =
            connections.stages.iter().map(|row| row.latency.heap_bytes() + size_of_val(row));
        let own = [&generator.lateness, &tcp.round_trip].map(Histogram::heap_bytes);
        let residence = connections.residence.iter();
        let residence = residence.map(|row| row.time.heap_bytes() + size_of_val(row));
        let histograms = stages.chain(own).chain(residence).sum::<usize>();
        let slow = self.slow_bounds.own_bytes() + slowest.capacity() * size_of::<Slow>();
        let rows = self.sessions.heap_bytes() + self.steps.heap_bytes() + self.targets.heap_bytes();
        let rows = rows + self.cells.heap_bytes();
        (histograms + slow + rows + size_of::<Recorder>()) as u64
    }

    /// Records this many different times at every step and stage, over this many powers of two from
    /// one millisecond; more values no longer enlarge a histogram.
    pub(crate) fn fill(&mut self, octaves: u32) {
        for octave in 0..octaves {
            for part in 0..TIMES_USUAL / u64::from(octaves) {
                let nanos =
                    (1_000_000 + part * (1_000_000 * u64::from(octaves) / TIMES_USUAL)) << octave;
                for step in 0..self.steps.places.len() {
                    self.steps.of(StepId(step as u16)).latency.record(nanos);
                }
                for stage in Stage::ALL {
                    self.interval.stage_mut(stage).latency.record(nanos);
                }
                self.interval.generator.lateness.record(nanos);
                self.interval.tcp.round_trip.record(nanos);
            }
        }
    }

    pub(crate) fn load_ends(&mut self) {
        self.is_after = true;
    }

    /// An attempt starts; it ends by [`Recorder::ok`], [`Recorder::failed`] or
    /// [`Recorder::interrupted`].
    #[inline]
    pub(crate) fn begun(&mut self, step: StepId) {
        self.steps.of(step).begun += 1;
        self.open.begin(step);
    }

    /// An attempt was cut off: it is neither a success nor a failure.
    pub(crate) fn interrupted(&mut self, step: StepId) {
        self.steps.of(step).interrupted += 1;
        self.open.end(step);
    }

    /// An attempt ended: keeps it if it is one of the slowest of its step in this phase.
    #[inline]
    pub(crate) fn slow(&mut self, step: StepId, attempt: &Attempt, told: impl FnOnce() -> Found) {
        let Some(latency_ns) = attempt.latency.map(nanos) else { return };
        if self.slow_bounds.at(step.index(), SlowBounds::default).take(latency_ns) {
            let trace = attempt.trace.map(|trace| format!("{trace:032x}"));
            let Found { at, user, cause, read, retransmits } = told();
            let spent = Spent { waited: attempt.waited, first_byte: attempt.first_byte, read };
            let chain = Some(Chain { retransmits, ..spent.chain(attempt.opening, latency_ns) });
            let at_ns = at.as_nanos();
            let code = attempt.code;
            let slow = Slow { step: step.0, at_ns, latency_ns, user, code, cause, trace, chain };
            Slow::add(&mut self.interval.slowest, &slow);
        }
    }

    /// Another phase starts, with slowest attempts of its own.
    pub(crate) fn phase_begins(&mut self) {
        self.slow_bounds.take();
    }

    /// Whether every attempt that was started has ended.
    pub(crate) fn is_complete(&self) -> bool {
        self.open.by_step.iter().all(|open| *open == 0)
    }

    /// An attempt succeeded.
    #[inline]
    pub(crate) fn ok(&mut self, step: StepId, attempt: &Attempt) {
        self.open.end(step);
        let figures = self.steps.of(step);
        figures.ok += 1;
        figures.ok_after += u64::from(self.is_after);
        self.ended += 1;
        ended(figures, attempt);
    }

    /// A try failed, and the same attempt is retried.
    pub(crate) fn retried(&mut self, step: StepId, attempt: &Attempt, cause: Cause) {
        self.exchange = Exchange::default();
        let retries = &mut self.interval.retries;
        retries.retried += 1;
        retries.retry_after += u64::from(attempt.retry_after_s > 0);
        retries.retry_after_cut += u64::from(attempt.retry_after_s > RETRY_AFTER_MAX_S);
        let figures = self.steps.of(step);
        throng_metrics::interval::add(&mut figures.retried, cause, 1);
        said(figures, attempt);
    }

    /// An attempt failed after retries.
    pub(crate) fn given_up(&mut self, step: StepId) {
        self.interval.retries.given_up += 1;
        self.steps.of(step).given_up += 1;
    }

    /// Records an instantaneous event.
    pub(crate) fn came(&mut self, step: StepId, attempt: &Attempt) {
        self.begun(step);
        self.ok(step, attempt);
    }

    /// Increments a counter.
    pub(crate) fn counted(&mut self, step: StepId, count: u64) {
        let figures = self.steps.of(step);
        figures.begun += count;
        figures.count += count;
        figures.ok += count;
        figures.ok_after += if self.is_after { count } else { 0 };
    }

    /// Records a value of a trend.
    pub(crate) fn measured(&mut self, step: StepId, value: u64) {
        self.counted(step, 1);
        self.steps.of(step).latency.record(value);
    }

    /// A transaction ended: its duration including all pauses.
    pub(crate) fn with_pauses(&mut self, step: StepId, time: Duration) {
        self.steps.of(step).with_pauses.record(nanos(time));
    }

    /// The first event of a stream arrived, this long after its opening was due.
    pub(crate) fn first_event(&mut self, step: StepId, time: Duration) {
        self.steps.of(step).first_byte.record(nanos(time));
    }

    /// Whether a failure like this would be the first of its kind.
    pub(crate) fn is_new(&self, step: StepId, cause: Cause, code: u16) -> bool {
        self.shown.len() < EXAMPLES_MAX && !self.shown.contains(&(step, cause, code))
    }

    /// An attempt failed. `detail` is evaluated only for the first of its kind; returns whether it
    /// is.
    pub(crate) fn failed(
        &mut self,
        step: StepId,
        attempt: &Attempt,
        cause: Cause,
        now: Time,
        detail: impl FnOnce() -> Said,
    ) -> bool {
        self.open.end(step);
        let figures = self.steps.of(step);
        self.ended += 1;
        ended(figures, attempt);
        throng_metrics::interval::add(&mut figures.errors, cause, 1);
        let is_refused = cause.is_status() && throng_metrics::blames_request(attempt.code);
        figures.refused += u64::from(is_refused);
        let is_new = self.is_new(step, cause, attempt.code);
        if is_new {
            self.shown.push((step, cause, attempt.code));
            let detail = detail().shortened(EXAMPLE_CHARS_MAX);
            self.examples.push(Example { at: now, step, cause, detail, evidence: None });
        }
        is_new
    }

    /// Adds the circumstances of the last example.
    pub(crate) fn add_evidence(&mut self, mut evidence: Evidence) {
        evidence.exchange = std::mem::take(&mut self.exchange);
        if let Some(example) = self.examples.last_mut() {
            example.evidence = Some(Box::new(evidence));
        }
    }

    /// Records the deliveries of one row of the ledger.
    pub(crate) fn delivered(&mut self, interval: DeliveryInterval) {
        let step = StepId(interval.step);
        if interval.lost > 0 {
            let figures = self.steps.of(step);
            figures.begun += interval.lost;
            figures.count += interval.lost;
            throng_metrics::interval::add(&mut figures.errors, Cause::DeliveryLost, interval.lost);
        }
        if interval != (DeliveryInterval { step: step.0, ..DeliveryInterval::default() }) {
            self.interval.deliveries.push(interval);
        }
    }

    /// The first delivery that was lost.
    pub(crate) fn lost_one(&mut self, step: StepId, detail: Said, at: Time) {
        self.examples.push(Example {
            at,
            step,
            cause: Cause::DeliveryLost,
            detail,
            evidence: None,
        });
    }

    /// A request is resent; its attempt has not ended.
    pub(crate) fn resent(&mut self, step: StepId) {
        self.steps.of(step).resent += 1;
    }

    /// The target has set its limit of concurrent streams on a connection.
    pub(crate) fn streams_allowed(&mut self, allowed: u32, wanted: u32) {
        if allowed < wanted {
            self.interval.connections.counts.streams_limited += 1;
            self.interval.connections.counts.streams_allowed += u64::from(allowed);
        }
    }

    /// A heartbeat was sent. The first of those sent at a time is the attempt, which ends with its
    /// reply if one `is_awaited`.
    pub(crate) fn beat_sent(&mut self, step: StepId, bytes: u64, is_first: bool, is_awaited: bool) {
        self.interval.heartbeats.sent += 1;
        self.interval.heartbeats.without_answer += u64::from(!is_first || !is_awaited);
        self.steps.of(step).bytes_out += bytes;
        if is_first {
            self.begun(step);
            // Without a reply, the step succeeds when it is sent.
            if !is_awaited {
                self.ok(step, &Attempt::default());
            }
        }
    }

    #[inline]
    pub(crate) fn stage_begins(&mut self, stage: Stage) {
        self.interval.stage_mut(stage).began += 1;
    }

    #[inline]
    pub(crate) fn stage_ok(&mut self, stage: Stage, time: Duration) {
        let figures = self.interval.stage_mut(stage);
        figures.ok += 1;
        figures.latency.record(nanos(time));
        self.ended += 1;
    }

    pub(crate) fn stage_failed(&mut self, stage: Stage, cause: Cause) {
        let figures = self.interval.stage_mut(stage);
        figures.failed += 1;
        throng_metrics::interval::add(&mut figures.errors, cause, 1);
        self.ended += 1;
    }

    /// A connection ended, open or not, after this time.
    pub(crate) fn connection_ended(&mut self, ending: Ending, was_open: bool, lived: Duration) {
        *ending.of(&mut self.interval.connections.counts) += 1;
        let residence = &mut self.interval.connections.residence;
        ResidenceInterval::of(residence, ending, !was_open).record(nanos(lived));
    }

    /// Whether the kernel may be asked about another connection in this interval.
    #[inline]
    pub(crate) fn wants_tcp_sample(&self) -> bool {
        self.interval.tcp.count < TCP_SAMPLES_MAX
    }

    pub(crate) fn tcp_sample(&mut self, info: &TcpInfo) {
        let tcp = &mut self.interval.tcp;
        tcp.count += 1;
        tcp.round_trip.record(nanos(info.round_trip));
        tcp.retransmits += info.retransmits;
        tcp.out_of_order += info.out_of_order;
        tcp.backlog_bytes_max = tcp.backlog_bytes_max.max(info.backlog_bytes);
    }

    /// A number that changes when users are active.
    pub(crate) fn activity(&self) -> u64 {
        let messages = &self.interval.traffic.messages;
        let counts = [
            self.ended,
            self.interval.connections.counts.attempted,
            self.interval.population.started,
            self.interval.heartbeats.sent,
            self.interval.population.iterations_started,
            messages.received,
            messages.sent,
            messages.pings,
            self.interval.traffic.bytes_in,
            self.interval.traffic.bytes_out,
        ];
        counts.into_iter().fold(0, u64::wrapping_add)
    }

    /// A user started or disconnected on time, or this late.
    pub(crate) fn moved(&mut self, late: Duration) {
        self.interval.generator.lateness.record(nanos(late));
    }

    /// Something started on time, or this late.
    #[inline]
    pub(crate) fn late(&mut self, late: Duration) {
        self.interval.generator.lateness.record(nanos(late));
        self.begun_now += 1;
    }

    /// All starts since the last call were sent together.
    #[inline]
    pub(crate) fn waking_over(&mut self) {
        if self.begun_now > 0 {
            self.interval.generator.together.add(self.begun_now);
            self.begun_now = 0;
        }
    }

    /// The driver runs: records how late it is, and whether that is lost time. A late turn is a
    /// single value among a hundred per second, however long it was: that a generator stood still
    /// for half of a run is visible in the lost time, not in these values.
    pub(crate) fn woken(&mut self, due: Time, now: Time) {
        self.interval.generator.lateness.record(nanos(now - due));
        let gap = nanos(now - due);
        if gap >= LOST_NS_MIN {
            let generator = &mut self.interval.generator;
            generator.lost_ns += gap;
            generator.lost_max_ns = generator.lost_max_ns.max(gap);
        }
    }

    /// Hands over everything since the last call. Gauges keep their values.
    pub(crate) fn take(&mut self, second: u64, phase: u16) -> (Interval, Vec<Example>) {
        self.waking_over();
        let next = Interval { gauges: self.interval.gauges.clone(), ..Interval::default() };
        let mut interval = std::mem::replace(&mut self.interval, next);
        (interval.second, interval.phase, interval.shards) = (second, phase, 1);
        interval.steps = self.steps.take();
        interval.parts.targets = self.targets.rows.take();
        interval.parts.instances = self.instances.take();
        interval.parts.sessions = self.sessions.0.take();
        interval.connections.stages.sort_by_key(|row| row.stage as usize);
        interval.samples = std::mem::take(&mut self.samples.rows);
        interval.cells = self.cells.take(second);
        (interval, std::mem::take(&mut self.examples))
    }
}

#[inline]
fn ended(figures: &mut StepInterval, attempt: &Attempt) {
    figures.count += 1;
    if let Some(latency) = attempt.latency {
        figures.answered(nanos(latency), nanos(attempt.waited));
    }
    if let Some(first_byte) = attempt.first_byte {
        figures.first_byte.record(nanos(first_byte));
    }
    said(figures, attempt);
}

/// Counts the bytes of a try.
#[inline]
fn said(figures: &mut StepInterval, attempt: &Attempt) {
    if attempt.code != 0 {
        throng_metrics::interval::add(&mut figures.codes, attempt.code, 1);
    }
    figures.bytes_in += attempt.bytes_in;
    figures.bytes_out += attempt.bytes_out;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_active_steps_have_rows_and_in_order() {
        let mut recorder = Recorder::new(1000, &Places::default());
        let empty = recorder.bytes();
        let attempt = Attempt { latency: Some(Duration::from_millis(3)), ..Attempt::default() };
        let rows = |recorder: &mut Recorder, second: u64| {
            let (interval, _) = recorder.take(second, 0);
            let rows = interval.steps.into_iter();
            rows.map(|row| (row.step, row.count, row.latency.count())).collect::<Vec<_>>()
        };
        let ok = |recorder: &mut Recorder, step: u16| {
            recorder.begun(StepId(step));
            recorder.ok(StepId(step), &attempt);
        };
        for step in [999, 3, 700, 3, 0] {
            ok(&mut recorder, step);
        }
        recorder.beat_sent(StepId(5), 20, true, true);
        recorder.with_pauses(StepId(6), Duration::from_millis(4));
        let first = [(0, 1, 1), (3, 2, 2), (5, 0, 0), (6, 0, 0), (700, 1, 1), (999, 1, 1)];
        assert_eq!(rows(&mut recorder, 0), first);
        assert_eq!(rows(&mut recorder, 1), []);
        ok(&mut recorder, 3);
        assert_eq!(rows(&mut recorder, 2), [(3, 1, 1)]);
        // A quiet shard has next to nothing; a busy second leaves behind only what the next one
        // needs.
        assert!(empty < 16 * 1024, "{empty}");
        (0..1000).for_each(|step| ok(&mut recorder, step));
        assert!(recorder.bytes() > 1000 * size_of::<StepInterval>() as u64);
        assert_eq!(rows(&mut recorder, 3).len(), 1000);
        ok(&mut recorder, 7);
        assert_eq!(rows(&mut recorder, 4), [(7, 1, 1)]);
        assert!(recorder.bytes() < empty + 1024, "{}", recorder.bytes());
    }

    #[test]
    fn a_lost_delivery_creates_a_ledger_row() {
        let mut recorder = Recorder::new(4, &Places::default());
        let interval = DeliveryInterval { step: 2, sent: 5, ..DeliveryInterval::default() };
        recorder.delivered(interval.clone());
        let (first, _) = recorder.take(0, 0);
        assert_eq!((first.steps.len(), first.deliveries.len()), (0, 1));
        recorder.delivered(DeliveryInterval { lost: 3, ..interval });
        let (second, _) = recorder.take(1, 0);
        assert_eq!((second.steps[0].step, second.steps[0].count), (2, 3));
        assert_eq!(second.steps[0].errors, [(Cause::DeliveryLost, 3)]);
    }

    #[test]
    fn handing_over_neither_loses_nor_duplicates() {
        let mut recorder = Recorder::new(3, &Places::default());
        let attempt = Attempt {
            latency: Some(Duration::from_millis(2)),
            code: 200,
            bytes_in: 100,
            ..Attempt::default()
        };
        (0..5).for_each(|_| recorder.begun(StepId(1)));
        recorder.ok(StepId(1), &attempt);
        recorder.interrupted(StepId(1));
        for _ in 0..3 {
            recorder
                .failed(StepId(1), &attempt, Cause::Reset, Time::ZERO, || Said::of_others("gone"));
        }
        recorder.stage_ok(Stage::Connect, Duration::from_micros(50));
        recorder.interval.gauges.users_online = 4;
        let (interval, examples) = recorder.take(7, 0);
        assert_eq!((interval.second, interval.steps.len(), examples.len()), (7, 1, 1));
        let figures = &interval.steps[0];
        assert_eq!((figures.step, figures.count, figures.ok), (1, 4, 1));
        assert_eq!((figures.begun, figures.interrupted), (5, 1));
        assert!(figures.is_balanced() && recorder.is_complete());
        assert_eq!(figures.codes, [(200, 4)]);
        assert_eq!(figures.errors, [(Cause::Reset, 3)]);
        let (next, examples) = recorder.take(8, 0);
        assert!(next.steps.is_empty() && next.connections.stages.is_empty() && examples.is_empty());
        assert_eq!(next.gauges.users_online, 4);
    }
}
