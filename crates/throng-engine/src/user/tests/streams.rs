//! Iterations that a user does at once over one connection of HTTP/2.

use throng_program::{HttpVersion, OnError};

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;

/// What the server makes of a request.
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

/// Answers each request after `delay`, as `fate` has it.
fn h2_server(delay: Duration, fate: impl Fn(&mut Random) -> Fate + 'static) -> Server {
    Box::new(move |asked, random| {
        let mut deeds = Vec::new();
        if asked.starts_with(PREFACE) {
            asked.drain(..PREFACE.len());
            deeds.push((Duration::ZERO, Deed::Say(frame(SETTINGS, 0, 0, &[]))));
        }
        while let [a, b, c, kind, _, s @ ..] = &asked[..]
            && let Some(stream) = s.first_chunk::<4>().map(|four| u32::from_be_bytes(*four))
            && let end = 9 + u32::from_be_bytes([0, *a, *b, *c]) as usize
            && asked.len() >= end
        {
            let is_request = *kind == HEADERS;
            asked.drain(..end);
            if is_request {
                deeds.extend(answer(stream, delay, fate(random)));
            }
        }
        deeds
    })
}

fn answer(stream: u32, delay: Duration, fate: Fate) -> Vec<(Duration, Deed)> {
    let deed = match fate {
        // `:status: 200` is in the static table (RFC 7541, appendix A).
        Fate::Good => {
            let head = frame(HEADERS, 4, stream, &[0x88]);
            Deed::Say([head, frame(DATA, END_STREAM, stream, b"hello")].concat())
        }
        Fate::Refused => Deed::Say(frame(RST_STREAM, 0, stream, &7u32.to_be_bytes())),
        Fate::GoesAway => Deed::Say(frame(GOAWAY, 0, 0, &[stream.to_be_bytes(), [0; 4]].concat())),
        Fate::Ends(deed) => deed,
        Fate::Silent => return Vec::new(),
    };
    vec![(delay, deed)]
}

/// Users who run this many iterations at once.
fn at_once(streams: u16, code: Block, phase: Phase) -> Program {
    let mut one = program(Scheme::Http, vec![session(code, 0)], HTTP, phase);
    one.connection.http_version = HttpVersion::Http2;
    one.connection.streams = streams;
    one
}

#[test]
fn each_stream_goes_on_as_soon_as_it_is_free() {
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
        assert_eq!(outcome.sum.connections.opened, 2, "{streams}");
        // As many are on their way as come in the time that one takes (J. D. C. Little, 1961).
        let time = outcome.end.as_nanos() as f64;
        let on_their_way = 20_000.0 * total.latency.mean() / time / 2.0;
        let share = on_their_way / f64::from(streams);
        assert!((0.95..1.01).contains(&share), "{streams}: {on_their_way}");
    }
}

#[test]
fn a_rate_is_kept_over_streams_and_counts_from_when_it_was_due() {
    for (streams, waits) in [(4, true), (32, false)] {
        // Four streams do 200 of the 600 that are due each second.
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
fn who_arrives_does_one_iteration_whatever_the_streams() {
    let drive = Drive::Arrivals(Arrivals::ramp(100.0, 100.0));
    let one = at_once(8, vec![get(Vec::new())], phase(drive, Some(2 * S)));
    let outcome = run(one, 1, |world| world, h2_server(5 * MS, |_| Fate::Good));
    outcome.is_sound(1);
    assert_eq!((outcome.sum.total().ok, outcome.sum.connections.opened), (200, 200));
}

#[test]
fn streams_keep_the_books_wherever_the_run_ends() {
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
