//! MQTT: sessions, and the verbs `publish`, `subscribe` and `unsubscribe`.

#[macro_use]
mod keys;
mod bench;
mod outline;
mod step;
mod topic;

use super::{Builtin, PLAIN};

pub(crate) use step::{read_publish, read_subscribe, read_unsubscribe};

pub(super) static BUILTIN: Builtin = Builtin {
    verb: "publish",
    opens: step::open,
    warns: step::warn_same_id,
    conditions: &[("topic", topic::read_topic_filter)],
    message: outline::message,
    connects: outline::connect_line,
    session: bench::write_session,
    ..PLAIN
};

#[cfg(test)]
mod tests;
