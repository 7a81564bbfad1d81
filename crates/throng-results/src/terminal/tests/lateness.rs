//! Tests the text about a generator that was late on the same host as its target.

use super::*;

/// A run during which other processes, including the target, used the processors.
pub(super) fn beside_its_target() -> Summary {
    let mut intervals = sample::intervals();
    for interval in &mut intervals {
        (0..500).for_each(|n| interval.generator.lateness.record(15_000_000 + n * 10_000));
        let resources = interval.generator.resources.as_mut().unwrap();
        (resources.cpu.cpu_user_ns, resources.cpu.cpu_system_ns) = (200_000_000, 200_000_000);
        (resources.host_cpu, resources.cpu.run_queue_ns) = (0.999, 300_000_000);
    }
    let mut info = sample::info();
    info.targets.same_host = true;
    sample::summary_of(info, &intervals, &sample::events())
}

#[test]
fn a_local_target_that_used_the_processors_is_named() {
    let text = summary_text(&beside_its_target(), &full());
    let told = text.split("\n\n").nth(2).unwrap();
    expect![[r#"
        warning[generator-strained]: throng fell behind; it shares this host with the target
          = throng was more than 10 ms behind schedule in 10 of 10 seconds (worst 20.0ms)
          = cause: throng's threads waited 3.00s for a processor
          = cause: this host's CPU was 100 % busy from 00:02 onward
          = cause: throng used 0.4 of 2 cores on average, and other processes used 1.6
          = help: run throng on a different machine from the target, or lower the load"#]]
    .assert_eq(told);
    // If throng itself used them, the text blames throng.
    let mut own = beside_its_target();
    own.generator.cores = 1.6;
    let text = summary_text(&own, &full());
    assert!(
        !text.contains("other processes")
            && text.contains("throng fell behind schedule; results are affected"),
        "{text}"
    );
    let elsewhere = sample::summary_of(sample::info(), &sample::intervals(), &sample::events());
    assert!(!summary_text(&elsewhere, &full()).contains("same host"));
}
