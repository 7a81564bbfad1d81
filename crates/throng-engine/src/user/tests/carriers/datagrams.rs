//! Users of UDP: each datagram is a message, none is joined or split, and a lost one times out.

use super::*;

const STEPS: [StepKind; 2] = [StepKind::Connect, StepKind::Request];

/// Answers each datagram with two: `first` and `second`. Each n-th datagram is lost.
fn server(lost: u64) -> Server {
    let count = Cell::new(0u64);
    Box::new(move |asked, _| {
        let asked = std::mem::take(asked);
        assert_eq!(asked, b"question", "a datagram comes whole and alone");
        count.set(count.get() + 1);
        match lost > 0 && count.get().is_multiple_of(lost) {
            true => Vec::new(),
            false => vec![(MS, say(b"first")), (MS, say(b"second"))],
        }
    })
}

fn talking(server: Server, seed: u64) -> Outcome {
    let drive = Drive::Iterations(Iterations::new(20, None, Some(500)));
    // The end of a reply is clear: a datagram is one.
    let asking = ask("question", Until::Any);
    let code = vec![connect(), asking, expect("second")];
    let program = program(Scheme::Udp, vec![session(code, 1)], &STEPS, phase(drive, None));
    run(program, seed, |world| world.with_datagrams().clog(0.2), server)
}

#[test]
fn each_datagram_is_a_message() {
    let outcome = talking(server(0), 61);
    outcome.is_sound(61);
    let total = outcome.sum.total();
    assert_eq!((total.errors.as_slice(), total.ok), (&[][..], 1020));
}

#[test]
fn a_lost_datagram_is_a_timeout_not_a_lost_connection() {
    let outcome = talking(server(50), 62);
    outcome.is_sound(62);
    let lost = outcome.errors(Cause::Timeout);
    assert!((5..=30).contains(&lost), "{lost}");
    let total = outcome.sum.total();
    assert_eq!(total.count - total.ok, lost, "{:?}", total.errors);
}
