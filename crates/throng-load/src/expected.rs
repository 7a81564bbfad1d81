//! Estimates steps: their duration, based on pauses, and their requests.

use throng_program::{Every, Heartbeat, Link, Pause, Session, Statement, Stay, Way};

/// The estimate of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionExpected {
    /// The steps that run once when a user starts.
    pub before: Expected,
    /// One iteration of the steps.
    pub steps: Expected,
    pub after: Expected,
}

impl SessionExpected {
    pub fn of(session: &Session) -> SessionExpected {
        let links = &session.links;
        let of = |steps: &[Statement]| Expected::of_block(steps, links);
        let beats = links.iter().map(|link| per_second(&link.every, links) + beats(link)).sum();
        SessionExpected {
            before: of(&session.before),
            steps: of(&session.steps).and_again(beats),
            after: of(&session.after),
        }
    }
}

/// Heartbeats per second while the connection is open.
fn beats(link: &Link) -> f64 {
    link.heartbeat.as_ref().map_or(0.0, beats_of)
}

fn beats_of(heartbeat: &Heartbeat) -> f64 {
    match heartbeat.fault.stop_after {
        // A heartbeat that stops after a few sends none in the long run.
        Some(_) => 0.0,
        None => f64::from(heartbeat.fault.times) / heartbeat.every.as_secs_f64(),
    }
}

/// Requests per second of periodic work.
fn per_second(every: &[Every], links: &[Link]) -> f64 {
    let of = |one: &Every| {
        let requests = Expected::of_block(&one.body.steps, links).requests;
        // A body that never ends runs once.
        if requests.is_finite() { requests / one.time.as_secs_f64() } else { 0.0 }
    };
    every.iter().map(of).sum()
}

/// The mean and the range of what steps take, without the target's response times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Seconds of thinking and staying: minimum, mean, maximum. Infinite if users stay until they
    /// must leave.
    pub low_seconds: f64,
    pub mean_seconds: f64,
    pub high_seconds: f64,
    /// Mean number of HTTP requests and sent messages.
    pub requests: f64,
    /// Mean number of long-lived connections that are opened.
    pub connects: f64,
    /// The sum over these requests of the seconds of pauses before each.
    pub lead: f64,
    /// Mean number of heartbeats and periodic requests per second.
    pub beats: f64,
    /// A condition, list or value that is known only during the run was assumed to be once.
    pub guessed: bool,
    /// The first endless part, if any.
    pub endless: Option<Endless>,
    /// The share of users that reach the end; the others leave or start the next iteration.
    go_on: f64,
    /// Whether all users certainly reach the end.
    all_go_on: bool,
}

/// One pass of an endless loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Endless {
    pub low_seconds: f64,
    pub mean_seconds: f64,
    pub high_seconds: f64,
    pub requests: f64,
}

impl Default for Expected {
    fn default() -> Expected {
        Expected {
            low_seconds: 0.0,
            mean_seconds: 0.0,
            high_seconds: 0.0,
            requests: 0.0,
            connects: 0.0,
            lead: 0.0,
            beats: 0.0,
            guessed: false,
            endless: None,
            go_on: 1.0,
            all_go_on: true,
        }
    }
}

/// The assumed maximum of a normally distributed pause, in standard deviations above the mean.
const NORMAL_DEVIATIONS: f64 = 3.0;

/// A product in which zero times infinity is zero.
pub(crate) fn product(one: f64, other: f64) -> f64 {
    if one == 0.0 || other == 0.0 { 0.0 } else { one * other }
}

/// The mean of rates, weighted by their durations in seconds.
fn mean_of(parts: &[(f64, f64)]) -> f64 {
    // An infinite duration outweighs all others.
    let forever = parts.iter().filter(|(seconds, _)| seconds.is_infinite());
    let endless = forever.clone().count();
    if endless > 0 {
        return forever.map(|(_, rate)| rate).sum::<f64>() / endless as f64;
    }
    let seconds: f64 = parts.iter().map(|(seconds, _)| seconds).sum();
    let beats: f64 = parts.iter().map(|(seconds, rate)| product(*seconds, *rate)).sum();
    if seconds > 0.0 { beats / seconds } else { 0.0 }
}

impl Expected {
    fn pause(low_seconds: f64, mean_seconds: f64, high_seconds: f64) -> Expected {
        Expected { low_seconds, mean_seconds, high_seconds, ..Expected::default() }
    }

    /// The estimate of consecutive steps of a session with these links.
    pub fn of_block(steps: &[Statement], links: &[Link]) -> Expected {
        let of = |sum: Expected, statement| sum.then(Expected::of(statement, links));
        steps.iter().fold(Expected::default(), of)
    }

    fn of(statement: &Statement, links: &[Link]) -> Expected {
        let inside = |steps: &[Statement]| Expected::of_block(steps, links);
        match statement {
            Statement::Repeat { low, high, steps } => {
                inside(steps).times(f64::from(*low), f64::from(*high))
            }
            Statement::Forever(steps) => inside(steps).forever(),
            Statement::During { time, steps } => inside(steps).during(time.as_secs_f64()),
            Statement::ForEach { values, steps, .. } => {
                let items = values.as_constant().and_then(|value| value.len());
                let times = items.map(|items| inside(steps).times(items as f64, items as f64));
                times.unwrap_or_else(|| inside(steps).guessed())
            }
            Statement::While { steps, .. } => inside(steps).guessed(),
            Statement::If { then, otherwise, .. } => inside(then).either(inside(otherwise)),
            Statement::Choose(ways) => {
                let sum: f64 = ways.iter().map(|way| f64::from(way.weight)).sum();
                let part = |way: &Way| (f64::from(way.weight) / sum.max(1.0), inside(&way.steps));
                Expected::by_chance(&ways.iter().map(part).collect::<Vec<_>>())
            }
            Statement::Transaction { steps, .. } => inside(steps),
            Statement::Parallel(branches) => {
                let all = branches.iter().map(|steps| inside(steps));
                all.fold(Expected::default(), Expected::beside)
            }
            Statement::Stay(stay) => {
                let own = stay.heartbeat.as_ref().map(beats_of);
                // The step's heartbeat replaces that of the link.
                let link = links.get(usize::from(stay.link));
                let instead = own.map_or(0.0, |own| own - link.map_or(0.0, beats));
                Expected::of_stay(stay).and_again(per_second(&stay.every, links) + instead)
            }
            simple => Expected::of_simple(simple),
        }
    }

    /// A step without nested steps.
    fn of_simple(statement: &Statement) -> Expected {
        let request = || Expected { requests: 1.0, ..Expected::default() };
        match statement {
            Statement::Request(_) | Statement::Send(_) => request(),
            asks if asks.opens_itself() => request(),
            Statement::Connect(_) => Expected { connects: 1.0, ..Expected::default() },
            Statement::Think(pause) => Expected::of_pause(pause),
            Statement::Rendezvous(meeting) => {
                Expected::pause(0.0, 0.0, meeting.timeout.as_secs_f64()).guessed()
            }
            Statement::Next | Statement::Leave | Statement::Stop(_) => {
                Expected { go_on: 0.0, all_go_on: false, ..Expected::default() }
            }
            _ => Expected::default(),
        }
    }

    fn of_stay(stay: &Stay) -> Expected {
        // When the target ends the connection is unknown.
        if stay.ends.is_some() {
            let most = stay.time.map_or(f64::INFINITY, |time| time.as_secs_f64());
            return match stay.awaits_end {
                true => Expected { requests: 1.0, ..Expected::default() },
                false => Expected::pause(0.0, most, most).guessed(),
            };
        }
        let (seconds, go_on) = match stay.time {
            Some(time) => (time.as_secs_f64(), 1.0),
            None => (f64::INFINITY, 0.0),
        };
        let all_go_on = go_on > 0.0;
        Expected { go_on, all_go_on, ..Expected::pause(seconds, seconds, seconds) }
    }

    fn of_pause(pause: &Pause) -> Expected {
        match pause {
            Pause::Uniform { low, high } => {
                let (low, high) = (low.as_secs_f64(), high.as_secs_f64());
                Expected::pause(low, low.midpoint(high), high)
            }
            Pause::Exponential { mean, max } => {
                let (mean, max) = (mean.as_secs_f64(), max.as_secs_f64());
                let cut = if mean > 0.0 { mean * (1.0 - (-max / mean).exp()) } else { 0.0 };
                Expected::pause(0.0, cut, max)
            }
            Pause::Normal { mean, deviation } => {
                let (mean, deviation) = (mean.as_secs_f64(), deviation.as_secs_f64());
                let far = deviation * NORMAL_DEVIATIONS;
                Expected::pause((mean - far).max(0.0), mean, mean + far)
            }
            Pause::Text(_) => Expected::default().guessed(),
        }
    }

    /// Adds messages that are sent concurrently, per second.
    fn and_again(self, beats: f64) -> Expected {
        Expected { beats: (self.beats + beats).max(0.0), ..self }
    }

    fn guessed(self) -> Expected {
        Expected { guessed: true, ..self }
    }

    /// This, followed by `after`.
    pub(crate) fn then(self, after: Expected) -> Expected {
        let sure = if self.all_go_on { 1.0 } else { 0.0 };
        let perhaps = if self.go_on > 0.0 { 1.0 } else { 0.0 };
        Expected {
            low_seconds: self.low_seconds + product(after.low_seconds, sure),
            mean_seconds: self.mean_seconds + product(after.mean_seconds, self.go_on),
            high_seconds: self.high_seconds + product(after.high_seconds, perhaps),
            requests: self.requests + product(after.requests, self.go_on),
            connects: self.connects + product(after.connects, self.go_on),
            lead: self.lead
                + product(after.lead + product(after.requests, self.mean_seconds), self.go_on),
            beats: mean_of(&[
                (self.mean_seconds, self.beats),
                (product(after.mean_seconds, self.go_on), after.beats),
            ]),
            guessed: self.guessed || (after.guessed && self.go_on > 0.0),
            endless: self.endless.or(after.endless.filter(|_| self.go_on > 0.0)),
            go_on: product(self.go_on, after.go_on),
            all_go_on: self.all_go_on && after.all_go_on,
        }
    }

    /// This, concurrently with `other`.
    fn beside(self, other: Expected) -> Expected {
        Expected {
            low_seconds: self.low_seconds.max(other.low_seconds),
            mean_seconds: self.mean_seconds.max(other.mean_seconds),
            high_seconds: self.high_seconds.max(other.high_seconds),
            requests: self.requests + other.requests,
            connects: self.connects + other.connects,
            lead: self.lead + other.lead,
            guessed: self.guessed || other.guessed,
            endless: self.endless.or(other.endless),
            go_on: product(self.go_on, other.go_on),
            all_go_on: self.all_go_on && other.all_go_on,
            ..self
        }
    }

    /// Repeats this a number of times.
    fn times(self, low: f64, high: f64) -> Expected {
        let mean = low.midpoint(high);
        let passes = match self.go_on {
            go_on if go_on >= 1.0 => mean,
            go_on => (1.0 - go_on.powf(mean)) / (1.0 - go_on),
        };
        let low = if self.all_go_on { low } else { low.min(1.0) };
        Expected {
            low_seconds: product(self.low_seconds, low),
            high_seconds: product(self.high_seconds, high),
            go_on: self.go_on.powf(mean),
            ..self.again(passes)
        }
    }

    /// Repeats this `passes` times on average, for the mean values.
    fn again(self, passes: f64) -> Expected {
        // Half of the other passes are before a pass, on average.
        let before = (passes - 1.0).max(0.0) / 2.0;
        let before = product(product(self.requests, self.mean_seconds), before);
        Expected {
            mean_seconds: product(self.mean_seconds, passes),
            requests: product(self.requests, passes),
            connects: product(self.connects, passes),
            lead: product(self.lead + before, passes),
            ..self
        }
    }

    /// Repeats this until the user must leave or a step ends the iteration.
    fn forever(self) -> Expected {
        if self.go_on >= 1.0 {
            let forever = f64::INFINITY;
            let Expected { low_seconds, mean_seconds, high_seconds, requests, .. } = self;
            let endless = Endless { low_seconds, mean_seconds, high_seconds, requests };
            return Expected {
                low_seconds: if self.all_go_on { forever } else { low_seconds },
                mean_seconds: forever,
                high_seconds: forever,
                requests: product(requests, forever),
                lead: 0.0,
                endless: Some(endless),
                go_on: 0.0,
                all_go_on: false,
                ..self
            };
        }
        let passes = 1.0 / (1.0 - self.go_on);
        Expected {
            high_seconds: product(self.high_seconds, f64::INFINITY),
            go_on: 0.0,
            ..self.again(passes)
        }
    }

    /// Repeats this for a time; the last pass runs to its end.
    fn during(self, seconds: f64) -> Expected {
        let begun = |each: f64| (seconds / each).ceil();
        let (fewest, most) = (begun(self.high_seconds), begun(self.low_seconds));
        let passes = match self.mean_seconds {
            _ if fewest == most && most.is_finite() => most.max(1.0),
            // The last pass starts before the end.
            mean if mean > 0.0 => seconds / mean + 0.5,
            _ => 1.0,
        };
        Expected {
            low_seconds: if self.all_go_on { seconds } else { self.low_seconds.min(seconds) },
            mean_seconds: seconds.max(product(self.mean_seconds, passes)),
            high_seconds: seconds + self.high_seconds,
            guessed: true,
            ..self.again(passes)
        }
    }

    /// This or, if a condition is false, `other`.
    fn either(self, other: Expected) -> Expected {
        Expected {
            low_seconds: self.low_seconds.min(other.low_seconds),
            high_seconds: self.high_seconds.max(other.high_seconds),
            guessed: true,
            endless: self.endless.or(other.endless),
            go_on: self.go_on.max(other.go_on),
            all_go_on: self.all_go_on && other.all_go_on,
            ..self
        }
    }

    /// One of these, with these probabilities.
    fn by_chance(parts: &[(f64, Expected)]) -> Expected {
        let sum = |value: fn(&Expected) -> f64| {
            parts.iter().map(|(share, one)| product(*share, value(one))).sum()
        };
        let taken = || parts.iter().filter(|(share, _)| *share > 0.0).map(|(_, one)| one);
        let beats: Vec<(f64, f64)> = parts
            .iter()
            .map(|(share, one)| (product(*share, one.mean_seconds), one.beats))
            .collect();
        let low = taken().map(|one| one.low_seconds).fold(f64::INFINITY, f64::min);
        Expected {
            low_seconds: if low.is_finite() { low } else { 0.0 },
            mean_seconds: sum(|one| one.mean_seconds),
            high_seconds: taken().map(|one| one.high_seconds).fold(0.0, f64::max),
            requests: sum(|one| one.requests),
            connects: sum(|one| one.connects),
            lead: sum(|one| one.lead),
            beats: mean_of(&beats),
            guessed: taken().any(|one| one.guessed),
            endless: taken().find_map(|one| one.endless),
            go_on: sum(|one| one.go_on),
            all_go_on: taken().all(|one| one.all_go_on),
        }
    }
}

/// The minimum number of times that a user executes such a step in one pass through its session:
/// steps below a condition or a list count as never, and a loop as once.
pub(crate) fn passes(session: &Session, wanted: &dyn Fn(&Statement) -> bool) -> f64 {
    let mut passing = Passing { wanted, sum: 0.0, on: 1.0, next: 0.0 };
    passing.block(&session.before);
    passing.block(&session.steps);
    passing.on += std::mem::take(&mut passing.next);
    passing.block(&session.after);
    passing.sum
}

struct Passing<'w> {
    wanted: &'w dyn Fn(&Statement) -> bool,
    sum: f64,
    /// The share of users that reach the next step.
    on: f64,
    /// The share of users whose iteration has ended.
    next: f64,
}

impl Passing<'_> {
    fn block(&mut self, steps: &[Statement]) {
        steps.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        self.sum += if (self.wanted)(statement) { self.on } else { 0.0 };
        match statement {
            Statement::Repeat { low: 0, .. }
            | Statement::ForEach { .. }
            | Statement::While { .. } => {}
            Statement::Repeat { steps, .. }
            | Statement::During { steps, .. }
            | Statement::Transaction { steps, .. } => self.block(steps),
            Statement::Forever(steps) => {
                self.block(steps);
                self.on = 0.0;
            }
            Statement::If { otherwise, .. } => self.block(otherwise),
            Statement::Choose(ways) => {
                let all: f64 = ways.iter().map(|way| f64::from(way.weight)).sum();
                let (all_on, mut on) = (self.on, 0.0);
                for way in ways {
                    self.on = all_on * f64::from(way.weight) / all.max(1.0);
                    self.block(&way.steps);
                    on += self.on;
                }
                self.on = on;
            }
            Statement::Next => self.next += std::mem::take(&mut self.on),
            Statement::Leave | Statement::Stop(_) => self.on = 0.0,
            _ => {}
        }
    }
}
