//! Headers that a session gives to all its requests. One with a saved value, such as a token, is
//! sent as soon as the user has the value: in the first iteration behind the step that saves it.

use crate::message::headers::{self, Headers};
use crate::read::Context;
use crate::syntax::Node;

/// The headers of a session whose names are known, and those of the defaults that it does not set
/// itself.
pub(super) fn headers(cx: &mut Context<'_>, node: Option<&Node>) -> Headers {
    let read = |node| cx.in_time(|cx| headers::read_headers(cx, node));
    let own = node.map(read).unwrap_or_default();
    let outer = cx.scope.defaults.headers.iter();
    let mut all: Headers = outer.filter(|(name, _)| !headers::has(&own, name)).cloned().collect();
    all.extend(own);
    all
}
