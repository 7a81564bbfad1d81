//! `throng bench` over HTTP: nginx, and the reference target if the server must report more.

use std::collections::HashSet;

use crate::run::{Run, throng};
use crate::servers::{Nginx, Node, Target};

/// A request as the reference target's /anything returns it as JSON.
#[track_caller]
fn seen(line: &str) -> Run {
    throng(&format!("bench {line} -n 4 -c 2 --json --no-record")).run().succeeds(4)
}

#[test]
fn nginx_counts_what_throng_counts() {
    let nginx = Nginx::start("", "");
    let run = throng(&format!("bench {} -n 500 -c 10 --json", nginx.url("/"))).run().succeeds(500);
    run.has("/total/codes/200", 500);
    run.has("/steps/0/count", 500);
    run.has("/connections/opened", 10);
    run.has("/connections/closed_by_us", 10);
    run.has("/outcome/exit_code", 0);
    for figure in ["/total/latency/p99_ns", "/total/first_byte/p50_ns", "/received_bytes"] {
        run.within(figure, 1.0, f64::MAX);
    }
    let log = nginx.log(500);
    let connections: HashSet<&String> = log.iter().map(|words| &words[0]).collect();
    assert_eq!((log.len(), connections.len()), (500, 10), "{run}");
}

#[test]
fn a_run_below_one_second_counts_its_users() {
    let target = Target::start("http");
    let line = format!("bench {} -n 500 -c 10 --json", target.http("/"));
    let run = throng(&line).run().succeeds(500);
    run.has("/users/online_max", 10);
    run.has("/connections/open_max", 10);
}

#[test]
fn without_keepalive_every_request_has_a_connection() {
    let nginx = Nginx::start("", "");
    for flag in ["--no-keepalive", "-disable-keepalive"] {
        let line = format!("bench {} -n 200 -c 10 {flag} --json", nginx.url("/"));
        let run = throng(&line).run().succeeds(200);
        run.has("/connections/opened", 200);
    }
    let log = nginx.log(400);
    let connections: HashSet<&String> = log.iter().map(|words| &words[0]).collect();
    assert_eq!((log.len(), connections.len()), (400, 400));
}

#[test]
fn head_has_no_body() {
    let nginx = Nginx::start("", "");
    let run = seen(&format!("{} -m HEAD", nginx.url("/")));
    run.within("/received_bytes", 4.0, 4.0 * 1000.0);
    assert!(nginx.log(4).iter().all(|words| words[1] == "HEAD"), "{run}");
}

#[test]
fn chunked_bodies_are_read_to_their_end() {
    let target = Target::start("http");
    let run = seen(&target.http("/chunked/100000"));
    run.within("/received_bytes", 400_000.0, 500_000.0);
    run.has("/connections/opened", 2);
}

#[test]
fn compressed_bodies_are_decoded() {
    let nginx = Nginx::start("", "gzip on; gzip_types text/plain;");
    let url = nginx.url("/");
    let line = format!("bench {url} -n 20 -c 2 -H Accept-Encoding:gzip --json --expect-text");
    throng(&line).arg("page, to be found").run().succeeds(20);
    let log = nginx.log(20);
    assert!(log.iter().all(|words| words[4] == "gzip"), "{log:?}");
    let run = throng(&line).arg("not to be found").run();
    run.fails("body-unexpected", "target or scenario", Some(20));
}

const CODINGS: &str = "
const http = require('http'), zlib = require('zlib');
const body = 'needle ' + 'hay '.repeat(10000);
const pack = { gzip: zlib.gzipSync, br: zlib.brotliCompressSync, deflate: zlib.deflateSync };
const server = http.createServer((request, response) => {
  const coding = request.url.slice(1);
  const bytes = coding === 'broken' ? Buffer.from('no gzip at all') : pack[coding](body);
  response.setHeader('Content-Encoding', coding === 'broken' ? 'gzip' : coding);
  response.end(bytes);
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

#[test]
fn every_content_coding_is_decoded() {
    let node = Node::start(CODINGS, &[]);
    let line = |coding: &str| {
        let url = node.url("http");
        format!("bench {url}{coding} -n 10 -c 2 --expect-text needle --json")
    };
    for coding in ["gzip", "br", "deflate"] {
        throng(&line(coding)).run().succeeds(10);
    }
    throng(&line("broken")).run().fails("coding-failed", "target", Some(10));
}

#[test]
fn redirects_are_followed_if_requested() {
    let target = Target::start("http");
    let url = target.http("/redirect/3");
    let run = throng(&format!("bench {url} -n 10 -c 2 --json")).run().succeeds(10);
    run.has("/total/codes/302", 10);
    assert_eq!(target.counts("/requests"), 10, "{run}");
    let line = format!("bench {url} -n 10 -c 2 --follow --expect-status 200 --json");
    let run = throng(&line).arg("--expect-text=arrived").run().succeeds(10);
    assert_eq!(target.counts("/requests"), 50, "{run}");
    let run = throng(&format!("bench {} -n 2 -c 1 --follow --json", target.http("/redirect/90")));
    run.run().fails("redirect-failed", "target", Some(2));
}

#[test]
fn statuses_are_checked() {
    let nginx = Nginx::start("", "");
    let line = format!("bench {} -n 50 -c 5 --json", nginx.url("/missing"));
    let run = throng(&line).run();
    run.fails("status-unexpected", "target or scenario", Some(50));
    run.has("/total/codes/404", 50);
    run.says(&["404"]);
    throng(&line).arg("--expect-status=404").run().succeeds(50);
    throng(&line).arg("--expect-status=200,4xx").run().succeeds(50);
    let run = throng(&line).arg("--threshold=errors < 1%").run().exits(1);
    assert_eq!(run.json()["thresholds"][0]["verdict"], "not-met", "{run}");
}

#[test]
fn json_fields_are_compared() {
    let target = Target::start("http");
    let line = format!("bench {} -n 20 -c 2 --json", target.http("/json"));
    throng(&line).arg("--expect-json=code=0").run().succeeds(20);
    throng(&line).arg("-v").arg("json").run().fails(
        "json-unexpected",
        "target or scenario",
        Some(20),
    );
    let run = throng(&line).arg("--expect-json=data.token=x").run();
    run.fails("json-unexpected", "target or scenario", Some(20));
}

#[test]
fn a_duration_is_kept() {
    let nginx = Nginx::start("", "");
    let run = throng(&format!("bench {} -d 1s -c 4 --json", nginx.url("/"))).run().exits(0);
    run.within("/measured_ns", 0.8e9, 1.5e9);
    run.within("/total/ok", 100.0, f64::MAX);
    run.has("/total/failed", 0);
}

#[test]
fn open_load_sends_the_requested_rate() {
    let target = Target::start("http");
    let url = target.http("/");
    let run = throng(&format!("bench {url} -c 50 --rate 250 -d 2s --json")).run().exits(0);
    run.within("/total/ok", 490.0, 510.0);
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count"), "{run}");
    run.within("/total/latency/p50_ns", 1.0, 20e6);
}

#[test]
fn cookies_belong_to_a_user() {
    let target = Target::start("http");
    let url = target.http("/cookies/set?session=abc");
    let line = format!("bench {url} -n 20 -c 5 --follow --json");
    let expected = r#"--expect-text="session":"abc""#;
    throng(&line).arg(expected).run().succeeds(20);
    let run = throng(&line).arg("--no-cookies").arg(expected).run();
    run.fails("body-unexpected", "target or scenario", Some(20));
    let run =
        seen(&format!("{} -b a=one -b b=two --expect-json cookies.b=two", target.http("/cookies")));
    run.has("/total/ok", 4);
}

/// Sets a cookie per connection, and refuses that of another.
const COOKIES: &str = "
const http = require('http');
let last = 0;
const server = http.createServer((request, response) => {
  const cookie = request.headers.cookie;
  if (!request.socket.cookie) {
    request.socket.cookie = 'id=' + ++last;
    response.setHeader('Set-Cookie', [request.socket.cookie + '; Path=/; HttpOnly',
      'gone=1; Max-Age=0', 'elsewhere=1; Path=/elsewhere']);
    if (cookie) console.log('too early ' + cookie);
  } else if (cookie !== request.socket.cookie) {
    console.log('wrong ' + cookie);
    response.statusCode = 409;
  }
  response.end();
});
server.keepAliveTimeout = 60000;
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

#[test]
fn every_user_has_separate_cookies() {
    let node = Node::start(COOKIES, &[]);
    let run = throng(&format!("bench {} -n 100 -c 5 --json", node.url("http"))).run();
    node.tells("too early", 0);
    run.succeeds(100).has("/connections/opened", 5);
    assert_eq!(node.child.output().lines().count(), 1, "{}", node.child.output());
}

#[test]
fn warm_up_and_think_time_are_kept() {
    let target = Target::start("http");
    let line = format!("bench {} -c 5 -d 1s --warm-up 500ms --think 50ms --json", target.http("/"));
    let run = throng(&line).run().exits(0);
    run.within("/total/ok", 10.0, 110.0);
    let all = target.counts("/requests") as f64;
    run.check(all > run.figure("/total/ok"), "the warm-up is measured");
    assert_eq!(run.json()["phases"][0]["measured"], false, "{run}");
}

#[test]
fn ipv6_is_loaded() {
    let nginx = Nginx::start("", "");
    let line = format!("bench http://[::1]:{}/ -n 50 -c 5 --json", nginx.port);
    throng(&line).run().succeeds(50);
    throng(&line).arg("-6").run().succeeds(50);
    throng(&line).arg("-4").run().exits(4).says(&["::1", "-4", "nothing was sent"]);
}

#[test]
fn requests_are_sent_as_specified() {
    let target = Target::start("http");
    let anything = target.http("/anything/a%20b?q=1");
    let is = |line: &str, field: &str| {
        seen(&format!("{anything} {line} --expect-json {field}"));
    };
    is("", "method=GET");
    is("", "query=q=1");
    is("-m DELETE", "method=DELETE");
    is("-X PATCH --body x", "method=PATCH");
    is("--body hello", "method=POST");
    is("--data hello", "body=hello");
    is("-H X-Tea:mint", "headers.x-tea=mint");
    is("-T application/json --body {}", "headers.content-type=application/json");
    let line = format!("{anything} -a user:pass");
    seen(&format!("{line} --expect-text dXNlcjpwYXNz"));
}

#[test]
fn bodies_are_read_from_the_command_line_and_from_files() {
    let target = Target::start("http");
    let line = format!("bench {} -n 4 -c 2 --json", target.http("/echo"));
    throng(&line).arg("--body=said back").arg("--expect-text=said back").run().succeeds(4);
    for flag in ["--body=@letter.txt", "--body-file=letter.txt", "-Dletter.txt"] {
        let run = throng(&line).file("letter.txt", "from a file\n").arg(flag);
        run.arg("--expect-text=from a file\n").run().succeeds(4);
    }
}

#[test]
fn a_list_of_urls_is_loaded_by_weight() {
    let target = Target::start("http");
    let line = format!("bench {} --urls urls.txt -c 2 -n 400 --json", target.http(""));
    let list = "GET /?one 3\n/?two\n# the rest\n/echo POST hello\n";
    let run = throng(&line).file("urls.txt", list).run().exits(0);
    run.has("/total/ok", 400);
    let rows = run.json()["steps"].as_array().cloned().unwrap_or_default();
    let ok =
        |name: &str| rows.iter().find(|row| row["name"] == name).and_then(|row| row["ok"].as_u64());
    run.check(ok("GET /?one").is_some_and(|ok| (200..290).contains(&ok)), "three of five");
    run.check(ok("POST /echo").is_some_and(|ok| (40..120).contains(&ok)), "one of five");
}

#[test]
fn steps_of_a_rate_are_phases() {
    let target = Target::start("http");
    let line = format!("bench {} --rate 50..150 --steps 3 --for 1s -c 10 --json", target.http(""));
    let run = throng(&line).run().exits(0);
    let names: Vec<_> = run.json()["phases"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| it["name"].clone())
        .collect();
    run.check(names == ["rate 50", "rate 100", "rate 150"], "their names");
    run.within("/total/ok", 280.0, 301.0);
}
