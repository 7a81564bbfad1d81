//! A mirror of the presence in a Redis: every change is written to a set of names, in pipelines.
//! When Redis dies, the mirror only remembers that it is stale; when Redis is back, the whole set
//! is written anew. It never holds up a device.

mod mirror;

#[cfg(test)]
pub(crate) use mirror::tests::Server as TestServer;
pub(crate) use mirror::{Mirror, MirrorOptions, Ticket};
pub use throng_redis::RedisAddress;
