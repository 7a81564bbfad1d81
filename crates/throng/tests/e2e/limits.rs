//! A host that has little: few descriptors, and what throng makes of it.

use crate::run::Throng;
use crate::servers::{Target, program};

/// With so many descriptors in a table.
fn bench(descriptors: u32, target: &Target, line: &str) -> Throng {
    program("prlimit", "util-linux");
    let limit = format!("prlimit --nofile={descriptors}:{descriptors}");
    Throng::under(&limit, &format!("bench {} {line} --json", target.http("/")))
}

#[test]
fn few_descriptors_are_spread_over_shards() {
    let target = Target::start("http");
    let run = bench(64, &target, "-c 100 -n 1000").run().succeeds(1000);
    run.has("/connections/opened", 100);
    run.within("/run/shards", 3.0, 100.0);
    assert_eq!(target.counts("/connections/accepted"), 100, "{run}");
}

#[test]
fn shards_that_cannot_carry_the_users_say_so() {
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
fn an_address_without_a_way_is_no_want_of_ports() {
    program("unshare", "util-linux");
    // In a network of its own, in which not even the loopback interface is up.
    let line = "bench http://[::1]:9/ -c 1 -n 2 --json";
    let run = Throng::under("unshare --net", line).run();
    run.fails("unreachable", "network", None);
    run.check(format!("{run}").contains("no address from which"), "it does not say why");
}

#[test]
fn hardly_any_descriptor_is_said() {
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
fn only_an_address_that_is_taken_asks_for_another_one() {
    let target = Target::start("http");
    let line = format!("target http --listen {}", target.address);
    Throng::under("env", &line).run().exits(3).says(&["cannot listen on", "--listen"]);
    program("prlimit", "util-linux");
    let run = Throng::under("prlimit --nofile=8:8", "target http").run().exits(3);
    run.says(&["error[target-failed]", "--connections"]);
    run.check(!run.err.contains("--listen"), "another port is no cure");
}
