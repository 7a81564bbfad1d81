//! A mirror of the presence in Redis: every change is written to a set of names, in pipelines. If
//! Redis fails, the mirror only records that it is stale; when Redis recovers, the whole set is
//! rewritten. It never delays devices.

mod mirror;

#[cfg(test)]
pub(crate) use mirror::tests::Server as TestServer;
pub(crate) use mirror::{Mirror, MirrorOptions, Ticket};
pub use throng_redis::RedisAddress;
