//! The schema and its document agree.

use throng_metrics::{Place, Slow, TargetInterval};

use super::*;
use crate::sample;

const DOCUMENT: &str = include_str!("../../../../docs/json.md");

/// Every name of a field, with those it stands in.
fn names(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if path.ends_with(".codes") {
                    continue;
                }
                let path = format!("{path}.{name}");
                names(value, &path, found);
                found.push(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, path, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_in_the_document_and_the_other_way_round() {
    let mut summary = sample::shop(true);
    let reasons = vec![InvalidReason::Late { p99_ns: 1, max_ns: 2 }];
    summary.validity = Validity::Invalid { reasons };
    let mut found = Vec::new();
    names(&summary_json(&summary), "", &mut found);
    names(&summary_json(&sample::im_held(true)), "", &mut found);
    names(&summary_json(&sample::chat()), "", &mut found);
    let mut strained = sample::summary();
    strained.generator.late_seconds = strained.generator.seconds;
    strained.sessions.push(SessionRow {
        name: "reader".into(),
        begun: 2,
        finished: 1,
        failed: 1,
        interrupted: 0,
        finished_per_s: 1.0,
        time: Latency::default(),
    });
    let place = Place { target: 0, address: Some(([127, 0, 0, 1], 80).into()) };
    strained.targets.push(TargetRow {
        target: "http://a.test".into(),
        address: place.address,
        counts: TargetInterval::new(place),
        ok_per_s: 1.0,
        latency: Latency::default(),
    });
    strained.slowest.push(SlowRow { step: "GET /".into(), slow: Slow::default() });
    names(&summary_json(&strained), "", &mut found);
    assert!(found.len() > 100, "{}", found.len());
    let documented: Vec<&str> =
        DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_string();
    for path in &found {
        let name = last(path);
        assert!(documented.contains(&name.as_str()), "{path} is not in docs/json.md");
    }
    for name in documented {
        assert!(found.iter().any(|path| last(path) == name), "{name} is not in the JSON");
    }
}

#[test]
fn figures_are_where_programs_look_for_them() {
    let json = summary_json(&sample::summary());
    assert_eq!(json["format"], 1);
    assert_eq!(json["total"]["count"], 101_000);
    assert_eq!(json["steps"][0]["codes"]["503"], 80);
    assert_eq!(json["steps"][1]["first_byte"], Value::Null);
    assert_eq!(json["thresholds"][0]["verdict"], "met");
    assert_eq!(json["thresholds"][0]["unit"], "ns");
    assert_eq!(json["outcome"]["exit_code"], 0);
    assert_eq!(json["outcome"]["headline"], "goals met");
    assert_eq!(json["outcome"]["warnings"], json!([]));
    // 1,000 values have one above their p99.9, and none above a p99.99.
    assert_eq!(json["steps"][1]["latency"]["p99_99_ns"], Value::Null);
    assert!(json["steps"][1]["latency"]["p99_9_ns"].is_u64());
    assert_eq!(json["errors"][0]["blame"], "target");
    assert_eq!(json["measured_ns"], 10_000_000_000u64);

    let talk = &summary_json(&sample::chat())["deliveries"][0];
    assert_eq!((&talk["name"], &talk["expected"]), (&json!("room talk"), &json!(20_000_000)));
    assert_eq!((&talk["lost"], &talk["lost_share"]), (&json!(2), &json!(1e-7)));
    assert_eq!(talk["latency"]["max_ns"], 613_000_000);

    let im = summary_json(&sample::im());
    assert_eq!(im["users"]["online_max"], 1_000_000);
    assert_eq!(im["phases"][1]["users_online_min"], 999_997);
    assert_eq!(im["phases"][0]["opened_per_s"], 20_000.0);
    assert_eq!(im["connections"]["opened_per_s_max"], 20_000);
    assert_eq!(im["connections"]["refused"], 1_000);
    assert_eq!(im["stages"][3]["stage"], "first-message");
    assert_eq!(im["stages"][3]["cut_off"], Value::Null);
    assert_eq!(im["stages"][4]["failures"][0]["cause"], "reset");
    assert_eq!(im["heartbeats"]["lost"], 2);
    assert_eq!(im["lifecycle"]["broken"], 3);
    assert_eq!(im["pushed"][0]["count"], 10_500_000);
    assert_eq!(im["steps"].as_array().map(Vec::len), Some(4), "pushed messages are no steps");
    assert_eq!(im["growth"]["held"], Value::Null);
    assert_eq!(im["generator"]["ports_left_min"], 2_000_000);
    assert_eq!(im["thresholds"][3]["unit"], "share");
    let held = summary_json(&sample::im_held(true));
    assert_eq!(held["growth"]["given_up"]["limit"], "memory");
    assert_eq!(held["outcome"]["invalid_reasons"][0]["reason"], "growth-given-up");
    assert_eq!(held["outcome"]["exit_code"], 5);

    let shop = summary_json(&sample::shop(true));
    assert_eq!(shop["total"], json["total"]);
    assert_eq!(shop["transactions"][0]["count"], 500);
    assert_eq!(shop["transactions"][0]["latency"]["count"], 500);
    assert_eq!(shop["transactions"][0]["latency_with_pauses"]["count"], 500);
    assert_eq!(shop["steps"][2]["kind"], "rendezvous");
    assert_eq!(shop["thresholds"][2]["phase"], "load");
    assert_eq!(shop["thresholds"][3]["unit"], "number");
    assert_eq!(shop["thresholds"][4]["unit"], "bytes_per_s");
    assert_eq!(shop["thresholds"][5]["verdict"], "unknown");
    assert_eq!(shop["outcome"]["stopped"]["by"], "rule");
    assert_eq!(shop["outcome"]["exit_code"], 4);
    assert_eq!(shop["log_lines"], 12);
}
