//! Branches that run concurrently: a page and its resources.

use throng_program::OnError;

use super::*;

const KINDS: &[StepKind] = &[StepKind::Http, StepKind::Transaction];

/// A page, followed by this many concurrent resources, each requested twice.
fn page(resources: usize, width: Option<u8>, then: OnError) -> Session {
    let failing = Failing { then, ..Failing::default() };
    let branch = vec![step(0, failing), step(0, failing)];
    let parallel = Statement::Parallel(vec![branch; resources]);
    let code = vec![step(0, Failing::default()), transaction(1, vec![parallel]), think()];
    let mut session = session(code, 0);
    session.links[0].width = width;
    session
}

fn visits(session: Session, users: u64, total: u64) -> Program {
    program(Scheme::Http, vec![session], KINDS, iterations(users, total))
}

#[test]
fn branches_take_as_long_as_the_longest() {
    let answer = || http_server(|_| vec![(10 * MS, say(HELLO))]);
    for (width, resources, takes) in [(None, 4, 20), (Some(2), 4, 40), (Some(1), 3, 60)] {
        let one = visits(page(resources, width, OnError::Count), 5, 50);
        let outcome = run(one, 1, |world| world, answer());
        outcome.is_sound(1);
        assert_eq!(outcome.sum.total().errors, []);
        assert_eq!(outcome.step(0).ok, 50 * (1 + 2 * resources as u64));
        let whole = outcome.step(1);
        assert_eq!(whole.ok, 50);
        let middle = whole.latency.value_at(0.5) / 1_000_000;
        // The first time, connections are opened too.
        assert!((takes..takes + 3).contains(&middle), "{width:?} {resources}: {middle} ms");
        let most = 5 * u64::from(width.unwrap_or(6).min(resources as u8));
        assert_eq!(
            outcome.sum.connections.counts.opened, most,
            "as many as are asked over, each kept"
        );
    }
}

#[test]
fn a_failure_in_a_branch_fails_the_enclosing_transaction() {
    let bad = || http_server(|_| vec![(MS, say(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"))]);
    for (then, asked) in [(OnError::Count, 1 + 2 * 3), (OnError::Next, 1 + 3)] {
        let outcome = run(visits(page(3, None, then), 2, 20), 1, |world| world, bad());
        outcome.is_sound(1);
        assert_eq!(outcome.step(0).count, 20 * asked, "{then:?}");
        let whole = outcome.step(1);
        assert_eq!((whole.ok, whole.errors), (0, vec![(Cause::StatusUnexpected, 20)]), "{then:?}");
    }
}

#[test]
fn counts_of_branches_add_up_whenever_the_run_ends() {
    let mut interrupted = 0;
    for seed in 1..60u64 {
        let mut random = Random::new(seed);
        let mut ms = |below: u64| MS * random.below(below) as u32;
        let then = [OnError::Count, OnError::Next, OnError::Leave][seed as usize % 3];
        let drive = Drive::Users(Users { to: 15, coming: Coming::Rate(60.0) });
        let session = page(4, [None, Some(2)][seed as usize % 2], then);
        let mut one = program(Scheme::Http, vec![session], KINDS, phase(drive, Some(S + ms(900))));
        one.graceful_stop = ms(300);
        let server = http_server(|random| match random.below(40) {
            0 => vec![(MS, Deed::Reset)],
            1 => vec![(MS, Deed::Close)],
            2 => Vec::new(),
            _ => vec![(MS * random.below(60) as u32, say(HELLO))],
        });
        let stop_at = (seed % 4 == 0).then(|| Time::ZERO + ms(1500));
        let play = Play { stop_at, shards: 1 + seed % 2, ..Play::new(one, seed) };
        let outcome = play.run(|world| world.refuse(0.05).clog(0.1), server);
        outcome.is_sound(seed);
        interrupted += outcome.step(0).interrupted;
    }
    assert!(interrupted > 20, "the end came in the middle of branches: {interrupted}");
}

/// A case in which throng itself ends an HTTP connection: a response after which the connection
/// cannot be used. It may be the last event of the background tasks.
#[test]
fn users_continue_when_a_branch_ends_with_a_connection_that_throng_drops() {
    const BEYOND: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more";
    const BAD: &[u8] = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\nmore";
    let twice = [HELLO, HELLO].concat();
    let answers = [BEYOND.to_vec(), BAD.to_vec(), twice];
    for then in [OnError::Count, OnError::Next] {
        for (seed, answer) in (1..).zip(&answers) {
            let answer = answer.clone();
            let server = http_server(move |random| match random.chance(0.05) {
                true => vec![(MS, Deed::Say(answer.clone()))],
                false => vec![(MS, say(HELLO))],
            });
            let one = visits(page(3, None, then), 10, 400);
            let outcome = run(one, seed, |world| world, server);
            outcome.is_sound(seed);
            let population = &outcome.sum.population;
            assert_eq!(population.iterations_started, 400, "{then:?} {seed}: {population:?}");
            let left = outcome.step(1).errors.iter().map(|(_, count)| count).sum::<u64>();
            assert!(left > 20, "{then:?} {seed}: the session hears that a branch failed: {left}");
            let finished = if then == OnError::Count { 400 } else { 400 - left };
            assert_eq!(population.iterations_finished, finished, "{then:?} {seed}");
            assert!(outcome.end < Time::from_secs(60), "{then:?} {seed}: {:?}", outcome.end);
        }
    }
}

/// A target that refuses a body responds before all of it was sent.
#[test]
fn users_continue_when_a_branch_gets_its_response_before_its_body_was_sent() {
    let mut upload = get(Vec::new());
    if let Statement::Http(http) = &mut upload {
        let http = Arc::make_mut(http);
        let body = Text::literal("x".repeat(1 << 20));
        (http.method, http.body) = ("POST".into(), Body::Text(body));
    }
    let parallel = Statement::Parallel(vec![vec![upload]]);
    let one = program(Scheme::Http, vec![session(vec![parallel], 0)], KINDS, iterations(5, 50));
    let server: Server = Box::new(|asked, _| {
        let is_head = asked.starts_with(b"POST ");
        asked.clear();
        let refused = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
        if is_head { vec![(MS, say(refused))] } else { Vec::new() }
    });
    let outcome = run(one, 1, |world| world.clog(1.0), server);
    outcome.is_sound(1);
    assert_eq!(outcome.sum.population.iterations_finished, 50);
}

/// A branch whose connection does not open ends while the user listens, and has no line to listen
/// on.
#[test]
fn users_continue_when_the_last_branch_cannot_connect() {
    let one = visits(page(1, None, OnError::Next), 5, 100);
    let mut one = Program { graceful_stop: S, ..one };
    one.connection.keep_alive = false;
    let outcome = run(one, 1, |world| world.refuse(0.3), http_server(|_| vec![(MS, say(HELLO))]));
    outcome.is_sound(1);
    assert_eq!(outcome.sum.population.iterations_started, 100);
    // Nothing takes longer than some milliseconds, and the timeout is 200.
    assert!(outcome.end < Time::from_secs(1), "{:?}", outcome.end);
}
