//! `--explain`: the memory of a user by part, compared with the measurement, and the size of the
//! record.

use crate::Plan;
use throng_base::Said;
use throng_base::units::{format_bytes, format_count};
use throng_engine::{SizeKind, TYPICAL_OCTAVES};
use throng_results::terminal::Style;

use super::page::{head, sentence, table};

pub(super) fn explain(plan: &Plan, style: &Style) -> String {
    ours(plan, style) + &kernel(plan, style) + &recorder(plan, style)
}

fn name(kind: SizeKind) -> Said {
    match kind {
        SizeKind::Task => say!("the user (an event loop task)"),
        SizeKind::State => say!("position in the session, times, counters"),
        SizeKind::Connection => say!("its connection"),
        SizeKind::Reader => say!("message reader"),
        SizeKind::Runtime => say!("event loop data, cache line padding"),
        SizeKind::Slot => say!("its slot in the shard"),
        SizeKind::Due => say!("next wake-up time"),
        SizeKind::Connections => say!("its other connections"),
        SizeKind::Socket => say!("event loop data of its socket"),
        SizeKind::Memory => say!("saved values, loops, data rows"),
        SizeKind::Transactions => say!("open transactions"),
        SizeKind::Tls => say!("its TLS session"),
    }
}

fn ours(plan: &Plan, style: &Style) -> String {
    let mut rows = Vec::new();
    for part in &plan.sizes.parts {
        let bytes = format_count(part.bytes);
        let label = name(part.kind).spoken();
        rows.push(match part.kind.is_within() {
            true => [format!("    {label}"), String::new(), bytes],
            false => [label, bytes, String::new()],
        });
    }
    let sum = plan.sizes.user_bytes();
    rows.push([tell!("total"), format_count(sum), String::new()]);
    let measured = plan.measured.as_ref().and_then(|it| it.user_bytes);
    if let Some(measured) = measured {
        let more = (measured / sum as f64 - 1.0) * 100.0;
        let bytes = format_count(measured.round() as u64);
        rows.push([tell!("measured"), bytes, format!("{more:+.0} %")]);
    }
    let mut out = head(say!("memory per user (bytes)"), style) + &table(&rows, style);
    let text = say!(
        "the difference from the measured value is allocator overhead: partly used pages, lists \
         that grow by doubling, and buffers of users connecting simultaneously"
    );
    out += &sentence(text, style);
    out
}

fn kernel(plan: &Plan, style: &Style) -> String {
    let what = |slab: &str| match slab {
        "TCP" => say!("the TCP socket"),
        "UDP" => say!("the UDP socket"),
        "sock_inode_cache" => say!("its inode"),
        "filp" => say!("the open file"),
        "dentry" => say!("its directory entry"),
        _ => say!("its epoll entry"),
    };
    let (parts, is_told) = &plan.socket;
    let mut rows: Vec<[String; 3]> = Vec::new();
    for part in parts {
        let label = what(part.slab).spoken();
        rows.push([label, format_count(part.bytes), part.slab.to_string()]);
    }
    let sum: u64 = parts.iter().map(|part| part.bytes).sum();
    rows.push([tell!("total"), format_count(sum), String::new()]);
    let mut out = head(say!("kernel memory per connection endpoint (bytes)"), style);
    out += &table(&rows, style);
    out += &match is_told {
        true => sentence(
            say!("from /proc/slabinfo of this host, including the unused rest of each page"),
            style,
        ),
        false => sentence(
            say!("values from Linux 6.18 on x86-64; only root can read /proc/slabinfo"),
            style,
        ),
    };
    out
}

fn recorder(plan: &Plan, style: &Style) -> String {
    let recorder = &plan.sizes.recorder;
    let shards = plan.reckoned.each.shards;
    let row = |label: Said, bytes: u64| [label.spoken(), format_bytes(bytes as f64), String::new()];
    let rows = [
        row(say!("one shard, empty"), recorder.shard_empty_bytes),
        row(say!("one shard, typical"), recorder.shard_typical_bytes),
        row(say!("all shards and totals"), recorder.run_bytes(shards)),
    ];
    let mut out = head(say!("memory for recorded results"), style) + &table(&rows, style);
    let (steps, stages) = (recorder.steps, recorder.stages);
    let shards = format_count(shards);
    let text = say!(
        "for {steps} steps and {stages} stages on {shards} shards, regardless of the number of \
         users and the duration; typical: response times span {} powers of two",
        TYPICAL_OCTAVES
    );
    out += &sentence(text, style);
    out
}
