//! The target closes connections unexpectedly: long-lived ones, or those needed for the next
//! request.

use crate::finding::{Code, Finding, Judgement, Level, count, percent, time};
use crate::record::Record;
use throng_metrics::{Cause, Ending};

/// For long-lived connections: share of unexpected ends.
const ENDS_SHARE_MIN: f64 = 0.01;
/// For request connections: unexpected ends per attempt. With ten requests per connection, the run
/// mainly measures opening connections.
const PER_ATTEMPT_MIN: f64 = 0.1;
/// Share of attempts that fail because of it.
const FAILED_MIN: f64 = 0.01;
/// Minimum number of such ends.
const ENDS_MIN: f64 = 20.0;

pub(super) fn judge(record: &Record) -> Judgement {
    let ends = &record.whole.connections.counts;
    let unasked = (ends.closed_by_target + ends.reset + ends.timed_out) as f64;
    let by_us = ends.closed_by_us + ends.reset_by_us + ends.vanished + ends.half_closed;
    let all = unasked + by_us as f64;
    let total = record.whole.sum(|step| record.kind(step.0).is_attempt());
    let of_cause = |cause: &Cause| matches!(cause, Cause::ClosedEarly | Cause::Reset | Cause::Lost);
    let errors = total.errors.iter().filter(|(cause, _)| of_cause(cause));
    let failed = errors.map(|(_, count)| *count).sum::<u64>() as f64;
    let attempts = (total.count.max(1)) as f64;
    if unasked < ENDS_MIN {
        return Ok(Vec::new());
    }
    let is_long = record.is_long_lived();
    let text = if is_long && unasked >= all * ENDS_SHARE_MIN {
        say!(
            "{} of {} connections ({}) ended although no user closed them",
            count(unasked),
            count(all),
            percent(unasked / all)
        )
    } else if failed >= attempts * FAILED_MIN {
        say!("{} of the attempts failed because their connection ended", percent(failed / attempts))
    } else if !is_long && !record.facts.no_keep_alive && unasked >= attempts * PER_ATTEMPT_MIN {
        let each = attempts / ends.opened.max(1) as f64;
        say!("the target closes connections after {:.1} requests on average", each)
    } else {
        return Ok(Vec::new());
    };
    let when = record.measured_span();
    let mut found = Finding::new(Code::ClosesFirst, Level::Certain, text, when)
        .on(&["connections_open", "opened"])
        .figure(say!(
            "ended by the target's FIN: {}, by its RST: {}, after silence: {}; by throng: {}",
            (ends.closed_by_target),
            (ends.reset),
            (ends.timed_out),
            by_us
        ));
    let unasked = |row: &&throng_metrics::ResidenceInterval| {
        let by_target = matches!(row.ended, Ending::ClosedByTarget | Ending::Reset);
        by_target && !row.unopened && !row.time.is_empty()
    };
    for row in record.whole.connections.residence.iter().filter(unasked) {
        found = found.figure(say!(
            "{}: half of them lasted {} or less",
            row.ended.text(),
            time(row.time.value_at(0.5) as f64)
        ));
    }
    let found = found.not(
        say!("the scenario closes its connections"),
        say!("these are counted as closed by the target, not by throng"),
    );
    let next =
        say!("compare the keep-alive and idle timeouts of the target and the proxies; see {}", {
            "`throng report --details`"
        });
    Ok(vec![found.then(next)])
}
