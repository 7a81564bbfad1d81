//! A scenario's own metrics: `count` and `measure`.

use std::sync::Arc;

use throng_base::StepId;
use throng_metrics::TrendUnit;
use throng_program::{Statement, StepKind, Text, tallied};

use crate::ast;
use crate::message::fields::constant;
use crate::read::Context;
use crate::step::rows::Rows;
use crate::syntax::Node;

/// The unit of a trend, and the scale of its histogram.
type Unit = (TrendUnit, f64);

const UNITS: [(&str, Unit); 5] = [
    ("ns", (TrendUnit::Time, 1.0)),
    ("us", (TrendUnit::Time, 1e3)),
    ("ms", (TrendUnit::Time, 1e6)),
    ("s", (TrendUnit::Time, 1e9)),
    ("bytes", (TrendUnit::Bytes, 1.0)),
];

pub(super) fn read_count(
    cx: &mut Context<'_>,
    fields: &ast::Count<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let name = cx.text(fields.count.node()?, say!("the name of a counter"))?;
    let value = fields.by.node().map_or(Some(Text::literal("1")), |node| amount(cx, node, None))?;
    let step = rows.labelled(cx, StepKind::Counter, &name, fields)?;
    Some(Statement::Tally { step, value: Arc::new(value), scale: None })
}

pub(super) fn read_measure(
    cx: &mut Context<'_>,
    fields: &ast::Measure<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let name = cx.text(fields.measure.node()?, say!("the name of a trend"))?;
    let help = say!("write `- {{measure: NAME, value: \"${{saved.ms}}\", unit: ms}}`");
    let value = fields.need(cx, fields.value, help);
    let (unit, scale) = match fields.unit.node() {
        Some(node) => cx.word(node, &UNITS)?,
        None => (TrendUnit::Number, TrendUnit::Number.scale()),
    };
    let value = value.and_then(|node| amount(cx, node, Some(scale)));
    let step = rows.labelled(cx, StepKind::Trend, &name, fields)?;
    if !has_unit(rows, step, unit) {
        let place = fields.measure.place_or(fields.place);
        let message = say!("another step uses a different unit for this trend");
        let label = say!("a trend can only contain times, bytes or numbers, not a mix");
        let help = say!("use the unit of the other step, or another name");
        return cx.refuse("conflicting-keys", place, message, label, help);
    }
    Some(Statement::Tally { step, value: Arc::new(value?), scale: Some(scale) })
}

/// A value; a constant one must be valid.
fn amount(cx: &mut Context<'_>, node: &Node, scale: Option<f64>) -> Option<Text> {
    let text = cx.value_text(node)?;
    match constant(&text).map(|value| tallied(&value, scale)) {
        Some(Err(why)) => {
            let help = match scale {
                Some(_) => say!("write a number of 0 or more"),
                None => say!("write a whole number of 0 or more"),
            };
            cx.refuse("bad-value", node.place, why, say!("not allowed"), help)
        }
        _ => Some(text),
    }
}

/// Sets the unit of the row; false if it has another one.
fn has_unit(rows: &mut Rows, step: StepId, unit: TrendUnit) -> bool {
    let known = &mut rows.steps[step.index()].unit;
    *known.get_or_insert(unit) == unit
}
