//! The shape of a rate over a phase: from one value to another, a sine, points of a file, or the
//! times of an access log.

use std::time::Duration;

use throng_base::units::write_duration;
use throng_data::{PointsFile, access_log};
use throng_program::{Points, Rate, Sine};

use crate::ast::{self, Field};
use crate::file::data::data_error;
use crate::read::Context;
use crate::scope::FileRole;
use crate::syntax::{Kind, Node};

const SPEED_MAX: f64 = 1e6;

/// The keys of a map that define the shape of a rate.
pub(super) struct Shapes<'n> {
    pub(super) from: Field<'n>,
    pub(super) to: Field<'n>,
    pub(super) sine: Field<'n>,
    pub(super) points: Field<'n>,
    pub(super) log: Field<'n>,
}

/// The rate, if one of the keys is given.
pub(super) fn read(
    cx: &mut Context<'_>,
    shapes: &Shapes<'_>,
    phase: &ast::Phase<'_>,
) -> Option<Option<Rate>> {
    ast::one_of(cx, &[shapes.to, shapes.sine, shapes.points, shapes.log]);
    if let Some(node) = shapes.sine.node() {
        return read_sine(cx, node).map(|sine| Some(Rate::Sine(sine)));
    }
    let points = match (shapes.points.node(), shapes.log.node()) {
        (Some(node), _) => read_points(cx, node)?,
        (None, Some(node)) => read_log(cx, node)?,
        (None, None) => return read_ramp(cx, shapes),
    };
    check_time(cx, phase, points.length())?;
    Some(Some(Rate::Points(points)))
}

fn read_ramp(cx: &mut Context<'_>, shapes: &Shapes<'_>) -> Option<Option<Rate>> {
    let Some(to) = shapes.to.node() else { return Some(None) };
    let from = shapes.from.node().map_or(Some(0.0), |node| cx.rate(node))?;
    Some(Some(Rate::Ramp { from, to: cx.rate(to)? }))
}

fn read_sine(cx: &mut Context<'_>, node: &Node) -> Option<Sine> {
    let fields = ast::Sine::read(cx, node)?;
    let help = || say!("write `sine: {{mean: 500/s, amplitude: 300/s, period: 10m}}`");
    let mean = fields.need(cx, fields.mean, help());
    let amplitude = fields.need(cx, fields.amplitude, help());
    let period = fields.need(cx, fields.period, help());
    let (mean, amplitude, period) = (mean?, amplitude?, period?);
    let (mean, swing) = (cx.rate(mean), cx.rate(amplitude));
    let period = cx.time_limit(period)?;
    let offset = fields.offset.node().map_or(Some(Duration::ZERO), |node| cx.duration(node))?;
    let (mean, swing) = (mean?, swing?);
    if swing > mean {
        let text = cx.text(fields.mean.node()?, say!("a rate"))?;
        let reason = say!("the rate would be negative for part of each period");
        return cx.bad_value(
            amplitude,
            reason,
            say!("the amplitude can be at most the mean: `{text}`"),
        );
    }
    Some(Sine { mean, amplitude: swing, period, offset })
}

fn read_points(cx: &mut Context<'_>, node: &Node) -> Option<Points> {
    let (file, time, rate) = match &node.kind {
        Kind::Map(_) => {
            let fields = ast::Points::read(cx, node)?;
            let help = say!("write `points: day.csv` or `points: {{file: day.csv, rate: rps}}`");
            let file = fields.need(cx, fields.file, help)?;
            let mut name = |field: Field<'_>| match field.node() {
                Some(node) => cx.text(node, say!("the name of a column")).map(Some),
                None => Some(None),
            };
            (file, name(fields.time)?, name(fields.rate)?)
        }
        _ => (node, None, None),
    };
    let name = cx.text(file, say!("the path of a file"))?;
    let path = cx.named_path(file.place, &name, FileRole::Load);
    let points = PointsFile { path: &path, time: time.as_deref(), rate: rate.as_deref() };
    match points.read() {
        Ok(points) => Some(Points::new(points)),
        Err(reason) => data_error(cx, &reason, file.place),
    }
}

fn read_log(cx: &mut Context<'_>, node: &Node) -> Option<Points> {
    let (file, speed) = match &node.kind {
        Kind::Map(_) => {
            let fields = ast::AccessLog::read(cx, node)?;
            let help = say!("write `log: access.log` or `log: {{file: access.log, speed: 2}}`");
            let file = fields.need(cx, fields.file, help)?;
            let speed = fields.speed.node().map_or(Some(1.0), |node| read_speed(cx, node))?;
            (file, speed)
        }
        _ => (node, 1.0),
    };
    let name = cx.text(file, say!("the path of a file"))?;
    let path = cx.named_path(file.place, &name, FileRole::Load);
    match access_log::read(&path) {
        Ok(seconds) => Some(Points::of_seconds(&seconds, speed)),
        Err(reason) => data_error(cx, &reason, file.place),
    }
}

fn read_speed(cx: &mut Context<'_>, node: &Node) -> Option<f64> {
    let text = cx.text(node, say!("a number"))?;
    let speed = text.strip_suffix('x').unwrap_or(&text).trim().parse::<f64>().ok();
    match speed {
        Some(speed) if speed > 0.0 && speed <= SPEED_MAX => Some(speed),
        speed => {
            let reason = match speed.filter(|speed| *speed > SPEED_MAX) {
                Some(_) => say!("the speed can be at most {SPEED_MAX}"),
                None => say!("the speed must be a number greater than 0"),
            };
            cx.bad_value(node, reason, say!("write `2` for double speed, or `0.5` for half"))
        }
    }
}

/// A phase cannot last longer than its points.
fn check_time(cx: &mut Context<'_>, phase: &ast::Phase<'_>, length: Duration) -> Option<()> {
    let Some(node) = phase.r#for.node() else { return Some(()) };
    if cx.time_limit(node)? <= length {
        return Some(());
    }
    let length = write_duration(length);
    let label = say!("they cover only {length}");
    let help = say!("remove `for`, or write at most `{length}`");
    cx.refuse("bad-value", node.place, say!("the rates end before the phase ends"), label, help)
}
