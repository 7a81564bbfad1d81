//! The state of this host's network stack: dropped packets and connections, the cost of its
//! sockets, and the number of source ports.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Root;
use crate::kernel::{counters, interfaces, sockets, softnet};
use crate::system::page_bytes;

/// The kernel memory of an open and polled TCP socket if the kernel does not report it: TCP 2,521,
/// its inode 862, its file 195, its directory entry 195, its epoll entry 128. Measured in
/// `/proc/slabinfo` of Linux 6.18 on x86-64, whole pages divided by the objects on them.
const SOCKET_BYTES: u64 = 3_901;
/// The same for a UDP socket, whose own object is smaller.
const DATAGRAM_SOCKET_BYTES: u64 = SOCKET_BYTES - 2_521 + DATAGRAM_SLAB_BYTES;
pub(crate) const DATAGRAM_SLAB_BYTES: u64 = 1_365;
const TIME_WAIT_BYTES: u64 = 256;
/// Every open TCP socket has one of each.
const SOCKET_SLABS: [&str; 5] = ["TCP", "sock_inode_cache", "filp", "dentry", "eventpoll_epi"];

/// Counters since the start of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drops {
    /// Packets dropped because the queue of a processor was full.
    pub(crate) packets: u64,
    /// Connections dropped because the queue of a listener was full or memory was short.
    pub(crate) connections: u64,
}

impl Drops {
    pub(crate) fn read(root: &Root) -> Drops {
        Drops {
            packets: root.read("proc/net/softnet_stat").map_or(0, |text| packets(&text)),
            connections: root.read("proc/net/netstat").map_or(0, |text| connections(&text)),
        }
    }

    pub(crate) fn since(self, before: Drops) -> Drops {
        Drops {
            packets: self.packets.saturating_sub(before.packets),
            connections: self.connections.saturating_sub(before.connections),
        }
    }
}

fn packets(text: &str) -> u64 {
    softnet(text).fold(0, |sum, row| sum.saturating_add(row.dropped))
}

/// A connection that overflows the queue is in both counters (tcp_ipv4.c): the larger one includes
/// all of them.
fn connections(text: &str) -> u64 {
    let of_listeners = counters(text, "TcpExt")
        .filter(|(name, _)| ["ListenOverflows", "ListenDrops"].contains(name));
    of_listeners.map(|(_, value)| value).max().unwrap_or(0)
}

/// Traffic of this host's interfaces since their creation: by name, received bytes and packets, and
/// sent ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic(BTreeMap<String, [u64; 4]>);

/// For each value, the busiest direction of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    pub bits_per_s: f64,
    pub packets_per_s: f64,
}

impl Traffic {
    pub(crate) fn read(root: &Root) -> Traffic {
        let text = root.read("proc/net/dev").unwrap_or_default();
        let all = interfaces(&text).map(|it| {
            let ([bytes_in, packets_in, ..], [bytes_out, packets_out, ..]) = (it.received, it.sent);
            (it.name.to_string(), [bytes_in, packets_in, bytes_out, packets_out])
        });
        Traffic(all.collect())
    }

    /// `None` if the kernel does not report it.
    pub(crate) fn since(&self, before: &Traffic, passed: Duration) -> Option<Throughput> {
        let mut most = [0; 4];
        for (name, now) in &self.0 {
            let Some(before) = before.0.get(name) else { continue };
            for (most, (now, before)) in most.iter_mut().zip(now.iter().zip(before)) {
                *most = (*most).max(now.saturating_sub(*before));
            }
        }
        let [bytes_in, packets_in, bytes_out, packets_out] = most;
        let per_s = |count: u64| count as f64 / passed.as_secs_f64().max(0.001);
        (!self.0.is_empty()).then(|| Throughput {
            bits_per_s: per_s(bytes_in.max(bytes_out)) * 8.0,
            packets_per_s: per_s(packets_in.max(packets_out)),
        })
    }
}

/// The sockets of the whole host: TCP and UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sockets {
    /// Sockets of every kind, in all network namespaces.
    allocated: u64,
    pub(crate) time_wait: u64,
    /// The bytes in their queues.
    queued_bytes: u64,
    /// UDP sockets in this network namespace.
    datagram: u64,
}

impl Sockets {
    pub(crate) fn read(root: &Root) -> Option<Sockets> {
        let text = root.read("proc/net/sockstat")?;
        let value = |protocol: &str, name: &str| {
            sockets(&text).find(|row| (row.0, row.1) == (protocol, name)).map(|row| row.2)
        };
        let pages = |protocol: &str| value(protocol, "mem").unwrap_or(0);
        let queued = pages("TCP").saturating_add(pages("UDP"));
        Some(Sockets {
            allocated: value("TCP", "alloc").or_else(|| value("TCP", "inuse"))?,
            time_wait: value("TCP", "tw").unwrap_or(0),
            queued_bytes: queued.saturating_mul(page_bytes()),
            datagram: value("UDP", "inuse").unwrap_or(0),
        })
    }

    /// The kernel memory of all of them.
    pub(crate) fn bytes(self, cost: SocketCost) -> u64 {
        let open = self.allocated.saturating_mul(cost.open_bytes);
        let waiting = self.time_wait.saturating_mul(cost.time_wait_bytes);
        let datagram = self.datagram.saturating_mul(cost.datagram_bytes);
        let sockets = open.saturating_add(waiting).saturating_add(datagram);
        sockets.saturating_add(self.queued_bytes)
    }
}

/// The kernel memory of one socket on this host, without its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketCost {
    /// For TCP.
    pub open_bytes: u64,
    /// For UDP.
    pub datagram_bytes: u64,
    pub time_wait_bytes: u64,
    /// The kernel reported it, which requires root. Otherwise, the sizes of Linux 6.18 on x86-64.
    pub is_measured: bool,
}

impl SocketCost {
    /// Sizes do not change while a kernel runs: read once.
    pub fn read(root: &Root) -> SocketCost {
        let text = root.read("proc/slabinfo").unwrap_or_default();
        let sizes = SOCKET_SLABS.map(|name| slab(&text, name));
        // Kernels merge slabs of one size; an object without its own slab has about the known size.
        match sizes {
            [Some(tcp), Some(inode), Some(file), entry, poll] => SocketCost {
                open_bytes: sum([tcp, inode, file, entry.unwrap_or(195), poll.unwrap_or(128)]),
                datagram_bytes: sum([
                    slab(&text, "UDP").unwrap_or(DATAGRAM_SLAB_BYTES),
                    inode,
                    file,
                    entry.unwrap_or(195),
                    poll.unwrap_or(128),
                ]),
                time_wait_bytes: slab(&text, "tw_sock_TCP").unwrap_or(TIME_WAIT_BYTES),
                is_measured: true,
            },
            _ => SocketCost {
                open_bytes: SOCKET_BYTES,
                datagram_bytes: DATAGRAM_SOCKET_BYTES,
                time_wait_bytes: TIME_WAIT_BYTES,
                is_measured: false,
            },
        }
    }
}

fn sum(bytes: [u64; 5]) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// Datagrams that were dropped since the start of the host because the queue of their socket was
/// full.
pub(crate) fn datagrams_dropped(root: &Root) -> Option<u64> {
    let text = root.read("proc/net/snmp")?;
    counters(&text, "Udp").find(|(name, _)| *name == "RcvbufErrors").map(|(_, value)| value)
}

/// The memory of an object in this slab, including its part of the pages.
pub(crate) fn slab(text: &str, name: &str) -> Option<u64> {
    let mut words = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?
        .split_whitespace()
        .map(|word| word.parse::<u64>().ok());
    // active_objs num_objs objsize objperslab pagesperslab
    let size = words.nth(2)??;
    let (per_slab, pages) = (words.next()??, words.next()??);
    let whole = pages.checked_mul(page_bytes())?.checked_div(per_slab)?;
    // A result above twice the object size is not plausible.
    (size > 0 && whole >= size && whole / 2 <= size).then_some(whole)
}

/// The number of source ports that the kernel chooses from: the range without the reserved ones.
/// `range` overrides the system's range.
pub fn source_ports(root: &Root, range: Option<(u16, u16)>) -> Option<u64> {
    let (first, last) = range.or_else(|| crate::facts::port_range(root))?;
    let ports = u64::from(last.checked_sub(first)?) + 1;
    let reserved = root.line("proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    let within = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u16, u16) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        let (from, to) = (from.max(first), to.min(last));
        Some(u64::from(to.checked_sub(from)?) + 1)
    };
    let reserved: u64 = reserved.split(',').filter_map(within).sum();
    Some(ports.saturating_sub(reserved))
}
