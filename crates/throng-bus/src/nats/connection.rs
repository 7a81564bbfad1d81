//! The connection and its thread. The thread is separate so that heartbeats and replies do not wait
//! for a machine's other work; blobs use a separate connection, because they would delay the pings
//! of the first one.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{Client, ConnectOptions, Event};
use throng_base::Said;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{OnceCell, watch};
use tokio::time::timeout;

use super::names::DOMAIN;
use super::state::NatsState;
use crate::identity::Identity;
use crate::{BusError, Link};

/// How long a machine waits for a reply, and for a connection.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(2);
/// Maximum time for storing a piece of a blob.
const BLOB_ANSWER_TIME: Duration = Duration::from_secs(30);
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The interval of pings; two without a reply close the connection.
const PING: Duration = Duration::from_secs(2);
/// The same for blobs, whose connection may be busy for long.
const BLOB_PING: Duration = Duration::from_secs(20);
const AGAIN_MIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(2);
/// How long the last messages get to be sent.
const LAST_TIME: Duration = Duration::from_millis(500);

pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) state: Arc<NatsState>,
    identity: Identity,
    blobs: OnceCell<Context>,
}

/// The runtime of the connection's thread, for callers on other threads.
pub(super) struct Thread {
    pub(super) runtime: Handle,
    pub(super) connection: Arc<Connection>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.connection.state.over.send_replace(true);
    }
}

impl Thread {
    /// Starts to connect, and retries until the bus is available.
    pub(super) fn begin(identity: Identity) -> Result<Thread, Said> {
        let (told, begun) = sync_channel(1);
        let thread = std::thread::Builder::new().name("bus".to_string());
        let failed = |error: std::io::Error| Said::of_error(&error);
        thread.spawn(move || run(identity, &told)).map_err(failed)?;
        begun.recv().unwrap_or_else(|_| Err(say!("the connection to the bus could not be started")))
    }
}

fn run(identity: Identity, told: &SyncSender<Result<Thread, Said>>) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return drop(told.send(Err(Said::of_error(&error)))),
    };
    let handle = runtime.handle().clone();
    runtime.block_on(async {
        let connection = match Connection::begin(identity).await {
            Ok(connection) => Arc::new(connection),
            Err(said) => return drop(told.send(Err(said))),
        };
        let state = Arc::clone(&connection.state);
        let client = connection.client.clone();
        if told.send(Ok(Thread { runtime: handle, connection })).is_ok() {
            ended(&state.over).await;
            let _ = timeout(LAST_TIME, client.flush()).await;
        }
    });
}

async fn ended(over: &watch::Sender<bool>) {
    let _ = over.subscribe().wait_for(|over| *over).await;
}

impl Connection {
    async fn begin(identity: Identity) -> Result<Connection, Said> {
        let state = Arc::new(NatsState::new(identity.clone()));
        let own = Arc::clone(&state);
        let client = connect(&identity, PING, move |event| own.happened(event)).await?;
        let _ = state.client.set(client.clone());
        let context = context(client.clone(), ANSWER_TIME);
        Ok(Connection { client, context, state, identity, blobs: OnceCell::new() })
    }

    /// Returns when there is a connection, or why there is none.
    pub(super) async fn up(&self) -> Result<(), BusError> {
        let mut link = self.state.link.subscribe();
        let known = link.wait_for(|link| matches!(link, Link::Up | Link::Refused(_)));
        match timeout(ANSWER_TIME, known).await {
            Ok(Ok(link)) => match &*link {
                Link::Refused(said) => Err(BusError::Refused(said.clone())),
                _ => Ok(()),
            },
            _ => Err(BusError::Cut),
        }
    }

    /// Runs an operation that needs rights to names with these parts.
    pub(super) async fn asked<T>(
        &self,
        parts: Vec<String>,
        act: impl Future<Output = Result<T, BusError>>,
    ) -> Result<T, BusError> {
        self.up().await?;
        let forbidden = self.state.claim(parts.into());
        tokio::select! {
            biased;
            Ok(said) = forbidden => Err(BusError::Refused(said)),
            done = act => done,
        }
    }

    /// The connection for blobs.
    pub(super) async fn blobs(&self) -> Result<Context, BusError> {
        let begin = async || {
            let state = Arc::clone(&self.state);
            let heard = move |event: &Event| {
                if let Event::ServerError(error) = event {
                    state.server_says(&error.to_string());
                }
            };
            let client = connect(&self.identity, BLOB_PING, heard).await?;
            Ok(context(client, BLOB_ANSWER_TIME))
        };
        self.blobs.get_or_try_init(begin).await.cloned().map_err(BusError::Refused)
    }
}

fn context(client: Client, answer_time: Duration) -> Context {
    ContextBuilder::new().domain(DOMAIN).timeout(answer_time).build(client)
}

async fn connect(
    identity: &Identity,
    ping: Duration,
    heard: impl Fn(&Event) + Send + Sync + 'static,
) -> Result<Client, Said> {
    let Identity { name, address, tls, seed } = identity;
    let heard = Arc::new(heard);
    let mut options = ConnectOptions::new()
        .name(name)
        .ping_interval(ping)
        .connection_timeout(CONNECT_TIME)
        .retry_on_initial_connect()
        .ignore_discovered_servers()
        .custom_inbox_prefix(format!("_INBOX.{name}"))
        .reconnect_delay_callback(pause)
        .event_callback(move |event| {
            heard(&event);
            std::future::ready(())
        });
    if let Some(seed) = seed {
        options = options.nkey(seed.clone());
    }
    let scheme = match tls {
        Some(tls) => {
            options = options.tls_client_config(tls.client()?).tls_first();
            "tls"
        }
        None => "nats",
    };
    let connected = options.connect(format!("{scheme}://{address}")).await;
    connected.map_err(|error| Said::of_others(error.to_string()))
}

/// How long the client waits before its next attempt.
fn pause(goes: usize) -> Duration {
    match u32::try_from(goes.saturating_sub(1)).unwrap_or(u32::MAX) {
        0 => Duration::ZERO,
        goes => AGAIN_MIN.saturating_mul(1 << goes.min(8)).min(AGAIN_MAX),
    }
}
