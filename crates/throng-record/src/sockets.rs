//! A forwarded WebSocket: bytes are forwarded immediately, and the messages in them are recorded.

use std::sync::Arc;

use throng_base::clock::wall_now;
use throng_protocol::websocket::{FrameReader, Inflater, Limits, Message, Role};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};

use crate::entry::{SocketContent, SocketMessage};
use crate::exchange::Exchange;

const READ_BYTES: usize = 16 * 1024;
/// Maximum number of recorded messages per connection, and their size.
const MESSAGES_MAX: usize = 10_000;
const MESSAGES_BYTES_MAX: usize = 16 << 20;

/// Forwards the data of both sides until one of them ends.
pub(crate) async fn relay(
    client: impl AsyncRead + AsyncWrite,
    service: impl AsyncRead + AsyncWrite,
    exchange: Option<Arc<Exchange>>,
) {
    let (mut from_client, mut to_client) = split(client);
    let (mut from_service, mut to_service) = split(service);
    let listener = |role| exchange.clone().map(|exchange| Listener::new(exchange, role));
    tokio::select! {
        () = pump(&mut from_client, &mut to_service, listener(Role::Server)) => {}
        () = pump(&mut from_service, &mut to_client, listener(Role::Client)) => {}
    }
    let _ = tokio::join!(to_client.shutdown(), to_service.shutdown());
}

async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut listener: Option<Listener>,
) {
    let mut bytes = vec![0; READ_BYTES];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if let Some(listener) = &mut listener {
            listener.hear(&bytes[..count]);
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            break;
        }
    }
}

/// Records the messages of one direction.
struct Listener {
    exchange: Arc<Exchange>,
    reader: FrameReader,
    /// The client's messages are parsed like on a server.
    is_sent: bool,
    inflater: Inflater,
    kept_bytes: usize,
}

impl Listener {
    fn new(exchange: Arc<Exchange>, role: Role) -> Listener {
        let reader = FrameReader::new(role, None);
        let is_sent = role == Role::Server;
        Listener { exchange, reader, is_sent, inflater: Inflater::new(), kept_bytes: 0 }
    }

    fn hear(&mut self, mut bytes: &[u8]) {
        let (limits, mut room) = (Limits::default(), Vec::new());
        // Invalid WebSocket data is forwarded too.
        while let Ok(Some(message)) =
            self.reader.next(&mut bytes, &limits, &mut self.inflater, &mut room)
        {
            let content = match message {
                Message::Text(text) => SocketContent::Text(text.to_string()),
                Message::Binary(bytes) => SocketContent::Binary(bytes.to_vec()),
                Message::Ping(_) | Message::Pong(_) | Message::Close { .. } => continue,
            };
            self.kept_bytes += match &content {
                SocketContent::Text(text) => text.len(),
                SocketContent::Binary(bytes) => bytes.len(),
            };
            let mut entry = self.exchange.entry();
            let messages = entry.messages.get_or_insert_default();
            if messages.len() < MESSAGES_MAX && self.kept_bytes <= MESSAGES_BYTES_MAX {
                let (is_sent, time) = (self.is_sent, wall_now());
                messages.push(SocketMessage { is_sent, time, content });
            }
        }
    }
}
