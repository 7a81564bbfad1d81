//! The section about counters and trends of the scenario.

use super::super::Style;
use super::super::columns::{Columns, NOTHING, P50, P95, P99, Time};
use super::super::text::clean;
use super::{best_left_out, figure_text};
use crate::summary::{OwnRow, Summary};

/// The counters and trends that have values.
pub(super) fn own(summary: &Summary, style: &Style) -> String {
    if summary.steps.own.iter().all(|own| own.row.count == 0) {
        return String::new();
    }
    let mut columns = Columns::of(say!("counters and trends"), |own: &OwnRow| clean(&own.row.name))
        .count(say!("count"), |own| own.row.count)
        .rate(say!("per second"), |own| own.row.ok_per_s);
    for time in [Time::Mean, Time::Min, P50, P95, P99, Time::Max] {
        columns =
            columns.cell(time.head(), move |own| value(own, time)).if_any(|own| own.unit.is_some());
    }
    let more = say!("… and {{}} more: `throng report --json` lists all");
    best_left_out(&summary.steps.own, |own| own.row.count, &columns, more, style)
}

/// A value of a trend in its unit.
fn value(own: &OwnRow, time: Time) -> String {
    let Some(unit) = own.unit.filter(|_| !own.row.latency.is_empty()) else {
        return String::new();
    };
    let text = |value: f64| figure_text(unit.unit(), value / unit.scale());
    time.value(&own.row.latency).map_or_else(|| NOTHING.to_string(), text)
}

/// A number with up to three decimals.
pub(super) fn decimal(figure: f64) -> String {
    let text = format!("{figure:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
