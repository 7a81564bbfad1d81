//! Forecasts a run over time: walks through the phases of each load, in which users start, run
//! their sessions and leave. Activity follows from Little's law.

use throng_program::{Amount, Arrivals, Churn, Drive, Iterations, Program, Session, Statement};

use super::{Assumed, Bound, Forecast, ForecastPart, connects, pauses, rates, there};
use crate::expected::{SessionExpected, product};
use crate::flow::Flow;
use crate::plan::Planned;
use crate::profile::Profile;
use crate::starts::Chances as _;

/// The forecast of all phases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Over time, by load.
    pub stretches: Vec<Stretch>,
    /// By session.
    pub iterations: Vec<f64>,
    /// By session, with heartbeats.
    pub requests: Vec<f64>,
    /// Opened in all.
    pub connections: f64,
    /// Until the end of the last phase.
    pub seconds: f64,
}

/// A time span in which all rates change linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    pub load: usize,
    /// Seconds since the start of the run.
    pub begin: f64,
    pub seconds: f64,
    pub from: Rates,
    pub to: Rates,
}

/// The rates at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Users that stay.
    pub users: f64,
    /// Per second, like all fields below.
    pub arrivals: f64,
    pub iterations: f64,
    pub requests: f64,
}

impl Course {
    pub fn requests(&self) -> f64 {
        self.requests.iter().sum()
    }

    /// The peak number of requests per second of all loads together.
    pub fn requests_peak(&self) -> f64 {
        self.peak(|rates| rates.requests)
    }

    /// The peak of a value. It is at the end of a stretch, because values change linearly within
    /// it.
    pub fn peak(&self, of: fn(&Rates) -> f64) -> f64 {
        let single = self.stretches.iter().all(|one| one.load == 0);
        let ends = |one: &Stretch| of(&one.from).max(of(&one.to));
        if single {
            return self.stretches.iter().map(ends).fold(0.0, f64::max);
        }
        let loads = self.stretches.iter().map(|one| one.load + 1).max().unwrap_or(0);
        let at = |time: f64| {
            let mut highest = vec![0.0_f64; loads];
            for one in &self.stretches {
                let within = time - one.begin;
                if within < 0.0 || within > one.seconds {
                    continue;
                }
                let part = if one.seconds > 0.0 { within / one.seconds } else { 1.0 };
                let (from, to) = (of(&one.from), of(&one.to));
                let there = if from == to { to } else { from + (to - from) * part };
                highest[one.load] = highest[one.load].max(there);
            }
            highest.into_iter().sum::<f64>()
        };
        let times = self.stretches.iter().flat_map(|one| [one.begin, one.begin + one.seconds]);
        times.map(at).fold(0.0, f64::max)
    }

    /// Iterations of these sessions together.
    pub fn iterations_of(&self, sessions: &[bool]) -> f64 {
        let own = self.iterations.iter().zip(sessions).filter(|(_, wanted)| **wanted);
        own.map(|(iterations, _)| iterations).sum()
    }

    /// Ends the forecast when these sessions have run `most` iterations.
    pub fn capped(self, sessions: &[bool], most: f64) -> Course {
        let all = self.iterations_of(sessions);
        if all <= most {
            return self;
        }
        let part = if all.is_finite() { most / all } else { 0.0 };
        let cut = |sums: Vec<f64>| -> Vec<f64> {
            sums.into_iter().map(|sum| if sum.is_finite() { sum * part } else { sum }).collect()
        };
        Course {
            iterations: cut(self.iterations),
            requests: cut(self.requests),
            connections: self.connections * part,
            ..self
        }
    }
}

impl Forecast<'_> {
    /// The forecast over time.
    pub fn course(&self, assumed: Assumed) -> Course {
        let sessions = self.program.sessions.iter().zip(&self.sessions);
        let doings: Vec<Doing> =
            sessions.map(|(session, it)| Doing::new(session, it, self.program, assumed)).collect();
        let none = vec![0.0; doings.len()];
        let mut course = Course { iterations: none.clone(), requests: none, ..Course::default() };
        for (number, part) in self.loads.iter().enumerate() {
            let begin = part.planned.first().map_or(0.0, |one| one.begin.as_secs_f64());
            let mut walk = Walk {
                program: self.program,
                number,
                doings: &doings,
                bound: assumed.bound,
                now: begin,
                left: 0.0,
                come: 0.0,
                comers: vec![0.0; doings.len()],
                begun: vec![0.0; doings.len()],
                requests: vec![0.0; doings.len()],
                batches: 0,
                arrived: Vec::new(),
                course: &mut course,
            };
            walk.load(part);
        }
        course
    }
}

/// What a user of a session does.
struct Doing {
    /// The session has a single iteration, in which the user stays.
    stays: bool,
    /// It has long-lived connections, which can be lost.
    connects_itself: bool,
    /// Duration of an iteration; infinite if the user stays.
    seconds: f64,
    requests: f64,
    connects: f64,
    /// Done once, regardless of the number of iterations.
    requests_once: f64,
    connects_once: f64,
    /// Per second while the user is present.
    beats: f64,
    /// For an arrived user: how long it is present, how long it sends heartbeats, and when its
    /// requests happen on average.
    there: f64,
    beating: f64,
    lead: f64,
}

impl Doing {
    fn new(
        session: &Session,
        expected: &SessionExpected,
        program: &Program,
        assumed: Assumed,
    ) -> Doing {
        let SessionExpected { before, steps, after } = *expected;
        let answer = assumed.answer_seconds;
        let finite = |requests: f64| if requests.is_finite() { requests } else { 0.0 };
        let asked = finite(steps.requests);
        let mut requests_once = before.requests + after.requests;
        let mut connects_once = before.connects + after.connects + kept(session, program);
        let (mut requests, mut connections) = (asked, steps.connects);
        let stays = steps.mean_seconds.is_infinite();
        if stays {
            // A user that stays forever runs the steps before that once.
            (requests_once, connects_once) =
                (requests_once + asked, connects_once + steps.connects);
            (requests, connections) = (0.0, 0.0);
        }
        if !program.connection.keep_alive && !connects(session) {
            (connects_once, connections) = (requests_once, requests);
        }
        let looped = steps.endless.map_or(0.0, |pass| {
            let pauses = assumed.seconds(pass.low_seconds, pass.mean_seconds, pass.high_seconds);
            let length = pauses + pass.requests * answer;
            if pass.requests > 0.0 { pass.requests / length } else { 0.0 }
        });
        let whole = before.then(steps);
        let lead = if finite(whole.requests) > 0.0 { whole.lead / whole.requests } else { 0.0 };
        // The last request only starts.
        let answers = (finite(whole.requests) - 1.0).max(0.0) * answer / 2.0;
        Doing {
            stays,
            connects_itself: connects(session),
            seconds: pauses(&steps, assumed) + asked * answer,
            requests,
            connects: connections,
            requests_once,
            connects_once,
            beats: steps.beats + looped,
            there: there(expected, assumed),
            beating: there(expected, Assumed { bound: assumed.bound.opposite(), ..assumed }),
            lead: if stays { 0.0 } else { lead + answers },
        }
    }

    /// Iterations per second of this many users.
    fn iterations(&self, users: f64) -> f64 {
        match () {
            () if users <= 0.0 => 0.0,
            () if self.seconds > 0.0 => users / self.seconds,
            () => f64::INFINITY,
        }
    }
}

/// The connections that a user keeps open for all its HTTP requests.
fn kept(session: &Session, program: &Program) -> f64 {
    let asks = session.all().filter(|one| one.opens_itself());
    let mut links: Vec<_> = asks.map(Statement::link).collect();
    links.sort_unstable();
    links.dedup();
    match program.connection.keep_alive {
        true if !links.is_empty() && !connects(session) => session.connections() as f64,
        true => links.len() as f64,
        false => 0.0,
    }
}

/// How many of these users disconnect per second.
pub(super) fn falling_out(churn: &Churn, users: f64) -> f64 {
    match churn.amount {
        Amount::Rate(rate) => rate.min(users),
        Amount::Share { share, every } => users * share / every.as_secs_f64().max(1e-3),
    }
}

/// How many disconnect in a time span; those of its first moment only if users are already present.
fn fallen_out(churn: &Churn, users: f64, seconds: f64, is_first: bool) -> f64 {
    match churn.amount {
        Amount::Rate(rate) => {
            let first = if is_first { 1.0 } else { 0.0 };
            ((rate.min(users) * seconds).ceil() - first).max(0.0)
        }
        Amount::Share { share, every } => {
            let times = (seconds / every.as_secs_f64().max(1e-3)).ceil() - 1.0;
            times.max(0.0) * (share * users).round()
        }
    }
}

/// Pieces of a ramp in which the mix of sessions changes as users start.
const COUNTED_PIECES: u32 = 100;

/// The share of the offered load that a number of servers accepts, if load that finds no free
/// server is dropped. On average, they use their whole capacity. At least, each accepts what one
/// server with its own random part of the load would (Erlang's loss formula for one server, which
/// is lower than for many).
fn carried(servers: f64, offered: f64, bound: Bound) -> f64 {
    match bound {
        Bound::Most => 1.0,
        _ if !offered.is_finite() => 0.0,
        Bound::Mean => (servers / offered).min(1.0),
        Bound::Least => servers / (servers + offered),
    }
}

/// Iterations started by users that are free `all_free` times per second and have no rate, or
/// cannot keep it all the time. Starts that wait happen later.
fn begun_freely(drops: bool, one: &Planned, all_free: f64, time: f64) -> f64 {
    let Some(profile) = &one.iterations else { return product(all_free, time) };
    let (mut begun, mut waiting) = (0.0, 0.0);
    for (_, seconds, (from, to)) in rates(Some(profile), time) {
        let due = waiting + f64::midpoint(from, to) * seconds;
        let now = due.min(product(all_free, seconds));
        begun += now;
        waiting = if drops { 0.0 } else { due - now };
    }
    begun
}

/// A walk through the phases of a load. Its users are numbered in the order in which they start.
struct Walk<'w> {
    program: &'w Program,
    number: usize,
    doings: &'w [Doing],
    bound: Bound,
    /// Seconds since the start of the run.
    now: f64,
    /// The number of staying users that have left, and that have started.
    left: f64,
    come: f64,
    /// By session: users that started to stay or restarted, and the work of those that stay.
    comers: Vec<f64>,
    begun: Vec<f64>,
    requests: Vec<f64>,
    /// Number of times that users started or stopped. If it is one, all are present for the same
    /// time.
    batches: usize,
    arrived: Vec<Arrived>,
    course: &'w mut Course,
}

/// The users of a phase that run their session once.
struct Arrived {
    begin: f64,
    /// Pieces with start and length in seconds, and the arrivals per second.
    rates: Vec<(f64, f64, (f64, f64))>,
    /// By session.
    come: Vec<f64>,
}

/// What the users of each session do per second.
struct Working {
    iterations: Vec<f64>,
    requests: Vec<f64>,
}

impl Walk<'_> {
    /// How many users of a range of numbers run each session.
    fn between(&self, from: f64, to: f64) -> Vec<f64> {
        let of = |users| self.program.users_of_sessions(self.number, users);
        of(to).iter().zip(of(from)).map(|(all, before)| all - before).collect()
    }

    /// The sessions of this many staying users.
    fn present(&self, users: f64) -> Vec<f64> {
        self.between(self.left, self.left + users)
    }

    /// The sessions of this many new users.
    fn coming(&mut self, users: f64) -> Vec<f64> {
        let before = self.come;
        self.come += users;
        self.between(before, self.come)
    }

    fn load(&mut self, part: &ForecastPart<'_>) {
        for one in &part.planned {
            let phase = &part.load.phases[one.phase];
            self.come_to_stay(one);
            let begin = self.now;
            match &phase.drive {
                Drive::Iterations(iterations) => self.iterations(iterations, one),
                Drive::Users(_) | Drive::Hold => self.staying(one),
                Drive::Arrivals(_) => {
                    self.staying(one);
                    self.arrive(part, one, begin);
                }
            }
            let churn = phase.churn.as_ref();
            churn.into_iter().for_each(|churn| self.churn(churn, one, self.now - begin));
        }
        self.leave();
        self.course.seconds = self.course.seconds.max(self.now);
    }

    /// Users that start to stay run the part before their steps once.
    fn come_to_stay(&mut self, one: &Planned) {
        if one.users.0 == 0 {
            self.left = self.come;
        }
        if one.users.0 != one.users.1 {
            self.batches += if one.ramp.is_zero() { 1 } else { 2 };
        }
        let come = self.coming(one.users.1.saturating_sub(one.users.0) as f64);
        self.begin_once(&come);
    }

    /// Users of each session start.
    fn begin_once(&mut self, users: &[f64]) {
        for (session, users) in users.iter().enumerate() {
            let doing = &self.doings[session];
            self.comers[session] += users;
            self.begun[session] += if doing.stays { *users } else { 0.0 };
            self.requests[session] += product(*users, doing.requests_once);
            self.course.connections += product(*users, doing.connects_once);
        }
    }

    /// What this many staying users do per second at full speed.
    fn working(&self, users: f64) -> Working {
        let present = self.present(users);
        let iterations: Vec<f64> =
            self.doings.iter().zip(&present).map(|(it, users)| it.iterations(*users)).collect();
        let asked = |(it, rate): (&Doing, &f64)| product(it.requests, *rate);
        let asked = self.doings.iter().zip(&iterations).map(asked);
        let beats = self.doings.iter().zip(&present).map(|(it, users)| product(it.beats, *users));
        let requests = asked.zip(beats).map(|(asked, beats)| asked + beats).collect();
        Working { iterations, requests }
    }

    fn staying(&mut self, one: &Planned) {
        let is_counted = self.program.sessions.iter().any(|session| session.count.is_some());
        let ramp_pieces = if is_counted { COUNTED_PIECES } else { 1 };
        for (begin, seconds, (from, to)) in one.pieces(ramp_pieces) {
            let ends = (self.working(from), self.working(to));
            for session in 0..self.doings.len() {
                let mean = |of: fn(&Working) -> &Vec<f64>| {
                    f64::midpoint(of(&ends.0)[session], of(&ends.1)[session])
                };
                let iterations = product(mean(|it| &it.iterations), seconds);
                self.begun[session] += iterations;
                self.requests[session] += product(mean(|it| &it.requests), seconds);
                self.course.connections += product(iterations, self.doings[session].connects);
            }
            let rates = |users: f64, it: &Working| Rates {
                users,
                arrivals: 0.0,
                iterations: it.iterations.iter().sum(),
                requests: it.requests.iter().sum(),
            };
            let (from, to) = (rates(from, &ends.0), rates(to, &ends.1));
            self.stretch(self.now + begin, seconds, from, to);
        }
        self.now += one.length.unwrap_or_default().as_secs_f64();
    }

    fn stretch(&mut self, begin: f64, seconds: f64, from: Rates, to: Rates) {
        self.course.stretches.push(Stretch { load: self.number, begin, seconds, from, to });
    }

    fn iterations(&mut self, iterations: &Iterations, one: &Planned) {
        let users = one.users.1 as f64;
        let (present, free) = (self.present(users), self.working(users).iterations);
        let all_free: f64 = free.iter().sum();
        let peak = one.iterations.as_ref().map_or(f64::INFINITY, Profile::peak);
        let is_scheduled = peak < all_free;
        let time = one.length.map_or(f64::INFINITY, |length| length.as_secs_f64());
        let begun = match &one.iterations {
            Some(rate) if is_scheduled && time.is_finite() => {
                let starts = rate.starts(one.length.unwrap_or_default());
                let offered = product(users, peak / all_free);
                let taken =
                    if iterations.drops { carried(users, offered, self.bound) } else { 1.0 };
                iterations.spacing.bound(starts, self.bound) as f64 * taken
            }
            _ => begun_freely(iterations.drops, one, all_free, time),
        };
        let rate = if time.is_finite() && time > 0.0 { begun / time } else { peak.min(all_free) };
        let more = if !is_scheduled && self.bound == Bound::Most { users } else { 0.0 };
        let all = iterations.total.map_or(f64::INFINITY, |total| total as f64);
        let total = all.min(begun + more);
        // At a rate that all can keep, all do the same number; otherwise a free user takes the next
        // one.
        let shares = if !is_scheduled && all_free.is_finite() { free } else { present.clone() };
        let whole = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let seconds = self.time_of(total, rate, time, is_scheduled);
        let mut each = 0.0;
        let mut beating = 0.0;
        for (session, share) in shares.into_iter().enumerate() {
            let doing = &self.doings[session];
            let own = product(total, share / whole);
            let beats = product(doing.beats, present[session]);
            let is_cut = self.bound == Bound::Least && total < all;
            let done = if is_cut { (own - present[session]).max(0.0) } else { own };
            self.course.iterations[session] += own;
            self.course.requests[session] +=
                product(done, doing.requests) + product(beats, seconds);
            self.course.connections += product(own, doing.connects);
            each += product(share / whole, doing.requests);
            beating += beats;
        }
        let now = |rate: f64| {
            let iterations = rate.min(all_free);
            let requests = product(iterations, each) + beating;
            Rates { users, iterations, requests, ..Rates::default() }
        };
        let pieces = match &one.iterations {
            Some(profile) => rates(Some(profile), seconds),
            None => vec![(0.0, seconds, (rate, rate))],
        };
        for (after, length, (from, to)) in pieces {
            self.stretch(self.now + after, length, now(from), now(to));
        }
        self.now += seconds;
    }

    /// The duration of this many iterations at this rate, at most `time`.
    fn time_of(&self, total: f64, rate: f64, time: f64, is_scheduled: bool) -> f64 {
        if is_scheduled && time.is_finite() {
            return time;
        }
        let longest = self.doings.iter().map(|it| it.seconds).fold(0.0, f64::max);
        let last = if self.bound == Bound::Least { longest } else { 0.0 };
        let seconds = if rate > 0.0 && rate.is_finite() { total / rate + last } else { 0.0 };
        if total.is_finite() { seconds.min(time) } else { time }
    }

    /// Users whose connection is closed restart; users without one do not.
    fn churn(&mut self, churn: &Churn, one: &Planned, seconds: f64) {
        let users = f64::midpoint(one.users.0 as f64, one.users.1 as f64);
        let mut shares = self.present(users);
        let can = shares.iter_mut().zip(self.doings);
        can.for_each(|(own, it)| *own = if it.connects_itself { *own } else { 0.0 });
        let all: f64 = shares.iter().sum();
        if all <= 0.0 {
            return;
        }
        shares.iter_mut().for_each(|own| *own /= all);
        let back = fallen_out(churn, users, seconds, one.users.0 == 0);
        let anew: Vec<f64> = shares.iter().map(|share| share * back).collect();
        self.begin_once(&anew);
        self.batches += 2;
        let once = shares.iter().zip(self.doings);
        let each: f64 = once.map(|(share, it)| share * it.requests_once).sum();
        for one in self.course.stretches.iter_mut().rev() {
            if one.load != self.number || one.begin + one.seconds <= self.now - seconds {
                break;
            }
            one.from.requests += falling_out(churn, one.from.users) * each;
            one.to.requests += falling_out(churn, one.to.users) * each;
        }
    }

    /// Users that run their session once arrive until now.
    fn arrive(&mut self, part: &ForecastPart<'_>, one: &Planned, begin: f64) {
        let seconds = self.now - begin;
        let pieces = rates(one.arrivals.as_ref(), seconds);
        let due = part.coming(one, self.bound) as f64;
        let starts = due * self.taken_part(&part.load.phases[one.phase].drive, &pieces);
        let come = self.coming(starts);
        let each = |doing: &Doing| doing.requests + doing.requests_once;
        let asked: f64 =
            come.iter().zip(self.doings).map(|(own, it)| product(*own, each(it))).sum();
        let each = if starts > 0.0 { asked / starts } else { 0.0 };
        let staying = self.course.stretches.pop();
        for (after, length, (from, to)) in &pieces {
            let there = staying.map_or(Rates::default(), |staying| staying.to);
            let rates = |rate: f64| Rates {
                arrivals: rate,
                iterations: there.iterations + rate,
                requests: there.requests + product(rate, each),
                ..there
            };
            self.stretch(begin + after, *length, rates(*from), rates(*to));
        }
        self.arrived.push(Arrived { begin, rates: pieces, come });
    }

    /// The accepted share of arrivals if their number is limited: what as many servers accept at
    /// the peak rate.
    fn taken_part(&self, drive: &Drive, pieces: &[(f64, f64, (f64, f64))]) -> f64 {
        let Drive::Arrivals(Arrivals { max: Some(max), .. }) = drive else { return 1.0 };
        let peak = pieces.iter().map(|(_, _, (from, to))| from.max(*to)).fold(0.0, f64::max);
        let of_one = self.between(self.come, self.come + 1.0);
        let there = self.doings.iter().zip(of_one).map(|(it, part)| product(part, it.there));
        carried(*max as f64, product(peak, there.sum()), self.bound)
    }

    /// The load has ended: all remaining users leave.
    fn leave(&mut self) {
        for arrived in std::mem::take(&mut self.arrived) {
            self.end_of(&arrived);
        }
        for (session, doing) in self.doings.iter().enumerate() {
            let comers = self.comers[session];
            let (mut begun, mut requests) = (self.begun[session], self.requests[session]);
            let beat = if doing.beats > 0.0 { comers } else { 0.0 };
            match self.bound {
                Bound::Mean => {}
                Bound::Least => {
                    // Incomplete iterations do not count.
                    requests -= product(comers, doing.requests + doing.requests_once) + beat;
                    requests = requests.max(0.0);
                }
                Bound::Most => {
                    let before = begun;
                    begun = match self.batches {
                        _ if doing.stays => begun,
                        // All users are present for the same time.
                        1 if comers > 0.0 => comers * (begun / comers - 1e-9).ceil(),
                        _ => begun + comers,
                    };
                    let more = if before.is_finite() { begun - before } else { 0.0 };
                    requests += product(more, doing.requests) + beat;
                    self.course.connections += product(more, doing.connects);
                }
            }
            self.course.iterations[session] += begun;
            self.course.requests[session] += requests;
        }
    }

    /// What the users that arrived in a phase do until the load ends.
    fn end_of(&mut self, arrived: &Arrived) {
        let mut flow = Flow::default();
        for (after, seconds, rates) in &arrived.rates {
            flow.add(arrived.begin + after, *seconds, *rates);
        }
        let all = flow.until(self.now).max(f64::MIN_POSITIVE);
        for (session, come) in arrived.come.iter().enumerate() {
            let doing = &self.doings[session];
            let each = doing.requests + doing.requests_once;
            // Users that arrived too late do not finish.
            let late = match self.bound {
                Bound::Least => doing.there,
                Bound::Mean => doing.lead,
                Bound::Most => 0.0,
            };
            let part = flow.until(self.now - late) / all;
            // Each user may send one more or one less than its time suggests.
            let one = if doing.beats > 0.0 { 1.0 } else { 0.0 };
            let beats = product(doing.beats, flow.there(self.now, doing.beating) / all);
            let beats = match self.bound {
                Bound::Least => (beats - one).max(0.0),
                Bound::Mean => beats,
                Bound::Most => beats + one,
            };
            self.course.iterations[session] += come;
            self.course.requests[session] += product(*come, product(part, each) + beats);
            let opened = doing.connects + doing.connects_once;
            let opening = if self.bound == Bound::Least { part } else { 1.0 };
            self.course.connections += product(*come, product(opening, opened));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhausted_data_ends_the_load() {
        let course = Course {
            iterations: vec![1000.0, 500.0],
            requests: vec![2000.0, 1000.0],
            ..Course::default()
        };
        let capped = |sessions, most| course.clone().capped(sessions, most).requests();
        assert_eq!(capped(&[true, false], 200.0), 600.0);
        assert_eq!(capped(&[true, true], f64::INFINITY), 3000.0);
        // Sessions without rows do not use them up.
        assert_eq!(capped(&[false, false], 0.0), 3000.0);
    }

    #[test]
    fn loads_add_up_while_they_overlap() {
        let stretch = |load, begin, seconds, from, to| {
            let rates = |requests| Rates { requests, ..Rates::default() };
            Stretch { load, begin, seconds, from: rates(from), to: rates(to) }
        };
        let mut course = Course {
            stretches: vec![
                stretch(0, 0.0, 10.0, 0.0, 100.0),
                stretch(0, 10.0, 5.0, 20.0, 20.0),
                stretch(1, 5.0, 10.0, 7.0, 7.0),
            ],
            ..Course::default()
        };
        assert_eq!(course.requests_peak(), 107.0);
        course.stretches[2].begin = 11.0;
        assert_eq!(course.requests_peak(), 100.0);
    }
}
