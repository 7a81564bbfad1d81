//! The plan as JSON, in English. `docs/plan.md` documents each field.

use crate::Plan;
use crate::reckon::Row;
use serde_json::{Value, json};

use super::Planned;
use super::page::resource_word;

pub fn json(planned: &Planned) -> Value {
    let Plan { wish, reckoned, machine, sizes, .. } = &planned.plan;
    let parts = sizes.parts.iter().map(|part| {
        let is_within = part.kind.is_within();
        json!({ "part": part.kind, "bytes": part.bytes, "within_task": is_within })
    });
    json!({
        "name": planned.plan.program.name,
        "users": wish.users,
        "requests_per_s": wish.requests_per_s,
        "heartbeats_per_s": wish.heartbeats_per_s,
        "opened_per_s": wish.opened_per_s,
        "reopened_per_s": wish.reopened_per_s,
        "kept": reckoned.kept,
        "endpoints": wish.endpoints,
        "target_is_local": wish.is_local,
        "cost": cost(planned),
        "parts": parts.collect::<Vec<_>>(),
        "recorder": {
            "steps": sizes.recorder.steps,
            "shard_empty_bytes": sizes.recorder.shard_empty_bytes,
            "shard_typical_bytes": sizes.recorder.shard_typical_bytes,
        },
        "machine": {
            "this_host": machine.is_this_host,
            "cores": machine.cores,
            "memory_bytes": machine.memory_bytes,
            "source_addresses": machine.addresses,
            "source_ports": machine.ports,
            "descriptors": machine.descriptors,
        },
        "needs": reckoned.rows.iter().map(need).collect::<Vec<_>>(),
        "machines": reckoned.machines,
        "machines_with_addresses": reckoned.machines_with_addresses,
        "each": each(planned),
        "coming_seconds": reckoned.coming_seconds,
        "peak": peak(planned),
        "fleet": planned.plan.agents.as_ref().map(super::fleet::json),
    })
}

fn cost(planned: &Planned) -> Value {
    let cost = &planned.plan.cost;
    let measured = planned.plan.measured.as_ref().map(|it| {
        json!({
            "directory": it.directory.display().to_string(),
            "name": it.name,
            "users": it.users,
            "user_bytes": it.user_bytes,
            "connect_cpu_ns": it.connect_ns,
            "request_cpu_ns": it.request_ns,
            "sustained_per_s": it.sustained_per_s,
        })
    });
    json!({
        "user_bytes": cost.user_bytes,
        "kernel_bytes": cost.kernel_bytes,
        "kernel_is_measured": planned.plan.socket.1,
        "target_bytes": planned.plan.wish.is_local.then_some(cost.target_bytes),
        "connect_cpu_ns": cost.connect_ns,
        "request_cpu_ns": cost.request_ns,
        "measured": measured,
    })
}

fn need(row: &Row) -> Value {
    json!({
        "resource": resource_word(row.resource),
        "needed": row.needed,
        "machine_gives": row.given,
        "machines": row.machines,
    })
}

fn each(planned: &Planned) -> Value {
    let each = &planned.plan.reckoned.each;
    json!({
        "users": each.users,
        "opened_per_s": each.opened_per_s,
        "requests_per_s": each.requests_per_s,
        "memory_bytes": each.memory_bytes,
        "cores": each.cores,
        "source_addresses": each.addresses,
        "source_ports": each.ports,
        "descriptor_tables": each.tables,
        "shards": each.shards,
    })
}

fn peak(planned: &Planned) -> Option<Value> {
    let peak = planned.plan.peak?;
    let per_machine = planned.per_machine.or(planned.plan.sustained());
    Some(json!({
        "views_per_day": peak.views,
        "share": peak.share,
        "of_day": peak.of_day,
        "per_s": peak.rate(),
        "per_machine_per_s": per_machine,
        "machines": per_machine.map(|rate| peak.machines(rate)),
    }))
}
