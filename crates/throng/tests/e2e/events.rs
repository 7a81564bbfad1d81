//! Event streams: against the reference target, whose books are held against what was heard, and
//! against a server on node's `http`, which others have written.

use serde_json::Value;

use crate::run::{Run, throng};
use crate::servers::{Node, Target};

/// What becomes of a stream is its path. It prints each stream and each event that it has sent.
const SERVER: &str = "
const http = require('http');
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
    if (number === 20 && path === '/close') return response.write('', () => request.socket.end());
    if (number === 20 && path === '/kill') {
      return response.write('', () => request.socket.resetAndDestroy());
    }
    if (number < 100) setTimeout(say, 2);
  };
  say();
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

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

fn run(text: String) -> Run {
    throng("run a.yaml --json").file("a.yaml", text).run()
}

#[test]
fn every_event_of_the_reference_target_is_heard() {
    let target = Target::start("http");
    let steps = "      - {expect: {json: {n: 7}}}\n      - http: GET /json\n      - stay: 400ms\n      \
                 - disconnect";
    let path = "/events?every=2ms&count=100&size=300";
    let text = readers(&target.http(""), path, "", steps, "{iterations: 20, users: 5}");
    let run = run(text).exits(0);
    assert_eq!(target.counts("/event_streams"), 20, "{run}");
    // The answer is complete then, and the stream with it.
    assert_eq!(target.counts("/events"), 2000, "{run}");
    run.has("/messages/received", 2000);
    run.has("/lifecycle/begun", 20);
}

#[test]
fn streams_that_close_and_are_reset_lose_no_event_before() {
    for fault in ["close_after=30", "reset_after=30"] {
        let target = Target::start("http");
        let path = format!("/events?every=2ms&{fault}");
        let text =
            readers(&target.http(""), &path, "", "      - stay: forever", "{users: 10, for: 1s}");
        let run = run(text);
        let (streams, events) = (target.counts("/event_streams"), target.counts("/events"));
        run.check(streams > 20, "users come back");
        let heard = run.json().pointer("/messages/received").and_then(Value::as_u64);
        let heard = heard.unwrap_or_default();
        // What a reset overtakes is thrown away by the kernel, and so is what is left at the end.
        let most = 10 + if fault.starts_with("reset") { streams } else { 0 };
        run.check(heard <= events && events - heard <= most * 3, &format!("{heard} of {events}"));
    }
}

#[test]
fn a_server_of_others_is_heard_whatever_its_line_ends_and_coding() {
    let node = Node::start(SERVER, &[]);
    let packed = "        headers: {Accept-Encoding: gzip}\n";
    let steps = "      - {expect: {json: {n: 7}}, timeout: 10s}\n      - {expect: {json: {n: 100}}, \
                 timeout: 20s}";
    for (path, connect) in [("/", ""), ("/mac", ""), ("/dos", packed), ("/", packed)] {
        let text = readers(&node.url("http"), path, connect, steps, "{iterations: 4, users: 4}");
        let run = run(text).exits(0);
        run.has("/messages/received", 400);
        run.check(run.row("pushed", "events")["count"] == 400 - 8, "all that are not waited for");
    }
    node.tells("accept text/event-stream cookie undefined", 16);
}

#[test]
fn what_a_server_of_others_ends_is_a_lost_connection() {
    let node = Node::start(SERVER, &[]);
    for path in ["/end", "/close", "/kill"] {
        let text = readers(
            &node.url("http"),
            path,
            "",
            "      - {stay: 5s, on_error: leave}",
            "{iterations: 5, users: 5}",
        );
        let run = run(text);
        run.fails("lost", "target", Some(5));
        if path != "/kill" {
            run.has("/messages/received", 100);
        }
    }
}

#[test]
fn what_is_no_event_stream_does_not_open() {
    let node = Node::start(SERVER, &[]);
    for (path, words) in [
        ("/html", "the answer is `text/html`, not `text/event-stream`"),
        ("/none", "the event stream was answered with status 204 instead of 200"),
    ] {
        let steps = "      - stay: 1s";
        let connect = "        on_error: leave\n";
        let text = readers(&node.url("http"), path, connect, steps, "{iterations: 1, users: 1}");
        let run = run(text);
        run.check(format!("{run}").contains(words), words);
        run.fails("upgrade-refused", "target", Some(1));
    }
}
