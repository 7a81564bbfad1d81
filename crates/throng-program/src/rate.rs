//! Starts per second over the time of a phase.

use std::sync::Arc;
use std::time::Duration;

/// Starts per second. The shape is the same in all parts of a run, and shared by them.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// From one value to another evenly, from the start of the phase to its end.
    Ramp { from: f64, to: f64 },
    /// Up and down around a mean, for as long as the phase takes.
    Sine(Sine),
    /// From point to point.
    Points(Points),
}

/// `mean + amplitude · sin(2π · (time + offset) / period)`; never below zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sine {
    pub mean: f64,
    pub amplitude: f64,
    pub period: Duration,
    /// How much of a period has passed when the phase starts.
    pub offset: Duration,
}

/// Rates at times, interpolated linearly. The first is at the start of the phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Points(Arc<[Point]>);

/// A rate at a time. Of two at the same time, the first ends the segment before and the second
/// starts the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub seconds: f64,
    /// Per second.
    pub rate: f64,
    /// Total starts before it.
    pub before: f64,
}

impl Points {
    /// From rates at increasing times, at least two.
    pub fn new(rates: impl IntoIterator<Item = (Duration, f64)>) -> Points {
        let mut rates = rates.into_iter().peekable();
        let begin = rates.peek().map_or(Duration::ZERO, |(begin, _)| *begin);
        let at = |(time, rate): (Duration, f64)| ((time - begin).as_secs_f64(), rate);
        let mut last = Point { seconds: 0.0, rate: 0.0, before: 0.0 };
        let next = |(seconds, rate): (f64, f64)| {
            let before = last.before + f64::midpoint(last.rate, rate) * (seconds - last.seconds);
            last = Point { seconds, rate, before };
            last
        };
        Points(rates.map(at).map(next).collect())
    }

    /// This many starts in each second, at a multiple of the speed, spread evenly within it.
    /// Missing seconds have no starts.
    pub fn of_seconds(seconds: &[(u64, u64)], speed: f64) -> Points {
        let at = |second: u64| {
            Duration::try_from_secs_f64(second as f64 / speed).unwrap_or(Duration::MAX)
        };
        let mut rates = Vec::new();
        let mut over = 0;
        for (second, count) in seconds.iter().copied() {
            let (begin, end) = (at(second), at(second + 1));
            if second > over {
                rates.extend([(at(over), 0.0), (begin, 0.0)]);
            }
            let rate = count as f64 / (end - begin).as_secs_f64();
            rates.extend([(begin, rate), (end, rate)]);
            over = second + 1;
        }
        Points::new(rates)
    }

    pub fn all(&self) -> &Arc<[Point]> {
        &self.0
    }

    /// From the first to the last.
    pub fn length(&self) -> Duration {
        let seconds = self.0.last().map_or(0.0, |last| last.seconds);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// The remaining points after this many seconds.
    fn rest(&self, passed: f64) -> Points {
        let next = self.0.partition_point(|point| point.seconds <= passed);
        let from = self.0[next.saturating_sub(1)];
        let rate = self.0.get(next).map_or(0.0, |to| {
            from.rate
                + (to.rate - from.rate) * (passed - from.seconds) / (to.seconds - from.seconds)
        });
        let over = from.before + f64::midpoint(from.rate, rate) * (passed - from.seconds);
        let first = Point { seconds: 0.0, rate, before: 0.0 };
        // Nothing follows the last point: two points with nothing between them.
        let none = (next == self.0.len()).then_some(first);
        let rest = self.0[next..].iter().map(|it| Point {
            seconds: it.seconds - passed,
            before: it.before - over,
            ..*it
        });
        Points(std::iter::once(first).chain(none).chain(rest).collect())
    }

    fn changed(&self, change: impl Fn(&Point) -> Point) -> Points {
        Points(self.0.iter().map(change).collect())
    }
}

impl Sine {
    /// Number of segments that approximate a period. The area under each is exact, and its ends
    /// deviate by less than one in 5,000 of the amplitude.
    const PIECES: u32 = 128;

    /// One period as points, from the start of the phase.
    pub fn points(&self) -> Points {
        let angle = std::f64::consts::TAU / f64::from(Sine::PIECES);
        // Corrects the area under a chord, which is smaller than that under the arc.
        let amplitude = self.amplitude * (angle / 2.0).tan() / (angle / 2.0);
        let offset = self.offset.as_secs_f64() / self.period.as_secs_f64();
        let point = |piece: u32| {
            let turn = f64::from(piece % Sine::PIECES) / f64::from(Sine::PIECES) + offset;
            let rate = self.mean + amplitude * (std::f64::consts::TAU * turn).sin();
            (self.period.mul_f64(f64::from(piece) / f64::from(Sine::PIECES)), rate.max(0.0))
        };
        Points::new((0..=Sine::PIECES).map(point))
    }
}

impl Rate {
    /// A constant rate.
    pub fn constant(rate: f64) -> Rate {
        Rate::Ramp { from: rate, to: rate }
    }

    /// The highest.
    pub fn peak(&self) -> f64 {
        match self {
            Rate::Ramp { from, to } => from.max(*to),
            Rate::Sine(sine) => sine.mean + sine.amplitude,
            Rate::Points(points) => points.0.iter().map(|it| it.rate).fold(0.0, f64::max),
        }
    }

    /// Total starts before this time, if the phase takes that long.
    pub fn until(&self, time: Duration) -> f64 {
        let seconds = time.as_secs_f64();
        match self {
            Rate::Ramp { from, to } => f64::midpoint(*from, *to) * seconds,
            Rate::Sine(sine) => {
                let (period, offset) = (sine.period.as_secs_f64(), sine.offset.as_secs_f64());
                let falling = |at: f64| (std::f64::consts::TAU * (at + offset) / period).cos();
                let swing = sine.amplitude * period / std::f64::consts::TAU;
                sine.mean * seconds + swing * (falling(0.0) - falling(seconds))
            }
            Rate::Points(points) => {
                let next = points.0.partition_point(|point| point.seconds <= seconds);
                points.0.get(next.saturating_sub(1)).map_or(0.0, |point| point.before)
            }
        }
    }

    /// The same shape, scaled so that one rate becomes another.
    pub fn scaled(&self, before: f64, now: f64) -> Rate {
        let factor = now / before;
        let scaled = |own: f64| if own == before { now } else { own * factor };
        match self {
            Rate::Ramp { from, to } => Rate::Ramp { from: scaled(*from), to: scaled(*to) },
            Rate::Sine(sine) => Rate::Sine(Sine {
                mean: scaled(sine.mean),
                amplitude: sine.amplitude * factor,
                ..*sine
            }),
            Rate::Points(points) => Rate::Points(points.changed(|it| Point {
                rate: scaled(it.rate),
                before: it.before * factor,
                ..*it
            })),
        }
    }

    /// The rest of a rate that changes over time, after this much time.
    pub fn rest(&self, passed: Duration) -> Rate {
        match self {
            Rate::Ramp { .. } => self.clone(),
            Rate::Sine(sine) => Rate::Sine(Sine { offset: sine.offset + passed, ..*sine }),
            Rate::Points(points) => Rate::Points(points.rest(passed.as_secs_f64())),
        }
    }

    /// The same shape stretched in time: the same rates, for longer.
    pub fn stretched(&self, factor: f64) -> Rate {
        match self {
            Rate::Ramp { .. } => self.clone(),
            Rate::Sine(sine) => Rate::Sine(Sine {
                period: sine.period.mul_f64(factor),
                offset: sine.offset.mul_f64(factor),
                ..*sine
            }),
            Rate::Points(points) => Rate::Points(points.changed(|it| Point {
                seconds: it.seconds * factor,
                before: it.before * factor,
                ..*it
            })),
        }
    }
}

/// The spacing of starts at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// As evenly as the rate changes.
    #[default]
    Even,
    /// Independent starts: a Poisson process with this rate.
    Poisson,
}
