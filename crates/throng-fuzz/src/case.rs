//! The cases of a fuzz test: those that once failed, which are kept in `corpus/`, and those of the
//! seed of this run.
//!
//! A kept case is a file `corpus/CRATE/TEST/SEED-ROUND` with the input as its content. It is tried
//! first in every run of the test. `cargo xtask fuzz` writes it when a case fails.

use std::panic::Location;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use throng_base::Random;

/// How many cases a fuzz test draws in CI and every day. All fuzz tests together take less than a
/// minute; `cargo xtask fuzz` draws more.
const ROUNDS: u64 = 3_000;
/// Fixed, so that CI depends on nothing but the code.
const SEED: u64 = 20_261_121;

/// How many cases a fuzz test draws: `THRONG_FUZZ_ROUNDS`, or [`ROUNDS`].
pub fn rounds() -> u64 {
    number_from("THRONG_FUZZ_ROUNDS").unwrap_or(ROUNDS)
}

/// The seed of this run: `THRONG_FUZZ_SEED`, or a fixed one.
pub fn seed() -> u64 {
    number_from("THRONG_FUZZ_SEED").unwrap_or(SEED)
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// One case: a seed and a round of it, from which its input is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub seed: u64,
    pub round: u64,
    /// Where the case is kept if it fails.
    folder: PathBuf,
}

impl Case {
    /// What the input is drawn from.
    pub fn random(&self) -> Random {
        Random::for_owner(self.seed, self.round)
    }

    /// What a test draws beside its input: the same for a kept input.
    pub(crate) fn random_beside(&self) -> Random {
        Random::for_owner(!self.seed, self.round)
    }

    /// Runs a test on this case. If it panics, seed, round and input are printed, and the case is
    /// kept where `THRONG_FUZZ_KEEP` is set.
    pub fn try_on(&self, input: &[u8], test: impl FnOnce()) {
        let untold = Untold { case: self, input };
        test();
        std::mem::forget(untold);
    }
}

/// The cases of the test that runs on this thread: the kept ones, then one for each of [`rounds`],
/// divided by `cost` for tests whose cases take longer.
#[track_caller]
pub fn cases(cost: u64) -> Vec<Case> {
    let kept = kept_inputs().into_iter().map(|(case, _)| case);
    kept.chain(drawn(cost)).collect()
}

/// The cases of this run's seed alone.
#[track_caller]
pub(crate) fn drawn(cost: u64) -> impl Iterator<Item = Case> {
    let (folder, seed) = (folder(Location::caller()), seed());
    (0..rounds() / cost).map(move |round| Case { seed, round, folder: folder.clone() })
}

/// The kept cases of the test that runs on this thread, with their inputs.
#[track_caller]
pub(crate) fn kept_inputs() -> Vec<(Case, Vec<u8>)> {
    let folder = folder(Location::caller());
    let with_input = |(seed, round, input)| (Case { seed, round, folder: folder.clone() }, input);
    kept(&folder).into_iter().map(with_input).collect()
}

/// `corpus/CRATE/TEST` for a test of the crate that has this place in its sources.
fn folder(place: &Location) -> PathBuf {
    let mut parts = place.file().split('/');
    let owner = parts.find(|part| part.starts_with("throng-")).unwrap_or("throng");
    let test = thread::current().name().unwrap_or("unnamed").replace("::", ".");
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(owner).join(test)
}

/// Seed, round and input of each kept case, in the order of their names.
fn kept(folder: &Path) -> Vec<(u64, u64, Vec<u8>)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(u64, u64, Vec<u8>)> = files
        .filter_map(|file| {
            let name = file.file_name();
            let (seed, round) = name.to_str()?.split_once('-')?;
            Some((seed.parse().ok()?, round.parse().ok()?, fs::read(file.path()).ok()?))
        })
        .collect();
    found.sort();
    found
}

/// Says how to reproduce a case, when a test panics while this lives.
struct Untold<'a> {
    case: &'a Case,
    input: &'a [u8],
}

impl Drop for Untold<'_> {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        let Case { seed, round, folder } = self.case;
        let shown = &self.input[..self.input.len().min(400)];
        eprintln!(
            "fuzz: failed in round {round} with THRONG_FUZZ_SEED={seed}\n\
             fuzz: input ({} bytes): {}",
            self.input.len(),
            shown.escape_ascii()
        );
        if std::env::var_os("THRONG_FUZZ_KEEP").is_some() {
            let file = folder.join(format!("{seed}-{round}"));
            let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, self.input));
            match written {
                Ok(()) => eprintln!("fuzz: kept as {}", file.display()),
                Err(error) => eprintln!("fuzz: not kept: {}: {error}", file.display()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_case_is_read_back_with_its_input() {
        let folder = std::env::temp_dir().join(format!("throng-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("7-12"), b"\x00input").unwrap();
        fs::write(folder.join("README"), b"no case").unwrap();
        assert_eq!(kept(&folder), [(7, 12, b"\x00input".to_vec())]);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(kept(&folder), []);
    }

    #[test]
    fn the_folder_of_a_test_is_named_after_its_crate_and_path() {
        let folder = folder(Location::caller());
        let name = "throng-fuzz/case.tests.the_folder_of_a_test_is_named_after_its_crate_and_path";
        assert!(folder.ends_with(Path::new("corpus").join(name)), "{}", folder.display());
    }

    #[test]
    fn cases_have_one_seed_and_follow_each_other() {
        let all = cases(1_000);
        let rounds: Vec<u64> = all.iter().map(|case| case.round).collect();
        assert_eq!(rounds, (0..super::rounds() / 1_000).collect::<Vec<_>>());
        assert!(all.iter().all(|case| case.seed == seed()));
    }
}
