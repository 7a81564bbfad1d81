//! The response of a call: HTTP/2 events in, messages and a status out.

use std::borrow::Cow;

use super::message::{Encoding, MessageReader, PREFIX_BYTES, Packed};
use super::status::Status;
use super::violation::Violation;
use crate::http1::{ContentDecoder, ContentError, Excerpt};

/// The response of one call. Call [`Response::head`], [`Response::next`] any number of times,
/// [`Response::trailers`] if there are any, and [`Response::end`].
#[derive(Debug, Default)]
pub struct Response {
    reader: MessageReader,
    /// The HTTP status; 0 before the head.
    http: u16,
    encoding: Encoding,
    /// The body comes from a proxy or similar: it contains no messages.
    is_foreign: bool,
    replies: u32,
    status: Option<Box<Status>>,
}

const _: () = assert!(size_of::<Response>() <= 48);

impl Response {
    pub fn new() -> Response {
        Response::default()
    }

    /// The head, which may be the complete response. A response that is not gRPC is not a
    /// violation: its status is derived from the HTTP status.
    pub fn head<'h>(
        &mut self,
        status: u16,
        fields: impl IntoIterator<Item = (&'h [u8], &'h [u8])>,
    ) -> Result<(), Violation> {
        self.http = status;
        let mut is_grpc = false;
        let mut told = Told::default();
        let mut encoding = None;
        for (name, value) in fields {
            told.field(name, value);
            if name.eq_ignore_ascii_case(b"content-type") {
                is_grpc = is_content_type(value);
            } else if name.eq_ignore_ascii_case(b"grpc-encoding") {
                encoding = Some(value);
            }
        }
        self.take(&told)?;
        self.is_foreign = status != 200 || !is_grpc;
        match encoding.map(|name| Encoding::named(name).ok_or(name)) {
            Some(Err(name)) if !self.is_foreign => Err(Violation::Encoding(Excerpt::of(name))),
            Some(Ok(encoding)) => {
                self.encoding = encoding;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads bytes of the body, however they are split, up to the end of the next message.
    pub fn next<'a>(
        &mut self,
        bytes: &mut &'a [u8],
        bytes_max: usize,
    ) -> Result<Option<Packed<'a>>, Violation> {
        if self.is_foreign {
            *bytes = &[];
        }
        let message = self.reader.next(bytes, bytes_max)?;
        if let Some(message) = &message {
            self.replies = self.replies.saturating_add(1);
            if message.is_compressed && self.encoding == Encoding::Identity {
                return Err(Violation::Compressed);
            }
        }
        Ok(message)
    }

    pub fn trailers<'h>(
        &mut self,
        fields: impl IntoIterator<Item = (&'h [u8], &'h [u8])>,
    ) -> Result<(), Violation> {
        let mut told = Told::default();
        fields.into_iter().for_each(|(name, value)| told.field(name, value));
        self.take(&told)
    }

    fn take(&mut self, told: &Told<'_>) -> Result<(), Violation> {
        let Some(status) = told.status else { return Ok(()) };
        let read = Status::read(status, told.message.unwrap_or_default());
        self.status = Some(Box::new(read.ok_or(Violation::Status(Excerpt::of(status)))?));
        Ok(())
    }

    /// The stream ended normally: returns the status of the call. `is_single` for a call with one
    /// reply.
    pub fn end(&mut self, is_single: bool) -> Result<Status, Violation> {
        let status = match self.status.take() {
            Some(status) => *status,
            None => Status::of_http(self.http),
        };
        match self.replies {
            _ if !status.is_ok() => Ok(status),
            _ if !self.reader.is_empty() => Err(Violation::CutOff),
            0 if is_single => Err(Violation::NoReply),
            2.. if is_single => Err(Violation::SecondReply),
            _ => Ok(status),
        }
    }

    /// How many messages have arrived.
    pub fn replies(&self) -> u32 {
        self.replies
    }

    /// The heap memory that it owns.
    pub fn heap_bytes(&self) -> usize {
        self.reader.heap_bytes()
    }
}

/// The status in a head or trailers.
#[derive(Default)]
struct Told<'h> {
    status: Option<&'h [u8]>,
    message: Option<&'h [u8]>,
}

impl<'h> Told<'h> {
    fn field(&mut self, name: &[u8], value: &'h [u8]) {
        if name.eq_ignore_ascii_case(b"grpc-status") {
            self.status = Some(value);
        } else if name.eq_ignore_ascii_case(b"grpc-message") {
            self.message = Some(value);
        }
    }
}

/// `application/grpc`, optionally followed by `+proto` or parameters.
fn is_content_type(value: &[u8]) -> bool {
    let known = super::CONTENT_TYPE.as_bytes();
    let begins = value.get(..known.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(known));
    begins && matches!(value.get(known.len()), None | Some(b'+' | b';' | b' '))
}

impl<'a> Packed<'a> {
    /// The message itself. If it arrived in pieces or compressed, it is in `room`.
    pub fn unpack(self, bytes_max: usize, room: &'a mut Vec<u8>) -> Result<&'a [u8], Violation> {
        if self.is_compressed {
            room.clear();
            if let Some(mut decoder) = ContentDecoder::new(b"gzip", bytes_max as u64)? {
                decoder.write::<ContentError>(&self.bytes[PREFIX_BYTES..], &mut |piece| {
                    room.extend_from_slice(piece);
                    Ok(())
                })?;
                decoder.finish()?;
            }
            return Ok(room);
        }
        Ok(match self.bytes {
            Cow::Borrowed(bytes) => &bytes[PREFIX_BYTES..],
            Cow::Owned(bytes) => {
                *room = bytes;
                &room[PREFIX_BYTES..]
            }
        })
    }
}
