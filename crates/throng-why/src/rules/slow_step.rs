//! The run became slower, and one step causes most of the additional time.

use std::collections::BTreeMap;

use crate::finding::{Code, Finding, Judgement, Level, Unknown, percent, time};
use crate::record::Record;
use crate::stats;
use crate::timeline::StepPoint;

/// Points of a step in each part.
const POINTS_MIN: usize = 6;
/// Minimum relative growth of the time of all steps, from the first third to the last.
const GROWTH_MIN: f64 = 0.5;
/// Minimum additional time of the step in nanoseconds: a busy host adds some hundred microseconds
/// to the times of a fast target.
const ADDED_NS_MIN: f64 = 500_000.0;
/// Minimum share of the growth due to the step, and maximum growth of the others.
const SHARE_MIN: f64 = 0.7;
const OTHERS_MAX: f64 = 0.25;
/// Attempts of a step in each part.
const ATTEMPTS_MIN: f64 = 50.0;

/// The times of a step in the first and last part, and its share of all attempts.
struct Step {
    id: u16,
    first: f64,
    last: f64,
    weight: f64,
}

/// Attempts of a step in a part, and the median of its points' mean times, which a pause of a busy
/// host does not affect.
fn part(points: &BTreeMap<u64, StepPoint>, from: u64, to: u64) -> (f64, f64) {
    let inside = || points.range(from..to).map(|(_, point)| point).filter(|it| it.0 > 0.0);
    let means: Vec<f64> = inside().map(|StepPoint(count, _, time)| time / count).collect();
    (inside().map(|it| it.0).sum(), stats::median(&means).unwrap_or_default())
}

pub(super) fn judge(record: &Record) -> Judgement {
    let (steps, width) = record.timeline.steps();
    let when = record.measured_span();
    let (from, to) = ((when.from_s as u64) / width, (when.to_s as u64) / width);
    let third = (to.saturating_sub(from)) / 3;
    if (third as usize) < POINTS_MIN {
        return Err(Unknown::TooShort { needs_s: 3 * POINTS_MIN as u64 * width });
    }
    let timed = steps.iter().filter(|(id, _)| record.kind(**id).is_asked());
    let steps: Vec<Step> = timed
        .filter_map(|(id, points)| {
            let (first, last) = (part(points, from, from + third), part(points, to - third, to));
            let is_enough = first.0 >= ATTEMPTS_MIN && last.0 >= ATTEMPTS_MIN;
            is_enough.then_some(Step {
                id: *id,
                first: first.1,
                last: last.1,
                weight: first.0 + last.0,
            })
        })
        .collect();
    if steps.len() < 2 {
        return Ok(Vec::new());
    }
    let sum = |of: fn(&Step) -> f64| steps.iter().map(|it| of(it) * it.weight).sum::<f64>();
    let (first, last) = (sum(|it| it.first), sum(|it| it.last));
    let added = last - first;
    let own = |it: &Step| (it.last - it.first) * it.weight;
    let Some(worst) = steps.iter().max_by(|a, b| own(a).total_cmp(&own(b))) else {
        return Ok(Vec::new());
    };
    let others_first = first - worst.first * worst.weight;
    let others = (added - own(worst)) / others_first.max(1.0);
    let share = own(worst) / added.max(1.0);
    let matters = worst.last - worst.first >= ADDED_NS_MIN;
    if !matters || added < first * GROWTH_MIN || share < SHARE_MIN || others > OTHERS_MAX {
        return Ok(Vec::new());
    }
    let name = record.step_name(worst.id);
    let text = say!("{} caused {} of the slowdown", name.clone(), percent(share.min(1.0)));
    let found = Finding::new(Code::SlowStep, Level::Likely, text, when)
        .on(&["p50"])
        .figure(say!(
            "mean of {}: {} in the first third, {} in the last",
            name,
            { time(worst.first) },
            time(worst.last)
        ))
        .not(
            say!("the whole target is slower"),
            say!("the other steps took {} longer", format!("{:+.0} %", others * 100.0)),
        )
        .then(say!("look at this step's slowest attempts: `throng report --details`"));
    Ok(vec![found])
}
