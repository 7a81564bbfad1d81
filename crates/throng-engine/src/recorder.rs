//! What one shard writes down: the figures of the running interval, and one example per kind of
//! error. Its size depends on the steps, never on users or time.

use std::time::Duration;

use throng_base::{StepId, Time};
use throng_metrics::{
    Cause, Connections, Gauges, Histogram, Interval, Messages, Population, Stage, StepInterval,
};

/// Examples of errors kept per shard and run.
const EXAMPLES_MAX: usize = 64;
const EXAMPLE_CHARS_MAX: usize = 240;

/// One error in words, the first of its kind on its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub at: Time,
    pub step: StepId,
    pub cause: Cause,
    pub detail: String,
}

/// What ended: the figures of one attempt at a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) latency: Option<Duration>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) code: u16,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

pub(crate) struct Recorder {
    steps: Vec<StepInterval>,
    stages: [(u64, u64, Histogram); Stage::ALL.len()],
    pub(crate) connections: Connections,
    pub(crate) population: Population,
    pub(crate) messages: Messages,
    pub(crate) gauges: Gauges,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) lateness: Histogram,
    /// Kinds of errors that have their example.
    shown: Vec<(StepId, Cause)>,
    /// Attempts and stages that ended, of the whole run.
    ended: u64,
    examples: Vec<Example>,
}

impl Recorder {
    pub(crate) fn new(steps: usize) -> Recorder {
        Recorder {
            steps: vec![StepInterval::default(); steps],
            stages: Default::default(),
            connections: Connections::default(),
            population: Population::default(),
            messages: Messages::default(),
            gauges: Gauges::default(),
            bytes_in: 0,
            bytes_out: 0,
            lateness: Histogram::new(),
            shown: Vec::new(),
            ended: 0,
            examples: Vec::new(),
        }
    }

    /// An attempt ended well.
    #[inline]
    pub(crate) fn ok(&mut self, step: StepId, attempt: &Attempt) {
        let figures = &mut self.steps[step.index()];
        figures.ok += 1;
        self.ended += 1;
        ended(figures, attempt);
    }

    /// A transaction ended: its time with all pauses.
    pub(crate) fn with_pauses(&mut self, step: StepId, time: Duration) {
        self.steps[step.index()].with_pauses.record(nanos(time));
    }

    /// An attempt ended badly. `detail` is asked for only when it is the first of its kind.
    pub(crate) fn failed(
        &mut self,
        step: StepId,
        attempt: &Attempt,
        cause: Cause,
        now: Time,
        detail: impl FnOnce() -> String,
    ) {
        let figures = &mut self.steps[step.index()];
        self.ended += 1;
        ended(figures, attempt);
        throng_metrics::interval::add(&mut figures.errors, cause, 1);
        if self.shown.len() < EXAMPLES_MAX && !self.shown.contains(&(step, cause)) {
            self.shown.push((step, cause));
            let detail = detail().chars().take(EXAMPLE_CHARS_MAX).collect();
            self.examples.push(Example { at: now, step, cause, detail });
        }
    }

    pub(crate) fn stage_ok(&mut self, stage: Stage, time: Duration) {
        let (ok, _, latency) = &mut self.stages[stage as usize];
        *ok += 1;
        self.ended += 1;
        latency.record(nanos(time));
    }

    pub(crate) fn stage_failed(&mut self, stage: Stage) {
        self.stages[stage as usize].1 += 1;
        self.ended += 1;
    }

    /// A number that is another one when users did something in the meantime.
    pub(crate) fn activity(&self) -> u64 {
        let messages = &self.messages;
        let counts = [
            self.ended,
            self.connections.attempted,
            self.population.started,
            self.population.iterations_started,
            messages.received,
            messages.sent,
            messages.pings,
            self.bytes_in,
            self.bytes_out,
        ];
        counts.into_iter().fold(0, u64::wrapping_add)
    }

    pub(crate) fn late(&mut self, due: Time, now: Time) {
        self.lateness.record(nanos(now - due));
    }

    /// Hands over everything since the last call. Gauges stay.
    pub(crate) fn take(&mut self, second: u64, phase: u16) -> (Interval, Vec<Example>) {
        let mut interval = Interval { second, phase, shards: 1, ..Interval::default() };
        for (index, figures) in self.steps.iter_mut().enumerate() {
            if figures.count > 0 || figures.bytes_in > 0 || figures.bytes_out > 0 {
                let taken = std::mem::take(figures);
                interval.steps.push(StepInterval { step: index as u16, ..taken });
            }
        }
        for stage in Stage::ALL {
            let (ok, failed, latency) = std::mem::take(&mut self.stages[stage as usize]);
            if ok + failed > 0 {
                let figures = interval.stage_mut(stage);
                (figures.ok, figures.failed, figures.latency) = (ok, failed, latency);
            }
        }
        interval.connections = std::mem::take(&mut self.connections);
        interval.population = std::mem::take(&mut self.population);
        interval.messages = std::mem::take(&mut self.messages);
        interval.gauges = self.gauges.clone();
        interval.bytes_in = std::mem::take(&mut self.bytes_in);
        interval.bytes_out = std::mem::take(&mut self.bytes_out);
        interval.lateness = std::mem::take(&mut self.lateness);
        (interval, std::mem::take(&mut self.examples))
    }
}

#[inline]
fn ended(figures: &mut StepInterval, attempt: &Attempt) {
    figures.count += 1;
    if let Some(latency) = attempt.latency {
        figures.latency.record(nanos(latency));
    }
    if let Some(first_byte) = attempt.first_byte {
        figures.first_byte.record(nanos(first_byte));
    }
    if attempt.code != 0 {
        throng_metrics::interval::add(&mut figures.codes, attempt.code, 1);
    }
    figures.bytes_in += attempt.bytes_in;
    figures.bytes_out += attempt.bytes_out;
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handing_over_loses_and_doubles_nothing() {
        let mut recorder = Recorder::new(3);
        let attempt = Attempt {
            latency: Some(Duration::from_millis(2)),
            code: 200,
            bytes_in: 100,
            ..Attempt::default()
        };
        recorder.ok(StepId(1), &attempt);
        for _ in 0..3 {
            recorder.failed(StepId(1), &attempt, Cause::Reset, Time::ZERO, || "gone".into());
        }
        recorder.stage_ok(Stage::Connect, Duration::from_micros(50));
        recorder.gauges.users_online = 4;
        let (interval, examples) = recorder.take(7, 0);
        assert_eq!((interval.second, interval.steps.len(), examples.len()), (7, 1, 1));
        let figures = &interval.steps[0];
        assert_eq!((figures.step, figures.count, figures.ok), (1, 4, 1));
        assert_eq!(figures.codes, [(200, 4)]);
        assert_eq!(figures.errors, [(Cause::Reset, 3)]);
        let (next, examples) = recorder.take(8, 0);
        assert!(next.steps.is_empty() && next.stages.is_empty() && examples.is_empty());
        assert_eq!(next.gauges.users_online, 4);
    }
}
