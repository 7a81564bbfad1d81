//! The data of a request and its response.

use std::time::Duration;

use hyper::header::HeaderMap;

/// Maximum size of a recorded body. Longer bodies are forwarded completely.
pub const BODY_BYTES_MAX: usize = 4 << 20;

/// See the module's description.
pub(crate) struct Entry {
    /// Since the Unix epoch.
    pub(crate) begin: Duration,
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) version: &'static str,
    pub(crate) headers: HeaderMap,
    pub(crate) sent: Captured,
    pub(crate) response: Option<Response>,
    /// Why the service did not respond, or why the response was interrupted.
    pub(crate) error: Option<String>,
    /// For a WebSocket.
    pub(crate) messages: Option<Vec<SocketMessage>>,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) version: &'static str,
    pub(crate) headers: HeaderMap,
    pub(crate) received: Captured,
    /// From the start of the request.
    pub(crate) waited: Duration,
}

pub(crate) struct SocketMessage {
    pub(crate) is_sent: bool,
    /// Since the Unix epoch.
    pub(crate) time: Duration,
    pub(crate) content: SocketContent,
}

pub(crate) enum SocketContent {
    Text(String),
    Binary(Vec<u8>),
}

/// The start of a body, and its total length.
#[derive(Default)]
pub(crate) struct Captured {
    pub(crate) bytes: Vec<u8>,
    pub(crate) whole: u64,
}

impl Captured {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.whole += bytes.len() as u64;
        // One byte more than the limit marks a longer body.
        let room = (BODY_BYTES_MAX + 1).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.whole > BODY_BYTES_MAX as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_is_truncated_and_marked() {
        let mut captured = Captured::default();
        captured.push(&vec![b'x'; BODY_BYTES_MAX]);
        assert!(!captured.is_cut());
        captured.push(b"yz");
        assert!(captured.is_cut());
        assert_eq!(
            (captured.bytes.len(), captured.whole),
            (BODY_BYTES_MAX + 1, BODY_BYTES_MAX as u64 + 2)
        );
    }
}
