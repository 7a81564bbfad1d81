//! What happens at the edges of protocols, processes and command lines: few meet it, and whoever
//! does has to be told the truth.

use std::process::Command;
use std::time::Duration;

use crate::faulty::Faulty;
use crate::run::{Child, Throng, binary, throng};
use crate::servers::{Node, Target, free_port};

fn bench(server: &Faulty, line: &str) -> crate::run::Run {
    throng(&format!("bench {} -n 10 -c 1 --json {line}", server.url("http"))).run()
}

#[test]
fn a_server_may_say_how_far_it_is_as_often_as_it_likes() {
    let early = "HTTP/1.1 102 Processing\r\n\r\n".repeat(100);
    let server = Faulty::says(format!(
        "{early}HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    ));
    bench(&server, "").succeeds(10);
}

#[test]
fn an_unrequested_protocol_is_not_accepted() {
    let server = Faulty::says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n");
    let run = throng(&format!("bench {} -n 4 -c 1 --json", server.url("http"))).run();
    run.fails("malformed", "target", Some(4));
}

#[test]
fn a_reset_during_the_tls_handshake_is_a_reset() {
    let server = Faulty::start(|mut peer| {
        peer.hears();
        peer.resets();
    });
    let run = throng(&format!("bench {} -n 4 -c 1 --json", server.url("https"))).run();
    run.fails("reset", "target", Some(4));
}

#[test]
fn an_output_that_is_closed_at_start_is_reported() {
    let target = Target::start("http");
    for (line, code) in [("--json", 5), ("--json --quiet", 5)] {
        let line =
            format!("{} bench {} -n 5 -c 1 {line} >&-", binary().display(), target.http("/"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]);
        let run = Throng::new(shell).run().exits(code);
        run.says(&["cannot write to standard output:"]);
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{} doctor >&-", binary().display())]);
    let run = Throng::new(shell).run();
    run.check(run.code() != 0, "it says that all is well");
}

#[test]
fn a_truncated_page_is_not_accepted() {
    let target = Target::start("http");
    let run = throng(&format!("bench {} -n 20 -c 2", target.http("/"))).run().exits(0);
    let folder = run.folder().display();
    let record = run.folder().join("throng-runs").read_dir().expect("records").next();
    let record = record.expect("a record").expect("an entry").path().display().to_string();
    std::fs::write(run.folder().join("old.html"), "what was there").expect("a file");
    for name in ["new.html", "old.html"] {
        let mut line = Command::new("prlimit");
        line.args(["--fsize=20000"]).arg(binary());
        line.args(["report", &record, &format!("--html={folder}/{name}")]);
        Throng::new(line).run().exits(2).says(&["cannot write"]);
    }
    assert!(!run.folder().join("new.html").exists());
    let old = std::fs::read_to_string(run.folder().join("old.html")).expect("a file");
    assert_eq!(old, "what was there");
    let left = run.folder().read_dir().expect("files").flatten();
    assert!(left.into_iter().all(|it| !it.file_name().to_string_lossy().ends_with(".new")));
}

#[test]
fn a_signal_that_would_end_a_run_ends_it_with_its_summary() {
    let target = Target::start("http");
    for signal in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGXCPU, libc::SIGVTALRM] {
        let line = format!("bench {} -c 1 --rate 20/s -d 60s", target.http("/"));
        let run = throng(&line).start();
        run.hears("a line", |out, _| out.lines().nth(1).map(drop));
        run.signal(signal);
        // What is told of every second is one request to stop.
        run.signal(signal);
        let run = run.wait();
        run.says(&["INTERRUPTED", "response time"]);
        run.check(run.code() == 130, "a it was terminated by signal has");
    }
}

/// Does the opening handshake by itself, takes leave with a reason, and looks who closes first.
const LEAVES: &str = r"
const net = require('net'), crypto = require('crypto');
const server = net.createServer((socket) => {
  let open = false;
  socket.on('error', () => {});
  socket.on('data', (data) => {
    if (!open) {
      open = true;
      const key = /Sec-WebSocket-Key: (.*)\r\n/.exec(data)[1];
      const accept = crypto.createHash('sha1')
        .update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n' +
        `Connection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
      const reason = Buffer.from('moved away');
      const close = Buffer.concat([Buffer.from([0x88, 2 + reason.length, 0x0f, 0xa1]), reason]);
      setTimeout(() => socket.write(close), 20);
      return;
    }
    let first = true;
    socket.once('end', () => { if (first) console.log('the client closed first'); });
    setTimeout(() => {
      if (!socket.destroyed && !socket.readableEnded) console.log('the client waits');
      first = false;
      socket.end();
    }, 300);
  });
});
server.listen(0, '127.0.0.1', () => console.log('listening ' + server.address().port));
";

#[test]
fn the_end_that_closes_first_is_reported_with_its_reason() {
    let node = Node::start(LEAVES, &[]);
    let run = throng(&format!("bench {} -c 1 -d 2s", node.url("ws"))).run();
    run.says(&["with code 4001: moved away"]);
    node.child.hears("a client that waits", |out, _| out.contains("waits").then_some(()));
    // Whoever waits at the end of the load is cut off then.
    let first = node.child.output().matches("closed first").count();
    assert!(first <= 1, "{}", node.child.output());
}

#[test]
fn a_refused_upgrade_or_stream_is_left_alone_as_long_as_it_asks() {
    let refusal = "HTTP/1.1 503 Busy\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n";
    let events = "target: URL\nsessions: {a: {steps: [{connect: /, events: true}]}}\n\
                  load: [{users: 1, for: 2s}]\n";
    let scenarios = [("ws", events.replace(", events: true", "")), ("http", events.to_string())];
    for (scheme, scenario) in scenarios {
        let server = Faulty::says(refusal);
        let text = scenario.replace("URL", server.url(scheme).trim_end_matches('/'));
        let begun = throng("run a.yaml --json").file("a.yaml", text).run();
        begun.check(begun.took > Duration::from_secs(1), "it has not run");
        let accepted = server.accepted();
        begun.check(accepted <= 2, &format!("{scheme}: it came back {accepted} times"));
    }
}

#[test]
fn an_unselected_subprotocol_is_reported() {
    let node = Node::start(LEAVES, &[]);
    let scenario = format!(
        "target: {}\nsessions: {{a: {{steps: [{{connect: /, protocols: [chat.v2]}}]}}}}\n\
         load: [{{users: 1, for: 1s}}]\n",
        node.url("ws").trim_end_matches('/')
    );
    let run = throng("try a.yaml").file("a.yaml", scenario).run();
    run.says(&["selected none of the offered subprotocols: chat.v2"]);
}

/// Answers 200 where the request has this, else 500.
fn wants(text: &'static str) -> Faulty {
    Faulty::start(move |mut peer| {
        while let Some(request) = peer.request() {
            let status = if request.contains(text) { "200 OK" } else { "500 No" };
            peer.says(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
        }
    })
}

fn requests(server: &Faulty, step: &str) {
    let scenario = format!(
        "target: {}\nsessions: {{a: {{steps: [{step}]}}}}\nload: [{{users: 1, iterations: 3}}]\n",
        server.url("http").trim_end_matches('/')
    );
    throng("run a.yaml --json").file("a.yaml", scenario).run().succeeds(3);
}

#[test]
fn letters_beyond_the_first_plane_may_be_escaped_as_json_has_it() {
    let server = wants("\u{1f600}");
    requests(&server, r#"{http: POST /, json: {"a": "\ud83d\ude00"}}"#);
    requests(&server, r#"{http: POST /, body: "\uD83D\uDE00"}"#);
    // Where nothing is escaped, a backslash is a backslash.
    requests(&wants(r"\ud83d\ude00"), r"{http: POST /, body: '\ud83d\ude00'}");
}

#[test]
fn names_and_passwords_may_be_bytes() {
    let server = wants("Authorization: Basic YTr/\r\n");
    requests(&server, r#"{http: GET /, auth: {user: a, password: "${hex.decode('ff')}"}}"#);
    let server = wants("Authorization: Basic YTE6Yg==\r\n");
    requests(&server, r#"{http: GET /, auth: {user: "a${user.id}", password: b}}"#);
}

#[test]
fn the_command_line_replaces_what_a_curl_file_says() {
    let curl = "curl http://127.0.0.1:1/ -H 'Host: old' -H 'X-Own: a' -H 'Content-Type: text/old' \
                -H 'Authorization: Bearer old' -H 'Cookie: a=old' -d x";
    let print = |line: &str| {
        let line = format!("bench --curl a.sh --print-scenario {line}");
        throng(&line).file("a.sh", curl).run().exits(0).out
    };
    let text = print("-H host:new -H x-own:b -T text/new --cookie b=new --auth me:word");
    assert!(!text.contains("old"), "{text}");
    for line in ["host: new", "Content-Type: text/new", "Cookie: b=new", "x-own: b", "user: me"] {
        assert_eq!(text.matches(line).count(), 1, "{line}\n{text}");
    }
    // What is said twice counts once where it may stand once; cookies are one list.
    let text = print("-T text/new -H content-type:text/last -H cookie:c=1 --cookie d=2");
    assert!(text.contains("text/last") && !text.contains("text/new"), "{text}");
    assert!(text.contains("d=2; c=1"), "{text}");
    let text = print("-H Authorization:new");
    assert!(!text.contains("Bearer old") && text.contains("Authorization: new"), "{text}");
    let user = "curl http://127.0.0.1:1/ -u old:word";
    let line = "bench --curl a.sh --print-scenario -H Authorization:new";
    let text = throng(line).file("a.sh", user).run().exits(0).out;
    assert!(!text.contains("old"), "{text}");
}

#[test]
fn parts_of_a_form_have_the_types_that_curl_guesses() {
    let curl = "curl http://127.0.0.1:1/ -F a=@me.PNG -F b=@b.txt -F 'c=@c.bin' -F 'd=@d.pdf;type=x/y' \
                -F 'e=@e;filename=e.html' -F f=text";
    let run = throng("bench --curl a.sh --print-scenario").file("a.sh", curl).run().exits(0);
    run.says(&["image/png", "text/plain", "text/html", "x/y"]);
    run.check(!run.out.contains("application/pdf"), "what is said goes before what is guessed");
}

#[test]
fn bytes_of_metadata_are_base64_on_the_command_line() {
    let line = "bench grpc://127.0.0.1:1/a.B/C --proto a.proto --print-scenario --body {}";
    let run = throng(line).arg("-H").arg("trace-bin: AP8=").run().exits(0);
    run.says(&[r#"trace-bin: "\x00\xff""#]);
    throng(line).arg("-H").arg("trace-bin: ?").run().exits(2).says(&["is not base64"]);
}

#[test]
fn an_empty_datagram_is_a_message() {
    let server = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = server.local_addr().expect("an address");
    server.set_read_timeout(Some(crate::run::PATIENCE)).expect("a timeout");
    let thread = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((count, from)) = server.recv_from(&mut buffer) {
            if &buffer[..count] == b"end" {
                return;
            }
            let _ = server.send_to(b"", from);
        }
    });
    let run = throng(&format!("bench udp://{address} -n 5 -c 1 --hex 0102 --timeout 2s --json"));
    let run = run.run();
    let own = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    own.send_to(b"end", address).expect("it hears");
    thread.join().expect("a server");
    run.succeeds(5);
}

#[test]
fn fast_starts_do_not_exceed_a_memory_limit() {
    let port = free_port();
    // Too many for the limit: nothing is sent.
    let mut line = Command::new("prlimit");
    line.arg("--as=600000000").arg(binary());
    line.args(["bench", &format!("tcp://127.0.0.1:{port}"), "-c", "2000000", "--hold", "5s"]);
    let run = Child::start(line).wait();
    run.check(run.code() == 3, "it begins all the same");
    run.says(&["address space"]);
}
