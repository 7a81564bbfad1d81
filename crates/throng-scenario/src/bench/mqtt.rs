//! MQTT of a command line: with a body users publish it, without one they subscribe and listen.

use throng_base::Diagnostic;
use throng_base::units::write_duration;

use super::{Bench, BenchBody, Writer};
use crate::quote::{escape, quoted, text};
use crate::url::{Url, percent_decode};

/// What a command line says of MQTT.
#[derive(Clone, Debug, Default)]
pub struct BenchMqtt {
    pub qos: Option<u8>,
    pub retain: bool,
    /// The beginning of the client IDs; the number of the user follows.
    pub client_id: Option<String>,
    /// 3.1.1 instead of 5.
    pub is_old: bool,
}

impl Writer<'_> {
    pub(super) fn mqtt_session(&mut self) {
        let message = self.message();
        let once = self.bench.keep_alive == Some(false);
        if self.stays() {
            self.line("    steps:");
            self.mqtt_connect();
            self.mqtt_step(message.as_ref());
            self.line("      - stay: forever");
            if let Some(every) = self.bench.heartbeat {
                let every = write_duration(every);
                self.line(&format!("        heartbeat: {{ping: true, every: {every}}}"));
            }
            return;
        }
        match (message, once) {
            (Some(message), false) => {
                self.line("    before:                # once, when the user starts");
                self.mqtt_connect();
                self.line("    steps:                 # repeatedly");
                self.mqtt_step(Some(&message));
                self.think();
            }
            (message, true) => {
                self.line("    steps:                 # each iteration opens a connection");
                self.mqtt_connect();
                self.mqtt_step(message.as_ref());
                self.line("      - disconnect");
                self.think();
            }
            (None, false) => {
                self.line("    before:                # once, when the user starts");
                self.mqtt_connect();
                self.mqtt_step(None);
                self.line("    steps:                 # nothing to publish: the user listens");
                self.line("      - stay: forever");
            }
        }
    }

    fn mqtt_connect(&mut self) {
        let mqtt = &self.bench.mqtt;
        let mut entries = Vec::new();
        if mqtt.is_old {
            entries.push("version: 3.1.1".to_string());
        }
        if let Some(begin) = &mqtt.client_id {
            // Each user has its own: the broker lets only one of a name stay.
            let client_id = quoted(&format!("{}-${{user.id}}", escape(begin)));
            entries.push(format!("client_id: {client_id}"));
        }
        if let Some((user, password)) = &self.auth {
            entries.push(format!("user: {}, password: {}", text(user), text(password)));
        }
        self.line("      - connect:");
        if !entries.is_empty() {
            let line = format!("        mqtt: {{{}}}", entries.join(", "));
            self.line(&line);
        }
        if self.message().is_none() && self.bench.topic().is_some() {
            self.line("        on: [{message: any, name: messages}]");
        }
    }

    /// Publishes the message, or subscribes where there is none.
    fn mqtt_step(&mut self, message: Option<&(&'static str, String)>) {
        let Some(topic) = self.bench.topic() else { return };
        match message {
            Some((key, value)) => {
                self.line(&format!("      - publish: {}", text(&topic)));
                self.line(&format!("        {key}: {value}"));
            }
            None => self.line(&format!("      - subscribe: {}", text(&topic))),
        }
        if let Some(qos) = self.bench.mqtt.qos {
            self.line(&format!("        qos: {qos}"));
        }
        if message.is_some() && self.bench.mqtt.retain {
            self.line("        retain: true");
        }
        self.timeout();
    }
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

    /// The path of the URL, where it is one of MQTT.
    fn topic(&self) -> Option<String> {
        let path = Url::parse(&self.url).ok()?.path;
        let topic = percent_decode(path.strip_prefix('/').unwrap_or(&path));
        (!topic.is_empty()).then_some(topic)
    }
}
