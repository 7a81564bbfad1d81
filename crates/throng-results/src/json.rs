//! The summary as JSON. The schema is documented in `docs/json.md`; names contain units.

mod actions;
mod capacity;
mod duel;
mod findings;

use serde_json::{Map, Value, json};
use throng_base::{Diagnostic, Said, Severity};
use throng_metrics::{
    Cause, Chain, Counts, DeliveryCounter, Percentile, Resources, SampleInterval, UserState,
};

pub use findings::judged_json;

use crate::audits;
use crate::back_off::{BackOff, machine_name};
use crate::directory::RunInfo;
use crate::monitors::MonitorRow;
use crate::once::OnceRun;
use crate::summary::picture::{Most, Picture};
use crate::summary::{
    Change, ChangeOf, DeliveryRow, ErrorRow, Example, Generator, LevelRow, MachineRow, OwnRow,
    PhaseRow, Row, SlowRow, Summary, TargetRow, ThresholdRow,
};
use crate::summary::{InvalidReason, Validity};
use crate::verdict::{headline, judge};

/// Version of the schema. New fields do not change it.
pub const JSON_FORMAT: u32 = 1;

/// The summary as one object.
pub fn summary_json(summary: &Summary) -> Value {
    let info = &summary.info;
    let mut value = json!({
        "format": JSON_FORMAT,
        "run": run(summary),
        "host": info.generator.host,
        "changes": rows(&summary.events.changes.first, change),
        "outcome": outcome(summary),
        "record": record(summary),
        "measured_ns": summary.measured.as_nanos() as u64,
        "lasted_ns": summary.lasted.as_nanos() as u64,
        "received_bytes": summary.connections.bytes_in,
        "sent_bytes": summary.connections.bytes_out,
        "total": summary.steps.total,
        "steps": summary.steps.rows,
        "transactions": rows(&summary.steps.transactions, transaction),
        "pushed": rows(&summary.steps.pushed, pushed),
        "own": rows(&summary.steps.own, own),
        "deliveries": rows(&summary.messages.deliveries, delivery),
        "stages": summary.connections.stages,
        "loads": summary.parts.loads,
        "phases": rows(&summary.parts.phases, |row| phase(summary, row)),
        "failures": summary.steps.failures,
        "errors": rows(&summary.steps.errors, error),
        "thresholds": rows(&summary.verdict.thresholds, threshold),
        "users": users(summary),
        "connections": connections(summary),
        "sessions": summary.parts.sessions,
        "targets": rows(&summary.parts.targets, target),
        "instances": summary.parts.instances,
        "slowest": slowest_json(summary),
        "residence": summary.connections.residence,
        "lifecycle": lifecycle(summary),
        "heartbeats": heartbeats(summary),
        "retries": with(&summary.steps.retries, json!({})),
        "tcp": summary.connections.tcp,
        "messages": with(&summary.messages.counts, json!({})),
        "log_lines": summary.events.log.count,
        "once": rows(&summary.events.once, once),
        "generator": generator(&summary.generator, &summary.info),
        "machines": rows(&summary.parts.machines, |row| machine(row, &summary.info)),
    });
    // The macro does not accept this many fields at once.
    let more = [
        ("samples", rows(&summary.steps.samples, sample)),
        ("by_label", json!(summary.parts.labels)),
        ("monitors", rows(&summary.monitors, monitor)),
        ("events", actions::actions(&summary.events.actions)),
        ("audits", rows(&summary.audits, audits::json)),
        ("growth", json!(summary.growth)),
        ("back_offs", back_offs(summary)),
        ("levels", rows(&summary.parts.levels, |row| level(summary, row))),
        ("capacity", capacity::capacity(summary.capacity.as_deref())),
        ("findings", findings::findings(&summary.verdict.why)),
        ("stability", findings::stability(&summary.verdict.why)),
        ("gave_way", findings::gave_way(&summary.verdict.why)),
    ];
    more.into_iter().for_each(|(name, told)| value[name] = told);
    if let Some(picture) = &summary.users.picture {
        value["population"] = population(picture);
    }
    if !info.tables.networks.is_empty() {
        value["networks"] = json!(info.tables.networks);
        value["packets"] = with(&summary.connections.packets, json!({}));
    }
    if let Some(found) = summary.duel.as_deref() {
        value["duel"] = duel::duel(found);
    }
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
        "stopped": summary.events.stopped,
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
        "unbalanced": summary.verdict.unbalanced,
        "last_line_torn": summary.verdict.damage.torn,
    })
}

/// Counts under their names in the table, and additional fields.
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
        "throng_version": info.build.version,
        "throng_commit": (!info.build.commit.is_empty()).then_some(&info.build.commit),
        "command": info.command,
        "started": info.time.started,
        "ended": info.time.ended,
        "seed": info.seed,
        "changes": info.changes.iter().map(Said::english).collect::<Vec<_>>(),
        "shards": info.generator.shards,
        "same_host": info.targets.same_host,
        "targets": info.targets.urls,
        "users_planned": info.users_planned,
        "interrupted": info.interrupted,
        "rerun_of": info.sources.rerun_of,
        "directory": summary.directory.as_ref().map(|path| path.display().to_string()),
    })
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

/// Selected fields of a row under the given names.
fn fields(row: &Row, names: &[(&str, &str)]) -> Value {
    let all = json!(row);
    names.iter().map(|(name, called)| (called.to_string(), all[*name].clone())).collect()
}

fn transaction(row: &Row) -> Value {
    let same = ["name", "labels", "begun", "count", "ok", "failed", "interrupted", "ok_after"];
    let same = same.into_iter().chain(["ok_per_s", "latency"]);
    let mut value = fields(row, &same.map(|name| (name, name)).collect::<Vec<_>>());
    value["latency_with_pauses"] = json!(row.with_pauses);
    value
}

fn pushed(row: &Row) -> Value {
    let same = [("name", "name"), ("labels", "labels"), ("count", "count")];
    let other =
        [("ok_per_s", "per_s"), ("latency", "between"), ("received_bytes", "received_bytes")];
    fields(row, &[same, other].concat())
}

/// Unit and values are null for a counter.
fn own(own: &OwnRow) -> Value {
    let (row, values) = (&own.row, &own.row.latency);
    let figures = own.unit.filter(|_| !values.is_empty()).map(|unit| {
        let scaled = |value: f64| value / unit.scale();
        let mut figures = json!({
            "min": scaled(values.min_ns as f64),
            "mean": scaled(values.mean_ns),
            "max": scaled(values.max_ns as f64),
        });
        for percentile in Percentile::MAIN {
            let value = values.percentile(*percentile).map(|value| scaled(value as f64));
            figures[percentile.word()] = json!(value);
        }
        figures
    });
    let names = ["name", "kind", "labels", "count"].map(|name| (name, name));
    let mut value = fields(row, &[&names[..], &[("ok_per_s", "per_s")]].concat());
    value["unit"] = json!(own.unit.map(|unit| unit.unit().word()));
    value["values"] = json!(figures);
    value
}

fn phase(summary: &Summary, row: &PhaseRow) -> Value {
    let mut value = json!(row);
    value["load"] = json!(summary.info.tables.loads.get(row.load));
    value
}

fn level(summary: &Summary, row: &LevelRow) -> Value {
    let names = ["name", "count", "failed", "ok_per_s", "latency"].map(|name| (name, name));
    let step = |row: &Row| fields(row, &names);
    let mut value = json!(row);
    value["load"] = json!(summary.info.tables.loads.get(row.load));
    value["total"] = step(&row.total);
    value["steps"] = rows(&row.steps, step);
    value
}

fn error(row: &ErrorRow) -> Value {
    let mut value = json!(row);
    value["text"] = row.cause.text().english().into();
    value
}

fn threshold(row: &ThresholdRow) -> Value {
    let mut value = json!(row);
    value["figure"] = value["figure"].take();
    value
}

fn monitor(row: &MonitorRow) -> Value {
    let mut value = json!(row);
    value["trouble"] = json!(row.trouble.as_ref().map(Said::english));
    for (series, _) in row.series.iter().enumerate().filter(|(_, series)| series.count == 0) {
        for figure in ["mean", "min", "max", "last"] {
            value["series"][series][figure] = Value::Null;
        }
    }
    value
}

fn generator(own: &Generator, info: &RunInfo) -> Value {
    let mut value = json!(own);
    value["precision_ns"] = json!(info.precision_ns);
    value["together_mean"] = json!(own.together.mean());
    value["together_max"] = json!(own.together.max);
    for gauge in Resources::gauges() {
        if let Some(name) = gauge.json {
            value[name] = json!((gauge.of)(&own.resources));
        }
    }
    value
}

/// The diagnostics that are not errors.
fn warnings(summary: &Summary) -> Vec<Value> {
    let all = summary.diagnostics().into_iter();
    let told = all.filter(|told| told.severity == Severity::Warning);
    let one = |told: Diagnostic| {
        let notes: Vec<String> = told.notes.iter().map(Said::english).collect();
        json!({ "code": told.code, "text": told.message.english(), "notes": notes })
    };
    told.map(one).collect()
}

/// Like its event, with the failure in English.
fn once(run: &OnceRun) -> Value {
    let mut value = json!(run);
    if let Some(failure) = &run.failure {
        value["failure"]["detail"] = failure.detail.english().into();
    }
    value
}

fn change(change: &Change) -> Value {
    let (at_ns, what) = (change.at_ns, &change.what);
    match &change.of {
        ChangeOf::Phase(phase) => json!({ "at_ns": at_ns, "phase": phase, "change": what }),
        ChangeOf::Mark => json!({ "at_ns": at_ns, "mark": what }),
        ChangeOf::Addresses => json!({ "at_ns": at_ns, "addresses": what }),
    }
}

fn delivery(row: &DeliveryRow) -> Value {
    with(
        &row.counts,
        json!({
            "name": row.name,
            "delivered_per_s": row.delivered_per_s,
            "lost_share": row.lost_share(),
            "latency": row.latency,
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

/// The maximum number of users in each state.
fn population(picture: &Picture) -> Value {
    let state = |(state, most): (UserState, Most)| -> Value {
        json!({"state": state.word(), "users_max": most.users, "at_s": most.at_s})
    };
    json!({
        "users_per_cell": picture.users_per_cell(),
        "cells": picture.cells(),
        "states": picture.most().map(state).collect::<Value>(),
    })
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
        "latency": row.latency,
        "received_bytes": counts.bytes_in,
        "sent_bytes": counts.bytes_out,
        "connections_attempted": counts.connections_attempted,
        "connections_opened": counts.connections_opened,
        "connections_failed": counts.connections_failed,
        "connections_passed_over": counts.connections_passed_over,
    })
}

/// The slowest attempts, the slowest first.
pub fn slowest_json(summary: &Summary) -> Value {
    rows(&summary.steps.slowest, slow)
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
        "chain": row.slow.chain.as_ref().map(chain),
    })
}

fn chain(chain: &Chain) -> Value {
    let mut told = json!({
        "opened": chain.opened,
        "tls_resumed": chain.tls_resumed,
        "retransmits": chain.retransmits,
    });
    for (stage, time) in chain.stages() {
        told[format!("{}_ns", stage.english().replace(' ', "_"))] = json!(time);
    }
    told
}

fn lifecycle(summary: &Summary) -> Value {
    with(&summary.connections.lifecycle, json!({ "complete_share": summary.complete_share() }))
}

fn heartbeats(summary: &Summary) -> Value {
    let beats = &summary.messages.heartbeats;
    with(&beats.counts, json!({ "lost_share": beats.lost_share(), "latency": beats.latency }))
}

fn machine(row: &MachineRow, info: &RunInfo) -> Value {
    let own = generator(&row.generator, info);
    let lost_ns = row.lost.as_ref().map(|(at_ns, _)| at_ns);
    json!({ "name": row.name, "shards": row.shards, "generator": own, "lost_at_ns": lost_ns })
}

/// The machines that backed off.
fn back_offs(summary: &Summary) -> Value {
    let step = |step: &BackOff| {
        let machine = machine_name(&summary.info, step.machine);
        let detail = step.detail.english();
        json!({ "at_ns": step.at_ns, "machine": machine, "percent": step.percent, "detail": detail })
    };
    let first: Vec<Value> = summary.events.back_offs.first.iter().map(step).collect();
    let generated = summary.generated();
    json!({ "count": summary.events.back_offs.count, "generated_share": generated, "first": first })
}

#[cfg(test)]
mod tests;
