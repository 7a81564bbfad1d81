//! The slowest attempts as a table, and their stages as bars.

use throng_base::Said;
use throng_metrics::Chain;

use super::Style;
use super::columns::Columns;
use super::text::{clean, cut, nanos, width};
use crate::summary::{SlowRow, Summary};

/// Maximum number of attempts; JSON and the run directory have all.
const SHOWN_MAX: usize = 10;
const INDENT: &str = "  ";
/// Maximum length of a bar.
const BAR_COLUMNS_MAX: usize = 50;

/// The slowest attempts of a run, the slowest first.
pub fn slowest_text(summary: &Summary, style: &Style) -> String {
    let name = style.bold(&clean(&summary.info.name));
    let rows = &summary.steps.slowest;
    let title = match rows.is_empty() {
        true => say!("no attempt has a response time"),
        false => title(summary),
    };
    let mut out = format!("{name} · {}\n", style.say(title));
    for row in rows.iter().take(SHOWN_MAX) {
        out.push('\n');
        out += &head(row, style);
        out += &match &row.slow.chain {
            Some(chain) => bars(chain, style),
            None => format!("{INDENT}{}\n", style.say(say!("stages: not recorded"))),
        };
    }
    let is_read = rows.iter().take(SHOWN_MAX).filter_map(|row| row.slow.chain.as_ref());
    if is_read.into_iter().any(|chain| chain.read_ns > 0) {
        let note = say!("`read` is throng's own time: it is not part of the response time");
        out += &format!("\n{}\n", style.dim(&style.say(note)));
    }
    if style.ascii { super::text::ascii(&out) } else { out }
}

/// The same as a table, to find them in the logs and traces of the service. Shown with `--details`.
pub(super) fn exemplars(summary: &Summary, style: &Style) -> String {
    if summary.steps.slowest.is_empty() {
        return String::new();
    }
    let table = Columns::of(title(summary), |row: &SlowRow| clean(&row.step))
        .cell(say!("time"), |row| nanos(row.slow.latency_ns))
        .cell(say!("at"), |row| nanos(row.slow.at_ns))
        .cell(say!("user"), |row| row.slow.user.to_string())
        .cell(say!("trace ID"), |row| row.slow.trace.clone().unwrap_or_default())
        .table(summary.steps.slowest.iter().take(SHOWN_MAX));
    let command = "`throng why --slowest`";
    let note = style.say(say!("where the time went: {}", command));
    format!("{}{}\n", table.render(style), style.dim(&note))
}

fn title(summary: &Summary) -> Said {
    match summary.only_requests() {
        true => say!("slowest requests"),
        false => say!("slowest attempts"),
    }
}

/// Identifies the attempt in the logs and traces of the service.
fn head(row: &SlowRow, style: &Style) -> String {
    let slow = &row.slow;
    let at = style.say(say!("at {}", nanos(slow.at_ns)));
    let user = style.say(say!("user {}", (slow.user)));
    let time = style.bold(&nanos(slow.latency_ns));
    let mut parts = vec![clean(&row.step), time, at, user];
    if slow.code != 0 {
        parts.push(slow.code.to_string());
    }
    parts.extend(slow.cause.map(|cause| cause.word().to_string()));
    let mut out = format!("{}\n", parts.join(" · "));
    if let Some(trace) = &slow.trace {
        out += &format!("{INDENT}{}\n", style.say(say!("trace ID {}", (clean(trace)))));
    }
    out
}

fn bars(chain: &Chain, style: &Style) -> String {
    let stages: Vec<(String, u64)> = chain
        .stages()
        .into_iter()
        .filter(|(_, time)| *time > 0)
        .map(|(stage, time)| (style.say(stage), time))
        .collect();
    let all = stages.iter().map(|(_, time)| time).sum::<u64>().max(1);
    let names = stages.iter().map(|(name, _)| width(name)).max().unwrap_or_default();
    let room = style.columns().saturating_sub(INDENT.len() + names + 12).min(BAR_COLUMNS_MAX);
    let place = |time: u64| (time as f64 / all as f64 * room as f64).round() as usize;
    let mut before = 0;
    let mut out = String::new();
    for (name, time) in stages {
        let from = place(before).min(room.saturating_sub(1));
        let length = place(before + time).saturating_sub(from).max(1);
        let bar = format!("{}{}", " ".repeat(from), "█".repeat(length));
        let pad = " ".repeat(names - width(&name));
        out += &format!("{INDENT}{name}{pad} {:>8}  {}\n", nanos(time), cut(&bar, room));
        before += time;
    }
    out + &connection(chain, style)
}

fn connection(chain: &Chain, style: &Style) -> String {
    let mut parts = vec![match chain.opened {
        true => style.say(say!("a new connection")),
        false => style.say(say!("a connection that was already open")),
    }];
    parts.extend(chain.tls_resumed.map(|resumed| match resumed {
        true => style.say(say!("TLS session resumed")),
        false => style.say(say!("full TLS handshake")),
    }));
    parts.push(match chain.retransmits {
        Some(count) => {
            style.say(say!("retransmitted segments on this connection so far: {}", count))
        }
        None => style.say(say!("retransmitted segments: not recorded")),
    });
    format!("{INDENT}{}\n", style.dim(&parts.join(" · ")))
}

#[cfg(test)]
mod tests {
    use throng_metrics::Slow;

    use super::*;
    use crate::tests::sample;

    #[test]
    fn each_stage_starts_where_the_previous_one_ends() {
        let mut summary = sample::summary();
        let chain = Chain {
            connect_ns: 1_000_000_000,
            tls_ns: 500_000_000,
            first_byte_ns: 500_000_000,
            tls_resumed: Some(true),
            opened: true,
            retransmits: Some(1),
            ..Chain::default()
        };
        let trace = Some("4bf92f3577b34da6a3ce929d0e0e4736".into());
        let slow = Slow {
            at_ns: 3_000_000_000,
            latency_ns: 2_000_000_000,
            user: 7,
            code: 200,
            trace,
            chain: Some(chain),
            ..Slow::default()
        };
        let old = Slow { chain: None, trace: None, ..slow.clone() };
        let row = |slow: Slow| SlowRow { step: "GET /".into(), slow };
        summary.steps.slowest = vec![row(slow), row(old)];
        let text = slowest_text(&summary, &Style::plain());
        let (one, half) = ("█".repeat(25), "█".repeat(12));
        for part in [
            "GET / · 2.00s · at 3.00s · user 7 · 200\n  trace ID 4bf92f3577b34da6a3ce929d0e0e4736\n",
            &format!("  connect       1.00s  {one}\n"),
            &format!("  tls           500ms  {}{half}", " ".repeat(25)),
            "a new connection · TLS session resumed · retransmitted segments on this connection so far: 1\n",
            "  stages: not recorded\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
