//! Follows the log with an ordered consumer. After a disconnect, a restart of the bus, or a stalled
//! consumer it resumes after the last delivered entry, so there are neither gaps nor repeats.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::connection::Connection;
use super::names::{LOG, LOG_PREFIX};
use crate::{BusError, Following, Logged, WAITING_MAX};

/// The duration of a pull; half of it is how soon a stalled consumer is noticed.
const PULL_TIME: Duration = Duration::from_secs(2);
/// After this time without entries, the stream is checked for missed ones.
const SILENT_TIME: Duration = Duration::from_secs(5);
const AGAIN_PAUSE: Duration = Duration::from_millis(200);

pub(super) async fn follow(
    connection: Arc<Connection>,
    subject: String,
    from: u64,
) -> Result<Following, BusError> {
    let mut next = from.max(1);
    // A missing right is reported immediately. Other errors may be temporary.
    let begun = match begin(&connection, &subject, next).await {
        Err(BusError::Refused(said)) => return Err(BusError::Refused(said)),
        begun => begun.ok(),
    };
    let (to, following) = mpsc::channel(WAITING_MAX);
    tokio::spawn(async move {
        let go_on = async {
            let mut begun = begun;
            loop {
                let lines = match begun.take() {
                    Some(lines) => Ok(lines),
                    None => begin(&connection, &subject, next).await,
                };
                match lines {
                    Ok(lines) => hand_on(lines, &connection, &subject, &mut next, &to).await,
                    Err(BusError::Refused(_)) => return,
                    Err(_) => {}
                }
                sleep(AGAIN_PAUSE).await;
            }
        };
        tokio::select! {
            () = pin!(go_on) => {}
            () = to.closed() => {}
        }
    });
    Ok(following)
}

async fn log(connection: &Connection) -> Result<Stream<()>, BusError> {
    connection.context.get_stream_no_info(LOG).await.map_err(|_| BusError::Cut)
}

async fn begin(connection: &Connection, subject: &str, next: u64) -> Result<Ordered, BusError> {
    let act = async {
        let config = OrderedConfig {
            filter_subject: subject.to_string(),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next },
            max_expires: PULL_TIME,
            ..OrderedConfig::default()
        };
        let stream = connection.context.create_consumer_on_stream(config, LOG).await;
        stream.map_err(|_| BusError::Cut)?.messages().await.map_err(|_| BusError::Cut)
    };
    connection.asked(vec![LOG.to_string()], act).await
}

/// Delivers entries until the consumer has ended or missed one.
async fn hand_on(
    mut lines: Ordered,
    connection: &Connection,
    subject: &str,
    next: &mut u64,
    to: &mpsc::Sender<Logged>,
) {
    loop {
        let message = match timeout(SILENT_TIME, lines.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(_) => return,
            Err(_) if is_missing(connection, subject, *next).await => return,
            Err(_) => continue,
        };
        let Ok(info) = message.info() else { return };
        let (sequence, behind) = (info.stream_sequence, info.pending);
        if sequence < *next {
            continue;
        }
        let name = message.subject.strip_prefix(LOG_PREFIX).unwrap_or(&message.subject);
        let subject = name.to_string();
        let payload = message.payload.clone();
        if to.send(Logged { subject, sequence, payload, behind }).await.is_err() {
            return;
        }
        *next = sequence + 1;
    }
}

/// True if the log has an entry that was not delivered.
async fn is_missing(connection: &Connection, subject: &str, next: u64) -> bool {
    let Ok(stream) = log(connection).await else { return false };
    let found = stream.direct_get_next_for_subject(subject, Some(next)).await;
    match found {
        Ok(_) => true,
        Err(error) => {
            !matches!(error.kind(), DirectGetErrorKind::NotFound | DirectGetErrorKind::TimedOut)
        }
    }
}
