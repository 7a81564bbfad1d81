//! cURL commands as browsers copy them: throng sends what curl itself sends.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::faulty::Faulty;
use crate::run::{Child, throng};
use crate::servers::program;

/// A request as it came: its first line, its headers by name, its body.
type Request = (String, BTreeMap<String, String>, String);

/// A server that keeps what it is asked.
struct Listener {
    server: Faulty,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Listener {
    fn start() -> Listener {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let server = Faulty::start(move |mut peer| {
            while let Some(text) = peer.request() {
                kept.lock().expect("no panic").push(parsed(&text));
                peer.says(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Listener { server, requests }
    }

    fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().expect("no panic"))
    }

    /// Both send the command's request; what they sent is equal.
    #[track_caller]
    fn same(&self, command: &str) -> Request {
        let command = command.replace("HOST", &self.server.address.to_string());
        program("curl", "curl");
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("letter.txt"), "Dear all\n").expect("a file");
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!("{} -s --http1.1", command.trim())).current_dir(folder.path());
        Child::start(shell).wait().exits(0);
        let theirs = self.take().pop().expect("a request of curl");
        let run = throng("bench --curl copied.txt -n 4 -c 2 --json").file("copied.txt", &command);
        let run = run.file("letter.txt", "Dear all\n").run().succeeds(4);
        let ours = self.take();
        run.check(ours.len() == 4, "not all requests came");
        for request in &ours {
            assert_eq!(*request, theirs, "{run}");
        }
        theirs
    }
}

/// Without what may differ: who asks, and the boundary of parts.
fn parsed(text: &str) -> Request {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or("").to_string();
    let mut headers = BTreeMap::new();
    let mut body = body.to_string();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = name.to_ascii_lowercase();
        let mut value = value.trim().to_string();
        if let Some((kind, boundary)) = value.clone().split_once("; boundary=") {
            body = body.replace(boundary, "BOUNDARY");
            value = kind.to_string();
        }
        if name == "accept-encoding" {
            // curl names what it was built with.
            value = value.contains("gzip").to_string();
        }
        let parts = body.contains("BOUNDARY") && name == "content-length";
        if name != "user-agent" && name != "connection" && !parts {
            headers.insert(name, value);
        }
    }
    // The length of parts has the length of the boundary in it, in whichever order they come.
    if body.contains("BOUNDARY") {
        headers.remove("content-length");
    }
    (first, headers, body)
}

#[test]
fn copied_by_chrome() {
    let listener = Listener::start();
    let (first, headers, body) = listener.same(
        r#"curl 'http://HOST/api/v1/items?sort=name&page=2' \
  -X 'POST' \
  -H 'accept: application/json, text/plain, */*' \
  -H 'accept-language: de-DE,de;q=0.9' \
  -H 'content-type: application/json' \
  -b 'sid=abc; theme=dark' \
  -H 'origin: http://HOST' \
  -H 'sec-ch-ua: "Chromium";v="130", "Not?A_Brand";v="99"' \
  --data-raw $'{"name":"O\'Brien","text":"a\\nb \u0021"}' \
  --compressed \
  --insecure"#,
    );
    assert_eq!(first, "POST /api/v1/items?sort=name&page=2 HTTP/1.1");
    assert_eq!(headers["cookie"], "sid=abc; theme=dark");
    assert_eq!(body, r#"{"name":"O'Brien","text":"a\nb !"}"#);
}

#[test]
fn copied_by_firefox() {
    let listener = Listener::start();
    let (_, headers, body) = listener.same(
        r#"curl 'http://HOST/login' --compressed -X POST -H 'Accept: text/html,*/*;q=0.8'
 -H 'Connection: keep-alive' -H 'Referer: http://HOST/' --data-raw 'user=ann&pass=a%26b'"#
            .replace("\n ", " ")
            .as_str(),
    );
    assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(body, "user=ann&pass=a%26b");
}

#[test]
fn written_by_hand() {
    let listener = Listener::start();
    listener.same("curl -u ann:secret http://HOST/private");
    listener.same("curl -G http://HOST/find -d q=1 --data-urlencode 'name=a b&c'");
    listener.same("curl http://HOST/form -d a=1 -d b=2");
    listener
        .same("curl -XPUT --data-binary @letter.txt -H 'Content-Type: text/plain' http://HOST/x");
    listener.same("curl --json '{\"a\":1}' http://HOST/json");
    listener.same("curl -H 'X-Empty;' \"http://HOST/head\\\"ers\" -A me -e http://a/");
    let (first, _, _) = listener.same("curl -sSI http://HOST/front");
    assert!(first.starts_with("HEAD "), "{first}");
}

#[test]
fn a_header_is_taken_away() {
    let listener = Listener::start();
    listener.same("curl -H 'Accept:' http://HOST/");
}

#[test]
fn parts_of_a_form() {
    let listener = Listener::start();
    let (_, headers, body) = listener.same(
        "curl http://HOST/upload -F 'name=Ann B' -F 'letter=@letter.txt;type=text/plain' \
         -F 'note=short;type=text/markdown'",
    );
    assert_eq!(headers["content-type"], "multipart/form-data");
    assert!(body.contains("Dear all\n"), "{body}");
}

#[test]
fn copied_for_windows() {
    let listener = Listener::start();
    let command = "curl ^\"http://HOST/api?a=1^&b=2^\" ^\r\n  -H ^\"x-tea: green ^%^41^\" ^\r\n  \
                   --data-raw ^\"^{^\\^\"a^\\^\":1^}^\"\r\n";
    let command = command.replace("HOST", &listener.server.address.to_string());
    let run = throng("bench --curl copied.txt -n 4 -c 2 --json").file("copied.txt", &command);
    let run = run.run().succeeds(4);
    for (first, headers, body) in listener.take() {
        assert_eq!(first, "POST /api?a=1&b=2 HTTP/1.1", "{run}");
        assert_eq!((headers["x-tea"].as_str(), body.as_str()), ("green %41", "{\"a\":1}"), "{run}");
    }
}

#[test]
fn what_cannot_be_understood_is_said() {
    let listener = Listener::start();
    let address = listener.server.address;
    for (command, said) in [
        ("curl 'http://HOST/", "copied.txt:1:6"),
        ("wget http://HOST/", "curl"),
        ("curl", "URL"),
        ("curl http://HOST/ --no-such-flag", "--no-such-flag"),
        ("curl http://HOST/ -d @missing.txt", "missing.txt"),
        ("curl http://HOST/ -T letter.txt", "-T"),
        ("curl http://HOST/a; rm -r b", ";"),
        ("", "cURL"),
    ] {
        let command = command.replace("HOST", &address.to_string());
        let run = throng("bench --curl copied.txt -n 4 -c 2").file("copied.txt", &command);
        run.run().exits(2).says(&[said, "error[", "help", "nothing was sent"]);
    }
    assert_eq!(listener.server.accepted(), 0);
}

/// As "Copy all as cURL" gives them: one behind the other, with `;` and line ends.
#[test]
fn all_that_a_browser_has_copied_becomes_one_session() {
    let [listener, other] = [Listener::start(), Listener::start()];
    let copied = "curl 'http://HOST/' -H 'X-App: shop' --compressed ;\n\
                  curl 'http://HOST/login?next=%2F' -H 'X-App: shop' -H 'X-Own: 1' \\\n  \
                  --data-raw 'user=ann' --compressed ;\n\
                  curl 'http://OTHER/metrics' -H 'X-App: shop' --compressed";
    let copied = copied.replace("HOST", &listener.server.address.to_string());
    let copied = copied.replace("OTHER", &other.server.address.to_string());
    let init = throng("init http shop.yaml --curl copied.txt").file("copied.txt", &copied);
    let init = init.run().exits(0);
    let text = std::fs::read_to_string(init.folder().join("shop.yaml")).expect("a scenario");
    init.check(text.matches("X-App").count() == 1, &format!("shared headers stand once:\n{text}"));
    for said in ["name: POST /login\n", "X-Own", "target: ", "user=ann", "users: 10"] {
        init.check(text.contains(said), &format!("{said} in\n{text}"));
    }
    throng("check shop.yaml").file("shop.yaml", &text).run().exits(0).says(&["session "]);
    throng("try shop.yaml").file("shop.yaml", &text).run().exits(0).says(&["3 steps, all ok"]);
    let [first, second]: [Request; 2] = listener.take().try_into().expect("two requests");
    assert_eq!(
        (first.0.as_str(), second.0.as_str()),
        ("GET / HTTP/1.1", "POST /login?next=%2F HTTP/1.1")
    );
    assert_eq!(second.2, "user=ann");
    assert_eq!(
        (second.1.get("x-own").map(String::as_str), first.1.get("x-own")),
        (Some("1"), None)
    );
    let third = other.take().pop().expect("a request");
    assert_eq!(third.0, "GET /metrics HTTP/1.1");
    for request in [&first, &second, &third] {
        assert_eq!(request.1.get("x-app").map(String::as_str), Some("shop"), "{request:?}");
    }
    let wrong = throng("init http shop.yaml --curl copied.txt");
    let wrong = wrong.file("copied.txt", format!("{copied} ;\ncurl --no-such-flag http://a/"));
    wrong.run().exits(2).says(&["copied.txt:5:6", "--no-such-flag", "nothing was sent"]);
    let bench = throng("bench --curl copied.txt -n 1").file("copied.txt", &copied);
    bench.run().exits(2).says(&["curl-second", "copied.txt:2:1", "throng init"]);
}

#[test]
fn a_byte_order_mark_before_a_command_is_no_part_of_it() {
    let listener = Listener::start();
    let command = format!("\u{feff}curl http://{}/marked", listener.server.address);
    throng("bench --curl copied.txt -n 1 -c 1 --json")
        .file("copied.txt", command)
        .run()
        .succeeds(1);
    assert_eq!(listener.take()[0].0, "GET /marked HTTP/1.1");
}
