//! Redis: the verb `redis`.

#[macro_use]
mod keys;
mod bench;
mod step;
mod words;

use throng_program::Content;

use super::{Builtin, PLAIN};

pub(crate) use step::read_redis;

pub(super) static BUILTIN: Builtin = Builtin {
    verb: "redis",
    conditions: &[("channel", step::read_channel)],
    message: |content, _| match content {
        Content::Redis(commands) => {
            Some((format!("redis {}", commands.written), commands.written.clone()))
        }
        _ => None,
    },
    session: bench::write_session,
    ..PLAIN
};

#[cfg(test)]
mod tests;
