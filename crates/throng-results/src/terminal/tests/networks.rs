//! Tests the text about simulated networks and their packets.

use throng_metrics::Packets;

use super::*;
use crate::directory::NetworkInfo;

fn summary_with(packets: &Packets) -> Summary {
    let network = NetworkInfo { session: "mobile".into(), network: "delay 50ms, loss 1%".into() };
    let mut info = sample::info();
    info.tables.networks.push(network);
    let mut intervals = sample::intervals();
    let measured = intervals.iter_mut().rev().take(5);
    measured.for_each(|interval| interval.traffic.packets = packets.clone());
    sample::summary_of(info, &intervals, &sample::events())
}

#[test]
fn networks_are_listed_with_dropped_and_late_packets() {
    let in_time = Packets { carried: 1_000, lost: 12, late: 10, ..Packets::default() };
    let text = summary_text(&summary_with(&in_time), &full());
    for said in ["mobile · delay 50ms, loss 1%", "5,000 delivered", "60 lost by the network"] {
        assert!(text.contains(said), "{text}");
    }
    assert!(!text.contains("packets-late"), "{text}");
    let late = Packets { late: 11, ..in_time.clone() };
    let dropped = Packets { overflowed: 1, ..in_time };
    for packets in [late, dropped] {
        let summary = summary_with(&packets);
        let text = summary_text(&summary, &full());
        assert!(text.contains("error[packets-late]: throng could not carry the packets"), "{text}");
        assert_eq!(crate::verdict::exit_code(&summary).code(), 5);
    }
}
