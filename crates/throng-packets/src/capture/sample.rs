//! Captures for tests, written byte by byte: frames over several kinds of links, in pcap and
//! pcapng.

/// The encapsulation; the numbers are those of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrap {
    Null,
    Ethernet,
    Vlan,
    Raw,
    Sll,
    Sll2,
}

impl Wrap {
    pub(crate) const ALL: [Wrap; 6] =
        [Wrap::Null, Wrap::Ethernet, Wrap::Vlan, Wrap::Raw, Wrap::Sll, Wrap::Sll2];

    fn link_type(self) -> u32 {
        match self {
            Wrap::Null => 0,
            Wrap::Ethernet | Wrap::Vlan => 1,
            Wrap::Raw => 101,
            Wrap::Sll => 113,
            Wrap::Sll2 => 276,
        }
    }

    fn wrap(self, packet: &[u8]) -> Vec<u8> {
        let is_six = packet.first().is_some_and(|byte| byte >> 4 == 6);
        let ether = if is_six { [0x86, 0xdd] } else { [0x08, 0x00] };
        let mut out = match self {
            Wrap::Null => vec![2, 0, 0, 0],
            Wrap::Ethernet => [&[0; 12][..], &ether].concat(),
            Wrap::Vlan => [&[0; 12][..], &[0x81, 0, 0, 7], &ether].concat(),
            Wrap::Raw => Vec::new(),
            Wrap::Sll => [&[0; 14][..], &ether].concat(),
            Wrap::Sll2 => [&ether[..], &[0; 18]].concat(),
        };
        out.extend(packet);
        out
    }
}

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

/// The ends of a connection: 10.0.0.1:40000 is the client, 10.0.0.2:9000 the server.
pub(crate) const CLIENT: u16 = 40_000;
pub(crate) const SERVER: u16 = 9_000;

/// A TCP segment in IPv4.
pub(crate) fn tcp(from: u16, to: u16, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend(from.to_be_bytes());
    segment.extend(to.to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend([0; 4]);
    segment.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(payload);
    ipv4(from, 6, &segment)
}

/// A UDP datagram in IPv4.
pub(crate) fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    ipv4(from, 17, &datagram(from, to, payload))
}

/// A UDP datagram in IPv6, after an empty options header.
pub(crate) fn udp6(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let datagram = datagram(from, to, payload);
    let mut out = vec![0x60, 0, 0, 0];
    out.extend((datagram.len() as u16 + 8).to_be_bytes());
    out.extend([0, 64]);
    for last in [1, 2] {
        out.extend([0; 15]);
        out.push(last);
    }
    out.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    out.extend(datagram);
    out
}

fn datagram(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(from.to_be_bytes());
    out.extend(to.to_be_bytes());
    out.extend((payload.len() as u16 + 8).to_be_bytes());
    out.extend([0, 0]);
    out.extend(payload);
    out
}

fn ipv4(from: u16, number: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x45, 0];
    out.extend((payload.len() as u16 + 20).to_be_bytes());
    out.extend([0, 0, 0x40, 0, 64, number, 0, 0]);
    let (source, target) = if from == CLIENT { (1, 2) } else { (2, 1) };
    out.extend([10, 0, 0, source, 10, 0, 0, target]);
    out.extend(payload);
    out
}

/// A pcap file; the packets are 1 ms apart.
pub(crate) fn pcap(wrap: Wrap, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(0xa1b2_c3d4u32.to_le_bytes());
    out.extend([2, 0, 4, 0]);
    out.extend([0; 8]);
    out.extend(65_535u32.to_le_bytes());
    out.extend(wrap.link_type().to_le_bytes());
    for (at, packet) in packets.iter().enumerate() {
        let frame = wrap.wrap(packet);
        out.extend(1_000u32.to_le_bytes());
        out.extend((at as u32 * 1_000).to_le_bytes());
        out.extend((frame.len() as u32).to_le_bytes());
        out.extend((frame.len() as u32).to_le_bytes());
        out.extend(frame);
    }
    out
}

/// A pcapng file in the opposite byte order, with times in nanoseconds.
pub(crate) fn pcapng(wrap: Wrap, packets: &[Vec<u8>]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let padded = body.len().next_multiple_of(4);
        let length = (padded as u32 + 12).to_be_bytes();
        let mut out = [&kind.to_be_bytes()[..], &length, body].concat();
        out.resize(8 + padded, 0);
        out.extend(length);
        out
    };
    let section = [&0x1a2b_3c4du32.to_be_bytes()[..], &[0, 1, 0, 0], &[0xff; 8]].concat();
    let mut out = block(0x0a0d_0d0a, &section);
    let mut interface = (wrap.link_type() as u16).to_be_bytes().to_vec();
    interface.extend([0, 0, 0, 0, 0xff, 0xff]);
    // if_tsresol: 10^-9 seconds.
    interface.extend([0, 9, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(block(1, &interface));
    for (at, packet) in packets.iter().enumerate() {
        let frame = wrap.wrap(packet);
        let time = 1_000_000_000_000u64 + at as u64 * 1_000_000;
        let mut body = 0u32.to_be_bytes().to_vec();
        body.extend(time.to_be_bytes());
        body.extend((frame.len() as u32).to_be_bytes());
        body.extend((frame.len() as u32).to_be_bytes());
        body.extend(frame);
        out.extend(block(6, &body));
    }
    out
}
