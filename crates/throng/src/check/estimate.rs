//! What a load comes to, before it is run: iterations, requests, rows, users. Closed loads depend
//! on how fast the service answers; two cases are reckoned.

use std::time::Duration;

use throng_base::language::say;
use throng_base::units::{format_count, format_duration};
use throng_data::Take;
use throng_load::{Planned, plan};
use throng_program::{Amount, Churn, Drive, Program};
use throng_scenario::outline::{Outline, SessionOutline, outline};

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
    /// Iterations when answers take no time and data never ends.
    wanted: f64,
    /// Users who stay, and those who arrive.
    users: u64,
    arrivals: f64,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    iterations: f64,
    requests: f64,
    /// Requests per second at the highest.
    peak: f64,
}

impl Sum {
    /// Ends after so many iterations.
    fn capped(self, most: f64) -> Sum {
        if self.iterations <= most {
            return self;
        }
        let part = if self.iterations.is_finite() { most / self.iterations } else { 0.0 };
        let requests = if self.requests.is_finite() { self.requests * part } else { f64::INFINITY };
        Sum { iterations: most, requests, peak: self.peak }
    }
}

/// What a session asks for.
struct Session {
    share: f64,
    pause_seconds: f64,
    requests: f64,
    requests_once: f64,
    /// Heartbeats per second of a user.
    beats: f64,
}

impl Session {
    fn new(session: &SessionOutline) -> Session {
        let steps = session.expected;
        let once = session.expected_before.requests + session.expected_after.requests;
        // Who stays for ever does what stands before it once.
        let stays = steps.mean_seconds.is_infinite() && steps.requests.is_finite();
        let (requests, requests_once) =
            if stays { (0.0, once + steps.requests) } else { (steps.requests, once) };
        let beats = steps.beats;
        let pause_seconds = steps.mean_seconds;
        Session { share: session.share, pause_seconds, requests, requests_once, beats }
    }
}

impl Estimate {
    /// With `iterations_max` the data ends the run after so many iterations.
    pub(super) fn new(
        program: &Program,
        outline: &Outline,
        planned: &[Planned],
        iterations_max: Option<u64>,
    ) -> Estimate {
        let sessions: Vec<Session> = outline.sessions.iter().map(Session::new).collect();
        let mut estimate = Estimate {
            quick: sum(program, &sessions, planned, 0.0),
            slow: sum(program, &sessions, planned, ANSWER_SECONDS),
            complete: planned.iter().all(|one| one.length.is_some()),
            wanted: 0.0,
            users: 0,
            arrivals: 0.0,
        };
        estimate.wanted = estimate.quick.iterations;
        let cap = iterations_max.map_or(f64::INFINITY, |most| most as f64);
        estimate.quick = estimate.quick.capped(cap);
        estimate.slow = estimate.slow.capped(cap);
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
        Estimate::new(program, &outline(program), &plan(&program.load), None)
    }

    /// Requests per second at the highest, when answers take a moment.
    pub(crate) fn peak(&self) -> f64 {
        self.slow.peak
    }

    /// How many rows are taken, when answers come at once: the most.
    pub(super) fn rows_needed(&self, take: Take) -> Option<u64> {
        let users = self.users as f64 + self.arrivals;
        let rows = match super::by_iteration(take) {
            true => self.wanted,
            false => users,
        };
        let is_taken_up = matches!(take, Take::Unique | Take::PerUser);
        (is_taken_up && rows.is_finite() && self.complete).then_some(rows.ceil() as u64)
    }

    // sentences
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let slow = format_duration(Duration::from_secs_f64(ANSWER_SECONDS));
        let (quick, held) = (self.quick, self.slow);
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
    let mut sum = Sum::default();
    for (phase, one) in program.load.phases.iter().zip(planned) {
        let length = one.length.unwrap_or_default().as_secs_f64();
        match &phase.drive {
            Drive::Arrivals(_) => {
                let (from, to) = one.arrivals.unwrap_or_default();
                let each: f64 =
                    sessions.iter().map(|s| s.share * (s.requests + s.requests_once)).sum();
                let starts = length * f64::midpoint(from, to);
                sum.iterations += starts;
                sum.requests += starts * each;
                let beats = |s: &Session| s.share * s.beats * s.pause_seconds;
                let beats: f64 = sessions.iter().map(beats).filter(|n| n.is_finite()).sum();
                sum.requests += starts * beats;
                sum.peak = sum.peak.max(from.max(to) * each);
            }
            Drive::Iterations(iterations) => {
                let free = rates(sessions, one.users.1 as f64, answer).0;
                let rate = iterations.rate.unwrap_or(f64::INFINITY).min(free);
                let each: f64 = sessions.iter().map(|s| s.share * s.requests).sum();
                let by_time = if length > 0.0 { rate * length } else { f64::INFINITY };
                let total = iterations.total.map_or(by_time, |total| (total as f64).min(by_time));
                sum.iterations += total;
                sum.requests += total * each;
                sum.peak = sum.peak.max(rate * each);
            }
            Drive::Users(_) | Drive::Hold => {
                let once: f64 = sessions.iter().map(|s| s.share * s.requests_once).sum();
                for step in 0..RAMP_STEPS {
                    let part = (f64::from(step) + 0.5) / f64::from(RAMP_STEPS);
                    let at = Duration::try_from_secs_f64(length * part).unwrap_or_default();
                    let users = one.users_at(at);
                    let (iterations, mut requests) = rates(sessions, users, answer);
                    // Who falls out of its connection begins anew.
                    let back = phase.churn.as_ref().map_or(0.0, |churn| per_second(churn, users));
                    requests += back * once;
                    let time = length / f64::from(RAMP_STEPS);
                    if time > 0.0 {
                        sum.iterations += iterations * time;
                        sum.requests += requests * time;
                    }
                    sum.peak = sum.peak.max(requests);
                }
                let come = one.users.1.saturating_sub(one.users.0) as f64;
                sum.requests += come * once;
            }
        }
    }
    sum
}

/// How many of so many users fall out per second.
fn per_second(churn: &Churn, users: f64) -> f64 {
    match churn.amount {
        Amount::Rate(rate) => rate.min(users),
        Amount::Share { share, every } => users * share / every.as_secs_f64(),
    }
}

/// Iterations and requests per second of so many users (Little's law), heartbeats with them.
fn rates(sessions: &[Session], users: f64, answer: f64) -> (f64, f64) {
    let (mut iterations, mut requests) = (0.0, 0.0);
    for session in sessions.iter().filter(|session| session.share > 0.0 && users > 0.0) {
        let length = session.pause_seconds + session.requests * answer;
        let rate = if length > 0.0 { users * session.share / length } else { f64::INFINITY };
        iterations += rate;
        requests += if session.requests > 0.0 { rate * session.requests } else { 0.0 };
        requests += users * session.share * session.beats;
    }
    (iterations, requests)
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

    fn session(share: f64, pause_seconds: f64, requests: f64) -> Session {
        Session { share, pause_seconds, requests, requests_once: 0.0, beats: 0.0 }
    }

    #[test]
    fn users_over_length_is_the_rate() {
        let sessions = [session(0.5, 1.0, 2.0), session(0.5, 4.0, 1.0)];
        assert_eq!(rates(&sessions, 8.0, 0.0), (5.0, 9.0));
        assert_eq!(rates(&[session(1.0, 0.8, 2.0)], 10.0, 0.1), (10.0, 20.0));
        assert_eq!(rates(&[session(1.0, 0.0, 1.0)], 1.0, 0.0).0, f64::INFINITY);
        // Who stays for ever asks for nothing more.
        assert_eq!(rates(&[session(1.0, f64::INFINITY, 1.0)], 5.0, 0.1), (0.0, 0.0));
        let beating = Session { beats: 0.1, ..session(1.0, f64::INFINITY, 0.0) };
        assert_eq!(rates(&[beating], 50.0, 0.1), (0.0, 5.0));
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
        let sum = Sum { iterations: 1000.0, requests: 3000.0, peak: 7.0 };
        let capped = sum.capped(200.0);
        assert_eq!((capped.iterations, capped.requests, capped.peak), (200.0, 600.0, 7.0));
        assert_eq!(sum.capped(f64::INFINITY).requests, 3000.0);
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(figure(2.0), "2");
        assert_eq!(figure(2.25), "2.2");
        assert_eq!(figure(f64::INFINITY), "∞");
        assert_eq!(seconds(f64::INFINITY), "∞");
    }
}
