//! What some steps are expected to take: time by their pauses, and requests.

use throng_program::{Every, Heartbeat, Link, Pause, Session, Statement, Stay, Way};

/// What a session is expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionExpected {
    /// What is done once when a user comes.
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
        // One that stops after a few sends none in the long run.
        Some(_) => 0.0,
        None => f64::from(heartbeat.fault.times) / heartbeat.every.as_secs_f64(),
    }
}

/// Requests per second of what is done again and again.
fn per_second(every: &[Every], links: &[Link]) -> f64 {
    let of = |one: &Every| {
        let requests = Expected::of_block(&one.body.steps, links).requests;
        // A body without end is done once.
        if requests.is_finite() { requests / one.time.as_secs_f64() } else { 0.0 }
    };
    every.iter().map(of).sum()
}

/// What steps take on average and at the ends, without the time that the target needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Seconds of thinking and staying: the shortest, on average, the longest. Infinite where
    /// users stay until they are told to leave.
    pub low_seconds: f64,
    pub mean_seconds: f64,
    pub high_seconds: f64,
    /// HTTP requests and messages sent, on average.
    pub requests: f64,
    /// Long-lived connections opened, on average.
    pub connects: f64,
    /// Of all these requests together, the seconds of pauses before each.
    pub lead: f64,
    /// Heartbeats and what is done every so often, per second, on average over all this time.
    pub beats: f64,
    /// A condition, a list or a value that is known only in the run was taken as once.
    pub guessed: bool,
    /// What is done without end, if anything is.
    pub endless: Option<Endless>,
    /// How many of those who begin come to the end: others leave or begin the next iteration.
    go_on: f64,
    /// Whether all of them do for sure.
    all_go_on: bool,
}

/// One pass of a loop without end.
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

/// How many standard deviations from its mean a normal pause is taken to be at most.
const NORMAL_DEVIATIONS: f64 = 3.0;

/// A product in which nothing, however often, is nothing.
fn product(one: f64, other: f64) -> f64 {
    if one == 0.0 || other == 0.0 { 0.0 } else { one * other }
}

/// The mean of rates, each of which holds for so many seconds.
fn mean_of(parts: &[(f64, f64)]) -> f64 {
    // What lasts for ever outweighs all else.
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

    /// Steps of a session that has these links, one after another.
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
                // Its own heartbeat is there instead of that of the link.
                let link = links.get(usize::from(stay.link));
                let instead = own.map_or(0.0, |own| own - link.map_or(0.0, beats));
                Expected::of_stay(stay).and_again(per_second(&stay.every, links) + instead)
            }
            simple => Expected::of_simple(simple),
        }
    }

    /// A step without steps inside.
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
        // When the target ends the connection is not known.
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

    /// With so many messages per second beside it.
    fn and_again(self, beats: f64) -> Expected {
        Expected { beats: (self.beats + beats).max(0.0), ..self }
    }

    fn guessed(self) -> Expected {
        Expected { guessed: true, ..self }
    }

    /// This and then `after`.
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

    /// This and `other` at the same time.
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

    /// This so many times, one after another.
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

    /// So many passes of this on average, as far as it is a mean.
    fn again(self, passes: f64) -> Expected {
        // Before a pass are those before it: half of them on average.
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

    /// This without end: until the user is told to leave, or a step ends the iteration.
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

    /// This again and again until the time is over; the last pass is done to its end.
    fn during(self, seconds: f64) -> Expected {
        let begun = |each: f64| (seconds / each).ceil();
        let (fewest, most) = (begun(self.high_seconds), begun(self.low_seconds));
        let passes = match self.mean_seconds {
            _ if fewest == most && most.is_finite() => most.max(1.0),
            // The last one is begun before the end.
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

    /// This or, where a condition does not hold, `other`.
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

    /// One of these, by their shares.
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

/// How often at least a user comes by such a step when it does its session once: what hangs on a
/// condition or a list is never done, and a loop once.
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
    /// The share of users who come to what follows.
    on: f64,
    /// Of those whose iteration has ended.
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
