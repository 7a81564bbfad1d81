//! `--explain`: where the bytes of a user go, part by part, against what was measured; and the size
//! of what is written down.

use throng_base::language::say;
use throng_base::units::{format_bytes, format_count};
use throng_engine::{SizeKind, TYPICAL_OCTAVES};
use throng_results::terminal::Style;

use super::Planned;
use super::page::{head, sentence, table};

pub(super) fn explain(planned: &Planned, style: &Style) -> String {
    ours(planned, style) + &kernel(planned, style) + &recorder(planned, style)
}

// sentences
fn name(kind: SizeKind) -> &'static str {
    match kind {
        SizeKind::Task => "the user, a task of the event loop",
        SizeKind::State => "its place in the session, times, counters",
        SizeKind::Connection => "its connection",
        SizeKind::Reader => "the reader of its messages",
        SizeKind::Runtime => "the event loop's part, and the rest of a cache line",
        SizeKind::Seat => "its seat on the shard",
        SizeKind::Due => "when it is woken next",
        SizeKind::Connections => "its further connections",
        SizeKind::Socket => "what the event loop keeps of its socket",
        SizeKind::Memory => "saved values, loops, rows of data",
        SizeKind::Transactions => "transactions that are open",
        SizeKind::Tls => "its TLS session",
    }
}

// sentences
fn ours(planned: &Planned, style: &Style) -> String {
    let mut rows = Vec::new();
    for part in &planned.sizes.parts {
        let bytes = format_count(part.bytes);
        let label = say(name(part.kind));
        rows.push(match part.kind.is_within() {
            true => [format!("    {label}"), String::new(), bytes],
            false => [label.into_owned(), bytes, String::new()],
        });
    }
    let sum = planned.sizes.user_bytes();
    rows.push([say("together").into_owned(), format_count(sum), String::new()]);
    let measured = planned.measured.as_ref().and_then(|it| it.user_bytes);
    if let Some(measured) = measured {
        let more = (measured / sum as f64 - 1.0) * 100.0;
        let bytes = format_count(measured.round() as u64);
        rows.push([say("measured").into_owned(), bytes, format!("{more:+.0} %")]);
    }
    let mut out = head("where the bytes of a user go", style) + &table(&rows, style);
    let text = "what differs from the measured is the allocator's: pages that are not full, lists \
                that grow by doubling, buffers of users who connect at the same moment";
    out += &sentence(text, style);
    out
}

// sentences
fn kernel(planned: &Planned, style: &Style) -> String {
    let what = |slab: &str| match slab {
        "TCP" => "the TCP socket",
        "UDP" => "the UDP socket",
        "sock_inode_cache" => "its inode",
        "filp" => "the open file",
        "dentry" => "its directory entry",
        _ => "its place in epoll",
    };
    let (parts, is_told) = &planned.socket;
    let mut rows: Vec<[String; 3]> = Vec::new();
    for part in parts {
        let label = say(what(part.slab)).into_owned();
        rows.push([label, format_count(part.bytes), part.slab.to_string()]);
    }
    let sum: u64 = parts.iter().map(|part| part.bytes).sum();
    rows.push([say("together").into_owned(), format_count(sum), String::new()]);
    let mut out = head("where the bytes of the kernel go, for each end of a connection", style);
    out += &table(&rows, style);
    out += &match is_told {
        true => sentence("as /proc/slabinfo of this host says, with the rest of each page", style),
        false => sentence("as of Linux 6.18 on x86-64: only root may read /proc/slabinfo", style),
    };
    out
}

// sentences
fn recorder(planned: &Planned, style: &Style) -> String {
    let recorder = &planned.sizes.recorder;
    let shards = planned.reckoned.each.shards;
    let row = |label: &str, bytes: u64| {
        [say(label).into_owned(), format_bytes(bytes as f64), String::new()]
    };
    let rows = [
        row("a shard, empty", recorder.shard_empty_bytes),
        row("a shard, usual", recorder.shard_typical_bytes),
        row("all shards and their sums", recorder.run_bytes(shards)),
    ];
    let mut out = head("what is written down", style) + &table(&rows, style);
    let (steps, stages) = (recorder.steps, recorder.stages);
    let shards = format_count(shards);
    let text = format!(
        "for {steps} steps and {stages} stages on {shards} shards, whatever the number of users and \
         the time; usual are times that differ by {} powers of two",
        TYPICAL_OCTAVES
    );
    out += &sentence(&text, style);
    out
}
