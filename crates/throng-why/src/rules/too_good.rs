//! The responses do not reflect the service's work: they come from a cache, or differing requests
//! get the same body.

use throng_metrics::SampleInterval;

use crate::finding::{Code, Finding, Judgement, Level, count, percent};
use crate::record::Record;

/// Sampled responses of a step.
const SAMPLES_MIN: u64 = 30;
/// Share of sampled responses from a cache.
const CACHED_MIN: f64 = 0.5;
/// Share of samples with the same body, and the minimum number of samples.
const SAME_MIN: f64 = 0.99;
const SAME_SAMPLES_MIN: u64 = 200;
/// Minimum mean size of a response in bytes; shorter equal bodies are acknowledgements.
const BYTES_MIN: f64 = 1_000.0;

pub(super) fn judge(record: &Record) -> Judgement {
    let judged = record.whole.samples.iter().filter(|row| row.sampled >= SAMPLES_MIN);
    Ok(judged.filter_map(|row| of_cache(record, row).or_else(|| same(record, row))).collect())
}

fn of_cache(record: &Record, row: &SampleInterval) -> Option<Finding> {
    let share = row.cached as f64 / row.sampled as f64;
    if share < CACHED_MIN {
        return None;
    }
    let text = say!(
        "{} of the responses to `{}` came from a cache",
        percent(share),
        record.step_name(row.step)
    );
    let found = Finding::new(Code::TooGood, Level::Certain, text, record.measured_span());
    let sampled = say!(
        "{} of {} sampled responses have a cache header (`Age`, `X-Cache`, `CF-Cache-Status`)",
        count(row.cached as f64),
        count(row.sampled as f64)
    );
    Some(found.figure(sampled).then(say!(
        "send requests that are not in a cache, or measure the service behind the cache: \
         `--connect-to`"
    )))
}

fn same(record: &Record, row: &SampleInterval) -> Option<Finding> {
    let share = row.same as f64 / row.sampled as f64;
    let step = record.whole.step(throng_base::StepId(row.step))?;
    let bytes = step.bytes_in as f64 / step.count.max(1) as f64;
    if row.sampled < SAME_SAMPLES_MIN || share < SAME_MIN || bytes < BYTES_MIN {
        return None;
    }
    let text = say!(
        "the requests of `{}` differ, but {} of their responses are equal",
        record.step_name(row.step),
        percent(share)
    );
    let found = Finding::new(Code::TooGood, Level::Hint, text, record.measured_span());
    let sampled = say!(
        "{} of {} sampled bodies are equal; a response has {} bytes on average",
        count(row.same as f64),
        count(row.sampled as f64),
        count(bytes)
    );
    Some(
        found
            .figure(sampled)
            .then(say!("check a value in the response that depends on the request: see `check`")),
    )
}
