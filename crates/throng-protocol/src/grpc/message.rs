//! Messages with their prefix: compression flag and length.

use std::borrow::Cow;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::violation::Violation;

/// The flag and the length before a message.
pub const PREFIX_BYTES: usize = 5;

/// Compression of messages in one direction, declared by `grpc-encoding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Identity,
    Gzip,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Identity => "identity",
            Encoding::Gzip => "gzip",
        }
    }

    pub fn named(name: &[u8]) -> Option<Encoding> {
        let all = [Encoding::Identity, Encoding::Gzip];
        all.into_iter().find(|one| name.eq_ignore_ascii_case(one.name().as_bytes()))
    }
}

/// Appends a message that `write` appends, with its prefix. Nothing is appended if that fails.
///
/// # Errors
/// The error of `write`.
pub fn write_message<E>(
    encoding: Encoding,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let begin = out.len();
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    let content = out.len();
    if let Err(error) = write(out) {
        out.truncate(begin);
        return Err(error);
    }
    if encoding == Encoding::Gzip {
        let plain = out.split_off(content);
        let mut encoder = GzEncoder::new(std::mem::take(out), Compression::fast());
        // Writing to memory does not fail.
        let _ = encoder.write_all(&plain);
        *out = encoder.finish().unwrap_or_default();
        out[begin] = 1;
    }
    let length = (out.len() - content) as u32;
    out[begin + 1..content].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// A message as received, with its prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed<'a> {
    pub is_compressed: bool,
    pub bytes: Cow<'a, [u8]>,
}

/// Collects bytes, however they are split, until a message is complete. Owns heap memory only for
/// an incomplete message.
#[derive(Debug, Default)]
pub struct MessageReader {
    /// The start of a message, with its prefix.
    held: Vec<u8>,
}

const _: () = assert!(size_of::<MessageReader>() <= 24);

impl MessageReader {
    pub fn new() -> MessageReader {
        MessageReader::default()
    }

    /// Reads `bytes` up to the end of the next message; `None` if they end before. A message that
    /// is complete in the input is not copied. A message of more than `bytes_max` is rejected as
    /// soon as its prefix is read.
    pub fn next<'a>(
        &mut self,
        bytes: &mut &'a [u8],
        bytes_max: usize,
    ) -> Result<Option<Packed<'a>>, Violation> {
        while !self.held.is_empty() && !bytes.is_empty() {
            let wanted = match prefix(&self.held, bytes_max)? {
                None => PREFIX_BYTES,
                Some((_, length)) => PREFIX_BYTES + length,
            };
            let (piece, rest) = bytes.split_at((wanted - self.held.len()).min(bytes.len()));
            self.held.extend_from_slice(piece);
            *bytes = rest;
            if let Some((is_compressed, length)) = prefix(&self.held, bytes_max)?
                && self.held.len() == PREFIX_BYTES + length
            {
                let bytes = std::mem::take(&mut self.held).into();
                return Ok(Some(Packed { is_compressed, bytes }));
            }
        }
        if let Some((is_compressed, length)) = prefix(bytes, bytes_max)?
            && let Some((message, rest)) = bytes.split_at_checked(PREFIX_BYTES + length)
        {
            *bytes = rest;
            return Ok(Some(Packed { is_compressed, bytes: message.into() }));
        }
        self.held.extend_from_slice(std::mem::take(bytes));
        Ok(None)
    }

    /// Whether no message has started.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The heap memory that the reader owns.
    pub fn heap_bytes(&self) -> usize {
        self.held.capacity()
    }
}

/// Whether a message is compressed, and its length; `None` while its prefix is incomplete.
fn prefix(bytes: &[u8], bytes_max: usize) -> Result<Option<(bool, usize)>, Violation> {
    let flag = match bytes.first() {
        Some(flag @ (0 | 1)) => *flag == 1,
        Some(flag) => return Err(Violation::Flag(*flag)),
        None => return Ok(None),
    };
    let Some([_, length @ ..]) = bytes.first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
    let bytes = u32::from_be_bytes(*length);
    match bytes as usize <= bytes_max {
        true => Ok(Some((flag, bytes as usize))),
        false => Err(Violation::TooLarge { bytes: u64::from(bytes), bytes_max }),
    }
}
