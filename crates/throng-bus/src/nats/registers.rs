//! Registers: the bucket `THR_KEYS`. They are read directly from its stream, which needs neither a
//! consumer nor the bucket's description.

use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use futures_util::StreamExt as _;

use super::connection::Connection;
use super::names::{KEYS_PREFIX, KEYS_STREAM};
use crate::{BusError, Entry};

async fn stream(connection: &Connection) -> Result<Stream<()>, BusError> {
    connection.context.get_stream_no_info(KEYS_STREAM).await.map_err(|_| BusError::Cut)
}

pub(super) async fn read(
    connection: &Connection,
    subject: String,
) -> Result<Option<Entry>, BusError> {
    let act = async {
        match stream(connection).await?.direct_get_last_for_subject(subject).await {
            Ok(message) => Ok(Some(Entry { revision: message.sequence, value: message.payload })),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            Err(_) => Err(BusError::Cut),
        }
    };
    connection.asked(vec![KEYS_STREAM.to_string()], act).await
}

pub(super) async fn keys(
    connection: &Connection,
    pattern: String,
) -> Result<Vec<String>, BusError> {
    let act = async {
        let stream = stream(connection).await?;
        let info = stream.info_with_subjects(pattern).await;
        let mut subjects = info.map_err(|_| BusError::Cut)?;
        let mut keys = Vec::new();
        while let Some(subject) = subjects.next().await {
            let (subject, _) = subject.map_err(|_| BusError::Cut)?;
            keys.extend(subject.strip_prefix(KEYS_PREFIX).map(str::to_string));
        }
        keys.sort_unstable();
        Ok(keys)
    };
    connection.asked(vec![KEYS_STREAM.to_string()], act).await
}
