//! Users that log in on several connections, to names with several addresses: some refuse, and
//! names change their addresses during the run. Every attempt ends once, on every address, and no
//! user is stuck.

use std::collections::BTreeSet;

use throng_program::{Lookup, OnError};

use super::chat::web_server;
use super::*;

const KINDS: &[StepKind] = &[
    StepKind::Connect,
    StepKind::Request,
    StepKind::Connect,
    StepKind::Request,
    StepKind::Http,
    StepKind::Request,
    StepKind::Request,
];

/// Every n-th login is rejected.
const LOGINS_REFUSED: u64 = 7;

fn opens(step: u16, link: u8) -> Statement {
    let mut open = connect();
    if let Statement::Connect(open) = &mut open {
        let open = Arc::make_mut(open);
        (open.step, open.link, open.timeout) = (StepId(step), link, 500 * MS);
    }
    open
}

fn asks(step: u16, link: u8, text: &str, then: OnError) -> Statement {
    let mut request = ask(text, Until::Any);
    if let Statement::Request(request) = &mut request {
        let request = Arc::make_mut(request);
        (request.step, request.link, request.timeout) = (StepId(step), link, 200 * MS);
        (request.failing.then, request.checks) = (then, vec![body(text)]);
    }
    request
}

/// Logs in on two connections, then asks on both, and over HTTP in addition.
fn member(then: OnError) -> Session {
    let mut call = with_timeout(get(Vec::new()), 200 * MS);
    if let Statement::Http(http) = &mut call {
        Arc::make_mut(http).step = StepId(4);
    }
    let logins = [opens(0, 1), asks(1, 1, "login", then), opens(2, 2), asks(3, 2, "login", then)];
    let steps = [call, asks(5, 1, "one", then), asks(6, 2, "two", then), think()];
    let chat = |target: u16| Link {
        name: format!("chat {target}"),
        targets: [target].into(),
        lasts: true,
        ..Link::default()
    };
    let api = Link { name: "api".into(), targets: [0].into(), ..Link::default() };
    let code = logins.into_iter().chain(steps).collect();
    Session { links: [api, chat(1), chat(2)].into(), ..session(code, 4) }
}

fn program_of(then: OnError, drive: Drive, time: Duration) -> Program {
    let mut one = program(Scheme::Http, vec![member(then)], KINDS, phase(drive, Some(time)));
    let name = |number: u16, scheme| Target {
        host: format!("name-{number}.test"),
        scheme,
        lookup: Lookup::OnFailure,
        ..one.targets[0].clone()
    };
    one.targets = vec![name(0, Scheme::Http), name(1, Scheme::Ws), name(2, Scheme::Ws)];
    one
}

/// Answers requests, and chats; rejects some logins.
fn server(faults: u64) -> Server {
    let logins = Cell::new(0);
    let chat = web_server(faults, move |text| {
        logins.set(logins.get() + u64::from(text == "login"));
        let refused = text == "login" && logins.get().is_multiple_of(LOGINS_REFUSED);
        vec![if refused { "no".into() } else { text.to_owned() }]
    });
    Box::new(move |asked, random| {
        let is_upgrade = asked.windows(8).any(|word| word.eq_ignore_ascii_case(b"Upgrade:"));
        if is_upgrade || !asked.starts_with(b"GET") {
            return chat(asked, random);
        }
        if !asked.windows(4).any(|four| four == b"\r\n\r\n") {
            return Vec::new();
        }
        asked.clear();
        vec![(MS + MS * random.below(5) as u32, say(HELLO))]
    })
}

/// The addresses of the three names, initially and later.
fn draw(random: &mut Random, later: u8) -> Vec<Vec<SocketAddr>> {
    let address = |name: u8, nth: u8| SocketAddr::from(([10, name, later, nth], 80));
    let of = |name: u8| (0..1 + random.below(4) as u8).map(|nth| address(name, nth)).collect();
    (0..3).map(of).collect()
}

/// Runs the world of this seed; returns how many connections of the names moved, and how many
/// skipped an address that refused.
fn play(seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let drive = match seed % 3 {
        0 => Drive::Users(Users { to: 15, coming: Coming::Rate(40.0) }),
        1 => Drive::Users(Users { to: 15, coming: Coming::AtOnce }),
        _ => Drive::Iterations(Iterations::new(15, Some(60.0), None)),
    };
    let then = [OnError::Count, OnError::Next, OnError::Leave][seed as usize / 3 % 3];
    let (before, after) = (draw(&mut random, 0), draw(&mut random, 1));
    let mut refusing: Vec<(SocketAddr, f64)> = Vec::new();
    for address in before.iter().chain(&after).flatten() {
        let share = [0.0, 0.0, 0.3, 1.0][random.below(4) as usize];
        refusing.push((*address, share));
    }
    let at = |random: &mut Random| Time::ZERO + MS * (300 + random.below(1_000) as u32);
    let moves = (0..3).map(|name| (at(&mut random), name, after[name].clone())).collect();
    let mut one = program_of(then, drive, 2 * S);
    one.graceful_stop = MS * random.below(500) as u32;
    let stop_at = seed.is_multiple_of(5).then(|| Time::ZERO + MS * random.below(2_000) as u32);
    let addresses = Some(before.clone());
    let play = Play { stop_at, addresses, moves, shards: 1 + seed % 2, ..Play::new(one, seed) };
    let shape = |world: World| {
        let refuse =
            |world: World, (address, share): &(SocketAddr, f64)| world.refuse_at(*address, *share);
        refusing.iter().fold(world, refuse).clog(0.05)
    };
    let outcome = play.run(shape, server(seed % 3));
    outcome.is_sound(seed);
    for (address, share) in &refusing {
        let accepted = outcome.world.accepted(*address);
        assert!(*share < 1.0 || accepted == 0, "seed {seed}: {address}");
        let of = outcome.sum.parts.targets.iter().filter(|row| row.address == Some(*address));
        let opened: u64 = of.map(|row| row.connections_opened).sum();
        // A connection that is open for the socket may break before it counts as open.
        assert!(opened <= accepted, "seed {seed}: {address} {opened} of {accepted}");
    }
    let rows: BTreeSet<_> = outcome.sum.parts.targets.iter().map(|row| row.place()).collect();
    assert_eq!(rows.len(), outcome.sum.parts.targets.len(), "seed {seed}: a row for each address");
    let moved = outcome
        .sum
        .parts
        .targets
        .iter()
        .filter(|row| after.iter().flatten().any(|address| row.address == Some(*address)));
    let passed = outcome.sum.parts.targets.iter().map(|row| row.connections_passed_over).sum();
    (moved.map(|row| row.connections_opened).sum(), passed)
}

#[test]
fn attempts_are_counted_per_address_and_no_user_is_stuck() {
    let (mut moved, mut passed) = (0, 0);
    for seed in 1..120 {
        let (more, over) = play(seed);
        (moved, passed) = (moved + more, passed + over);
    }
    assert!(moved > 1_000 && passed > 500, "{moved} {passed}");
}
