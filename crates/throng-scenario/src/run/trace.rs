//! Requests with trace headers: `trace: {header: traceparent, share: 1%}`.

use throng_base::units::{self, UnitError};
use throng_program::Trace;

use crate::ast;
use crate::message::headers::is_token;
use crate::read::Context;
use crate::syntax::Node;
use crate::words::shorten;

/// The header of W3C Trace Context.
const HEADER: &str = "traceparent";

pub(crate) fn read_trace(cx: &mut Context<'_>, node: &Node) -> Option<Trace> {
    let fields = ast::Trace::read(cx, node)?;
    let header =
        fields.header.node().map_or(Some(HEADER.to_string()), |node| read_header(cx, node));
    let share =
        fields.share.node().map_or(Some(1.0), |node| cx.unit(node, say!("a share"), read_share));
    Some(Trace { header: header?, share: share? })
}

fn read_share(text: &str) -> Result<f64, UnitError> {
    let share = units::parse_share(text)?;
    let help = say!("write a share above `0%` and up to `100%`, such as `1%`");
    match share {
        0.0 => Err(UnitError { message: say!("no request would carry the header"), help }),
        _ if share > 1.0 => Err(UnitError { message: say!("more than 100%"), help }),
        _ => Ok(share),
    }
}

fn read_header(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    let name = cx.text(node, say!("the name of a header"))?;
    if !is_token(&name) {
        let message = say!("`{}` is not a valid header name", shorten(&name));
        let help = say!("write `trace: {{header: traceparent, share: 1%}}`");
        return cx.refuse("bad-header", node.place, message, say!("not a header name"), help);
    }
    Some(name)
}
