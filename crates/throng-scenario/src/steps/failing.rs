//! What a user does when a step fails: `on_error` and `retry`, and how long a step may take.

use std::time::Duration;

use throng_base::units;
use throng_program::{Failing, OnError, Retry};

use crate::keys;
use crate::read::{Context, Fields, shorten};
use crate::syntax::{Kind, Node};

/// How long a step may take when neither it, its session nor `defaults` says so.
const TIMEOUT: Duration = Duration::from_secs(30);

/// `on_error: retry`, and what `retry` leaves out.
const RETRY: Retry =
    Retry { times: Some(3), low: Duration::from_secs(1), high: Duration::from_secs(30) };

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

/// What follows a failure of the step: its own `on_error` and `retry`, else those around it.
pub(crate) fn read_failing(cx: &mut Context<'_>, fields: &Fields<'_>) -> Failing {
    let mut failing = match fields.get("on_error") {
        Some(node) => read_on_error(cx, node).unwrap_or_default(),
        None => cx.defaults.failing,
    };
    if let Some(node) = fields.get("retry") {
        failing.retry = read_retry(cx, node, RETRY_HELP);
    }
    failing
}

/// The time limit of a step: its own, that of the session or of `defaults`, or 30 s.
pub(crate) fn read_timeout(cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<Duration> {
    match fields.get("timeout") {
        Some(node) => cx.time_limit(node),
        None => Some(cx.defaults.timeout.unwrap_or(TIMEOUT)),
    }
}

/// What a user does whose connection was lost.
pub(crate) fn read_reconnect(cx: &mut Context<'_>, node: &Node) -> Option<Retry> {
    match &node.kind {
        Kind::Scalar { text, .. } if matches!(text.as_str(), "never" | "0") => {
            Some(Retry { times: Some(0), ..RETRY })
        }
        _ => read_retry(cx, node, RECONNECT_HELP),
    }
}

/// What a user does whose connection is lost while it stays: the word of the step, else what the
/// steps around it say. That it connects again is no retry of the step.
pub(crate) fn read_loss(cx: &mut Context<'_>, fields: &Fields<'_>) -> Failing {
    let Some(node) = fields.get("on_error") else {
        return Failing { retry: None, ..cx.defaults.failing };
    };
    let words: Vec<(&str, Failing)> =
        ON_ERRORS.iter().filter(|(_, failing)| failing.retry.is_none()).copied().collect();
    cx.word(node, &words).unwrap_or_default()
}

const RETRY_HELP: &str = "write `retry: 3` or `retry: {times: 5, wait: 1s..30s}`";

const RECONNECT_HELP: &str =
    "write `reconnect: never`, `reconnect: 3` or `reconnect: {times: 5, wait: 1s..30s}`";

fn read_retry(cx: &mut Context<'_>, node: &Node, help: &str) -> Option<Retry> {
    if !matches!(node.kind, Kind::Map(_)) {
        let times = read_attempts(cx, node, help)?;
        return Some(Retry { times, ..RETRY });
    }
    let fields = Fields::read(cx, node, &keys::RETRY)?;
    let times = match fields.get("times") {
        Some(node) => read_attempts(cx, node, help),
        None => Some(RETRY.times),
    };
    let (low, high) = match fields.get("wait") {
        Some(node) => match cx.duration_range(node)? {
            (low, _) if low.is_zero() => {
                let message = "a wait of zero would hammer at a target that fails";
                return cx.bad_value(node, message, "write `wait: 1s..30s`");
            }
            range => range,
        },
        None => (RETRY.low, RETRY.high),
    };
    Some(Retry { times: times?, low, high })
}

/// A number of attempts, or None for `forever`.
fn read_attempts(cx: &mut Context<'_>, node: &Node, help: &str) -> Option<Option<u32>> {
    let text = cx.text(node, "how often it is tried again")?;
    if text == "forever" {
        return Some(None);
    }
    match units::parse_count(&text).map(u32::try_from) {
        Ok(Ok(0)) => cx.bad_value(node, "this is never tried again", "remove it, or write 1"),
        Ok(Ok(times)) => Some(Some(times)),
        _ => {
            let message = format!("`{}` is not how often something is tried", shorten(&text));
            let error = cx.error("bad-value", message, node.place);
            cx.fail(error.label("not a number or `forever`").help(help))
        }
    }
}
