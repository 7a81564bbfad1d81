//! Small steps: `set`, `log`, `next`, `leave`, `stop`, `disconnect`, `slow`, `secure`.

mod secure;

use std::sync::Arc;

use throng_base::Said;
use throng_base::units::{self, UnitError};
use throng_program::{CloseMode, Escape, Slow, Statement, Text};

pub(super) use secure::read_secure;

use crate::ast::{self, Field};
use crate::load::read_close_mode;
use crate::read::Context;
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::steps::rest::{Flow, How};
use crate::steps::{Coder, Section};
use crate::syntax::{Kind, Node, Place};
use crate::words::shorten;

/// `slow: {read: 1KiB/s, write: 100B/s}` or `slow: off`.
pub(super) fn read_slow(
    cx: &mut Context<'_>,
    fields: &ast::Slow<'_>,
    via: Via<'_>,
    _: &mut Rows,
) -> Option<Statement> {
    let link = via.link;
    const HELP: Said = say!("write `- slow: {{read: 1KiB/s, write: 100B/s}}` or `- slow: off`");
    let node = fields.slow.node()?;
    if matches!(&node.kind, Kind::Scalar { text, .. } if matches!(text.as_str(), "off" | "false")) {
        return Some(Statement::Slow { link, slow: Slow::default() });
    }
    if !matches!(&node.kind, Kind::Map(entries) if !entries.is_empty()) {
        return cx.wrong_type(node, say!("a read or write speed"), HELP);
    }
    let fields = ast::Speed::read(cx, node)?;
    let mut speed = |field: Field<'_>| {
        field.node().map_or(Some(None), |node| read_speed(cx, node, HELP).map(Some))
    };
    let (read, write) = (speed(fields.read), speed(fields.write));
    let slow = Slow { read: read?, write: write? };
    if slow.write == Some(0) {
        let node = fields.write.node()?;
        return cx.bad_value(
            node,
            say!("nothing can be sent at a write speed of zero"),
            say!("write `write: 100B/s`"),
        );
    }
    Some(Statement::Slow { link, slow })
}

/// `10MB/s`
pub(crate) fn parse_byte_rate(text: &str) -> Result<f64, UnitError> {
    const HELP: Said = say!("a byte rate is a size per unit of time: `10MB/s`");
    let Some((size, unit)) = text.split_once('/') else {
        return Err(UnitError { message: say!("the unit of time is missing"), help: HELP });
    };
    let size = units::parse_size(size)? as f64;
    Ok(size * units::parse_rate(&format!("1/{unit}"))?)
}

fn read_speed(cx: &mut Context<'_>, node: &Node, help: Said) -> Option<u64> {
    let text = cx.text(node, say!("a speed"))?;
    let reason = match parse_byte_rate(&text) {
        // A rate above zero is at least one byte.
        Ok(speed) if speed > 0.0 => return Some(speed.round().max(1.0) as u64),
        Ok(_) => return Some(0),
        Err(reason) => reason,
    };
    let message = say!("`{}` is not a speed", shorten(&text));
    cx.refuse("bad-value", node.place, message, reason.message, help)
}

pub(super) fn read_disconnect(
    cx: &mut Context<'_>,
    fields: &ast::Disconnect<'_>,
    via: Via<'_>,
    _: &mut Rows,
) -> Option<Statement> {
    let node = fields.disconnect.node().filter(|node| !node.is_null());
    let how = match node {
        Some(node) => read_close_mode(cx, node)?,
        None => CloseMode::Fin,
    };
    Some(Statement::Disconnect { link: via.link, how })
}

impl Coder<'_, '_> {
    pub(super) fn set(&mut self, cx: &mut Context<'_>, fields: &ast::Set<'_>) -> Flow {
        const HELP: Said = say!("write `- set: {{name: value}}`");
        let entries =
            fields.set.node().and_then(|node| cx.entries(node, say!("a map of values"), HELP));
        let Some(entries) = entries else { return Flow::UNKNOWN };
        if entries.is_empty() {
            cx.empty(fields.place, say!("this `set` step does not contain any values"), HELP);
            return Flow::UNKNOWN;
        }
        for (key, value) in entries {
            let slot = cx.slot(key);
            if let (Some(slot), Some(value)) = (slot, cx.value_text(value)) {
                cx.session.set_written(slot);
                self.block.push(Statement::Set { slot, value: Arc::new(value) });
            }
        }
        Flow { sets: true, ..Flow::NOTHING }
    }

    pub(super) fn log(&mut self, cx: &mut Context<'_>, fields: &ast::Log<'_>) -> Flow {
        let node = fields.log.node();
        match node.and_then(|node| cx.template(node, say!("a line of text"), Escape::None)) {
            Some(text) => self.push(Statement::Log(Arc::new(text))),
            None => Flow::UNKNOWN,
        }
    }

    /// `next`, `leave` and `stop`.
    pub(super) fn end(
        &mut self,
        cx: &mut Context<'_>,
        verb: &'static str,
        (field, place): (Field<'_>, Place),
    ) -> Flow {
        let node = field.node().filter(|node| !node.is_null());
        if let Some(node) = node.filter(|_| verb != "stop") {
            let message = say!("`{verb}` does not take a value");
            return cx.bad_value(node, message, say!("write `- {verb}`")).unwrap_or(Flow::UNKNOWN);
        }
        let wrong = match (verb, self.section) {
            ("next", Section::Before) => Some(say!("there is no iteration yet")),
            ("next", Section::After) => Some(say!("there are no more iterations")),
            ("leave", Section::After) => Some(say!("the user is already leaving")),
            _ => None,
        };
        if let Some(label) = wrong {
            let message = say!("`{verb}` is not allowed in `{}`", self.section.word());
            let help = say!("write `{verb}` in `steps`, or remove it");
            cx.report("wrong-place", place, message, label, help);
            return Flow::UNKNOWN;
        }
        let (statement, how) = match verb {
            "next" => (Statement::Next, How::Next),
            "leave" => (Statement::Leave, How::Leaves),
            _ => {
                let reason = match node {
                    Some(node) => cx.template(node, say!("a reason"), Escape::None),
                    None => Some(Text::literal(say!("a step stopped the run").english())),
                };
                let Some(reason) = reason else { return Flow::UNKNOWN };
                (Statement::Stop(Arc::new(reason)), How::Stops)
            }
        };
        self.block.push(statement);
        Flow::end(how, place)
    }
}
