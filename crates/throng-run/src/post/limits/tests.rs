//! Tests the limits second by second.

use throng_program::{Arrivals, Coming, Phase, Users};

use super::*;

const GIB: u64 = 1 << 30;

fn limits(max_cpu: Option<f64>, max_memory: Option<u64>) -> Limits {
    Limits::new(&HostLimits { max_cpu, max_memory, ..HostLimits::default() })
}

#[test]
fn growth_is_paused_at_the_bandwidth_limit() {
    let told = HostLimits {
        max_bandwidth: Some(100e6),
        max_packets: Some(10_000.0),
        ..HostLimits::default()
    };
    let traffic = |bits_per_s: f64, packets_per_s: f64| {
        let throughput = Some(Throughput { bits_per_s, packets_per_s });
        Seen { cpu_share: Some(0.1), throughput, is_growing: true, ..Seen::default() }
    };
    let (low, wide) = (traffic(50e6, 5_000.0), traffic(120e6, 5_000.0));
    let between = Seen { is_growing: true, ..Seen::default() };
    let seconds = [low, wide, between, low, low, low, low];
    let mut limits = Limits::new(&told);
    assert_eq!(deeds(&mut limits, 0, &seconds), ["1 hold Bandwidth", "6 release"]);
    let seconds = [traffic(50e6, 20_000.0), traffic(95e6, 5_000.0)];
    assert_eq!(deeds(&mut limits, 7, &seconds), ["7 hold Packets"]);
    let words = |seen: &Seen, limit| limits.reason(limit, seen).map(|it| it.detail.english());
    assert_eq!(
        words(&wide, Limit::Bandwidth).as_deref(),
        Some("this host has 120 Mbit/s of traffic; --max-bandwidth is 100 Mbit/s")
    );
    assert_eq!(
        words(&traffic(0.0, 12_000.0), Limit::Packets).as_deref(),
        Some("this host has 12,000 packets/s of traffic; --max-packets is 10,000/s")
    );
}

fn memory(bytes: u64) -> Seen {
    Seen { memory_bytes: bytes, is_growing: true, ..Seen::default() }
}

fn cpu(own: f64, host: f64) -> Seen {
    Seen { cpu_share: Some(own), host_cpu: Some(host), is_growing: true, ..Seen::default() }
}

fn left(available_bytes: u64) -> Seen {
    let memory_left = MemoryLeft { available_bytes, floor_bytes: GIB, bound: MemoryBound::Host };
    Seen { memory_left: Some(memory_left), is_growing: true, ..Seen::default() }
}

/// The actions with their seconds: `3 hold memory`.
fn deeds(limits: &mut Limits, from: u64, seconds: &[Seen]) -> Vec<String> {
    let word = |reason: &Reason| format!("{:?}", reason.limit);
    let mut deeds = Vec::new();
    for (second, seen) in (from..).zip(seconds) {
        deeds.extend(limits.see(seen, Time::from_secs(second)).map(|deed| match deed {
            Deed::Hold(reason) => format!("{second} hold {}", word(&reason)),
            Deed::Release => format!("{second} release"),
            Deed::GiveUp(reason) => format!("{second} give up {}", word(&reason)),
            Deed::Tell(reason) => format!("{second} tell {}", word(&reason)),
        }));
    }
    deeds
}

#[test]
fn growth_is_paused_at_a_limit_and_resumes_well_below_it() {
    let mut limits = limits(None, Some(GIB));
    let (low, near, high) = (memory(GIB * 8 / 10), memory(GIB * 95 / 100), memory(GIB));
    let seconds = [low, near, high, high, near, low, low, near, low, low, low, low, low, high];
    let want = ["2 hold Memory", "11 release", "13 hold Memory"];
    assert_eq!(deeds(&mut limits, 0, &seconds), want);
    assert!(limits.is_held());
}

#[test]
fn cpu_of_the_process_and_of_the_whole_host_is_limited() {
    let reason = |seen: Seen| match limits(Some(0.8), None).see(&seen, Time::ZERO) {
        Some(Deed::Hold(reason)) => reason.detail,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(cpu(0.9, 0.5)), "throng uses 90 % of its processors; --max-cpu is 80 %");
    assert_eq!(reason(cpu(0.1, 0.97)), "this host is 97 % busy; --max-cpu is 80 %");
    let unknown = Seen { host_cpu: None, ..cpu(0.8, 0.0) };
    assert_eq!(reason(unknown), "throng uses 80 % of its processors; --max-cpu is 80 %");
    // Without a new reading, the previous one applies.
    let mut limits = limits(Some(0.8), None);
    let unseen = Seen { cpu_share: None, ..cpu(0.0, 0.0) };
    let seconds = [unseen, cpu(0.9, 0.9), unseen, unseen, cpu(0.1, 0.1), unseen, unseen, unseen];
    assert_eq!(deeds(&mut limits, 0, &seconds), ["1 hold Cpu", "7 release"]);
    let mut free = self::limits(None, None);
    assert_eq!(free.see(&cpu(1.0, 1.0), Time::ZERO), None);
}

#[test]
fn growth_on_a_busy_host_is_paused_then_given_up() {
    let mut limits = limits(Some(0.5), None);
    let busy = vec![cpu(0.1, 0.9); 299];
    assert_eq!(deeds(&mut limits, 0, &busy), ["0 hold Cpu"]);
    let calm = vec![cpu(0.1, 0.2); 5];
    assert_eq!(deeds(&mut limits, 299, &calm), ["302 release"]);
    let busy = vec![cpu(0.1, 0.9); 400];
    assert_eq!(deeds(&mut limits, 304, &busy), ["304 hold Cpu", "604 give up Cpu"]);
    assert!(!limits.is_held());
    assert_eq!(deeds(&mut limits, 800, &calm), [""; 0], "it is given up for good");
}

#[test]
fn host_memory_is_protected_without_a_flag() {
    let mut limits = limits(None, None);
    let seconds = [2 * GIB, GIB, GIB / 2, GIB / 2, GIB / 2, GIB / 2, GIB / 4, GIB / 4].map(left);
    let want = ["1 hold HostMemory", "6 give up HostMemory"];
    assert_eq!(deeds(&mut limits, 0, &seconds), want);
    let mut limits = self::limits(None, None);
    let seconds = [GIB, 2 * GIB, 2 * GIB, 2 * GIB, 2 * GIB].map(left);
    assert_eq!(deeds(&mut limits, 0, &seconds), ["0 hold HostMemory", "4 release"]);
    let bound = MemoryBound::Group;
    let group = MemoryLeft { available_bytes: 10_000_000, floor_bytes: GIB, bound };
    let seen = Seen { memory_left: Some(group), ..left(0) };
    let detail = "throng's control group has 10.0 MB of memory left; 1.07 GB must stay free";
    let detail = Said::of_others(detail);
    let reason = Reason { limit: Limit::HostMemory, detail };
    assert_eq!(limits.see(&seen, Time::from_secs(9)), Some(Deed::Hold(reason)));
}

#[test]
fn users_that_stay_free_no_memory() {
    let mut limits = limits(None, Some(GIB));
    let want = ["0 hold Memory", "30 give up Memory"];
    assert_eq!(deeds(&mut limits, 0, &[memory(GIB + 1); 60]), want);
    // Usage near the limit counts as reached.
    let mut limits = self::limits(None, Some(GIB));
    let seconds: Vec<_> = [GIB, GIB / 2].into_iter().chain([GIB * 95 / 100; 60]).collect();
    let seconds: Vec<_> = seconds.into_iter().map(memory).collect();
    assert_eq!(deeds(&mut limits, 0, &seconds), ["0 hold Memory", "32 give up Memory"]);
}

#[test]
fn the_most_urgent_limit_is_reported() {
    let mut limits = limits(Some(0.5), Some(GIB));
    let all = Seen { cpu_share: Some(1.0), memory_bytes: 2 * GIB, ..left(1) };
    let want = ["0 hold HostMemory", "5 give up HostMemory"];
    assert_eq!(deeds(&mut limits, 0, &[all; 9]), want);
}

#[test]
fn without_growth_a_limit_is_reported_once() {
    let mut limits = limits(Some(0.5), None);
    let full = Seen { is_growing: false, ..cpu(1.0, 1.0) };
    assert_eq!(deeds(&mut limits, 0, &[full; 600]), ["0 tell Cpu"]);
    // A later phase adds users: the time before it does not count.
    assert_eq!(deeds(&mut limits, 600, &[cpu(1.0, 1.0); 300]), ["600 hold Cpu"]);
    let scarce = Seen { is_growing: false, ..left(0) };
    assert_eq!(deeds(&mut self::limits(None, None), 0, &[scarce; 9]), [""; 0]);
}

#[test]
fn growth_is_not_given_up_without_growth() {
    let mut limits = limits(None, Some(GIB));
    let full = Seen { is_growing: false, ..memory(GIB) };
    assert_eq!(deeds(&mut limits, 0, &[memory(GIB)]), ["0 hold Memory"]);
    assert_eq!(deeds(&mut limits, 1, &[full; 100]), [""; 0]);
    assert!(limits.is_held());
}

#[test]
fn a_load_grows_until_its_last_user_has_started() {
    let phase =
        |drive| Phase { name: String::new(), drive, time: None, churn: None, measured: true };
    let users = |to| phase(Drive::Users(Users { to, coming: Coming::AtOnce }));
    let load = |phases: Vec<Phase>| Load::alone(phases);
    let rise = load(vec![users(100), phase(Drive::Hold), users(0)]);
    assert!(is_growing(&rise, 0, 99) && !is_growing(&rise, 0, 100));
    assert!(!is_growing(&rise, 1, 99) && !is_growing(&rise, 2, 50));
    let again = load(vec![users(100), users(0), users(200)]);
    assert!(is_growing(&again, 0, 100) && is_growing(&again, 1, 50));
    assert!(!is_growing(&again, 2, 200) && !is_growing(&again, 7, 0));
    let arrive = phase(Drive::Arrivals(Arrivals::ramp(1.0, 1.0)));
    assert!(is_growing(&load(vec![arrive]), 0, 1_000));
}

#[test]
fn bodies_and_messages_may_use_half_of_the_memory() {
    let kept = |max_memory: Option<u64>, room: Option<u64>| {
        kept_bytes_max(&HostLimits { max_memory, ..HostLimits::default() }, room)
    };
    assert_eq!(kept(None, None), None);
    assert_eq!(kept(None, Some(8 << 30)), Some(4 << 30));
    assert_eq!(kept(Some(1 << 30), Some(8 << 30)), Some(1 << 29));
    assert_eq!(kept(Some(64 << 30), Some(8 << 30)), Some(4 << 30));
    assert_eq!(kept(Some(1), Some(8 << 30)), Some(KEPT_BYTES_MIN));
}

/// Readings of a control group, five per second.
fn group(available_bytes: u64) -> Seen {
    let bound = MemoryBound::Group;
    let memory_left = MemoryLeft { available_bytes, floor_bytes: GIB, bound };
    Seen { memory_left: Some(memory_left), ..left(0) }
}

#[test]
fn memory_of_the_next_second_counts_as_used() {
    let fifth = |number: u64| Time(number * 200_000_000);
    // A quarter of a gigabyte per reading: 1.25 GB in the next second.
    let mut fast = limits(None, None);
    let held = (0..40).find(|number| {
        let seen = group(8 * GIB - number * GIB / 4);
        matches!(fast.see(&seen, fifth(*number)), Some(Deed::Hold(_)))
    });
    let left = 8 * GIB - held.expect("it is held") * GIB / 4;
    assert!((2 * GIB..3 * GIB).contains(&left), "{left}");
    // The decrease has ended and enough memory is left: growth resumes.
    let from = held.unwrap() + 1;
    let deeds = (from..from + 40).filter_map(|number| fast.see(&group(left), fifth(number)));
    assert_eq!(deeds.collect::<Vec<_>>(), [Deed::Release]);
    // One reading is not a trend, and slow growth continues.
    let mut slow = limits(None, None);
    let mut see = |number: u64, available: u64| slow.see(&group(available), fifth(number));
    assert_eq!(see(0, 8 * GIB), None);
    assert_eq!(see(1, 6 * GIB), None);
    assert!((2..200).all(|number| see(number, 6 * GIB - number * GIB / 50).is_none()));
    // Without growth, nothing is paused.
    let mut still = limits(None, None);
    let seen = |number: u64| Seen { is_growing: false, ..group(8 * GIB - number * GIB / 4) };
    assert!((0..30).all(|number| still.see(&seen(number), fifth(number)).is_none()));
}
