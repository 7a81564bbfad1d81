//! Topics: what messages are published to and subscribed to, and what they are found by.

use throng_program::{Check, Extractor, Matcher, Segment, Text};
use throng_protocol::mqtt::topic::{self, TopicError, check_filter, check_name};

use crate::ast::Field;
use crate::message::checks::need_header;
use crate::read::Context;
use crate::read::template::Escape;
use crate::syntax::{Kind, Node};
use crate::words::shorten;

/// A topic that a message is published to.
pub(crate) fn read_topic(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    let text = cx.template(node, say!("a topic"), Escape::None)?;
    match check_name(&sample(&text)) {
        Ok(()) => Some(text),
        Err(error) => bad_topic(cx, node, error),
    }
}

/// A topic filter, as a subscription has it.
pub(crate) fn read_filter(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    let text = cx.template(node, say!("a topic filter"), Escape::None)?;
    match check_filter(&sample(&text)) {
        Ok(()) => Some(text),
        Err(error) => bad_topic(cx, node, error),
    }
}

/// The text for some user. A level with a value may be anything: it is not looked at.
fn sample(text: &Text) -> String {
    const VALUE: &str = "\u{1}";
    let mut all = String::new();
    for segment in &text.segments {
        match segment {
            Segment::Literal(bytes) => all.push_str(&String::from_utf8_lossy(bytes)),
            Segment::Value { .. } => all.push_str(VALUE),
            Segment::Given(_) => {}
        }
    }
    let level = |level: &str| match level.contains(VALUE) && !topic::has_wildcard(level) {
        true => VALUE.to_string(),
        false => level.to_string(),
    };
    all.split('/').map(level).collect::<Vec<_>>().join("/")
}

fn bad_topic<T>(cx: &mut Context<'_>, node: &Node, error: TopicError) -> Option<T> {
    let Kind::Scalar { text, .. } = &node.kind else { return None };
    let message = say!("`{}` is not a valid topic here", shorten(text));
    let told = cx.error("bad-topic", message, node.place).label(error.said());
    let told = told.note(say!("MQTT 5, section {}", error.section()));
    cx.fail(told.help(match error {
        TopicError::WildcardInName => {
            say!("write the full topic; only `subscribe` and `expect` accept wildcards")
        }
        TopicError::HashMisplaced => say!("write `rooms/#`, or `+` for a single level"),
        TopicError::PlusMisplaced => say!("write `rooms/+/news`"),
        TopicError::ShareIncomplete | TopicError::WildcardInGroup => {
            say!("write `$share/workers/jobs/#`")
        }
        TopicError::Empty | TopicError::TooLong | TopicError::NulCharacter => {
            say!("write a topic: `devices/7/state`")
        }
    }))
}

/// `topic` of a pattern: the filter that the topic of a message has.
pub(crate) fn read_topic_filter(
    cx: &mut Context<'_>,
    field: Field<'_>,
    checks: &mut Vec<Check>,
) -> Option<()> {
    let Some((key, node)) = field.entry() else { return Some(()) };
    need_header(cx, key)?;
    let filter = read_filter(cx, node)?;
    if is_shared(&filter) {
        let message = say!("the topic of a message never starts with `$share/`");
        return cx.bad_value(node, message, say!("write the filter without `$share/GROUP/`"));
    }
    checks.push(Check {
        extractor: Extractor::Header("topic".into()),
        matcher: Matcher::Topic(filter),
    });
    Some(())
}

/// Whether it is the filter of a shared subscription.
pub(crate) fn is_shared(filter: &Text) -> bool {
    matches!(filter.segments.first(), Some(Segment::Literal(text)) if text.starts_with(b"$share/"))
}
