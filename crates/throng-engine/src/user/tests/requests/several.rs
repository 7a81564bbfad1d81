//! Users with several connections: they log in over HTTP, stay on a WebSocket, and send HTTP
//! requests in addition; all counts add up, whatever is lost.

use throng_program::{Amount, Beat, BeatFault, Beside, Churn, Every, Handler, OnError};

use super::*;

const KINDS: &[StepKind] = &[
    StepKind::Http,
    StepKind::Connect,
    StepKind::Request,
    StepKind::Stay,
    StepKind::Heartbeat,
    StepKind::Http,
    StepKind::Http,
    StepKind::Message,
    StepKind::Http,
];

/// The links of the session: those of its HTTP requests, and the WebSocket.
const API: u8 = 0;
const CHAT: u8 = 1;

fn call(step: u16, timeout: Duration) -> Statement {
    let mut call = get(Vec::new());
    if let Statement::Http(http) = &mut call {
        let http = Arc::make_mut(http);
        (http.step, http.link, http.timeout) = (StepId(step), API, timeout);
    }
    call
}

fn beat(every: Duration) -> Heartbeat {
    Heartbeat {
        step: StepId(4),
        beat: Beat::Ping,
        every,
        answer: Which::default(),
        lost_after: Some(every / 2),
        fault: BeatFault::default(),
    }
}

/// Logs in, connects, sends requests on both connections; a handler and an `every` of the chat call
/// the API.
fn member(stays: Duration, then: OnError) -> Session {
    let mut open = connect();
    let mut request = ask("hello", Until::Any);
    let mut there = stay(3, None);
    if let (Statement::Connect(open), Statement::Request(request), Statement::Stay(there)) =
        (&mut open, &mut request, &mut there)
    {
        let (open, request) = (Arc::make_mut(open), Arc::make_mut(request));
        (open.step, open.link) = (StepId(1), CHAT);
        (request.step, request.link, request.timeout) = (StepId(2), CHAT, 200 * MS);
        request.failing.then = then;
        let there = Arc::make_mut(there);
        (there.link, there.time) = (CHAT, Some(stays));
    }
    let code = vec![call(0, 200 * MS), open, request, call(5, 200 * MS), there, think()];
    let calls = |number, step| Beside { number, steps: vec![call(step, 300 * MS)] };
    let handler = Handler {
        step: StepId(7),
        message: Which { checks: vec![body("push")], ..Which::default() },
        checks: Vec::new(),
        saves: Vec::new(),
        body: Some(calls(1, 8)),
        failing: Failing::default(),
    };
    let chat = Link {
        name: "chat".into(),
        targets: [1].into(),
        lasts: true,
        heartbeat: Some(beat(100 * MS)),
        handlers: vec![handler],
        every: vec![Every { time: 40 * MS, body: calls(0, 6) }],
        ..Link::default()
    };
    let api = Link { name: "api".into(), targets: [0].into(), ..Link::default() };
    Session { links: [api, chat].into(), ..session(code, 2) }
}

fn program_of(session: Session, phase: Phase) -> Program {
    let mut one = program(Scheme::Http, vec![session], KINDS, phase);
    let chat = Target { scheme: Scheme::Ws, ..one.targets[0].clone() };
    one.targets.push(chat);
    one
}

/// A chat that also answers plain requests, both with occasional faults.
fn server(faults: u64) -> Server {
    let chat = chat_server(faults);
    Box::new(move |asked, random| {
        if asked.starts_with(b"GET") && !asked.windows(4).any(|four| four == b"\r\n\r\n") {
            return Vec::new();
        }
        let is_upgrade = asked.windows(8).any(|word| word.eq_ignore_ascii_case(b"Upgrade:"));
        if !asked.starts_with(b"GET") || is_upgrade {
            let mut deeds = chat(asked, random);
            if !is_upgrade && random.chance(0.2) {
                let mut push = Vec::new();
                write_frame(&mut push, Opcode::Text, true, false, None, b"push");
                deeds.insert(0, (MS, Deed::Say(push)));
            }
            return deeds;
        }
        asked.clear();
        let delay = MS + MS * random.below(5) as u32;
        match faults > 0 && random.chance(0.05) {
            true if random.chance(0.3) => vec![(delay, Deed::Reset)],
            true if random.chance(0.5) => vec![(delay, Deed::Close)],
            true => Vec::new(),
            false => vec![(delay, say(HELLO))],
        }
    })
}

#[test]
fn users_stay_on_one_connection_and_send_requests_over_another() {
    let drive = Drive::Users(Users { to: 30, coming: Coming::AtOnce });
    let one = program_of(member(300 * MS, OnError::Count), phase(drive, Some(3 * S)));
    let outcome = run(one, 1, |world| world, server(0));
    outcome.is_sound(1);
    assert_eq!(outcome.sum.total().errors, []);
    assert_eq!(outcome.step(0).ok, 30, "each logs in once");
    assert_eq!(outcome.step(1).ok, 30, "and connects once");
    let opened = outcome.sum.connections.counts.opened;
    assert!((60..=210).contains(&opened), "a chat each, and up to six for requests: {opened}");
    assert!(outcome.step(2).ok > 60 && outcome.step(5).ok > 60, "asked over both");
    let besides = outcome.step(6).ok;
    assert!(besides > 30 * 40, "asked besides, every 40 ms: {besides}");
    assert!(outcome.sum.heartbeats.answered > 30 * 20, "{:?}", outcome.sum.heartbeats);
    assert_eq!(outcome.sum.heartbeats.lost, 0);
    assert_eq!(outcome.sum.connections.counts.closed_by_us, opened, "and all are closed in order");
}

#[test]
fn counts_add_up_whichever_connection_is_lost() {
    let (mut lost, mut broken) = (0, 0);
    for seed in 1..60u64 {
        let mut random = Random::new(seed);
        let mut ms = |below: u64| MS * random.below(below) as u32;
        let drive = match seed % 3 {
            0 => Drive::Users(Users { to: 20, coming: Coming::Rate(40.0) }),
            1 => Drive::Users(Users { to: 20, coming: Coming::AtOnce }),
            _ => Drive::Iterations(Iterations::new(20, Some(50.0), None)),
        };
        let then = [OnError::Count, OnError::Next, OnError::Leave][seed as usize / 2 % 3];
        let phase = phase(drive, Some(S + ms(1500)));
        let mut one = program_of(member(20 * MS + ms(300), then), phase);
        one.graceful_stop = ms(600);
        one.precision = Duration::from_micros([0, 1000][seed as usize / 2 % 2]);
        if seed % 4 == 0 {
            let ways = vec![Parting::Reset, Parting::Fin, Parting::Vanish];
            one.loads[0].phases[0].churn = Some(Churn { amount: Amount::Rate(8.0), ways });
        }
        let stop_at = (seed % 5 == 0).then(|| Time::ZERO + ms(2500));
        let play = Play { stop_at, shards: 1 + seed % 2, ..Play::new(one, seed) };
        let outcome = play.run(|world| world.refuse(0.05).clog(0.1), server(seed % 3));
        outcome.is_sound(seed);
        lost +=
            outcome.sum.connections.counts.reset + outcome.sum.connections.counts.closed_by_target;
        broken += outcome.sum.lifecycle.broken;
    }
    assert!(lost > 100 && broken > 50, "{lost} {broken}");
}

#[test]
fn users_back_off_from_a_refusing_target_although_another_responds() {
    let drive = Drive::Users(Users { to: 10, coming: Coming::AtOnce });
    let one = program_of(member(S, OnError::Count), phase(drive, Some(10 * S)));
    let closed: Server = Box::new(|asked, _| {
        let is_upgrade = asked.windows(8).any(|word| word.eq_ignore_ascii_case(b"Upgrade:"));
        asked.clear();
        let refusal = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        vec![(MS, Deed::Say(if is_upgrade { refusal.to_vec() } else { HELLO.to_vec() }))]
    });
    let outcome = run(one, 6, |world| world, closed);
    outcome.is_sound(6);
    let refused = outcome.errors(Cause::UpgradeRefused);
    assert!((50..400).contains(&refused), "{refused}");
}
