//! Blobs: the object store `THR_BLOB`, whose objects are named by their digest. Objects are
//! transferred in pieces; after a long interruption the transfer must be restarted.
//!
//! An object of one piece is read like a register. Several pieces need a consumer, of which a bus
//! allows a limited number, and a separate connection, which would delay a thousand agents that
//! request a few lines of YAML at the same time.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::{
    GetErrorKind, InfoErrorKind, Object, ObjectInfo, ObjectMetadata, ObjectStore,
};
use bytes::Bytes;
use throng_extract::Digest;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::connection::Connection;
use super::failed::is_full;
use super::names::{BLOBS, BLOBS_STREAM};
use crate::{BLOB_BYTES_MAX, BusError};

/// Bytes of a piece.
const PIECE_BYTES: usize = 128 << 10;
/// Maximum time between two pieces, including a reconnect.
const SILENT_TIME: Duration = Duration::from_secs(60);

fn parts() -> Vec<String> {
    vec![BLOBS_STREAM.to_string(), format!("$O.{BLOBS}.")]
}

async fn objects(context: &Context) -> Result<ObjectStore, BusError> {
    context.get_object_store(BLOBS).await.map_err(|_| BusError::Cut)
}

pub(super) async fn store(connection: &Connection, blob: Bytes) -> Result<String, BusError> {
    if blob.len() > BLOB_BYTES_MAX {
        return Err(too_large());
    }
    let act = async {
        let name = Digest::Sha256.of(&blob);
        let objects = objects(&connection.blobs().await?).await?;
        match objects.info(&name).await {
            Ok(info) if !info.deleted && info.size == blob.len() => return Ok(name),
            Err(error) if error.kind() != InfoErrorKind::NotFound => return Err(BusError::Cut),
            _ => {}
        }
        let chunk_size = Some(PIECE_BYTES);
        let about = ObjectMetadata { name: name.clone(), chunk_size, ..ObjectMetadata::default() };
        match objects.put(about, &mut &*blob).await {
            Ok(_) => Ok(name),
            Err(error) if is_full(&error) => Err(BusError::Full),
            Err(_) => Err(BusError::Cut),
        }
    };
    connection.asked(parts(), act).await
}

pub(super) async fn fetch(connection: &Connection, name: &str) -> Result<Option<Bytes>, BusError> {
    if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let act = async {
        match objects(&connection.context).await?.info(name).await {
            Ok(info) if info.deleted => return Ok(None),
            Ok(info) if info.chunks == 1 => {
                return piece(connection, &info, name).await.map(Some);
            }
            Err(error) if error.kind() == InfoErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(BusError::Cut),
            Ok(_) => {}
        }
        match objects(&connection.blobs().await?).await?.get(name).await {
            Ok(object) => Ok(Some(gather(object, name).await?)),
            Err(error) if error.kind() == GetErrorKind::NotFound => Ok(None),
            Err(_) => Err(BusError::Cut),
        }
    };
    connection.asked(parts(), act).await
}

/// The whole object, if it is a single piece.
async fn piece(connection: &Connection, info: &ObjectInfo, name: &str) -> Result<Bytes, BusError> {
    let stream = connection.context.get_stream_no_info(BLOBS_STREAM).await;
    let stream = stream.map_err(|_| BusError::Cut)?;
    let subject = format!("$O.{BLOBS}.C.{}", info.nuid);
    let piece = stream.direct_get_last_for_subject(subject).await.map_err(|_| BusError::Cut)?;
    verified(piece.payload, name)
}

async fn gather(mut object: Object, name: &str) -> Result<Bytes, BusError> {
    let size = object.info().size;
    if size > BLOB_BYTES_MAX {
        return Err(too_large());
    }
    let mut blob = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    while blob.len() < size {
        match timeout(SILENT_TIME, object.read(&mut piece)).await {
            Ok(Ok(read @ 1..)) => blob.extend_from_slice(&piece[..read]),
            _ => return Err(BusError::Cut),
        }
        if blob.len() > size {
            return Err(BusError::Cut);
        }
    }
    verified(blob.into(), name)
}

fn verified(blob: Bytes, name: &str) -> Result<Bytes, BusError> {
    match Digest::Sha256.of(&blob) == name {
        true => Ok(blob),
        false => Err(BusError::Refused(say!(
            "the content of blob {name} on the bus does not match its name"
        ))),
    }
}

fn too_large() -> BusError {
    let most = BLOB_BYTES_MAX >> 20;
    BusError::Refused(say!("a blob on the bus is larger than {most} MiB"))
}
