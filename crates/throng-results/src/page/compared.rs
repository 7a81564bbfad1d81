//! Several runs on one page: their curves, and comparisons with the first run.

use std::time::Duration;

use serde_json::{Value, json};
use throng_base::Diagnostic;

use super::{Series, renderings};
use crate::compare::{Comparison, Sampled, comparisons_json};
use crate::read::Run;

/// Maximum number of runs on the same axes, each in its own color.
const RUNS_MAX: usize = 8;

/// A run, and its comparison with the baseline.
pub type Compared = (Sampled, Comparison);

/// Checks that a page can show this many runs.
pub fn may_compare(runs: usize) -> Result<(), Box<Diagnostic>> {
    match (2..=RUNS_MAX).contains(&runs) {
        true => Ok(()),
        false => {
            let message = say!("choose two to {} runs", RUNS_MAX.to_string());
            Err(Box::new(Diagnostic::error("not-comparable", message)))
        }
    }
}

/// The data of a page with several runs.
pub fn compared_data(
    (names, runs): (&[String], &[Run]),
    baseline: &Sampled,
    others: &[Compared],
) -> Result<Value, Box<Diagnostic>> {
    let pairs: Vec<_> = others.iter().map(|(run, held)| (run, held)).collect();
    let sampled = std::iter::once(baseline).chain(others.iter().map(|(run, _)| run));
    let series = runs.iter().zip(sampled).zip(names).map(|((run, sampled), name)| {
        let series = Series::read(run, &sampled.summary)?.json();
        let lasted_ns = nanos(sampled.summary.lasted);
        Ok::<_, Box<Diagnostic>>(json!({"name": name, "lasted_ns": lasted_ns, "series": series}))
    });
    Ok(json!({
        "comparison": comparisons_json(baseline, &pairs),
        "renderings": renderings(others.iter().flat_map(|(_, held)| &held.unlike)),
        "runs": series.collect::<Result<Vec<_>, _>>()?,
    }))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
