//! Event streams: against the reference target, whose books are held against what was heard, and
//! against a server on node's `http`, which others have written.

use crate::run::{Run, throng};
use crate::servers::{Node, Target};

/// What becomes of a stream is its path. It prints each stream and each event that it has sent.
const SERVER: &str = "
const over2 = process.argv.includes('h2c');
const http = require(over2 ? 'http2' : 'http');
const zlib = require('zlib');
let port = 0, streams = 0, events = 0;
const server = http.createServer((request, response) => {
  const path = request.url.split('?')[0];
  if (path === '/books') {
    response.end(JSON.stringify({ streams, events }));
    return;
  }
  if (path === '/html') return response.writeHead(200, {'Content-Type': 'text/html'}).end('hi');
  if (path === '/none') return response.writeHead(204).end();
  if (path === '/chat') {
    let body = '';
    request.on('data', (data) => body += data).on('end', () => {
      console.log('asked ' + request.method + ' ' + request.headers['content-type'] + ' '
        + body.length + ' ' + body.slice(0, 20));
      response.writeHead(200, {'Content-Type': 'text/event-stream'});
      for (const token of ['Hello', 'world', '[DONE]']) response.write('data: ' + token + '\\n\\n');
      response.end();
    });
    return;
  }
  streams += 1;
  console.log('accept ' + request.headers.accept + ' cookie ' + request.headers.cookie);
  const headers = {'Content-Type': 'text/event-stream; charset=utf-8'};
  const packed = (request.headers['accept-encoding'] || '').includes('gzip');
  if (packed) headers['Content-Encoding'] = 'gzip';
  response.writeHead(200, headers);
  const out = packed ? zlib.createGzip({ flush: zlib.constants.Z_SYNC_FLUSH }) : response;
  if (packed) out.pipe(response);
  let number = 0;
  const say = () => {
    number += 1;
    events += 1;
    const end = path === '/mac' ? '\\r' : path === '/dos' ? '\\r\\n' : '\\n';
    const lines = ['event: price', 'id: ' + number, ': beat', 'data: {', 'data: \"n\":' + number,
      'data: }', '', ''];
    out.write(lines.join(end));
    if (number === 20 && path === '/end') return out.end();
    if (number === 20 && path === '/close') {
      return response.write('', () => over2 ? request.stream.session.destroy() : request.socket.end());
    }
    if (number === 20 && path === '/kill' && over2) return request.stream.close(8);
    if (number === 20 && path === '/kill') {
      return response.write('', () => request.socket.resetAndDestroy());
    }
    if (number < 100) setTimeout(say, 2);
  };
  say();
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

/// A server for each version of HTTP, with the version.
fn nodes() -> [(&'static str, Node); 2] {
    [("1.1", Node::start(SERVER, &[])), ("2", Node::start(SERVER, &["h2c".as_ref()]))]
}

/// Users who read a stream; `steps` come behind its `connect`.
fn readers(target: &str, path: &str, connect: &str, steps: &str, load: &str) -> String {
    format!(
        "target: {target}
sessions:
  reader:
    steps:
      - connect: {path}
        events: true
        on: [{{message: any, name: events, check: {{json.n: \"> 0\"}}}}]
{connect}{steps}
load: [{load}]
"
    )
}

/// The same where HTTP/2 is spoken, or may be.
fn with_version(version: &str, text: &str) -> String {
    let tls = if text.contains("https://") { "tls: {verify: false}\n" } else { "" };
    format!("connection: {{http_version: \"{version}\"}}\n{tls}{text}")
}

fn run(text: String) -> Run {
    throng("run a.yaml --json").file("a.yaml", text).run()
}

#[test]
fn every_event_of_the_reference_target_is_received() {
    for (kind, scheme, version, streams) in
        [("http", "http", "1.1", 0), ("http --tls", "https", "1.1", 0)]
    {
        let target = Target::start(kind);
        let steps = "      - {expect: {json: {n: 7}}}\n      - http: GET /json\n      \
                     - {expect: {json: {n: 100}}, timeout: 20s}\n      - disconnect";
        let path = "/events?every=2ms&stall_after=100&size=300";
        let url = target.url(scheme, "");
        let text = readers(&url, path, "", steps, "{iterations: 20, users: 5}");
        let run = run(with_version(version, &text)).exits(0);
        assert_eq!(target.counts("/event_streams"), 20, "{run}");
        // No more are said then, and the stream goes on.
        assert_eq!(target.counts("/events"), 2000, "{run}");
        run.has("/messages/received", 2000);
        run.has("/lifecycle/begun", 20);
        // Of those that nobody waits for, but for the first of each stream.
        let row = run.row("pushed", "events");
        run.check(row["count"] == 2000 - 40, "what is not waited for");
        let between = &row["between"];
        run.check(between["count"] == 2000 - 60, "the first has none before it");
        run.check(between["mean_ns"].as_f64() > Some(1.5e6), "they are 2 ms apart");
        // The requests beside have a connection of their own, and so has each stream.
        assert_eq!(target.counts("/http2/requests"), 2 * streams, "{run}");
        run.check(run.json()["connections"]["http2"].as_u64() >= Some(streams), "by both sides");
    }
}

/// Each user checks that every event is the one behind the last that it has heard.
#[test]
fn no_event_is_lost_or_repeated_over_a_reconnect() {
    for (version, fault) in
        [("1.1", "close_after=30"), ("1.1", "reset_after=30"), ("2", "close_after=30")]
            .into_iter()
            .chain([("2", "reset_after=30")])
    {
        let target = Target::start("http");
        let text = format!(
            "target: {}
sessions:
  reader:
    steps:
      - connect: /events?every=2ms&retry=20ms&{fault}
        events: true
        on:
          - message: any
            name: events
            check: {{that: 'message.json.n == (has(saved.n) ? saved.n : 0) + 1'}}
            save: {{n: json.n}}
      - stay: forever
load: [{{users: 10, for: 1s}}]
",
            target.http("")
        );
        let run = run(with_version(version, &text));
        let (streams, events) = (target.counts("/event_streams"), target.counts("/events"));
        run.check(streams > 30, "users come back");
        // It is left alone for 20 ms each time, and a stream lasts for 60.
        run.check(streams <= 10 * 13, &format!("{streams} streams are too many"));
        let resumed = target.counts("/event_streams_resumed");
        run.check(resumed == streams - 10, &format!("{resumed} of {streams} go on"));
        let row = run.row("pushed", "events");
        let heard = row["count"].as_u64().unwrap_or_default();
        run.check(heard > 500, "events are heard");
        let wrong = run.json()["errors"].as_array().cloned().unwrap_or_default();
        run.check(wrong.iter().all(|error| error["cause"] == "lost"), "each is the next one");
        // What a reset overtakes is thrown away by the kernel and said again, and what is left at
        // the end is not heard.
        let most = 10 + if fault.starts_with("reset") { streams } else { 0 };
        run.check(heard <= events && events - heard <= most * 3, &format!("{heard} of {events}"));
    }
}

#[test]
fn node_streams_are_read_with_any_line_ends_and_coding() {
    let packed = "        headers: {Accept-Encoding: gzip}\n";
    let steps = "      - {expect: {event: price, json: {n: 7}}, timeout: 10s}\n      - {expect: {json: {n: 100}}, \
                 timeout: 20s}";
    for (version, node) in nodes() {
        for (path, connect) in [("/", ""), ("/mac", ""), ("/dos", packed), ("/", packed)] {
            let load = "{iterations: 4, users: 4}";
            let text = readers(&node.url("http"), path, connect, steps, load);
            let run = run(with_version(version, &text)).exits(0);
            run.has("/messages/received", 400);
            let rest = run.row("pushed", "events")["count"] == 400 - 8;
            run.check(rest, "all that are not waited for");
        }
        node.tells("accept text/event-stream cookie undefined", 16);
    }
}

#[test]
fn a_stream_that_node_ends_is_a_lost_connection() {
    let stay = "      - {stay: 5s, on_error: leave}";
    for (version, node) in nodes() {
        for path in ["/end", "/close", "/kill"] {
            let text = readers(&node.url("http"), path, "", stay, "{iterations: 5, users: 5}");
            let run = run(with_version(version, &text));
            run.fails("lost", "target", Some(5));
            if path != "/kill" {
                run.has("/messages/received", 100);
            }
        }
    }
}

#[test]
fn other_responses_are_not_event_streams() {
    let (steps, connect) = ("      - stay: 1s", "        on_error: leave\n");
    for (version, node) in nodes() {
        for (path, words) in [
            ("/html", "the response is `text/html`, not `text/event-stream`"),
            ("/none", "the event stream request got status 204 instead of 200"),
        ] {
            let load = "{iterations: 1, users: 1}";
            let text = readers(&node.url("http"), path, connect, steps, load);
            let run = run(with_version(version, &text));
            run.check(format!("{run}").contains(words), words);
            run.fails("upgrade-refused", "target", Some(1));
        }
    }
    // Each speaks one of them, and tells who speaks the other.
    let words = ["the target responds with HTTP/1, not HTTP/2", "malformed"];
    for (version, (_, node)) in ["2", "1.1"].into_iter().zip(nodes()) {
        let load = "{iterations: 1, users: 1}";
        let text = readers(&node.url("http"), "/", connect, steps, load);
        let run = run(with_version(version, &text));
        let text = format!("{run}");
        run.check(words.iter().any(|words| text.contains(words)), version);
    }
}

#[test]
fn a_stream_opens_with_a_post_body_and_ends_as_expected() {
    for (version, node) in nodes() {
        // Longer than what HTTP/2 lets through at first.
        let long = "x".repeat(100_000);
        let text = format!(
            "target: {}\nthresholds: [first event p95 < 10s, connect p95 < 10s]\nload: \
             [{{iterations: 6, users: 2}}]\nsessions:\n  user:\n    steps:\n      - {{connect: \
             POST /chat, events: true, json: {{prompt: hi, more: {long}}}}}\n      - expect: \
             {{text: '[DONE]'}}\n      - expect: {{close: any}}\n",
            node.url("http")
        );
        let run = run(with_version(version, &text)).exits(0);
        let want = format!("asked POST application/json {} {{\"prompt\":\"hi\",\"more", 100_025);
        node.tells(&want, 6);
        run.has("/total/failed", 0);
        run.has("/lifecycle/broken", 0);
    }
}
