//! Requests were sent more than once, so the target had more work than the attempts show.

use throng_metrics::{Counts as _, Retries, StepInterval};

use crate::finding::{Code, Finding, Judgement, Level, Needs, Unknown, count, percent};
use crate::record::Record;

/// Tries per attempt, minus one.
const MORE_MIN: f64 = 0.02;
/// Retried tries.
const TRIES_MIN: u64 = 20;

pub(super) fn judge(record: &Record) -> Judgement {
    if record.facts.no_retries {
        return Err(Unknown::NotRecorded { needs: Needs::Format(Retries::since()) });
    }
    let total = record.whole.sum(|step| record.kind(step.0).is_attempt());
    Ok(by_throng(record, &total).into_iter().chain(by_proxy(record, &total)).collect())
}

fn retried(total: &StepInterval) -> u64 {
    total.retried.iter().map(|(_, count)| count).sum()
}

fn by_throng(record: &Record, total: &StepInterval) -> Option<Finding> {
    let retried = retried(total);
    let more = retried + total.resent;
    let share = more as f64 / total.count.max(1) as f64;
    if more < TRIES_MIN || share < MORE_MIN {
        return None;
    }
    let text = say!(
        "{} more requests than attempts ({}): {} retries, {} resends of unprocessed requests",
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
        found = found.figure(say!("resent because the target had closed the connection: {resent}"));
    }
    let next = say!(
        "run without `retry` to measure only the first try of each request: `throng explain \
         amplified`"
    );
    Some(found.then(next))
}

/// A proxy before the target retries requests: throng sees only one response.
fn by_proxy(record: &Record, total: &StepInterval) -> Option<Finding> {
    let rows = record.watched("haproxy_backend_retry_warnings_total");
    let all = rows.map(|row| (row.label("proxy"), row.total(record.measured_span())));
    let (name, again) = all.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let share = again / total.count.max(1) as f64;
    if again < TRIES_MIN as f64 || share < MORE_MIN {
        return None;
    }
    let text = say!(
        "the proxy `{}` sent {} requests to the target again ({})",
        name.to_string(),
        count(again),
        percent(share)
    );
    let found = Finding::new(Code::Amplified, Level::Certain, text, record.measured_span())
        .on(&["ok", "failed"])
        .figure(say!("retries in the proxy's statistics, read by the monitor"))
        .figure(say!(
            "throng's failed attempts: {} of {}",
            count(total.failed() as f64),
            count(total.count as f64)
        ))
        .not(
            say!("retries by throng"),
            say!("throng sent {} requests again", {
                count((retried(total) + total.resent) as f64)
            }),
        );
    Some(found.then(say!("run once with `retries 0` in the proxy to see the target's errors")))
}
