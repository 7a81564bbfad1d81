//! MQTT sessions and steps in the outline, in the words of the scenario.

use throng_program::mqtt::{Client, Order, Property, Publish};
use throng_program::{Command as _, Connect, ConnectOptions, Content, Text};
use throng_protocol::mqtt::{PropertyId, Qos, SubscribeOptions, Version};

use crate::builtin::Written;
use crate::phrases::{Words, shown};

/// `publish rooms/1`, `subscribe rooms/+, jobs/#`
fn line(order: &Order) -> String {
    let list = |filters: Vec<&Text>| filters.into_iter().map(shown).collect::<Vec<_>>().join(", ");
    let topics = match order {
        Order::Publish(publish) => shown(&publish.topic),
        Order::Subscribe(one) => list(one.filters.iter().map(|(filter, _)| filter).collect()),
        Order::Unsubscribe(one) => list(one.filters.iter().collect()),
    };
    format!("{} {topics}", order.verb())
}

/// The line of a message, which is also the name of its row.
pub(super) fn message(content: &Content, notes: &mut Vec<String>) -> Option<Written> {
    let Content::Mqtt(order) = content else { return None };
    match &**order {
        Order::Publish(publish) => of_message(publish, notes),
        Order::Subscribe(subscribe) => {
            let first = subscribe.filters.first().map(|(_, options)| *options);
            let is_same = subscribe.filters.iter().all(|(_, options)| Some(*options) == first);
            let common = first.filter(|_| is_same);
            let all = subscribe.filters.iter().filter(|_| !is_same);
            notes.extend(common.into_iter().flat_map(of_subscription));
            notes.extend(all.map(|(filter, options)| {
                let options: Vec<String> = of_subscription(*options).collect();
                format!("{}: {}", shown(filter), options.join(", "))
            }));
            of_properties(&subscribe.properties, notes);
        }
        Order::Unsubscribe(_) => {}
    }
    Some((line(order), line(order)))
}

fn of_message(publish: &Publish, notes: &mut Vec<String>) {
    if !publish.payload.segments.is_empty() {
        notes.push(format!("message {}", shown(&publish.payload)));
    }
    notes.push(format!("qos {}", publish.qos.level()));
    if publish.retain {
        notes.push("retain".into());
    }
    of_properties(&publish.properties, notes);
}

fn of_subscription(options: SubscribeOptions) -> impl Iterator<Item = String> {
    let retained = ["", "retained new", "retained never"];
    let all = [
        Some(format!("qos {}", options.qos.level())),
        options.no_local.then(|| "no_local".into()),
        options.retain_as_published.then(|| "retain_as_published".into()),
        retained.get(usize::from(options.retain_handling)).map(|word| (*word).to_string()),
    ];
    all.into_iter().flatten().filter(|note| !note.is_empty())
}

fn of_properties(properties: &[Property], notes: &mut Vec<String>) {
    notes.extend(properties.iter().map(|property| {
        let name = match (&property.name, property.id) {
            (Some(name), PropertyId::UserProperty) => shown(name),
            _ => property.id.name().to_string(),
        };
        format!("{name} {}", shown(&property.value))
    }));
}

/// The identity of a user.
pub(super) fn connect_line(
    _: &Words<'_>,
    connect: &Connect,
    notes: &mut Vec<String>,
) -> Option<String> {
    if let Some(ConnectOptions::Mqtt(client)) = connect.options.as_deref() {
        of_client(client, notes);
    }
    None
}

fn of_client(client: &Client, notes: &mut Vec<String>) {
    if client.version == Version::V3 {
        notes.push("version 3.1.1".into());
    }
    if !client.client_id.segments.is_empty() {
        notes.push(format!("client_id {}", shown(&client.client_id)));
    }
    if !client.clean_start {
        notes.push("clean_start false".into());
    }
    notes.extend(client.user.as_ref().map(|user| format!("user {}", shown(user))));
    notes.push(match client.keep_alive_s {
        0 => "keep_alive none".into(),
        keep_alive_s => format!("keep_alive {keep_alive_s}s"),
    });
    of_properties(&client.properties, notes);
    if let Some(will) = &client.will {
        let Publish { topic, qos, .. } = &will.message;
        let qos =
            if *qos == Qos::AtMostOnce { String::new() } else { format!(" qos {}", qos.level()) };
        notes.push(format!("will {}{qos}", shown(topic)));
    }
}
