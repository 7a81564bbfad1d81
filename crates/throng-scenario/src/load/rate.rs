//! Starts at a rate: arriving users, and iterations of users that stay.

use throng_program::{Arrivals, Drive, Iterations, Rate, Spacing};

use crate::ast;
use crate::load::shape::{self, Shapes};
use crate::load::{LOAD_HELP, no_users};
use crate::read::Context;
use crate::syntax::{Kind, Node};

const SPACINGS: [(&str, Spacing); 2] = [("even", Spacing::Even), ("poisson", Spacing::Poisson)];

pub(super) fn positive_rate(cx: &mut Context<'_>, node: &Node) -> Option<f64> {
    let rate = cx.rate(node)?;
    match rate > 0.0 {
        true => Some(rate),
        false => {
            cx.bad_value(node, say!("the rate must be greater than zero"), say!("write `50/s`"))
        }
    }
}

/// `spacing` and `max` require starts at a rate.
pub(super) fn check_beside(
    cx: &mut Context<'_>,
    fields: &ast::Phase<'_>,
    drive: &Drive,
) -> Option<()> {
    let key = fields.spacing.key().or(fields.max.key()).filter(|_| !drive.is_paced());
    let Some(key) = key else { return Some(()) };
    let name = key.text.as_str();
    let message = say!("`{name}` works only with `arrivals`, or with `iterations` at a rate");
    let label = say!("this phase does not start users or iterations at a rate");
    let help = say!("write `{{arrivals: 500/s, spacing: poisson, max: 2000, for: 10m}}`");
    cx.refuse("conflicting-keys", key.place, message, label, help)
}

fn read_spacing(cx: &mut Context<'_>, fields: &ast::Phase<'_>) -> Option<Spacing> {
    fields.spacing.node().map_or(Some(Spacing::Even), |node| cx.word(node, &SPACINGS))
}

/// Maximum number of concurrent users; new arrivals do not need a free one.
fn read_max(cx: &mut Context<'_>, node: &Node) -> Option<u64> {
    match cx.count(node)? {
        0 => no_users(cx, node.place, say!("with a maximum of 0 users, no user ever starts")),
        max => Some(max),
    }
}

pub(super) fn read_arrivals(
    cx: &mut Context<'_>,
    fields: &ast::Phase<'_>,
    node: &Node,
) -> Option<Drive> {
    let rate = match &node.kind {
        Kind::Map(_) => {
            let inner = ast::Arrivals::read(cx, node)?;
            let ast::Arrivals { from, to, sine, points, log, .. } = inner;
            match shape::read(cx, &Shapes { from, to, sine, points, log }, fields)? {
                Some(rate) => rate,
                None => {
                    let help = say!("write `arrivals: {{from: 10/s, to: 900/s}}`");
                    return inner.need(cx, inner.to, help).and(None);
                }
            }
        }
        _ => Rate::constant(cx.rate(node)?),
    };
    if !matches!(rate, Rate::Points(_)) {
        let help = say!("write how long users keep arriving: `{{arrivals: 900/s, for: 10m}}`");
        fields.need(cx, fields.r#for, help)?;
    }
    if rate.peak() <= 0.0 {
        return no_users(cx, node.place, say!("no user ever arrives"));
    }
    let spacing = read_spacing(cx, fields)?;
    let max = fields.max.node().map_or(Some(None), |node| read_max(cx, node).map(Some))?;
    Some(Drive::Arrivals(Arrivals { rate, spacing, max }))
}

pub(super) fn read_iterations(
    cx: &mut Context<'_>,
    fields: &ast::Phase<'_>,
    node: &Node,
    population: &mut u64,
) -> Option<Drive> {
    let (total, rate) = match &node.kind {
        Kind::Map(_) => read_iterations_map(cx, fields, node)?,
        _ => match cx.text(node, say!("a rate or a number of iterations"))?.contains('/') {
            true => (None, Some(Rate::constant(positive_rate(cx, node)?))),
            false => (Some(cx.count(node)?), None),
        },
    };
    if total == Some(0) {
        return cx.bad_value(node, say!("the number of iterations is zero"), LOAD_HELP);
    }
    if rate.as_ref().is_some_and(|rate| rate.peak() <= 0.0) {
        return no_users(cx, node.place, say!("no iteration ever starts"));
    }
    let (users, drops) = read_workers(cx, fields)?;
    // A rate that changes needs a duration.
    let has_time = match &rate {
        Some(Rate::Points(_)) => true,
        Some(Rate::Ramp { from, to }) if from != to => false,
        _ => total.is_some(),
    };
    if !has_time {
        let help = say!("write the duration: `{{iterations: 500/s, users: 100, for: 30s}}`");
        fields.need(cx, fields.r#for, help)?;
    }
    *population = users;
    let spacing = read_spacing(cx, fields)?;
    Some(Drive::Iterations(Iterations { users, rate, spacing, total, drops }))
}

fn read_iterations_map(
    cx: &mut Context<'_>,
    fields: &ast::Phase<'_>,
    node: &Node,
) -> Option<(Option<u64>, Option<Rate>)> {
    let inner = ast::Iterations::read(cx, node)?;
    let total = inner.total.node().map_or(Some(None), |node| cx.count(node).map(Some))?;
    let ast::Iterations { from, to, sine, points, log, .. } = inner;
    let shapes = Shapes { from, to, sine, points, log };
    ast::one_of(cx, &[inner.rate, to, sine, points, log]);
    let rate = match inner.rate.node() {
        Some(node) => Some(Rate::constant(positive_rate(cx, node)?)),
        None => shape::read(cx, &shapes, fields)?,
    };
    if total.is_none() && rate.is_none() {
        let help = say!("write `iterations: {{total: 10_000, rate: 500/s}}`");
        return inner.need(cx, inner.total, help).and(None);
    }
    Some((total, rate))
}

/// The users that run iterations: `users`, for which starts wait, or `max`, whose excess starts are
/// dropped.
fn read_workers(cx: &mut Context<'_>, fields: &ast::Phase<'_>) -> Option<(u64, bool)> {
    if let Some((key, node)) = ast::one_of(cx, &[fields.users, fields.max])
        && fields.max.is(key)
    {
        return Some((read_max(cx, node)?, true));
    }
    let help = say!(
        "write how many users run the iterations: `{{iterations: 500/s, users: 100, for: 30s}}`"
    );
    let node = fields.need(cx, fields.users, help)?;
    match cx.count(node)? {
        0 => no_users(cx, node.place, say!("0 users cannot run iterations")),
        users => Some((users, false)),
    }
}
