//! Recipes of connections that stay open, and of certificates.

use super::{cooked, json_of, tally, with_recipe};
use crate::http::tls::Papers;
use crate::run::Throng;
use crate::scribe::{Scribe, ok};
use crate::servers::Node;

const HTTP: &str = "http://127.0.0.1:8080";

/// nginx takes nobody without a certificate of the authority.
pub(super) fn client_certificates(name: &str) {
    let papers = Papers::signed();
    let ca = papers.path("ca.pem").display().to_string();
    let nginx =
        papers.nginx("server", &format!("ssl_client_certificate {ca}; ssl_verify_client on;"));
    let target = format!("https://127.0.0.1:{}", nginx.port);
    let changes = [
        ("https://127.0.0.1:8443", target.as_str()),
        ("think: 1s", "think: 1ms"),
        ("{users: 100, for: 1m}", "{iterations: 20, users: 4}"),
        ("p95 < 200ms", "p95 < 20s"),
    ];
    let line = "run recipe.yaml --json --out record";
    let with_papers = |run: Throng| {
        ["ca.pem", "client.pem", "client.key"].iter().fold(run, |run, file| {
            run.file(file, std::fs::read(papers.path(file)).expect("a file"))
        })
    };
    let run = with_papers(with_recipe(line, name, &changes)).run().exits(0);
    run.has("/total/ok", 20);
    let without = [("  certificate: client.pem\n", ""), ("  key: client.key\n", "")];
    let changes: Vec<_> = changes.into_iter().chain(without).collect();
    let run = with_papers(with_recipe(line, name, &changes)).run().exits(1);
    run.has("/total/ok", 0);
}

/// Takes users with a token, greets them, and has news for them ten times a second.
const LIVE: &str = "
const { WebSocketServer } = require('ws');
const verifyClient = ({ req }) => /^Bearer token-of-u\\d+$/.test(req.headers.authorization || '');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, path: '/live', verifyClient });
server.on('listening', () => console.log('listening ' + server.address().port));
server.on('connection', (socket, request) => {
  const token = request.headers.authorization.slice('Bearer token-of-'.length);
  socket.on('ping', () => console.log('ping'));
  socket.on('message', (data) => {
    const { cmd, user } = JSON.parse(data);
    if (cmd !== 'hello' || user !== token) return socket.close(4001);
    console.log('hello ' + user);
    socket.send(JSON.stringify({ cmd: 'welcome' }));
    setInterval(() => socket.send(JSON.stringify({ cmd: 'news' })), 100);
  });
});
";

pub(super) fn websocket_with_a_token(name: &str) {
    let node = Node::start(LIVE, &[]);
    let scribe = Scribe::answering(|asked, _| {
        let user = json_of(asked)["user"].as_str().unwrap_or_default().to_string();
        ok(&format!("{{\"token\":\"token-of-{user}\"}}"))
    });
    let (api, live) = (scribe.target(), format!("ws://127.0.0.1:{}", node.port));
    let changes = [
        (HTTP, api.as_str()),
        ("ws://127.0.0.1:8081", live.as_str()),
        ("every: 30s, lost_after: 10s", "every: 1s, lost_after: 1s"),
        ("{to: 1000, rate: 50/s}", "{to: 10, rate: 50/s}"),
        ("for: 10m}", "for: 3s}"),
        ("p99 < 1s", "p99 < 20s"),
        ("heartbeats.lost < 0.1%", "heartbeats.lost < 20%"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/failed", 0);
    assert_eq!(scribe.count("POST /login"), 10, "{run}");
    let said = node.child.output();
    let greeted = tally(said.lines().filter(|line| line.starts_with("hello ")));
    assert!(greeted.len() == 10 && greeted.values().all(|count| *count == 1), "{said}\n{run}");
    run.within("/heartbeats/answered", 10.0, 50.0);
    let news = run.row("pushed", "news")["count"].as_u64().unwrap_or_default();
    run.check(news >= 100, "news came");
}

/// Engine.IO 4 and Socket.IO as far as a room needs them. It closes on whoever answers no ping.
const ROOM: &str = "
const { WebSocketServer } = require('ws');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, path: '/socket.io/' });
server.on('listening', () => console.log('listening ' + server.address().port));
const rooms = new Map();
server.on('connection', (socket, request) => {
  if (request.url !== '/socket.io/?EIO=4&transport=websocket') return socket.close(4000);
  let waits = false, joined = false, room = new Set();
  socket.send('0' + JSON.stringify({ sid: 'x', pingInterval: 200, pingTimeout: 2000 }));
  setInterval(() => { if (!waits) { waits = true; socket.send('2'); asked = Date.now(); } }, 200);
  let asked = 0;
  setInterval(() => { if (waits && Date.now() - asked > 2000) socket.close(4002); }, 200);
  socket.on('close', (code) => { room.delete(socket); console.log('closed ' + code); });
  socket.on('message', (data) => {
    const text = data.toString();
    if (text === '3') { waits = false; return console.log('pong'); }
    if (text === '40') { joined = true; return socket.send('40{\"sid\":\"y\"}'); }
    const [, number, json] = /^42(\\d*)(.*)$/.exec(text) || [];
    if (!joined || !json) return socket.close(4001);
    const [event, value] = JSON.parse(json);
    if (event === 'join') {
      if (!rooms.has(value)) rooms.set(value, new Set());
      room = rooms.get(value).add(socket);
      console.log('join ' + value);
      socket.send('43' + number + '[\"ok\"]');
    } else {
      console.log('say');
      for (const other of room) {
        if (other !== socket) { console.log('said'); other.send('42' + JSON.stringify(['said', value])); }
      }
    }
  });
});
";

pub(super) fn a_socket_io_room(name: &str) {
    let node = Node::start(ROOM, &[]);
    let target = format!("ws://127.0.0.1:{}", node.port);
    let changes = [
        ("ws://127.0.0.1:8080", target.as_str()),
        ("think: 5s..15s", "think: 50ms"),
        ("user.id % 10", "user.id % 2"),
        ("{users: {to: 500, rate: 50/s}}, {for: 5m}", "{iterations: 6, users: 6}"),
        ("p95 < 500ms", "p95 < 20s"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/failed", 0);
    node.tells("closed 1000", 6);
    let said = node.child.output();
    let lines = tally(said.lines());
    let many = |line: &str| lines.get(line).copied().unwrap_or_default();
    assert_eq!((many("join room-0"), many("join room-1"), many("say")), (3, 3, 120), "{run}");
    // A second of silence between the first message and the last has several pings.
    assert!(many("pong") >= 6, "{said}\n{run}");
    let heard = run.row("pushed", "said")["count"].as_u64().unwrap_or_default();
    assert!(heard > 0 && heard <= many("said") as u64, "{heard} heard\n{run}");
}

/// Streams ten tokens: the first after 200 ms, each of the others after 20 ms. Half of the
/// requests are answered by JSON lines.
const LLM: &str = "
const http = require('http');
// A timer of Node counts from when its loop last looked at the clock, and so may be early.
const pause = async (ms) => {
  const end = performance.now() + ms;
  for (let left = ms; left > 0; left = end - performance.now()) {
    await new Promise((done) => setTimeout(done, Math.ceil(left)));
  }
};
const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', (part) => { body += part; });
  request.on('end', async () => {
    const asked = JSON.parse(body);
    if (request.url !== '/v1/chat/completions' || !asked.stream) return response.writeHead(400).end();
    const lines = request.headers.accept.includes('ndjson');
    const type = lines ? 'application/x-ndjson' : 'text/event-stream';
    response.writeHead(200, { 'Content-Type': type });
    const say = (text) => response.write(lines ? text + '\\n' : 'data: ' + text + '\\n\\n');
    for (let n = 0; n < 10; n += 1) {
      await pause(n ? 20 : 200);
      say(JSON.stringify({ choices: [{ delta: { content: 'w' + n } }] }));
    }
    say(lines ? JSON.stringify({ done: true }) : '[DONE]');
    response.end();
  });
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

pub(super) fn tokens_from_an_llm(name: &str) {
    let node = Node::start(LLM, &[]);
    let target = node.url("http");
    let changes = [
        (HTTP, target.as_str()),
        ("think: 5s..20s", "think: 1ms"),
        ("{users: 50, for: 10m}", "{iterations: 10, users: 2}"),
        ("p95 < 800ms", "p95 < 20s"),
        ("p99 < 200ms", "p99 < 20s"),
        ("p5 > 20", "p5 > 1"),
    ];
    let of_lines = [
        ("events: true", "events: true\n                headers: {Accept: application/x-ndjson}"),
        ("message.body == '[DONE]'", "has(json.parse(message.body).done)"),
    ];
    for more in [&[][..], &of_lines] {
        let changes: Vec<_> = changes.iter().chain(more).copied().collect();
        let run = cooked(name, &changes).run().exits(0);
        run.has("/total/failed", 0);
        let nanos = |list: &str, row: &str, figure: &str| {
            run.row(list, row)["latency"][figure].as_u64().unwrap_or_default()
        };
        run.check(nanos("transactions", "time to first token", "min_ns") >= 200_000_000, "first");
        run.check(nanos("transactions", "reply", "min_ns") >= 350_000_000, "the whole reply");
        // Nine tokens and the end.
        assert_eq!(run.row("steps", "next token")["ok"], 100, "{run}");
        assert_eq!(run.row("own", "tokens")["count"], 100, "{run}");
        let rate = run.row("own", "token rate")["values"]["max"].as_f64().unwrap_or_default();
        run.check(rate > 1.0, &format!("{rate} tokens per second"));
    }
}
