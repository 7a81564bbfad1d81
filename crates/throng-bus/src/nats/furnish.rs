//! Creates the streams. A server that has just started replies before its JetStream does, so
//! everything is retried for a while.

use std::time::Duration;

use async_nats::jetstream::kv;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Republish, StorageType};
use tokio::time::{Instant, sleep};

use super::connection::Connection;
use super::failed::is_full;
use super::names::{BLOBS, BLOBS_STREAM, KEYS, KEYS_PREFIX, KEYS_STREAM, LOG, LOG_PREFIX, PREFIX};
use crate::BusError;

/// How much the bus stores, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub log_bytes_max: u64,
    pub log_age_max: Duration,
    pub blob_bytes_max: u64,
    pub blob_age_max: Duration,
}

impl Default for Room {
    fn default() -> Room {
        let week = Duration::from_secs(7 * 24 * 3600);
        Room {
            log_bytes_max: 8 << 30,
            log_age_max: week,
            blob_bytes_max: 4 << 30,
            blob_age_max: week,
        }
    }
}

/// Duplicates of a log message are detected within this time.
const KNOWN_TIME: Duration = Duration::from_secs(120);
/// Number of old values kept per register.
const HISTORY: i64 = 16;
const REGISTERS_BYTES_MAX: i64 = 256 << 20;
/// How long JetStream gets to become ready.
const READY_TIME: Duration = Duration::from_secs(20);
const AGAIN_PAUSE: Duration = Duration::from_millis(200);

pub(super) async fn furnish(connection: &Connection, room: Room) -> Result<(), BusError> {
    let until = Instant::now() + READY_TIME;
    loop {
        let parts = [LOG, KEYS_STREAM, BLOBS_STREAM, "API.INFO"].map(str::to_string).to_vec();
        match connection.asked(parts, once(connection, room)).await {
            Err(BusError::Cut) if Instant::now() < until => sleep(AGAIN_PAUSE).await,
            done => return done,
        }
    }
}

async fn once(connection: &Connection, room: Room) -> Result<(), BusError> {
    let context = &connection.context;
    for stream in [log(room), blobs(room)] {
        context.create_or_update_stream(stream).await.map_err(|error| not_made(&error))?;
    }
    let made = context.create_or_update_key_value(registers()).await;
    made.map(|_| ()).map_err(|error| not_made(&error))
}

fn not_made(error: &(dyn std::error::Error + 'static)) -> BusError {
    if is_full(error) { BusError::Full } else { BusError::Cut }
}

fn log(room: Room) -> Config {
    Config {
        name: LOG.to_string(),
        subjects: vec![format!("{LOG_PREFIX}>")],
        storage: StorageType::File,
        num_replicas: 1,
        discard: DiscardPolicy::New,
        max_bytes: bytes(room.log_bytes_max),
        max_age: room.log_age_max,
        duplicate_window: KNOWN_TIME,
        allow_direct: true,
        ..Config::default()
    }
}

fn registers() -> kv::Config {
    kv::Config {
        bucket: KEYS.to_string(),
        history: HISTORY,
        max_bytes: REGISTERS_BYTES_MAX,
        storage: StorageType::File,
        num_replicas: 1,
        republish: Some(Republish {
            source: format!("{KEYS_PREFIX}>"),
            destination: format!("{PREFIX}written.>"),
            headers_only: false,
        }),
        ..kv::Config::default()
    }
}

/// Like a regular object store, but with settings that can be changed later.
fn blobs(room: Room) -> Config {
    Config {
        name: BLOBS_STREAM.to_string(),
        subjects: vec![format!("$O.{BLOBS}.C.>"), format!("$O.{BLOBS}.M.>")],
        storage: StorageType::File,
        num_replicas: 1,
        discard: DiscardPolicy::New,
        max_bytes: bytes(room.blob_bytes_max),
        max_age: room.blob_age_max,
        allow_rollup: true,
        allow_direct: true,
        ..Config::default()
    }
}

fn bytes(most: u64) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
