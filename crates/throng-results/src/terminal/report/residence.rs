//! How long connections were there, by who ended them. Shown with `--details`.

use super::super::Style;
use super::super::table::{Cell, Table};
use super::super::text::nanos;
use super::percentile;
use crate::summary::{Percentile, ResidenceRow, Summary};

use throng_base::units::format_count;

pub(super) fn residence(summary: &Summary, style: &Style) -> String {
    if summary.connections.residence.is_empty() {
        return String::new();
    }
    let head = [
        say!("connections ended"),
        say!("count"),
        say!("min"),
        say!("mean"),
        say!("p50"),
        say!("p90"),
        say!("p99"),
        say!("max"),
    ];
    let mut table = Table::new(head);
    let name = |row: &ResidenceRow| match row.unopened {
        true => style.say(say!("{} before the connection was open", style.say(row.ended.text()))),
        false => style.say(row.ended.text()),
    };
    for row in &summary.connections.residence {
        let l = &row.time;
        let of = |which| Cell::from(percentile(l, which));
        table.row([
            name(row).into(),
            format_count(l.count).into(),
            nanos(l.min_ns).into(),
            nanos(l.mean_ns as u64).into(),
            of(Percentile::P50),
            of(Percentile::P90),
            of(Percentile::P99),
            nanos(l.max_ns).into(),
        ]);
    }
    table.render(style)
}
