//! The identity of users, and the verbs `publish`, `subscribe` and `unsubscribe`. Received messages
//! are read as on other connections.

use std::sync::Arc;

use throng_base::Said;
use throng_program::mqtt::{Client, Order, Property, Publish, Subscribe, Unsubscribe, Will};
use throng_program::{
    Connect, ConnectOptions, Content, Message, Request, Send, Statement, StepKind, Text, Until,
    Which,
};
use throng_protocol::mqtt::{
    PacketType, PropertyId, Qos, Refusal, SubscribeOptions, ValueKind, Version, Wishes,
};

use super::topic::{is_shared, read_filter, read_topic};
use crate::ast::{self, Field, Map as _};
use crate::reach::Reach;
use crate::read::Context;
use crate::read::template::Escape;
use crate::step::content::read_content;
use crate::step::failing::{read_failing, read_timeout};
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::syntax::{Kind, Node};
use crate::words::shorten;

/// Default keep-alive interval.
const KEEP_ALIVE_S: u16 = 60;

/// The session never expires (MQTT 5, 3.1.2.11.2).
const NEVER_S: u64 = u32::MAX as u64;

const TWO_BYTES_MAX: u64 = u16::MAX as u64;

/// The largest variable byte integer (MQTT 5, 1.5.5).
const VARINT_MAX: u64 = 268_435_455;

/// The identity of a user on an MQTT connection.
pub(super) fn open(
    cx: &mut Context<'_>,
    fields: &ast::Connect<'_>,
    _: &Reach,
    connect: &mut Connect,
) -> Option<()> {
    if cx.scope.spoken.is("mqtt") {
        let user = read_user(cx, fields.mqtt)?;
        connect.options = Some(Box::new(ConnectOptions::Mqtt(user)));
    }
    Some(())
}

fn read_user(cx: &mut Context<'_>, field: Field<'_>) -> Option<Client> {
    let mut client = Client {
        version: Version::V5,
        client_id: Text::default(),
        clean_start: true,
        keep_alive_s: KEEP_ALIVE_S,
        user: None,
        password: None,
        will: None,
        properties: Vec::new(),
        wishes: Wishes::default(),
    };
    let Some(node) = field.node().filter(|node| !node.is_null()) else { return Some(client) };
    let fields = ast::Mqtt::read(cx, node)?;
    if let Some(node) = fields.version.node() {
        let versions = [("5", Version::V5), ("3.1.1", Version::V3), ("5.0", Version::V5)];
        client.version = cx.word(node, &versions)?;
    }
    let mut text = |field: Field<'_>, what| {
        field.node().map_or(Some(None), |node| cx.template(node, what, Escape::None).map(Some))
    };
    client.client_id = text(fields.client_id, say!("a client ID"))?.unwrap_or_default();
    client.user = text(fields.user, say!("a user name"))?;
    client.password = text(fields.password, say!("a password"))?;
    if let Some(node) = fields.clean_start.node() {
        client.clean_start = cx.bool(node)?;
    }
    if let Some(node) = fields.keep_alive.node() {
        client.keep_alive_s = match is_word(node, "none") {
            true => 0,
            false => read_seconds(cx, node, TWO_BYTES_MAX)? as u16,
        };
    }
    if let Some(node) = fields.inflight_max.node() {
        client.wishes.inflight_max = read_number(cx, node, (1, TWO_BYTES_MAX))? as u16;
    }
    if let Some(node) = fields.topic_aliases.node() {
        client.wishes.aliases_max = read_number(cx, node, (0, TWO_BYTES_MAX))? as u16;
    }
    client.properties = read_session(cx, &fields)?;
    if let Some(node) = fields.will.node() {
        client.will = Some(read_will(cx, node, client.version)?);
    }
    only_in_5(
        cx,
        client.version,
        &[
            fields.session_expiry,
            fields.receive_maximum,
            fields.packet_maximum,
            fields.topic_aliases,
            fields.properties,
        ],
    )?;
    check_client_id(cx, &fields, &client)?;
    Some(client)
}

/// The properties of CONNECT.
fn read_session(cx: &mut Context<'_>, fields: &ast::Mqtt<'_>) -> Option<Vec<Property>> {
    let mut all = read_properties(cx, fields.properties, PacketType::Connect)?;
    if let Some(node) = fields.session_expiry.node() {
        let expiry_s = match is_word(node, "never") {
            true => NEVER_S,
            false => read_seconds(cx, node, NEVER_S - 1)?,
        };
        all.push(number(PropertyId::SessionExpiryInterval, expiry_s));
    }
    if let Some(node) = fields.receive_maximum.node() {
        let most = read_number(cx, node, (1, TWO_BYTES_MAX))?;
        all.push(number(PropertyId::ReceiveMaximum, most));
    }
    if let Some(node) = fields.packet_maximum.node() {
        let bytes = cx.size(node)?.min(u64::from(u32::MAX));
        all.push(number(PropertyId::MaximumPacketSize, bytes));
    }
    if let Some(node) = fields.topic_aliases.node() {
        let most = read_number(cx, node, (0, TWO_BYTES_MAX))?;
        all.push(number(PropertyId::TopicAliasMaximum, most));
    }
    Some(all)
}

fn read_will(cx: &mut Context<'_>, node: &Node, version: Version) -> Option<Will> {
    let fields = ast::Will::read(cx, node)?;
    let help = say!("write `will: {{topic: devices/lost, text: \"${{user.id}}\"}}`");
    let topic = fields.need(cx, fields.topic, help).and_then(|node| read_topic(cx, node));
    let payload = read_payload(cx, &[fields.text, fields.json, fields.hex, fields.file]);
    let (qos, retain) = (read_qos(cx, fields.qos), read_flag(cx, fields.retain));
    let mut properties = read_properties(cx, fields.properties, PacketType::Publish)?;
    if let Some(node) = fields.delay.node() {
        properties.push(number(PropertyId::WillDelayInterval, read_seconds(cx, node, NEVER_S)?));
    }
    only_in_5(cx, version, &[fields.delay, fields.properties])?;
    let (topic, payload, qos, retain) = (topic?, payload?, qos?, retain?);
    Some(Will { message: Publish { topic, payload, qos, retain, properties } })
}

/// A resumed session is identified by its client ID.
fn check_client_id(cx: &mut Context<'_>, fields: &ast::Mqtt<'_>, client: &Client) -> Option<()> {
    if client.clean_start || !client.client_id.segments.is_empty() {
        return Some(());
    }
    let label = say!("the broker identifies a session by its client ID");
    let help = say!("add `client_id: \"device-${{user.id}}\"`, different for each user");
    let place = fields.clean_start.place_or(fields.place);
    cx.refuse("missing-key", place, say!("`clean_start: false` requires a client ID"), label, help)
}

/// Warns about users that disconnect each other, because the broker keeps one connection per client
/// ID.
pub(super) fn warn_same_id(cx: &mut Context<'_>, connects: &[&ast::Connect<'_>]) {
    for mqtt in connects.iter().filter_map(|connect| connect.mqtt.node()) {
        let Some(node) = mqtt.get("client_id") else { continue };
        let Kind::Scalar { text, .. } = &node.kind else { continue };
        if !text.is_empty() && !text.contains("${") && !node.is_null() {
            let message = say!("all users have the same client ID");
            let label = say!("the broker closes all connections but the last");
            let help = say!("write `client_id: \"device-${{user.id}}\"`");
            cx.warn("same-client-id", node.place, message, label, help);
        }
    }
}

/// Rejects keys that MQTT 3.1.1 does not support.
fn only_in_5(cx: &mut Context<'_>, version: Version, fields: &[Field<'_>]) -> Option<()> {
    let key = fields.iter().filter(|_| version == Version::V3).find_map(|field| field.key());
    let Some(key) = key else { return Some(()) };
    let label = say!("new in MQTT 5");
    let help = say!("remove it, or write `version: 5`");
    cx.refuse("conflicting-keys", key.place, say!("MQTT 3.1.1 has no `{}`", key.text), label, help)
}

pub(crate) fn read_publish(
    cx: &mut Context<'_>,
    fields: &ast::Publish<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let node = fields.publish.node()?;
    let topic = read_topic(cx, node);
    let ways = [fields.text, fields.json, fields.hex, fields.file, fields.garbage];
    let payload = read_payload(cx, &ways);
    let (qos, retain) = (read_qos(cx, fields.qos), read_flag(cx, fields.retain));
    let properties = read_properties(cx, fields.properties, PacketType::Publish);
    let timeout = read_timeout(cx, fields.timeout);
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let step = rows.row(cx, fields, StepKind::Publish, Some(&row_of("publish", node)))?;
    rows.speak(step, via.link, None);
    let (topic, payload, qos, retain) = (topic?, payload?, qos?, retain?);
    let order = Order::Publish(Publish { topic, payload, qos, retain, properties: properties? });
    let request = Request { failing, ..request(step, via, order, timeout?) };
    if qos > Qos::AtMostOnce {
        return Some(Statement::Request(Arc::new(request)));
    }
    // QoS 0 is not acknowledged.
    let Request { step, link, message, timeout, failing, .. } = request;
    Some(Statement::Send(Arc::new(Send { step, link, message, timeout, failing })))
}

pub(crate) fn read_subscribe(
    cx: &mut Context<'_>,
    fields: &ast::Subscribe<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let node = fields.subscribe.node()?;
    let options = read_options(
        cx,
        SubscribeOptions::default(),
        (fields.qos, fields.no_local, fields.retain_as_published, fields.retained),
    );
    let filters = options.and_then(|options| read_subscriptions(cx, node, options));
    let properties = read_properties(cx, fields.properties, PacketType::Subscribe);
    let timeout = read_timeout(cx, fields.timeout);
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let step = rows.row(cx, fields, StepKind::Subscribe, Some(&row_of("subscribe", node)))?;
    let order = Order::Subscribe(Subscribe { filters: filters?, properties: properties? });
    let request = Request { failing, ..request(step, via, order, timeout?) };
    Some(Statement::Request(Arc::new(request)))
}

fn read_subscriptions(
    cx: &mut Context<'_>,
    node: &Node,
    common: SubscribeOptions,
) -> Option<Vec<(Text, SubscribeOptions)>> {
    let read: Vec<Option<_>> =
        listed(cx, node)?.iter().map(|node| read_subscription(cx, node, common)).collect();
    read.into_iter().collect()
}

fn read_subscription(
    cx: &mut Context<'_>,
    node: &Node,
    common: SubscribeOptions,
) -> Option<(Text, SubscribeOptions)> {
    let (topic, options) = match &node.kind {
        Kind::Map(_) => {
            let fields = ast::Subscription::read(cx, node)?;
            let topic = fields.need(cx, fields.topic, SUBSCRIBE_HELP)?;
            let own = (fields.qos, fields.no_local, fields.retain_as_published, fields.retained);
            (topic, read_options(cx, common, own)?)
        }
        _ => (node, common),
    };
    let filter = read_filter(cx, topic)?;
    if options.no_local && is_shared(&filter) {
        let help = say!("remove `no_local`, or the group");
        return cx.bad_value(topic, Refusal::NoLocalShared.said(), help);
    }
    Some((filter, options))
}

/// QoS, `no_local`, `retain_as_published` and `retained`; the defaults are in `usual`.
fn read_options(
    cx: &mut Context<'_>,
    usual: SubscribeOptions,
    (qos, no_local, as_published, retained): (Field<'_>, Field<'_>, Field<'_>, Field<'_>),
) -> Option<SubscribeOptions> {
    let mut options = usual;
    if qos.is_there() {
        options.qos = read_qos(cx, qos)?;
    }
    if no_local.is_there() {
        options.no_local = read_flag(cx, no_local)?;
    }
    if as_published.is_there() {
        options.retain_as_published = read_flag(cx, as_published)?;
    }
    if let Some(node) = retained.node() {
        options.retain_handling = cx.word(node, &[("always", 0), ("new", 1), ("never", 2)])?;
    }
    Some(options)
}

pub(crate) fn read_unsubscribe(
    cx: &mut Context<'_>,
    fields: &ast::Unsubscribe<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let node = fields.unsubscribe.node()?;
    let filters: Option<Vec<Text>> =
        listed(cx, node).and_then(|nodes| nodes.iter().map(|node| read_filter(cx, node)).collect());
    let timeout = read_timeout(cx, fields.timeout);
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let step = rows.row(cx, fields, StepKind::Unsubscribe, Some(&row_of("unsubscribe", node)))?;
    let order = Order::Unsubscribe(Unsubscribe { filters: filters?, properties: Vec::new() });
    let request = Request { failing, ..request(step, via, order, timeout?) };
    Some(Statement::Request(Arc::new(request)))
}

/// A request for an order; its reason code determines its success.
fn request(
    step: throng_base::StepId,
    via: Via<'_>,
    order: Order,
    timeout: std::time::Duration,
) -> Request {
    Request {
        step,
        link: via.link,
        message: Message { content: Content::Mqtt(Box::new(order)), cut: None },
        answer: Which::default(),
        until: Until::Any,
        checks: Vec::new(),
        saves: Vec::new(),
        timeout,
        failing: Default::default(),
    }
}

/// The default name of the row: the verb and its value.
fn row_of(verb: &str, node: &Node) -> String {
    let text = |node: &Node| {
        let text = node.text().or_else(|| node.get("topic")?.text());
        text.unwrap_or("").to_string()
    };
    match &node.kind {
        Kind::List(items) => {
            let topics: Vec<String> = items.iter().map(text).collect();
            format!("{verb} {}", topics.join(", "))
        }
        _ => format!("{verb} {}", text(node)),
    }
}

const SUBSCRIBE_HELP: Said =
    say!("write `subscribe: rooms/+/news`, or a list: `[rooms/1, {{topic: jobs/#, qos: 2}}]`");

/// A single topic filter, or several.
fn listed<'n>(cx: &mut Context<'_>, node: &'n Node) -> Option<&'n [Node]> {
    cx.some_items(node, say!("there are no topic filters"), SUBSCRIBE_HELP)
}

/// The message from one of these keys; empty without any.
fn read_payload(cx: &mut Context<'_>, ways: &[Field<'_>]) -> Option<Text> {
    let Some((key, node)) = ast::one_of(cx, ways) else { return Some(Text::default()) };
    match read_content(cx, key, node)?.content {
        Content::Plain { content, .. } => Some(content),
        _ => None,
    }
}

fn read_qos(cx: &mut Context<'_>, field: Field<'_>) -> Option<Qos> {
    let Some(node) = field.node() else { return Some(Qos::AtMostOnce) };
    let level = cx.text(node, say!("a quality of service"))?;
    match level.parse().ok().and_then(Qos::new) {
        Some(qos) => Some(qos),
        None => {
            let message = say!("MQTT has no quality of service `{}`", shorten(&level));
            cx.bad_value(node, message, say!("write `qos: 0`, `1` or `2`"))
        }
    }
}

fn read_flag(cx: &mut Context<'_>, field: Field<'_>) -> Option<bool> {
    field.node().map_or(Some(false), |node| cx.bool(node))
}

/// Reads `properties`. The standard defines which packets allow each of them.
fn read_properties(
    cx: &mut Context<'_>,
    field: Field<'_>,
    packet: PacketType,
) -> Option<Vec<Property>> {
    let Some(node) = field.node() else { return Some(Vec::new()) };
    let fields = ast::Properties::read(cx, node)?;
    let mut all = Vec::new();
    for (key, node) in fields.all().filter_map(Field::entry) {
        let Some(id) = PropertyId::named(&key.text) else { continue };
        // Only the broker sends the identifier of a subscription (3.3.4).
        let is_senders = packet == PacketType::Publish && id == PropertyId::SubscriptionIdentifier;
        if !id.belongs_to(packet) || is_senders {
            let message = say!("{} has no property `{}`", packet.name(), key.text);
            let label = say!("not allowed in this packet");
            return cx.refuse("wrong-place", key.place, message, label, say!("remove it"));
        }
        all.push(read_property(cx, id, node)?);
    }
    if let Some(node) = fields.user.node() {
        let help = say!("write `properties: {{user: {{tenant: t-7}}}}`");
        for (key, node) in cx.entries(node, say!("a map of user properties"), help)? {
            let values = node.one_or_more();
            for value in values {
                let name = Some(Text::literal(key.text.as_bytes()));
                let value = cx.template(value, say!("a user property"), Escape::None)?;
                all.push(Property { id: PropertyId::UserProperty, name, value });
            }
        }
    }
    Some(all)
}

fn read_property(cx: &mut Context<'_>, id: PropertyId, node: &Node) -> Option<Property> {
    Some(match id.kind() {
        ValueKind::Flag => number(id, u64::from(cx.bool(node)?)),
        ValueKind::Four => number(id, read_seconds(cx, node, NEVER_S)?),
        ValueKind::VarintPositive => number(id, read_number(cx, node, (1, VARINT_MAX))?),
        _ if id == PropertyId::ResponseTopic => {
            Property { id, name: None, value: read_topic(cx, node)? }
        }
        _ => {
            let value = cx.template(node, say!("the value of a property"), Escape::None)?;
            Property { id, name: None, value }
        }
    })
}

fn number(id: PropertyId, number: u64) -> Property {
    Property { id, name: None, value: Text::literal(number.to_string()) }
}

fn read_number(cx: &mut Context<'_>, node: &Node, (least, most): (u64, u64)) -> Option<u64> {
    let number = cx.count(node)?;
    if (least..=most).contains(&number) {
        return Some(number);
    }
    let help = say!("write a number from {least} to {most}");
    cx.bad_value(node, say!("MQTT does not allow this number"), help)
}

fn read_seconds(cx: &mut Context<'_>, node: &Node, most: u64) -> Option<u64> {
    let time = cx.duration(node)?;
    let help = say!("write whole seconds, at most {most}: `30s`");
    match time.subsec_nanos() == 0 && time.as_secs() <= most {
        true => Some(time.as_secs()),
        false => cx.bad_value(node, say!("MQTT specifies this time in whole seconds"), help),
    }
}

fn is_word(node: &Node, word: &str) -> bool {
    matches!(&node.kind, Kind::Scalar { text, .. } if text == word)
}
