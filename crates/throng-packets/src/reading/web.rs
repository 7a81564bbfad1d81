//! WebSockets in captures: the upgrade is skipped, and messages are packets. Other HTTP requests to
//! the same port are skipped, too.

use throng_base::Said;
use throng_protocol::websocket::{Deflate, FrameReader, Inflater, Limits, Message, Role};

use crate::streams::Direction;

/// The maximum size of the upgrade request or response.
const HEAD_BYTES_MAX: usize = 64 << 10;

pub(super) struct Web {
    state: WebState,
    head: Vec<u8>,
    reader: FrameReader,
    inflater: Inflater,
    /// Text messages are packets, too.
    is_text: bool,
    /// Bytes of the stream so far.
    position: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum WebState {
    Head,
    Frames,
    /// The start of the next frame is unknown.
    Lost,
}

type Sink<'s> = &'s mut dyn FnMut(u64, Result<&[u8], Said>);

impl Web {
    pub(super) fn new(direction: Direction, is_text: bool) -> Web {
        let role = match direction {
            Direction::Up => Role::Server,
            Direction::Down => Role::Client,
        };
        // The negotiated extensions need not be known: a frame says whether it is compressed, and a
        // decompressor with context takeover also reads messages without it.
        let reader = FrameReader::new(role, Some(Deflate::CONTEXT_TAKEOVER));
        let (state, head, inflater) = (WebState::Head, Vec::new(), Inflater::new());
        Web { state, head, reader, inflater, is_text, position: 0 }
    }

    pub(super) fn after_gap(mut self) -> Web {
        self.state = WebState::Lost;
        self
    }

    /// Passes on the payloads of messages, and errors.
    pub(super) fn read(&mut self, bytes: &[u8], sink: Sink<'_>) {
        let position = self.position;
        self.position += bytes.len() as u64;
        match self.state {
            WebState::Lost => {}
            WebState::Frames => self.frames(bytes, position, sink),
            WebState::Head => {
                self.head.extend_from_slice(bytes);
                let seen = self.head.len().min(4);
                if ![b"GET ", b"HTTP"].iter().any(|start| start.starts_with(&self.head[..seen])) {
                    // The upgrade preceded the capture.
                    self.state = WebState::Frames;
                    let head = std::mem::take(&mut self.head);
                    return self.frames(&head, position, sink);
                }
                let end = self.head.windows(4).position(|part| part == b"\r\n\r\n");
                if let Some(end) = end {
                    let head = std::mem::take(&mut self.head);
                    self.state =
                        if is_upgrade(&head[..end]) { WebState::Frames } else { WebState::Lost };
                    if self.state == WebState::Frames {
                        self.frames(&head[end + 4..], position, sink);
                    }
                } else if self.head.len() > HEAD_BYTES_MAX {
                    self.state = WebState::Lost;
                    self.head = Vec::new();
                    sink(position, Err(say!("the WebSocket upgrade is not complete")));
                }
            }
        }
    }

    fn frames(&mut self, bytes: &[u8], position: u64, sink: Sink<'_>) {
        let (limits, mut rest, mut room) = (Limits::default(), bytes, Vec::new());
        loop {
            match self.reader.next(&mut rest, &limits, &mut self.inflater, &mut room) {
                Ok(Some(Message::Binary(packet))) => sink(position, Ok(packet)),
                Ok(Some(Message::Text(text))) if self.is_text => {
                    sink(position, Ok(text.as_bytes()));
                }
                Ok(Some(Message::Text(_))) => {
                    let reason = say!("this is a text message; packets must be binary messages");
                    sink(position, Err(reason));
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    self.state = WebState::Lost;
                    return sink(position, Err(Said::of_others(error.to_string())));
                }
            }
        }
    }
}

/// True if a head requests or accepts an upgrade.
fn is_upgrade(head: &[u8]) -> bool {
    let is_word = |part: &[u8]| part.eq_ignore_ascii_case(b"\nupgrade:");
    head.windows(b"\nupgrade:".len()).any(is_word)
}
