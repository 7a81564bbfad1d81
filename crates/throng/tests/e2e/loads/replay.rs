//! `throng run --replay`: an access log again.

use crate::run::throng;
use crate::servers::Target;

/// Two visitors behind one address, whom their cookies tell apart.
const LOG: &str = "\
192.0.2.7 - - [10/Oct/2026:13:55:30 +0200] \"GET / HTTP/1.1\" 200 5 \"-\" \"a\" \"id=1\"
192.0.2.7 - - [10/Oct/2026:13:55:30 +0200] \"GET /?page=2 HTTP/1.1\" 200 5 \"-\" \"a\" \"id=2\"
192.0.2.7 - - [10/Oct/2026:13:55:34 +0200] \"POST /echo HTTP/1.1\" 200 5 \"-\" \"a\" \"id=1\"
192.0.2.7 - - [10/Oct/2026:13:55:31 +0200] \"-\" 408 0
192.0.2.7 - - [10/Oct/2026:13:55:40 +0200] \"GET / HTTP/1.1\" 200 5 \"-\" \"a\" \"id=1\"
";

#[test]
fn visits_are_replayed_with_their_pauses() {
    let target = Target::start("http");
    let line = format!("run --replay access.log {} --speed 10 --json", target.http(""));
    let run = throng(&line).file("access.log", LOG).run().exits(0);
    run.has("/total/ok", 4);
    run.has("/total/failed", 0);
    let said = ["4 requests of 2 visits", "1 lines of the log have no request", "no bodies"];
    said.iter().for_each(|part| run.check(run.err.contains(part), part));
    let json = run.json();
    let rows = json["steps"].as_array().cloned().unwrap_or_default();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_default();
    run.check(row("GET /")["ok"] == 3, "a row for a page");
    run.check(row("POST /echo")["ok"] == 1, "the methods of the log");
    let users = json["users"]["started"].as_u64();
    run.check(users.is_none_or(|users| users == 2), "a user for each visit");
}

#[test]
fn logs_that_cannot_be_replayed_are_refused() {
    let refused = |line: &str, log: &str, part: &str| {
        let run = throng(line).file("access.log", log).run().exits(2);
        run.check(run.err.contains(part), part);
    };
    refused("run --replay access.log http://127.0.0.1:1/path", LOG, "replay-impossible");
    refused("run --replay access.log scenario.yaml", LOG, "replay-impossible");
    refused("run --replay access.log http://127.0.0.1:1", "no log\n", "no requests");
    refused("run --replay other.log http://127.0.0.1:1", LOG, "other.log");
    refused("run --replay access.log http://127.0.0.1:1 --users 5", LOG, "cannot be used with");
    refused("run --replay access.log http://127.0.0.1:1 --speed 0", LOG, "0.001 to 10000");
}
