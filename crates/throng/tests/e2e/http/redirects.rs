//! Where redirects and saved links lead, and what goes with them, as the servers see it.

use crate::run::throng;
use crate::scenarios::{one_session, times};
use crate::scribe::{Scribe, answer, ok};
use crate::servers::Node;

/// Sends on to where the path says: `/to/PLACE` is answered with `Location: PLACE`.
fn sender() -> Scribe {
    Scribe::answering(|asked, _| match asked.what.strip_prefix("GET /to/") {
        Some(place) => {
            let place = place.replace("%20", " ").replace("%C3%BC", "ü");
            answer("302 Found", &format!("Location: {place}\r\n"), "")
        }
        None => ok("ok"),
    })
}

#[test]
fn credentials_of_one_host_are_not_sent_to_another() {
    let (one, two) = (sender(), sender());
    let (there, back) = (two.target(), one.target());
    let scenario = format!(
        "targets: {{one: \"{back}\", two: \"{there}\"}}
defaults: {{cookies: {{lang: en}}}}
sessions:
  user:
    steps:
      - http: GET /to/{there}/landing
        target: one
        redirects: follow
        headers: {{Authorization: Bearer word, Cookie: own=1, Host: shop.test, X-Kind: kept}}
      - http: GET /to/{there}/to/{back}/home
        target: one
        redirects: follow
        headers: {{Authorization: Bearer word, Host: shop.test}}
      - http: GET /to/{back}/inside
        target: one
        redirects: follow
        headers: {{Authorization: Bearer word, Host: shop.test}}
{}",
        times(1, 1)
    );
    let run = throng("run s.yaml --json").file("s.yaml", scenario).run().exits(0);
    run.has("/total/failed", 0);
    let book = two.book();
    let landed = book.iter().find(|asked| asked.what == "GET /landing").expect("a request");
    assert_eq!(landed.header("authorization"), None, "{run}");
    assert_eq!(landed.header("cookie"), None, "{run}");
    assert_eq!(landed.header("host"), there.strip_prefix("http://"), "{run}");
    assert_eq!(landed.header("x-kind"), Some("kept"), "{run}");
    assert!(book.iter().all(|asked| asked.header("authorization").is_none()), "{run}");
    let book = one.book();
    for what in ["GET /home", "GET /inside"] {
        let asked = book.iter().find(|asked| asked.what == what).expect("a request");
        assert_eq!(asked.header("authorization"), Some("Bearer word"), "{what}\n{run}");
        assert_eq!(asked.header("host"), Some("shop.test"), "{what}\n{run}");
        assert_eq!(asked.header("cookie"), Some("lang=en"), "{what}\n{run}");
    }
}

#[test]
fn a_location_with_spaces_and_letters_beyond_ascii_is_followed() {
    let scribe = sender();
    let steps = "\
- {http: GET /to//a%20b/%C3%BC?q=%20x, redirects: follow}
- {http: GET /to//dir/./x/../y, redirects: follow}
- {http: GET /to//login?next=http://else.test/, redirects: follow}";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    let run = throng("run s.yaml --json").file("s.yaml", text).run().exits(0);
    run.has("/total/failed", 0);
    let asked = scribe.asked();
    assert_eq!(asked[1], "GET /a%20b/%C3%BC?q=%20x", "{run}");
    assert_eq!(asked[3], "GET /dir/y", "{run}");
    assert_eq!(asked[5], "GET /login?next=http://else.test/", "{run}");
}

#[test]
fn a_saved_link_is_resolved_without_its_fragment() {
    let scribe = Scribe::answering(|asked, _| match asked.what.as_str() {
        "GET /dir/links?n=1" => ok(r##"{"part":"/ok#part","top":"#top","dots":"/a/./b/../c?../d",
            "far":"/x#a/../b","empty":""}"##),
        _ => ok("ok"),
    });
    let steps = "\
- http: GET /dir/links?n=1
  save: {part: json.part, top: json.top, dots: json.dots, far: json.far}
- http: GET ${saved.part}
- http: GET ${saved.top}
- http: GET ${saved.dots}
- http: GET ${saved.far}
- http: GET ${saved.part}/${saved.top}";
    let text = one_session(&scribe.target(), &times(1, 1), steps);
    let run = throng("run s.yaml --json").file("s.yaml", text).run().exits(0);
    run.has("/total/failed", 0);
    let want = ["/ok", "/dir/links?n=1", "/a/c?../d", "/x", "/ok/%23top"];
    let want: Vec<String> = want.iter().map(|path| format!("GET {path}")).collect();
    assert_eq!(scribe.asked()[1..], want, "{run}");
}

/// HTTP and WebSockets on one port. It prints where connections go.
const SERVER: &str = "
const http = require('http');
const { WebSocketServer } = require('ws');
const server = http.createServer((request, response) => response.end(JSON.stringify(
  { room: '/room/./a/../b#part', beside: 'next/ü#x', whole: `http://${request.headers.host}/w` })));
const sockets = new WebSocketServer({ server });
sockets.on('connection', (socket, request) => console.log('upgrade ' + request.url));
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

#[test]
fn a_connection_uses_a_saved_link() {
    let node = Node::start(SERVER, &[]);
    let port = node.port;
    let scenario = format!(
        "targets: {{web: \"http://127.0.0.1:{port}\", chat: \"ws://127.0.0.1:{port}\"}}
sessions:
  user:
    steps:
      - http: GET /dir/links
        target: web
        save: {{room: json.room, beside: json.beside, whole: json.whole}}
      - {{connect: \"${{saved.room}}\", target: chat}}
      - {{connect: \"${{saved.beside}}\", target: chat}}
      - {{connect: \"${{saved.whole}}\", target: chat}}
      - disconnect
{}",
        times(1, 1)
    );
    let run = throng("run s.yaml --json").file("s.yaml", scenario).run();
    run.check(run.json()["total"]["failed"] == 0, "they are opened");
    for path in ["/room/b", "/dir/next/%C3%BC", "/w"] {
        node.tells(&format!("upgrade {path}"), 1);
    }
}
