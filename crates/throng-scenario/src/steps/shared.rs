//! Headers that a session gives to all its requests. One with a saved value, such as a token, is
//! sent from the first step on behind the one that saves it.

use crate::headers::{self, Headers};
use crate::read::Context;
use crate::syntax::Node;

/// Adds the headers of a session whose names are known to the defaults; gives the defaults outside.
pub(super) fn begin(cx: &mut Context<'_>, node: Option<&Node>) -> Headers {
    let read = |node| cx.in_time(|cx| headers::read_headers(cx, node));
    let own = node.map(read).unwrap_or_default();
    let outer = cx.defaults.headers.clone();
    cx.defaults.headers.retain(|(name, _)| !headers::has(&own, name));
    cx.defaults.headers.extend(own);
    outer
}
