//! Users that nothing would ever wake end the run; users that wait for a long time do not.

use throng_program::{Every, Rendezvous, TaskBody};

use super::*;
use throng_metrics::StopBy;

const STEPS: &[StepKind] =
    &[StepKind::Connect, StepKind::Request, StepKind::Stay, StepKind::Http, StepKind::Rendezvous];

impl Outcome {
    /// No user was stuck.
    pub(super) fn goes_on(&self, seed: u64) {
        let bug = self.stopped.as_ref().filter(|stopped| stopped.by == StopBy::Bug);
        assert_eq!(bug, None, "seed {seed}");
    }
}

/// Waits for a message that never arrives.
fn waits(time: Duration) -> Statement {
    let mut never = expect("");
    if let Statement::Expect(expect) = &mut never {
        let expect = Arc::make_mut(expect);
        expect.message = Which { messages: Box::default(), checks: vec![body("never")] };
        (expect.checks, expect.timeout) = (Vec::new(), time);
    }
    never
}

fn users(to: u64, time: Duration) -> Phase {
    phase(Drive::Users(Users { to, coming: Coming::Rate(2.0) }), Some(time))
}

#[test]
fn a_stuck_user_ends_the_run_and_reports_what_it_waits_for() {
    // Without a deadline nothing is due: no scenario can be written like this.
    let code = vec![connect(), waits(Duration::MAX)];
    let one = program(Scheme::Ws, vec![session(code, 1)], STEPS, users(3, 3600 * S));
    let outcome = run(one, 41, |world| world, chat_server(0));
    let stopped = outcome.stopped.expect("the run ended before its time");
    assert_eq!(stopped.by, StopBy::Bug);
    let want = "user 1 is stuck: it is waiting for a message at or after step `request`, and \
         no scheduled event will wake it";
    assert_eq!(stopped.reason.english(), want);
    let second = stopped.at.second();
    assert!((5..=8).contains(&second), "{second}");
    assert!(outcome.end < Time::from_secs(20), "{:?}", outcome.end);
}

/// One minute in which nearly nothing happens.
#[track_caller]
fn is_quiet(scheme: Scheme, session: Session, drive: Drive, server: Server) {
    let mut one = program(scheme, vec![session], STEPS, phase(drive, Some(60 * S)));
    (one.graceful_stop, one.rendezvous) = (30 * S, 1);
    let outcome = run(one, 42, |world| world, server);
    assert_eq!(outcome.stopped, None);
    assert!(outcome.end >= Time::from_secs(60), "{:?}", outcome.end);
    outcome.is_sound(42);
}

#[test]
fn users_that_stay_forever_are_not_stuck() {
    let some = || Drive::Users(Users { to: 3, coming: Coming::Rate(2.0) });
    let http = vec![step(3, Failing::default()), stay(2, None)];
    is_quiet(Scheme::Http, session(http, 0), some(), ok_server());
    is_quiet(Scheme::Http, session(vec![stay(2, None)], 0), some(), ok_server());
    let online = vec![connect(), stay(2, None)];
    is_quiet(Scheme::Ws, session(online, 0), some(), chat_server(0));
}

#[test]
fn users_that_wait_for_a_time_or_a_message_are_not_stuck() {
    let some = || Drive::Users(Users { to: 3, coming: Coming::Rate(2.0) });
    is_quiet(Scheme::Http, session(vec![pause(40 * S)], 0), some(), ok_server());
    let branches = vec![vec![pause(40 * S)], vec![step(3, Failing::default())]];
    let parallel = vec![Statement::Parallel(branches)];
    is_quiet(Scheme::Http, session(parallel, 0), some(), ok_server());
    let meeting = Rendezvous { step: StepId(4), place: 0, users: 9, timeout: 50 * S };
    let meeting = vec![Statement::Rendezvous(Arc::new(meeting))];
    is_quiet(Scheme::Http, session(meeting, 0), some(), ok_server());
    let expects = vec![connect(), waits(30 * S)];
    is_quiet(Scheme::Ws, session(expects, 1), some(), chat_server(0));
    // The target takes the request and does not respond for a long time.
    let patient = vec![with_timeout(step(3, Failing::default()), 45 * S)];
    is_quiet(Scheme::Http, session(patient, 0), some(), http_server(|_| Vec::new()));
}

#[test]
fn users_that_wait_for_an_iteration_are_not_stuck() {
    let rarely = || Drive::Iterations(Iterations::new(5, Some(0.05), None));
    let get = vec![step(3, Failing::default())];
    is_quiet(Scheme::Http, session(get, 0), rarely(), ok_server());
    let say = vec![connect(), ask("hello", Until::Any)];
    is_quiet(Scheme::Ws, session(say, 1), rarely(), chat_server(0));
}

/// A user that has to leave, but has to finish a background task first.
#[test]
fn users_that_finish_their_work_are_not_stuck() {
    let mut asks = ask("later", Until::Any);
    if let Statement::Request(request) = &mut asks {
        Arc::make_mut(request).timeout = 25 * S;
    }
    let mut one = session(vec![connect(), pause(S)], 1);
    let body = TaskBody { number: 0, steps: vec![asks] };
    one.links[0].every = vec![Every { time: 50 * S, body }];
    let inner = chat_server(0);
    let silent: Server = Box::new(move |asked, random| match asked.starts_with(b"GET ") {
        true => inner(asked, random),
        false => {
            asked.clear();
            Vec::new()
        }
    });
    let some = Drive::Users(Users { to: 3, coming: Coming::AtOnce });
    is_quiet(Scheme::Ws, one, some, silent);
}
