//! Expected closes of a connection by the target: `expect: {close: 4001}`, and `ends` of a `stay`.

use std::sync::Arc;

use throng_program::{Ends, Statement, Stay, StepKind};

use crate::ast;
use crate::reach::Reach;
use crate::read::Context;
use crate::step::failing::{read_failing, read_timeout};
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::syntax::{Kind, Node};
use crate::words::shorten;

/// Expected closes: WebSocket codes, or `any`.
pub(super) fn read_ends(cx: &mut Context<'_>, node: &Node, reach: &Reach) -> Option<Ends> {
    let nodes = match &node.kind {
        Kind::Scalar { text, .. } if text == "any" => return Some(Ends::Any),
        Kind::List(items) if !items.is_empty() => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if !reach.opens_with("protocols") {
        let message = say!("only a WebSocket has a close code");
        return cx.bad_value(node, message, say!("write `any`"));
    }
    let codes = nodes.iter().map(|node| {
        let text = cx.text(node, say!("a close code"))?;
        match text.trim().parse() {
            Ok(code @ 1000..=4999) => Some(code),
            _ => {
                let message = say!("`{}` is not a valid close code", shorten(&text));
                cx.bad_value(node, message, say!("write a code from 1000 to 4999, or `any`"))
            }
        }
    });
    let codes: Vec<Option<u16>> = codes.collect();
    codes.into_iter().collect::<Option<Box<[u16]>>>().map(Ends::Codes)
}

/// `expect: {close: 4001}`: the step waits for the end of its connection.
pub(super) fn read_close(
    cx: &mut Context<'_>,
    fields: &ast::Expect<'_>,
    close: &Node,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    for field in [fields.check, *fields.save, fields.retry] {
        if let Some(key) = field.key() {
            let message = say!("`{}` does not apply to `close`", key.text);
            let label = say!("a close frame has no message content");
            cx.report("conflicting-keys", key.place, message, label, say!("remove it"));
        }
    }
    let ends = read_ends(cx, close, via.reach);
    let time = read_timeout(cx, fields.timeout);
    let step = rows.row(cx, fields, StepKind::Expect, Some("expect close"))?;
    let failing = read_failing(cx, fields.on_error, fields.retry);
    Some(Statement::Stay(Arc::new(Stay {
        step,
        link: via.link,
        time: Some(time?),
        ends: Some(ends?),
        awaits_end: true,
        heartbeat: None,
        handlers: Vec::new(),
        every: Vec::new(),
        failing,
    })))
}
