//! Compares the laws with published formulas, and with the simulated queue.

use super::closed::{dm1, md1, mmc, refused_by_bucket};
use super::*;
use crate::queue::{RateLimit, SlowSpells, Usl};

fn service(text: &str, servers: u32) -> CapacityOptions {
    let service = Some(text.parse().unwrap());
    CapacityOptions { service, servers: Some(servers), ..CapacityOptions::default() }
}

fn law(options: CapacityOptions, query: &str) -> Law {
    let model = Model { options, failing: 0.0 };
    model.law_by(Question::read(query).unwrap(), 200_000).unwrap()
}

/// The results of the formula and the simulation, which must agree.
#[track_caller]
fn agree(options: CapacityOptions, failing: f64, query: &str) -> f64 {
    let question = Question::read(query).unwrap();
    let model = Model { options, failing };
    let exact = model.law_by(question, 0).unwrap();
    assert_eq!(exact.by, By::ClosedForm, "{}", exact.model);
    let (rate, simulated) = model.simulate(question, 200_000);
    let exact = exact.rate_per_s;
    assert!((rate / exact - 1.0).abs() < 0.02, "{query}: {exact} or {rate} {simulated:?}");
    let Simulated { low_per_s, high_per_s, .. } = simulated;
    assert!(low_per_s * 0.995 < exact && exact < high_per_s * 1.005, "{exact} {simulated:?}");
    exact
}

#[test]
fn known_queues_have_their_known_capacity() {
    // Queues with known capacities as a share of saturation: 0.908, 0.877, 0.908.
    let rate = law(service("exponential 1ms", 1), "p=99&within=50ms").rate_per_s;
    assert!((rate - (1_000.0 - 100f64.ln() / 0.05)).abs() < 1e-6, "{rate}");
    let eight = law(service("exponential 8ms", 8), "p=99&within=50ms");
    assert!((eight.rate_per_s / 1_000.0 - 0.877).abs() < 0.001, "{eight:?}");
    assert_eq!((eight.by, eight.model.as_str()), (By::ClosedForm, "M/M/8"));
    let slow = law(service("exponential 5ms", 1), "within=250ms").rate_per_s;
    assert!((slow / 200.0 - 0.908).abs() < 0.001, "{slow}");
}

#[test]
fn response_times_of_mmc_match_published_formulas() {
    // M/M/1 is exponential with the rate of the spare capacity.
    assert!((mmc(800.0, 0.001, 1, 0.01) - (-2f64).exp()).abs() < 1e-12);
    // With many servers, no request waits: only the service time remains.
    assert!((mmc(1.0, 0.001, 50, 0.002) - (-2f64).exp()).abs() < 1e-12);
    // Equal rates, and nearly equal ones.
    let (same, near) = (mmc(1_000.0, 0.001, 2, 0.003), mmc(1_000.001, 0.001, 2, 0.003));
    assert!((same - near).abs() < 1e-6 && same > 0.0);
    assert_eq!(mmc(8_000.0, 0.001, 8, 1.0), 1.0);
    assert!(mmc(100.0, 0.001, 1, 1e4).is_finite());
}

#[test]
fn md1_and_dm1_match_published_formulas() {
    // P(W = 0) = 1 - load; within the second service time by Erlang's formula (1909).
    let (load, t) = (0.7f64, 0.4);
    assert!((md1(load, 1.0, 1.0) - load).abs() < 1e-12);
    let in_time = (1.0 - load) * (load * t).exp();
    assert!((md1(load, 1.0, 1.0 + t) - (1.0 - in_time)).abs() < 1e-12);
    // The tail decays with the root of the transform: load (e^x - 1) = x.
    let decay = md1(load, 1.0, 31.0) / md1(load, 1.0, 30.0);
    let root = -decay.ln();
    assert!((load * (root.exp() - 1.0) - root).abs() < 1e-4, "{root}");
    assert_eq!((md1(load, 1.0, 0.99), md1(1.0, 1.0, 50.0)), (1.0, 1.0));
    let share = dm1(0.5, 1.0, 1.0);
    let root = 1.0 + share.ln();
    assert!((root - ((root - 1.0) / 0.5).exp()).abs() < 1e-9, "{root}");
}

#[test]
fn a_bucket_rejects_the_excess() {
    let limit = |burst| RateLimit { per_s: 100.0, burst };
    // One token is M/D/1 without a queue: Erlang's B, for any service time.
    assert!((refused_by_bucket(80.0, limit(1)) - 0.8 / 1.8).abs() < 1e-12);
    for rate in [50.0, 99.0, 100.0, 101.0, 150.0, 900.0] {
        let shares = [1, 2, 10, 100, 2_000].map(|burst| refused_by_bucket(rate, limit(burst)));
        assert!(shares.is_sorted_by(|a, b| a >= b), "{rate}: {shares:?}");
        let floor = (1.0 - 100.0 / rate).max(0.0);
        assert!(shares[4] >= floor - 1e-12 && shares[4] < floor + 1e-3, "{rate}: {shares:?}");
    }
}

#[test]
fn closed_forms_agree_with_the_simulated_queue() {
    agree(service("exponential 1ms", 1), 0.0, "p=99&within=20ms");
    agree(service("exponential 8ms", 8), 0.0, "p=99&within=50ms");
    agree(service("exponential 1ms", 1), 0.0, "p=95&within=10ms&spacing=even");
    agree(service("1ms", 1), 0.0, "p=99&within=10ms");
    agree(service("exponential 1ms", 4), 0.005, "p=99&within=10ms");
    let limited = CapacityOptions { rate_limit: "500/s:20".parse().ok(), ..Default::default() };
    agree(limited.clone(), 0.0, "p=99");
    agree(limited, 0.0, "p=95&spacing=even");
    for (servers, max) in [(1, 5), (8, 0), (4, 30)] {
        let mut options = service("exponential 1ms", servers);
        options.queue_max = Some(max);
        agree(options.clone(), 0.0, "p=99&within=12ms");
        agree(options, 0.0, "p=80");
    }
}

#[test]
fn models_without_a_closed_form_are_simulated() {
    let by = |options, model: &str| {
        let law = law(options, "p=99&within=50ms");
        assert_eq!((law.by, law.model.as_str()), (By::Simulation, model));
        let simulated = law.simulated.unwrap();
        assert!(simulated.low_per_s < law.rate_per_s && law.rate_per_s < simulated.high_per_s);
        law.rate_per_s / law.saturation_per_s
    };
    // Less variable service increases the capacity, and more variable service reduces it.
    let shares = [
        by(service("lognormal 1ms 2ms", 1), "M/G/1"),
        by(service("0ms..2ms", 1), "M/G/1"),
        by(service("8ms", 8), "M/D/8"),
    ];
    assert!(shares.is_sorted() && shares[0] > 0.6 && shares[2] < 1.0, "{shares:?}");
    let mut both = service("exponential 1ms", 1);
    both.rate_limit = "500/s".parse().ok();
    assert!((by(both, "M/M/1, token bucket") - 1.0).abs() < 0.02);
    let mut spells = service("exponential 1ms", 1);
    let second = Duration::from_secs(1);
    spells.slow_spells = Some(SlowSpells { every: 45 * second, time: 5 * second, slower: 0.15 });
    // With spells of the same mean length at random times, it is 0.81.
    let share = by(spells, "M/M/1, slow spells");
    assert!((0.79..0.88).contains(&share), "{share}");
}

#[test]
fn beyond_the_peak_of_scalability_nothing_is_promised() {
    let usl = Usl { contention: 0.02, crosstalk: 0.0005 };
    let mut options = service("exponential 1ms", 1);
    (options.servers, options.usl) = (None, Some(usl));
    let law = law(options, "within=50ms");
    assert_eq!(law.model, "M/M/∞, USL");
    assert!((law.saturation_per_s - 15_708.0).abs() < 100.0, "{law:?}");
    assert!(law.rate_per_s > 0.8 * law.saturation_per_s, "{law:?}");
    assert!(law.rate_per_s < law.saturation_per_s, "{law:?}");
}

#[test]
fn a_threshold_that_the_service_alone_violates_has_no_rate() {
    for (text, query) in [("20ms", "within=10ms"), ("exponential 20ms", "within=10ms")] {
        assert_eq!(law(service(text, 4), query).rate_per_s, 0.0, "{text}");
    }
    let model = Model { options: service("exponential 1ms", 1), failing: 0.02 };
    assert_eq!(model.law(Question::read("within=1s").unwrap()).unwrap().rate_per_s, 0.0);
    assert!(
        Model { options: CapacityOptions::default(), failing: 0.0 }
            .law(Question::read("").unwrap())
            .is_none()
    );
}

#[test]
fn questions_are_parsed_or_rejected() {
    let question = Question::read("p=99.9&within=50ms&spacing=even").unwrap();
    assert_eq!((question.p, question.spacing), (99.9, Spacing::Even));
    assert_eq!(question.within, Some(Duration::from_millis(50)));
    for (query, wanted) in [
        ("p=100", "`p` must be a percentile"),
        ("p=0", "`p` must be a percentile"),
        ("p", "`p` must be a percentile"),
        ("within=50", "the unit of the duration is missing"),
        ("spacing=odd", "`spacing` must be `poisson` or `even`"),
        ("q=1", "unknown parameter `q`; write `?p=99&within=50ms`"),
    ] {
        let error = Question::read(query).unwrap_err().english();
        assert!(error.contains(wanted), "{query}: {error}");
    }
}
