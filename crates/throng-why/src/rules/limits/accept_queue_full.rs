//! The accept queue of a listener was full. The kernel counts it; from outside, connects succeed
//! and the first response arrives 0.2, 0.6, 1.4 or 3.0 s late, because the target dropped the last
//! packet of the handshake and the client retransmits its data.

use throng_metrics::{Cause, Histogram, Stage};

use super::syn_lost;
use crate::finding::{Code, Finding, Judgement, Level, count};
use crate::record::{Record, within};

/// Retransmission times on such a connection: 200 ms (the minimum timeout of Linux), doubled.
const REPEATS_NS: [f64; 4] = [0.2e9, 0.6e9, 1.4e9, 3.0e9];
/// Time before a cluster, its width, and its minimum number of responses.
const BEFORE_NS: f64 = 10e6;
const WIDTH_NS: f64 = 40e6;
const RESPONSES_MIN: u64 = 10;
const DENSER_MIN: f64 = 8.0;
/// Connects that timed out, or waited for two SYN retransmissions. Refused or reset connects
/// reached the listener. The kernel's counter covers all listeners of the host, so it proves
/// nothing without symptoms.
const FAILED_MIN: f64 = 10.0;
const WAITING_S: f64 = 3.0;

/// The number of responses after a retransmission, if there are at least two clusters.
fn mute(responses: &Histogram) -> Option<u64> {
    let base = responses.value_at(0.5) as f64;
    let clump = |at: &f64| {
        let (from, to) = (at - BEFORE_NS, at + WIDTH_NS + base);
        let inside = within(responses, from, to);
        let around = within(responses, at * 0.7, at * 0.9) + within(responses, to * 1.1, to * 1.3);
        let expected = around as f64 * (to - from) / (0.2 * at + 0.2 * to);
        (inside >= 3 && inside as f64 >= DENSER_MIN * expected).then_some(inside)
    };
    let clumps: Vec<u64> = REPEATS_NS.iter().filter_map(clump).collect();
    let all = clumps.iter().sum();
    (clumps.len() >= 2 && all >= RESPONSES_MIN && base < REPEATS_NS[0] / 4.0).then_some(all)
}

/// The maximum number of connects that had waited this long at once. With slow responses, the queue
/// drains so slowly that the run ends first.
fn waiting(record: &Record) -> f64 {
    let wait = (WAITING_S / record.width()).ceil() as usize;
    let (mut begun, mut ended, mut most) = (0.0, 0.0, 0.0);
    for (at, point) in record.points().iter().enumerate() {
        ended += point.connected.max(point.opened) + point.connect_failed;
        begun += at.checked_sub(wait).map_or(0.0, |at| record.points()[at].attempted);
        most = f64::max(most, begun - ended);
    }
    most
}

pub(crate) fn judge(record: &Record) -> Judgement {
    let dropped = record.sum(&record.all(), |point| point.listen_dropped);
    let repeated = record.stage_latency(Stage::Connect).and_then(syn_lost::repeated);
    let responses = record.whole.sum(|step| record.kind(step.0).is_asked()).latency;
    let mute = mute(&responses);
    let failed = record.failures(Cause::ConnectTimeout).map_or(0.0, |(count, _)| count as f64);
    let waiting = waiting(record);
    let is_felt = repeated.is_some() || mute.is_some() || failed.max(waiting) >= FAILED_MIN;
    let is_here = record.facts.same_host && dropped > 0.0;
    let there = record.watched("throng_listen_drops_total");
    let there: f64 = there.map(|row| row.total(record.measured_span())).sum();
    let is_known = is_here || there >= 1.0;
    let level = match () {
        () if is_known && is_felt => Level::Certain,
        () if mute.is_some() => Level::Likely,
        () => return Ok(Vec::new()),
    };
    let text = match level {
        Level::Likely => {
            say!("{} responses were late because their connection had not yet been accepted", {
                count(mute.unwrap_or_default() as f64)
            })
        }
        _ => say!("listeners on the target's host dropped {} connections", {
            count(if is_here { dropped } else { there })
        }),
    };
    let mut found = Finding::new(Code::AcceptQueueFull, level, text, record.measured_span())
        .on(&["stage:connect", "p99"]);
    if is_here {
        found = found.figure(say!("ListenDrops on this host, which runs the target: {}", dropped));
    }
    if there >= 1.0 {
        found = found.figure(say!("dropped connections, counted by the monitor: {}", count(there)));
    }
    if let Some(repeated) = repeated {
        found = found.figure(say!("connects within 45 ms of a SYN retransmission: {}", repeated));
    }
    if let Some(mute) = mute {
        found = found.figure(say!("responses just after 0.2, 0.6, 1.4 or 3.0 s: {}", mute));
    }
    if waiting >= FAILED_MIN {
        found = found.figure(say!("connects that waited for 3 s or longer: {}", count(waiting)));
    }
    if level != Level::Certain {
        found = found.not(
            say!("the target is slow"),
            say!("its responses would not cluster at exactly these times"),
        );
    }
    let next = say!("raise the listener's backlog and net.core.somaxconn; check with `ss -ltn`");
    Ok(vec![found.then(next)])
}
