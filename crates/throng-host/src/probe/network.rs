//! The network of the host: interfaces, counters of TCP and UDP, sockets, packets, conntrack.

use super::series::Figures;
use crate::Root;
use crate::kernel::{column_sum, counters, interfaces, sockets, softnet};

/// A host of containers has one interface for each; its own come first.
const INTERFACES_MAX: usize = 64;
const TCP_EXT: [&str; 19] = [
    "ListenOverflows",
    "ListenDrops",
    "TCPReqQFullDrop",
    "TCPReqQFullDoCookies",
    "SyncookiesSent",
    "SyncookiesRecv",
    "SyncookiesFailed",
    "TCPTimeouts",
    "TCPSynRetrans",
    "TCPLostRetransmit",
    "TCPFastRetrans",
    "TCPAbortOnData",
    "TCPAbortOnMemory",
    "TCPAbortOnTimeout",
    "TCPTimeWaitOverflow",
    "TCPMemoryPressures",
    "TCPRcvQDrop",
    "TCPBacklogDrop",
    "DelayedACKs",
];
const TCP: [&str; 10] = [
    "ActiveOpens",
    "PassiveOpens",
    "AttemptFails",
    "EstabResets",
    "CurrEstab",
    "InSegs",
    "OutSegs",
    "RetransSegs",
    "InErrs",
    "OutRsts",
];
const UDP: [&str; 6] =
    ["InDatagrams", "OutDatagrams", "NoPorts", "InErrors", "RcvbufErrors", "SndbufErrors"];
const SOCKETS: [(&str, &str); 8] = [
    ("TCP", "inuse"),
    ("TCP", "orphan"),
    ("TCP", "tw"),
    ("TCP", "alloc"),
    ("TCP", "mem"),
    ("UDP", "inuse"),
    ("UDP", "mem"),
    ("sockets", "used"),
];
const CONNTRACK: [&str; 3] = ["drop", "early_drop", "insert_failed"];

pub(super) fn read(root: &Root, figures: &mut Figures) {
    devices(&root.read("proc/net/dev").unwrap_or_default(), figures);
    let extended = root.read("proc/net/netstat").unwrap_or_default();
    let simple = root.read("proc/net/snmp").unwrap_or_default();
    protocol(&extended, "TcpExt", &TCP_EXT, figures);
    protocol(&simple, "Tcp", &TCP, figures);
    protocol(&simple, "Udp", &UDP, figures);
    let text = root.read("proc/net/sockstat").unwrap_or_default();
    for (protocol, name, value) in sockets(&text).filter(|it| SOCKETS.contains(&(it.0, it.1))) {
        figures.add(&format!("node_sockstat_{protocol}_{name}"), &[], value as f64);
    }
    for row in softnet(&root.read("proc/net/softnet_stat").unwrap_or_default()) {
        let cpu = row.processor.to_string();
        let labels = [("cpu", cpu.as_str())];
        figures.add("node_softnet_processed_total", &labels, row.processed as f64);
        figures.add("node_softnet_dropped_total", &labels, row.dropped as f64);
        figures.add("node_softnet_times_squeezed_total", &labels, row.squeezed as f64);
    }
    conntrack(root, figures);
}

fn devices(text: &str, figures: &mut Figures) {
    for device in interfaces(text).take(INTERFACES_MAX) {
        for (way, values) in [("receive", device.received), ("transmit", device.sent)] {
            for (what, value) in ["bytes", "packets", "errs", "drop"].into_iter().zip(values) {
                let name = format!("node_network_{way}_{what}_total");
                figures.add(&name, &[("device", device.name)], value as f64);
            }
        }
    }
}

fn protocol(text: &str, protocol: &str, wanted: &[&str], figures: &mut Figures) {
    for (name, value) in counters(text, protocol).filter(|(name, _)| wanted.contains(name)) {
        figures.add(&format!("node_netstat_{protocol}_{name}"), &[], value as f64);
    }
}

fn conntrack(root: &Root, figures: &mut Figures) {
    let number = |name: &str| root.number(format!("proc/sys/net/netfilter/nf_conntrack_{name}"));
    figures.maybe("node_nf_conntrack_entries", &[], number("count"));
    figures.maybe("node_nf_conntrack_entries_limit", &[], number("max"));
    let text = root.read("proc/net/stat/nf_conntrack").unwrap_or_default();
    for column in CONNTRACK {
        let name = format!("node_nf_conntrack_stat_{column}");
        figures.maybe(&name, &[], column_sum(&text, column));
    }
}
