//! Connections that the target closes between two requests, and faults that look like it: what is
//! resent, and what is reported.

use std::cell::RefCell;

use super::values::text_with;
use super::*;

/// How long the server keeps an idle connection, and how long its users think.
const KEPT: Duration = Duration::from_millis(50);

/// Users that think nearly as long as the server keeps their connection.
fn thinking(method: &str, users: u64, times: u64) -> Program {
    let Statement::Http(mut http) = get(Vec::new()) else { unreachable!() };
    Arc::make_mut(&mut http).method = method.into();
    let (low, high) = (KEPT - MS / 5, KEPT + MS / 5);
    let code = vec![Statement::Http(http), Statement::Think(Pause::Uniform { low, high })];
    program(Scheme::Http, vec![session(code, 0)], HTTP, iterations(users, times))
}

/// A server that counts what it receives, and does with each request what `deeds` says.
fn counting(
    deeds: impl Fn(&mut Random) -> Vec<(Duration, Deed)> + 'static,
) -> (Server, Rc<Cell<u64>>) {
    let heard = Rc::new(Cell::new(0));
    let count = Rc::clone(&heard);
    let server = http_server(move |random| {
        count.set(count.get() + 1);
        deeds(random)
    });
    (server, heard)
}

fn closes_when_idle(_: &mut Random) -> Vec<(Duration, Deed)> {
    vec![(MS, say(HELLO)), (KEPT, Deed::Close)]
}

#[test]
fn a_request_that_crosses_a_close_is_resent_and_counted() {
    for seed in 1..=5 {
        let (server, heard) = counting(closes_when_idle);
        let outcome = run(thinking("GET", 10, 2000), seed, |world| world, server);
        outcome.is_sound(seed);
        let total = outcome.sum.total();
        assert_eq!(total.count, 2000, "seed {seed}: a request is one attempt");
        assert!(total.resent > 20, "seed {seed}: {}", total.resent);
        // What the server processed it got only once; what it acknowledged before it closed is
        // reported.
        assert_eq!(heard.get(), 2000, "seed {seed}");
        assert_eq!(total.ok + outcome.errors(Cause::ClosedEarly), 2000, "seed {seed}");
    }
}

#[test]
fn a_resent_request_is_identical() {
    let sent = |closes: bool| {
        let mut program = thinking("GET", 1, 300);
        for one in &mut program.sessions[0].steps {
            if let Statement::Http(http) = one {
                Arc::make_mut(http).body = Body::Text(text_with("${random.u64()}", Escape::None));
            }
        }
        let asked = Rc::new(RefCell::new(Vec::new()));
        let all = Rc::clone(&asked);
        let server: Server = Box::new(move |bytes, _| {
            let request = String::from_utf8(std::mem::take(bytes)).unwrap();
            assert_eq!(request.matches("GET / ").count(), 1, "{request}");
            all.borrow_mut().push(request);
            let close = closes.then_some((KEPT, Deed::Close));
            [(MS, say(HELLO))].into_iter().chain(close).collect()
        });
        let outcome = run(program, 1, |world| world, server);
        (asked.take(), outcome.sum.total().resent)
    };
    let ((closed, resent), (kept, none)) = (sent(true), sent(false));
    assert!(resent > 3 && none == 0, "{resent} {none}");
    // Think times are random too: any difference would show from there on.
    assert_eq!(closed, kept);
}

#[test]
fn a_request_that_is_not_idempotent_or_may_not_be_resent_fails() {
    let (server, heard) = counting(closes_when_idle);
    let posted = run(thinking("POST", 10, 2000), 1, |world| world, server);
    let mut never = thinking("GET", 10, 2000);
    never.connection.resend = false;
    let (server, heard_never) = counting(closes_when_idle);
    let never = run(never, 1, |world| world, server);
    for (outcome, heard) in [(posted, heard), (never, heard_never)] {
        outcome.is_sound(1);
        let (total, failed) = (outcome.sum.total(), outcome.errors(Cause::ClosedEarly));
        assert_eq!((total.count, total.resent, total.ok), (2000, 0, 2000 - failed));
        assert!(failed > 20, "{failed}");
        assert!(heard.get() < 2000, "those that failed for it were not heard");
        let words = "the target closed the idle connection just as the request was sent";
        let details: Vec<_> = outcome.examples.iter().map(|one| one.detail.english()).collect();
        assert!(
            details.iter().any(|one| one == words)
                || details == ["the connection was closed before any response"],
            "{details:?}"
        );
    }
}

/// Faults after an idle period, when they look most like the end of an idle connection.
#[test]
fn all_failures_after_a_quiet_period_are_reported() {
    for seed in 1..=5 {
        let (dropped, reset) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (drops, resets) = (Rc::clone(&dropped), Rc::clone(&reset));
        let (server, heard) = counting(move |random| match random.below(10) {
            0 => {
                drops.set(drops.get() + 1);
                vec![(MS, Deed::Close)]
            }
            1 => {
                resets.set(resets.get() + 1);
                vec![(MS, Deed::Reset)]
            }
            _ => vec![(MS, say(HELLO))],
        });
        let outcome = run(thinking("GET", 10, 1500), seed, |world| world, server);
        outcome.is_sound(seed);
        assert_eq!((outcome.sum.total().count, heard.get()), (1500, 1500), "seed {seed}");
        assert_eq!(outcome.errors(Cause::ClosedEarly), dropped.get(), "seed {seed}");
        assert_eq!(outcome.errors(Cause::Reset), reset.get(), "seed {seed}");
        assert_eq!(outcome.sum.total().resent, 0, "seed {seed}");
    }
}
