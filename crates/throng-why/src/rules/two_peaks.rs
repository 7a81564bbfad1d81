//! Response times of a step have two peaks, so there are two kinds of responses. Known distances
//! identify the cause.

use throng_base::Said;
use throng_metrics::{Histogram, Slow, StepInterval};

use crate::finding::{Code, Finding, Judgement, Level, Span, count, percent, time};
use crate::record::{Record, within};
use crate::stats;

/// Bins per factor of ten, which limits the width of a peak.
const BINS: f64 = 12.0;
/// Minimum share of the smaller peak, and maximum ratio of the valley to the lower peak.
const MASS_MIN: f64 = 0.005;
const VALLEY_MAX: f64 = 1.0 / 3.0;
/// Minimum responses of the step, and of the smaller peak.
const RESPONSES_MIN: u64 = 1_000;
const PEAK_MIN: f64 = 30.0;
/// A slower peak below this can be caused by schedulers and processor caches, so no cause is named.
/// On a busy host shared by target and throng, waiting for a processor takes longer.
const SLOW_NS_MIN: f64 = 5e6;
const SLOW_BUSY_NS_MIN: f64 = 30e6;
const BUSY_MIN: f64 = 0.9;
/// Minimum ratio of the peaks.
const RATIO_MIN: f64 = 2.0;

/// Minimum deviation of slow responses from a random distribution over time.
const TOGETHER_DEVIATIONS: f64 = 4.0;

/// The positions of two peaks, and the number of responses above the valley.
struct Peaks {
    low_ns: f64,
    valley_ns: f64,
    high_ns: f64,
    high: f64,
    share: f64,
}

pub(super) fn judge(record: &Record) -> Judgement {
    // Loads differ between phases, so only the one with the most responses is used.
    let measured = record.sums.iter().zip(&record.facts.phases).filter(|(_, it)| it.measured);
    let largest = measured.max_by_key(|(sum, _)| sum.total().latency.count());
    let Some((sum, phase)) = largest else { return Ok(Vec::new()) };
    // A search changes the load, and so does the operator.
    let is_within = |at: &f64| phase.span.from_s < *at && *at < phase.span.to_s;
    if record.facts.search.is_some() || record.facts.changes_s.iter().any(is_within) {
        return Ok(Vec::new());
    }
    let asked = sum.steps.iter().filter(|row| record.kind(row.step).is_asked());
    let slow_ns_min = if is_busy(record) { SLOW_BUSY_NS_MIN } else { SLOW_NS_MIN };
    let found = asked.filter_map(|row| {
        let peaks = peaks(row).filter(|peaks| peaks.high_ns >= slow_ns_min)?;
        let (level, name) = named(record, row, phase.span, &peaks);
        let text = say!(
            "{}: {} of the responses take about {}, the others about {}",
            record.step_name(row.step),
            percent(peaks.share),
            time(peaks.high_ns),
            time(peaks.low_ns)
        );
        let found = Finding::new(Code::TwoPeaks, level, text, phase.span)
            .on(&["heat"])
            .figure(say!("responses in the slower peak: {}", count(peaks.high)))
            .figure(name)
            .not(
                say!("failures"),
                say!("there are fewer failed attempts than responses in the slower peak"),
            )
            .not(
                say!("different loads"),
                say!("all responses are from the phase {}", (phase.name.clone())),
            );
        Some(found.then(say!("split the step by `label`, or look at its slowest attempts: {}", {
            "`throng report --details`"
        })))
    });
    Ok(found.take(3).collect())
}

/// Whether the target shares a mostly busy host with throng.
fn is_busy(record: &Record) -> bool {
    let busy = stats::median(&record.values(&record.all(), |point| point.host_cpu));
    record.facts.same_host && busy.is_some_and(|busy| busy >= BUSY_MIN)
}

/// The cause of the slower peak, if its distance or its times identify it.
fn named(record: &Record, row: &StepInterval, phase: Span, peaks: &Peaks) -> (Level, Said) {
    if let Some((seen, all)) = together(record, phase, peaks) {
        let name = say!(
            "all slow responses are in {} of {} seconds: the target stalls during these seconds",
            seen,
            all
        );
        return (Level::Hint, name);
    }
    let apart = (peaks.high_ns - peaks.low_ns) / 1e6;
    match apart {
        36.0..47.0 if is_head_first(row, peaks) => {
            let name = say!("40 ms apart: delayed ACK with Nagle; the sender lacks TCP_NODELAY");
            (Level::Likely, name)
        }
        36.0..47.0 => {
            let name = say!(
                "40 ms apart: a pause of the target, or delayed ACK on its connections to other \
                 services"
            );
            (Level::Hint, name)
        }
        195.0..235.0 if is_sent_again(record, row.step, phase, peaks) => {
            let name = say!("200 ms apart: a lost packet and its retransmission (RTO)");
            (Level::Likely, name)
        }
        195.0..235.0 => {
            let name = say!(
                "200 ms apart: a pause of the target, or packets that the target had to resend"
            );
            (Level::Hint, name)
        }
        _ => {
            let name = say!("{} apart: two kinds of work, such as cache hits and misses", {
                time(apart * 1e6)
            });
            (Level::Hint, name)
        }
    }
}

/// The number of seconds with slow responses, out of how many, if a random distribution would have
/// more: a lost packet delays one response, a stall all at that time.
fn together(record: &Record, phase: Span, peaks: &Peaks) -> Option<(usize, usize)> {
    let place = |second: f64| ((second / record.width()) as usize).min(record.points().len());
    let points = &record.points()[place(phase.from_s)..place(phase.to_s)];
    let timed: f64 = points.iter().map(|point| point.timed).sum();
    let share = (peaks.high / timed.max(1.0)).min(1.0);
    let chances = || points.iter().map(|point| 1.0 - (1.0 - share).powf(point.timed));
    let expected: f64 = chances().sum();
    let deviation = chances().map(|chance| chance * (1.0 - chance)).sum::<f64>().sqrt();
    let seen = points.iter().filter(|point| point.max >= peaks.valley_ns).count();
    let few = (expected / 2.0).min(expected - TOGETHER_DEVIATIONS * deviation);
    let seconds = |points: usize| points * record.timeline.width_s() as usize;
    (seen as f64 <= few).then(|| (seconds(seen), seconds(points.len())))
}

/// Whether first bytes are early and only the rest is late: head and body are separate writes.
fn is_head_first(row: &StepInterval, peaks: &Peaks) -> bool {
    let late = within(&row.first_byte, peaks.valley_ns, f64::INFINITY) as f64;
    row.first_byte.count() * 2 >= row.latency.count() && late <= peaks.high / 2.0
}

/// Whether segments were retransmitted on most connections of the slowest attempts, on sampled
/// connections, or by the target's host.
fn is_sent_again(record: &Record, step: u16, phase: Span, peaks: &Peaks) -> bool {
    let slowest = || record.whole.slowest.iter().filter(|slow| slow.step == step);
    let sent_again = |slow: &&Slow| {
        slow.chain.as_ref().is_some_and(|chain| chain.retransmits.unwrap_or_default() > 0)
    };
    let of_slowest = slowest().filter(sent_again).count();
    let there = record.watched("node_netstat_Tcp_RetransSegs");
    let there: f64 = there.map(|row| row.total(phase)).sum();
    (of_slowest > 0 && of_slowest * 2 >= slowest().count())
        || record.whole.tcp.retransmits as f64 >= PEAK_MIN
        || there >= peaks.high / 2.0
}

/// The two highest peaks of a step, if they are separate.
fn peaks(row: &StepInterval) -> Option<Peaks> {
    let times = row.service();
    if times.count() < RESPONSES_MIN {
        return None;
    }
    let bins = bins(times);
    let smooth: Vec<f64> = (0..bins.len())
        .map(|at| {
            let side = |at: Option<usize>| at.and_then(|at| bins.get(at)).copied().unwrap_or(0.0);
            (side(at.checked_sub(1)) + 2.0 * bins[at] + side(Some(at + 1))) / 4.0
        })
        .collect();
    let highest = (0..smooth.len()).max_by(|a, b| smooth[*a].total_cmp(&smooth[*b]))?;
    let total = times.count() as f64;
    let best = (0..smooth.len()).filter(|at| at.abs_diff(highest) > 1).filter_map(|at| {
        let (from, to) = (at.min(highest), at.max(highest));
        let valley = (from..=to).min_by(|a, b| smooth[*a].total_cmp(&smooth[*b]))?;
        let deep = smooth[valley] <= smooth[at] * VALLEY_MAX;
        // A peak, not the slope of another.
        let is_top = |side: Option<usize>| {
            side.and_then(|side| smooth.get(side)).is_none_or(|it| *it <= smooth[at])
        };
        let is_peak = is_top(at.checked_sub(1)) && is_top(Some(at + 1));
        let mass: f64 =
            if at < highest { &bins[..valley] } else { &bins[valley + 1..] }.iter().sum();
        (deep && is_peak && mass >= (total * MASS_MIN).max(PEAK_MIN)).then_some((at, valley, mass))
    });
    // The highest one: in an empty part, every bin equals its neighbors.
    let (other, valley, _) = best.max_by(|a, b| smooth[a.0].total_cmp(&smooth[b.0]))?;
    let (low, high) = (highest.min(other), highest.max(other));
    let middle = |bin: usize| 10f64.powf((bin as f64 + 0.5) / BINS);
    let of_high: f64 = bins[valley + 1..].iter().sum();
    let (low_ns, high_ns) = (middle(low), middle(high));
    let is_apart = high_ns >= low_ns * RATIO_MIN;
    // Timeouts form a separate peak.
    let is_failure = row.failed() as f64 >= of_high / 2.0;
    (is_apart && !is_failure).then(|| Peaks {
        low_ns: center(times, low),
        valley_ns: middle(valley),
        high_ns: center(times, high),
        high: of_high,
        share: of_high / total,
    })
}

fn bin(nanos: f64) -> usize {
    (nanos.max(1.0).log10() * BINS) as usize
}

fn bins(times: &Histogram) -> Vec<f64> {
    let mut bins = Vec::new();
    for (index, count) in times.buckets() {
        let bucket = throng_metrics::histogram::bucket(index);
        let at = bin((bucket.start as f64 + bucket.end as f64) / 2.0);
        if bins.len() <= at {
            bins.resize(at + 1, 0.0);
        }
        bins[at] += count as f64;
    }
    bins
}

/// The mean of a bin and its neighbors.
fn center(times: &Histogram, peak: usize) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    for (index, count) in times.buckets() {
        let bucket = throng_metrics::histogram::bucket(index);
        let middle = (bucket.start as f64 + bucket.end as f64) / 2.0;
        if bin(middle).abs_diff(peak) <= 1 {
            sum += middle * count as f64;
            all += count as f64;
        }
    }
    sum / f64::max(all, 1.0)
}
