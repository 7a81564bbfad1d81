//! SYNs or their replies were lost: the kernel retransmits a SYN after a second, so connects take
//! one, two or three seconds longer, and almost none take a time in between.

use throng_metrics::{Histogram, Stage};

use crate::finding::{Code, Finding, Judgement, Level, count, percent, time};
use crate::record::{Record, within};

/// Times of SYN retransmissions: Linux 6.5 and newer (`tcp_syn_linear_timeouts`), and older kernels
/// (RFC 6298).
const REPEATS_S: [f64; 7] = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 15.0];
const SECOND_NS: f64 = 1e9;
/// A cluster can start slightly earlier due to timer resolution, and has this maximum width: a
/// target that accepts in pauses causes wider ones.
const BEFORE_NS: f64 = 15e6;
const AFTER_NS: f64 = 30e6;
/// Relative width of a histogram bucket.
const BUCKET_SHARE: f64 = 1.0 / 64.0;
/// Minimum number of connects in all clusters, and in the first.
const CONNECTS_MIN: u64 = 10;
/// Minimum ratio of the density of a cluster to that around it.
const DENSER_MIN: f64 = 8.0;

/// The number of connects with a retransmitted SYN: those in all clusters, if there is one at the
/// first retransmission.
pub(crate) fn repeated(connects: &Histogram) -> Option<u64> {
    let base = connects.value_at(0.5) as f64;
    let clump = |repeat: f64| {
        let at = repeat * SECOND_NS;
        let width = AFTER_NS + base + at * BUCKET_SHARE;
        let inside = within(connects, at - BEFORE_NS - at * BUCKET_SHARE, at + width);
        let around = within(connects, at - 0.45 * SECOND_NS, at - 0.1 * SECOND_NS)
            + within(connects, at + width + 0.1 * SECOND_NS, at + width + 0.35 * SECOND_NS);
        let expected = around as f64 * (width + BEFORE_NS) / (0.6 * SECOND_NS);
        (inside >= 3 && inside as f64 >= DENSER_MIN * expected).then_some(inside)
    };
    let clumps: Vec<Option<u64>> = REPEATS_S.into_iter().map(clump).collect();
    clumps[0]?;
    let all: u64 = clumps.into_iter().flatten().sum();
    (all >= CONNECTS_MIN).then_some(all)
}

pub(crate) fn judge(record: &Record) -> Judgement {
    let Some(connects) = record.stage_latency(Stage::Connect) else { return Ok(Vec::new()) };
    let Some(repeated) = repeated(connects) else { return Ok(Vec::new()) };
    let share = repeated as f64 / connects.count() as f64;
    let text = say!(
        "{} connects ({}) took 1 s, 2 s or 3 s longer: their SYN was sent again",
        count(repeated as f64),
        percent(share)
    );
    let middle = connects.value_at(0.5) as f64;
    let found = Finding::new(Code::SynLost, Level::Likely, text, record.measured_span())
        .on(&["stage:connect"])
        .figure(say!("half of all connects took {} or less", time(middle)))
        .figure(say!("connects within 45 ms of a SYN retransmission: {}", repeated))
        .not(
            say!("the target pauses before it accepts connections"),
            say!(
                "that would spread connects over the whole second; here they are in narrow clusters"
            ),
        )
        .then(say!("on the target, look at `nstat -az TcpExtListenDrops TcpExtSyncookiesSent`"));
    Ok(vec![found])
}
