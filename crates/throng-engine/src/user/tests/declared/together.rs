//! Messages of consecutive steps are sent in one write, and each step counts what the target
//! received of its own message, whatever happens to the write.

use super::*;

/// Packets that arrived in one write: their kinds and numbers.
type Came = Vec<Vec<(u8, u32)>>;

/// Sends `ack`, `ping` and `ask`; the steps 5, 6 and 1.
fn three(protocol: &Arc<Protocol>) -> Block {
    let send = |step, message| {
        let (step, failing) = (StepId(step), Failing::default());
        Statement::Send(Arc::new(Send { timeout: S, step, link: 0, message, failing }))
    };
    vec![
        connect(),
        send(5, message(protocol, ACK, &[("id", Text::literal("7"))])),
        send(6, message(protocol, PING, &[])),
        Statement::Request(Arc::new(ask(protocol, 9))),
    ]
}

/// Records what arrives, and answers `ask`; each n-th time it resets the connection instead.
fn server(came: &Rc<RefCell<Came>>, resets: u64) -> Server {
    let (came, count) = (Rc::clone(came), Cell::new(0u64));
    Box::new(move |asked, _| {
        let mut deeds = Vec::new();
        let all = asked_packets(asked);
        for (kind, seq, body) in &all {
            count.set(count.get() + u64::from(*kind == 1));
            match *kind {
                1 if resets > 0 && count.get().is_multiple_of(resets) => {
                    deeds.push((Duration::ZERO, Deed::Reset));
                }
                1 => deeds.push((MS, say(&packet(2, *seq, &[body[0], 0])))),
                _ => {}
            }
        }
        came.borrow_mut().push(all.iter().map(|(kind, seq, _)| (*kind, *seq)).collect());
        deeds
    })
}

fn talk(clogged: f64, resets: u64, seed: u64) -> (Outcome, Came) {
    let (protocol, came) = (protocol(true), Rc::default());
    let program = talkers(&protocol, three(&protocol), |_| {}, iterations(1, 400));
    let outcome = run(program, seed, |world| world.clog(clogged), server(&came, resets));
    outcome.is_sound(seed);
    (outcome, came.take())
}

/// How many messages of a kind arrived.
fn of(came: &Came, kind: u8) -> u64 {
    came.iter().flatten().filter(|(other, _)| *other == kind).count() as u64
}

#[test]
fn messages_without_a_wait_between_them_are_one_write() {
    let (outcome, came) = talk(0.0, 0, 71);
    assert!(came.iter().all(|write| write.len() == 3), "{:?}", came[0]);
    assert_eq!(came.len(), 400);
    for step in [5, 6, 1] {
        assert_eq!(outcome.step(step).ok, 400);
    }
    assert_eq!(outcome.sum.traffic.messages.sent, 1200);
}

/// A socket that takes half of a write: the rest is written again when it is its turn, with the
/// same numbers.
#[test]
fn bytes_that_the_socket_does_not_take_are_sent_once() {
    let (outcome, came) = talk(0.4, 0, 72);
    assert!(came.iter().any(|write| write.len() == 3), "some are joined");
    assert!(came.iter().any(|write| matches!(write.len(), 1 | 2)), "some are cut");
    let numbers: Vec<u32> = came.iter().flatten().map(|(_, seq)| *seq).collect();
    assert!(numbers.iter().copied().eq(1..=1200), "each came once, in order");
    for (step, kind) in [(5, 4), (6, 5), (1, 1)] {
        assert_eq!((outcome.step(step).ok, of(&came, kind)), (400, 400));
    }
    assert_eq!(outcome.sum.traffic.bytes_out, outcome.written);
}

/// A step whose message the target has, but that has not started, neither succeeds nor fails.
#[test]
fn the_target_gets_no_message_of_a_step_that_has_not_started() {
    for seed in 0..20 {
        let (outcome, came) = talk(0.4, 7, seed);
        for (step, kind) in [(5, 4), (6, 5), (1, 1)] {
            let row = outcome.step(step);
            let begun = row.begun;
            assert!(of(&came, kind) <= begun, "seed {seed}: {} > {begun}", of(&came, kind));
        }
        assert!(outcome.step(1).ok > 100, "seed {seed}");
    }
}
