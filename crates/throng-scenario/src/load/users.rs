//! `users`: the number of users at the end of a phase, and how they start or leave.

use throng_base::Said;
use throng_program::{Coming, Drive, Users};

use crate::ast;
use crate::load::no_users;
use crate::load::rate::{check_beside, positive_rate};
use crate::read::Context;
use crate::syntax::{Kind, Node, Place};
use crate::words::shorten;

const STEP_HELP: Said = say!("write `users: {{step: 1000, every: 30s, to: 10_000}}`");

pub(super) fn read_users(
    cx: &mut Context<'_>,
    node: &Node,
    fields: &ast::Phase<'_>,
    last: bool,
    population: &mut u64,
) -> Option<Drive> {
    check_beside(cx, fields, &Drive::Hold)?;
    let beside = fields.at_once.node();
    let (to, coming) = match &node.kind {
        Kind::Map(entries) => {
            if let Some((from, _)) = entries.iter().find(|(key, _)| key.text == "from") {
                let to = node.get("to").and_then(Node::text);
                return no_from(cx, from.place, to.unwrap_or("100"));
            }
            let inner = ast::Users::read(cx, node)?;
            let to = inner.need(cx, inner.to, say!("write `users: {{to: 100, rate: 50/s}}`"));
            let coming = read_coming(cx, &inner, beside);
            (cx.count(to?)?, coming?)
        }
        Kind::Scalar { text, .. } if text.contains("..") => {
            return no_from(cx, node.place, text.rsplit("..").next().unwrap_or("100").trim());
        }
        _ => {
            check_at_once(cx, beside, None)?;
            (cx.count(node)?, Coming::AtOnce)
        }
    };
    if to == 0 && *population == 0 {
        return no_users(cx, node.place, say!("a phase with 0 users does nothing"));
    }
    if last && to > 0 && coming == Coming::AtOnce && !fields.r#for.is_there() {
        fields.need(cx, fields.r#for, say!("write the duration: `{{users: 100, for: 30s}}`"))?;
    }
    let users = Users { to, coming };
    let time = fields.r#for.node().and_then(|node| cx.time_limit(node));
    let before = std::mem::replace(population, throng_load::reached(*population, users, time));
    if *population != to
        && let Some(node) = fields.r#for.node()
    {
        let part = population.abs_diff(before);
        let message = say!("this phase ends before its ramp is complete");
        let label = say!("only {part} of {} users start or stop in this time", to.abs_diff(before));
        let help = say!("remove `for` so that the ramp can complete, or raise the rate");
        cx.warn("ramp-cut", node.place, message, label, help);
    }
    Some(Drive::Users(users))
}

/// `rate`, `step` with `every`, or `at_once`; here or beside `users`.
fn read_coming(
    cx: &mut Context<'_>,
    inner: &ast::Users<'_>,
    beside: Option<&Node>,
) -> Option<Coming> {
    let way = ast::one_of(cx, &[inner.rate, inner.step]);
    let own = inner.at_once.node();
    if let (Some(_), Some(other)) = (own, beside) {
        let label = say!("`users` already contains `at_once`");
        let help = say!("keep one of them");
        cx.report("conflicting-keys", other.place, say!("`at_once` is given twice"), label, help);
    }
    check_at_once(cx, own.or(beside), way.map(|(key, _)| key.text.as_str()))?;
    match way {
        Some((key, node)) if inner.rate.is(key) => {
            if let Some(every) = inner.every.key() {
                let message = say!("`rate` and `every` cannot be used together");
                let label = say!("`every` requires `step`");
                cx.report("conflicting-keys", every.place, message, label, STEP_HELP);
            }
            positive_rate(cx, node).map(Coming::Rate)
        }
        Some((_, node)) => {
            let size = match cx.count(node) {
                Some(0) => cx.bad_value(node, say!("a step must add at least one user"), STEP_HELP),
                size => size,
            };
            let every = inner.need(cx, inner.every, STEP_HELP).and_then(|node| cx.time_limit(node));
            Some(Coming::Steps { size: size?, every: every? })
        }
        None if inner.every.key().is_some() => {
            inner.need(cx, inner.step, STEP_HELP)?;
            None
        }
        None => Some(Coming::AtOnce),
    }
}

/// Checks `at_once` against the keys next to it: `way` is the key of another way.
fn check_at_once(cx: &mut Context<'_>, node: Option<&Node>, way: Option<&str>) -> Option<()> {
    let Some(node) = node else { return Some(()) };
    match (cx.bool(node)?, way) {
        (true, Some(way)) => {
            let message = say!("`at_once` and `{way}` cannot be used together");
            let label = say!("`{way}` already sets how users start");
            cx.refuse("conflicting-keys", node.place, message, label, say!("keep the one you need"))
        }
        (false, None) => {
            let message = say!("without a rate or steps, all users start at the same time");
            cx.bad_value(node, message, say!("write `users: {{to: 100, rate: 50/s}}`"))
        }
        _ => Some(()),
    }
}

/// Refuses `{from: 0, to: 10}` and `1..10`, which give the start of a ramp.
fn no_from<T>(cx: &mut Context<'_>, place: Place, to: &str) -> Option<T> {
    let message = say!("`users` sets only the number of users at the end of the phase");
    let label = say!("a phase starts with the users of the previous phase");
    let help = say!("write `users: {{to: {}, rate: 1/s}}`", shorten(to));
    cx.refuse("bad-value", place, message, label, help)
}
