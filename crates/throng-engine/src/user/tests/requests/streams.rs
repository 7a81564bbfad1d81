//! Concurrent iterations of a user over one HTTP/2 connection.

use std::cell::RefCell;

use throng_program::{HttpVersion, OnError};

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;

/// What the server does with a request.
enum Fate {
    Good,
    Refused,
    GoesAway,
    Ends(Deed),
    Silent,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// Answers each request after `delay`, as `fate` says.
fn h2_server(delay: Duration, fate: impl Fn(&mut Random) -> Fate + 'static) -> Server {
    server_of(&[], move |stream, random| answer(stream, delay, fate(random)))
}

/// Takes complete frames: what a server sends to a new client, and the streams of its requests.
fn come(asked: &mut Vec<u8>, settings: &[u8]) -> (Vec<(Duration, Deed)>, Vec<u32>) {
    let (mut deeds, mut requests) = (Vec::new(), Vec::new());
    if asked.starts_with(PREFACE) {
        asked.drain(..PREFACE.len());
        deeds.push((Duration::ZERO, Deed::Say(frame(SETTINGS, 0, 0, settings))));
    }
    while let [a, b, c, kind, _, s @ ..] = &asked[..]
        && let Some(stream) = s.first_chunk::<4>().map(|four| u32::from_be_bytes(*four))
        && let end = 9 + u32::from_be_bytes([0, *a, *b, *c]) as usize
        && asked.len() >= end
    {
        requests.extend((*kind == HEADERS).then_some(stream));
        asked.drain(..end);
    }
    (deeds, requests)
}

/// Allows as many streams as its settings say, and does with each request what `act` says for its
/// stream.
fn server_of(
    settings: &'static [u8],
    act: impl Fn(u32, &mut Random) -> Vec<(Duration, Deed)> + 'static,
) -> Server {
    Box::new(move |asked, random| {
        let (mut deeds, requests) = come(asked, settings);
        requests.into_iter().for_each(|stream| deeds.extend(act(stream, random)));
        deeds
    })
}

fn goaway(last: u32, code: u32) -> Deed {
    Deed::Say(frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat()))
}

fn answer(stream: u32, delay: Duration, fate: Fate) -> Vec<(Duration, Deed)> {
    let deed = match fate {
        // `:status: 200` is in the static table (RFC 7541, appendix A).
        Fate::Good => {
            let head = frame(HEADERS, 4, stream, &[0x88]);
            Deed::Say([head, frame(DATA, END_STREAM, stream, b"hello")].concat())
        }
        Fate::Refused => Deed::Say(frame(RST_STREAM, 0, stream, &7u32.to_be_bytes())),
        Fate::GoesAway => goaway(stream, 0),
        Fate::Ends(deed) => deed,
        Fate::Silent => return Vec::new(),
    };
    vec![(delay, deed)]
}

/// Users that run this many concurrent iterations.
fn at_once(streams: u16, code: Block, phase: Phase) -> Program {
    let mut one = program(Scheme::Http, vec![session(code, 0)], HTTP, phase);
    one.connection.http_version = HttpVersion::Http2;
    one.connection.streams = streams;
    one
}

#[test]
fn each_stream_continues_as_soon_as_it_is_free() {
    for streams in [1, 2, 8, 32] {
        let code = vec![get(Vec::new())];
        let mut one = at_once(streams, code, iterations(2, 20_000));
        one.precision = MS / 4;
        let outcome = run(one, 1, |world| world, h2_server(MS, |_| Fate::Good));
        outcome.is_sound(1);
        let total = outcome.sum.total();
        assert_eq!((total.count, total.ok), (20_000, 20_000), "{streams}");
        let done = &outcome.sum.population;
        assert_eq!((done.iterations_started, done.iterations_finished), (20_000, 20_000));
        assert_eq!(outcome.sum.connections.counts.opened, 2, "{streams}");
        // As many are in flight as start in the time that one takes (J. D. C. Little, 1961).
        let time = outcome.end.as_nanos() as f64;
        let on_their_way = 20_000.0 * total.latency.mean() / time / 2.0;
        let share = on_their_way / f64::from(streams);
        assert!((0.95..1.01).contains(&share), "{streams}: {on_their_way}");
    }
}

#[test]
fn an_iteration_keeps_its_number_while_others_start() {
    let code = vec![log("iteration"), get(Vec::new()), log("iteration"), get(Vec::new())];
    let code = [code, vec![log("iteration")]].concat();
    for streams in [1, 2, 4] {
        let one = at_once(streams, code.clone(), iterations(1, 6));
        let outcome = run(one, 1, |world| world, h2_server(5 * MS, |_| Fate::Good));
        outcome.is_sound(1);
        let mut said: Vec<u64> = outcome.lines().iter().map(|line| line.parse().unwrap()).collect();
        said.sort_unstable();
        let each = (1..=6).flat_map(|number| [number; 3]);
        assert_eq!(said, each.collect::<Vec<u64>>(), "{streams}");
    }
}

#[test]
fn a_rate_is_kept_over_streams_and_measured_from_the_scheduled_start() {
    for (streams, waits) in [(4, true), (32, false)] {
        // Four streams run 200 of the 600 that are due each second.
        let drive = Drive::Iterations(Iterations::new(1, Some(600.0), None));
        let code = vec![with_timeout(get(Vec::new()), 10 * S)];
        let mut one = at_once(streams, code, phase(drive, Some(2 * S)));
        one.graceful_stop = S;
        let outcome = run(one, 1, |world| world, h2_server(20 * MS, |_| Fate::Good));
        outcome.is_sound(1);
        let (total, people) = (outcome.sum.total(), &outcome.sum.population);
        assert_eq!(total.ok + people.unmet, 1200, "{streams}");
        let short = (people.waited > 100, people.unmet > 500);
        assert_eq!(short, (waits, waits), "{streams}: {people:?}");
        let most = total.latency.value_at(0.99) / 1_000_000;
        assert_eq!(most > 500, waits, "{streams}: {most} ms");
        assert!(waits || most < 30, "{streams}: {most} ms");
    }
}

#[test]
fn an_arriving_user_runs_one_iteration_whatever_the_streams() {
    let drive = Drive::Arrivals(Arrivals::ramp(100.0, 100.0));
    let one = at_once(8, vec![get(Vec::new())], phase(drive, Some(2 * S)));
    let outcome = run(one, 1, |world| world, h2_server(5 * MS, |_| Fate::Good));
    outcome.is_sound(1);
    assert_eq!((outcome.sum.total().ok, outcome.sum.connections.counts.opened), (200, 200));
}

/// Users that post over streams, with a response within a second.
fn posting(users: u64, times: u64) -> Program {
    let Statement::Http(mut http) = with_timeout(get(Vec::new()), S) else { unreachable!() };
    Arc::make_mut(&mut http).method = "POST".into();
    at_once(8, vec![Statement::Http(http)], iterations(users, times))
}

/// The requests that the server processed, and those it received.
#[derive(Clone, Default)]
struct Books(Rc<Cell<[u64; 2]>>);

impl Books {
    fn count(&self, is_processed: bool) {
        let [asked, processed] = self.0.get();
        self.0.set([asked + 1, processed + u64::from(is_processed)]);
    }
}

/// As nginx does: a connection is limited to a number of requests, and with the last of them, or
/// right after its response, the server sends GOAWAY. It never processes what arrived meanwhile.
#[test]
fn requests_that_a_closing_server_did_not_process_are_resent_whatever_the_method() {
    for (code, is_behind, seed) in [(0, false, 1), (0, true, 2), (11, false, 3), (2, true, 4)] {
        let books = Books::default();
        let own = books.clone();
        let server = server_of(&[], move |stream, random| {
            own.count(stream <= 99);
            let time = MS + MS.mul_f64(random.unit());
            let answer = || answer(stream, time, Fate::Good);
            match stream {
                ..99 => answer(),
                99 if is_behind => {
                    answer().into_iter().chain([(Duration::ZERO, goaway(99, code))]).collect()
                }
                99 => [(Duration::ZERO, goaway(99, code))].into_iter().chain(answer()).collect(),
                _ => Vec::new(),
            }
        });
        let outcome = run(posting(4, 4000), seed, |world| world, server);
        outcome.is_sound(seed);
        let total = outcome.sum.total();
        let [asked, processed] = books.0.get();
        assert_eq!((total.ok, total.count), (4000, 4000), "{code} {:?}", total.errors);
        assert_eq!((processed, asked), (4000, 4000 + total.resent), "{code}");
        assert!(total.resent > 20, "{code}: {}", total.resent);
        assert!((80..=90).contains(&outcome.sum.connections.counts.opened), "{:?}", outcome.sum);
        // Its time continues: it is one attempt, from when it was due.
        assert!(total.latency.max() < 20_000_000, "{} ns", total.latency.max());
    }
}

#[test]
fn refused_streams_are_resent_whatever_the_method() {
    let books = Books::default();
    let own = books.clone();
    let server = server_of(&[], move |stream, random| {
        let is_refused = random.below(10) == 0;
        own.count(!is_refused);
        answer(stream, MS, if is_refused { Fate::Refused } else { Fate::Good })
    });
    let outcome = run(posting(4, 4000), 1, |world| world, server);
    outcome.is_sound(1);
    let total = outcome.sum.total();
    let [asked, processed] = books.0.get();
    assert_eq!((total.ok, total.count, processed), (4000, 4000, 4000), "{:?}", total.errors);
    assert_eq!(asked, 4000 + total.resent);
    assert!(total.resent > 300, "{}", total.resent);
    // The connection stays open.
    assert_eq!(outcome.sum.connections.counts.opened, 4);
}

#[test]
fn a_server_that_refuses_everything_is_not_asked_forever() {
    let refuses = |stream: u32| answer(stream, MS, Fate::Refused);
    let goes = |_: u32| vec![(MS, goaway(0, 0))];
    let twice = "the target reset the stream: REFUSED_STREAM; the request was sent 7 times";
    let gone =
        "the target sent GOAWAY before it processed the request; the request was sent 7 times";
    type Act = fn(u32) -> Vec<(Duration, Deed)>;
    for (act, cause, text) in
        [(refuses as Act, Cause::Reset, twice), (goes as Act, Cause::ClosedEarly, gone)]
    {
        for (resend, times) in [(true, 7), (false, 1)] {
            let books = Books::default();
            let own = books.clone();
            let server = server_of(&[], move |stream, _| {
                own.count(false);
                act(stream)
            });
            let mut one = posting(2, 100);
            one.connection.resend = resend;
            one.connection.streams = 1;
            let outcome = run(one, 1, |world| world, server);
            outcome.is_sound(1);
            let total = outcome.sum.total();
            assert_eq!((total.count, outcome.errors(cause)), (100, 100), "{:?}", total.errors);
            assert_eq!((books.0.get(), total.resent), ([100 * times, 0], 100 * (times - 1)));
            let detail = outcome.examples[0].detail.english();
            assert_eq!(detail, if resend { text } else { text.split("; ").next().unwrap() });
        }
    }
}

/// The first response on each connection takes long, and the connection is closed meanwhile.
#[test]
fn no_request_waits_for_a_connection_that_is_closing() {
    let opened = Rc::new(Cell::new(0));
    let count = Rc::clone(&opened);
    let server = server_of(&[], move |stream, _| match stream {
        1 => {
            count.set(count.get() + 1);
            answer(stream, S / 2, Fate::Good)
        }
        399 => [(Duration::ZERO, goaway(399, 0))]
            .into_iter()
            .chain(answer(stream, MS, Fate::Good))
            .collect(),
        _ => answer(stream, MS, Fate::Good),
    });
    let drive = Drive::Iterations(Iterations::new(1, Some(800.0), None));
    let code = vec![with_timeout(get(Vec::new()), S)];
    let one = at_once(32, code, phase(drive, Some(4 * S)));
    let outcome = run(one, 1, |world| world, server);
    outcome.is_sound(1);
    let total = outcome.sum.total();
    assert_eq!((total.ok, total.count), (3200, 3200), "{:?}", total.errors);
    assert_eq!(outcome.sum.connections.counts.opened, opened.get());
    assert!((16..=18).contains(&opened.get()), "{}", opened.get());
    // Only requests that the server itself delayed took long.
    let quick = (total.count - opened.get()) as f64 / total.count as f64;
    let most = total.latency.value_at(quick - 0.001) / 1_000_000;
    assert!(most < 10, "{most} ms");
}

/// All lines have a connection that is closing: the first that ends makes room.
#[test]
fn a_waiting_request_continues_after_the_last_response() {
    let server = server_of(&[], |stream, random| {
        let slow = random.below(3) == 0;
        let time = if slow { 40 * MS } else { MS };
        let answer = answer(stream, time, Fate::Good);
        match stream {
            7 => answer.into_iter().chain([(Duration::ZERO, goaway(7, 0))]).collect(),
            9.. => Vec::new(),
            _ => answer,
        }
    });
    let outcome = run(posting(2, 2000), 1, |world| world, server);
    outcome.is_sound(1);
    let total = outcome.sum.total();
    assert_eq!((total.ok, total.count), (2000, 2000), "{:?}", total.errors);
}

const FIVE_STREAMS: &[u8] = &[0, 3, 0, 0, 0, 5];

/// 32 concurrent iterations over five streams of 20 ms: each waits for 108 ms, and has 180.
#[test]
fn requests_that_wait_for_a_stream_are_served_in_order() {
    for seed in 1..=3 {
        let server = server_of(FIVE_STREAMS, |stream, _| answer(stream, 20 * MS, Fate::Good));
        let code = vec![with_timeout(get(Vec::new()), 180 * MS)];
        let outcome = run(at_once(32, code, iterations(2, 4000)), seed, |world| world, server);
        outcome.is_sound(seed);
        let total = outcome.sum.total();
        assert_eq!((total.ok, total.count), (4000, 4000), "{:?}", total.errors);
        assert_eq!(outcome.sum.connections.counts.opened, 2);
    }
}

#[test]
fn a_request_that_waits_in_vain_reports_how_long_and_for_what() {
    const ONE_STREAM: &[u8] = &[0, 3, 0, 0, 0, 1];
    let server = server_of(ONE_STREAM, |stream, _| answer(stream, 300 * MS, Fate::Good));
    let code = vec![with_timeout(get(Vec::new()), 500 * MS)];
    let outcome = run(at_once(8, code, iterations(1, 40)), 1, |world| world, server);
    outcome.is_sound(1);
    assert!(outcome.errors(Cause::Timeout) > 10, "{:?}", outcome.sum.total());
    let details: Vec<_> = outcome.examples.iter().map(|one| one.detail.english()).collect();
    assert_eq!(
        details,
        ["no stream was free within 500ms: the target allows 1 concurrent streams"]
    );
}

#[test]
fn counts_of_streams_add_up_whenever_the_run_ends() {
    let (mut interrupted, mut lost) = (0, 0);
    for seed in 1..80u64 {
        let mut random = Random::new(seed);
        let mut ms = |below: u64| MS * random.below(below) as u32;
        let then = [OnError::Count, OnError::Next, OnError::Leave][seed as usize % 3];
        let failing = Failing { then, ..Failing::default() };
        let code = vec![step(0, failing), step(1, failing)];
        let time = Some(S + ms(900));
        let phase = match seed % 3 {
            0 => phase(Drive::Users(Users { to: 4, coming: Coming::Rate(60.0) }), time),
            1 => {
                let rate = Some(700.0);
                phase(Drive::Iterations(Iterations::new(3, rate, None)), time)
            }
            _ => iterations(3, 700),
        };
        let mut one = at_once(2 + seed as u16 % 9, code, phase);
        one.graceful_stop = ms(30);
        let server = h2_server(10 * MS, |random| match random.below(150) {
            0 => Fate::Ends(Deed::Reset),
            1 => Fate::Ends(Deed::Close),
            2..5 => Fate::Refused,
            5 => Fate::GoesAway,
            6..8 => Fate::Silent,
            8 => Fate::Ends(say(b"SSH-2.0-OpenSSH_9.2\r\n")),
            _ => Fate::Good,
        });
        let stop_at = (seed % 4 == 0).then(|| Time::ZERO + ms(1500));
        let play = Play { stop_at, shards: 1 + seed % 2, ..Play::new(one, seed) };
        let outcome = play.run(|world| world.refuse(0.05).clog(0.1), server);
        outcome.is_sound(seed);
        let done = &outcome.sum.population;
        assert!(done.iterations_finished <= done.iterations_started, "seed {seed}: {done:?}");
        if seed % 3 == 2 && stop_at.is_none() && then != OnError::Leave {
            assert_eq!(done.iterations_started, 700, "seed {seed}");
        }
        interrupted += outcome.sum.total().interrupted;
        lost += outcome.errors(Cause::Reset) + outcome.errors(Cause::ClosedEarly);
    }
    assert!(interrupted > 20, "the end came in the middle of iterations: {interrupted}");
    assert!(lost > 500, "connections were lost with many on their way: {lost}");
}

/// What a server did with the requests that it received.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    good: u64,
    bad: u64,
    silent: u64,
    /// Refused, or above the last stream of a connection that it closes.
    unprocessed: u64,
}

/// Marks bytes of a connection that the server closes: no frame starts like that.
const LEFT: u8 = 0xff;

/// Longer than any delay to the client: what a server does this much later does not overtake its
/// settings.
const LATER: Duration = Duration::from_micros(200);

/// A server that keeps its connections, except those that it closes with a GOAWAY: streams above
/// the last one it names are never processed.
fn bookkeeper(random: &mut Random, books: &Rc<RefCell<Heard>>) -> Server {
    let [sorry, refused, leaves, silent] = [random.below(9), random.below(9), random.below(3), 2];
    let (books, most) = (Rc::clone(books), 1 + random.below(20));
    Box::new(move |asked, random| {
        let mut is_left = asked.first() == Some(&LEFT);
        if is_left {
            asked.remove(0);
        }
        let (mut deeds, requests) = come(asked, &[]);
        for stream in requests {
            let mut books = books.borrow_mut();
            let after = LATER + Duration::from_micros(random.below(most * 1000));
            let drawn = random.below(100);
            match drawn {
                _ if is_left => books.unprocessed += 1,
                _ if drawn < silent => books.silent += 1,
                _ if drawn < silent + refused => {
                    books.unprocessed += 1;
                    deeds.extend(answer(stream, after, Fate::Refused));
                }
                _ if drawn < silent + refused + sorry => {
                    books.bad += 1;
                    // `:status: 500` (RFC 7541, appendix A).
                    let head = frame(HEADERS, 4 | END_STREAM, stream, &[0x8e]);
                    deeds.push((after, Deed::Say(head)));
                }
                _ => {
                    books.good += 1;
                    is_left = drawn < silent + refused + sorry + leaves;
                    deeds.extend(is_left.then(|| (LATER, goaway(stream, 0))));
                    deeds.extend(answer(stream, after, Fate::Good));
                }
            }
        }
        if is_left {
            asked.insert(0, LEFT);
        }
        deeds
    })
}

#[test]
fn request_counts_over_streams_agree_with_the_server() {
    let (mut unprocessed, mut given_up) = (0, 0);
    for seed in agreement::seeds(120) {
        let mut random = Random::new(seed);
        let books = Rc::new(RefCell::new(Heard::default()));
        let server = bookkeeper(&mut random, &books);
        let streams = [1, 2, 8, 32][random.below(4) as usize];
        let request = with_timeout(step(0, Failing::default()), 400 * MS);
        let mut program = at_once(streams, vec![request], agreement::drawn_phase(&mut random));
        program.graceful_stop = Duration::from_millis(random.below(600));
        let stop_at =
            random.chance(0.6).then(|| Time::ZERO + Duration::from_millis(random.below(2000)));
        let play = Play { stop_at, shards: 1 + random.below(2), ..Play::new(program, seed) };
        let outcome = play.run(|world| world.clog(0.1), server);
        outcome.is_sound(seed);
        let (row, books) = (outcome.step(0), *books.borrow());
        let details: Vec<_> = outcome.examples.iter().map(|one| one.detail.english()).collect();
        let errors = |cause| agreement::sum(&row.errors, cause);
        // Requests that timed out while waiting for a connection never reached the server.
        let failed: u64 = row.errors.iter().map(|(_, count)| count).sum();
        let heard = books.good + books.bad + books.silent + books.unprocessed;
        let sent_at_most = row.ok + failed + row.interrupted + row.resent;
        assert!(heard <= sent_at_most, "seed {seed}: {heard} heard, {row:?}");
        let in_vain = errors(Cause::Timeout).saturating_sub(books.silent);
        assert!(in_vain <= sent_at_most - heard, "seed {seed}: {row:?}, {books:?}, {details:?}");
        let told = [
            ("ok", row.ok, books.good),
            ("bad", errors(Cause::StatusUnexpected), books.bad),
            ("silent", errors(Cause::Timeout) - in_vain, books.silent),
        ];
        let mut missing = 0;
        for (what, ours, theirs) in told {
            let text = format!(
                "seed {seed}: {what}: throng {ours}, the server {books:?}, {:?} {details:?}",
                row.errors
            );
            assert!(ours <= theirs && theirs <= ours + row.interrupted, "{text}");
            missing += theirs - ours;
        }
        let refused = failed - errors(Cause::StatusUnexpected) - errors(Cause::Timeout);
        let (ours, theirs) = (row.resent + refused, books.unprocessed);
        let text = format!("seed {seed}: unprocessed: throng {ours}, {books:?}, {details:?}");
        assert!(ours <= theirs && theirs <= ours + row.interrupted, "{text}");
        assert!(missing + (theirs - ours) <= row.interrupted, "{text}");
        unprocessed += row.resent;
        given_up += refused;
    }
    assert!(unprocessed > 1000, "{unprocessed} were sent again, {given_up} too often");
}
