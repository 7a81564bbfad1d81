//! Failures of steps: `on_error`, `retry` and time limits.

use std::time::Duration;

use throng_base::{Said, units};
use throng_metrics::Cause;
use throng_program::{Failing, OnError, RETRY_ON_MAX, Retry, RetryOn};

use crate::ast::{self, Field};
use crate::message::checks::parse_status;
use crate::native;
use crate::read::Context;
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::{Kind, Node};
use crate::words::shorten;

/// The default time limit of a step.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The defaults of `retry`.
const RETRY: Retry = Retry {
    on: RetryOn::Any,
    times: Some(3),
    low: Duration::from_secs(1),
    high: Duration::from_secs(30),
};

const ON_ERRORS: &[(&str, Failing)] = &[
    ("count", Failing { retry: None, then: OnError::Count }),
    ("next", Failing { retry: None, then: OnError::Next }),
    ("leave", Failing { retry: None, then: OnError::Leave }),
    ("stop", Failing { retry: None, then: OnError::Stop }),
    ("retry", Failing { retry: Some(RETRY), then: OnError::Count }),
];

pub(crate) fn read_on_error(cx: &mut Context<'_>, node: &Node) -> Option<Failing> {
    cx.word(node, ON_ERRORS)
}

/// The effective `on_error` and `retry` of a step: its own, or inherited.
pub(crate) fn read_failing(cx: &mut Context<'_>, on_error: Field<'_>, retry: Field<'_>) -> Failing {
    let mut failing = match on_error.node() {
        Some(node) => read_on_error(cx, node).unwrap_or_default(),
        None => cx.scope.defaults.failing,
    };
    if let Some(node) = retry.node() {
        failing.retry = read_retry(cx, node);
    }
    failing
}

/// The time limit of a step: its own, that of the session or of `defaults`, or 30 s.
pub(crate) fn read_timeout(cx: &mut Context<'_>, timeout: Field<'_>) -> Option<Duration> {
    timeout.node().map_or(Some(usual_timeout(cx)), |node| cx.time_limit(node))
}

/// The time limit of a step that sets none.
pub(crate) fn usual_timeout(cx: &Context<'_>) -> Duration {
    cx.scope.defaults.timeout.unwrap_or(TIMEOUT)
}

/// How a user reconnects after losing its connection.
pub(crate) fn read_reconnect(cx: &mut Context<'_>, node: &Node) -> Option<Retry> {
    match &node.kind {
        Kind::Scalar { text, .. } if matches!(text.as_str(), "never" | "0") => {
            Some(Retry { times: Some(0), ..RETRY })
        }
        Kind::Map(_) => {
            let fields = ast::Reconnect::read(cx, node)?;
            // A lost connection has no status, so `on` does not apply.
            read_waits(cx, (fields.times, fields.wait), RetryOn::Any, RECONNECT_HELP)
        }
        _ => Some(Retry { times: read_attempts(cx, node, RECONNECT_HELP)?, ..RETRY }),
    }
}

/// What a user does if it loses its connection during a stay: the step's own setting, or an
/// inherited one. Reconnecting is not a retry of the step.
pub(crate) fn read_loss(cx: &mut Context<'_>, on_error: Field<'_>) -> Failing {
    let Some(node) = on_error.node() else {
        return Failing { retry: None, ..cx.scope.defaults.failing };
    };
    let words: Vec<(&str, Failing)> =
        ON_ERRORS.iter().filter(|(_, failing)| failing.retry.is_none()).copied().collect();
    cx.word(node, &words).unwrap_or_default()
}

const RETRY_HELP: Said = say!("write `retry: 3` or `retry: {{times: 5, wait: 1s..30s}}`");

const RECONNECT_HELP: Said =
    say!("write `reconnect: never`, `reconnect: 3` or `reconnect: {{times: 5, wait: 1s..30s}}`");

fn read_retry(cx: &mut Context<'_>, node: &Node) -> Option<Retry> {
    if !matches!(node.kind, Kind::Map(_)) {
        let times = read_attempts(cx, node, RETRY_HELP)?;
        return Some(Retry { times, ..RETRY });
    }
    let fields = ast::Retry::read(cx, node)?;
    let on = fields.on.node().map_or(Some(RetryOn::Any), |node| read_retry_on(cx, node));
    read_waits(cx, (fields.times, fields.wait), on?, RETRY_HELP)
}

/// The number of retries, and the waits between them.
fn read_waits(
    cx: &mut Context<'_>,
    (times, wait): (Field<'_>, Field<'_>),
    on: RetryOn,
    help: Said,
) -> Option<Retry> {
    let times = times.node().map_or(Some(RETRY.times), |node| read_attempts(cx, node, help));
    let (low, high) = match wait.node() {
        Some(node) => match cx.duration_range(node)? {
            (low, _) if low.is_zero() => {
                let message = say!("a wait of zero would overload a failing target");
                return cx.bad_value(node, message, say!("write `wait: 1s..30s`"));
            }
            range => range,
        },
        None => (RETRY.low, RETRY.high),
    };
    Some(Retry { on, times: times?, low, high })
}

/// Statuses and causes, one or a list of them.
fn read_retry_on(cx: &mut Context<'_>, node: &Node) -> Option<RetryOn> {
    const HELP: Said = say!("write statuses and causes: `on: [429, 5xx, timeout, reset]`");
    let nodes = node.one_or_more();
    if nodes.is_empty() {
        return cx.bad_value(node, say!("the list of reasons to retry is empty"), HELP);
    }
    let (mut statuses, mut causes) = (Vec::new(), Vec::new());
    for node in nodes {
        let text = cx.text(node, say!("a status or a cause"))?;
        let cause = || Cause::ALL.iter().find(|cause| cause.word() == text.trim());
        let found: Vec<(u16, u16)> = match parse_status(&text) {
            Some(range) => vec![range],
            None => native::failures(text.trim()).map(|status| (status, status)).collect(),
        };
        match (found.is_empty(), cause()) {
            (false, _) => statuses.extend(found.into_iter().map(Some)),
            (true, Some(cause)) => causes.push(Some(*cause)),
            (true, None) => {
                let message = say!("`{}` is neither a status nor a cause", shorten(&text));
                let words = Cause::ALL.iter().map(|cause| cause.word());
                let label = near_label(did_you_mean(&text, words), say!("not a known cause"));
                return cx.refuse("bad-value", node.place, message, label, HELP);
            }
        }
    }
    if statuses.len() > RETRY_ON_MAX || causes.len() > RETRY_ON_MAX {
        let message = say!("more than {RETRY_ON_MAX} statuses or causes");
        return cx.bad_value(node, message, say!("write ranges such as `5xx`, or remove `on`"));
    }
    statuses.resize(RETRY_ON_MAX, None);
    causes.resize(RETRY_ON_MAX, None);
    let (statuses, causes) = (statuses.try_into().ok()?, causes.try_into().ok()?);
    Some(RetryOn::Only { statuses, causes })
}

/// A number of attempts, or None for `forever`.
fn read_attempts(cx: &mut Context<'_>, node: &Node, help: Said) -> Option<Option<u32>> {
    let text = cx.text(node, say!("a number of retries"))?;
    if text == "forever" {
        return Some(None);
    }
    match units::parse_count(&text).map(u16::try_from) {
        Ok(Ok(0)) => {
            cx.bad_value(node, say!("this never retries"), say!("remove the key, or write 1"))
        }
        Ok(Ok(times)) => Some(Some(times.into())),
        Ok(Err(_)) => cx.bad_value(node, say!("more than 65,535 retries"), say!("write `forever`")),
        _ => {
            let message = say!("`{}` is not a number of retries", shorten(&text));
            cx.refuse("bad-value", node.place, message, say!("not a number or `forever`"), help)
        }
    }
}
