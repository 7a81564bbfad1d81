//! `throng bench` over WebSocket: the server is `ws` of npm, which others have written.

use std::path::Path;
use std::process::Command;

use throng_fuzz::python_packages;

use crate::run::{Child, Run, throng};
use crate::scenarios::running;
use crate::scribe::{Asked, Scribe, answer};
use crate::servers::{Node, Target, program};

/// What it does with a connection is its path; it prints what it sees of clients.
const SERVER: &str = "
const { WebSocketServer } = require('ws');
const server = new WebSocketServer({
  host: '127.0.0.1', port: 0, backlog: 1024,
  perMessageDeflate: { threshold: 0 },
  handleProtocols: (offered) => offered.has('chat.v2') ? 'chat.v2' : false,
});
server.on('listening', () => console.log('listening ' + server.address().port));
server.on('connection', (socket, request) => {
  console.log('open ' + socket.protocol + '/' + socket.extensions);
  socket.on('close', (code) => console.log('close ' + code));
  socket.on('error', (error) => console.log('error ' + error.message));
  socket.on('pong', () => console.log('pong'));
  const path = request.url;
  if (path === '/ping') socket.on('message', (data, binary) => {
    socket.ping('are you there');
    socket.once('pong', () => socket.send(data, { binary }));
  });
  else if (path === '/close') socket.on('message', () => socket.close(4001, 'go away'));
  else if (path === '/done') socket.on('message', () => {
    const tcp = request.socket;
    tcp.cork();
    socket.send('done');
    socket.close(4001, 'done');
    tcp.uncork();
  });
  else if (path === '/leave') setTimeout(() => socket.close(1001, 'restart'), 300);
  else if (path === '/kill') socket.on('message', () => socket.terminate());
  else if (path === '/pieces') socket.on('message', (data) => {
    for (const byte of data) socket.send(Buffer.from([byte]), { fin: false, binary: false });
    socket.send('', { fin: true });
  });
  else socket.on('message', (data, binary) => socket.send(data, { binary }));
});
";

fn bench(node: &Node, path: &str, line: &str) -> Run {
    let url = node.url("ws");
    throng(&format!("bench {url}{path} {line} --json")).run()
}

#[test]
fn messages_are_echoed_and_users_leave_gracefully() {
    let node = Node::start(SERVER, &[]);
    let run = bench(&node, "", "-n 300 -c 10 --body hello --expect-text hello").succeeds(300);
    run.has("/connections/opened", 10);
    run.within("/messages/received", 300.0, 320.0);
    node.tells("open /", 10);
    node.tells("close 1000", 10);
    let run = bench(&node, "", "-n 30 -c 3 --body hello --expect-text other");
    run.fails("body-unexpected", "target or scenario", Some(30));
}

#[test]
fn users_that_leave_are_not_closed_by_the_target() {
    let node = Node::start(SERVER, &[]);
    let run = bench(&node, "", "-n 40 -c 4 --body hello").succeeds(40);
    run.has("/connections/closed_by_us", 4);
    run.has("/connections/closed_by_target", 0);
}

#[test]
fn bytes_are_echoed() {
    let node = Node::start(SERVER, &[]);
    bench(&node, "", "-n 50 -c 5 --hex 00ff7f80").succeeds(50);
    node.tells("close 1000", 5);
}

#[test]
fn large_messages_are_echoed() {
    let node = Node::start(SERVER, &[]);
    let url = node.url("ws");
    let line = format!("bench {url} -n 20 -c 2 --body @large.txt --json");
    let run = throng(&line).file("large.txt", "large ".repeat(50_000)).run().succeeds(20);
    run.within("/received_bytes", 20.0 * 300_000.0, 20.0 * 310_000.0);
}

#[test]
fn deflate_is_agreed_upon() {
    let node = Node::start(SERVER, &[]);
    let url = node.url("ws");
    let line = format!("bench {url} -n 40 -c 4 --deflate --body @text.txt --json");
    let run = throng(&line).file("text.txt", "again and again ".repeat(500)).run().succeeds(40);
    // 8,000 bytes each without.
    run.within("/received_bytes", 1.0, 40.0 * 800.0);
    run.within("/sent_bytes", 1.0, 40.0 * 800.0 + 4.0 * 1000.0);
    node.tells("open /permessage-deflate", 4);
    node.tells("close 1000", 4);
}

/// A server whose answer to the offer is what `perMessageDeflate` of `ws` makes of it; it prints
/// the offer. The messages of a user share their words, so with context takeover they shrink.
const DEFLATING: &str = "
const { WebSocketServer } = require('ws');
const perMessageDeflate = { threshold: 0, ...JSON.parse(process.argv[2]) };
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate });
server.on('listening', () => console.log('listening ' + server.address().port));
server.on('connection', (socket, request) => {
  console.log('offer ' + request.headers['sec-websocket-extensions']);
  socket.on('message', (data, binary) => socket.send(data, { binary }));
});
";

#[test]
fn every_answer_to_the_offer_of_a_browser_is_kept_to() {
    // Words that repeat after 700 bytes: beyond the smallest window of zlib, within the others.
    let words: String = (0..100).map(|word| format!("w{:06}", word * 7919 % 1_000_003)).collect();
    let text = words.repeat(12);
    for (options, received_max) in [
        ("{}", 200),
        (r#"{"serverNoContextTakeover":true}"#, 900),
        (r#"{"clientNoContextTakeover":true}"#, 200),
        (r#"{"serverMaxWindowBits":10}"#, 900),
        (r#"{"clientMaxWindowBits":9}"#, 200),
        (r#"{"clientMaxWindowBits":10,"serverMaxWindowBits":9}"#, 8_000),
    ] {
        let node = Node::start(DEFLATING, &[Path::new(options)]);
        let url = node.url("ws");
        let line =
            format!("bench {url} -n 80 -c 2 --deflate --body @t --expect-text w007919 --json");
        let run = throng(&line).file("t", &text).run().succeeds(80);
        // Two users, and the first message of each refers to no other.
        run.within("/received_bytes", 1.0, 80.0 * f64::from(received_max) + 2.0 * 1_200.0);
        node.tells("offer permessage-deflate; client_max_window_bits", 2);
    }
}

#[test]
fn an_illegal_answer_to_the_offer_is_blamed_on_the_target() {
    for (answer, told) in [
        ("permessage-deflate; server_max_window_bits=16", "RFC 7692, 7.1.2.1"),
        ("permessage-deflate; client_max_window_bits", "RFC 7692, 7.1.2.2"),
        ("permessage-deflate; server_no_context_takeover=1", "RFC 7692, 7.1.1.1"),
        ("permessage-deflate; level=9", "RFC 7692, 7"),
    ] {
        let server = answering(answer);
        let node = Node::start(&server, &[]);
        let run = bench(&node, "", "-n 4 -c 1 --deflate --body hi");
        run.fails("upgrade-refused", "target", None);
        run.says(&[told]);
    }
}

/// A server that accepts every upgrade with this value of `Sec-WebSocket-Extensions`.
fn answering(extensions: &str) -> String {
    format!(
        "
const crypto = require('crypto');
const server = require('http').createServer();
server.on('upgrade', (request, socket) => {{
  const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
  const accept = crypto.createHash('sha1').update(key).digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\n' +
    'Connection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n' +
    'Sec-WebSocket-Extensions: {extensions}\\r\\n\\r\\n');
}});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
"
    )
}

#[test]
fn a_sub_protocol_is_agreed_upon() {
    let node = Node::start(SERVER, &[]);
    let line = "-n 20 -c 2 --body hi --subprotocol chat.v1 --subprotocol chat.v2";
    bench(&node, "", line).succeeds(20);
    node.tells("open chat.v2/", 2);
}

#[test]
fn pings_are_answered_and_pieces_joined() {
    let node = Node::start(SERVER, &[]);
    let run = bench(&node, "ping", "-n 40 -c 4 --body hi --expect-text hi").succeeds(40);
    run.has("/messages/pings", 40);
    bench(&node, "pieces", "-n 20 -c 2 --body hello --expect-text hello").succeeds(20);
}

#[test]
fn a_server_that_closes_is_counted() {
    let node = Node::start(SERVER, &[]);
    let run = bench(&node, "close", "-n 8 -c 2 --body hi");
    run.fails("closed-early", "target", Some(8));
    run.says(&["4001"]);
    run.within("/connections/closed_by_target", 8.0, 10.0);
    let run = bench(&node, "kill", "-n 8 -c 2 --body hi");
    run.check(run.json()["errors"][0]["blame"] == "target", "blame");
    run.has("/total/failed", 8);
}

#[test]
fn idle_users_stay_until_the_end() {
    let node = Node::start(SERVER, &[]);
    let run = bench(&node, "", "-c 200 -d 2s").exits(0);
    run.has("/users/online_max", 200);
    run.has("/connections/opened", 200);
    run.has("/total/failed", 0);
    node.tells("close 1000", 200);
}

#[test]
fn idle_users_that_are_disconnected_are_lost() {
    let node = Node::start(SERVER, &[]);
    let run = bench(&node, "leave", "-c 5 -d 1s");
    run.fails("lost", "target", None);
    run.says(&["1001"]);
}

/// Speaks the upgrade and then breaks RFC 6455 in the way that the path says.
const BREAKER: &str = "
const net = require('net'), crypto = require('crypto');
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const frames = {
  garbage: Buffer.from('no frame at all, but text'),
  masked: Buffer.from([0x81, 0x82, 1, 2, 3, 4, 5, 6]),
  reserved: Buffer.from([0xf1, 0x00]),
  opcode: Buffer.from([0x83, 0x00]),
  text: Buffer.from([0x81, 0x02, 0xc3, 0x28]),
  control: Buffer.from([0x09, 0x00]),
  continuation: Buffer.from([0x80, 0x01, 0x61]),
  huge: Buffer.from([0x82, 0x7f, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
  half: Buffer.from([0x81, 0x7e, 0x01]),
};
const server = net.createServer((socket) => {
  socket.on('error', () => {});
  let path, heard = 0;
  const breaks = () => {
    const frame = path.split('/')[1];
    if (frame === 'half') return socket.end(frames.half);
    if (frame !== 'endless') return frames[frame] && socket.write(frames[frame]);
    const piece = Buffer.concat([Buffer.from([0x00, 0x7e, 0x40, 0x00]), Buffer.alloc(16384, 97)]);
    const first = Buffer.from(piece);
    first[0] = 0x01;
    socket.write(first);
    const more = () => { while (!socket.destroyed && socket.write(piece)); };
    socket.on('drain', more);
    more();
  };
  socket.on('data', (data) => {
    if (++heard === 2 && path.startsWith('answer/')) return breaks();
    if (heard > 1) return;
    const head = data.toString('latin1');
    path = head.split(' ')[1]?.slice(1);
    if (path === 'plain') return socket.end('HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n');
    if (path === 'silent') return;
    const key = /sec-websocket-key: *(\\S+)/i.exec(head)[1];
    const accept = crypto.createHash('sha1').update(key + guid).digest('base64');
    socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\n' +
      'Connection: Upgrade\\r\\nSec-WebSocket-Accept: ' +
      (path === 'accept' ? 'wrong' : accept) + '\\r\\n\\r\\n');
    if (path.startsWith('unasked/')) breaks();
  });
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

/// Six messages of three users, none of which can take longer than two seconds.
#[track_caller]
fn fails(node: &Node, path: &str, cause: &str) {
    let run = bench(node, path, "-n 6 -c 3 --body hi --timeout 2s");
    run.fails(cause, "target", Some(6));
    run.check(run.took.as_secs() < 20, "it took too long");
}

const BROKEN: [&str; 7] =
    ["garbage", "masked", "reserved", "opcode", "text", "control", "continuation"];

#[test]
fn broken_answers_are_counted_by_their_cause() {
    let node = Node::start(BREAKER, &[]);
    for frame in BROKEN {
        fails(&node, &format!("answer/{frame}"), "malformed");
    }
    fails(&node, "answer/huge", "too-large");
    fails(&node, "answer/endless", "too-large");
    fails(&node, "answer/half", "closed-early");
    fails(&node, "answer/nothing", "timeout");
}

#[test]
fn refused_upgrades_make_a_target_unreachable() {
    let node = Node::start(BREAKER, &[]);
    for (path, cause) in
        [("accept", "upgrade-refused"), ("plain", "upgrade-refused"), ("silent", "timeout")]
    {
        let run = bench(&node, path, "-n 6 -c 3 --body hi --timeout 2s");
        run.fails(cause, "target", None);
        run.check(run.took.as_secs() < 20, "it took too long");
        // Nothing was ever asked: all is as if nobody had listened.
        run.exits(4);
    }
}

#[test]
fn frames_that_break_the_protocol_unasked_are_the_target_s_fault() {
    let node = Node::start(BREAKER, &[]);
    for frame in BROKEN {
        let run = bench(&node, &format!("unasked/{frame}"), "-n 6 -c 3 --body hi --timeout 2s");
        let json = run.json();
        let rows = json["errors"].as_array().expect("rows");
        run.check(!rows.is_empty(), "there is no failure");
        for row in rows {
            // It comes before the message is sent, or while its answer is waited for.
            let fits = row["cause"] == "malformed" || row["cause"] == "lost";
            run.check(fits && row["blame"] == "target", &format!("not the target's: {row}"));
        }
    }
}

#[test]
fn the_reference_echo_and_the_messenger_are_loaded() {
    let echo = Target::start("echo");
    let line = format!("bench {} -n 200 -c 10 --body hello --json", echo.url("ws", "/"));
    throng(&line).run().succeeds(200);
    assert_eq!(echo.counts("/messages"), 200);
    echo.comes_to("/connections/open", 0);
    let im = Target::start("im");
    let line = format!("bench {} -n 100 -c 10 --json", im.url("ws", "/acc"));
    let login = r#"--body={"seq":"1","cmd":"login","data":{"userId":"u","appId":101}}"#;
    let run = throng(&line).arg(login).arg("--expect-json=response.code=200").run().succeeds(100);
    assert_eq!(im.counts("/logins"), 100, "{run}");
}

/// A room in the manner of Socket.IO: what is said comes to all, with what the path says of it.
const ROOM: &str = r#"
const { WebSocketServer } = require('ws');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, backlog: 1024 });
server.on('listening', () => console.log('listening ' + server.address().port));
server.on('connection', (socket, request) => {
  socket.send('0{"sid":"x"}');
  socket.on('message', (data) => {
    const said = JSON.parse(String(data).slice(2))[1];
    if (request.url === '/lossy' && said.n % 5 === 0) return console.log('lost ' + said.id);
    const text = '42["said",' + JSON.stringify(request.url === '/bare' ? {} : said) + ']';
    for (const client of server.clients) client.send(text);
  });
});
"#;

const TALK: &str = r#"name: talk
target: TARGET
sessions:
  member:
    before: [{connect: PATH}, {expect: {text: sid}}, {rendezvous: all are there, users: 8}]
    steps:
      - repeat: 5
        steps:
          - set: {n: "${int(user.id)}"}
          - send: {text: '42["say",{"id":"${random.uuid()}","n":${saved.n},"at":${now.ns()}}]'}
            name: say
      - {rendezvous: all is said, users: 8}
      - stay: 2s
deliveries:
  talk: {sent: say, received: {text: '42["said"'}, match: MATCH, stamp: {regex: '"at":(\d+)'}, lost_after: 1s}
load: [{iterations: 8, users: 8}]
"#;

fn talk(node: &Node, path: &str, matching: &str) -> Run {
    let text = TALK.replace("TARGET", &node.url("ws")).replace("PATH", path);
    let text = text.replace("MATCH", matching);
    throng("run talk.yaml --json --shards 2 --out record").file("talk.yaml", text).run()
}

#[test]
fn texts_of_other_protocols_get_replies() {
    let node = Node::start(ROOM, &[]);
    for matching in ["{prefix: '42', json: '[1].id'}", r#"{regex: '"id":"([^"]+)"'}"#] {
        let run = talk(&node, "/", matching).exits(0);
        let row = run.row("deliveries", "talk");
        run.check(row["sent"] == 40 && row["expected"] == 320, "all is due");
        run.check(row["delivered"] == 320 && row["lost"] == 0, "all has come");
        run.check(row["latency"]["max_ns"].as_u64() > Some(0), "stamps are read");
    }
    // What is lost is named as the server's log has it.
    let run = talk(&node, "/lossy", "{prefix: '42', json: '[1].id'}").exits(0);
    let row = run.row("deliveries", "talk");
    run.check(row["lost"] == 40, "five messages to eight users");
    let json = run.json();
    let told = json["errors"][0]["example"]["detail"].as_str().unwrap_or_default();
    let id = told.split(' ').nth(1).unwrap_or_default();
    node.tells(&format!("lost {id}"), 1);
}

#[test]
fn a_ledger_without_ids_is_not_a_success() {
    let node = Node::start(ROOM, &[]);
    let told = |run: &Run, words: &[&str]| {
        let reason = &run.json()["outcome"]["invalid_reasons"][0];
        run.check(reason["reason"] == "deliveries-blind", "the reason");
        let report =
            throng(&format!("report --details {}/record", run.folder().display())).run().exits(5);
        report.says(&["error[deliveries-blind]", "no ID was found in"]);
        report.says(words);
    };
    // No id in what is sent, and none in what is received.
    let run = talk(&node, "/", "{prefix: '43', json: '[1].id'}").exits(5);
    run.has("/deliveries/0/sent_without_id", 40);
    run.has("/deliveries/0/received_without_id", 320);
    told(&run, &["`42[\"say\",{\"id\":"]);
    // Only in what is received.
    let run = talk(&node, "/bare", "{prefix: '42', json: '[1].id'}").exits(5);
    run.has("/deliveries/0/sent", 40);
    told(&run, &["received by user"]);
}

/// Autobahn's cases for a server, as Python's package `kosoku` brings them.
const AUTOBAHN: &str = r#"
import asyncio, kosoku, os, sys

async def ask():
    try:
        left_out = ["9.*", "12.*", "13.*"]
        return await kosoku.run_fuzzingclient(sys.argv[1], exclude_cases=left_out, concurrency=4)
    except kosoku.FailureError as failure:
        print(failure)
        return failure.results

print(len(asyncio.run(ask())), "cases", flush=True)
# The package's native threads may abort the interpreter while it shuts down.
os._exit(0)
"#;

#[test]
fn the_echo_target_passes_autobahn() {
    let target = Target::start("echo");
    let mut command = Command::new(program("python3", "python3"));
    command.args(["-c", AUTOBAHN, &target.url("ws", "/")]);
    command.env("PYTHONPATH", python_packages("kosoku"));
    let run = Child::start(command).wait().exits(0);
    run.check(run.out == "247 cases\n", "all pass");
}

#[test]
fn an_expected_close_is_not_a_loss() {
    let node = Node::start(SERVER, &[]);
    let run = |steps: &str| {
        let text = format!(
            "target: {}\nload: [{{iterations: 12, users: 3}}]\nsessions: {{user: {{steps: \
             [{steps}]}}}}\n",
            node.url("ws")
        );
        running(&text).run()
    };
    let kicked = "{connect: /close}, {send: {text: bye}}";
    for wanted in [
        "{expect: {close: 4001}}",
        "{expect: {close: [1000, 4001]}}",
        "{expect: {close: any}}",
        "{stay: 1m, ends: [4001]}",
        "{stay: forever, ends: any}",
    ] {
        let run = run(&format!("{kicked}, {wanted}")).exits(0);
        run.has("/lifecycle/complete", 12);
        run.has("/lifecycle/broken", 0);
        run.has("/total/failed", 0);
    }
    // The last message and the end may come together; what is between takes no time.
    let done = "{connect: /done}, {send: {text: go}}, {expect: {text: done}, save: {last: body}}";
    let run_done = run(&format!(
        "{done}, {{log: 'heard ${{saved.last}}'}}, {{set: {{a: 1}}}}, {{expect: {{close: 4001}}}}"
    ));
    run_done.exits(0).has("/lifecycle/broken", 0);
    let other = run(&format!("{kicked}, {{expect: {{close: 4002}}}}"));
    other.says(&["the target closed the WebSocket with code 4001"]);
    let row = other.row("steps", "expect close");
    other.check(row["ok"] == 0 && row["failed"].as_u64() > Some(0), "another code is a failure");
    let never = run("{connect: /}, {expect: {close: any}, timeout: 200ms}, {disconnect: fin}");
    never.says(&["the target did not close the connection within 2"]);
    let row = never.row("steps", "expect close");
    never.check(row["ok"] == 0 && row["failed"] == 12, "no end is a failure");
}

#[test]
fn sub_protocols_differ_by_user() {
    let scribe = Scribe::answering(|_, _| answer("404 Not Found", "", ""));
    let text = format!(
        "target: {}\nload: [{{users: 3, for: 500ms}}]\nsessions: {{user: {{steps: [{{connect: \
         /, protocols: ['user-${{user.id}}', v1]}}]}}}}\n",
        scribe.target().replace("http:", "ws:")
    );
    let run = running(&text).run();
    let book = scribe.book();
    for user in 1..=3 {
        let want = format!("user-{user}, v1");
        let has = |asked: &Asked| asked.header("sec-websocket-protocol") == Some(want.as_str());
        run.check(book.iter().any(has), &want);
    }
}
