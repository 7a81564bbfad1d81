//! Mutates and splits bytes for decoder tests. A dev-dependency only.
//!
//! A decoder test says what must hold of any input; this crate brings the inputs: every way to cut
//! a message in two, byte by byte, and seeded mutations of good messages. A failure names the seed.

#![forbid(unsafe_code)]

mod packages;

pub use packages::{nats_server, node_modules, python_packages};

use std::io::Write as _;
use std::process::{Command, Stdio};

use throng_base::Random;

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

/// How many mutated inputs a fuzz test tries: `THRONG_FUZZ_ROUNDS`, or few enough for every day.
pub fn rounds() -> u64 {
    number_from("THRONG_FUZZ_ROUNDS").unwrap_or(3_000)
}

/// The seed of this fuzz run: `THRONG_FUZZ_SEED`, or a fixed one, so that a failure comes back.
pub fn seed() -> u64 {
    number_from("THRONG_FUZZ_SEED").unwrap_or(20_261_121)
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
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

/// Calls `test` with [`rounds`] mutations of the corpus. A panic inside is reported with the
/// seed and the round that repeat it.
pub fn mutations(corpus: &[&[u8]], mut test: impl FnMut(&[u8], &mut Random)) {
    let seed = seed();
    for round in 0..rounds() {
        let mut random = Random::for_owner(seed, round);
        let input = mutate(corpus, &mut random);
        let told = Told { seed, round, input: &input };
        test(&input, &mut random);
        std::mem::forget(told);
    }
}

/// Prints how to repeat a failure, when a test panics while it lives.
struct Told<'a> {
    seed: u64,
    round: u64,
    input: &'a [u8],
}

impl Drop for Told<'_> {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        let shown = &self.input[..self.input.len().min(400)];
        eprintln!(
            "fuzz: failed in round {} with THRONG_FUZZ_SEED={}\nfuzz: input ({} bytes): {}",
            self.round,
            self.seed,
            self.input.len(),
            shown.escape_ascii()
        );
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
