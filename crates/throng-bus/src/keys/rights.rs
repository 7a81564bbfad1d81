//! Rights on the bus, in the format of the server's file. A name in JetStream's API has two forms,
//! because the server checks it before and after mapping the domain.

use crate::nats::names::{BLOBS_STREAM, DOMAIN, KEYS_PREFIX, KEYS_STREAM, LOG_PREFIX, NOBODY};

/// What a machine may publish and subscribe to.
pub(super) struct Rights {
    publish: Vec<String>,
    subscribe: Vec<String>,
}

impl Rights {
    pub(super) fn of_controller() -> Rights {
        Rights { publish: vec![">".to_string()], subscribe: vec![">".to_string()] }
    }

    /// An agent publishes only under its own name, and writes only its own register. It may be a
    /// monitor instead.
    pub(super) fn of_agent(name: &str) -> Rights {
        let mut publish = vec![
            format!("thr.heartbeat.{name}"),
            format!("thr.announced.*.{name}"),
            format!("thr.reading.{name}"),
            "thr.time".to_string(),
            NOBODY.to_string(),
            format!("{LOG_PREFIX}lines.*.{name}"),
            format!("{KEYS_PREFIX}agent.{name}"),
            format!("$JS.FC.{BLOBS_STREAM}.>"),
        ];
        let asked = [
            format!("DIRECT.GET.{KEYS_STREAM}.>"),
            format!("STREAM.INFO.{KEYS_STREAM}"),
            format!("STREAM.INFO.{BLOBS_STREAM}"),
            format!("DIRECT.GET.{BLOBS_STREAM}.>"),
            format!("CONSUMER.CREATE.{BLOBS_STREAM}"),
            format!("CONSUMER.CREATE.{BLOBS_STREAM}.>"),
            format!("CONSUMER.DELETE.{BLOBS_STREAM}.>"),
        ];
        for name in asked {
            publish.push(format!("$JS.API.{name}"));
            publish.push(format!("$JS.{DOMAIN}.API.{name}"));
        }
        let subscribe = vec![
            format!("_INBOX.{name}.>"),
            "thr.beacon".to_string(),
            "thr.announced.>".to_string(),
            "thr.written.run.>".to_string(),
            format!("thr.monitor.{name}"),
        ];
        Rights { publish, subscribe }
    }

    /// In the format of the server's file.
    pub(super) fn text(&self) -> String {
        let list = |names: &[String]| {
            let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            quoted.join(", ")
        };
        let (publish, subscribe) = (list(&self.publish), list(&self.subscribe));
        format!(
            "permissions: {{\n      publish: {{ allow: [{publish}] }}\n      \
             subscribe: {{ allow: [{subscribe}] }}\n    }}"
        )
    }
}
