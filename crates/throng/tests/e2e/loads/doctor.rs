//! Whether a host can carry a load: `throng doctor`, and what a run asks before its first packet.

use std::net::TcpListener;

use crate::run::{Run, throng};
use crate::scenarios::one_session;
use crate::servers::program;

/// More than any host has memory for.
const FAR_TOO_MANY: &str = "100M";

/// Users of whom each has a connection all the time.
fn stayers(target: &str, users: &str) -> String {
    let load = format!("load:\n- {{users: {users}, for: 2s}}");
    one_session(target, &load, "- connect: /\n- stay: forever")
}

fn finding<'r>(findings: &'r serde_json::Value, rule: &str) -> &'r serde_json::Value {
    let found = findings.as_array().and_then(|all| all.iter().find(|one| one["rule"] == rule));
    found.unwrap_or_else(|| panic!("no finding of {rule}: {findings:#}"))
}

#[track_caller]
fn is_examined(run: &Run, fit: bool) -> serde_json::Value {
    let json = run.json();
    run.check(json["fit"] == fit, "it is fit, or it is not");
    run.check(json["findings"].as_array().is_some_and(|all| all.len() > 10), "all rules");
    json.clone()
}

#[test]
fn a_few_users_fit_everywhere() {
    let run = throng("doctor --users 10").run().exits(0);
    run.says(&[
        "this host meets the requirements for 10 users",
        "memory",
        "source ports",
        "the limit is",
    ]);
    let run = throng("doctor --users 10 --json").run().exits(0);
    let json = is_examined(&run, true);
    run.check(json["role"] == "generator" && json["users"] == 10, "what was asked for");
    run.check(json["ceiling"].as_u64() > Some(10), "how many it can hold");
    throng("doctor").run().says(&["10,000"]);
    let run = throng("doctor --users 10 --target --json").run();
    run.check(run.json()["role"] == "target", "the other side");
}

#[test]
fn far_too_many_users_fit_nowhere() {
    let run = throng(&format!("doctor --users {FAR_TOO_MANY}")).run().exits(3);
    run.says(&["fail", "[memory]", "[source-addresses]", "ip addr add", "permanently"]);
    run.says(&["this host does not meet the requirements for 100,000,000 users"]);
    let run = throng(&format!("doctor --users {FAR_TOO_MANY} --json")).run().exits(3);
    let json = is_examined(&run, false);
    let memory = finding(&json["findings"], "memory");
    run.check(memory["severity"] == "unfit", "memory is the least it has");
    run.check(memory["ceiling"].as_u64() > Some(1_000), "it can hold some");
    let chinese = throng(&format!("doctor --users {FAR_TOO_MANY} --lang zh")).run().exits(3);
    chinese.says(&["个用户的要求", "源地址", "ip addr add"]);
}

#[test]
fn a_scenario_determines_the_needs() {
    let local = stayers("ws://127.0.0.1:9", "5000");
    let run = throng("doctor local.yaml --json").file("local.yaml", &local).run();
    let json = run.json();
    run.check(json["users"] == 5000, "the users of the scenario");
    let addresses = finding(&json["findings"], "source-addresses");
    run.check(addresses["severity"] == "fit", "the loopback has addresses enough");
    // Of a documentation network nobody answers; nobody is asked either (RFC 5737).
    let remote = stayers("ws://203.0.113.9:9", "5000");
    let run = throng("doctor remote.yaml --users 1M --json").file("remote.yaml", &remote).run();
    let run = run.exits(3);
    let addresses = finding(&run.json()["findings"], "source-addresses").clone();
    run.check(addresses["severity"] == "unfit", "one address is not enough");
    run.check(addresses["ceiling"] == 64_512, "what one address has ports for");
}

#[test]
fn few_descriptors_are_reported() {
    program("prlimit", "util-linux");
    let under = |limit: &str, line: &str| crate::run::Throng::under(limit, line).run();
    let run = under("prlimit --nofile=40:40", "doctor --users 100 --json").exits(3);
    let json = is_examined(&run, false);
    run.check(finding(&json["findings"], "descriptors")["severity"] == "unfit", "40 are too few");
    let run = under("prlimit --nofile=1024:1024", "doctor --users 10000 --json");
    let descriptors = finding(&run.json()["findings"], "descriptors").clone();
    run.check(descriptors["severity"] == "fit", "they are spread over tables");
    run.check(descriptors["needed"] == "11 shards", "and it says over how many");
    let run = under("prlimit --nofile=1024:1024", "doctor --users 10000 --target --json");
    let run = run.exits(3);
    let descriptors = finding(&run.json()["findings"], "descriptors").clone();
    run.check(descriptors["fix_now"][0] == "ulimit -n 10100", "a service needs them all");
}

#[test]
fn wrong_arguments_are_a_usage_error() {
    for line in
        ["doctor --users 0", "doctor --users many", "doctor --set a=b", "doctor absent.yaml"]
    {
        throng(line).run().exits(2);
    }
    throng("doctor bad.yaml").file("bad.yaml", "nonsense: [").run().exits(2);
}

/// Nobody must have come to a listener.
#[track_caller]
fn nobody_came(listener: &TcpListener, run: &Run) {
    listener.set_nonblocking(true).expect("a listener that does not wait");
    run.check(listener.accept().is_err(), "somebody came");
}

#[test]
fn a_run_that_cannot_fit_does_not_start() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    let text = stayers(&format!("ws://{address}"), FAR_TOO_MANY);
    let run = throng("run many.yaml --out record").file("many.yaml", &text).run().exits(3);
    run.says(&["host-unfit", "memory", "nothing was sent", "throng doctor", "--force"]);
    run.check(!run.folder().join("record").exists(), "a record was left");
    nobody_came(&listener, &run);
    let line = format!("bench ws://{address}/ -c {FAR_TOO_MANY} -d 1s --no-record");
    let run = throng(&line).run().exits(3);
    run.says(&["host-unfit"]);
    nobody_came(&listener, &run);
    // Who arrives stays for an hour: so many are there at once in the end.
    let text = one_session(
        &format!("ws://{address}"),
        "load:\n- {arrivals: 30_000/s, for: 2h}",
        "- connect: /\n- stay: 1h",
    );
    let run = throng("run arrive.yaml").file("arrive.yaml", &text).run().exits(3);
    run.says(&["host-unfit", "108,000,000 users"]);
    nobody_came(&listener, &run);
}

#[test]
fn force_continues_to_the_next_refusal() {
    // The family that is asked for does not fit the address: nothing is sent either.
    let line = format!("bench ws://[::1]:9/ -4 -c {FAR_TOO_MANY} -d 1s --no-record");
    let run = throng(&line).run().exits(3);
    run.says(&["error[host-unfit]", "--force"]);
    let run = throng(&line).arg("--force").run().exits(4);
    run.says(&["warning[host-unfit]", "resolve-failed", "nothing was sent"]);
}
