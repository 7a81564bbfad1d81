//! The command line: with a body, users publish it; without one, they subscribe.

use throng_base::Diagnostic;

use crate::quote::{escape, quoted, text};
use crate::url::{Url, percent_decode};
use crate::writer::{Bench, BenchBody, Writer};

pub(super) fn write_session(writer: &mut Writer<'_>) {
    let bench = writer.bench;
    let is_quiet = writer.message().is_none() && bench.keep_alive != Some(false);
    if !is_quiet || writer.stays() {
        return writer.keep(connect, step);
    }
    writer.line("    before:                # once, when the user starts");
    connect(writer);
    step(writer);
    writer.line("    steps:                 # nothing to publish: the user listens");
    writer.line("      - stay: forever");
}

fn connect(writer: &mut Writer<'_>) {
    let bench = writer.bench;
    let mut entries = Vec::new();
    if bench.given("--mqtt-3").next().is_some() {
        entries.push("version: 3.1.1".to_string());
    }
    if let Some(begin) = bench.given("--client-id").next() {
        // Each user has a separate client ID, because the broker allows only one connection per ID.
        let client_id = quoted(&format!("{}-${{user.id}}", escape(begin)));
        entries.push(format!("client_id: {client_id}"));
    }
    if let Some((user, password)) = &writer.auth {
        entries.push(format!("user: {}, password: {}", text(user), text(password)));
    }
    writer.line("      - connect:");
    if !entries.is_empty() {
        let line = format!("        mqtt: {{{}}}", entries.join(", "));
        writer.line(&line);
    }
    if writer.message().is_none() && writer.bench.topic().is_some() {
        writer.line("        on: [{message: any, name: messages}]");
    }
}

/// Publishes the message, or subscribes without one.
fn step(writer: &mut Writer<'_>) {
    let Some(topic) = writer.bench.topic() else { return };
    let message = writer.message();
    match &message {
        Some((key, value)) => {
            writer.line(&format!("      - publish: {}", text(&topic)));
            writer.line(&format!("        {key}: {value}"));
        }
        None => writer.line(&format!("      - subscribe: {}", text(&topic))),
    }
    if let Some(qos) = writer.bench.given("--qos").next() {
        writer.line(&format!("        qos: {qos}"));
    }
    if message.is_some() && writer.bench.given("--retain").next().is_some() {
        writer.line("        retain: true");
    }
    writer.timeout();
}

impl Bench {
    /// An error if there is a message but no topic to publish it to.
    pub fn without_topic(&self) -> Option<Diagnostic> {
        let has_message = self.hex_message.is_some() || !matches!(self.body, BenchBody::None);
        let is_lost = self.has_verb("publish") && has_message && self.topic().is_none();
        let help = say!("write `throng bench mqtt://HOST/TOPIC --body TEXT`");
        let error = || Diagnostic::error("url-missing", say!("the URL does not name a topic"));
        is_lost.then(|| error().help(help))
    }

    /// The path of the URL if its scheme is that of MQTT.
    fn topic(&self) -> Option<String> {
        let path = Url::parse(&self.url).ok()?.path;
        let topic = percent_decode(path.strip_prefix('/').unwrap_or(&path));
        (!topic.is_empty()).then_some(topic)
    }
}
