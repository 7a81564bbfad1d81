//! The cost of users and connections without a measurement: the figures that `plan` and `doctor`
//! use, each with its source.

use crate::Root;
use crate::network::{DATAGRAM_SLAB_BYTES, SocketCost, slab};

/// Memory of throng per user, minimum and maximum: 884 B for a WebSocket user in `cargo xtask bench
/// million` (docs/benchmarks.md).
pub const USER_BYTES: (u64, u64) = (700, 1_200);
/// Memory of `throng target` per connection, minimum and maximum.
pub const TARGET_BYTES: (u64, u64) = (600, 1_000);
/// Additional memory of a TLS session, minimum and maximum; 10,000 users with a handshake each took
/// 9.7 KB.
pub const TLS_BYTES: (u64, u64) = (4_000, 16_000);
/// The same as a single figure.
pub const TLS_BYTES_USUAL: u64 = 9_700;

/// CPU to open a connection, including upgrade and login: about the middle of 30 to 60 µs
/// (docs/benchmarks.md, `A connection per request`; `cargo xtask bench million`).
pub const CONNECT_CPU_NS: f64 = 45_000.0;
/// Additional CPU of a TLS handshake: 10,000 users with a full handshake each took 0.42 ms with
/// their login.
pub const HANDSHAKE_CPU_NS: f64 = 360_000.0;
/// CPU of a request or message with its response on a kept connection, at rates that load the
/// processors: 6 to 8 µs without idle time, 36 µs if each wakeup handles one response
/// (docs/benchmarks.md, `Keep-alive`, `WebSocket echo`).
pub const REQUEST_CPU_NS: f64 = 10_000.0;

/// Descriptors of a table that are reserved, as in the engine.
pub const DESCRIPTORS_RESERVED: u64 = 100;
/// A smaller table is unusable, as in the engine.
pub const DESCRIPTORS_MIN: u64 = 48;

/// The number of connections that fit into a table of this size. Half of a small table is reserved.
pub fn connections_of_table(descriptors: u64) -> u64 {
    match descriptors {
        ..DESCRIPTORS_MIN => 0,
        _ => descriptors - DESCRIPTORS_RESERVED.min(descriptors / 2),
    }
}

/// How long a silently dropped connection is kept, as in the engine: with its socket, descriptor
/// and port.
pub const KEPT_SECONDS: f64 = 120.0;
/// The share of a table for silently dropped connections, and their maximum, as in the engine.
pub const KEPT_SHARE: u64 = 8;
pub const KEPT_COUNT_MAX: u64 = 4_096;

/// How many of them a table of this size keeps; they reduce the room for users.
pub fn kept_of_table(descriptors: u64) -> u64 {
    (connections_of_table(descriptors) / KEPT_SHARE).min(KEPT_COUNT_MAX)
}

/// The maximum number of shards of a run.
pub const SHARDS_MAX: u64 = 4_096;
/// The number of source ports with the widest `net.ipv4.ip_local_port_range`.
pub const SOURCE_PORTS_MAX: u64 = 64_512;
/// How long the port of a connection that throng closed is unavailable (TCP_TIMEWAIT_LEN).
pub const TIME_WAIT_SECONDS: f64 = 60.0;

/// A kernel object that every open and polled socket has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketPart {
    /// Its slab in `/proc/slabinfo`.
    pub slab: &'static str,
    pub bytes: u64,
}

/// The objects and their sizes if the kernel does not report them: measured in `/proc/slabinfo` of
/// Linux 6.18 on x86-64, whole pages divided by the objects on them.
const SOCKET_PARTS: [SocketPart; 5] = [
    SocketPart { slab: "TCP", bytes: 2_521 },
    SocketPart { slab: "sock_inode_cache", bytes: 862 },
    SocketPart { slab: "filp", bytes: 195 },
    SocketPart { slab: "dentry", bytes: 195 },
    SocketPart { slab: "eventpoll_epi", bytes: 128 },
];

/// The kernel memory of one socket, by object; true if the kernel reported it. With `datagrams` it
/// is a UDP socket, otherwise TCP.
pub fn socket_parts(root: &Root, datagrams: bool) -> ([SocketPart; 5], bool) {
    let text = root.read("proc/slabinfo").unwrap_or_default();
    let told = SOCKET_PARTS.map(|part| slab(&text, part.slab));
    let mut parts = SOCKET_PARTS;
    // The same rule as in `SocketCost`: without these three, the cost is unknown.
    let is_told = told[..3].iter().all(Option::is_some);
    if is_told {
        for (part, told) in parts.iter_mut().zip(told) {
            part.bytes = told.unwrap_or(part.bytes);
        }
    }
    if datagrams {
        let told = slab(&text, "UDP").filter(|_| is_told);
        parts[0] = SocketPart { slab: "UDP", bytes: told.unwrap_or(DATAGRAM_SLAB_BYTES) };
    }
    (parts, is_told)
}

/// The kernel memory of a socket if this share, from 0 to 1, are UDP sockets.
pub fn socket_bytes(root: &Root, datagrams: f64) -> u64 {
    let cost = SocketCost::read(root);
    let of_tcp = cost.open_bytes as f64 * (1.0 - datagrams);
    (of_tcp + cost.datagram_bytes as f64 * datagrams).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_socket_add_up_to_its_cost() {
        let files = tempfile::tempdir().unwrap();
        let root = Root::new(files.path());
        let agree = |is_told: bool| {
            let cost = SocketCost::read(&root);
            for (datagrams, want) in [(false, cost.open_bytes), (true, cost.datagram_bytes)] {
                let (parts, told) = socket_parts(&root, datagrams);
                assert_eq!((parts.iter().map(|part| part.bytes).sum(), told), (want, is_told));
            }
            assert!(cost.datagram_bytes < cost.open_bytes);
            assert_eq!(socket_bytes(&root, 1.0), cost.datagram_bytes);
        };
        agree(false);
        std::fs::create_dir(files.path().join("proc")).unwrap();
        let slabs = "TCP 5 12 2432 12 8\nsock_inode_cache 1 2 832 19 4\nfilp 1 2 192 21 1\n";
        std::fs::write(files.path().join("proc/slabinfo"), slabs).unwrap();
        agree(true);
        let slabs = format!("{slabs}UDP 24 24 1280 12 4 8\n");
        std::fs::write(files.path().join("proc/slabinfo"), slabs).unwrap();
        agree(true);
    }
}
