//! Streams of one HTTP/2 connection wait for each other: a lost packet delays all of them, because
//! TCP delivers bytes in order (see RFC 9113, 9.1; HTTP/3 avoids it).

use throng_metrics::Slow;

use crate::finding::{Code, Finding, Judgement, Level, percent, time};
use crate::record::Record;

/// Share of the connections that speak HTTP/2, and requests in flight on each.
const HTTP2_MIN: f64 = 0.5;
const STREAMS_MIN: f64 = 2.0;
/// Segments lost or out of order per sampled connection, and their minimum number.
const LOST_MIN: f64 = 0.02;
const SEGMENTS_MIN: u64 = 5;
/// Ratio of the slowest hundredth to the median.
const TAIL_MIN: f64 = 3.0;
/// Slow attempts that ended at the same time, and pairs of them on one connection.
const TOGETHER_NS: u64 = 10_000_000;
const PAIRS_MIN: usize = 3;

pub(super) fn judge(record: &Record) -> Judgement {
    Ok(found(record).into_iter().collect())
}

fn found(record: &Record) -> Option<Finding> {
    let connections = &record.whole.connections.counts;
    let (open, streams) = streams(record)?;
    let is_http2 = connections.http2 as f64 >= connections.opened.max(1) as f64 * HTTP2_MIN;
    let tcp = &record.whole.tcp;
    let lost = tcp.retransmits + tcp.out_of_order;
    let share = lost as f64 / tcp.count.max(1) as f64;
    if !is_http2 || streams < STREAMS_MIN || lost < SEGMENTS_MIN || share < LOST_MIN {
        return None;
    }
    let total = record.whole.sum(|step| record.kind(step.0).is_asked()).latency;
    let (p50, p99) = (total.value_at(0.5) as f64, total.value_at(0.99) as f64);
    let (own, others) = pairs(&record.whole.slowest);
    if p99 < p50 * TAIL_MIN || own < PAIRS_MIN {
        return None;
    }
    // With a single connection, it is indistinguishable from what all requests share.
    let is_apart = open >= 2.0 && own > others;
    let level = if is_apart { Level::Likely } else { Level::Hint };
    let text = say!(
        "{:.1} requests share an HTTP/2 connection, and lost packets delay all of them",
        streams
    );
    let found = Finding::new(Code::HeadOfLine, level, text, record.measured_span())
        .on(&["p99"])
        .figure(say!(
            "slowest attempts on one connection that ended within 10 ms of each other: {} pairs",
            own
        ))
        .figure(say!("on different connections: {} pairs", others))
        .figure(say!(
            "lost or out-of-order segments / sampled connections: {}",
            percent(share.min(1.0))
        ))
        .figure(say!("p50: {}, p99: {}", time(p50), time(p99)));
    let found = match is_apart {
        true => found.not(
            say!("a lock or a pause at the target"),
            say!("it would delay all connections at the same time"),
        ),
        false => found,
    };
    Some(found.then(say!("run with half as many streams, or with one request per connection")))
}

/// Mean number of open connections, and of requests in flight on each.
fn streams(record: &Record) -> Option<(f64, f64)> {
    let seconds = record.sum(&record.all(), |point| point.measured).max(1.0);
    let open = record.sum(&record.all(), |it| it.open * it.measured.min(it.lines)) / seconds;
    let going = record.sum(&record.all(), |it| it.in_flight * it.measured.min(it.lines)) / seconds;
    (open > 0.0).then(|| (open, going / open))
}

/// Pairs of slow attempts that ended at the same time: of the same user, which has its own
/// connection, and of different users.
fn pairs(slowest: &[Slow]) -> (usize, usize) {
    let mut pairs = (0, 0);
    for (at, one) in slowest.iter().enumerate() {
        for other in &slowest[at + 1..] {
            if one.at_ns.abs_diff(other.at_ns) > TOGETHER_NS {
                continue;
            }
            match one.user == other.user {
                true => pairs.0 += 1,
                false => pairs.1 += 1,
            }
        }
    }
    pairs
}
