//! Heartbeats: of a `stay`, of a session, and of the declared protocol; and how they misbehave on
//! purpose.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Said;
use throng_program::{Beat, BeatFault, Composed, Content, Heartbeat, Message, StepKind, Which};
use throng_protocol::framed::declaration;
use throng_protocol::framed::{Given, Protocol};

use crate::ast::{self, Field};
use crate::message::declared::Meant;
use crate::reach::Reach;
use crate::read::Context;
use crate::scope::Spoken;
use crate::step::content::read_content;
use crate::step::rows::Rows;
use crate::steps::conditions::{read_conditions, read_pattern};
use crate::steps::message::read_spoken;
use crate::syntax::{Kind, Node, Place};

/// When a heartbeat is lost, unless the next one is due earlier.
const LOST_AFTER: Duration = Duration::from_secs(10);

const HELP: Said = say!(
    "write `heartbeat: {{ping: true, every: 30s}}` or `heartbeat: {{text: hello, every: 30s}}`"
);

const DECLARED_HELP: Said = say!("write `heartbeat: {{send: ping, every: 30s, expect: pong}}`");

const CALL_HELP: Said = say!("write `heartbeat: {{send: {{text: hello}}, every: 30s}}`");

/// Overrides the heartbeat of the protocol.
pub(super) enum Setting {
    None,
    Own(Box<Heartbeat>),
}

/// Reads `heartbeat:`; missing keys are taken from the protocol.
pub(super) fn read_heartbeat(
    cx: &mut Context<'_>,
    node: &Node,
    reach: &Reach,
    rows: &mut Rows,
) -> Option<Setting> {
    if matches!(&node.kind, Kind::Scalar { text, .. } if text == "none") {
        return Some(Setting::None);
    }
    let help = help_of(reach);
    if !matches!(node.kind, Kind::Map(_)) {
        return cx.wrong_type(node, say!("a heartbeat"), help);
    }
    let fields = ast::Heartbeat::read(cx, node)?;
    let usual = reach.declared().and_then(|protocol| protocol.declaration().heartbeat.as_ref());
    let own = ast::first(ways(&fields)).is_some();
    let usual = usual.filter(|_| !own);
    let beat = match (usual, reach.declared()) {
        (Some(usual), Some(protocol)) => usual_beat(cx, protocol, usual, node.place),
        _ => read_beat(cx, &fields, reach),
    };
    let every = match (fields.every.node(), usual) {
        (Some(node), _) => cx.time_limit(node),
        (None, Some(usual)) => Some(usual.every),
        (None, None) => fields.need(cx, fields.every, help).and(None),
    };
    let lost_after = every.and_then(|every| read_lost_after(cx, &fields, usual, every));
    let answer = match (fields.expect.node(), usual, reach.declared()) {
        (None, Some(usual), Some(protocol)) => Some(usual_answer(protocol, usual)),
        _ => read_answer(cx, &fields, reach, lost_after == Some(None)),
    };
    let fault = every.and_then(|every| read_fault(cx, &fields, every));
    let step = rows.row(cx, &fields, StepKind::Heartbeat, None);
    Some(Setting::Own(Box::new(Heartbeat {
        step: step?,
        beat: beat?,
        every: every?,
        answer: answer?,
        lost_after: lost_after?,
        fault: fault?,
    })))
}

/// The heartbeat that the protocol declares.
pub(super) fn of_protocol(
    cx: &mut Context<'_>,
    protocol: &Arc<Protocol>,
    place: Place,
    rows: &mut Rows,
) -> Option<Heartbeat> {
    let usual = protocol.declaration().heartbeat.as_ref()?;
    let beat = usual_beat(cx, protocol, usual, place)?;
    let kind = StepKind::Heartbeat;
    Some(Heartbeat {
        step: rows.named(cx, kind, kind.word(), place)?,
        beat,
        every: usual.every,
        answer: usual_answer(protocol, usual),
        lost_after: usual_lost_after(usual),
        fault: BeatFault::default(),
    })
}

fn help_of(reach: &Reach) -> Said {
    match reach.spoken {
        Spoken::Plain | Spoken::Records(_) => HELP,
        Spoken::Call(_) => CALL_HELP,
        _ => DECLARED_HELP,
    }
}

fn usual_beat(
    cx: &mut Context<'_>,
    protocol: &Protocol,
    usual: &declaration::Heartbeat,
    place: Place,
) -> Option<Beat> {
    let name = &usual.send.value;
    let message = protocol.message(name)?;
    match protocol.prepare(message, &Given::Fields(Vec::new())) {
        Ok(template) => {
            let declared = Composed { template, leaves: Box::default() };
            let content = Content::Declared(Box::new(declared));
            Some(Beat::Message(Message { content, cut: None }))
        }
        Err(mistake) => {
            let label = say!("the protocol's heartbeat sends `{name}` without values");
            let help = say!("write `heartbeat: {{send: {{{name}: {{…}}}}}}`, or `none`");
            cx.refuse("bad-field", place, mistake.message, label, help)
        }
    }
}

fn usual_answer(protocol: &Protocol, usual: &declaration::Heartbeat) -> Which {
    let answer = usual.expect.as_ref().and_then(|name| protocol.message(&name.value));
    Which { messages: answer.into_iter().collect(), checks: Vec::new() }
}

fn usual_lost_after(usual: &declaration::Heartbeat) -> Option<Duration> {
    usual.expect.as_ref()?;
    Some(usual.lost_after.unwrap_or(LOST_AFTER).min(usual.every))
}

/// The keys that define what is sent.
fn ways<'n>(fields: &ast::Heartbeat<'n>) -> [Field<'n>; 7] {
    let [send, ping] = [fields.send, fields.ping];
    [send, ping, fields.text, fields.json, fields.hex, fields.binary, fields.file]
}

fn read_beat(cx: &mut Context<'_>, fields: &ast::Heartbeat<'_>, reach: &Reach) -> Option<Beat> {
    let Some((key, node)) = ast::one_of(cx, &ways(fields)) else {
        // The messages of the protocol are unknown; that is reported elsewhere.
        let is_unknown = matches!(reach.spoken, Spoken::Unknown);
        if !is_unknown && !ways(fields).into_iter().any(Field::is_meant) {
            let message = say!("the heartbeat sends nothing");
            cx.report("missing-key", fields.place, message, say!("no message"), help_of(reach));
        }
        return None;
    };
    match key.text.as_str() {
        "send" => return read_spoken(cx, node, true).map(|spoken| Beat::Message(spoken.message)),
        "ping" => {}
        word if reach.called().is_some() => {
            let message = reach.has_no(word);
            let label = say!("the message type defines the fields");
            return cx.refuse("step-scheme", key.place, message, label, CALL_HELP);
        }
        _ => return read_content(cx, key, node).map(Beat::Message),
    }
    if !cx.bool(node)? {
        return cx.bad_value(node, say!("`ping` must be `true` or omitted"), HELP);
    }
    if let Some(scheme) = reach.scheme.filter(|_| !reach.native().pings) {
        let message = say!("`ping` is not supported with `{}` targets", scheme.word());
        let label = say!("supported only with WebSocket");
        let help = match reach.called() {
            Some(_) => CALL_HELP,
            None => say!("write a message: `heartbeat: {{text: hello, every: 30s}}`"),
        };
        return cx.refuse("step-scheme", key.place, message, label, help);
    }
    Some(Beat::Ping)
}

/// None if no reply is expected.
fn read_lost_after(
    cx: &mut Context<'_>,
    fields: &ast::Heartbeat<'_>,
    usual: Option<&declaration::Heartbeat>,
    every: Duration,
) -> Option<Option<Duration>> {
    let Some(node) = fields.lost_after.node() else {
        return Some(match usual {
            Some(usual) if !fields.expect.is_there() => {
                usual_lost_after(usual).map(|lost_after| lost_after.min(every))
            }
            _ => Some(every.min(LOST_AFTER)),
        });
    };
    if matches!(&node.kind, Kind::Scalar { text, .. } if text == "never") {
        return Some(None);
    }
    let lost_after = cx.time_limit(node)?;
    if lost_after > every {
        let message = say!("the next heartbeat is due before this one is considered lost");
        return cx.bad_value(
            node,
            message,
            say!("write a duration that is not longer than `every`"),
        );
    }
    Some(Some(lost_after))
}

fn read_answer(
    cx: &mut Context<'_>,
    fields: &ast::Heartbeat<'_>,
    reach: &Reach,
    is_unanswered: bool,
) -> Option<Which> {
    let Some(node) = fields.expect.node() else { return Some(Which::default()) };
    let place = fields.expect.place_or(node.place);
    let other = match is_unanswered {
        true => Some((
            say!("`lost_after: never` and `expect` cannot be used together"),
            say!("no reply is expected"),
        )),
        false if fields.ping.is_there() => Some((
            say!("`ping` and `expect` cannot be used together"),
            say!("the reply to a ping is always a pong"),
        )),
        false => None,
    };
    if let Some((message, label)) = other {
        return cx.refuse("conflicting-keys", place, message, label, say!("keep the one you need"));
    }
    match read_pattern(cx, reach, node) {
        Some(meant) => meant.map(|Meant { which, .. }| which),
        None => read_conditions(cx, node).map(|conditions| conditions.which),
    }
}

fn read_fault(
    cx: &mut Context<'_>,
    fields: &ast::Heartbeat<'_>,
    every: Duration,
) -> Option<BeatFault> {
    let mut fault = BeatFault::default();
    if let Some(node) = fields.stop_after.node() {
        fault.stop_after = match cx.count(node).map(u16::try_from)? {
            Ok(most) => Some(most),
            Err(_) => {
                return cx.bad_value(
                    node,
                    say!("the number is too large"),
                    say!("write at most 65535"),
                );
            }
        };
    }
    if let Some(node) = fields.late.node() {
        fault.late = cx.time_limit(node)?;
        if fault.late >= every {
            let message = say!("the delay must be shorter than `every`");
            return cx.bad_value(
                node,
                message,
                say!("write a duration that is shorter than `every`"),
            );
        }
    }
    if let Some(node) = fields.times.node() {
        fault.times = match cx.count(node)? {
            0 => {
                return cx.bad_value(
                    node,
                    say!("this sends no heartbeats"),
                    say!("write `heartbeat: none`"),
                );
            }
            times => match u8::try_from(times) {
                Ok(times) => times,
                Err(_) => {
                    return cx.bad_value(
                        node,
                        say!("this sends too many heartbeats at the same time"),
                        say!("write at most 255"),
                    );
                }
            },
        };
    }
    Some(fault)
}
