//! Finds packets in bytes, however they are split. Between two packets it owns no buffer.

use super::decode::check_first;
use super::flaw::Flaw;
use super::kind::{PacketType, Version};
use super::wire::{varint, varint_bytes};

/// Most bytes reserved for an announced length. A peer that announces more must send it.
const RESERVE_BYTES_MAX: usize = 64 * 1024;
/// The first byte and the remaining length.
const HEADER_BYTES_MAX: usize = 5;

/// Progress of the next packet of a connection.
#[derive(Debug, Default)]
pub struct PacketReader {
    held: Option<Box<Held>>,
}

const _: () = assert!(size_of::<PacketReader>() <= 8);

#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    /// Size of header and body, once the header is complete.
    header: Option<Header>,
}

#[derive(Clone, Copy, Debug)]
struct Header {
    bytes: usize,
    body_bytes: usize,
}

/// Limits of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    pub(super) version: Version,
    /// Maximum packet size.
    pub(super) bytes_max: u32,
    /// Whether it was announced to the peer.
    pub(super) announced: bool,
}

/// A packet as bytes: its first byte, and everything after its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a> {
    pub(super) first: u8,
    pub(super) body: &'a [u8],
}

/// An error, and its packet.
pub(super) type Refused = (Option<PacketType>, Flaw);

impl PacketReader {
    /// Takes the next packet from `input`; `None` if it is incomplete. A packet that is complete in
    /// `input` is not copied; one that arrived in pieces is swapped into `whole`.
    pub(super) fn next<'e, 'i: 'e>(
        &mut self,
        input: &mut &'i [u8],
        whole: &'e mut Vec<u8>,
        allowed: Allowed,
    ) -> Result<Option<Raw<'e>>, Refused> {
        let Some(held) = &mut self.held else { return self.begin(input, allowed) };
        let header = match held.header {
            Some(header) => header,
            None => match held.complete_header(input, allowed)? {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        let missing = header.bytes + header.body_bytes - held.bytes.len();
        let (taken, rest) = input.split_at(missing.min(input.len()));
        held.bytes.extend_from_slice(taken);
        *input = rest;
        if taken.len() < missing {
            return Ok(None);
        }
        std::mem::swap(&mut held.bytes, whole);
        self.held = None;
        Ok(Some(Raw { first: whole[0], body: &whole[header.bytes..] }))
    }

    /// Between two packets.
    fn begin<'i>(
        &mut self,
        input: &mut &'i [u8],
        allowed: Allowed,
    ) -> Result<Option<Raw<'i>>, Refused> {
        let header = parse(input, allowed)?;
        if let Some(header) = header
            && let Some((packet, rest)) = input.split_at_checked(header.bytes + header.body_bytes)
        {
            *input = rest;
            return Ok(Some(Raw { first: packet[0], body: &packet[header.bytes..] }));
        }
        if !input.is_empty() {
            let mut held = Held { bytes: Vec::new(), header };
            held.reserve();
            held.bytes.extend_from_slice(input);
            *input = &[];
            self.held = Some(Box::new(held));
        }
        Ok(None)
    }

    /// Bytes of an incomplete packet.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.bytes.len())
    }

    /// Its heap memory.
    pub(super) fn heap_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| size_of::<Held>() + held.bytes.capacity())
    }
}

impl Held {
    /// Continues a header byte by byte.
    fn complete_header(
        &mut self,
        input: &mut &[u8],
        allowed: Allowed,
    ) -> Result<Option<Header>, Refused> {
        while let Some((byte, rest)) = input.split_first() {
            self.bytes.push(*byte);
            *input = rest;
            if let Some(header) = parse(&self.bytes, allowed)? {
                self.header = Some(header);
                self.reserve();
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    fn reserve(&mut self) {
        let bytes = self.header.map_or(HEADER_BYTES_MAX, |it| it.bytes + it.body_bytes);
        self.bytes.reserve_exact(bytes.min(RESERVE_BYTES_MAX).saturating_sub(self.bytes.len()));
    }
}

/// The header at the start of `bytes`; `None` if it is incomplete. Invalid ones are rejected before
/// any of the body is kept.
fn parse(bytes: &[u8], allowed: Allowed) -> Result<Option<Header>, Refused> {
    let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
    let packet = PacketType::of(*first, allowed.version);
    let refused = |flaw| (packet, flaw);
    check_first(*first, allowed.version).map_err(refused)?;
    let Some((length, length_bytes)) = varint(rest).map_err(refused)? else { return Ok(None) };
    if allowed.version == Version::V5 && length_bytes != varint_bytes(length) {
        return Err(refused(Flaw::LengthNotShortest));
    }
    let bytes = 1 + length_bytes;
    let (total, bytes_max) = (length + bytes as u32, allowed.bytes_max);
    if total > bytes_max {
        let announced = allowed.announced;
        return Err(refused(Flaw::TooLarge { bytes: total, bytes_max, announced }));
    }
    Ok(Some(Header { bytes, body_bytes: length as usize }))
}
