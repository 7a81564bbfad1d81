//! `--explain`: where the bytes of a user go, part by part, against what was measured; and the size
//! of what is written down.

use throng_base::Said;
use throng_base::units::{format_bytes, format_count};
use throng_engine::{SizeKind, TYPICAL_OCTAVES};
use throng_results::terminal::Style;

use super::Planned;
use super::page::{head, sentence, table};

pub(super) fn explain(planned: &Planned, style: &Style) -> String {
    ours(planned, style) + &kernel(planned, style) + &recorder(planned, style)
}

fn name(kind: SizeKind) -> Said {
    match kind {
        SizeKind::Task => say!("the user, a task of the event loop"),
        SizeKind::State => say!("its place in the session, times, counters"),
        SizeKind::Connection => say!("its connection"),
        SizeKind::Reader => say!("the reader of its messages"),
        SizeKind::Runtime => say!("the event loop's part, and the rest of a cache line"),
        SizeKind::Seat => say!("its seat on the shard"),
        SizeKind::Due => say!("when it is woken next"),
        SizeKind::Connections => say!("its further connections"),
        SizeKind::Socket => say!("what the event loop keeps of its socket"),
        SizeKind::Memory => say!("saved values, loops, rows of data"),
        SizeKind::Transactions => say!("transactions that are open"),
        SizeKind::Tls => say!("its TLS session"),
    }
}

fn ours(planned: &Planned, style: &Style) -> String {
    let mut rows = Vec::new();
    for part in &planned.sizes.parts {
        let bytes = format_count(part.bytes);
        let label = name(part.kind).spoken();
        rows.push(match part.kind.is_within() {
            true => [format!("    {label}"), String::new(), bytes],
            false => [label, bytes, String::new()],
        });
    }
    let sum = planned.sizes.user_bytes();
    rows.push([tell!("together"), format_count(sum), String::new()]);
    let measured = planned.measured.as_ref().and_then(|it| it.user_bytes);
    if let Some(measured) = measured {
        let more = (measured / sum as f64 - 1.0) * 100.0;
        let bytes = format_count(measured.round() as u64);
        rows.push([tell!("measured"), bytes, format!("{more:+.0} %")]);
    }
    let mut out = head(say!("where the bytes of a user go"), style) + &table(&rows, style);
    let text = say!(
        "what differs from the measured is the allocator's: pages that are not full, lists \
                that grow by doubling, buffers of users who connect at the same moment"
    );
    out += &sentence(text, style);
    out
}

fn kernel(planned: &Planned, style: &Style) -> String {
    let what = |slab: &str| match slab {
        "TCP" => say!("the TCP socket"),
        "UDP" => say!("the UDP socket"),
        "sock_inode_cache" => say!("its inode"),
        "filp" => say!("the open file"),
        "dentry" => say!("its directory entry"),
        _ => say!("its place in epoll"),
    };
    let (parts, is_told) = &planned.socket;
    let mut rows: Vec<[String; 3]> = Vec::new();
    for part in parts {
        let label = what(part.slab).spoken();
        rows.push([label, format_count(part.bytes), part.slab.to_string()]);
    }
    let sum: u64 = parts.iter().map(|part| part.bytes).sum();
    rows.push([tell!("together"), format_count(sum), String::new()]);
    let mut out =
        head(say!("where the bytes of the kernel go, for each end of a connection"), style);
    out += &table(&rows, style);
    out += &match is_told {
        true => {
            sentence(say!("as /proc/slabinfo of this host says, with the rest of each page"), style)
        }
        false => {
            sentence(say!("as of Linux 6.18 on x86-64: only root may read /proc/slabinfo"), style)
        }
    };
    out
}

fn recorder(planned: &Planned, style: &Style) -> String {
    let recorder = &planned.sizes.recorder;
    let shards = planned.reckoned.each.shards;
    let row = |label: Said, bytes: u64| [label.spoken(), format_bytes(bytes as f64), String::new()];
    let rows = [
        row(say!("a shard, empty"), recorder.shard_empty_bytes),
        row(say!("a shard, usual"), recorder.shard_typical_bytes),
        row(say!("all shards and their sums"), recorder.run_bytes(shards)),
    ];
    let mut out = head(say!("what is written down"), style) + &table(&rows, style);
    let (steps, stages) = (recorder.steps, recorder.stages);
    let shards = format_count(shards);
    let text = say!(
        "for {steps} steps and {stages} stages on {shards} shards, whatever the number of users and \
         the time; usual are times that differ by {} powers of two",
        TYPICAL_OCTAVES
    );
    out += &sentence(text, style);
    out
}
