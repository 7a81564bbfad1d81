//! Mutates and splits bytes for decoder tests. A dev-dependency only.
//!
//! A decoder test says what must hold of any input; this crate brings the inputs: every way to cut
//! a message in two, byte by byte, and seeded mutations of good messages. A failure names the seed.

#![forbid(unsafe_code)]

mod case;
mod packages;

pub use case::{Case, cases, rounds, seed};
pub use packages::{nats_server, node_modules, python_packages};

use std::io::Write as _;
use std::process::{Command, Stdio};

use throng_base::Random;

use case::{drawn, kept_inputs};

/// The longest input that mutation makes.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// The lines that another implementation answers to lines of questions.
#[allow(clippy::missing_panics_doc)] // It is for tests.
pub fn answers(command: &mut Command, questions: &str) -> Vec<String> {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut oracle = piped.spawn().expect("the program is installed");
    let mut input = oracle.stdin.take().expect("a pipe");
    let questions = questions.to_string();
    let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let output = oracle.wait_with_output().expect("the answers");
    writer.join().expect("a thread").expect("all questions");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_string).collect()
}

/// Calls `test` with `bytes` as a stream cut in every way that matters: whole, in two at every
/// position, and one byte at a time.
pub fn splits(bytes: &[u8], mut test: impl FnMut(&[&[u8]])) {
    test(&[bytes]);
    for cut in 0..=bytes.len() {
        let (first, second) = bytes.split_at(cut);
        test(&[first, second]);
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    test(&single);
}

/// Calls `test` with the inputs that once failed, then with [`rounds`] mutations of the corpus; and
/// with a source of random numbers that goes with each input. A panic inside is reported with the
/// seed and the round that reproduce it.
#[track_caller]
pub fn mutations(corpus: &[&[u8]], mut test: impl FnMut(&[u8], &mut Random)) {
    let drawn = drawn(1).map(|case| {
        let input = mutate(corpus, &mut case.random());
        (case, input)
    });
    for (case, input) in kept_inputs().into_iter().chain(drawn) {
        case.try_on(&input, || test(&input, &mut case.random_beside()));
    }
}

/// A good message, damaged one to eight times.
pub fn mutate(corpus: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let pick = |random: &mut Random| match corpus.len() {
        0 => &[][..],
        length => corpus[random.below(length as u64) as usize],
    };
    let mut bytes = pick(random).to_vec();
    for _ in 0..=random.below(8) {
        damage(&mut bytes, pick(random), random);
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let until = at + random.below((bytes.len() - at) as u64 + 1) as usize;
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.next_u64() as u8,
        2 => bytes.insert(at, random.next_u64() as u8),
        3 => drop(bytes.drain(at..until)),
        4 => bytes.truncate(at),
        5 => {
            let copy = bytes[at..until].to_vec();
            bytes.splice(at..at, copy);
        }
        6 => {
            let from = random.below(other.len() as u64 + 1) as usize;
            bytes.splice(at..until, other[from..].iter().copied());
        }
        _ if at < bytes.len() => {
            let interesting = [0, 1, 0x7f, 0x80, 0xff, b'\r', b'\n', b' ', b':', b'"', b'0', b'9'];
            bytes[at] = interesting[random.below(interesting.len() as u64) as usize];
        }
        _ => bytes.extend((0..random.below(16)).map(|_| random.next_u64() as u8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_is_tried() {
        let mut count = 0;
        splits(b"abc", |parts| {
            assert_eq!(parts.concat(), b"abc");
            count += 1;
        });
        assert_eq!(count, 1 + 4 + 1);
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        let make = || {
            let mut all = Vec::new();
            mutations(&[b"hello world", b"GET / HTTP/1.1\r\n"], |input, _| {
                all.push(input.to_vec());
            });
            all
        };
        assert_eq!(make(), make());
    }
}
