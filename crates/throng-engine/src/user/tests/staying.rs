//! Users that stay: heartbeats, unsolicited messages, disconnecting and returning, the funnel.

use throng_extract::JsonPath;
use throng_metrics::{Connections, Stage, StageInterval, UserState};
use throng_program::{Amount, Beat, BeatFault, Churn, Handler, Retry, RetryOn};

use super::*;

const STEPS: &[StepKind] =
    &[StepKind::Connect, StepKind::Request, StepKind::Stay, StepKind::Heartbeat, StepKind::Message];

fn message(content: &str) -> Message {
    Message::plain(MessageKind::Text, Text::literal(content))
}

fn which(check: Check) -> Which {
    Which { messages: Box::default(), checks: vec![check] }
}

fn handler(step: u16, message: Which) -> Handler {
    Handler {
        step: StepId(step),
        message,
        checks: Vec::new(),
        saves: Vec::new(),
        body: None,
        failing: Failing::default(),
    }
}

fn heartbeat(every: Duration, lost_after: Option<Duration>) -> Heartbeat {
    let beat = Beat::Message(message("hb"));
    Heartbeat {
        step: StepId(3),
        beat,
        every,
        answer: Which::default(),
        lost_after,
        fault: BeatFault::default(),
    }
}

/// Connects, logs in, stays.
fn member(heartbeat: Option<Heartbeat>, handlers: Vec<Handler>) -> Block {
    let mut stay = stay(2, heartbeat);
    if let Statement::Stay(stay) = &mut stay {
        Arc::make_mut(stay).handlers = handlers;
    }
    vec![connect(), ask("login", Until::Any), stay]
}

fn users(to: u64, time: Duration) -> Phase {
    phase(Drive::Users(Users { to, coming: Coming::AtOnce }), Some(time))
}

fn members(code: Block, phases: Vec<Phase>) -> Program {
    let mut program = program(Scheme::Ws, vec![session(code, 2)], STEPS, users(0, S));
    program.loads[0].phases = phases;
    program
}

fn stage(outcome: &Outcome, stage: Stage) -> StageInterval {
    outcome.sum.stage(stage).cloned().unwrap_or_else(|| StageInterval::new(stage))
}

/// Like `chat_server(0)`, but does not answer every n-th heartbeat.
fn forgetful_server(every: u64) -> Server {
    let inner = chat_server(0);
    let heard = Cell::new(0u64);
    Box::new(move |asked, random| {
        // A text of two bytes is a heartbeat: a header of two, a mask of four.
        if asked.len() == 8 && asked[0] == 0x81 {
            heard.set(heard.get() + 1);
            if heard.get().is_multiple_of(every) {
                asked.clear();
                return Vec::new();
            }
        }
        inner(asked, random)
    })
}

#[test]
fn heartbeats_have_their_own_schedule_and_are_answered() {
    let program =
        members(member(Some(heartbeat(S, Some(300 * MS))), Vec::new()), vec![users(1000, 10 * S)]);
    let outcome = run(program, 21, |world| world, chat_server(0));
    outcome.is_sound(21);
    let beats = &outcome.sum.heartbeats;
    assert!((9_000..=10_000).contains(&beats.sent), "{beats:?}");
    assert!(beats.sent - beats.answered <= 10 && beats.lost == 0, "{beats:?}");
    let row = outcome.step(3);
    assert_eq!((row.count, row.ok, row.latency.count()), (beats.answered, beats.answered, row.ok));
    // Evenly: no second has a tenth more or less than its share.
    let seconds: Vec<u64> = outcome.intervals[1..9].iter().map(|one| one.heartbeats.sent).collect();
    assert!(seconds.iter().all(|sent| (900..=1100).contains(sent)), "{seconds:?}");
}

#[test]
fn unanswered_heartbeats_are_lost() {
    let program =
        members(member(Some(heartbeat(S, Some(300 * MS))), Vec::new()), vec![users(100, 20 * S)]);
    let outcome = run(program, 22, |world| world, forgetful_server(10));
    outcome.is_sound(22);
    let beats = &outcome.sum.heartbeats;
    let expected = beats.sent / 10;
    assert!(beats.lost >= expected - 20 && beats.lost <= expected, "{beats:?}");
    assert_eq!(outcome.errors(Cause::HeartbeatLost), beats.lost);
    assert_eq!(outcome.sum.connections.counts.opened, 100, "who misses an answer stays");
}

#[test]
fn a_heartbeat_without_a_timeout_expects_no_reply() {
    let program = members(member(Some(heartbeat(S, None)), Vec::new()), vec![users(10, 5 * S)]);
    let outcome = run(program, 23, |world| world, chat_server(0));
    outcome.is_sound(23);
    let beats = &outcome.sum.heartbeats;
    assert!(beats.sent >= 40 && beats.answered + beats.lost == 0, "{beats:?}");
    assert_eq!(outcome.step(3).ok, beats.sent);
    assert!(outcome.sum.traffic.messages.pushes >= 40, "the echoes are nobody's answers");
}

#[test]
fn pings_are_answered_by_pongs() {
    let beat = Heartbeat { beat: Beat::Ping, ..heartbeat(S, Some(300 * MS)) };
    let program = members(member(Some(beat), Vec::new()), vec![users(10, 5 * S)]);
    let inner = chat_server(0);
    let server: Server = Box::new(move |asked, random| match asked.first() {
        Some(0x89) => {
            let mut payload = asked[6..].to_vec();
            payload
                .iter_mut()
                .zip(asked[2..6].iter().cycle())
                .for_each(|(byte, mask)| *byte ^= mask);
            asked.clear();
            let mut pongs = Vec::new();
            // An unsolicited pong (RFC 6455, 5.5.3), and the reply.
            write_frame(&mut pongs, Opcode::Pong, true, false, None, b"");
            write_frame(&mut pongs, Opcode::Pong, true, false, None, &payload);
            vec![(MS, Deed::Say(pongs[..2].to_vec())), (20 * MS, Deed::Say(pongs[2..].to_vec()))]
        }
        _ => inner(asked, random),
    });
    let outcome = run(program, 24, |world| world, server);
    outcome.is_sound(24);
    let beats = &outcome.sum.heartbeats;
    assert!(beats.answered >= 40 && beats.lost == 0, "{beats:?}");
    assert!(outcome.step(3).latency.min() >= 20_000_000, "only its own pong answers a ping");
}

fn json(path: &str, want: &str) -> Check {
    let pick = Pick::Json(JsonPath::parse(path).unwrap());
    Check { pick, want: Want::Equals(Text::literal(want)) }
}

#[test]
fn unsolicited_messages_are_distinguished_from_replies() {
    let handler = handler(4, which(json("cmd", "msg")));
    let beat = Heartbeat { answer: which(json("cmd", "beat")), ..heartbeat(S, Some(800 * MS)) };
    let program = members(member(Some(beat), vec![handler]), vec![users(50, 6 * S)]);
    let inner = chat_server(0);
    let server: Server = Box::new(move |asked, random| {
        if asked.len() == 8 && asked[0] == 0x81 {
            asked.clear();
            let mut out = Vec::new();
            // A broadcast, an unknown message, and only then the reply.
            for text in [r#"{"cmd":"msg"}"#, r#"{"cmd":"?"}"#, r#"{"cmd":"beat"}"#] {
                write_frame(&mut out, Opcode::Text, true, false, None, text.as_bytes());
            }
            return vec![(MS, Deed::Say(out))];
        }
        inner(asked, random)
    });
    let outcome = run(program, 25, |world| world, server);
    outcome.is_sound(25);
    let beats = &outcome.sum.heartbeats;
    assert!(beats.answered >= 250 && beats.lost == 0, "{beats:?}");
    assert_eq!(outcome.step(4).ok, beats.answered);
    assert_eq!(outcome.sum.traffic.messages.pushes, 2 * beats.answered);
    assert_eq!(stage(&outcome, Stage::FirstMessage).ok, 50);
}

#[test]
fn the_funnel_shows_how_far_users_got() {
    let program = members(member(None, Vec::new()), vec![users(300, 5 * S), users(0, S)]);
    let outcome = run(program, 26, |world| world.refuse(0.2), chat_server(0));
    outcome.is_sound(26);
    let [connect, upgrade, login, steady, end] =
        [Stage::Connect, Stage::Upgrade, Stage::Login, Stage::Steady, Stage::End]
            .map(|one| stage(&outcome, one));
    assert_eq!((connect.ok, upgrade.ok), (300, 300));
    assert!(connect.failed > 0 && connect.errors[0].0 == Cause::ConnectRefused);
    assert_eq!((login.began, login.ok, login.failed), (300, 300, 0));
    assert_eq!((steady.began, steady.ok, steady.failed), (300, 300, 0));
    assert_eq!((end.began, end.ok, end.failed), (300, 300, 0));
    let lives = &outcome.sum.lifecycle;
    assert_eq!(lives.complete, 300);
    assert_eq!(lives.broken, connect.failed, "each refusal ended an attempt at a life");
    let online = |second: usize| outcome.intervals[second].gauges.users_online;
    assert_eq!((online(4), outcome.sum.gauges.users_online), (300, 0));
}

#[test]
fn no_user_is_online_after_a_failed_login() {
    let mut code = member(None, Vec::new());
    if let Statement::Request(request) = &mut code[1] {
        Arc::make_mut(request).checks = vec![body("welcome")];
    }
    let program = members(code, vec![users(20, 3 * S), users(0, S)]);
    let outcome = run(program, 27, |world| world, chat_server(0));
    outcome.is_sound(27);
    let login = stage(&outcome, Stage::Login);
    assert_eq!((login.began, login.ok, login.failed), (20, 0, 20));
    assert_eq!(login.errors, [(Cause::BodyUnexpected, 20)]);
    assert_eq!(stage(&outcome, Stage::Steady).began, 0);
    assert!(outcome.intervals.iter().all(|one| one.gauges.users_online == 0));
    let failed = UserState::Failed as usize;
    let pictured = outcome.pictured();
    assert!(pictured.iter().any(|(_, states)| states[failed] == 20), "{pictured:?}");
    let lives = &outcome.sum.lifecycle;
    assert_eq!((lives.complete, lives.broken), (0, 20));
}

#[test]
fn users_that_disconnect_return_and_the_number_stays_constant() {
    for (how, field) in [
        (Parting::Fin, (|c| c.closed_by_us) as fn(&Connections) -> u64),
        (Parting::Reset, |c| c.reset_by_us),
        (Parting::Vanish, |c| c.vanished),
    ] {
        let share = Amount::Share { share: 0.2, every: S };
        let hold = Phase {
            churn: Some(Churn { amount: share, ways: vec![how] }),
            ..phase(Drive::Hold, Some(5500 * MS))
        };
        let program = members(member(None, Vec::new()), vec![users(100, S), hold, users(0, S)]);
        let outcome = run(program, 28, |world| world, chat_server(0));
        outcome.is_sound(28);
        let sum = &outcome.sum;
        assert_eq!(sum.connections.counts.reconnects, 100, "{how:?}: 20 in each of five seconds");
        assert_eq!(sum.connections.counts.opened, 200, "{how:?}");
        let left = if how == Parting::Fin { 200 } else { 100 };
        assert_eq!(field(&sum.connections.counts), left, "{how:?}: {:?}", sum.connections.counts);
        assert_eq!((sum.lifecycle.complete, sum.lifecycle.broken), (200, 0), "{how:?}");
        assert_eq!(sum.population.started, 100, "{how:?}: the same users");
        assert_eq!(sum.total().errors, [], "{how:?}");
        assert_eq!(outcome.intervals[4].gauges.users_online, 100, "{how:?}");
    }
}

#[test]
fn users_return_as_reconnect_says() {
    let play = |times: Option<u32>| {
        let mut code = member(None, Vec::new());
        if let Statement::Connect(connect) = &mut code[0] {
            Arc::make_mut(connect).reconnect =
                Some(Retry { on: RetryOn::Any, times, low: S, high: 4 * S });
        }
        let inner = chat_server(0);
        // All users are disconnected once, half a second after the login.
        let thrown = Cell::new(0);
        let server: Server = Box::new(move |asked, random| {
            let logs_in = asked.len() == 11;
            let mut deeds = inner(asked, random);
            if logs_in && thrown.get() < 50 {
                thrown.set(thrown.get() + 1);
                deeds.push((500 * MS, Deed::Close));
            }
            deeds
        });
        let outcome = run(members(code, vec![users(50, 5 * S)]), 29, |world| world, server);
        outcome.is_sound(29);
        outcome
    };
    let back = play(None);
    assert_eq!(
        (back.sum.connections.counts.reconnects, back.sum.connections.counts.opened),
        (50, 100)
    );
    assert_eq!(
        back.intervals[0].connections.counts.reconnects, 0,
        "half a second at least is waited"
    );
    assert_eq!(back.sum.lifecycle.broken, 50);
    assert_eq!(stage(&back, Stage::Steady).errors, [(Cause::Lost, 50)]);
    let pictured = back.pictured();
    assert_eq!(pictured[0].1[UserState::Away as usize], 50, "{pictured:?}");
    assert!(pictured.iter().any(|(_, states)| states[UserState::Online as usize] == 50));
    let gone = play(Some(0));
    assert_eq!((gone.sum.connections.counts.opened, gone.sum.population.finished), (50, 50));
    assert!(gone.intervals.iter().all(|one| one.second == 0 || one.gauges.users_present == 0));
}

#[test]
fn a_heartbeat_may_differ_per_user() {
    let content = valued("1 + 6");
    let beat = Beat::Message(Message::plain(MessageKind::Text, content));
    let beat = Heartbeat { beat, ..heartbeat(S, Some(300 * MS)) };
    let program = members(member(Some(beat), Vec::new()), vec![users(3, 4 * S)]);
    let outcome = run(program, 30, |world| world, chat_server(0));
    outcome.is_sound(30);
    assert!(outcome.sum.heartbeats.answered >= 9);
}

/// A heartbeat that is due when an iteration starts is still sent.
#[test]
fn heartbeats_due_together_with_an_iteration_are_sent() {
    let mut session = session(vec![connect(), ask("hello", Until::Any)], 1);
    session.links[0].heartbeat = Some(heartbeat(100 * MS, None));
    let drive = Drive::Iterations(Iterations::new(1, Some(50.0), None));
    let one = program(Scheme::Ws, vec![session], STEPS, phase(drive, Some(10 * S)));
    let outcome = run(one, 32, |world| world, chat_server(0));
    outcome.is_sound(32);
    let beats = &outcome.sum.heartbeats;
    assert!(beats.sent >= 98 && beats.skipped == 0, "{beats:?}");
}

/// Iterates over a connection that `before` opens: users that wait for their turn are online, and a
/// failed step of the iteration puts no user offline.
#[test]
fn a_login_in_before_ends_with_it() {
    for login in [true, false] {
        let mut before = vec![connect()];
        before.extend(login.then(|| ask("login", Until::Any)));
        let mut never = expect("");
        if let Statement::Expect(expect) = &mut never {
            let expect = Arc::make_mut(expect);
            (expect.message, expect.checks) = (which(body("never")), Vec::new());
        }
        let mut session = session(vec![never], 0);
        session.before = before;
        session.links[0].heartbeat = Some(heartbeat(S, None));
        // All but one user have no iteration to run in the first second, and so on.
        let drive = Drive::Iterations(Iterations::new(10, Some(1.0), None));
        let mut one = program(Scheme::Ws, vec![session], STEPS, phase(drive, Some(10 * S)));
        one.graceful_stop = S;
        let outcome = run(one, 31, |world| world, chat_server(0));
        outcome.is_sound(31);
        assert!(outcome.step(1).errors.iter().any(|(cause, _)| *cause == Cause::Timeout));
        let online: Vec<u64> =
            outcome.intervals.iter().map(|one| one.gauges.users_online).collect();
        assert!(online[..9].iter().all(|users| *users == 10), "{login}: {online:?}");
        let beats = &outcome.sum.heartbeats;
        assert!(beats.sent >= 80, "{login}: {beats:?}");
        let stage = stage(&outcome, Stage::Login);
        assert_eq!((stage.ok, stage.failed), (if login { 10 } else { 0 }, 0), "{login}");
        let lives = &outcome.sum.lifecycle;
        assert_eq!((lives.begun, lives.complete), (10, 10), "{login}: {lives:?}");
    }
}
