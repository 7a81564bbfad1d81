//! The section about what a scenario counts and measures of its own.

use throng_base::units::format_count;
use throng_base::{Said, say};

use super::super::Style;
use super::super::table::Table;
use super::super::text::{clean, rate};
use super::{figure_text, left_out, pick};
use crate::summary::{OwnRow, Percentile, Summary};

/// Every counter and trend that something was added to.
pub(super) fn own(summary: &Summary, style: &Style) -> String {
    if summary.steps.own.iter().all(|own| own.row.count == 0) {
        return String::new();
    }
    let is_measured = summary.steps.own.iter().any(|own| own.unit.is_some());
    let [mean, min, p50, p95, p99, max] = match is_measured {
        true => {
            let [p50, p95, p99] = ["p50", "p95", "p99"].map(Said::of_others);
            [say!("mean"), say!("min"), p50, p95, p99, say!("max")]
        }
        false => std::array::from_fn(|_| Said::default()),
    };
    let head = [
        say!("counters and trends"),
        say!("count"),
        say!("per second"),
        mean,
        min,
        p50,
        p95,
        p99,
        max,
    ];
    let mut table = Table::new(head);
    let shown = pick(&summary.steps.own, |own| own.row.count);
    for own in &shown {
        let [mean, min, p50, p95, p99, max] = figures_of(own);
        table.row([
            clean(&own.row.name).into(),
            format_count(own.row.count).into(),
            rate(own.row.ok_per_s).into(),
            mean.into(),
            min.into(),
            p50.into(),
            p95.into(),
            p99.into(),
            max.into(),
        ]);
    }
    let more = say!("… and {{}} more: `throng report --json` lists all");
    table.render(style) + &left_out(summary.steps.own.len(), shown.len(), more, style)
}

fn figures_of(own: &OwnRow) -> [String; 6] {
    let values = &own.row.latency;
    let Some(unit) = own.unit.filter(|_| !values.is_empty()) else {
        return [const { String::new() }; 6];
    };
    let text = |value: f64| figure_text(unit.unit(), value / unit.scale());
    let percentile = |percentile: Percentile| match values.percentile(percentile) {
        Some(value) => text(value as f64),
        None => "–".to_string(),
    };
    [
        text(values.mean_ns),
        text(values.min_ns as f64),
        percentile(Percentile::P50),
        percentile(Percentile::P95),
        percentile(Percentile::P99),
        text(values.max_ns as f64),
    ]
}

/// A number with up to three decimals.
pub(super) fn decimal(figure: f64) -> String {
    let text = format!("{figure:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
