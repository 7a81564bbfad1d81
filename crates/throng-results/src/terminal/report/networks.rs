//! Simulated networks of users, and their packets.

use super::super::Style;
use super::super::text::clean;
use super::{labelled, section};
use crate::summary::Summary;

pub(super) fn networks(summary: &Summary, style: &Style) -> String {
    let networks = &summary.info.tables.networks;
    if networks.is_empty() {
        return String::new();
    }
    let lines: Vec<Vec<String>> =
        networks.iter().map(|it| vec![clean(&it.session), clean(&it.network)]).collect();
    let packets = &summary.connections.packets;
    let counters = [
        (packets.carried, say!("{{}} delivered")),
        (packets.lost, say!("{{}} lost by the network")),
        (packets.dropped, say!("{{}} dropped: the queue of a `rate` was full")),
        (packets.late, say!("{{}} delivered more than 10 ms late")),
        (packets.overflowed, say!("{{}} dropped because throng could not keep up")),
    ];
    labelled(say!("network"), &lines, style) + &section(say!("packets"), &counters, style)
}
