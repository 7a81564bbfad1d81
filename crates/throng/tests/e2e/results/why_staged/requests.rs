//! What becomes of requests: refused, repeated, answered by others, or waiting.

use super::{finds, running, sure};
use crate::run::{throng, throng_first};
use crate::servers::{Haproxy, Nginx, Node, Target};
use crate::service::host_monitor::Monitor;

/// It refuses an ID that it has.
const UNIQUE: &str = r#"
const seen = new Set();
const server = require("http").createServer((request, response) => {
  let body = "";
  request.on("data", (data) => (body += data));
  request.on("end", () => {
    response.statusCode = seen.has(body) ? 409 : 201;
    seen.add(body);
    response.end("x");
  });
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

#[test]
fn conflicts_of_repeated_data_are_those_of_the_scenario() {
    let node = Node::start(UNIQUE, &[]);
    let text = format!(
        "target: {}\nsessions: {{s: {{steps: [{{http: POST /users, json: {{id: \"${{random.int(1, \
         1000)}}\"}}}}]}}}}\nload: [{{iterations: 2_000, users: 8}}]\n",
        node.url("http")
    );
    let repeated = throng("run s.yaml --json --shards 1").file("s.yaml", text).run().exits(0);
    finds(&repeated, "own-duplicates");
    let row = repeated.json()["samples"][0].clone();
    let share = row["conflicts_repeated"].as_f64().zip(row["conflicts"].as_f64());
    repeated.check(share.is_some_and(|(own, all)| own >= all * 0.4 && own <= all), "a part");
}

/// The same server refuses for its own reasons, and no request repeats.
#[test]
fn conflicts_of_unique_data_are_not() {
    const OVERLAP: &str = r#"
let count = 0;
const server = require("http").createServer((request, response) => {
  request.resume().on("end", () => {
    response.statusCode = ++count % 3 === 0 ? 409 : 201;
    response.end("x");
  });
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;
    let node = Node::start(OVERLAP, &[]);
    let text = format!(
        "target: {}\nsessions: {{s: {{steps: [{{http: POST /users, json: {{id: \"${{user.id}}-\
         ${{iteration}}\"}}}}]}}}}\nload: [{{iterations: 2_000, users: 8}}]\n",
        node.url("http")
    );
    let unique = throng("run s.yaml --json").file("s.yaml", text).run().exits(0);
    let row = unique.json()["samples"][0].clone();
    unique.check(row["conflicts"].as_u64() > Some(500), "there are conflicts");
    let all = unique.json()["findings"].to_string();
    unique.check(!all.contains("own-duplicates"), "they are the server's own");
}

/// A limit that answers 503 at once, as nginx does by default: no status tells that it is one.
#[test]
fn a_rate_limit_of_nginx_is_told_by_its_flat_successes() {
    let limit = "limit_req_zone $server_port zone=all:1m rate=250r/s;\nlimit_req_log_level info;";
    let page = "location /limited { limit_req zone=all burst=30 nodelay; empty_gif; }";
    let nginx = Nginx::start_with(limit, "", page);
    let line = format!("bench {} --rate 500 -d 12s --json", nginx.url("/limited"));
    let run = throng(&line).run();
    let found = finds(&run, "rate-limited");
    run.check(found.contains("503") && found.contains("stayed at 250/s"), "by 503, at which rate");
    run.check(!sure(&run).iter().any(|it| it == "saturated"), "and not for want of power");
}

/// A queue with one server, which needs 5 ms for each request.
#[test]
fn a_growing_backlog_is_saturation() {
    let target = Target::begun("http --servers 1 --service 5ms", throng_first);
    let text = format!(
        "target: {}\nload: [{{arrivals: 300/s, for: 20s}}]\ngraceful_stop: 0s\nsessions: {{s: \
         {{steps: [http: GET /]}}}}\n",
        target.http("")
    );
    let run = running(&text).run();
    let found = finds(&run, "saturated");
    run.check(found.contains("the offered load was 300/s"), "what was offered");
}

/// Users pause for 0.3 s and wait for a millisecond.
#[test]
fn a_rate_that_pauses_do_not_allow_is_bound_by_them() {
    let target = Target::start("http");
    let text = format!(
        "target: {}\nload: [{{users: 20, for: 4s}}]\nthresholds: [\"http rate > 200/s\"]\n\
         sessions: {{s: {{steps: [http: GET /, {{think: 300ms}}]}}}}\n",
        target.http("")
    );
    let run = running(&text).run().exits(1);
    finds(&run, "think-bound");
}

#[test]
fn retries_of_the_scenario_amplify_the_load() {
    let target = Target::start("http --errors 10%");
    let text = format!(
        "target: {}\nload: [{{users: 10, for: 3s}}]\nsessions: {{s: {{steps: [{{http: GET /, \
         retry: {{times: 3, wait: 1ms..2ms, on: [5xx]}}}}, {{think: 20ms}}]}}}}\n",
        target.http("")
    );
    let run = throng("run s.yaml --json").file("s.yaml", text).run().exits(0);
    finds(&run, "amplified");
}

/// HAProxy repeats what the target answers with 500: throng sees nothing of it, and its monitor
/// does.
#[test]
fn hidden_retries_of_a_proxy_are_found_by_its_monitor() {
    let target = Target::start("http --errors 20%");
    let sections = format!(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\
         backend shop\n  retries 3\n  retry-on 500 502 503\n  server a {}\n",
        target.address
    );
    let haproxy = Haproxy::start(&sections, "shop");
    let (socket, port) = (haproxy.socket(), haproxy.port);
    let words = format!("--listen 127.0.0.1:0 --haproxy {socket} --port {port}");
    let monitor = Monitor::start_first(&words);
    let text = format!(
        "target: http://127.0.0.1:{}\nmonitor: [{{url: \"{}\", every: 2s}}]\nload: [{{users: 10, \
         for: 8s}}]\nsessions: {{s: {{steps: [http: GET /, {{think: 20ms}}]}}}}\n",
        haproxy.port,
        monitor.url()
    );
    let run = throng("run s.yaml --json").file("s.yaml", text).run();
    let found = finds(&run, "amplified");
    run.check(found.contains("proxy `shop`"), "which proxy");
    let seen = target.counts("/requests") as f64;
    run.check(seen > run.figure("/total/ok") * 1.1, "the target had more to do");
}

/// nginx keeps 19 of 20 pages for a service that needs 60 ms.
#[test]
fn a_cache_with_five_percent_of_misses_is_named() {
    let service = Target::start("http --latency 60ms");
    let nginx = Nginx::start_with(
        "proxy_cache_path cache keys_zone=pages:1m;",
        "",
        &format!(
            "location /page/ {{ proxy_cache pages; proxy_cache_valid 200 1h; proxy_cache_lock on; \
             add_header X-Cache $upstream_cache_status; proxy_pass http://{}/; }}",
            service.address
        ),
    );
    let text = format!(
        "target: {}\nload: [{{users: 10, for: 5s}}]\nsessions: {{s: {{steps: [{{http: \
         \"GET /page/${{random.int(1, 20) > 1 ? random.int(1, 30) : random.int(1, 1000000)}}\", \
         name: page}}, {{think: 10ms}}]}}}}\n",
        nginx.url("")
    );
    let run = running(&text).run().exits(0);
    finds(&run, "too-good");
    let all = run.json()["findings"].to_string();
    run.check(all.contains("two-peaks"), "hits and misses are two peaks");
}
