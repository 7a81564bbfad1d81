//! The verb `grpc`, and the start of calls.

use std::sync::Arc;

use throng_program::{
    Call, Composed, Connect, ConnectOptions, Opened, Segment, Statement, StepKind, Text,
};
use throng_protocol::grpc::{Encoding, metadata};
use throng_protocol::protobuf::{CallKind, Template};

use super::status::STATUS_NAMES;
use crate::ast::{self, Field};
use crate::message::answer::Answer;
use crate::message::checks::read_checks;
use crate::message::fields::read_proto;
use crate::message::save::read_saves;
use crate::reach::Reach;
use crate::read::Context;
use crate::read::template::Escape;
use crate::scope::{Called, Descriptors};
use crate::step::failing::{read_failing, read_timeout};
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::synonyms::near_label;
use crate::syntax::{Key, Node};
use crate::words::shorten;

/// Maximum number of messages that a call sends at its start.
const MESSAGES_MAX: usize = 1_000;

pub(crate) fn read_call(
    cx: &mut Context<'_>,
    fields: &ast::Grpc<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let node = fields.grpc.node()?;
    let name = cx.text(node, say!("the method to call"));
    let called = name.as_ref().and_then(|name| find_method(cx, node, name));
    let opened = called.as_ref().and_then(|called| {
        let messages = read_messages(cx, fields, called);
        read_opened(cx, (fields.metadata, fields.compress), called, messages)
    });
    let timeout = read_timeout(cx, fields.timeout);
    let (mut checks, mut saves) = (Vec::new(), Vec::new());
    // The replies of an unknown method are unknown.
    if let Some(kinds) = called.as_ref().map(Called::replies) {
        let answer = Answer::Call(&kinds, &STATUS_NAMES);
        checks = read_checks(cx, fields.check, answer);
        saves = read_saves(cx, *fields.save, answer);
    }
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let step = rows.row(cx, fields, StepKind::Grpc, called.as_ref().map(Called::name))?;
    let (opened, timeout) = (opened?, timeout?);
    rows.speak(step, via.link, None);
    let link = via.link;
    Some(Statement::Call(Arc::new(Call { step, link, opened, timeout, checks, saves, failing })))
}

/// The method with this name.
pub(crate) fn find_method(cx: &mut Context<'_>, node: &Node, name: &str) -> Option<Called> {
    let schema = match &cx.descriptors {
        Descriptors::Known(schema) => schema.clone(),
        // The error was reported where the files are named.
        Descriptors::Unknown => return None,
        Descriptors::None => {
            let message = say!("the scenario lists no `.proto` files");
            let label = say!("its message types are not known");
            let help = say!(
                "write `proto: service.proto` next to `target`; to get the file from the target, \
                 run `throng protocol --reflect grpc://HOST:PORT -o service.desc`"
            );
            return cx.refuse("missing-key", node.place, message, label, help);
        }
    };
    match schema.find_method(name) {
        Ok(id) => Some(Called { schema, id }),
        Err(unknown) => {
            let label = near_label(unknown.near, say!("unknown"));
            cx.refuse("unknown-method", node.place, unknown.message, label, unknown.help)
        }
    }
}

/// The call that a `connect` opens.
pub(super) fn open(
    cx: &mut Context<'_>,
    fields: &ast::Connect<'_>,
    reach: &Reach,
    connect: &mut Connect,
) -> Option<()> {
    if let Some(called) = reach.called() {
        let call = read_open_call(cx, fields, called)?;
        connect.options = Some(Box::new(ConnectOptions::Call(call)));
    }
    Some(())
}

/// The start of a call that stays open. Of its messages, only the first is known.
fn read_open_call(
    cx: &mut Context<'_>,
    fields: &ast::Connect<'_>,
    called: &Called,
) -> Option<Opened> {
    let method = called.method();
    let node = fields.message.node();
    let place = fields.message.place_or(fields.place);
    let messages = match node {
        None if method.kind.streams_requests() => Some(Vec::new()),
        node => read_proto(cx, &called.schema, method.input, (node, place)).map(|one| vec![one]),
    };
    read_opened(cx, (fields.metadata, fields.compress), called, messages)
}

/// A message sent on an open call.
pub(crate) fn read_message_of_call(
    cx: &mut Context<'_>,
    node: &Node,
    called: &Called,
) -> Option<Composed<Template>> {
    let method = called.method();
    if !method.kind.streams_requests() {
        let message = say!("`{}` takes one message", method.name);
        let label = say!("`connect` has already sent it");
        let help =
            say!("set the message in the `connect` step: `connect: …` with `message: {{…}}`");
        return cx.refuse("one-message", node.place, message, label, help);
    }
    read_proto(cx, &called.schema, method.input, (Some(node), node.place))
}

/// The start of a call: its metadata and its first messages.
fn read_opened(
    cx: &mut Context<'_>,
    (metadata, compress): (Field<'_>, Field<'_>),
    called: &Called,
    messages: Option<Vec<Composed<Template>>>,
) -> Option<Opened> {
    let metadata = metadata.node().map_or(Some(Vec::new()), |node| read_metadata(cx, node));
    let encoding = match compress.node() {
        Some(node) => cx.word(node, &[("gzip", Encoding::Gzip), ("none", Encoding::Identity)]),
        None => Some(Encoding::Identity),
    };
    Some(Opened {
        method: called.id,
        metadata: metadata?,
        encoding: encoding?,
        messages: messages?,
    })
}

/// `message`, or `messages` if the method accepts several; without either, an empty message is
/// sent.
fn read_messages(
    cx: &mut Context<'_>,
    fields: &ast::Grpc<'_>,
    called: &Called,
) -> Option<Vec<Composed<Template>>> {
    let input = called.method().input;
    let streams = called.method().kind.streams_requests();
    let one = |cx: &mut Context<'_>, node: Option<&Node>, place| {
        read_proto(cx, &called.schema, input, (node, place))
    };
    let Some((key, node)) = ast::one_of(cx, &[fields.message, fields.messages]) else {
        if streams {
            let help = say!("write `messages: [{{…}}, {{…}}]`; `[]` sends none");
            fields.need(cx, fields.messages, help)?;
        }
        return one(cx, None, fields.place).map(|message| vec![message]);
    };
    if fields.message.is(key) {
        return one(cx, Some(node), key.place).map(|message| vec![message]);
    }
    if !streams {
        return takes_one(cx, called, key);
    }
    let items =
        cx.items(node, say!("a list of messages"), say!("write `messages: [{{…}}, {{…}}]`"))?;
    if let Some(item) = items.get(MESSAGES_MAX) {
        let message = say!("a call sends more than {MESSAGES_MAX} messages");
        let help = say!("open the call with `connect`, and send the messages in a loop");
        return cx.refuse("too-many", item.place, message, say!("this exceeds the limit"), help);
    }
    let read: Vec<Option<Composed<Template>>> =
        items.iter().map(|item| one(cx, Some(item), item.place)).collect();
    read.into_iter().collect()
}

/// Reports that a method accepts only one message.
fn takes_one<T>(cx: &mut Context<'_>, called: &Called, key: &Key) -> Option<T> {
    let method = called.method();
    let message = say!("`{}` takes one message", method.name);
    let label = match method.kind {
        CallKind::ServerStreaming => say!("only its replies are streamed"),
        _ => say!("neither its requests nor its replies are streamed"),
    };
    let help = say!("write `message: {{…}}`; for several messages, write a `grpc` step for each");
    cx.refuse("one-message", key.place, message, label, help)
}

/// Metadata with lowercase names; a value may be a list, for repeated names.
fn read_metadata(cx: &mut Context<'_>, node: &Node) -> Option<Vec<(String, Text)>> {
    let help = say!("write `metadata: {{authorization: \"Bearer ${{saved.token}}\"}}`");
    let mut all = Vec::new();
    let mut good = true;
    for (key, value) in cx.entries(node, say!("a map of metadata"), help)? {
        if let Err(mistake) = metadata::check_name(&key.text) {
            let label = say!("not a metadata name");
            cx.report("bad-header", key.place, mistake.message, label, mistake.help);
            good = false;
            continue;
        }
        let name = key.text.to_ascii_lowercase();
        let values = value.one_or_more();
        for value in values {
            match metadata_value(cx, &name, value) {
                Some(text) => all.push((name.clone(), text)),
                None => good = false,
            }
        }
    }
    good.then_some(all)
}

/// Text with `\x` escapes is bytes, one for each character, unless it contains a character above
/// `\xff`.
fn as_bytes(segment: &mut Segment) {
    let Segment::Literal(bytes) = segment else { return };
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let chars = text.chars().map(|c| u8::try_from(u32::from(c)).ok());
    if let Some(latin) = chars.collect::<Option<Vec<u8>>>() {
        *bytes = latin.into();
    }
}

fn metadata_value(cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Text> {
    let is_binary = metadata::is_binary(name);
    let escape = if is_binary { Escape::None } else { Escape::Header };
    let mut text = cx.template(node, say!("a metadata value"), escape)?;
    if is_binary && cx.written(node.place).contains("\\x") {
        text.segments.iter_mut().for_each(as_bytes);
    }
    let literals = text.segments.iter().filter_map(|segment| match segment {
        Segment::Literal(bytes) => Some(&**bytes),
        Segment::Value { .. } | Segment::Given(_) => None,
    });
    let wrong = literals
        .map(|bytes| metadata::write_value(name, bytes, &mut Vec::new()))
        .find_map(Result::err);
    match wrong {
        None => Some(text),
        Some(mistake) => {
            let label = say!("not a value of `{}`", shorten(name));
            cx.refuse("bad-header", node.place, mistake.message, label, mistake.help)
        }
    }
}
