//! Pauses: `think`, and warnings about pauses that are too long for the run.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Said;
use throng_base::units::write_duration;
use throng_program::{Escape, Pause, Segment, Statement};

use crate::ast;
use crate::load::Facts;
use crate::read::Context;
use crate::syntax::{Kind, Node, Place};

/// The minimum duration of a step, to be compared with the run.
pub(crate) struct Wait {
    pub(super) kind: WaitKind,
    pub(super) time: Duration,
    pub(super) place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitKind {
    Think,
    Stay,
}

const THINK_HELP: Said = say!(
    "write `think: 2s`, `think: 1s..5s`, `think: {{exponential: 20s}}` or \
                          `think: {{normal: 3s, deviation: 1s}}`"
);

/// The maximum of an exponential pause, as a multiple of its mean.
const EXPONENTIAL_MAX_FACTOR: u32 = 10;

pub(crate) fn read_think(
    cx: &mut Context<'_>,
    fields: &ast::Think<'_>,
    waits: &mut Vec<Wait>,
) -> Option<Statement> {
    let node = fields.think.node()?;
    let pause = match &node.kind {
        Kind::Map(_) => read_distribution(cx, node)?,
        Kind::Scalar { text, .. } if text.contains("${") => read_text(cx, node)?,
        _ => read_range(cx, node)?,
    };
    if let Pause::Uniform { low, .. } = &pause {
        waits.push(Wait { kind: WaitKind::Think, time: *low, place: node.place });
    }
    Some(Statement::Think(pause))
}

fn read_range(cx: &mut Context<'_>, node: &Node) -> Option<Pause> {
    let (low, high) = cx.duration_range(node)?;
    Some(Pause::Uniform { low, high })
}

/// A pause that can differ between users.
fn read_text(cx: &mut Context<'_>, node: &Node) -> Option<Pause> {
    let text = cx.template(node, say!("a duration"), Escape::None)?;
    if text.as_literal().is_some() {
        return read_range(cx, node);
    }
    let has_range = text.segments.iter().any(|segment| match segment {
        Segment::Literal(bytes) => bytes.windows(2).any(|two| two == b".."),
        Segment::Value { .. } | Segment::Given(_) => false,
    });
    if has_range {
        let message = say!("a range of durations cannot contain expressions");
        return cx.bad_value(
            node,
            message,
            say!("write one duration: `think: \"${{data.user.pause}}s\"`"),
        );
    }
    Some(Pause::Text(Arc::new(text)))
}

fn read_distribution(cx: &mut Context<'_>, node: &Node) -> Option<Pause> {
    let fields = ast::ThinkTime::read(cx, node)?;
    let Some((key, mean_node)) = ast::one_of(cx, &[fields.exponential, fields.normal]) else {
        return match node.is_empty() || fields.deviation.is_there() || fields.max.is_there() {
            true => cx.wrong_type(node, say!("a think time"), THINK_HELP),
            false => None,
        };
    };
    let normal = fields.normal.is(key);
    let other = if normal { fields.max } else { fields.deviation };
    if let Some(other) = other.key() {
        let message = say!("`{}` and `{}` cannot be used together", key.text, other.text);
        let label = say!("`{}` is already given", key.text);
        cx.report("conflicting-keys", other.place, message, label, THINK_HELP);
    }
    if normal {
        let mean = cx.duration(mean_node);
        let deviation =
            fields.need(cx, fields.deviation, say!("write `{{normal: 3s, deviation: 1s}}`"));
        let deviation = deviation.and_then(|node| cx.duration(node));
        return Some(Pause::Normal { mean: mean?, deviation: deviation? });
    }
    let mean = cx.time_limit(mean_node)?;
    let max = match fields.max.node() {
        Some(node) => match cx.duration(node)? {
            max if max < mean => {
                let message = say!("the maximum pause is shorter than the mean");
                return cx.bad_value(node, message, say!("write `{{exponential: 20s, max: 3m}}`"));
            }
            max => max,
        },
        None => mean.saturating_mul(EXPONENTIAL_MAX_FACTOR),
    };
    Some(Pause::Exponential { mean, max })
}

/// Warns of pauses that are longer than every phase, and of stays that the run cuts short.
pub(crate) fn warn_long(cx: &mut Context<'_>, facts: &Facts, waits: &[Wait]) {
    for wait in waits {
        let limit = match wait.kind {
            WaitKind::Think => facts.longest_phase,
            WaitKind::Stay => facts.time,
        };
        let Some(limit) = limit.filter(|limit| !limit.is_zero() && wait.time > *limit) else {
            continue;
        };
        let (time, limit) = (write_duration(wait.time), write_duration(limit));
        let (code, message, label, help) = match wait.kind {
            WaitKind::Think => (
                "think-too-long",
                say!("the think time is longer than any phase"),
                say!("the think time is at least {time}, but the longest phase lasts {limit}"),
                say!(
                    "shorten the think time, or extend the run; otherwise the next steps rarely \
                     run"
                ),
            ),
            WaitKind::Stay => (
                "stay-too-long",
                say!("users stay longer than the whole run"),
                say!("they stay for {time}, but the run lasts {limit}"),
                say!(
                    "write `stay: forever`, or extend the run; otherwise the next steps never run"
                ),
            ),
        };
        cx.warn(code, wait.place, message, label, help);
    }
}
