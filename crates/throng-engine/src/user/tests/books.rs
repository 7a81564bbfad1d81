//! The counts of a run: everything that starts ends exactly once, wherever and however the run
//! ends.

use throng_program::{
    Amount, Beat, BeatFault, Beside, Churn, Every, OnError, Rendezvous, Retry, RetryOn,
};

use super::*;

const KINDS: &[StepKind] = &[
    StepKind::Connect,
    StepKind::Request,
    StepKind::Stay,
    StepKind::Heartbeat,
    StepKind::Transaction,
    StepKind::Rendezvous,
    StepKind::Request,
    StepKind::Http,
];

fn forever(low: Duration, high: Duration) -> Failing {
    Failing { retry: Some(Retry { on: RetryOn::Any, times: None, low, high }), then: OnError::Next }
}

fn beat(every: Duration, lost_after: Option<Duration>, times: u8) -> Heartbeat {
    let message = Message::plain(MessageKind::Text, Text::literal("hb"));
    Heartbeat {
        step: StepId(3),
        beat: Beat::Message(message),
        every,
        answer: Which::default(),
        lost_after,
        fault: BeatFault { times, ..BeatFault::default() },
    }
}

/// One of everything that has a row: requests that are retried without limit, a transaction, a
/// rendezvous of two shards, a stay with heartbeats, a body that asks now and then.
fn member(heartbeat: Heartbeat, want: &str) -> Session {
    let mut ask_again = ask("hello", Until::Any);
    let mut asks_besides = ask("besides", Until::Any);
    if let (Statement::Request(one), Statement::Request(other)) =
        (&mut ask_again, &mut asks_besides)
    {
        let (one, other) = (Arc::make_mut(one), Arc::make_mut(other));
        (one.failing, one.timeout) = (forever(50 * MS, 400 * MS), 100 * MS);
        one.checks = vec![body(want)];
        other.checks = vec![body(if want == "hello" { "nothing" } else { "besides" })];
        (other.step, other.timeout) = (StepId(6), 200 * MS);
        other.failing = forever(20 * MS, 100 * MS);
    }
    let mut there = stay(2, Some(heartbeat));
    if let Statement::Stay(stay) = &mut there {
        Arc::make_mut(stay).time = Some(300 * MS);
    }
    let place = Rendezvous { step: StepId(5), place: 0, users: 7, timeout: 250 * MS };
    let meets = transaction(4, vec![ask_again, Statement::Rendezvous(Arc::new(place))]);
    let body = Beside { number: 0, steps: vec![asks_besides] };
    let mut session = session(vec![connect(), meets, there], 1);
    session.links[0].every = vec![Every { time: 150 * MS, body }];
    session
}

#[test]
fn every_attempt_ends_exactly_once_whenever_the_run_ends() {
    let mut ends = [0u64; 8];
    for seed in 1..60u64 {
        let mut random = Random::new(seed);
        let mut ms = |below: u64| MS * random.below(below) as u32;
        let drive = Drive::Users(Users { to: 20, coming: Coming::Rate(40.0) });
        let late = beat(100 * MS + ms(400), Some(50 * MS + ms(300)), 1 + (seed % 2) as u8);
        let mut one = program(Scheme::Ws, Vec::new(), KINDS, phase(drive, Some(S + ms(2000))));
        one.sessions = vec![member(late, if seed % 2 == 0 { "hello" } else { "nothing" })];
        (one.graceful_stop, one.rendezvous) = (ms(600), 1);
        one.precision = Duration::from_micros([0, 1000][seed as usize / 2 % 2]);
        if seed % 3 == 0 {
            let amount = Amount::Rate(5.0);
            one.loads[0].phases[0].churn = Some(Churn { amount, ways: vec![Parting::Reset] });
        }
        let stop_at = (seed % 4 == 0).then(|| Time::ZERO + ms(2500));
        let play = Play { stop_at, shards: 1 + seed % 2, ..Play::new(one, seed) };
        let outcome = play.run(|world| world.refuse(0.05).clog(0.1), chat_server(seed % 3));
        outcome.is_sound(seed);
        (0..8).for_each(|step| ends[usize::from(step)] += outcome.step(step).interrupted);
        let steps = [0, 1, 2, 5, 6].map(|step| outcome.step(step).interrupted);
        assert_eq!(steps.iter().sum::<u64>(), outcome.sum.population.interrupted, "seed {seed}");
        assert_eq!(outcome.step(3).interrupted, outcome.sum.heartbeats.interrupted);
    }
    // The test has covered an end in the middle of each of them. A `stay` may end at any time.
    assert!([1, 3, 4, 5, 6].iter().all(|step| ends[*step] > 0), "{ends:?}");
}

#[test]
fn the_end_interrupts_a_step_that_waits_for_its_retry() {
    let code = vec![transaction(4, vec![step(7, forever(3600 * S, 3600 * S))])];
    let busy = || http_server(|_| vec![(MS, say(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"))]);
    let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
    let one = program(Scheme::Http, vec![session(code, 0)], KINDS, phase(drive, Some(S)));
    let outcome = run(one, 1, |world| world, busy());
    outcome.is_sound(1);
    let (tried, whole) = (outcome.step(7), outcome.step(4));
    assert_eq!((tried.begun, tried.count, tried.interrupted), (10, 0, 10));
    assert_eq!(tried.retried, [(Cause::StatusUnexpected, 10)]);
    assert_eq!((whole.begun, whole.count, whole.interrupted), (10, 0, 10));
    assert_eq!(outcome.sum.population.interrupted, 10, "steps, each once");
}

#[test]
fn every_heartbeat_has_an_outcome() {
    for (lost_after, times) in [(Some(400 * MS), 1), (Some(400 * MS), 3), (None, 1)] {
        let mut session = session(vec![connect(), stay(2, None)], 1);
        session.links[0].heartbeat = Some(beat(500 * MS, lost_after, times));
        let drive = Drive::Users(Users { to: 50, coming: Coming::AtOnce });
        let phase = phase(drive, Some(2 * S));
        let one = program(Scheme::Ws, vec![session], KINDS, phase);
        // Only the upgrade is answered.
        let inner = chat_server(0);
        let mute: Server = Box::new(move |asked, random| {
            if asked.starts_with(b"GET ") {
                return inner(asked, random);
            }
            asked.clear();
            Vec::new()
        });
        let outcome = run(one, 3, |world| world, mute);
        outcome.is_sound(3);
        let beats = &outcome.sum.heartbeats;
        let row = outcome.step(3);
        assert_eq!((row.begun * u64::from(times), beats.answered), (beats.sent, 0));
        match lost_after {
            Some(_) => {
                assert!(beats.lost > 0 && beats.interrupted > 0, "{beats:?}");
                assert_eq!((row.failed(), row.interrupted), (beats.lost, beats.interrupted));
                assert_eq!(beats.without_answer, row.begun * u64::from(times - 1));
            }
            None => assert_eq!((beats.without_answer, row.ok), (beats.sent, beats.sent)),
        }
    }
}
