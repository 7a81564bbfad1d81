//! The rate of starts during a phase, for any shape, and the time of each number of starts.

use std::sync::Arc;
use std::time::Duration;

use throng_program::{Point, Rate};

use crate::curve::{Curve, count, nanoseconds};

/// Maximum number of pieces for computations with a profile.
const PIECES_MAX: usize = 1_000;

/// The rate during a phase. It shares the program's points, so it is small.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    shape: Shape,
    /// Seconds; infinite if only work ends the phase.
    length: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Curve(Curve),
    /// Restarts after the last point if it `repeats`; otherwise, the rate is zero after it.
    Points {
        points: Arc<[Point]>,
        repeats: bool,
    },
}

/// A time span in which the rate changes linearly, in seconds since the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    pub begin: f64,
    pub length: f64,
    pub rates: (f64, f64),
}

impl Profile {
    pub fn new(rate: &Rate, time: Option<Duration>) -> Profile {
        let length = time.map_or(f64::INFINITY, |time| time.as_secs_f64());
        let shape = match (rate, time) {
            (Rate::Ramp { from, to }, Some(time)) => Shape::Curve(Curve::ramp(*from, *to, time)),
            (Rate::Ramp { from, .. }, None) => Shape::Curve(Curve::constant(*from)),
            (Rate::Sine(sine), _) => {
                Shape::Points { points: Arc::clone(sine.points().all()), repeats: true }
            }
            (Rate::Points(points), _) => {
                Shape::Points { points: Arc::clone(points.all()), repeats: false }
            }
        };
        Profile { shape, length }
    }

    /// The time of a number of starts; `None` if it is never reached.
    pub fn reaches(&self, wanted: f64) -> Option<Duration> {
        let seconds = match &self.shape {
            Shape::Curve(curve) => curve.reaches(wanted)?,
            Shape::Points { points, repeats: false } => reaches(points, wanted)?,
            Shape::Points { points, repeats: true } => {
                let last = points.last()?;
                let times = (wanted / last.before).floor();
                let rest = (wanted - times * last.before).max(0.0);
                times * last.seconds + reaches(points, rest).unwrap_or(last.seconds)
            }
        };
        (seconds <= self.length).then(|| nanoseconds(seconds))
    }

    /// The number of starts until this many seconds after the start.
    pub fn until(&self, seconds: f64) -> f64 {
        let seconds = seconds.clamp(0.0, self.length);
        let (points, before, within) = match &self.shape {
            Shape::Curve(curve) => return curve.until(seconds),
            Shape::Points { points, repeats } => turn(points, *repeats, seconds),
        };
        match piece_at(points, within) {
            Some((point, curve)) => before + point.before + curve.until(within - point.seconds),
            None => before + points.last().map_or(0.0, |last| last.before),
        }
    }

    /// Starts per second at this many seconds after the start.
    pub fn rate_at(&self, seconds: f64) -> f64 {
        let seconds = seconds.clamp(0.0, self.length);
        let (points, _, within) = match &self.shape {
            Shape::Curve(curve) => return curve.rate_at(seconds),
            Shape::Points { points, repeats } => turn(points, *repeats, seconds),
        };
        match piece_at(points, within) {
            Some((point, curve)) => curve.rate_at(within - point.seconds),
            None => points.last().map_or(0.0, |last| last.rate),
        }
    }

    /// All starts of the phase.
    pub fn all(&self) -> f64 {
        self.until(self.length)
    }

    /// The number of evenly spaced starts in a phase of this length.
    pub(crate) fn starts(&self, time: Duration) -> u64 {
        count(|k| self.reaches(k as f64).is_some_and(|due| due < time))
    }

    /// The highest rate.
    pub fn peak(&self) -> f64 {
        let end = self.rate_at(self.length);
        let higher = match &self.shape {
            Shape::Curve(curve) => curve.rate_at(0.0),
            Shape::Points { points, .. } => {
                let own = points.iter().take_while(|point| point.seconds < self.length);
                own.map(|point| point.rate).fold(0.0, f64::max)
            }
        };
        higher.max(end)
    }

    /// Whether it is constant.
    pub fn is_constant(&self) -> bool {
        matches!(&self.shape, Shape::Curve(curve) if curve.is_constant())
    }

    /// The first `seconds` of it as consecutive pieces. If there are too many, the pieces of a time
    /// span are merged to one with as many starts.
    pub fn pieces(&self, seconds: f64) -> Vec<Piece> {
        let end = seconds.min(self.length);
        let (points, repeats) = match &self.shape {
            Shape::Curve(curve) => {
                let rates = (curve.rate_at(0.0), curve.rate_at(end));
                return vec![Piece { begin: 0.0, length: end, rates }];
            }
            Shape::Points { points, repeats } => (points, *repeats),
        };
        let span = points.last().map_or(0.0, |last| last.seconds);
        let times = if repeats && span > 0.0 { (end / span).ceil() } else { 1.0 };
        if times * points.len() as f64 > PIECES_MAX as f64 {
            return self.coarse(end);
        }
        let mut pieces = Vec::new();
        for time in 0..times as u32 {
            for pair in points.windows(2) {
                let begin = f64::from(time) * span + pair[0].seconds;
                let whole = pair[1].seconds - pair[0].seconds;
                let length = whole.min(end - begin);
                if length > 0.0 {
                    let curve = Curve::piece(pair[0].rate, pair[1].rate, whole);
                    let rates = (pair[0].rate, curve.rate_at(length));
                    pieces.push(Piece { begin, length, rates });
                }
            }
        }
        pieces
    }

    fn coarse(&self, end: f64) -> Vec<Piece> {
        let length = end / PIECES_MAX as f64;
        let piece = |number: usize| {
            let begin = number as f64 * length;
            let rate = (self.until(begin + length) - self.until(begin)) / length;
            Piece { begin, length, rates: (rate, rate) }
        };
        (0..PIECES_MAX).map(piece).collect()
    }
}

/// The points of the current repetition, all starts of earlier repetitions, and the seconds since
/// the start of this one.
fn turn(points: &[Point], repeats: bool, seconds: f64) -> (&[Point], f64, f64) {
    let last = points.last().map_or((0.0, 0.0), |last| (last.seconds, last.before));
    if !repeats || last.0 <= 0.0 {
        return (points, 0.0, seconds);
    }
    let turns = (seconds / last.0).floor();
    (points, turns * last.1, seconds - turns * last.0)
}

/// The piece at this time, and its curve; `None` after the last point.
fn piece_at(points: &[Point], seconds: f64) -> Option<(&Point, Curve)> {
    let next = points.partition_point(|point| point.seconds <= seconds);
    Some(between(points.get(next.checked_sub(1)?)?, points.get(next)?))
}

fn between<'p>(from: &'p Point, to: &Point) -> (&'p Point, Curve) {
    (from, Curve::piece(from.rate, to.rate, to.seconds - from.seconds))
}

/// The time in seconds of a number of starts.
fn reaches(points: &[Point], wanted: f64) -> Option<f64> {
    let next = points.partition_point(|point| point.before <= wanted);
    let (point, curve) = between(points.get(next.checked_sub(1)?)?, points.get(next)?);
    // Rounding can exceed the end of the piece.
    let within = curve.reaches(wanted - point.before).unwrap_or(curve.length());
    Some(point.seconds + within)
}

#[cfg(test)]
pub(crate) mod tests;
