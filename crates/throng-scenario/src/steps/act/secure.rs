//! The step `secure`: TLS that starts on an open connection (STARTTLS).

use std::sync::Arc;

use throng_program::{Scheme, Secure, Statement, StepKind};

use crate::ast;
use crate::read::Context;
use crate::step::failing::{read_loss, read_timeout};
use crate::step::rows::Rows;
use crate::step::via::Via;

pub(in crate::steps) fn read_secure(
    cx: &mut Context<'_>,
    fields: &ast::Secure<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let verb = "secure";
    if let Some(node) = fields.secure.node().filter(|node| !node.is_null()) {
        let message = say!("`{verb}` does not take a value");
        let help = say!("write `- secure`, and the TLS options in `tls` of the scenario");
        return cx.bad_value(node, message, help);
    }
    let scheme = via.reach.scheme.unwrap_or(Scheme::Tcp);
    if scheme != Scheme::Tcp {
        let message = say!("`{verb}` is not supported with `{}` targets", scheme.word());
        let place = fields.secure.place_or(fields.place);
        let error = cx.error("step-scheme", message, place);
        let (label, help) = match scheme.is_secure() {
            true => (
                say!("the connection uses TLS from the start"),
                say!("remove the step, or write the target as `tcp://…`"),
            ),
            false => (
                say!("only TCP connections can start TLS later"),
                say!("remove the step; for TLS from the start, use `https`, `wss` or `tls`"),
            ),
        };
        return cx.fail(error.label(label).help(help));
    }
    let timeout = read_timeout(cx, fields.timeout);
    let step = rows.row(cx, fields, StepKind::Secure, None);
    let failing = read_loss(cx, fields.on_error);
    Some(Statement::Secure(Arc::new(Secure {
        step: step?,
        link: via.link,
        timeout: timeout?,
        failing,
    })))
}
