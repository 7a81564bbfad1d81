//! NATS with JetStream as a [`Bus`]. Messages are plain NATS messages under `thr.`; the log is the
//! stream `THR_LOG`, registers are the bucket `THR_KEYS`, blobs the object store `THR_BLOB`. The
//! client has its own thread and runtime ([`connection`]); its handles work on any thread.

mod blobs;
mod connection;
mod failed;
mod follow;
mod furnish;
pub(crate) mod names;
mod probe;
mod registers;
mod state;

use std::sync::Arc;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::{Client, Request, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use throng_base::Said;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::identity::Identity;
use crate::{
    Bus, BusError, Entry, Following, Link, Message, PAYLOAD_BYTES_MAX, Subscription, WAITING_MAX,
};
use connection::{ANSWER_TIME, Connection, Thread};
use failed::{kept_not, too_long};

pub use furnish::Room;

/// The pause before a request without listeners is sent again.
const NOBODY_PAUSE: Duration = Duration::from_millis(50);

/// A machine on the bus.
#[derive(Clone)]
pub struct Nats(Arc<Inner>);

struct Inner {
    thread: Thread,
    outgoing: mpsc::Sender<Outgoing>,
}

/// Messages to listeners, in order.
enum Outgoing {
    Message { subject: String, payload: Bytes, at: Instant },
    Flush(oneshot::Sender<()>),
}

impl Nats {
    /// Starts to connect. [`Bus::link`] has the progress.
    pub fn connect(identity: Identity) -> Result<Nats, Said> {
        let thread = Thread::begin(identity)?;
        let (outgoing, waiting) = mpsc::channel(WAITING_MAX);
        thread.runtime.spawn(send(Arc::clone(&thread.connection), waiting));
        Ok(Nats(Arc::new(Inner { thread, outgoing })))
    }

    /// Creates the log, the registers and the blobs if they do not exist: only the controller has
    /// the right to.
    pub async fn furnish(&self, room: Room) -> Result<(), BusError> {
        self.on_thread(|connection| async move { furnish::furnish(&connection, room).await }).await
    }

    /// Returns when earlier messages are sent, or cannot be.
    pub async fn flush(&self) {
        let (flushed, done) = oneshot::channel();
        if self.0.outgoing.send(Outgoing::Flush(flushed)).await.is_ok() {
            let _ = done.await;
        }
    }

    /// Sends a request to a plain NATS subject: the server's reports about itself.
    pub(crate) async fn ask_server(&self, subject: &str) -> Result<Bytes, BusError> {
        let subject = subject.to_string();
        self.on_thread(|connection| async move {
            let request = Request::new().timeout(Some(ANSWER_TIME));
            let act = async {
                let answer = connection.client.send_request(subject.clone(), request).await;
                answer.map(|answer| answer.payload).map_err(|_| BusError::Cut)
            };
            connection.asked(vec![subject.clone()], act).await
        })
        .await
    }

    /// Runs something on the thread of the connection.
    async fn on_thread<T, F>(&self, act: impl FnOnce(Arc<Connection>) -> F) -> Result<T, BusError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, BusError>> + Send + 'static,
    {
        let thread = &self.0.thread;
        let done = thread.runtime.spawn(act(Arc::clone(&thread.connection)));
        match done.await {
            Ok(done) => done,
            Err(_) => match &*self.link().borrow() {
                Link::Refused(said) => Err(BusError::Refused(said.clone())),
                _ => Err(BusError::Cut),
            },
        }
    }
}

impl Bus for Nats {
    fn link(&self) -> watch::Receiver<Link> {
        self.0.thread.connection.state.link.subscribe()
    }

    fn publish(&self, subject: &str, payload: Bytes) {
        let Ok(subject) = names::to(subject) else {
            debug_assert!(false, "{subject} cannot be a name on the bus");
            return;
        };
        let message = Outgoing::Message { subject, payload, at: Instant::now() };
        let _ = self.0.outgoing.try_send(message);
    }

    async fn subscribe(&self, pattern: &str) -> Result<Subscription, BusError> {
        let subject = names::pattern(names::PREFIX, pattern)?;
        self.on_thread(|connection| async move { subscribe(&connection, subject).await }).await
    }

    async fn request(
        &self,
        subject: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<Bytes, BusError> {
        let subject = names::exact(names::PREFIX, subject)?;
        self.on_thread(|connection| async move {
            let act = request(&connection.client, &subject, payload, within);
            connection.asked(vec![subject.clone()], act).await
        })
        .await
    }

    async fn append(&self, subject: &str, id: &str, payload: Bytes) -> Result<(), BusError> {
        let subject = names::exact(names::LOG_PREFIX, subject)?;
        if !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BusError::Refused(say!("`{id}` is not a valid name on the bus")));
        }
        let message = PublishMessage::build().message_id(id);
        let kept = self.on_thread(|connection| async move {
            keep(&connection, subject, payload, message).await
        });
        kept.await.map(|_| ())
    }

    async fn follow(&self, pattern: &str, from: u64) -> Result<Following, BusError> {
        let subject = names::pattern(names::LOG_PREFIX, pattern)?;
        self.on_thread(|connection| follow::follow(connection, subject, from)).await
    }

    async fn read(&self, key: &str) -> Result<Option<Entry>, BusError> {
        let subject = names::exact(names::KEYS_PREFIX, key)?;
        self.on_thread(|connection| async move { registers::read(&connection, subject).await })
            .await
    }

    async fn write(&self, key: &str, expected: u64, value: Bytes) -> Result<u64, BusError> {
        let subject = names::exact(names::KEYS_PREFIX, key)?;
        let message = PublishMessage::build().expected_last_subject_sequence(expected);
        self.on_thread(|connection| async move { keep(&connection, subject, value, message).await })
            .await
    }

    async fn keys(&self, pattern: &str) -> Result<Vec<String>, BusError> {
        let subject = names::pattern(names::KEYS_PREFIX, pattern)?;
        self.on_thread(|connection| async move { registers::keys(&connection, subject).await })
            .await
    }

    async fn store(&self, blob: Bytes) -> Result<String, BusError> {
        self.on_thread(|connection| async move { blobs::store(&connection, blob).await }).await
    }

    async fn fetch(&self, name: &str) -> Result<Option<Bytes>, BusError> {
        let name = name.to_string();
        self.on_thread(|connection| async move { blobs::fetch(&connection, &name).await }).await
    }
}

/// Sends published messages. Messages published while disconnected are outdated and dropped.
async fn send(connection: Arc<Connection>, mut waiting: mpsc::Receiver<Outgoing>) {
    while let Some(outgoing) = waiting.recv().await {
        match outgoing {
            Outgoing::Message { subject, payload, at } => {
                let is_old = || at.elapsed() >= ANSWER_TIME;
                if !is_old() && connection.up().await.is_ok() && !is_old() {
                    let _ = connection.client.publish(subject, payload).await;
                }
            }
            Outgoing::Flush(flushed) => {
                let _ = timeout(ANSWER_TIME, connection.client.flush()).await;
                let _ = flushed.send(());
            }
        }
    }
}

async fn subscribe(connection: &Connection, subject: String) -> Result<Subscription, BusError> {
    let failed =
        |error: &dyn std::fmt::Display| BusError::Refused(Said::of_others(error.to_string()));
    let (to, messages) = mpsc::channel(WAITING_MAX);
    let forbidden = connection.state.claim(vec![subject.clone()].into());
    let subscriber = connection.client.subscribe(subject).await.map_err(|error| failed(&error))?;
    tokio::spawn(hand_on(subscriber, to));
    if !matches!(*connection.state.link.borrow(), Link::Up) {
        return Ok(messages); // The client subscribes when it reconnects.
    }
    // The bus replies in order: with this reply, any refusal of the name has arrived.
    let asked = async {
        let nobody = Request::new().timeout(Some(ANSWER_TIME));
        let _ = connection.client.send_request(names::NOBODY, nobody).await;
        tokio::task::yield_now().await;
    };
    tokio::select! {
        biased;
        Ok(said) = forbidden => Err(BusError::Refused(said)),
        () = asked => Ok(messages),
    }
}

async fn hand_on(mut subscriber: Subscriber, to: mpsc::Sender<Message>) {
    loop {
        let message = tokio::select! {
            message = subscriber.next() => message,
            () = to.closed() => None,
        };
        let Some(message) = message else { return };
        let revision = message.headers.as_ref().and_then(|headers| {
            headers.get(async_nats::header::NATS_SEQUENCE)?.as_str().parse().ok()
        });
        // If a queue is full, messages are lost, without affecting other subscribers.
        let _ = to.try_send(Message {
            subject: names::ours(&message.subject).to_string(),
            payload: message.payload,
            reply: message.reply.map(|reply| reply.to_string()),
            revision,
        });
    }
}

async fn request(
    client: &Client,
    subject: &str,
    payload: Bytes,
    within: Duration,
) -> Result<Bytes, BusError> {
    let asked = async {
        loop {
            let request = Request::new().payload(payload.clone()).timeout(Some(within));
            match client.send_request(subject.to_string(), request).await {
                Ok(answer) => return Ok(answer.payload),
                Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                    sleep(NOBODY_PAUSE).await;
                }
                Err(_) => return Err(BusError::Cut),
            }
        }
    };
    timeout(within, asked).await.unwrap_or(Err(BusError::Cut))
}

/// Stores a message in a stream; returns its sequence.
async fn keep(
    connection: &Connection,
    subject: String,
    payload: Bytes,
    message: PublishMessage,
) -> Result<u64, BusError> {
    let length = payload.len();
    let message = message.payload(payload);
    if length > PAYLOAD_BYTES_MAX {
        return Err(too_long());
    }
    let act = async {
        let sent = connection.context.send_publish(subject.clone(), message).await;
        let kept = sent.map_err(|error| kept_not(&error))?.await;
        kept.map(|kept| kept.sequence).map_err(|error| kept_not(&error))
    };
    connection.asked(vec![subject.clone()], act).await
}

#[cfg(test)]
mod tests;
