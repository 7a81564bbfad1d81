//! What a load comes to, before it is run: iterations, requests, rows, users. Closed loads depend
//! on how fast the service answers; two cases are reckoned.

use std::time::Duration;

use throng_base::language::say;
use throng_base::units::{format_count, format_duration};
use throng_data::Take;
use throng_load::{Planned, SessionExpected, plan};
use throng_program::{Amount, Churn, Drive, Iterations, Program};

/// What an answer is taken to need.
const ANSWER_SECONDS: f64 = 0.1;
/// Steps in which a ramp is summed up.
const RAMP_STEPS: u32 = 100;

/// What all phases come to.
pub(crate) struct Estimate {
    quick: Sum,
    slow: Sum,
    /// All phases have a length that is known.
    complete: bool,
    /// By session: iterations when answers take no time and data never ends.
    wanted: Vec<f64>,
    /// Users who stay, and those who arrive.
    users: u64,
    arrivals: f64,
}

#[derive(Clone, Default)]
struct Sum {
    /// By session.
    iterations: Vec<f64>,
    requests: f64,
    /// Requests per second at the highest.
    peak: f64,
}

impl Sum {
    /// Ends when these sessions have done so many iterations.
    fn capped(self, uses: &[bool], most: f64) -> Sum {
        let of = self.iterations.iter().zip(uses).filter(|(_, uses)| **uses);
        let iterations: f64 = of.map(|(iterations, _)| iterations).sum();
        if iterations <= most {
            return self;
        }
        let part = if iterations.is_finite() { most / iterations } else { 0.0 };
        let requests = if self.requests.is_finite() { self.requests * part } else { f64::INFINITY };
        Sum { requests, ..self }
    }
}

/// What a session asks for.
struct Session {
    pause_seconds: f64,
    requests: f64,
    requests_once: f64,
    /// Heartbeats per second of a user.
    beats: f64,
}

impl Session {
    fn new(expected: SessionExpected) -> Session {
        let steps = expected.steps;
        let once = expected.before.requests + expected.after.requests;
        // Who stays for ever does what stands before it once.
        let stays = steps.mean_seconds.is_infinite() && steps.requests.is_finite();
        let (requests, requests_once) =
            if stays { (0.0, once + steps.requests) } else { (steps.requests, once) };
        let beats = steps.beats;
        let pause_seconds = steps.mean_seconds;
        Session { pause_seconds, requests, requests_once, beats }
    }
}

impl Estimate {
    /// The run ends when so many rows of one of these sources are used up.
    pub(super) fn new(program: &Program, planned: &[Planned], ending: &[(u16, u64)]) -> Estimate {
        let expected = program.sessions.iter().map(SessionExpected::of);
        let sessions: Vec<Session> = expected.map(Session::new).collect();
        let quick = sum(program, &sessions, planned, 0.0);
        let mut estimate = Estimate {
            wanted: quick.iterations.clone(),
            quick,
            slow: sum(program, &sessions, planned, ANSWER_SECONDS),
            complete: planned.iter().all(|one| one.length.is_some()),
            users: 0,
            arrivals: 0.0,
        };
        for (source, rows) in ending {
            let uses = program.sessions_with(*source);
            estimate.quick = estimate.quick.capped(&uses, *rows as f64);
            estimate.slow = estimate.slow.capped(&uses, *rows as f64);
        }
        let mut staying = 0;
        for one in planned {
            // Who leaves and comes again is another user.
            estimate.users += one.users.1.saturating_sub(staying);
            staying = one.users.1;
            let length = one.length.unwrap_or_default().as_secs_f64();
            let (from, to) = one.arrivals.unwrap_or_default();
            estimate.arrivals += length * f64::midpoint(from, to);
        }
        estimate
    }

    /// When no data ends it.
    pub(crate) fn of(program: &Program) -> Estimate {
        Estimate::new(program, &plan(&program.load), &[])
    }

    /// Requests per second at the highest, when answers take a moment.
    pub(crate) fn peak(&self) -> f64 {
        self.slow.peak
    }

    /// How many rows of a source are taken, when answers come at once: the most.
    pub(super) fn rows_needed(&self, program: &Program, source: u16) -> Option<u64> {
        let take = program.data.get(usize::from(source))?.take;
        let users = self.users as f64 + self.arrivals;
        let rows = match super::by_iteration(take) {
            true => {
                let uses = program.sessions_with(source);
                self.wanted.iter().zip(&uses).filter(|(_, uses)| **uses).map(|(it, _)| it).sum()
            }
            false => program.last_user_with(source, users.ceil() as u64) as f64,
        };
        let is_taken_up = matches!(take, Take::Unique | Take::PerUser);
        (is_taken_up && rows.is_finite() && self.complete).then_some(rows.ceil() as u64)
    }

    // sentences
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let slow = format_duration(Duration::from_secs_f64(ANSWER_SECONDS));
        let (quick, held) = (&self.quick, &self.slow);
        if quick.requests.is_finite() && (quick.requests - held.requests).abs() < 0.5 {
            lines.push(format!(
                "{} requests, up to {}/s",
                figure(quick.requests),
                figure(quick.peak)
            ));
        } else {
            if quick.requests.is_finite() {
                lines.push(format!(
                    "at most {} requests, up to {}/s, when answers take no time",
                    figure(quick.requests),
                    figure(quick.peak)
                ));
            } else {
                lines.push("as many requests as the service answers".to_string());
            }
            lines.push(format!(
                "{} requests, up to {}/s, when every answer takes {slow}",
                figure(held.requests),
                figure(held.peak)
            ));
        }
        if !self.complete {
            lines.push("a phase ends when its work is done: its time is not known".to_string());
        }
        lines.push(match (self.users, self.arrivals.ceil() as u64) {
            (users, 0) => format!("user.id from 1 to {}", format_count(users)),
            (users, arrivals) => {
                format!("user.id from 1 to about {}", format_count(users + arrivals))
            }
        });
        lines.into_iter().map(|line| say(&line).into_owned()).collect()
    }
}

fn sum(program: &Program, sessions: &[Session], planned: &[Planned], answer: f64) -> Sum {
    let iterations = vec![0.0; sessions.len()];
    let mut summing = Summing {
        sessions,
        answer,
        users: Users { program, left: 0.0, come: 0.0 },
        sum: Sum { iterations, ..Sum::default() },
    };
    for (phase, one) in program.load.phases.iter().zip(planned) {
        summing.begin(one);
        match &phase.drive {
            Drive::Arrivals(_) => summing.arrivals(one),
            Drive::Iterations(iterations) => summing.iterations(iterations, one),
            Drive::Users(_) | Drive::Hold => summing.staying(phase.churn.as_ref(), one),
        }
    }
    summing.sum
}

/// The users of a run have the numbers from 1 on, in the order in which they come.
struct Users<'p> {
    program: &'p Program,
    /// So many have come and left.
    left: f64,
    /// So many have come.
    come: f64,
}

impl Users<'_> {
    /// How many of the users from one number to another do each session.
    fn between(&self, from: f64, to: f64) -> Vec<f64> {
        let (before, all) =
            (self.program.users_of_sessions(from), self.program.users_of_sessions(to));
        all.iter().zip(before).map(|(all, before)| all - before).collect()
    }

    /// The sessions of so many who are there.
    fn present(&self, users: f64) -> Vec<f64> {
        self.between(self.left, self.left + users)
    }

    /// The sessions of so many who come.
    fn coming(&mut self, users: f64) -> Vec<f64> {
        let before = self.come;
        self.come += users;
        self.between(before, self.come)
    }
}

/// A sum that goes through the phases.
struct Summing<'p> {
    sessions: &'p [Session],
    /// What an answer takes.
    answer: f64,
    users: Users<'p>,
    sum: Sum,
}

impl Summing<'_> {
    /// Users who come to stay do once what stands before their steps.
    fn begin(&mut self, one: &Planned) {
        if one.users.0 == 0 {
            self.users.left = self.users.come;
        }
        let come = self.users.coming(one.users.1.saturating_sub(one.users.0) as f64);
        let once = come.iter().zip(self.sessions).map(|(users, it)| users * it.requests_once);
        self.sum.requests += once.sum::<f64>();
    }

    fn arrivals(&mut self, one: &Planned) {
        let (from, to) = one.arrivals.unwrap_or_default();
        let starts = one.length.unwrap_or_default().as_secs_f64() * f64::midpoint(from, to);
        let come = self.users.coming(starts);
        let mut asked = 0.0;
        for ((users, session), sum) in come.iter().zip(self.sessions).zip(&mut self.sum.iterations)
        {
            *sum += users;
            asked += users * (session.requests + session.requests_once);
            let beats = session.beats * session.pause_seconds;
            self.sum.requests += if beats.is_finite() { users * beats } else { 0.0 };
        }
        self.sum.requests += asked;
        let each = if starts > 0.0 { asked / starts } else { 0.0 };
        self.sum.peak = self.sum.peak.max(from.max(to) * each);
    }

    fn iterations(&mut self, iterations: &Iterations, one: &Planned) {
        let present = self.users.present(one.users.1 as f64);
        let free = rates(self.sessions, &present, self.answer);
        let all_free: f64 = free.iterations.iter().sum();
        let scheduled = iterations.rate.filter(|rate| *rate < all_free);
        // Who is free begins the next one: with a rate that all can keep, all alike.
        let shares = match scheduled.is_none() && all_free.is_finite() {
            true => free.iterations,
            false => present,
        };
        let whole = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let rate = scheduled.unwrap_or(all_free);
        let length = one.length.unwrap_or_default().as_secs_f64();
        let by_time = if length > 0.0 { rate * length } else { f64::INFINITY };
        let total = iterations.total.map_or(by_time, |total| (total as f64).min(by_time));
        let mut each = 0.0;
        for ((share, session), sum) in
            shares.iter().zip(self.sessions).zip(&mut self.sum.iterations)
        {
            let share = share / whole;
            *sum += if share > 0.0 { total * share } else { 0.0 };
            each += share * session.requests;
        }
        self.sum.requests += if each > 0.0 { total * each } else { 0.0 };
        self.sum.peak = self.sum.peak.max(if each > 0.0 { rate * each } else { 0.0 });
    }

    fn staying(&mut self, churn: Option<&Churn>, one: &Planned) {
        let length = one.length.unwrap_or_default().as_secs_f64();
        for step in 0..RAMP_STEPS {
            let part = (f64::from(step) + 0.5) / f64::from(RAMP_STEPS);
            let users =
                one.users_at(Duration::try_from_secs_f64(length * part).unwrap_or_default());
            let present = self.users.present(users);
            let mut rates = rates(self.sessions, &present, self.answer);
            // Who falls out of its connection begins anew.
            let back = churn.map_or(0.0, |churn| per_second(churn, users)) / users.max(1.0);
            let once = present.iter().zip(self.sessions).map(|(own, it)| own * it.requests_once);
            rates.requests += back * once.sum::<f64>();
            let time = length / f64::from(RAMP_STEPS);
            if time > 0.0 {
                for (sum, rate) in self.sum.iterations.iter_mut().zip(&rates.iterations) {
                    *sum += rate * time;
                }
                self.sum.requests += rates.requests * time;
            }
            self.sum.peak = self.sum.peak.max(rates.requests);
        }
    }
}

/// How many of so many users fall out per second.
fn per_second(churn: &Churn, users: f64) -> f64 {
    match churn.amount {
        Amount::Rate(rate) => rate.min(users),
        Amount::Share { share, every } => users * share / every.as_secs_f64(),
    }
}

/// What is done per second.
struct Rates {
    /// By session.
    iterations: Vec<f64>,
    requests: f64,
}

/// How many iterations and requests per second come of so many users of each session (Little's
/// law), heartbeats with them.
fn rates(sessions: &[Session], users: &[f64], answer: f64) -> Rates {
    let mut rates = Rates { iterations: Vec::with_capacity(sessions.len()), requests: 0.0 };
    for (session, users) in sessions.iter().zip(users) {
        let length = session.pause_seconds + session.requests * answer;
        let rate = match () {
            () if *users <= 0.0 => 0.0,
            () if length > 0.0 => users / length,
            () => f64::INFINITY,
        };
        rates.iterations.push(rate);
        let asks = session.requests > 0.0 && rate > 0.0;
        rates.requests += if asks { rate * session.requests } else { 0.0 };
        rates.requests += users * session.beats;
    }
    rates
}

/// A count that need not be whole.
pub(super) fn figure(count: f64) -> String {
    match count {
        count if count.is_infinite() => "∞".into(),
        count if count >= 100.0 || count == count.round() => format_count(count.round() as u64),
        count => format!("{count:.1}"),
    }
}

pub(super) fn seconds(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => format_duration(time),
        Err(_) => "∞".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pause_seconds: f64, requests: f64) -> Session {
        Session { pause_seconds, requests, requests_once: 0.0, beats: 0.0 }
    }

    #[test]
    fn users_over_length_is_the_rate() {
        let reckoned = |sessions: &[Session], users: &[f64], answer| {
            let rates = rates(sessions, users, answer);
            (rates.iterations.iter().sum::<f64>(), rates.requests)
        };
        let sessions = [session(1.0, 2.0), session(4.0, 1.0)];
        assert_eq!(reckoned(&sessions, &[4.0, 4.0], 0.0), (5.0, 9.0));
        assert_eq!(reckoned(&sessions, &[0.0, 4.0], 0.0), (1.0, 1.0));
        assert_eq!(reckoned(&[session(0.8, 2.0)], &[10.0], 0.1), (10.0, 20.0));
        assert_eq!(reckoned(&[session(0.0, 1.0)], &[1.0], 0.0).0, f64::INFINITY);
        // Who stays for ever asks for nothing more.
        assert_eq!(reckoned(&[session(f64::INFINITY, 1.0)], &[5.0], 0.1), (0.0, 0.0));
        let beating = Session { beats: 0.1, ..session(f64::INFINITY, 0.0) };
        assert_eq!(reckoned(&[beating], &[50.0], 0.1), (0.0, 5.0));
    }

    #[test]
    fn churn_is_reckoned_per_second() {
        let ways = vec![throng_program::Parting::Fin];
        let every = Duration::from_secs(10);
        let share = Churn { amount: Amount::Share { share: 0.2, every }, ways: ways.clone() };
        assert_eq!(per_second(&share, 1000.0), 20.0);
        assert_eq!(per_second(&Churn { amount: Amount::Rate(50.0), ways }, 10.0), 10.0);
    }

    #[test]
    fn data_that_ends_ends_the_load() {
        let sum = Sum { iterations: vec![1000.0, 500.0], requests: 3000.0, peak: 7.0 };
        let capped = sum.clone().capped(&[true, false], 200.0);
        assert_eq!((capped.requests, capped.peak), (600.0, 7.0));
        assert_eq!(sum.clone().capped(&[true, true], f64::INFINITY).requests, 3000.0);
        // Who takes no rows does not use them up.
        assert_eq!(sum.capped(&[false, false], 0.0).requests, 3000.0);
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(figure(2.0), "2");
        assert_eq!(figure(2.25), "2.2");
        assert_eq!(figure(f64::INFINITY), "∞");
        assert_eq!(seconds(f64::INFINITY), "∞");
    }
}
