//! Compares the counts of both sides for messages: requests, pushes and their handlers, heartbeats
//! and recurring actions, in random worlds.

use super::super::agreement::{drawn_phase, seeds, sum};
use super::*;

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Good,
    /// The reply contains another `x` than was requested.
    Wrong,
    /// The reply is shorter than declared.
    Broken,
    Silent,
    Reset,
    Closed,
}

/// The server's counts.
#[derive(Debug, Default)]
struct Books {
    good: Cell<u64>,
    wrong: Cell<u64>,
    broken: Cell<u64>,
    silent: Cell<u64>,
    asks: Cell<u64>,
    pings: Cell<u64>,
    pongs: Cell<u64>,
    pushes: Cell<u64>,
    acks: Cell<u64>,
}

fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// What may happen in a world.
struct Weather {
    /// Shares of requests.
    wrong: f64,
    broken: f64,
    silent: f64,
    ends: f64,
    /// Shares of heartbeats.
    deaf: f64,
    pushes_max: u64,
    delay_us_max: u64,
}

fn drawn_weather(random: &mut Random, calm: bool) -> Weather {
    let mut share = |most: u64| match random.chance(0.5) {
        true => random.below(most) as f64 / 1000.0,
        false => 0.0,
    };
    let (wrong, broken, silent, deaf) = (share(200), share(200), share(50), share(300));
    let ends = if calm { 0.0 } else { share(100) };
    let pushes_max = if random.chance(0.05) { 200 } else { 4 };
    Weather {
        wrong,
        broken,
        silent,
        ends,
        deaf,
        pushes_max,
        delay_us_max: 1 + random.below(20_000),
    }
}

impl Weather {
    fn fate(&self, random: &mut Random) -> Fate {
        match () {
            () if random.chance(self.ends) && random.chance(0.5) => Fate::Reset,
            () if random.chance(self.ends) => Fate::Closed,
            () if random.chance(self.wrong) => Fate::Wrong,
            () if random.chance(self.broken) => Fate::Broken,
            () if random.chance(self.silent) => Fate::Silent,
            () => Fate::Good,
        }
    }
}

fn drawn_server(weather: Weather, books: &Rc<Books>) -> Server {
    let books = Rc::clone(books);
    Box::new(move |asked, random| {
        let mut deeds = Vec::new();
        for (kind, seq, body) in asked_packets(asked) {
            let after = Duration::from_micros(random.below(weather.delay_us_max));
            match kind {
                1 => {
                    count(&books.asks);
                    for _ in 0..random.below(weather.pushes_max) {
                        count(&books.pushes);
                        let id = books.pushes.get().to_be_bytes();
                        deeds.push((Duration::ZERO, say(&packet(3, 0, &id))));
                    }
                    let x = body[0];
                    let (tally, deed) = match weather.fate(random) {
                        Fate::Good => (&books.good, say(&packet(2, seq, &[x, 0]))),
                        Fate::Wrong => (&books.wrong, say(&packet(2, seq, &[x + 1, 0]))),
                        Fate::Broken => (&books.broken, say(&packet(2, seq, &[x]))),
                        Fate::Silent => (&books.silent, say(&[])),
                        Fate::Reset => (&books.silent, Deed::Reset),
                        Fate::Closed => (&books.silent, Deed::Close),
                    };
                    count(tally);
                    deeds.push((after, deed));
                }
                4 => count(&books.acks),
                5 => {
                    count(&books.pings);
                    if !random.chance(weather.deaf) {
                        count(&books.pongs);
                        deeds.push((after, say(&packet(6, seq, &[]))));
                    }
                }
                kind => panic!("nothing sends {kind}"),
            }
        }
        deeds
    })
}

const ACKS: StepId = StepId(5);
const ASKS: StepId = StepId(1);

fn drawn_program(random: &mut Random) -> Program {
    let protocol = protocol(true);
    let id = protocol.field(PUSH, "id").unwrap();
    let value = Expression::compile("a", &mut Slots(2)).unwrap();
    let acked = Text { segments: vec![Segment::Value { value, escape: Escape::None }] };
    let mut acknowledge = vec![Statement::Send(Arc::new(Send {
        timeout: 30 * S,
        step: ACKS,
        link: 0,
        message: message(&protocol, ACK, &[("id", acked)]),
        failing: Failing::default(),
    }))];
    if random.chance(0.5) {
        acknowledge.insert(0, think(Duration::from_millis(random.below(30))));
    }
    let asks = |x| Statement::Request(Arc::new(ask(&protocol, x)));
    let mut code = vec![connect()];
    for _ in 0..1 + random.below(4) {
        code.push(asks(random.below(9) as u8));
        match random.below(3) {
            0 => code.push(think(Duration::from_millis(random.below(60)))),
            1 => code.push(stay_for(Duration::from_millis(random.below(60)))),
            _ => {}
        }
    }
    let save = Save { slot: 2, pick: Pick::Field([id].into()), all: false, default: None };
    let (beats, repeats) = (random.chance(0.7), random.chance(0.5));
    let every = every(Duration::from_millis(20 + random.below(200)), vec![asks(9)]);
    let beat = beat(&protocol, Duration::from_millis(50 + random.below(400)));
    let shape = |session: &mut Session| {
        session.links[0].handlers =
            vec![Handler { saves: vec![save], ..handler(which(PUSH), acknowledge) }];
        session.links[0].heartbeat = beats.then_some(beat);
        if repeats {
            session.links[0].every = vec![every];
        }
    };
    talkers(&protocol, code, shape, drawn_phase(random))
}

#[test]
fn message_counts_agree_with_the_server() {
    // These worlds are larger than those of requests.
    seeds(60).for_each(messages_agree);
}

fn messages_agree(seed: u64) {
    let mut random = Random::new(seed);
    // In half of the worlds only the clients end connections.
    let calm = random.chance(0.5);
    let books = Rc::new(Books::default());
    let server = drawn_server(drawn_weather(&mut random, calm), &books);
    let mut program = drawn_program(&mut random);
    program.graceful_stop = Duration::from_millis(random.below(600));
    program.precision = Duration::from_micros([0, 250, 1000, 5000][seed as usize % 4]);
    let stop_at =
        random.chance(0.6).then(|| Time::ZERO + Duration::from_millis(random.below(2000)));
    let clogged = if calm { 0.0 } else { random.below(20) as f64 / 100.0 };
    let play = Play { stop_at, shards: 1 + random.below(2), ..Play::new(program, seed) };
    let outcome = play.run(|world| world.clog(clogged), server);
    outcome.is_sound(seed);

    let said = format!("seed {seed}, calm {calm}: {books:?}\n{:?}", outcome.sum.traffic.messages);
    let asks = outcome.step(ASKS.0);
    let (beats, messages) = (&outcome.sum.heartbeats, &outcome.sum.traffic.messages);
    let pushes = outcome.step(4);
    let acks = outcome.step(ACKS.0);
    let told = |cause| sum(&asks.errors, cause);
    // The outcome of a request on both sides: throng may lack requests that were cut off.
    let theirs = [&books.good, &books.wrong, &books.broken].map(Cell::get);
    let ours = [asks.ok, told(Cause::FieldUnexpected), told(Cause::Malformed)];
    for (ours, theirs) in ours.into_iter().zip(theirs) {
        assert!(ours <= theirs, "{said}\n{:?}", asks.errors);
    }
    assert!(books.asks.get() <= asks.begun, "{said}");
    assert!(books.pings.get() <= beats.sent && beats.answered <= books.pongs.get(), "{said}");
    assert!(books.acks.get() <= acks.ok + acks.interrupted + acks.failed(), "{said}");
    // Everything that arrived is counted in exactly one way.
    let replies: u64 = ours.iter().sum();
    let unowned = messages.broken - told(Cause::Malformed);
    let known = replies + beats.answered + messages.pushes + messages.unasked + unowned;
    assert_eq!(messages.received, known, "{said}\n{beats:?} {:?}", asks.errors);
    // All pushes have a handler, and nothing else is kept: only they can be dropped.
    let dropped = sum(&pushes.errors, Cause::MessagesDropped);
    assert_eq!((pushes.count, dropped), (messages.pushes, messages.dropped), "{said}");
    assert_eq!(pushes.ok + dropped, pushes.count, "{said}");
    // Each push starts its body once, unless it was reported as dropped; each connection may end
    // within one.
    let handled = acks.begun + messages.skipped;
    assert!(handled <= pushes.ok, "{said}: {handled} of {}", pushes.ok);
    assert!(pushes.ok - handled <= outcome.sum.connections.counts.opened, "{said}: {handled}");
    if calm {
        let sent = books.asks.get() + books.pings.get() + books.acks.get();
        assert_eq!(messages.sent, sent, "{said}");
        assert_eq!((asks.begun, beats.sent), (books.asks.get(), books.pings.get()), "{said}");
        assert_eq!(acks.ok, books.acks.get(), "{said}");
        let lacking = theirs.iter().sum::<u64>() - replies;
        assert!(lacking <= asks.interrupted + told(Cause::Timeout), "{said}: {lacking}");
    }
    let (read, written) = (outcome.read, outcome.written);
    assert_eq!(
        (outcome.sum.traffic.bytes_in, outcome.sum.traffic.bytes_out),
        (read, written),
        "{said}"
    );
}
