//! Event streams: a request opens them, their events are messages, and all counts add up, whatever
//! happens to a stream.

use std::cell::RefCell;
use std::rc::Rc;

use throng_program::{Amount, Churn, Expect, Handler, Retry, RetryOn};

use super::*;

const KINDS: &[StepKind] = &[
    StepKind::Connect,
    StepKind::Expect,
    StepKind::Stay,
    StepKind::Message,
    StepKind::Http,
    StepKind::Connect,
];

fn stream(session: Session, handlers: Vec<Handler>, phase: Phase) -> Program {
    let events = Link { lasts: true, events: true, handlers, ..Link::default() };
    let http = Link::default();
    let session = Session { links: [events, http].into(), ..session };
    program(Scheme::Http, vec![session], KINDS, phase)
}

fn wait(content: &str) -> Statement {
    Statement::Expect(Arc::new(Expect {
        step: StepId(1),
        link: 0,
        message: Which { checks: vec![body(content)], ..Which::default() },
        until: Until::Any,
        checks: Vec::new(),
        saves: Vec::new(),
        timeout: 500 * MS,
        failing: Failing::default(),
    }))
}

fn ticks() -> Handler {
    Handler {
        step: StepId(3),
        message: Which::default(),
        checks: Vec::new(),
        saves: Vec::new(),
        body: None,
        failing: Failing::default(),
    }
}

fn call() -> Statement {
    let mut call = get(Vec::new());
    if let Statement::Http(http) = &mut call {
        let http = Arc::make_mut(http);
        (http.step, http.link) = (StepId(4), 1);
    }
    call
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                      Transfer-Encoding: chunked\r\n\r\n";

fn chunk(content: &str) -> Vec<u8> {
    format!("{:x}\r\n{content}\r\n", content.len()).into_bytes()
}

/// Answers with a stream: the first event together with the head, then one every 10 ms, split
/// anywhere; then it ends as `ends` says.
fn streaming(count: u64, ends: impl Fn(&mut Random) -> Option<Deed> + 'static) -> Server {
    Box::new(move |asked, random| {
        let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Vec::new();
        };
        let head = String::from_utf8(asked.drain(..end + 4).collect()).unwrap();
        if !head.contains("Accept: text/event-stream\r\nCache-Control: no-cache\r\n") {
            return vec![(MS, say(HELLO))];
        }
        let mut first = HEAD.to_vec();
        first.extend(chunk(": hi\nretry: 5\n\ndata: welcome\n\n"));
        let mut deeds = vec![(MS, Deed::Say(first))];
        for number in 1..=count {
            let event = chunk(&format!("event: tick\nid: {number}\ndata: {number}\ndata: x\n\n"));
            let (one, other) = event.split_at(random.below(event.len() as u64) as usize);
            deeds.extend([(9 * MS, say(one)), (MS, say(other))]);
        }
        deeds.extend(ends(random).map(|deed| (10 * MS, deed)));
        deeds
    })
}

#[test]
fn events_are_messages() {
    let drive = Drive::Users(Users { to: 20, coming: Coming::AtOnce });
    let mut there = stay(2, None);
    if let Statement::Stay(stay) = &mut there {
        Arc::make_mut(stay).time = Some(205 * MS);
    }
    let code = vec![connect(), wait("welcome"), wait("2\nx"), call(), there, think()];
    let one = stream(session(code, 5), vec![ticks()], phase(drive, Some(S)));
    let outcome = run(one, 1, |world| world, streaming(10, |_| None));
    outcome.is_sound(1);
    assert_eq!(outcome.sum.total().errors, []);
    assert_eq!((outcome.step(0).ok, outcome.step(1).ok, outcome.step(4).ok), (20, 40, 20));
    assert_eq!(outcome.step(3).ok, 20 * 9, "the handler gets every event that no step waits for");
    assert_eq!(outcome.sum.traffic.messages.received, 20 * 11);
    let between = &outcome.step(3).latency;
    assert_eq!(between.count(), 20 * 9, "each has one before it");
    assert!((9 * MS..=12 * MS).contains(&Duration::from_nanos(between.min())), "{between:?}");
}

/// Sends all of it in one piece, including its end.
fn at_once(events: &'static [&'static str]) -> Server {
    ending(events, Duration::ZERO)
}

/// Sends all of it in one piece, and ends this much later.
fn ending(events: &'static [&'static str], later: Duration) -> Server {
    http_server(move |_| {
        let mut whole = HEAD.to_vec();
        events.iter().for_each(|data| whole.extend(chunk(&format!("data: {data}\n\n"))));
        if later.is_zero() {
            whole.extend(b"0\r\n\r\n");
            return vec![(MS, say(&whole))];
        }
        vec![(MS, say(&whole)), (later, say(b"0\r\n\r\n"))]
    })
}

#[test]
fn events_that_arrive_with_the_end_of_their_stream_are_taken_by_later_steps() {
    let drive = || Drive::Iterations(Iterations::new(1, None, Some(1)));
    let code = |last| vec![connect(), wait("a"), think(), wait("b"), wait(last), call()];
    let play = |last| {
        let one = stream(session(code(last), 0), Vec::new(), phase(drive(), None));
        run(one, 5, |world| world, at_once(&["a", "b", "other", "[DONE]"]))
    };
    let outcome = play("[DONE]");
    outcome.is_sound(5);
    assert_eq!((outcome.ended(1), outcome.step(1).ok), ((3, vec![]), 3));
    assert_eq!(
        (outcome.sum.traffic.messages.received, outcome.sum.traffic.messages.pushes),
        (4, 1)
    );
    let outcome = play("never");
    outcome.is_sound(5);
    assert_eq!(outcome.ended(1), (2, vec![(Cause::ClosedEarly, 1)]));
    assert_eq!(
        (outcome.sum.traffic.messages.received, outcome.sum.traffic.messages.pushes),
        (4, 2)
    );
}

/// The same is kept as for an open connection: in any order in which it is taken, and whenever the
/// end came.
#[test]
fn events_before_the_end_are_taken_in_any_order_and_counted_once() {
    let later: [&[&str]; 2] = [&["t", "t", "t", "[DONE]"], &["a", "b", "c"]];
    let takes = [
        (later[0], vec![wait("t"), wait("[DONE]")], 2),
        (later[0], vec![wait("t"), wait("t"), pause(20 * MS), wait("t"), wait("[DONE]")], 4),
        (later[1], vec![wait("a"), wait("c"), wait("b")], 3),
        (later[1], vec![wait("a"), pause(20 * MS), call(), wait("c")], 2),
    ];
    for (said, takes, taken) in takes {
        for later in [Duration::ZERO, 5 * MS] {
            let code = [connect()].into_iter().chain(takes.clone()).collect();
            let drive = Drive::Iterations(Iterations::new(1, None, Some(1)));
            let one = stream(session(code, 0), Vec::new(), phase(drive, None));
            let outcome = run(one, 5, |world| world, ending(said, later));
            outcome.is_sound(5);
            assert_eq!(outcome.ended(1), (taken, vec![]), "{said:?} {later:?}");
            let messages = &outcome.sum.traffic.messages;
            let counted = (messages.received, messages.pushes + messages.unasked + taken);
            assert_eq!(counted, (said.len() as u64, said.len() as u64), "{said:?} {later:?}");
        }
    }
}

/// Events that arrive with the end of a stream are for later steps. Without memory for them, that
/// is not the target's fault.
#[test]
fn events_without_room_are_not_reported_as_an_early_close() {
    let code = vec![connect(), wait("a"), think(), wait("b"), call()];
    let drive = Drive::Iterations(Iterations::new(1, None, Some(1)));
    let one = stream(session(code, 0), Vec::new(), phase(drive, None));
    let play = Play { kept_bytes_max: Some(1), ..Play::new(one, 5) };
    let outcome = play.run(|world| world, at_once(&["a", "b", "c"]));
    outcome.is_sound(5);
    assert_eq!(outcome.ended(1), (1, vec![(Cause::MemoryLimit, 1)]), "{:?}", outcome.examples);
}

/// A later `stay` ends immediately, but earlier events go to its handlers.
#[test]
fn a_stay_whose_stream_has_ended_handles_earlier_events() {
    let mut there = stay(2, None);
    if let Statement::Stay(stay) = &mut there {
        let stay = Arc::make_mut(stay);
        (stay.ends, stay.awaits_end) = (Some(throng_program::Ends::Any), true);
        stay.handlers = vec![ticks()];
    }
    let drive = Drive::Iterations(Iterations::new(1, None, Some(1)));
    let code = vec![connect(), wait("a"), there, call()];
    let one = stream(session(code, 0), Vec::new(), phase(drive, None));
    let outcome = run(one, 5, |world| world, at_once(&["a", "b", "c"]));
    outcome.is_sound(5);
    assert_eq!(outcome.sum.total().errors, []);
    assert_eq!((outcome.step(2).ok, outcome.step(3).ok, outcome.step(4).ok), (1, 2, 1));
}

#[test]
fn the_first_event_is_timed_by_the_step_that_opened_its_stream() {
    let mut second = connect();
    if let Statement::Connect(connect) = &mut second {
        Arc::make_mut(connect).step = StepId(5);
    }
    let drive = Drive::Iterations(Iterations::new(1, None, Some(3)));
    let code = vec![connect(), wait("a"), second, wait("a"), call()];
    let one = stream(session(code, 0), Vec::new(), phase(drive, None));
    let outcome = run(one, 5, |world| world, at_once(&["a"]));
    outcome.is_sound(5);
    assert_eq!(outcome.sum.total().errors, []);
    let firsts = [0, 5].map(|step| outcome.step(step).first_byte.count());
    assert_eq!(firsts, [3, 3]);
}

#[test]
fn a_response_that_is_not_an_event_stream_is_refused() {
    for (answer, cause) in [
        (&b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"[..], Cause::UpgradeRefused),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello", Cause::UpgradeRefused),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", Cause::Malformed),
    ] {
        let drive = Drive::Iterations(Iterations::new(1, None, Some(1)));
        let code = vec![connect(), call()];
        let one = stream(session(code, 0), Vec::new(), phase(drive, None));
        let outcome = run(one, 3, |world| world, http_server(move |_| vec![(MS, say(answer))]));
        outcome.is_sound(3);
        assert_eq!(outcome.ended(0), (0, vec![(cause, 1)]), "{answer:?}");
    }
}

#[test]
fn the_end_of_a_stream_counts_as_a_lost_connection() {
    for (seed, end) in [(1, Deed::Say(b"0\r\n\r\n".to_vec())), (2, Deed::Close), (3, Deed::Reset)] {
        let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
        let one = stream(
            session(vec![connect(), stay(2, None)], 1),
            vec![ticks()],
            phase(drive, Some(S)),
        );
        let ends = end.clone();
        let outcome = run(one, seed, |world| world, streaming(5, move |_| Some(ends.clone())));
        outcome.is_sound(seed);
        let errors: Vec<Cause> = outcome.step(2).errors.iter().map(|(cause, _)| *cause).collect();
        assert_eq!(errors, [Cause::Lost], "{end:?}");
        let connections = &outcome.sum.connections.counts;
        let lost = connections.closed_by_target + connections.reset;
        assert!(lost > 50 && connections.reconnects >= lost - 10, "{connections:?}");
        assert!(outcome.step(3).ok >= lost * 6, "six events of each stream");
    }
}

#[test]
fn an_event_over_the_limit_ends_the_stream() {
    let drive = Drive::Iterations(Iterations::new(1, None, Some(1)));
    let code = vec![connect(), wait("never")];
    let mut one = stream(session(code, 0), Vec::new(), phase(drive, None));
    one.limits.message_bytes_max = 100;
    let long = format!("data: {}\n\n", "x".repeat(101));
    let answer = [HEAD, &chunk(&long)].concat();
    let outcome = run(one, 3, |world| world, http_server(move |_| vec![(MS, say(&answer))]));
    outcome.is_sound(3);
    assert_eq!(outcome.ended(1), (0, vec![(Cause::TooLarge, 1)]));
}

#[test]
fn counts_of_event_streams_always_add_up() {
    let mut lost = 0;
    for seed in 1..40u64 {
        let mut random = Random::new(seed);
        let drive = Drive::Users(Users { to: 20, coming: Coming::Rate(100.0) });
        let code = vec![connect(), wait("welcome"), call(), stay(2, None)];
        let mut one = stream(session(code, 1), vec![ticks()], phase(drive, Some(S)));
        one.graceful_stop = MS * random.below(600) as u32;
        if seed % 3 == 0 {
            let ways = vec![Parting::Reset, Parting::Fin, Parting::Vanish];
            one.loads[0].phases[0].churn = Some(Churn { amount: Amount::Rate(8.0), ways });
        }
        let ends = |random: &mut Random| match random.below(5) {
            0 => Some(Deed::Close),
            1 => Some(Deed::Reset),
            2 => Some(Deed::Say(b"0\r\n\r\n".to_vec())),
            3 => Some(Deed::Say(b"garbage\r\n".to_vec())),
            _ => None,
        };
        let play = Play { shards: 1 + seed % 2, ..Play::new(one, seed) };
        let outcome = play.run(|world| world.refuse(0.05).clog(0.1), streaming(20, ends));
        outcome.is_sound(seed);
        lost += outcome.sum.lifecycle.broken;
    }
    assert!(lost > 100, "{lost}");
}

/// Sends three events after the last one that its client received, and ends.
fn numbered(said: Rc<RefCell<Vec<u64>>>) -> Server {
    Box::new(move |asked, _| {
        let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Vec::new();
        };
        let head = String::from_utf8(asked.drain(..end + 4).collect()).unwrap();
        let last = head.split("Last-Event-ID: ").nth(1).and_then(|rest| rest.lines().next());
        let last: u64 = last.map_or(0, |last| last.parse().unwrap());
        said.borrow_mut().push(last);
        let mut deeds = vec![(MS, say(HEAD)), (MS, say(&chunk("retry: 40\n\n")))];
        for number in last + 1..last + 4 {
            deeds.push((MS, say(&chunk(&format!("id: {number}\ndata: {number}\n\n")))));
        }
        // Incomplete events are sent again.
        deeds.push((MS, say(&chunk(&format!("id: {}\ndata: half\n", last + 4)))));
        deeds.push((MS, Deed::Close));
        deeds
    })
}

#[test]
fn a_lost_stream_resumes_after_its_last_event() {
    let wait = Retry { on: RetryOn::default(), times: None, low: MS, high: MS };
    for reconnect in [None, Some(wait)] {
        let drive = Drive::Users(Users { to: 1, coming: Coming::AtOnce });
        let mut connect = connect();
        if let Statement::Connect(connect) = &mut connect {
            Arc::make_mut(connect).reconnect = reconnect;
        }
        let code = vec![connect, stay(2, None)];
        let one = stream(session(code, 1), vec![ticks()], phase(drive, Some(S)));
        let said = Rc::new(RefCell::new(Vec::new()));
        let outcome = run(one, 5, |world| world, numbered(Rc::clone(&said)));
        outcome.is_sound(5);
        let said = said.borrow();
        let count = said.len() as u64;
        assert_eq!(*said, (0..count).map(|turn| 3 * turn).collect::<Vec<_>>());
        // The client waits 40 ms each time, and the rest takes 7 to 15.
        assert!((17..=22).contains(&count), "{count}");
        let heard = outcome.step(3).ok;
        assert!((3 * count - 3..=3 * count).contains(&heard), "{heard} of {count} streams");
    }
}
