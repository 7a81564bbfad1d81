//! The load of k6: `vus`, `duration`, `stages`, `scenarios` and `thresholds`.

use std::time::Duration;

use throng_base::units::parse_duration;

use crate::json::Json;
use crate::model::{LeftOut, Phase, Recording};

/// The names and functions of scenarios that do not run the default function.
pub(super) fn scenarios(options: &Json) -> Vec<(String, String)> {
    let scenarios = options.entries_of("scenarios");
    let exec = |one: &Json| one.str("exec").map(str::to_string);
    scenarios.iter().filter_map(|(name, one)| Some((name.clone(), exec(one)?))).take(50).collect()
}

pub(super) fn duration(value: &Json) -> Option<Duration> {
    match value {
        // A plain number is milliseconds.
        Json::Number(number) => {
            Some(Duration::from_millis(number.parse::<f64>().ok()?.max(0.0) as u64))
        }
        other => parse_duration(other.as_str()?).ok(),
    }
}

pub(super) fn read(options: &Json, recording: &mut Recording) {
    let scenarios = options.entries_of("scenarios");
    let phases = match scenarios.first() {
        Some((_, first)) => phases(first),
        None => phases(options),
    };
    if scenarios.len() > 1 {
        let what = say!("the loads of other scenarios; see `loads` of the scenario");
        recording.left_out.push(LeftOut::of_all(scenarios.len() - 1, what));
    }
    recording.load = phases;
    recording.is_insecure = options.is_true("insecureSkipTLSVerify");
    for (metric, list) in options.entries_of("thresholds") {
        let list = match list {
            Json::List(items) => items.clone(),
            one => vec![one.clone()],
        };
        for one in &list {
            let text = one.as_str().or_else(|| one.str("threshold")).unwrap_or_default();
            match threshold(metric, text) {
                Some(line) => recording.thresholds.push(line),
                None => {
                    let text: String = format!("{metric} {text}").chars().take(80).collect();
                    recording.left_out.push(LeftOut::of_all(1, say!("the threshold `{text}`")));
                }
            }
        }
    }
    const KNOWN: [&str; 7] = [
        "stages",
        "vus",
        "duration",
        "iterations",
        "scenarios",
        "thresholds",
        "insecureSkipTLSVerify",
    ];
    for (name, _) in options.entries().iter().filter(|(name, _)| !KNOWN.contains(&name.as_str())) {
        let name: String = name.chars().take(40).collect();
        recording.left_out.push(LeftOut::of_all(1, say!("the option `{name}`")));
    }
}

fn number(options: &Json, key: &str) -> Option<f64> {
    options.str(key)?.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn phases(options: &Json) -> Vec<Phase> {
    let executor = options.word("executor");
    let vus = number(options, "vus").or_else(|| number(options, "preAllocatedVUs")).unwrap_or(1.0);
    let vus = vus.clamp(1.0, 1e7) as u64;
    let time = options.get("duration").and_then(duration);
    let unit = options.get("timeUnit").and_then(duration).unwrap_or(Duration::from_secs(1));
    let per_second = |rate: f64| rate / unit.as_secs_f64().max(0.001);
    let stages = options.list("stages");
    match executor {
        "constant-arrival-rate" => {
            let rate = per_second(number(options, "rate").unwrap_or(1.0));
            let time = time.unwrap_or(Duration::from_secs(60));
            let most = number(options, "maxVUs").map_or(vus, |most| most.clamp(1.0, 1e7) as u64);
            vec![Phase::Rate { rate, users: most, time }]
        }
        "ramping-arrival-rate" => {
            let mut from = per_second(number(options, "startRate").unwrap_or(0.0));
            let mut phases = Vec::new();
            for stage in stages.iter().take(1000) {
                let to = per_second(number(stage, "target").unwrap_or(0.0));
                let time = stage.get("duration").and_then(duration).unwrap_or_default();
                if !time.is_zero() && (from > 0.0 || to > 0.0) {
                    phases.push(Phase::Arrivals { from, to, time });
                }
                from = to;
            }
            phases
        }
        _ if !stages.is_empty() => {
            ramps(number(options, "startVUs").map_or(0, |vus| vus as u64), stages)
        }
        _ => match (number(options, "iterations"), time) {
            (Some(total), _) if executor != "per-vu-iterations" => {
                vec![Phase::Iterations { total: total as u64, users: vus }]
            }
            (Some(each), _) => vec![Phase::Iterations { total: each as u64 * vus, users: vus }],
            (None, Some(time)) => vec![Phase::Users { users: vus, time }],
            (None, None) if options.get("vus").is_some() => {
                vec![Phase::Users { users: vus, time: Duration::from_secs(60) }]
            }
            (None, None) => Vec::new(),
        },
    }
}

fn ramps(start: u64, stages: &[Json]) -> Vec<Phase> {
    let mut phases = Vec::new();
    let mut users = start;
    for stage in stages.iter().take(1000) {
        let to = number(stage, "target").unwrap_or(0.0).min(1e7) as u64;
        let time = stage.get("duration").and_then(duration).unwrap_or_default();
        match (to == users, time.is_zero()) {
            // There are no users.
            (true, _) if to == 0 => {}
            (true, false) => phases.push(Phase::Users { users: to, time }),
            (true, true) => {}
            (false, _) => phases.push(Phase::Ramp { to, time }),
        }
        users = to;
    }
    phases
}

/// `p(95)<500` of `http_req_duration` is `http p95 < 500ms`.
fn threshold(metric: &str, text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let at = text.find(['<', '>'])?;
    let (figure, rest) = text.split_at(at);
    let end = rest.find(|c: char| !matches!(c, '<' | '>' | '=')).unwrap_or(rest.len());
    let (sign, value) = rest.split_at(end);
    let value: f64 = value.parse().ok()?;
    let share = |value: f64| format!("{}%", (value * 100_000.0).round() / 1000.0);
    match metric {
        "http_req_duration" => {
            let figure = match figure {
                "avg" => "mean".to_string(),
                "med" => "p50".to_string(),
                "min" | "max" => figure.to_string(),
                figure => {
                    let percentile = figure.strip_prefix("p(")?.strip_suffix(')')?;
                    percentile.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p))?;
                    format!("p{percentile}")
                }
            };
            Some(format!("http {figure} {sign} {value}ms"))
        }
        "http_req_failed" if figure == "rate" => Some(format!("errors {sign} {}", share(value))),
        "checks" if figure == "rate" => Some(format!("checks {sign} {}", share(value))),
        "http_reqs" if figure == "rate" => Some(format!("http rate {sign} {value}/s")),
        "http_reqs" if figure == "count" => Some(format!("http count {sign} {value}")),
        _ => None,
    }
}
