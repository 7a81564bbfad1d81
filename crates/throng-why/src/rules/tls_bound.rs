//! TLS handshakes become slower while connects and responses do not: the processor that terminates
//! TLS is busy.

use crate::finding::{Code, Finding, Judgement, Level, Unknown, rate, time};
use crate::record::Record;
use crate::stats;

/// Minimum slowdown of the slowest handshakes, and maximum slowdown of connects.
const SLOWER_MIN: f64 = 3.0;
const CONNECT_SLOWER_MAX: f64 = 1.5;
/// Minimum number of handshakes per point, and of points.
const HANDSHAKES_MIN: f64 = 5.0;
const POINTS_MIN: usize = 10;
/// Share of points in the slowest and in the fastest part.
const PART: f64 = 0.25;
/// Minimum duration of a slow handshake.
const SLOW_NS_MIN: f64 = 20e6;

pub(super) fn judge(record: &Record) -> Judgement {
    let points: Vec<_> = record
        .points()
        .iter()
        .enumerate()
        .filter(|(_, it)| it.handshakes >= HANDSHAKES_MIN && record.is_trusted(it))
        .collect();
    if points.is_empty() {
        return Ok(Vec::new());
    }
    if points.len() < POINTS_MIN {
        return Err(Unknown::TooShort { needs_s: POINTS_MIN as u64 });
    }
    let mut sorted = points.clone();
    sorted.sort_by(|a, b| a.1.tls_p50.total_cmp(&b.1.tls_p50));
    let part = (sorted.len() as f64 * PART).ceil() as usize;
    let (best, worst) = (&sorted[..part], &sorted[sorted.len() - part..]);
    let of = |part: &[(usize, &crate::timeline::Point)],
              figure: fn(&crate::timeline::Point) -> f64| {
        stats::median(&part.iter().map(|(_, point)| figure(point)).collect::<Vec<_>>())
    };
    let tls = [best, worst].map(|part| of(part, |point| point.tls_p50).unwrap_or_default());
    let connect = [best, worst].map(|part| of(part, |it| it.connect_p50).unwrap_or_default());
    let is_slower = tls[1] >= tls[0] * SLOWER_MIN && tls[1] >= SLOW_NS_MIN;
    if !is_slower || connect[1] > connect[0].max(1e5) * CONNECT_SLOWER_MAX {
        return Ok(Vec::new());
    }
    let from = worst.iter().map(|(at, _)| *at).min().unwrap_or_default();
    let to = worst.iter().map(|(at, _)| *at + 1).max().unwrap_or_default();
    let level = if record.facts.same_host { Level::Hint } else { Level::Likely };
    let per_s = of(worst, |point| point.handshakes / point.lines.max(1.0)).unwrap_or_default();
    let text = say!(
        "TLS handshakes took {} at best, but {} at {}",
        time(tls[0]),
        time(tls[1]),
        rate(per_s)
    );
    let found = Finding::new(Code::TlsBound, level, text, record.span(&(from..to)))
        .on(&["stage:tls", "stage:connect"])
        .figure(say!(
            "median TLS handshake: {} in the fastest seconds, {} in the slowest",
            time(tls[0]),
            time(tls[1])
        ))
        .not(
            say!("the network, or a full accept queue"),
            say!("connects took {} and {} in the same seconds", time(connect[0]), time(connect[1])),
        )
        .not(say!("throng's own processors"), say!("throng was on schedule during these seconds"))
        .then(say!(
            "watch the CPU of the host that terminates TLS; try session tickets or ECDSA \
             certificates"
        ));
    Ok(vec![found])
}
