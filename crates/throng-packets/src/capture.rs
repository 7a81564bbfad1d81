//! Captures, pcap and pcapng: the TCP segments and UDP datagrams in their frames. They are read as
//! a stream, so that a capture may be larger than memory.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, PcapHeader};

/// The largest block of a capture; frames are far smaller.
const BLOCK_BYTES_MAX: usize = 16 << 20;
const BUFFER_BYTES: usize = 64 << 10;
/// Interfaces of one section of a pcapng file.
const INTERFACES_MAX: usize = 4096;
/// The maximum number of nested VLAN tags.
const VLANS_MAX: usize = 4;

/// The content of one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Since 1970; 0 if unknown.
    pub time_ns: u64,
    pub source: SocketAddr,
    pub target: SocketAddr,
    pub carried: Carried,
    pub payload: &'a [u8],
    /// Bytes after the payload that were sent but not captured.
    pub cut_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    Datagram,
    Segment { sequence: u32, acknowledged: Option<u32>, syn: bool, fin: bool, rst: bool },
}

/// Frames that were skipped, so that nothing is ignored silently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub frames: u64,
    /// Neither TCP nor UDP over IP.
    pub others: u64,
    /// Fragments of IP packets, which are not reassembled.
    pub fragments: u64,
    /// Frames with unsupported link types, and the last of these.
    pub foreign: u64,
    pub link_type: i32,
    /// It ends in the middle of a frame, or cannot be read further.
    pub torn: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCapture;

/// True if a file starts like a capture.
pub fn is_capture(bytes: &[u8]) -> bool {
    let Some(magic) = bytes.first_chunk::<4>() else { return false };
    let magics = [0xa1b2_c3d4u32, 0xa1b2_3c4d, 0xa1b2_cd34, 0x0a0d_0d0a];
    let (big, little) = (u32::from_be_bytes(*magic), u32::from_le_bytes(*magic));
    magics.contains(&big) || magics.contains(&little)
}

/// Reads a capture to its end, or to the first error.
pub fn read(input: impl Read + Send, sink: &mut dyn FnMut(Frame<'_>)) -> Result<Passed, NoCapture> {
    let input = Filling(input);
    let mut reader = pcap_parser::create_reader(BUFFER_BYTES, input).map_err(|_| NoCapture)?;
    let mut reading = Reading::default();
    let mut capacity = BUFFER_BYTES;
    loop {
        match step(&mut *reader, &mut reading, sink) {
            Step::Read(bytes) => reader.consume(bytes),
            Step::End => break,
            Step::Torn => {
                reading.passed.torn = true;
                break;
            }
            Step::More => {
                let (before, exhausted) = (reader.data().len(), reader.reader_exhausted());
                let refilled = reader.refill().is_ok();
                if refilled && reader.data().len() > before {
                    continue;
                }
                // The block is larger than the buffer, or the file ends within it.
                capacity *= 2;
                let is_end = exhausted || !refilled || capacity > BLOCK_BYTES_MAX;
                if is_end || !reader.grow(capacity) {
                    reading.passed.torn = true;
                    break;
                }
            }
        }
    }
    Ok(reading.passed)
}

/// Fills each buffer completely: the format is detected in the first read, and a pipe may return
/// few bytes.
struct Filling<R>(R);

impl<R: Read> Read for Filling<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if filled == 0 => return Err(error),
                // The next read returns the error again.
                Err(_) => break,
            }
        }
        Ok(filled)
    }
}

/// One IP packet in the output of `tcpdump -x`.
pub fn read_packet<'a>(packet: &'a [u8], passed: &mut Passed) -> Option<Frame<'a>> {
    passed.frames += 1;
    frame_of_ip(packet, 0, 0, passed)
}

enum Step {
    Read(usize),
    More,
    End,
    Torn,
}

#[derive(Default)]
struct Reading {
    passed: Passed,
    legacy: Option<PcapHeader>,
    interfaces: Vec<Interface>,
}

struct Interface {
    link: Linktype,
    snapped_bytes_max: u32,
    /// Resolution of timestamps, in units per second.
    resolution: u64,
    offset_s: i64,
}

fn step(
    reader: &mut dyn PcapReaderIterator,
    reading: &mut Reading,
    sink: &mut dyn FnMut(Frame<'_>),
) -> Step {
    match reader.next() {
        Ok((0, _)) => Step::Torn,
        Ok((bytes, block)) => {
            reading.block(block, sink);
            Step::Read(bytes)
        }
        Err(PcapError::Eof) => Step::End,
        Err(PcapError::Incomplete(_) | PcapError::BufferTooSmall) => Step::More,
        Err(_) => Step::Torn,
    }
}

impl Reading {
    fn block(&mut self, block: PcapBlockOwned<'_>, sink: &mut dyn FnMut(Frame<'_>)) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => self.legacy = Some(header),
            PcapBlockOwned::Legacy(block) => {
                let Some(header) = &self.legacy else { return };
                let unit = if header.is_nanosecond_precision() { 1 } else { 1_000 };
                let link = header.network;
                let time_ns = u64::from(block.ts_sec) * 1_000_000_000;
                let time_ns = time_ns.saturating_add(u64::from(block.ts_usec) * unit);
                let cut = (block.origlen as usize).saturating_sub(block.data.len());
                self.frame(link, time_ns, block.data, cut, sink);
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                let interface = Interface {
                    link: block.linktype,
                    snapped_bytes_max: block.snaplen,
                    resolution: block.ts_resolution().filter(|it| *it > 0).unwrap_or(1_000_000),
                    offset_s: block.ts_offset(),
                };
                if self.interfaces.len() < INTERFACES_MAX {
                    self.interfaces.push(interface);
                }
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                let Some(interface) = self.interfaces.get(block.if_id as usize) else {
                    self.passed.frames += 1;
                    self.passed.others += 1;
                    return;
                };
                let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                let (link, time_ns) = (interface.link, interface.time_ns(ticks));
                let captured = (block.caplen as usize).min(block.data.len());
                let cut = (block.origlen as usize).saturating_sub(captured);
                self.frame(link, time_ns, &block.data[..captured], cut, sink);
            }
            PcapBlockOwned::NG(Block::SimplePacket(block)) => {
                let Some(interface) = self.interfaces.first() else { return };
                let snapped = match interface.snapped_bytes_max {
                    0 => usize::MAX,
                    bytes => bytes as usize,
                };
                let captured = (block.origlen as usize).min(snapped).min(block.data.len());
                let cut = (block.origlen as usize).saturating_sub(captured);
                self.frame(interface.link, 0, &block.data[..captured], cut, sink);
            }
            PcapBlockOwned::NG(_) => {}
        }
    }

    fn frame(
        &mut self,
        link: Linktype,
        time_ns: u64,
        bytes: &[u8],
        cut_bytes: usize,
        sink: &mut dyn FnMut(Frame<'_>),
    ) {
        self.passed.frames += 1;
        match ip_of(link, bytes) {
            Link::Ip(packet) => {
                if let Some(frame) = frame_of_ip(packet, time_ns, cut_bytes, &mut self.passed) {
                    sink(frame);
                }
            }
            Link::Other => self.passed.others += 1,
            Link::Foreign => {
                self.passed.foreign += 1;
                self.passed.link_type = link.0;
            }
        }
    }
}

impl Interface {
    fn time_ns(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.resolution.max(1));
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        let ns = i128::try_from(ns).unwrap_or(i128::MAX).saturating_add(offset);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

enum Link<'a> {
    Ip(&'a [u8]),
    Other,
    Foreign,
}

/// The numbers of link types are those of tcpdump's registry (LINKTYPE_…).
fn ip_of(link: Linktype, bytes: &[u8]) -> Link<'_> {
    let behind = |header: usize| bytes.get(header..).map_or(Link::Other, Link::Ip);
    let typed = |at: usize, header: usize| match (bytes.get(at..at + 2), bytes.get(header..)) {
        (Some(ether_type), Some(rest)) => ip_of_ether(ether_type, rest),
        _ => Link::Other,
    };
    match link.0 {
        // NULL and LOOP: an address family before the packet.
        0 | 108 => behind(4),
        1 => typed(12, 14),
        // RAW in its platform-specific numbers, RAW, IPV4, IPV6.
        12 | 14 | 101 | 228 | 229 => behind(0),
        // LINUX_SLL and LINUX_SLL2.
        113 => typed(14, 16),
        276 => typed(0, 20),
        _ => Link::Foreign,
    }
}

fn ip_of_ether<'a>(ether_type: &[u8], mut rest: &'a [u8]) -> Link<'a> {
    let mut ether_type = [ether_type[0], ether_type[1]];
    for _ in 0..=VLANS_MAX {
        match u16::from_be_bytes(ether_type) {
            0x0800 | 0x86dd => return Link::Ip(rest),
            0x8100 | 0x88a8 | 0x9100 => match rest {
                [_, _, high, low, inner @ ..] => (ether_type, rest) = ([*high, *low], inner),
                _ => return Link::Other,
            },
            _ => return Link::Other,
        }
    }
    Link::Other
}

fn frame_of_ip<'a>(
    packet: &'a [u8],
    time_ns: u64,
    cut_bytes: usize,
    passed: &mut Passed,
) -> Option<Frame<'a>> {
    let mut other = || {
        passed.others += 1;
        None
    };
    let Ok(sliced) = LaxSlicedPacket::from_ip(packet) else { return other() };
    let (source, target, ip): (IpAddr, IpAddr, _) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into(), ip.payload())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into(), ip.payload())
        }
        _ => return other(),
    };
    if ip.fragmented {
        passed.fragments += 1;
        return None;
    }
    // Ethernet padding after the packet was not truncated.
    let cut_bytes = if ip.incomplete { cut_bytes } else { 0 };
    let (source_port, target_port, carried, payload) = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let carried = Carried::Segment {
                sequence: tcp.sequence_number(),
                acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
                syn: tcp.syn(),
                fin: tcp.fin(),
                rst: tcp.rst(),
            };
            (tcp.source_port(), tcp.destination_port(), carried, tcp.payload())
        }
        Some(TransportSlice::Udp(udp)) => {
            (udp.source_port(), udp.destination_port(), Carried::Datagram, udp.payload())
        }
        _ => return other(),
    };
    let (source, target) =
        (SocketAddr::new(source, source_port), SocketAddr::new(target, target_port));
    Some(Frame { time_ns, source, target, carried, payload, cut_bytes })
}

#[cfg(test)]
pub mod sample;
#[cfg(test)]
mod tests;
