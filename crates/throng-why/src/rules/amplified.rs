//! Requests were sent more than once: the target had more work than the attempts tell.

use crate::finding::{Code, Finding, Judgement, Level, count, percent};
use crate::record::Record;

/// Tries by attempts, beyond one.
const MORE_MIN: f64 = 0.02;
/// Tries that were repeated.
const TRIES_MIN: u64 = 20;

pub(super) fn judge(record: &Record) -> Judgement {
    let total = record.whole.sum(|step| record.kind(step.0).is_attempt());
    let retried: u64 = total.retried.iter().map(|(_, count)| count).sum();
    let more = retried + total.resent;
    let share = more as f64 / total.count.max(1) as f64;
    if more < TRIES_MIN || share < MORE_MIN {
        return Ok(Vec::new());
    }
    let text = say!(
        "{} more requests than attempts ({}): {} retries, {} sent again",
        count(more as f64),
        percent(share),
        count(retried as f64),
        count(total.resent as f64)
    );
    let mut found = Finding::new(Code::Amplified, Level::Certain, text, record.measured_span())
        .on(&["ok", "failed"]);
    for (cause, times) in total.retried.iter().take(3) {
        found = found.figure(say!("retries after `{}`: {times}", cause.word()));
    }
    if total.resent > 0 {
        let resent = total.resent;
        found =
            found.figure(say!("sent again because the target had closed the connection: {resent}"));
    }
    let next = say!("run without `retry` to see the first tries alone: `throng explain amplified`");
    Ok(vec![found.then(next)])
}
