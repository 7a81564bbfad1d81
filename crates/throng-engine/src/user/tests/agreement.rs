//! Compares the counts of both sides: scenarios, servers with faults and the end of the load are
//! random, and throng's counts are compared with the server's.
//!
//! `THRONG_BOOKS_SEED=n` replays one world.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;
use throng_metrics::Merge as _;
use throng_program::{OnError, Retry, RetryOn};

/// This many worlds, or the requested one.
pub(super) fn seeds(worlds: u64) -> std::ops::Range<u64> {
    match std::env::var("THRONG_BOOKS_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 1..worlds + 1,
    }
}

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Good,
    /// Good, and the connection is closed gracefully a moment later, when it is idle.
    GoodThenClosed,
    Sorry,
    Reset,
    /// Closed gracefully without a byte.
    Closed,
    /// Closed in the middle of the response.
    Half,
    Garbage,
    /// A good response, followed by bytes that answer nothing.
    Surplus,
    Silent,
    /// Good, long after the client has timed out.
    Slow,
}

const FATES: [Fate; 10] = [
    Fate::Good,
    Fate::GoodThenClosed,
    Fate::Sorry,
    Fate::Reset,
    Fate::Closed,
    Fate::Half,
    Fate::Garbage,
    Fate::Surplus,
    Fate::Silent,
    Fate::Slow,
];

impl Fate {
    fn deeds(self, after: Duration) -> Vec<(Duration, Deed)> {
        match self {
            Fate::Good => vec![(after, say(HELLO))],
            Fate::GoodThenClosed => vec![(after, say(HELLO)), (3 * MS, Deed::Close)],
            Fate::Sorry => {
                vec![(after, say(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))]
            }
            Fate::Reset => vec![(after, Deed::Reset)],
            Fate::Closed => vec![(after, Deed::Close)],
            Fate::Half => vec![(after, say(&HELLO[..30])), (MS, Deed::Close)],
            Fate::Garbage => vec![(after, say(b"SSH-2.0-OpenSSH_9.2\r\n"))],
            Fate::Surplus => vec![(after, Deed::Say([HELLO, HELLO].concat()))],
            Fate::Silent => Vec::new(),
            Fate::Slow => vec![(300 * MS, say(HELLO))],
        }
    }

    /// The cause that throng has to report.
    fn cause(self) -> Option<Cause> {
        match self {
            Fate::Good | Fate::GoodThenClosed => None,
            Fate::Sorry => Some(Cause::StatusUnexpected),
            Fate::Reset => Some(Cause::Reset),
            Fate::Closed | Fate::Half => Some(Cause::ClosedEarly),
            Fate::Garbage | Fate::Surplus => Some(Cause::Malformed),
            Fate::Silent | Fate::Slow => Some(Cause::Timeout),
        }
    }
}

/// The server's counts.
type Books = Rc<RefCell<BTreeMap<Fate, u64>>>;

/// Mostly good, with a few kinds of faults per world.
fn drawn_server(random: &mut Random, books: &Books) -> Server {
    let weights: Vec<u64> = FATES
        .iter()
        .map(|fate| match fate {
            Fate::Good => 20 + random.below(80),
            _ if random.chance(0.5) => 0,
            _ => random.below(12),
        })
        .collect();
    let (books, most) = (Rc::clone(books), 1 + random.below(20));
    http_server(move |random| {
        let mut drawn = random.below(weights.iter().sum());
        let index = weights.iter().position(|weight| match drawn.checked_sub(*weight) {
            Some(rest) => {
                drawn = rest;
                false
            }
            None => true,
        });
        let fate = FATES[index.unwrap()];
        *books.borrow_mut().entry(fate).or_default() += 1;
        fate.deeds(Duration::from_micros(random.below(most * 1000)))
    })
}

fn drawn_failing(random: &mut Random) -> Failing {
    let retry = random.chance(0.3).then(|| Retry {
        on: RetryOn::Any,
        times: random.chance(0.8).then(|| random.below(4) as u32),
        low: MS,
        high: Duration::from_millis(1 + random.below(200)),
    });
    let then = match random.below(10) {
        0..6 => OnError::Count,
        6..8 => OnError::Next,
        8 => OnError::Leave,
        _ if random.chance(0.1) => OnError::Stop,
        _ => OnError::Count,
    };
    Failing { retry, then }
}

/// Requests, some of them in parallel, pauses, and transactions around some of them. Rows 0 to 3
/// are requests, 4 to 6 transactions.
fn drawn_steps(random: &mut Random) -> Block {
    let mut steps = Block::new();
    // The enclosing transactions, the outermost first.
    let mut around: Vec<Block> = Vec::new();
    let close = |around: &mut Vec<Block>, steps: &mut Block| {
        if let Some(outer) = around.pop() {
            let inner = std::mem::replace(steps, outer);
            steps.push(transaction(4 + around.len() as u16, inner));
        }
    };
    for _ in 0..1 + random.below(8) {
        match random.below(9) {
            8 => steps.push(drawn_parallel(random)),
            0 => steps.push(pause(Duration::from_millis(random.below(120)))),
            1 if around.len() < 3 => around.push(std::mem::take(&mut steps)),
            2 => close(&mut around, &mut steps),
            _ => steps.push(step(random.below(4) as u16, drawn_failing(random))),
        }
    }
    while !around.is_empty() {
        close(&mut around, &mut steps);
    }
    // A pass without a request would take no time.
    steps.push(step(0, drawn_failing(random)));
    steps
}

/// Two to four branches of one or two requests.
fn drawn_parallel(random: &mut Random) -> Statement {
    let branches = (0..2 + random.below(3)).map(|_| {
        let requests = 0..1 + random.below(2);
        requests.map(|_| step(random.below(4) as u16, drawn_failing(random))).collect()
    });
    Statement::Parallel(branches.collect())
}

pub(super) fn drawn_phase(random: &mut Random) -> Phase {
    let users = 1 + random.below(60);
    let time = Some(Duration::from_millis(200 + random.below(2500)));
    match random.below(4) {
        0 => phase(Drive::Users(Users { to: users, coming: Coming::AtOnce }), time),
        1 => {
            let rate = 10.0 + random.below(400) as f64;
            phase(Drive::Arrivals(Arrivals::ramp(rate, rate)), time)
        }
        2 => {
            let rate = Some(10.0 + random.below(2000) as f64);
            phase(Drive::Iterations(Iterations::new(users, rate, None)), time)
        }
        _ => {
            let total = Some(1 + random.below(2000));
            phase(Drive::Iterations(Iterations::new(users, None, total)), None)
        }
    }
}

pub(super) fn sum(counts: &[(Cause, u64)], cause: Cause) -> u64 {
    counts.iter().filter(|(known, _)| *known == cause).map(|(_, count)| count).sum()
}

const KINDS: &[StepKind] = &[
    StepKind::Http,
    StepKind::Http,
    StepKind::Http,
    StepKind::Http,
    StepKind::Transaction,
    StepKind::Transaction,
    StepKind::Transaction,
];

#[test]
fn request_counts_agree_with_the_server() {
    seeds(150).for_each(requests_agree);
}

fn requests_agree(seed: u64) {
    let mut random = Random::new(seed);
    let books = Books::default();
    let server = drawn_server(&mut random, &books);
    let mut program = program(
        Scheme::Http,
        vec![session(drawn_steps(&mut random), 0)],
        KINDS,
        drawn_phase(&mut random),
    );
    program.graceful_stop = Duration::from_millis(random.below(600));
    program.precision = Duration::from_micros([0, 250, 1000, 5000][seed as usize % 4]);
    let stop_at =
        random.chance(0.6).then(|| Time::ZERO + Duration::from_millis(random.below(2000)));
    let shards = 1 + random.below(2);
    let (refused, clogged) = (random.below(20) as f64 / 100.0, random.below(20) as f64 / 100.0);
    let play = Play { stop_at, shards, ..Play::new(program, seed) };
    let outcome = play.run(|world| world.refuse(refused).clog(clogged), server);
    outcome.is_sound(seed);

    let mut rows = StepInterval::default();
    (0..4).for_each(|index| rows.merge(&outcome.step(index)));
    let served = |fates: &dyn Fn(Fate) -> bool| {
        let books = books.borrow();
        books.iter().filter(|(fate, _)| fates(**fate)).map(|(_, count)| count).sum::<u64>()
    };
    // The outcome of each request on both sides. A request in flight while the server closed was
    // answered just before, or met the end: as a reset, as a reported close, or as one for which it
    // was resent.
    let (unheard, met) = (outcome.unheard, outcome.unheard + outcome.late);
    let told = |cause| sum(&rows.errors, cause) + sum(&rows.retried, cause);
    let fails_as = |cause| move |fate: Fate| fate.cause() == Some(cause);
    let holds = |what: &str, ours: u64, theirs: u64| {
        assert!(ours <= theirs, "seed {seed}: {what}: throng {ours}, the server {theirs}");
    };
    holds("ok", rows.ok, served(&|fate| fate.cause().is_none()));
    for cause in [Cause::StatusUnexpected, Cause::Malformed, Cause::Timeout] {
        holds(cause.word(), told(cause), served(&fails_as(cause)));
    }
    holds("reset", told(Cause::Reset), served(&fails_as(Cause::Reset)) + met);
    let closed = told(Cause::ClosedEarly) + rows.resent;
    holds("closed", closed, served(&fails_as(Cause::ClosedEarly)) + met);
    holds("resent", rows.resent, unheard);
    // The totals: throng may lack requests that were cut off, and resends that found no connection.
    let causes = [Cause::StatusUnexpected, Cause::Malformed, Cause::Timeout, Cause::Reset];
    let ours = rows.ok + causes.into_iter().map(told).sum::<u64>() + closed;
    let theirs = served(&|_| true) + unheard;
    let unsent = told(Cause::ConnectRefused);
    assert!(
        ours <= theirs && theirs <= ours + rows.interrupted + unsent,
        "seed {seed}: throng {ours}, the server {theirs}, {} interrupted, {unsent} unsent; {:?}, \
         retried {:?}, resent {}; {books:?}",
        rows.interrupted,
        rows.errors,
        rows.retried,
        rows.resent
    );
    // Everything that was sent is reported, and everything reported was sent.
    let tries = rows.begun + rows.retried.iter().map(|(_, count)| count).sum::<u64>() + rows.resent;
    assert!(theirs + unsent <= tries + unheard, "seed {seed}: {theirs} + {unsent} of {tries}");
    assert!(tries <= theirs + unsent + rows.interrupted, "seed {seed}: {theirs} of {tries}");
    let (read, written) = (outcome.read, outcome.written);
    assert_eq!(
        (outcome.sum.traffic.bytes_in, outcome.sum.traffic.bytes_out),
        (read, written),
        "seed {seed}"
    );
}
