//! Suggestions: words of other tools and of throng's own output, and misspelled words.

use std::fmt::Display;

use throng_base::{Said, diagnostic};

/// Words and their equivalents here; the candidates in the context determine which one applies.
const SYNONYMS: &[(&[&str], &[&str])] = &[
    // Steps.
    (
        &["get", "post", "put", "delete", "patch", "head", "graphql", "url", "visit", "fetch"],
        &["http"],
    ),
    (&["call", "method", "path", "uri", "endpoint"], &["http", "request"]),
    (&["websocket", "ws", "open", "dial"], &["connect"]),
    (&["close"], &["disconnect", "fin"]),
    (&["rst", "abort", "kill"], &["reset"]),
    (&["graceful", "orderly", "clean", "normal"], &["fin"]),
    (&["drop", "silent", "none"], &["vanish"]),
    (&["receive", "recv", "wait_for"], &["expect"]),
    (
        &[
            "wait",
            "wait_time",
            "between",
            "sleep",
            "pause",
            "delay",
            "thinktime",
            "think_time",
            "idle",
            "pacing",
        ],
        &["think", "wait"],
    ),
    (&["latency", "rtt", "round_trip"], &["delay"]),
    (&["packet_loss", "drop_rate"], &["loss"]),
    (&["bandwidth", "cps", "throughput", "down", "up"], &["rate"]),
    (&["throttle", "throttling", "netem", "toxic"], &["network"]),
    (&["randomized", "randomised", "distribution"], &["spacing"]),
    (&["exponential"], &["poisson"]),
    (&["sinus", "sinusoidal", "wave", "cosine"], &["sine"]),
    (&["curve", "profile", "stages", "shape"], &["points"]),
    (&["access_log", "replay"], &["log"]),
    (&["speedup", "speed_up", "factor"], &["speed"]),
    (&["uniform", "regular"], &["even"]),
    (&["max_vus", "max_vusers", "max_users", "limit"], &["max"]),
    (&["loop", "times", "iterate"], &["repeat"]),
    (&["foreach", "each"], &["for_each"]),
    (&["group", "tag"], &["transaction", "name"]),
    (&["before_all", "on_test_start", "prepare", "init", "global_setup"], &["setup"]),
    (&["after_all", "on_test_stop", "cleanup", "clean_up", "tear_down"], &["teardown"]),
    (&["labels", "tags", "tag", "annotations"], &["label"]),
    (&["batch", "concurrent", "concurrently", "resources", "fork", "all"], &["parallel"]),
    (&["random", "random_choice", "switch", "weighted", "percent"], &["choose"]),
    (&["barrier", "sync", "synchronize"], &["rendezvous"]),
    (&["break", "abort", "exit", "quit", "end"], &["stop", "leave"]),
    (&["continue", "skip"], &["next", "count"]),
    (&["print", "echo"], &["log"]),
    (&["assign", "define", "variable"], &["set"]),
    (&["import"], &["use", "include"]),
    (&["starttls", "start_tls", "upgrade_tls", "tls"], &["secure"]),
    // Keys of steps.
    (&["target", "connection", "link", "channel", "socket"], &["on"]),
    (&["extract", "extractors", "capture", "store", "register", "export"], &["save"]),
    (
        &["assert", "assertions", "asserts", "validate", "checks", "expectations", "verify"],
        &["check", "thresholds"],
    ),
    (&["header"], &["headers"]),
    (&["data", "payload", "content"], &["body"]),
    (&["params"], &["form", "with"]),
    (&["retries", "max_retries"], &["retry"]),
    (&["follow_redirects", "follow"], &["redirects"]),
    (&["request_timeout", "response_timeout", "deadline"], &["timeout", "lost_after"]),
    (&["timeout", "lost", "expires"], &["lost_after"]),
    (&["interval", "period", "frequency", "repeat_every", "each"], &["every"]),
    (&["keepalive", "keep_alive", "heart_beat", "heartbeats", "ping", "pings"], &["heartbeat"]),
    (&["handlers", "listen", "on_message", "onmessage", "pushes", "subscribe"], &["on"]),
    (&["msg", "match", "when"], &["message"]),
    (&["auto_reconnect", "reconnects", "on_lost", "on_disconnect"], &["reconnect"]),
    (&["backoff", "back_off"], &["wait", "reconnect", "retry"]),
    (&["onfail", "on_failure", "on_fail", "onerror"], &["on_error"]),
    (&["probability", "share", "ratio", "likelihood"], &["weight"]),
    (&["username", "login"], &["user"]),
    (&["bytes", "binary"], &["hex"]),
    (&["status_code", "statuscode", "code"], &["status"]),
    (&["response_time", "duration_ms", "latency"], &["time"]),
    (&["jsonpath", "json_path"], &["json"]),
    (&["regexp", "re"], &["regex"]),
    (&["is", "equal", "eq"], &["equals"]),
    (&["contain", "includes"], &["contains"]),
    (&["match", "pattern"], &["matches", "regex"]),
    // Keys of the scenario.
    (&["url", "base_url", "baseurl", "host", "server", "hosts", "targets"], &["target"]),
    (&["variables", "env", "params", "constants"], &["vars"]),
    (&["feeder", "feeders", "csv", "datasets", "dataset", "payload"], &["data"]),
    (&["goals", "sla", "slo", "slas", "ensure", "criteria"], &["thresholds"]),
    (&["scenarios", "scenario", "flows", "journeys"], &["sessions"]),
    (
        &["stages", "ramp", "phases", "execution", "executor", "options", "profile", "schedule"],
        &["load", "users"],
    ),
    (&["functions", "fragments", "snippets"], &["parts"]),
    (&["global", "globals", "settings"], &["defaults"]),
    (&["ssl", "https"], &["tls"]),
    (&["report", "reports", "exporters"], &["outputs"]),
    // Keys of phases.
    (&["vus", "threads", "concurrency", "virtual_users", "clients", "ramp_to"], &["users"]),
    (&["duration", "hold", "hold_for", "holdfor", "time"], &["for"]),
    (
        &["arrival_rate", "arrivalrate", "arrival", "rps", "qps", "throughput", "new_users"],
        &["arrivals", "iterations", "rate"],
    ),
    (&["target", "count", "max"], &["to"]),
    (&["ramp_up", "rampup", "spawn_rate", "per_second"], &["rate", "users"]),
    (&["spawn_rate", "hatch_rate", "start_rate"], &["rate"]),
    (&["steps", "step_size", "step_users", "increment", "batch", "size"], &["step"]),
    (&["step_time", "step_duration", "step_every"], &["every"]),
    (&["burst", "spike", "instant", "immediately", "all_at_once", "together"], &["at_once"]),
    (&["flapping", "flap", "reconnects", "chaos", "drops", "fall_out"], &["churn"]),
    (&["ratio", "percent", "percentage", "part"], &["share"]),
    (&["ways", "mode", "kind", "ends", "close"], &["how"]),
    // Source addresses.
    (
        &["ips", "ip", "address", "bind", "local_addr", "local_address", "interface", "cidr"],
        &["addresses", "sources"],
    ),
    (&["port", "port_range", "local_ports"], &["ports"]),
    // Sessions and data.
    (&["setup", "on_start", "before_all", "prepare"], &["before"]),
    (&["teardown", "on_stop", "cleanup"], &["after"]),
    (&["flow", "requests", "tasks", "exec", "do", "actions"], &["steps"]),
    (&["delimiter", "delim", "sep"], &["separator"]),
    (&["fields", "header", "names"], &["columns"]),
    (&["order", "strategy", "mode"], &["take"]),
    (&["file", "path"], &["csv", "json_lines"]),
    (&["sequential", "sequence", "queue"], &["circular"]),
    (&["once"], &["unique"]),
    // Protocol files.
    (&["name", "field", "key"], &["id"]),
    (&["header", "frame", "layout", "attributes", "envelope"], &["packet", "seq"]),
    (&["commands", "packets", "opcodes", "methods"], &["messages"]),
    (&["opcode", "command", "cmd", "code", "tag", "msg_type"], &["kind", "selects"]),
    (&["reply_to", "response_to", "replies", "answer", "reply"], &["answers"]),
    (&["byteorder", "byte_order", "endianness", "order"], &["endian"]),
    (&["constant", "magic", "value", "equals"], &["const"]),
    (&["times", "array", "items"], &["repeat"]),
    (&["when", "condition", "optional", "present_if"], &["if"]),
    (&["len", "prefix", "length_prefix"], &["length", "size"]),
    (&["crc", "hash", "digest"], &["checksum"]),
    (&["ack", "acknowledge", "acknowledged", "acks"], &["acknowledged_by"]),
    (&["structs", "structures", "records"], &["types"]),
    (&["separator", "terminated_by", "until"], &["terminator", "delimiter"]),
    (&["values", "labels"], &["enum"]),
    (&["unsolicited", "server_push", "notification"], &["push"]),
    // Figures of thresholds.
    (&["error_rate", "fail_rate", "failures", "failed", "http_req_failed", "fails"], &["errors"]),
    (&["median", "med"], &["p50"]),
    (&["average"], &["avg", "mean"]),
    (&["rps", "qps", "throughput", "reqs"], &["rate"]),
    (&["success", "success_rate", "passed"], &["ok", "checks"]),
    (&["http_req_duration", "http_reqs", "requests"], &["http"]),
    // Roots of names in expressions.
    (&["var", "variables"], &["vars"]),
    (&["environment", "__env"], &["env"]),
    (&["session", "save"], &["saved"]),
    (&["__vu", "vu"], &["user"]),
    (&["__iter", "iter", "loop"], &["iteration"]),
    (&["res", "answer", "reply"], &["response"]),
];

/// The candidate that is a synonym of `word`, or spelled similarly.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let simple = word.to_ascii_lowercase().replace(['-', ' '], "_");
    let meanings = SYNONYMS.iter().filter(|(words, _)| words.contains(&simple.as_str()));
    let meant = meanings.flat_map(|(_, meanings)| meanings.iter());
    let meant = meant.copied().find_map(|meaning| {
        candidates.iter().copied().find(|candidate| *candidate == meaning && meaning != word)
    });
    meant
        .or_else(|| quantile(&simple, &candidates))
        .or_else(|| diagnostic::did_you_mean(word, candidates))
}

/// The label of a wrong word: the suggestion, if there is one.
#[allow(clippy::needless_pass_by_value)] // Suggestions are passed by value.
pub(crate) fn near_label(near: Option<impl Display>, otherwise: Said) -> Said {
    near.map_or(otherwise, |near| say!("did you mean `{near}`?"))
}

/// `p(95)` and `95th` as the figure `p95`.
fn quantile<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let inner = word.strip_prefix("p(").and_then(|word| word.strip_suffix(')'));
    let inner = inner.or_else(|| word.strip_suffix("th")).or_else(|| word.strip_suffix('%'))?;
    candidates.iter().copied().find(|candidate| candidate.strip_prefix('p') == Some(inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    #[test]
    fn words_of_other_tools_are_known() {
        let verbs = || keys::VERBS.iter().map(|(verb, _)| *verb);
        for (word, want) in [
            ("wait", "think"),
            ("wait_time", "think"),
            ("between", "think"),
            ("thinktime", "think"),
            ("think-time", "think"),
            ("loop", "repeat"),
            ("group", "transaction"),
            ("get", "http"),
            ("GraphQL", "http"),
            ("random", "choose"),
        ] {
            let meant = did_you_mean(word, verbs().filter(|verb| *verb != "for_each"));
            assert_eq!(meant, Some(want), "{word}");
        }
        for (word, want, kind) in [
            ("extract", "save", &keys::HTTP),
            ("store", "save", &keys::HTTP),
            ("assert", "check", &keys::HTTP),
            ("validate", "check", &keys::HTTP),
            ("assert", "thresholds", &keys::SCENARIO),
            ("sla", "thresholds", &keys::SCENARIO),
            ("stages", "load", &keys::SCENARIO),
            ("phases", "load", &keys::SCENARIO),
            ("scenarios", "sessions", &keys::SCENARIO),
            ("base_url", "target", &keys::SCENARIO),
            ("env", "vars", &keys::SCENARIO),
            ("feeders", "data", &keys::SCENARIO),
            ("ramp", "users", &keys::PHASE),
            ("duration", "for", &keys::PHASE),
            ("sesions", "sessions", &keys::SCENARIO),
        ] {
            assert_eq!(did_you_mean(word, kind.names()), Some(want), "{word}");
        }
        let figures = ["errors", "p95", "rate"];
        assert_eq!(did_you_mean("p(95)", figures), Some("p95"));
        assert_eq!(did_you_mean("error_rate", figures), Some("errors"));
        assert_eq!(did_you_mean("xyz", figures), None);
    }

    #[test]
    fn synonyms_refer_to_words_of_the_language() {
        for (words, meanings) in SYNONYMS {
            for word in *words {
                let is_simple = word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                assert!(is_simple, "{word}");
                assert!(!meanings.contains(word) || words.len() > 1, "{word}");
            }
        }
    }
}
