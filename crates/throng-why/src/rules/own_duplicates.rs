//! The target rejects requests as conflicts (409, 422) because the scenario repeats them: the data
//! is the cause, not the target.

use throng_metrics::SampleInterval;

use crate::finding::{Code, Finding, Judgement, Level, count, percent};
use crate::record::Record;
use crate::stats;

/// Minimum number of conflicts for which earlier requests are known.
const CONFLICTS_MIN: u64 = 20;
/// Share of conflicts with an earlier identical request. Shards do not know each other's requests,
/// so it is below 1.
const REPEATED_MIN: f64 = 0.3;
/// From this share on, it is certain, provided that hardly any successful request was repeated.
const REPEATED_SURE: f64 = 0.9;
const SUCCEEDED_SURE_MAX: f64 = 0.1;
/// Minimum ratio to the share among successful requests, and standard errors between both.
const TIMES_MIN: f64 = 3.0;
const APART_MIN: f64 = 5.0;

pub(super) fn judge(record: &Record) -> Judgement {
    Ok(record.whole.samples.iter().filter_map(|row| of_step(record, row)).collect())
}

fn of_step(record: &Record, row: &SampleInterval) -> Option<Finding> {
    let others = row.followed.saturating_sub(row.conflicts);
    let others_repeated = row.repeated.saturating_sub(row.conflicts_repeated);
    if row.conflicts < CONFLICTS_MIN {
        return None;
    }
    let share = row.conflicts_repeated as f64 / row.conflicts as f64;
    let other_share = others_repeated as f64 / others.max(1) as f64;
    let bad = (row.conflicts_repeated, row.conflicts);
    let apart = stats::shares_apart(bad, (others_repeated, others.max(1)));
    if share < REPEATED_MIN || share < other_share * TIMES_MIN || apart < APART_MIN {
        return None;
    }
    let is_sure = share >= REPEATED_SURE && other_share <= SUCCEEDED_SURE_MAX;
    let level = if is_sure { Level::Certain } else { Level::Likely };
    let step = record.step_name(row.step);
    let text = say!(
        "`{}` repeats earlier requests, which cause {} of its conflicts",
        step,
        percent(share)
    );
    let found = Finding::new(Code::OwnDuplicates, level, text, record.measured_span())
        .on(&["failed"])
        .figure(say!(
            "409 or 422: {} of {} for a request with the same path and body as an earlier one",
            count(row.conflicts_repeated as f64),
            count(row.conflicts as f64)
        ))
        .figure(say!(
            "other responses: {} of {}",
            count(others_repeated as f64),
            count(others as f64)
        ))
        .not(
            say!("data in the target from an earlier run"),
            say!("then first requests would conflict as often as repeated ones"),
        );
    Some(found.then(say!(
        "make the values unique: use `take: unique` for data, or the user and iteration numbers"
    )))
}
