//! What a program sees: the summary as JSON. The schema is documented in `docs/json.md`; units
//! stand in the names.

mod capacity;
mod findings;

use serde_json::{Map, Value, json};
use throng_base::{Diagnostic, Said, Severity};
use throng_metrics::{Cause, Counts, DeliveryCounter, SampleInterval, Verdict, status_word};

pub use findings::judged_json;

use crate::back_off::{BackOff, machine_name};
use crate::directory::RunInfo;
use crate::evidence::FailureRow;
use crate::monitors::{MonitorRow, SeriesRow};
use crate::once::OnceRun;
use crate::summary::{
    Change, DeliveryRow, ErrorRow, Example, Generator, Growth, Hold, LabelRow, Latency, LevelRow,
    LoadRow, MachineRow, OwnRow, Percentile, PhaseRow, ResidenceRow, Row, SessionRow, SlowRow,
    StageRow, Stopped, Summary, TargetRow, ThresholdRow, Unbalanced,
};
use crate::summary::{InvalidReason, Validity};
use crate::verdict::{headline, judge};

/// The version of the schema. New fields do not raise it.
pub const JSON_FORMAT: u32 = 1;

/// The summary as one object.
pub fn summary_json(summary: &Summary) -> Value {
    let info = &summary.info;
    let mut value = json!({
        "format": JSON_FORMAT,
        "run": run(summary),
        "host": info.host,
        "changes": rows(&summary.events.changes.first, change),
        "outcome": outcome(summary),
        "record": record(summary),
        "measured_ns": nanos(summary.measured),
        "lasted_ns": nanos(summary.lasted),
        "received_bytes": summary.connections.bytes_in,
        "sent_bytes": summary.connections.bytes_out,
        "total": row(&summary.steps.total),
        "steps": rows(&summary.steps.rows, row),
        "transactions": rows(&summary.steps.transactions, transaction),
        "pushed": rows(&summary.steps.pushed, pushed),
        "own": rows(&summary.steps.own, own),
        "deliveries": rows(&summary.messages.deliveries, delivery),
        "stages": rows(&summary.connections.stages, stage),
        "loads": rows(&summary.parts.loads, load),
        "phases": rows(&summary.parts.phases, |row| phase(summary, row)),
        "failures": rows(&summary.steps.failures, failure),
        "errors": rows(&summary.steps.errors, error),
        "thresholds": rows(&summary.verdict.thresholds, threshold),
        "users": users(summary),
        "connections": connections(summary),
        "sessions": rows(&summary.parts.sessions, session),
        "targets": rows(&summary.parts.targets, target),
        "slowest": rows(&summary.steps.slowest, slow),
        "residence": rows(&summary.connections.residence, residence),
        "lifecycle": lifecycle(summary),
        "heartbeats": heartbeats(summary),
        "retries": with(&summary.steps.retries, json!({})),
        "tcp": tcp(summary),
        "messages": with(&summary.messages.counts, json!({})),
        "log_lines": summary.events.log.count,
        "once": rows(&summary.events.once, once),
        "generator": generator(&summary.generator, &summary.info),
        "machines": rows(&summary.parts.machines, |row| machine(row, &summary.info)),
    });
    // More fields than the macro takes at once.
    let more = [
        ("samples", rows(&summary.steps.samples, sample)),
        ("by_label", rows(&summary.parts.labels, label)),
        ("monitors", rows(&summary.monitors, monitor)),
        ("growth", growth(&summary.growth)),
        ("back_offs", back_offs(summary)),
        ("levels", rows(&summary.parts.levels, |row| level(summary, row))),
        ("capacity", capacity::capacity(summary.capacity.as_deref())),
        ("findings", findings::findings(summary.verdict.why.as_ref())),
    ];
    more.into_iter().for_each(|(name, told)| value[name] = told);
    value
}

fn rows<T>(all: &[T], row: impl Fn(&T) -> Value) -> Value {
    all.iter().map(row).collect()
}

fn outcome(summary: &Summary) -> Value {
    let (exit, reasons) = judge(summary);
    json!({
        "exit_code": exit.code(),
        "reasons": reasons.iter().map(Said::english).collect::<Vec<_>>(),
        "headline": headline(summary).text.english(),
        "warnings": warnings(summary),
        "valid": summary.verdict.validity == Validity::Valid,
        "invalid_reasons": invalid_reasons(&summary.verdict.validity),
        "stopped": summary.events.stopped.as_ref().map(stopped),
        "outage": summary.events.outage,

    })
}

fn record(summary: &Summary) -> Value {
    let info = &summary.info;
    json!({
        "lines_lost": info.lines_lost,
        "lines_unreadable": summary.verdict.damage.unreadable,
        "lines_missing": summary.verdict.damage.missing,
        "lines_doubled": summary.verdict.damage.doubled,
        "lines_unequal": summary.verdict.damage.unequal,
        "unbalanced": rows(&summary.verdict.unbalanced, unbalanced),
        "last_line_torn": summary.verdict.damage.torn,

    })
}

/// Counts under their names of the table, and what is made of them beside.
fn with(counts: &impl Counts, more: Value) -> Value {
    let mut all: Map<String, Value> =
        counts.rows().map(|(figure, count)| (figure.json.to_string(), count.into())).collect();
    if let Value::Object(more) = more {
        all.extend(more);
    }
    Value::Object(all)
}

fn run(summary: &Summary) -> Value {
    let info = &summary.info;
    json!({
        "id": info.id,
        "name": info.name,
        "labels": info.labels,
        "throng_version": info.throng_version,
        "throng_commit": (!info.throng_commit.is_empty()).then_some(&info.throng_commit),
        "command": info.command,
        "started": info.started,
        "ended": info.ended,
        "seed": info.seed,
        "changes": info.changes.iter().map(Said::english).collect::<Vec<_>>(),
        "shards": info.shards,
        "same_host": info.same_host,
        "targets": info.targets,
        "users_planned": info.users_planned,
        "interrupted": info.interrupted,
        "rerun_of": info.rerun_of,
        "directory": summary.directory.as_ref().map(|path| path.display().to_string()),
    })
}

fn unbalanced(row: &Unbalanced) -> Value {
    json!({ "name": row.name, "begun": row.begun, "ended": row.ended })
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn invalid_reasons(validity: &Validity) -> Vec<Value> {
    match validity {
        Validity::Valid => Vec::new(),
        Validity::Invalid { reasons } => {
            let told = |reason: &InvalidReason| {
                let (word, text) = (reason.word(), reason.text().english());
                json!({ "reason": word, "text": text })
            };
            reasons.iter().map(told).collect()
        }
    }
}

/// What stands beside the verdict: the diagnostics that are no errors.
fn warnings(summary: &Summary) -> Vec<Value> {
    let all = summary.diagnostics().into_iter();
    let told = all.filter(|told| told.severity == Severity::Warning);
    let one = |told: Diagnostic| {
        let notes: Vec<String> = told.notes.iter().map(Said::english).collect();
        json!({ "code": told.code, "text": told.message.english(), "notes": notes })
    };
    told.map(one).collect()
}

/// As its event, with what failed in English.
fn once(run: &OnceRun) -> Value {
    let mut value = json!(run);
    if let Some(failure) = &run.failure {
        value["failure"]["detail"] = failure.detail.english().into();
    }
    value
}

/// Null when there was nothing to time; so is a percentile of too few values.
fn latency(l: &Latency) -> Value {
    if l.is_empty() {
        return Value::Null;
    }
    json!({
        "count": l.count,
        "min_ns": l.min_ns,
        "mean_ns": l.mean_ns,
        "deviation_ns": l.deviation_ns,
        "p50_ns": l.percentile(Percentile::P50),
        "p90_ns": l.percentile(Percentile::P90),
        "p95_ns": l.percentile(Percentile::P95),
        "p99_ns": l.percentile(Percentile::P99),
        "p99_9_ns": l.percentile(Percentile::P999),
        "p99_99_ns": l.percentile(Percentile::P9999),
        "max_ns": l.max_ns,
    })
}

fn row(row: &Row) -> Value {
    let codes: Map<String, Value> =
        row.codes.iter().map(|(code, count)| (status_word(*code), json!(count))).collect();
    json!({
        "name": row.name,
        "kind": row.kind,
        "labels": row.labels,
        "begun": row.begun,
        "count": row.count,
        "ok": row.ok,
        "failed": row.failed,
        "interrupted": row.interrupted,
        "retried": causes(&row.retried),
        "given_up": row.given_up,
        "ok_after": row.ok_after,
        "ok_per_s": row.ok_per_s,
        "latency": latency(&row.latency),
        "service": latency(&row.service),
        "first_byte": latency(&row.first_byte),
        "codes": codes,
        "resent": row.resent,
        "received_bytes": row.bytes_in,
        "sent_bytes": row.bytes_out,
    })
}

/// Counts by cause.
fn causes(counts: &[(Cause, u64)]) -> Map<String, Value> {
    counts.iter().map(|(cause, count)| (cause.word().to_string(), json!(count))).collect()
}

fn transaction(row: &Row) -> Value {
    json!({
        "name": row.name,
        "labels": row.labels,
        "begun": row.begun,
        "count": row.count,
        "ok": row.ok,
        "failed": row.failed,
        "interrupted": row.interrupted,
        "ok_after": row.ok_after,
        "ok_per_s": row.ok_per_s,
        "latency": latency(&row.latency),
        "latency_with_pauses": latency(&row.with_pauses),
    })
}

fn change(change: &Change) -> Value {
    match &change.phase {
        Some(phase) => json!({ "at_ns": change.at_ns, "phase": phase, "change": change.what }),
        None => json!({ "at_ns": change.at_ns, "mark": change.what }),
    }
}

fn stopped(stopped: &Stopped) -> Value {
    json!({ "at_ns": stopped.at_ns, "reason": stopped.reason.english(), "by": stopped.by.word() })
}

fn pushed(row: &Row) -> Value {
    json!({
        "name": row.name,
        "labels": row.labels,
        "count": row.count,
        "per_s": row.ok_per_s,
        "between": latency(&row.latency),
        "received_bytes": row.bytes_in,
    })
}

/// Null of a counter stand its unit and its values.
fn own(own: &OwnRow) -> Value {
    let (row, values) = (&own.row, &own.row.latency);
    let figures = own.unit.filter(|_| !values.is_empty()).map(|unit| {
        let scale = unit.scale();
        let percentile =
            |percentile| values.percentile(percentile).map(|value| value as f64 / scale);
        json!({
            "min": values.min_ns as f64 / scale,
            "mean": values.mean_ns / scale,
            "p50": percentile(Percentile::P50),
            "p90": percentile(Percentile::P90),
            "p95": percentile(Percentile::P95),
            "p99": percentile(Percentile::P99),
            "p99_9": percentile(Percentile::P999),
            "max": values.max_ns as f64 / scale,
        })
    });
    json!({
        "name": row.name,
        "kind": row.kind,
        "labels": row.labels,
        "count": row.count,
        "per_s": row.ok_per_s,
        "unit": own.unit.map(|unit| unit.unit().word()),
        "values": figures,
    })
}

fn delivery(row: &DeliveryRow) -> Value {
    with(
        &row.counts,
        json!({
            "name": row.name,
            "delivered_per_s": row.delivered_per_s,
            "lost_share": row.lost_share(),
            "latency": latency(&row.latency),
            "examples": row.examples.iter().map(delivery_example).collect::<Vec<_>>(),
        }),
    )
}

fn sample((name, counts): &(String, SampleInterval)) -> Value {
    with(counts, json!({ "name": name }))
}

fn delivery_example((counter, example): &(DeliveryCounter, Example)) -> Value {
    json!({ "counter": counter.word(), "at_ns": example.at_ns, "detail": example.detail.english() })
}

fn stage(row: &StageRow) -> Value {
    let failure = |(cause, count): &(Cause, u64)| {
        json!({
            "cause": cause.word(),
            "text": cause.text().english(),
            "blame": cause.blame().text().english(),
            "count": count,
        })
    };
    json!({
        "stage": row.stage.word(),
        "began": row.began,
        "ok": row.ok,
        "failed": row.failed,
        "cut_off": row.cut_off,
        "latency": latency(&row.latency),
        "failures": row.errors.iter().map(failure).collect::<Vec<_>>(),
    })
}

fn load(row: &LoadRow) -> Value {
    json!({
        "name": row.name,
        "lasted_ns": nanos(row.lasted),
        "count": row.count,
        "ok": row.ok,
        "failed": row.failed,
        "ok_per_s": row.ok_per_s,
        "users_online": row.users_online,
        "users_online_max": row.users_online_max,
        "users_present_max": row.users_present_max,
        "users_started": row.users_started,
        "iterations_started": row.iterations_started,
        "unmet": row.unmet,
        "dropped": row.dropped,
        "connections_opened": row.connections_opened,
        "latency": latency(&row.latency),
    })
}

fn phase(summary: &Summary, row: &PhaseRow) -> Value {
    json!({
        "name": row.name,
        "load": summary.info.loads.get(row.load),
        "measured": row.measured,
        "begun": row.begun,
        "lasted_ns": nanos(row.lasted),
        "count": row.count,
        "ok": row.ok,
        "failed": row.failed,
        "ok_per_s": row.ok_per_s,
        "users_planned": row.users_planned,
        "users_online": row.users_online,
        "users_online_min": row.users_online_min,
        "users_online_max": row.users_online_max,
        "users_present": row.users_present,
        "users_present_max": row.users_present_max,
        "connections_opened": row.connections_opened,
        "opened_per_s": row.opened_per_s,
        "broken": row.broken,
        "held_seconds": row.held_seconds,
        "latency": latency(&row.latency),
    })
}

fn level(summary: &Summary, row: &LevelRow) -> Value {
    let step = |row: &Row| {
        json!({
            "name": row.name,
            "count": row.count,
            "failed": row.failed,
            "ok_per_s": row.ok_per_s,
            "latency": latency(&row.latency),
        })
    };
    json!({
        "name": row.name,
        "load": summary.info.loads.get(row.load),
        "change": row.change,
        "measured": row.measured,
        "at_ns": row.at_ns,
        "lasted_ns": nanos(row.lasted),
        "rate_per_s": row.rate_per_s,
        "users_online": row.users_online,
        "opened_per_s": row.opened_per_s,
        "cores": row.cores,
        "total": step(&row.total),
        "steps": row.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

fn failure(row: &FailureRow) -> Value {
    json!({
        "step": row.step,
        "cause": row.cause.word(),
        "at_ns": row.at_ns,
        "detail": row.detail.english(),
        "evidence": row.evidence,
    })
}

fn error(row: &ErrorRow) -> Value {
    let example = row
        .example
        .as_ref()
        .map(|example| json!({ "at_ns": example.at_ns, "detail": example.detail.english() }));
    json!({
        "step": row.step,
        "cause": row.cause.word(),
        "text": row.cause.text().english(),
        "blame": row.blame.text().english(),
        "count": row.count,
        "share": row.share,
        "example": example,
    })
}

fn threshold(row: &ThresholdRow) -> Value {
    let (verdict, figure) = match row.verdict {
        Verdict::Met(figure) => ("met", Some(figure)),
        Verdict::NotMet(figure) => ("not-met", Some(figure)),
        Verdict::Unknown => ("unknown", None),
        Verdict::Indeterminate(figure) => ("indeterminate", Some(figure)),
    };
    json!({
        "text": row.text,
        "load": row.load,
        "phase": row.phase,
        "verdict": verdict,
        "figure": figure,
        "largest_of": row.largest_of,
        "unit": row.unit.word(),
    })
}

fn users(summary: &Summary) -> Value {
    with(
        &summary.users.population,
        json!({
            "online_max": summary.users.online_max,
            "present_max": summary.users.present_max,
            "starts_backlog_max": summary.users.backlog_max,
        }),
    )
}

fn connections(summary: &Summary) -> Value {
    with(
        &summary.connections.counts,
        json!({
            "open_max": summary.connections.open_max,
            "refused": summary.connections.opening.refused,
            "streams_allowed": summary.connections.counts.streams_allowed(),
            "opened_per_s": summary.connections.opening.per_s_mean,
            "opened_per_s_max": summary.connections.opening.per_s_max,
        }),
    )
}

fn session(row: &SessionRow) -> Value {
    json!({
        "name": row.name,
        "begun": row.begun,
        "finished": row.finished,
        "failed": row.failed,
        "interrupted": row.interrupted,
        "finished_per_s": row.finished_per_s,
        "time": latency(&row.time),
    })
}

fn target(row: &TargetRow) -> Value {
    let counts = &row.counts;
    json!({
        "target": row.target,
        "address": row.address,
        "begun": counts.begun,
        "count": counts.count,
        "ok": counts.ok,
        "failed": counts.failed(),
        "interrupted": counts.interrupted,
        "ok_per_s": row.ok_per_s,
        "latency": latency(&row.latency),
        "received_bytes": counts.bytes_in,
        "sent_bytes": counts.bytes_out,
        "connections_attempted": counts.connections_attempted,
        "connections_opened": counts.connections_opened,
        "connections_failed": counts.connections_failed,
        "connections_passed_over": counts.connections_passed_over,
    })
}

fn label(label: &LabelRow) -> Value {
    json!({
        "label": label.label,
        "value": label.value,
        "others": label.others,
        "machines": label.machines,
        "users_max": label.users_max,
        "total": row(&label.total),
        "steps": label.steps.iter().map(row).collect::<Vec<_>>(),
    })
}

fn slow(row: &SlowRow) -> Value {
    json!({
        "step": row.step,
        "at_ns": row.slow.at_ns,
        "latency_ns": row.slow.latency_ns,
        "user": row.slow.user,
        "code": (row.slow.code != 0).then_some(row.slow.code),
        "cause": row.slow.cause.map(Cause::word),
        "trace": row.slow.trace,
    })
}

fn residence(row: &ResidenceRow) -> Value {
    json!({ "ended": row.ended.word(), "unopened": row.unopened, "time": latency(&row.time) })
}

fn monitor(row: &MonitorRow) -> Value {
    let series = |row: &SeriesRow| {
        let figure = |figure: f64| (row.count > 0).then_some(figure);
        json!({
            "name": row.name,
            "counter": row.counter,
            "count": row.count,
            "mean": figure(row.mean),
            "min": figure(row.min),
            "max": figure(row.max),
            "last": figure(row.last),
        })
    };
    json!({
        "name": row.name,
        "url": row.url,
        "machine": row.machine,
        "read": row.read,
        "failed": row.failed,
        "trouble": row.trouble.as_ref().map(Said::english),
        "left_out": row.left_out,
        "series": row.series.iter().map(series).collect::<Vec<_>>(),
    })
}

fn lifecycle(summary: &Summary) -> Value {
    with(&summary.connections.lifecycle, json!({ "complete_share": summary.complete_share() }))
}

fn heartbeats(summary: &Summary) -> Value {
    let beats = &summary.messages.heartbeats;
    with(
        &beats.counts,
        json!({ "lost_share": beats.lost_share(), "latency": latency(&beats.latency) }),
    )
}

fn tcp(summary: &Summary) -> Value {
    let tcp = &summary.connections.tcp;
    json!({
        "count": tcp.count,
        "round_trip": latency(&tcp.round_trip),
        "retransmits": tcp.retransmits,
        "backlog_max_bytes": tcp.backlog_bytes_max,
    })
}

fn machine(row: &MachineRow, info: &RunInfo) -> Value {
    let own = generator(&row.generator, info);
    let lost_ns = row.lost.as_ref().map(|(at_ns, _)| at_ns);
    json!({ "name": row.name, "shards": row.shards, "generator": own, "lost_at_ns": lost_ns })
}

fn generator(own: &Generator, info: &RunInfo) -> Value {
    let r = &own.resources;
    json!({
        "lateness": latency(&own.lateness),
        "precision_ns": info.precision_ns,
        "together_mean": own.together.mean(),
        "together_max": own.together.max,
        "late_seconds": own.late_seconds,
        "seconds": own.seconds,
        "cpu_ns": own.cpu_ns,
        "cores": own.cores,
        "cpu_per_attempt_ns": own.cpu_per_attempt_ns,
        "memory_max_bytes": own.memory_bytes_max,
        "host_cpu_mean": own.host_cpu_mean,
        "host_cpu_max": own.host_cpu_max,
        "host_busy_from_s": own.host_busy_from,
        "sustained_per_s": own.sustained_per_s,
        "shard_cpu_max": r.shard_cpu_max,
        "run_queue_ns": r.run_queue_ns,
        "lost_ns": own.lost_ns,
        "lost_longest_ns": own.lost_longest_ns,
        "quota_periods": r.quota_periods,
        "throttled_periods": r.throttled_periods,
        "throttled_ns": r.throttled_ns,
        "host_steal_max": r.host_steal,
        "host_softirq_max": r.host_softirq,
        "packets_dropped": r.packets_dropped,
        "listen_dropped": r.listen_dropped,
        "ports_left_min": r.ports_left,
        "users_max_bytes": r.users_bytes,
        "connections_max_bytes": r.connections_bytes,
        "recorder_max_bytes": r.recorder_bytes,
        "kernel_sockets_max_bytes": r.kernel_socket_bytes,
        "memory_available_min_bytes": Some(r.memory_available_bytes).filter(|left| *left > 0),
    })
}

/// Where machines left their hosts to others.
fn back_offs(summary: &Summary) -> Value {
    let step = |step: &BackOff| {
        let machine = machine_name(&summary.info, step.machine);
        let detail = step.detail.english();
        json!({ "at_ns": step.at_ns, "machine": machine, "percent": step.percent, "detail": detail })
    };
    let first: Vec<Value> = summary.events.back_offs.first.iter().map(step).collect();
    json!({ "count": summary.events.back_offs.count, "first": first })
}

/// How the generator kept to its limits.
fn growth(growth: &Growth) -> Value {
    let hold = |hold: &Hold| json!({ "at_ns": hold.at_ns, "limit": hold.limit, "detail": hold.detail.english() });
    json!({
        "held_seconds": growth.held_seconds,
        "held": growth.held.as_ref().map(hold),
        "given_up": growth.given_up.as_ref().map(hold),
    })
}

#[cfg(test)]
mod tests;
