//! The summary at the end of a run, section by section; what has no content is left out.

use throng_base::Exit;
use throng_base::units::{format_bytes, format_count};
use throng_host::HostFacts;
use throng_metrics::Measure;

use super::table::{Cell, Table};
use super::text::{clean, nanos, rate, share, span, width, wrap};
use super::{Ink, Style};
use crate::directory::VerdictInfo;
use crate::summary::{Counted, ErrorRow, GoalRow, Latency, Row, STAY, Summary};
use crate::verdict::{exit_code, generator_is_to_blame, unmet_text};

/// Where the content of sections that are no tables begins.
const LABEL_COLUMNS: usize = 13;
/// Of one example; the record has the whole.
const EXAMPLE_CHARS_MAX: usize = 300;
/// Rows of errors and of codes; the record and the JSON have all.
const ROWS_MAX: usize = 20;

/// The whole summary, every line ending in a newline.
pub fn summary_text(summary: &Summary, style: &Style) -> String {
    let sections = [
        title(summary, style),
        diagnostics(summary, style),
        counts(summary, style),
        latencies(summary, style),
        connecting(summary, style),
        phases(summary, style),
        codes(summary, style),
        errors(summary, style),
        goals(summary, style),
        load(summary, style),
        generator(summary, style),
        host(&summary.info.host, style),
        record(summary, style),
    ];
    let filled: Vec<String> = sections.into_iter().filter(|text| !text.is_empty()).collect();
    filled.join("\n")
}

fn title(summary: &Summary, style: &Style) -> String {
    let info = &summary.info;
    let (ink, verdict) = match exit_code(summary) {
        Exit::GoalsMet if summary.goals.is_empty() => (Ink::Good, "done"),
        Exit::GoalsMet => (Ink::Good, "goals met"),
        Exit::GoalsNotMet => (Ink::Bad, "goals not met"),
        Exit::TargetUnreachable if summary.target_lost_ns.is_some() => {
            (Ink::Bad, "the target was lost")
        }
        Exit::TargetUnreachable => (Ink::Bad, "the target could not be reached"),
        Exit::ResultInvalid => (Ink::Bad, "the result does not stand"),
        Exit::Interrupted if summary.unended && !info.interrupted => (Ink::Warn, "without an end"),
        Exit::Interrupted => (Ink::Warn, "interrupted"),
        _ => (Ink::Bad, "failed"),
    };
    let name = style.paint(Ink::Bold, &clean(&info.name));
    let head = format!("{name} · {}\n", style.paint(ink, verdict));
    let mut facts: Vec<String> = Vec::new();
    facts.extend(info.targets.first().map(|target| match info.targets.len() {
        1 => clean(target),
        targets => format!("{} and {} more", clean(target), targets - 1),
    }));
    facts.push(match summary.measured == summary.lasted {
        true => span(summary.measured),
        false => format!("{} of {} measured", span(summary.measured), span(summary.lasted)),
    });
    facts.push(format!("{} ok", format_count(summary.total.ok)));
    facts.push(format!("{} failed", format_count(summary.total.failed)));
    facts.push(format!("{} ok/s", rate(summary.total.ok_per_s)));
    facts.push(info.started.clone());
    let mut out = head;
    wrap_items(&facts, style.columns()).iter().for_each(|line| {
        out.push_str(&style.paint(Ink::Dim, line));
        out.push('\n');
    });
    out
}

fn diagnostics(summary: &Summary, style: &Style) -> String {
    summary.diagnostics().iter().map(|told| told.render(style.colour)).collect()
}

/// The rows of steps, with their sum when it is one of more than one.
fn step_rows(summary: &Summary) -> impl Iterator<Item = &Row> {
    let counted = Counted::new(&summary.info);
    let summed = (0u16..).zip(&summary.steps).filter(|(id, _)| counted.holds(*id)).count();
    let total = (summed > 1).then_some(&summary.total);
    summary.steps.iter().chain(total)
}

fn counts(summary: &Summary, style: &Style) -> String {
    let mut table = Table::new(["step", "count", "ok", "failed", "ok/s", "in", "out"]);
    for row in step_rows(summary) {
        let bad = if row.failed > 0 { Ink::Bad } else { Ink::Plain };
        table.row([
            clean(&row.name).into(),
            format_count(row.count).into(),
            format_count(row.ok).into(),
            Cell::new(bad, format_count(row.failed)),
            rate(row.ok_per_s).into(),
            format_bytes(row.bytes_in as f64).into(),
            format_bytes(row.bytes_out as f64).into(),
        ]);
    }
    if summary.attempts() == 0 { String::new() } else { table.render(style) }
}

fn latencies(summary: &Summary, style: &Style) -> String {
    let head = ["latency", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    let mut table = Table::new(head);
    let is_timed = |row: &&Row| row.kind != STAY && !row.latency.is_empty();
    for row in step_rows(summary).filter(is_timed) {
        let l = &row.latency;
        let times =
            [l.mean_ns as u64, l.p50_ns, l.p90_ns, l.p99_ns, l.p999_ns, l.p9999_ns, l.max_ns];
        let [mean, p50, p90, p99, p999, p9999, max] = times.map(|time| Cell::from(nanos(time)));
        table.row([clean(&row.name).into(), mean, p50, p90, p99, p999, p9999, max]);
    }
    if table.len() == 0 { String::new() } else { table.render(style) }
}

/// The parts of an answer's time, as ab shows them.
fn connecting(summary: &Summary, style: &Style) -> String {
    let stages = summary.stages.iter().filter(|stage| stage.ok + stage.failed > 0);
    let mut parts: Vec<(&str, Option<u64>, &Latency)> =
        stages.map(|stage| (stage.stage.word(), Some(stage.failed), &stage.latency)).collect();
    if !summary.total.first_byte.is_empty() {
        parts.push(("first byte", None, &summary.total.first_byte));
    }
    if parts.is_empty() {
        return String::new();
    }
    if !summary.total.latency.is_empty() {
        parts.push(("total", None, &summary.total.latency));
    }
    let has_failed = parts.iter().any(|(_, failed, _)| failed.unwrap_or(0) > 0);
    let failed_head = if has_failed { "failed" } else { "" };
    let head =
        ["connection", "times", failed_head, "min", "mean", "sd", "p50", "p90", "p99", "max"];
    let mut table = Table::new(head);
    for (name, failed, l) in parts {
        let mean = [l.mean_ns as u64, l.deviation_ns as u64];
        let times = [l.min_ns, mean[0], mean[1], l.p50_ns, l.p90_ns, l.p99_ns, l.max_ns];
        let shown = |time: u64| if l.is_empty() { "–".to_string() } else { nanos(time) };
        let [min, mean, sd, p50, p90, p99, max] = times.map(|time| Cell::from(shown(time)));
        let failed = failed.filter(|_| has_failed);
        let ink = if failed.unwrap_or(0) > 0 { Ink::Bad } else { Ink::Plain };
        let failed = Cell::new(ink, failed.map(format_count).unwrap_or_default());
        let count = Cell::from(format_count(l.count));
        table.row([name.into(), count, failed, min, mean, sd, p50, p90, p99, max]);
    }
    table.render(style)
}

fn phases(summary: &Summary, style: &Style) -> String {
    if summary.phases.len() < 2 {
        return String::new();
    }
    let head = ["phase", "time", "users", "count", "failed", "ok/s", "p50", "p99", "max"];
    let mut table = Table::new(head);
    for phase in &summary.phases {
        let ink = if phase.measured { Ink::Plain } else { Ink::Dim };
        let mark = if phase.measured { "" } else { "*" };
        let name = format!("{}{mark}", clean(&phase.name));
        let l = &phase.latency;
        let time = |time: u64| if l.is_empty() { "–".to_string() } else { nanos(time) };
        let texts = [
            name,
            if phase.begun { span(phase.lasted) } else { "never".to_string() },
            format_count(phase.users_online),
            format_count(phase.count),
            format_count(phase.failed),
            rate(phase.ok_per_s),
            time(l.p50_ns),
            time(l.p99_ns),
            time(l.max_ns),
        ];
        table.row(texts.map(|text| Cell::new(ink, text)));
    }
    let note = match summary.phases.iter().all(|phase| phase.measured) {
        true => String::new(),
        false => format!("{}\n", style.paint(Ink::Dim, "* not measured: in no other figure")),
    };
    table.render(style) + &note
}

fn codes(summary: &Summary, style: &Style) -> String {
    let all: u64 = summary.codes.iter().map(|(_, count)| count).sum();
    let mut table = Table::new(["codes", "", ""]);
    for (code, count) in summary.codes.iter().take(ROWS_MAX) {
        let part = share(*count as f64 / all.max(1) as f64);
        table.row([code.to_string().into(), format_count(*count).into(), part.into()]);
    }
    if table.len() == 0 {
        return String::new();
    }
    table.render(style) + &more(summary.codes.len(), style)
}

fn errors(summary: &Summary, style: &Style) -> String {
    if summary.errors.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", style.paint(Ink::Bold, "errors"));
    let shown = &summary.errors[..summary.errors.len().min(ROWS_MAX)];
    let counts: Vec<String> = shown.iter().map(|row| format_count(row.count)).collect();
    let shares: Vec<String> = shown.iter().map(|row| share(row.share)).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let (count_columns, share_columns) = (widest(&counts), widest(&shares));
    for ((row, count), share) in shown.iter().zip(&counts).zip(&shares) {
        let figures = format!("{count:>count_columns$}  {share:>share_columns$}  ");
        let indent = width(&figures);
        for (number, (ink, line)) in error_lines(row, style.columns() - indent).iter().enumerate() {
            match number {
                0 => out.push_str(&style.paint(Ink::Bad, &figures)),
                _ => out.push_str(&" ".repeat(indent)),
            }
            out.push_str(&style.paint(*ink, line));
            out.push('\n');
        }
    }
    out + &more(summary.errors.len(), style)
}

/// What went wrong, where, by whose fault, and an example.
fn error_lines(row: &ErrorRow, columns: usize) -> Vec<(Ink, String)> {
    let head = format!(
        "{}: {} ({}, blame: {})",
        clean(&row.step),
        row.cause.text(),
        row.cause.word(),
        row.blame.word()
    );
    let mut lines: Vec<(Ink, String)> =
        wrap(&head, columns).into_iter().map(|line| (Ink::Plain, line)).collect();
    if let Some(example) = &row.example {
        let mut detail: String = clean(&example.detail).chars().take(EXAMPLE_CHARS_MAX).collect();
        if example.detail.chars().count() > EXAMPLE_CHARS_MAX {
            detail.push('…');
        }
        let text = format!("at {}: {detail}", nanos(example.at_ns));
        lines.extend(wrap(&text, columns).into_iter().map(|line| (Ink::Dim, line)));
    }
    lines
}

fn more(rows: usize, style: &Style) -> String {
    match rows.saturating_sub(ROWS_MAX) {
        0 => String::new(),
        hidden => format!("{}\n", style.paint(Ink::Dim, &format!("… and {hidden} more"))),
    }
}

fn goals(summary: &Summary, style: &Style) -> String {
    if summary.goals.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["goals", ""]);
    for goal in &summary.goals {
        let (ink, mark, figure) = match goal.verdict {
            VerdictInfo::Met { figure } => (Ink::Good, "✓", figure_text(goal, figure)),
            VerdictInfo::NotMet { figure } => (Ink::Bad, "✗", figure_text(goal, figure)),
            VerdictInfo::Unknown => (Ink::Bad, "✗", "it never happened".to_string()),
        };
        let text = Cell::new(ink, format!("{mark} {}", clean(&goal.text)));
        table.row([text, Cell::new(ink, figure)]);
    }
    table.render(style)
}

fn figure_text(goal: &GoalRow, figure: f64) -> String {
    match goal.measure {
        _ if goal.is_gauge => format_count(figure as u64),
        Measure::Quantile(_) | Measure::Mean | Measure::Min | Measure::Max => nanos(figure as u64),
        Measure::Rate => format!("{}/s", rate(figure)),
        Measure::Count | Measure::Failed => format_count(figure as u64),
        Measure::FailedShare | Measure::OkShare => share(figure),
    }
}

fn load(summary: &Summary, style: &Style) -> String {
    let mut out = String::new();
    let mut section = |label: &str, counters: &[(u64, &str)], always: bool| {
        let filled = counters.iter().filter(|(count, _)| *count > 0);
        let items: Vec<String> =
            filled.map(|(count, word)| format!("{} {word}", format_count(*count))).collect();
        if !items.is_empty() || always {
            out.push_str(&labelled(label, &[items], style));
        }
    };
    let population = &summary.population;
    section(
        "users",
        &[
            (summary.users_online_max, "at most online"),
            (population.started, "started"),
            (population.finished, "finished"),
            (population.interrupted, "cut off by the end"),
        ],
        false,
    );
    section(
        "schedule",
        &[
            (population.unmet, "starts never happened"),
            (population.waited, "starts waited for a free user"),
        ],
        false,
    );
    let connections = &summary.connections;
    let unopened = connections.attempted.saturating_sub(connections.opened);
    section(
        "connections",
        &[
            (summary.connections_open_max, "at most open"),
            (connections.opened, "opened"),
            (unopened, "not opened"),
            (connections.closed_by_us, "closed by us"),
            (connections.closed_by_target, "closed by the target"),
            (connections.reset, "reset"),
            (connections.timed_out, "timed out"),
        ],
        false,
    );
    let messages = &summary.messages;
    section(
        "messages",
        &[
            (messages.sent, "sent"),
            (messages.received, "received"),
            (messages.pushes, "of them pushes"),
            (messages.pings, "pings"),
        ],
        false,
    );
    let bytes = |count: u64| {
        let per_second = count as f64 / summary.measured.as_secs_f64().max(1e-9);
        format!("{} ({}/s)", format_bytes(count as f64), format_bytes(per_second))
    };
    if summary.bytes_in + summary.bytes_out > 0 {
        let (received, sent) = (bytes(summary.bytes_in), bytes(summary.bytes_out));
        let items = vec![format!("{received} received"), format!("{sent} sent")];
        out.push_str(&labelled("bytes", &[items], style));
    }
    out
}

fn generator(summary: &Summary, style: &Style) -> String {
    let own = &summary.generator;
    let mut lines: Vec<Vec<String>> = Vec::new();
    if own.cpu_ns > 0 {
        let mut items = vec![format!("{:.2} cores used", own.cores)];
        if summary.attempts() > 0 {
            let each = nanos(own.cpu_per_attempt_ns as u64);
            items.push(format!("{each} CPU per attempt"));
        }
        items.push(format!("{} memory", format_bytes(own.memory_bytes_max as f64)));
        items.push(format!("host {} busy", share(own.host_cpu_mean)));
        lines.push(items);
    }
    let late = &own.lateness;
    if !late.is_empty() {
        lines.push(vec![
            format!("late by p50 {}", nanos(late.p50_ns)),
            format!("p99 {}", nanos(late.p99_ns)),
            format!("max {}", nanos(late.max_ns)),
        ]);
    }
    if lines.is_empty() {
        return String::new();
    }
    if own.late_seconds > 0 && !generator_is_to_blame(summary) {
        let (late, seconds) = (format_count(own.late_seconds), format_count(own.seconds));
        lines.push(vec![format!("late in {late} of {seconds} seconds")]);
    }
    let verdict = match summary.population.unmet {
        _ if generator_is_to_blame(summary) => "the result does not stand, see above".to_string(),
        0 if own.late_seconds == 0 => "the schedule was held".to_string(),
        0 => String::new(),
        _ => unmet_text(summary),
    };
    if !verdict.is_empty() {
        lines.push(vec![verdict]);
    }
    labelled("generator", &lines, style)
}

fn host(host: &HostFacts, style: &Style) -> String {
    let text = |fact: &Option<String>| fact.as_deref().map(clean);
    let count = |fact: Option<u64>, word: &str| fact.map(|n| format!("{word}{}", n));
    let cores = host.cores.map(|cores| match host.cores_usable {
        Some(usable) if usable != cores => format!("{usable} of {cores} cores"),
        _ if cores == 1 => "1 core".to_string(),
        _ => format!("{cores} cores"),
    });
    let bytes = |bytes: u64| format_bytes(bytes as f64);
    let descriptors = match (host.descriptors_soft_max, host.descriptors_hard_max) {
        (Some(soft), Some(hard)) if soft != hard => {
            Some(format!("{soft} (hard {hard}) descriptors"))
        }
        (Some(soft), _) => Some(format!("{soft} descriptors")),
        _ => None,
    };
    let lines = [
        vec![
            text(&host.hostname),
            text(&host.kernel).map(|kernel| format!("Linux {kernel}")),
            text(&host.os),
            text(&host.virtualisation),
        ],
        vec![
            text(&host.cpu_model),
            cores,
            host.cgroup_cores_max.map(|cores| format!("cgroup limit {cores:.2} cores")),
            host.memory_bytes.map(|size| format!("{} memory", bytes(size))),
            host.cgroup_memory_bytes_max.map(|size| format!("cgroup limit {}", bytes(size))),
        ],
        vec![
            descriptors,
            host.port_range.map(|(first, last)| format!("ports {first}–{last}")),
            count(host.tcp_tw_reuse, "tcp_tw_reuse "),
            count(host.somaxconn, "somaxconn "),
            text(&host.clock_source).map(|source| format!("clock {source}")),
        ],
    ];
    let lines: Vec<Vec<String>> = lines
        .map(|items| items.into_iter().flatten().collect::<Vec<_>>())
        .into_iter()
        .filter(|items: &Vec<String>| !items.is_empty())
        .collect();
    if lines.is_empty() { String::new() } else { labelled("host", &lines, style) }
}

fn record(summary: &Summary, style: &Style) -> String {
    let mut lines = Vec::new();
    if let Some(directory) = &summary.directory {
        let path = clean(&directory.display().to_string());
        lines.push(vec![path.clone()]);
        lines.push(vec![format!("throng report {}", quoted(&path))]);
    }
    if summary.damage.torn {
        lines.push(vec!["the last line was being written when the run was killed".to_string()]);
    }
    if !summary.info.throng_version.is_empty() {
        let version = clean(&summary.info.throng_version);
        lines.push(vec![format!("throng {version}"), format!("seed {}", summary.info.seed)]);
    }
    if lines.is_empty() { String::new() } else { labelled("record", &lines, style) }
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    match path.chars().all(is_plain) {
        true => path.to_string(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// A label, and beside it lines of items that are wrapped between the items.
fn labelled(label: &str, lines: &[Vec<String>], style: &Style) -> String {
    let columns = style.columns() - LABEL_COLUMNS;
    let mut out = String::new();
    for line in lines.iter().flat_map(|items| wrap_items(items, columns)) {
        let label = if out.is_empty() { label } else { "" };
        out.push_str(&style.paint(Ink::Bold, label));
        out.push_str(&" ".repeat(LABEL_COLUMNS - label.len()));
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Items with ` · ` between them, in lines that break between items where they can.
fn wrap_items(items: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if width(line) + 3 + width(item) <= columns => {
                line.push_str(" · ");
                line.push_str(item);
            }
            _ => lines.extend(wrap(item, columns)),
        }
    }
    lines
}
