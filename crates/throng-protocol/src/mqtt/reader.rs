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

/// The packet so far.
#[derive(Debug, Default)]
struct Held(Vec<u8>);

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
        if self.held.is_none() {
            if let Some(header) = parse(input, allowed)?
                && let Some((packet, rest)) = input.split_at_checked(header.packet_bytes())
            {
                *input = rest;
                return Ok(Some(Raw { first: packet[0], body: &packet[header.bytes..] }));
            }
            if input.is_empty() {
                return Ok(None);
            }
        }
        let Held(held) = &mut **self.held.get_or_insert_default();
        loop {
            // A header is continued byte by byte.
            let header = parse(held, allowed)?;
            let wanted = header.map_or(held.len() + 1, Header::packet_bytes);
            let reserved = header.map_or(HEADER_BYTES_MAX, |_| wanted.min(RESERVE_BYTES_MAX));
            held.reserve_exact(reserved.saturating_sub(held.len()));
            let (taken, rest) = input.split_at((wanted - held.len()).min(input.len()));
            held.extend_from_slice(taken);
            *input = rest;
            match header {
                Some(header) if held.len() == wanted => {
                    std::mem::swap(held, whole);
                    self.held = None;
                    return Ok(Some(Raw { first: whole[0], body: &whole[header.bytes..] }));
                }
                _ if taken.is_empty() => return Ok(None),
                _ => {}
            }
        }
    }

    /// Bytes of an incomplete packet.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.0.len())
    }

    /// Its heap memory.
    pub(super) fn heap_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| size_of::<Held>() + held.0.capacity())
    }
}

impl Header {
    fn packet_bytes(self) -> usize {
        self.bytes + self.body_bytes
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
