//! Which cookies are sent with which request, as servers receive them: over HTTP, in a WebSocket
//! upgrade, in the request of an event stream; by host; and which are refused.

use crate::run::throng;
use crate::scenarios::{one_session, times};
use crate::scribe::{Scribe, answer, ok};
use crate::servers::Node;

/// HTTP, event streams and WebSockets on one port. It prints each request with its cookies, and
/// every kind of answer sets one.
const SERVER: &str = "
const http = require('http');
const { WebSocketServer } = require('ws');
const told = (what, request) =>
  console.log(what + ' ' + request.headers.host + ' ' + (request.headers.cookie || 'none'));
const server = http.createServer((request, response) => {
  const path = request.url.split('?')[0];
  told(path, request);
  const headers = {};
  const login = ['sid=1; Path=/; Secure; HttpOnly', 'deep=1; Path=/chat'];
  if (path === '/login') headers['Set-Cookie'] = login;
  if (path === '/stream') headers['Set-Cookie'] = 'stream=3; Path=/';
  if (path !== '/stream') return response.writeHead(200, headers).end('ok');
  response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream' });
  response.write('data: 1\\n\\n');
});
const sockets = new WebSocketServer({ server });
sockets.on('headers', (headers) => headers.push('Set-Cookie: ticket=2; Path=/'));
sockets.on('connection', (socket, request) => {
  told('upgrade ' + request.url, request);
  socket.on('message', (data, binary) => socket.send(data, { binary }));
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

#[test]
fn upgrades_and_event_streams_send_cookies_and_set_them() {
    let node = Node::start(SERVER, &[]);
    let port = node.port;
    let scenario = format!(
        "targets: {{web: \"http://127.0.0.1:{port}\", chat: \"ws://127.0.0.1:{port}\"}}
defaults: {{cookies: {{lang: en}}}}
sessions:
  one:
    steps:
      - {{http: GET /login, target: web}}
      - {{connect: /chat/room, target: chat, headers: {{Cookie: own=7}}}}
      - {{http: GET /after, target: web}}
      - {{connect: /stream, events: true, target: web, as: feed}}
      - {{http: GET /last, target: web}}
{}",
        times(1, 1)
    );
    let run = throng("run s.yaml --json").file("s.yaml", scenario).run().exits(0);
    run.has("/total/failed", 0);
    let host = format!("127.0.0.1:{port}");
    for (what, cookies) in [
        ("/login", "lang=en"),
        ("upgrade /chat/room", "own=7; lang=en; deep=1; sid=1"),
        ("/after", "lang=en; sid=1; ticket=2"),
        ("/stream", "lang=en; sid=1; ticket=2"),
        ("/last", "lang=en; sid=1; ticket=2; stream=3"),
    ] {
        node.tells(&format!("{what} {host} {cookies}"), 1);
    }
}

#[test]
fn users_without_cookies_keep_none_of_an_upgrade() {
    let node = Node::start(SERVER, &[]);
    let host = format!("127.0.0.1:{}", node.port);
    let scenario = format!(
        "target: ws://{host}\nconnection: {{cookies: false}}\nsessions:\n  one:\n    steps:\n      \
         - connect: /first\n      - disconnect\n      - connect: /second\n{}",
        times(1, 1)
    );
    throng("run s.yaml --json").file("s.yaml", scenario).run().exits(0);
    node.tells(&format!("upgrade /first {host} none"), 1);
    node.tells(&format!("upgrade /second {host} none"), 1);
}

/// A server with several names at one address.
#[test]
fn cookies_are_stored_by_requested_host() {
    let scribe = Scribe::answering(|asked, _| match asked.what.as_str() {
        "GET /login" => {
            let host = asked.header("host").expect("a host");
            let name = host.split(['.', ':']).next().expect("a name");
            answer("200 OK", &format!("Set-Cookie: who={name}; Path=/\r\n"), "ok")
        }
        _ => ok("ok"),
    });
    let steps = "\
- {http: GET /login, headers: {Host: one.test}}
- {http: GET /a, headers: {Host: one.test}}
- {http: GET /b, headers: {Host: two.test}}
- {http: GET /login, headers: {Host: \"u${user.id}.test:8080\"}}
- {http: GET /c, headers: {Host: \"u${user.id}.test:8080\"}}
- {http: GET /d}
- {http: GET /e, headers: {host: ONE.test}}";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    throng("run s.yaml").file("s.yaml", text).run().exits(0);
    let book = scribe.book();
    let sent = |what: &str| {
        let asked = book.iter().find(|asked| asked.what == what).expect("a request");
        asked.header("cookie").map(String::from)
    };
    assert_eq!(sent("GET /a").as_deref(), Some("who=one"));
    assert_eq!(sent("GET /b"), None, "of another host");
    assert_eq!(sent("GET /c").as_deref(), Some("who=u1"));
    assert_eq!(sent("GET /d"), None, "of the target itself");
    assert_eq!(sent("GET /e").as_deref(), Some("who=one"));
}

#[test]
fn an_upgrade_uses_the_requested_host() {
    let node = Node::start(SERVER, &[]);
    let scenario = format!(
        "target: ws://127.0.0.1:{}\nsessions:\n  one:\n    steps:\n      \
         - {{connect: /first, headers: {{Host: one.test}}}}\n      - disconnect\n      \
         - {{connect: /second, headers: {{Host: two.test}}}}\n      - disconnect\n      \
         - {{connect: /third, headers: {{Host: one.test}}}}\n{}",
        node.port,
        times(1, 1)
    );
    throng("run s.yaml --json").file("s.yaml", scenario).run().exits(0);
    node.tells("upgrade /first one.test none", 1);
    node.tells("upgrade /second two.test none", 1);
    node.tells("upgrade /third one.test ticket=2", 1);
}

#[test]
fn a_refused_cookie_is_reported_by_try() {
    let scribe = Scribe::answering(|_, _| {
        let set = "Set-Cookie: other=1; Domain=other.example\r\nSet-Cookie: noname\r\n\
                   Set-Cookie: good=1; Secure\r\n";
        answer("200 OK", set, "ok")
    });
    let text = one_session(&scribe.target(), &times(1, 1), "- http: GET /\n- http: GET /again");
    let run = throng("try s.yaml").file("s.yaml", text).run().exits(0);
    run.says(&[
        "the cookie `other` was rejected: its `Domain` does not include the host `127.0.0.1`",
        "the cookie `noname` was rejected: it is not `name=value`",
    ]);
    run.check(!run.out.contains("the cookie `good`"), "this one is kept");
    assert_eq!(scribe.book()[1].header("cookie"), Some("good=1"), "this computer is as TLS");
    // A name that is not of this computer, wherever it leads.
    let port = scribe.target().rsplit(':').next().expect("a port").to_string();
    let text = format!(
        "target: http://shop.test:{port}\nconnection: {{resolve: {{\"shop.test:{port}\": \
         127.0.0.1}}}}\nsessions: {{one: {{steps: [{{http: GET /}}]}}}}\n{}",
        times(1, 1)
    );
    let run = throng("try s.yaml").file("s.yaml", text).run().exits(0);
    run.says(&[
        "the cookie `good` was rejected: it is `Secure`, but the connection does not use TLS",
    ]);
}
