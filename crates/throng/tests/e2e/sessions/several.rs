//! Users with several connections: a server that others have written, over HTTP and WebSocket.

use crate::run::throng;
use crate::servers::Node;

/// Logs in over HTTP, and lets those with a token in on the WebSocket; who joins over HTTP is
/// welcomed on the WebSocket. It tells what it sees. A path that begins with `/echo` needs no
/// token.
const SERVER: &str = "
const { WebSocketServer } = require('ws');
const tokens = new Set(), members = new Map();
const server = require('http').createServer((request, response) => {
  let body = '';
  request.on('data', (piece) => body += piece);
  request.on('end', () => {
    const token = (request.headers.authorization || '').replace('Bearer ', '');
    if (request.url === '/login') {
      const fresh = 't-' + JSON.parse(body).user;
      tokens.add(fresh);
      response.setHeader('Set-Cookie', 'session=' + fresh);
      return response.end(JSON.stringify({ token: fresh }));
    }
    const cookie = request.headers.cookie === 'session=' + token;
    response.statusCode = tokens.has(token) && cookie ? 200 : 401;
    console.log(response.statusCode + ' ' + request.url);
    response.end('{}');
    const room = request.url.match(/^\\/rooms\\/(.*)\\/join$/);
    if (room) members.get(room[1]).send(JSON.stringify({ cmd: 'welcome' }));
  });
});
const sockets = new WebSocketServer({ noServer: true });
server.on('upgrade', (request, socket, head) => {
  const token = new URL(request.url, 'http://a').searchParams.get('token');
  if (!request.url.startsWith('/echo') && !tokens.has(token)) return socket.destroy();
  sockets.handleUpgrade(request, socket, head, (it) => {
    const path = request.url.split('?')[0];
    members.set(token, it);
    it.on('close', () => console.log('close ' + path));
    it.on('message', (data) => {
      if (path !== '/acc') return it.send(path + ' ' + data);
      it.send(JSON.stringify({ cmd: 'login' }));
      it.send(JSON.stringify({ cmd: 'invite', room: token }));
    });
  });
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

fn targets(node: &Node) -> String {
    format!("targets: {{api: {}, chat: {}}}", node.url("http"), node.url("ws"))
}

#[test]
fn users_log_in_and_live_on_another_connection_with_the_token() {
    let node = Node::start(SERVER, &[]);
    let text = format!(
        "{}
sessions:
  member:
    headers: {{Authorization: \"Bearer ${{saved.token}}\"}}
    before:
      - {{http: POST /login, json: {{user: \"${{user.id}}\"}}, save: {{token: json.token}}}}
    steps:
      - connect: /acc?token=${{saved.token}}
      - request: {{json: {{cmd: login}}}}
        match: {{json: {{cmd: login}}}}
      - {{http: GET /friends, check: {{status: 200}}}}
      - expect: {{json: {{cmd: welcome}}}}
      - disconnect
    on:
      - message: {{json: {{cmd: invite}}}}
        name: invite
        do:
          - {{http: \"POST /rooms/${{message.json.room}}/join\", name: join, check: {{status: 200}}}}
load: [{{iterations: 8, users: 8}}]
",
        targets(&node)
    );
    let run = throng("run several.yaml --json").file("several.yaml", text).run().exits(0);
    for name in ["POST /login", "GET /friends", "expect"] {
        let row = run.row("steps", name);
        run.check(row["ok"] == 8 && row["failed"] == 0, name);
    }
    // Who is welcomed before the answer comes may be gone by then.
    let join = run.row("steps", "join");
    run.check(join["begun"] == 8 && join["failed"] == 0, "each joins once");
    run.check(run.row("pushed", "invite")["count"] == 8, "each is invited once");
    node.tells("200 /friends", 8);
    for user in 1..=8 {
        node.tells(&format!("200 /rooms/t-{user}/join"), 1);
    }
    node.tells("close /acc", 8);
}

#[test]
fn steps_name_their_connection() {
    let node = Node::start(SERVER, &[]);
    let text = format!(
        "{}
sessions:
  member:
    steps:
      - {{connect: /echo/a, as: one}}
      - connect: /echo/b
        as: two
        on: [{{message: {{text: /echo/a}}, name: astray}}]
      - {{request: {{text: hello}}, on: two, expect: {{text: /echo/b hello}}}}
      - {{request: {{text: hello}}, on: one, expect: {{text: /echo/a hello}}}}
      - {{disconnect: , on: one}}
      - {{request: {{text: again}}, on: two, expect: {{text: /echo/b again}}}}
      - {{disconnect: , on: two}}
load: [{{iterations: 20, users: 5}}]
",
        targets(&node).replace("api: ", "unused: ")
    );
    let run = throng("run several.yaml --json").file("several.yaml", text).run().exits(0);
    let row = run.row("steps", "request");
    run.check(row["ok"] == 60 && row["failed"] == 0, "each answer is that of its connection");
    run.has("/connections/opened", 40);
    node.tells("close /echo/a", 20);
    node.tells("close /echo/b", 20);
}

#[test]
fn branches_run_concurrently() {
    // Each answer waits until so many requests are there.
    let server = "
let waiting = [];
const server = require('http').createServer((request, response) => {
  const [, , together] = request.url.split('/');
  waiting.push(response);
  if (waiting.length < Number(together)) return;
  waiting.forEach((it) => it.end('{}'));
  waiting = [];
  console.log('together ' + together);
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";
    let node = Node::start(server, &[]);
    let text = format!(
        "target: {}
sessions:
  reader:
    steps:
      - parallel:
          - [{{http: GET /a/3}}, {{http: GET /a/2}}]
          - [{{http: GET /b/3}}]
          - [{{http: GET /c/3}}, {{http: GET /c/2}}]
        name: page
      - {{http: GET /d/1}}
load: [{{iterations: 4, users: 1}}]
",
        node.url("http")
    );
    let tried = throng("try several.yaml").file("several.yaml", &text).run().exits(0);
    tried.says(&["transaction page\nparallel\n✓ http GET /", "✓ transaction page", "all ok"]);
    let run = throng("run several.yaml --json").file("several.yaml", text).run().exits(0);
    run.has("/total/failed", 0);
    run.has("/connections/opened", 3);
    let page = run.row("transactions", "page");
    run.check(page["ok"] == 4, "each page is timed");
    // With the one that was tried.
    node.tells("together 3", 5);
    node.tells("together 2", 5);
    node.tells("together 1", 5);
}
