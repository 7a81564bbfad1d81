//! `streams` of `connection`: concurrent iterations of a user over its HTTP/2 connection. No
//! iteration can use values of another one.

use throng_base::Said;
use throng_program::{ConnectionOptions, HttpVersion, Session, Target, statement};

use crate::native;
use crate::read::Context;
use crate::syntax::Node;
use crate::words::{listed, shorten};

/// A received frame searches its stream among all streams of the connection.
const STREAMS_MAX: u64 = 1_000;

pub(crate) fn read_streams(cx: &mut Context<'_>, node: &Node) -> Option<u16> {
    match cx.count(node)? {
        0 => {
            cx.bad_value(node, say!("at least one stream is required"), say!("write `streams: 32`"))
        }
        count if count > STREAMS_MAX => {
            let message = say!("a connection can have at most {STREAMS_MAX} streams");
            cx.bad_value(node, message, say!("use more users instead"))
        }
        count => Some(count as u16),
    }
}

/// Checks the requirements of several streams: HTTP/2 with persistent connections, and sessions of
/// requests that keep no state.
pub(crate) fn check_streams(
    cx: &mut Context<'_>,
    connection: Option<&Node>,
    options: &ConnectionOptions,
    targets: &[Target],
    sessions: &[Session],
) {
    let node = connection.and_then(|node| node.get("streams"));
    let Some(node) = node.filter(|_| options.streams > 1) else { return };
    let mut refuse = |message: Said, help: Said| {
        let label = say!("each user runs several iterations concurrently");
        cx.report("conflicting-keys", node.place, message, label, help);
    };
    let calls = |one: &Target| native::of_scheme(Some(one.scheme)).methods;
    if options.http_version != HttpVersion::Http2 && !targets.iter().all(calls) {
        let help = say!("add `http_version: \"2\"`, or remove `streams`");
        refuse(say!("`streams` requires HTTP/2"), help);
    }
    if !options.keep_alive {
        let message = say!("`streams` requires keep-alive connections");
        refuse(message, say!("remove either `keep_alive: false` or `streams`"));
    }
    let verbs = native::verbs_with("--streams");
    for session in sessions {
        let steps = &session.steps;
        let name = shorten(&session.name);
        if !steps.iter().all(|step| step.verb().is_some_and(|verb| verbs.contains(&verb))) {
            let message = say!("`{name}` has steps that cannot share an HTTP/2 connection");
            let verbs: Vec<String> = verbs.iter().map(|verb| format!("`{verb}`")).collect();
            let verbs = listed(verbs.iter().map(String::as_str));
            refuse(message, say!("keep only {verbs} in `steps`, or remove `streams`"));
        } else if steps.iter().any(|step| !step.saves().is_empty())
            || !statement::sources(steps).is_empty()
        {
            let message = say!("`{name}` saves values or uses data rows in an iteration");
            refuse(message, say!("remove `save` and data rows from `steps`, or remove `streams`"));
        }
    }
}
