//! A host that has little: few descriptors, and what throng makes of it.

use std::sync::Barrier;

use crate::faulty::Faulty;
use crate::run::{Throng, binary};
use crate::servers::{Target, program};

/// With so many descriptors in a table.
fn bench(descriptors: u32, target: &Target, line: &str) -> Throng {
    program("prlimit", "util-linux");
    let limit = format!("prlimit --nofile={descriptors}:{descriptors}");
    Throng::under(&limit, &format!("bench {} {line} --json", target.http("/")))
}

#[test]
fn few_descriptors_are_distributed_over_shards() {
    let target = Target::start("http");
    let run = bench(64, &target, "-c 100 -n 1000").run().succeeds(1000);
    run.has("/connections/opened", 100);
    run.within("/run/shards", 3.0, 100.0);
    assert_eq!(target.counts("/connections/accepted"), 100, "{run}");
}

#[test]
fn shards_that_cannot_hold_the_users_report_it() {
    let target = Target::start("http");
    let run = bench(64, &target, "-c 100 -n 1000 --shards 1").run();
    match run.code() {
        // More shards than were asked for.
        0 => _ = run.succeeds(1000),
        3 => run.says(&["descriptors", "--shards"]),
        5 => run.fails("descriptors-exhausted", "generator", None),
        _ => run.check(false, "neither a message nor a count"),
    }
}

#[test]
fn an_address_without_a_route_is_not_a_lack_of_ports() {
    program("unshare", "util-linux");
    // In a network of its own, in which not even the loopback interface is up.
    let line = "bench http://[::1]:9/ -c 1 -n 2 --json";
    let run = Throng::under("unshare --net", line).run();
    run.fails("unreachable", "network", None);
    run.check(format!("{run}").contains("no source address"), "it does not say why");
}

#[test]
fn a_tiny_descriptor_limit_is_reported() {
    let target = Target::start("http");
    let run = bench(8, &target, "-c 10 -n 10").run();
    run.check(run.code() == 3 || run.code() == 2, "the host is not fit");
    run.says(&["error[", "help"]);
    assert_eq!(target.counts("/requests"), 0, "{run}");
}

#[test]
fn a_sandbox_without_unshare_leaves_one_table_of_descriptors() {
    program("prlimit", "util-linux");
    let few = |line: &str| Throng::under("prlimit --nofile=1000:1000", line).without_unshare();
    // Room for two thousand connections, of which one table holds half.
    let target = Target::begun("http", few);
    target.says("all connections share one table of 1000 descriptors");
    let line = format!("bench {} -c 100 -n 1000 --json", target.http("/"));
    few(&line).run().succeeds(1000);
    assert_eq!(target.counts("/connections/accepted"), 100);
    let line = format!("bench {} -c 2000 -n 4000", target.http("/"));
    few(&line).run().exits(3).says(&["unshare(2)", "ulimit -n"]);
    assert_eq!(target.counts("/connections/accepted"), 100);
}

#[test]
fn only_a_taken_address_suggests_another_one() {
    let target = Target::start("http");
    let line = format!("target http --listen {}", target.address);
    Throng::under("env", &line).run().exits(3).says(&["cannot listen on", "--listen"]);
    program("prlimit", "util-linux");
    let run = Throng::under("prlimit --nofile=8:8", "target http").run().exits(3);
    run.says(&["error[target-failed]", "--connections"]);
    run.check(!run.err.contains("--listen"), "another port is no cure");
}

/// Answers to so many users at once, each of 32 MiB in 32 KB of gzip: half of it comes when all of
/// them have asked, the rest when all have that.
fn bombs(users: usize) -> Faulty {
    let gzip = program("gzip", "gzip");
    let script = format!("head -c 33554432 /dev/zero | {} -9", gzip.display());
    let bomb =
        std::process::Command::new("sh").args(["-c", &script]).output().expect("gzip").stdout;
    assert!((1..100_000).contains(&bomb.len()), "{} bytes", bomb.len());
    let (asked, half) = (Barrier::new(users), Barrier::new(users));
    Faulty::start(move |mut peer| {
        while peer.request().is_some() {
            let coded = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ";
            let head = format!("{coded}{}\r\n\r\n", bomb.len());
            asked.wait();
            let (first, rest) = bomb.split_at(bomb.len() / 2);
            if !peer.says(&[head.as_bytes(), first].concat()) {
                return;
            }
            half.wait();
            peer.says(rest);
        }
    })
}

const LOOKING: &str = "\
sessions: {reader: {steps: [{http: GET /, check: {body: 'no zeros'}, timeout: 60s}]}}
load: [{iterations: 20, users: 20}]
";

#[test]
fn compressed_answers_to_many_users_take_no_more_memory_than_they_may() {
    let bombs = bombs(20);
    let text = format!("target: http://{}\n{LOOKING}", bombs.address);
    let line = "run bombs.yaml --json --no-record --max-memory 100MiB";
    let run = crate::run::throng(line).file("bombs.yaml", text).run();
    let rows = run.json()["errors"].as_array().cloned().unwrap_or_default();
    let row = rows.iter().find(|row| row["cause"] == "memory-limit");
    let row = row.unwrap_or_else(|| panic!("nothing was refused\n{run}"));
    run.check(row["blame"] == "generator", "it is a limit of ours");
    run.has("/total/count", 20);
    // Twenty bodies are 640 MiB; half of 100 MiB may be kept, and a debug build is large.
    run.within("/generator/memory_max_bytes", 1.0, 300e6);
    let reason = run.json()["outcome"]["invalid_reasons"].to_string();
    run.check(reason.contains("generator-errors"), "the target is not to blame");
}

/// Each shard has a thread, for which an allocator would reserve 64 MB; and they come at once.
#[test]
fn users_of_many_shards_have_room_in_a_small_address_space() {
    let target = Target::start("http");
    let text = format!(
        "target: {}\nload: [{{users: 12000, for: 2s}}]\nsessions: {{u: {{steps: [http: GET /, \
         {{think: 1s}}]}}}}\n",
        target.http("")
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -v 500000 && exec \"$@\"", "sh"]).arg(binary());
    command.args(["run", "s.yaml", "--json", "--shards", "12"]);
    let run = Throng::new(command).file("s.yaml", text).run();
    run.check(!run.err.contains("growth paused"), "there is room for all of them");
    run.has("/users/started", 12_000);
    run.check([0, 5].contains(&run.code()), "it ends with its summary");
}

#[test]
fn a_limit_on_the_address_space_is_respected() {
    let bombs = bombs(20);
    let text = format!("target: http://{}\n{LOOKING}", bombs.address);
    let script = "ulimit -v 3000000 && exec \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, "sh"]).arg(binary()).args(["run", "bombs.yaml", "--json"]);
    let run = Throng::new(command).file("bombs.yaml", text).run();
    // Which of them is refused is chance; that none of them is the end is not.
    run.has("/total/count", 20);
}
