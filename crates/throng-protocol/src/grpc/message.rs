//! Messages with their prefix: whether they are compressed, and how many bytes they have.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::violation::Violation;

/// The flag and the length before a message.
pub const PREFIX_BYTES: usize = 5;

/// How messages of one direction are compressed; `grpc-encoding` says it.
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

/// Appends a message that `write` appends, with its prefix. Nothing is appended when that fails.
///
/// # Errors
/// What `write` gives.
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

/// A message as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed<'a> {
    pub is_compressed: bool,
    pub bytes: &'a [u8],
}

/// Collects bytes, in any cuts, until a message is complete. Owns heap memory only while one is
/// not.
#[derive(Debug, Default)]
pub struct MessageReader {
    /// The beginning of a message, with its prefix.
    held: Vec<u8>,
}

const _: () = assert!(size_of::<MessageReader>() <= 24);

impl MessageReader {
    pub fn new() -> MessageReader {
        MessageReader::default()
    }

    /// Calls `sink` with every message that is complete; what lies whole in the input is handed on
    /// where it lies. A message of more than `bytes_max` is refused as soon as its prefix is there.
    pub fn read(
        &mut self,
        mut bytes: &[u8],
        bytes_max: usize,
        sink: &mut dyn FnMut(Packed<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        while !self.held.is_empty() && !bytes.is_empty() {
            let wanted = match prefix(&self.held, bytes_max)? {
                None => PREFIX_BYTES,
                Some((_, length)) => PREFIX_BYTES + length,
            };
            let taken = (wanted - self.held.len()).min(bytes.len());
            self.held.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            self.finish(bytes_max, sink)?;
        }
        while let Some((is_compressed, length)) = prefix(bytes, bytes_max)? {
            let Some(message) = bytes.get(PREFIX_BYTES..PREFIX_BYTES + length) else { break };
            bytes = &bytes[PREFIX_BYTES + length..];
            sink(Packed { is_compressed, bytes: message })?;
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    /// Gives out the message that is held when it is complete.
    fn finish(
        &mut self,
        bytes_max: usize,
        sink: &mut dyn FnMut(Packed<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        match prefix(&self.held, bytes_max)? {
            Some((is_compressed, length)) if self.held.len() == PREFIX_BYTES + length => {
                let held = std::mem::take(&mut self.held);
                sink(Packed { is_compressed, bytes: &held[PREFIX_BYTES..] })
            }
            _ => Ok(()),
        }
    }

    /// Whether no message is begun.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The heap memory that the reader owns now.
    pub fn heap_bytes(&self) -> usize {
        self.held.capacity()
    }
}

/// Whether a message is compressed, and its length; None while its prefix is not complete.
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
