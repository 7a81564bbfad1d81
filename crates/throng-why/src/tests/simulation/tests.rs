//! Tests that each fault is found in ten of ten runs, and that a hundred clean runs have no
//! findings.

use throng_metrics::host::{ALL, CAPACITY, OF_SERVICES, STABILITY};
use throng_metrics::{Cause, Chain, Ending, Slow};

use super::clean::{KINDS, clean};
use super::faults::{FAULTS, Fault, MORE, stalls_by_work};
use super::{Simulated, World, simulate};
use crate::finding::{Code, Finding, Level, Needs, Unknown};
use crate::record::SearchFacts;

const SEEDS: u64 = 10;
const CLEAN_RUNS: u64 = 108;

fn told(findings: &[Finding]) -> Vec<String> {
    let one =
        |it: &Finding| format!("{} ({}): {}", it.code.word(), it.level.word(), it.text.english());
    findings.iter().map(one).collect()
}

fn missed((code, level, run): &Fault) -> Vec<String> {
    let runs = (1..=SEEDS).map(|seed| (seed, run(seed).judge()));
    let missed = runs.filter(|(_, judged)| {
        let found = judged.findings.iter().find(|it| it.code == *code);
        found.is_none_or(|it| it.level > *level || it.evidence.is_empty() || it.next.is_empty())
    });
    let text = |(seed, judged): (u64, crate::Judged)| {
        let found = told(&judged.findings);
        let why = judged.unknown.iter().find(|(it, _)| it == code);
        format!("{} at {}, seed {seed}: {found:?} {why:?}", code.word(), level.word())
    };
    missed.map(text).collect()
}

#[test]
fn every_fault_is_found_in_ten_of_ten_runs() {
    let all: Vec<String> = FAULTS.iter().chain(&MORE).flat_map(missed).collect();
    assert!(all.is_empty(), "{} missed:\n{}", all.len(), all.join("\n"));
    let staged: Vec<Code> = FAULTS.iter().chain(&MORE).map(|(code, _, _)| *code).collect();
    let unstaged = Code::ALL.iter().filter(|code| !staged.contains(code));
    assert_eq!(unstaged.collect::<Vec<_>>(), Vec::<&Code>::new());
}

#[test]
fn clean_runs_have_no_findings_and_at_most_two_hints() {
    assert!(CLEAN_RUNS >= 100 && CLEAN_RUNS.is_multiple_of(KINDS));
    let all: Vec<(u64, Finding)> = (0..CLEAN_RUNS)
        .flat_map(|seed| clean(seed).judge().findings.into_iter().map(move |it| (seed, it)))
        .collect();
    let text: Vec<String> = all
        .iter()
        .map(|(seed, it)| format!("seed {seed}: {}", told(std::slice::from_ref(it)).join("")))
        .collect();
    let sure = all.iter().filter(|(_, it)| it.level < Level::Hint).count();
    assert!(sure == 0 && all.len() <= 2, "{} findings:\n{}", all.len(), text.join("\n"));
}

#[test]
fn two_rates_distinguish_a_timer_from_work_despite_a_pause_of_the_host() {
    for seed in 1..=SEEDS {
        let phases = vec![(28, 100.0, 100.0), (28, 160.0, 160.0)];
        let rate = |t: f64| if t < 28.0 { 100.0 } else { 160.0 };
        let world = World { open_rate: Some(rate), phases, ..World::new(seed, 56) };
        let first = seed as usize % 4;
        let pauses = [first + 6, first + 14, first + 37];
        let timer = simulate(&world, |second, _| {
            if second.t % 4 == first || pauses.contains(&second.t) {
                second.slower = vec![(0.2, 4_000.0)];
            }
        });
        let causes = |made: Simulated| {
            let mut found = made.judge().findings.into_iter();
            let stall = found.find(|it| it.code == Code::PeriodicStall).expect("a stall");
            stall.evidence.iter().map(|it| it.text.english()).collect::<Vec<_>>().join("\n")
        };
        let told = causes(timer);
        assert!(told.contains("cause: a timer"), "seed {seed}: {told}");
        let told = causes(stalls_by_work(seed));
        assert!(told.contains("cause: work"), "seed {seed}: {told}");
    }
}

#[test]
fn a_slowdown_of_a_step_by_microseconds_is_not_reported() {
    let made = |ms: f64| {
        let world = World { steps: vec![ms, ms], ..World::new(7, 120) };
        let made = simulate(&world, |second, _| {
            if second.t > 70 {
                second.step_factors.insert(0, 3.0);
            }
        });
        told(&made.judge().findings).iter().any(|it| it.contains("slow-step"))
    };
    assert_eq!([made(0.05), made(20.0)], [false, true]);
}

/// The kernel's counter covers all listeners of its host.
#[test]
fn resets_are_not_blamed_on_the_full_queue_of_another_listener() {
    let mut made = simulate(&World::new(4, 60), |second, _| {
        second.listen_dropped = 20.0;
        (second.attempted, second.connect_failed) = (second.opened + 2.0, 2.0);
        second.failing = vec![(0.02, Cause::Reset, 0)];
    });
    made.facts.same_host = true;
    let found = told(&made.judge().findings);
    assert!(!found.iter().any(|it| it.contains("accept-queue-full")), "{found:?}");
}

#[test]
fn simultaneous_timeouts_are_not_a_restart() {
    let made = simulate(&World::new(4, 60), |second, _| {
        if second.t == 40 {
            second.ends = vec![(Ending::TimedOut, second.users, 30.0)];
        }
        if second.t >= 40 {
            (second.attempted, second.connect_failed) = (50.0, 20.0);
        }
    });
    let found = told(&made.judge().findings);
    assert!(!found.iter().any(|it| it.contains("target-restarted")), "{found:?}");
}

/// The finding for responses that take this many milliseconds longer.
fn peaks(made: &Simulated) -> Option<(Level, String)> {
    let found = made.judge().findings.into_iter().find(|it| it.code == Code::TwoPeaks)?;
    let figures: Vec<String> = found.evidence.iter().map(|it| it.text.english()).collect();
    Some((found.level, figures.join("\n")))
}

#[test]
fn a_stall_is_not_a_lost_packet_or_a_delayed_acknowledgement() {
    for seed in 1..=SEEDS {
        for extra_ms in [40.0, 200.0] {
            let made =
                simulate(&World { steps: vec![1.5], ..World::new(seed, 120) }, |it, random| {
                    if random.chance(0.08) {
                        it.slower = vec![(0.3, extra_ms)];
                    }
                });
            let (level, figures) = peaks(&made).expect("two peaks");
            assert_eq!(level, Level::Hint, "{extra_ms} ms, seed {seed}: {figures}");
            assert!(
                figures.contains("all slow responses are in"),
                "{extra_ms} ms, seed {seed}: {figures}"
            );
        }
    }
}

#[test]
fn levels_of_a_search_are_not_peaks() {
    let mut made = simulate(&World { steps: vec![1.5], ..World::new(4, 120) }, |second, _| {
        second.slower = vec![(0.2, if second.t > 100 { 900.0 } else { 0.0 })];
    });
    assert!(peaks(&made).is_some());
    made.facts.changes_s = vec![50.0];
    assert_eq!(peaks(&made), None);
    (made.facts.changes_s, made.facts.search) = (Vec::new(), Some(SearchFacts::default()));
    assert_eq!(peaks(&made), None);
}

#[test]
fn a_lost_packet_must_have_been_counted() {
    for seed in 1..=SEEDS {
        let mut made =
            simulate(&World { steps: vec![1.5], ..World::new(seed, 120) }, |second, _| {
                second.slower = vec![(0.02, 205.0)];
            });
        let (level, figures) = peaks(&made).expect("two peaks");
        assert_eq!(level, Level::Hint, "seed {seed}: {figures}");
        let chain = Chain { retransmits: Some(2), ..Chain::default() };
        let slow = Slow { chain: Some(chain), latency_ns: 210_000_000, ..Slow::default() };
        made.sums[0].slowest = vec![slow; 3];
        let (level, figures) = peaks(&made).expect("two peaks");
        assert_eq!(level, Level::Likely, "seed {seed}: {figures}");
        assert!(figures.contains("retransmission"), "seed {seed}: {figures}");
    }
}

#[test]
fn a_fault_causes_few_other_findings() {
    let others = |(code, _, run): &Fault| -> Vec<String> {
        let found = run(3).judge().findings;
        let other = found.into_iter().filter(|it| it.code != *code && it.level < Level::Hint);
        told(&other.collect::<Vec<_>>()).iter().map(|it| format!("{}: {it}", code.word())).collect()
    };
    let all: Vec<String> = FAULTS.iter().chain(&MORE).flat_map(others).collect();
    // The restart happens four times, and users reconnect after each.
    assert!(all.len() <= 6, "{}", all.join("\n"));
}

#[test]
fn a_late_generator_suppresses_what_it_explains() {
    let mut made = simulate(&World::new(4, 120), |second, _| {
        second.lateness_ms = 50.0;
        second.slower = vec![(0.3, 40.0)];
    });
    let judged = made.judge();
    let codes: Vec<Code> = judged.findings.iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::GeneratorBound], "{:?}", told(&judged.findings));
    let by_generator = Unknown::ExplainedBy { code: Code::GeneratorBound };
    assert!(judged.unknown.contains(&(Code::TwoPeaks, by_generator)), "{:?}", judged.unknown);
    made.facts.doubts = vec![say!("certain")];
    let judged = made.judge();
    assert!(judged.findings.is_empty() && judged.unknown.is_empty() && judged.doubts.len() == 1);
}

#[test]
fn a_short_run_is_not_evaluated_and_a_killed_one_up_to_its_end() {
    let mut made = simulate(&World::new(4, 6), |_, _| {});
    made.facts.ended = false;
    let judged = made.judge();
    assert!(judged.findings.is_empty(), "{:?}", told(&judged.findings));
    let too_short = judged.unknown.iter().filter(|(_, it)| matches!(it, Unknown::TooShort { .. }));
    assert!(too_short.count() >= 5, "{:?}", judged.unknown);
    assert_eq!(judged.until_s, Some(6.0));
}

#[test]
fn missing_data_is_reported_with_its_source() {
    let mut made = simulate(&World::new(4, 60), |_, _| {});
    made.facts.no_retries = true;
    let unknown = made.judge().unknown;
    for (code, needs) in [
        (Code::MemoryShort, Needs::Monitor),
        (Code::DiskBound, Needs::Monitor),
        (Code::Amplified, Needs::Format(3)),
    ] {
        assert!(unknown.contains(&(code, Unknown::NotRecorded { needs })), "{unknown:?}");
    }
}

/// Whether a load of this length is stable, with a relative growth of memory and response times.
fn soaked(seed: u64, seconds: usize, memory: f64, slower: f64) -> crate::Stability {
    let phases = vec![(seconds, 50.0, 50.0)];
    let world = World { phases, ..World::new(seed, seconds) };
    let mut made = simulate(&world, |second, _| {
        second.factor *= 1.0 + slower * second.t as f64 / seconds as f64;
    });
    made.facts.soak = true;
    let value = |at: usize| 1e8 * (1.0 + memory * at as f64 / seconds as f64);
    made.facts.watched = vec![crate::Watched {
        source: "shop".into(),
        name: "throng_process_resident_bytes{process=\"shop\"}".into(),
        points: (0..seconds).map(|at| (at as f64, value(at))).collect(),
    }];
    made.judge().stability.expect("it was asked for")
}

#[test]
fn a_soak_is_stable_or_names_what_grows() {
    for seed in 0..20 {
        let found = soaked(seed, 3_600, 0.0, 0.0);
        assert_eq!(found.word(), "stable", "seed {seed}: {:?}", found.measures);
    }
    for seed in 0..10 {
        let leaks = soaked(seed, 1_800, 0.3, 0.0);
        let grows: Vec<&str> = leaks
            .measures
            .iter()
            .filter(|it| it.trend == crate::Trend::Grows)
            .map(|it| it.key.as_str())
            .collect();
        assert_eq!(leaks.word(), "unstable", "seed {seed}");
        assert_eq!(grows, ["shop throng_process_resident_bytes{process=\"shop\"}"]);
        let slower = soaked(seed, 1_800, 0.0, 0.6);
        assert_eq!(slower.measures[0].trend, crate::Trend::Grows, "{:?}", slower.measures[0]);
        assert!((0.3..0.7).contains(&slower.measures[0].change), "{:?}", slower.measures[0]);
    }
    assert_eq!(soaked(1, 20, 0.0, 0.0).word(), "too-short");
}

#[test]
fn series_of_hosts_name_existing_findings() {
    let others = [STABILITY, CAPACITY];
    for series in ALL.iter().chain(OF_SERVICES) {
        let is_known = |word: &&str| {
            others.contains(word) || Code::ALL.iter().any(|code| code.word() == *word)
        };
        assert!(series.used_by.iter().all(is_known), "{series:?}");
    }
}
