//! The generator's own metrics, and those of its host.

use throng_base::Said;
use throng_base::units::{format_bytes, format_count};
use throng_host::HostFacts;
use throng_metrics::{Line, Percentile, Resources};

use super::super::Style;
use super::super::text::{clean, nanos, share};
use super::{figure_text, labelled};
use crate::summary::Summary;
use crate::verdict::{generator_is_to_blame, ports_scarce, starts_dropped_text, unmet_text};

pub(super) fn generator(summary: &Summary, style: &Style) -> String {
    let own = &summary.generator;
    let mut lines: Vec<Vec<String>> = Vec::new();
    if own.cpu_ns > 0 {
        let mut items = vec![style.say(say!("{} cores used", format!("{:.2}", own.cores)))];
        if summary.steps.total.count > 0 {
            let each = nanos(own.cpu_per_attempt_ns as u64);
            items.push(style.say(say!("{} CPU per attempt", each)));
        }
        items.push(style.say(say!("{} memory", format_bytes(own.memory_bytes_max as f64))));
        items.push(style.say(say!("host {} busy", share(own.host_cpu_mean))));
        lines.push(items);
    }
    lines.extend(resources(summary, style));
    let late = &own.lateness;
    if !late.is_empty() {
        lines.push(vec![
            style.say(say!("lateness p50 {}", nanos(late.at(Percentile::P50)))),
            format!("p99 {}", nanos(late.at(Percentile::P99))),
            style.say(say!("max {}", nanos(late.max_ns))),
        ]);
        lines.extend(together(summary, style));
    }
    if lines.is_empty() {
        return String::new();
    }
    if own.late_seconds > 0 && !generator_is_to_blame(summary) {
        let (late, seconds) = (format_count(own.late_seconds), format_count(own.seconds));
        lines.push(vec![style.say(say!("behind schedule in {} of {} seconds", late, seconds))]);
    }
    let verdict = match summary.users.population.unmet {
        _ if generator_is_to_blame(summary) => style.say(say!("the result is invalid, see above")),
        0 if summary.users.population.dropped > 0 => style.say(starts_dropped_text(summary)),
        0 if own.late_seconds == 0 => style.say(say!("throng stayed on schedule")),
        0 => String::new(),
        _ => style.say(unmet_text(summary)),
    };
    if !verdict.is_empty() {
        lines.push(vec![verdict]);
    }
    labelled(say!("generator"), &lines, style)
}

/// Events per wake-up, if there was more than one.
fn together(summary: &Summary, style: &Style) -> Option<Vec<String>> {
    let own = &summary.generator.together;
    let mean = own.mean().filter(|_| own.max > 1)?;
    Some(vec![
        style.say(say!("{} starts per wake-up", format!("{mean:.1}"))),
        style.say(say!("at most {}", format_count(own.max))),
        style.say(say!("precision {}", nanos(summary.info.precision_ns))),
    ])
}

/// Scarce resources in the generator's worst second, its memory, and remaining resources: lines
/// that most runs do not have.
fn resources(summary: &Summary, style: &Style) -> Vec<Vec<String>> {
    /// A smaller share of waiting in the busiest second is not shown.
    const BUSY_SHARE_MIN: f64 = 0.01;
    const WAITED_SHARE_MIN: f64 = 0.05;
    let r = &summary.generator.resources;
    let mut pressure = Vec::new();
    for (value, words) in [
        (r.cpu.shard_cpu_max, say!("busiest shard {{}}")),
        (r.host_softirq, say!("softirq {{}}")),
        (r.host_steal, say!("steal {{}}")),
    ] {
        if value >= BUSY_SHARE_MIN {
            pressure.push(style.say(words.clone().filled(&[&share(value)])));
        }
    }
    let waited = r.cpu.run_queue_ns as f64 / summary.measured.as_nanos().max(1) as f64;
    if waited >= WAITED_SHARE_MIN {
        pressure.push(style.say(say!("{} waiting for a core", share(waited))));
    }
    if r.cpu.throttled_periods > 0 {
        let [throttled, periods] = [r.cpu.throttled_periods, r.cpu.quota_periods].map(format_count);
        pressure.push(style.say(say!("throttled in {} of {} periods", throttled, periods)));
    }
    if summary.generator.lost_ns > 0 {
        pressure.push(style.say(say!("stalled for {}", nanos(summary.generator.lost_ns))));
    }
    let ports_left = ports_scarce(summary).unwrap_or(0);
    let more = style.counts(&[
        (ports_left, say!("at least {{}} source ports left")),
        (summary.growth.held_seconds, say!("growth paused for {{}} s")),
    ]);
    let short = gauges(r, Line::Short, style).chain(more).collect();
    let memory = gauges(r, Line::Memory, style).collect();
    let lines = [pressure, memory, short];
    lines.into_iter().filter(|items: &Vec<String>| !items.is_empty()).collect()
}

/// The gauges of a line that are above zero.
fn gauges<'a>(of: &'a Resources, line: Line, style: &'a Style) -> impl Iterator<Item = String> {
    Resources::gauges().filter_map(move |gauge| {
        let (_, words) = gauge.line.filter(|(its, _)| *its == line)?;
        let value = (gauge.of)(of).number().filter(|value| *value > 0.0)?;
        Some(style.say(words().filled(&[&figure_text(gauge.unit, value)])))
    })
}

pub(super) fn host(host: &HostFacts, style: &Style) -> String {
    let text = |fact: &Option<String>| fact.as_deref().map(clean);
    let count = |fact: Option<u64>, word: &str| fact.map(|n| format!("{word}{}", n));
    let cores = host.cores.map(|cores| match host.cores_usable {
        Some(usable) if usable != cores => style.say(say!("{} of {} cores", usable, cores)),
        _ if cores == 1 => style.say(say!("1 core")),
        _ => style.say(say!("{} cores", cores)),
    });
    let bytes = |bytes: u64| format_bytes(bytes as f64);
    let kernel = text(&host.kernel).map(|kernel| format!("Linux {kernel}"));
    let cgroup_cores = host
        .cgroup_cores_max
        .map(|cores| style.say(say!("cgroup limit {} cores", format!("{cores:.2}"))));
    let memory = host.memory_bytes.map(|size| style.say(say!("{} memory", bytes(size))));
    let descriptors = match (host.descriptors_soft_max, host.descriptors_hard_max) {
        (Some(soft), Some(hard)) if soft != hard => {
            Some(style.say(say!("{} (hard {}) descriptors", soft, hard)))
        }
        (Some(soft), _) => Some(style.say(say!("{} descriptors", soft))),
        _ => None,
    };
    let lines = [
        vec![
            text(&host.hostname),
            kernel,
            text(&host.os),
            text(&host.virtualisation)
                .map(|kinds| {
                    kinds
                        .split(", ")
                        .map(|kind| style.say(Said::of_others(kind)))
                        .collect::<Vec<_>>()
                })
                .map(|kinds| kinds.join(", ")),
        ],
        vec![
            text(&host.cpu_model),
            cores,
            cgroup_cores,
            memory,
            host.cgroup_memory_bytes_max
                .map(|size| style.say(say!("cgroup limit {}", bytes(size)))),
        ],
        vec![
            descriptors,
            host.port_range.map(|(first, last)| style.say(say!("ports {}–{}", first, last))),
            count(host.tcp_tw_reuse, "tcp_tw_reuse "),
            count(host.somaxconn, "somaxconn "),
            text(&host.clock_source).map(|source| style.say(say!("clock {}", source))),
        ],
    ];
    let lines: Vec<Vec<String>> = lines
        .map(|items| items.into_iter().flatten().collect::<Vec<_>>())
        .into_iter()
        .filter(|items: &Vec<String>| !items.is_empty())
        .collect();
    if lines.is_empty() { String::new() } else { labelled(say!("host"), &lines, style) }
}
