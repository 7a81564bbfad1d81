//! Users with a network of their own: what they are told of it, by the target and by the kernel.
//! These tests need root and /dev/net/tun.

use std::process::Command;

use crate::run::{FIRST, Throng, binary, throng, throng_first};
use crate::servers::{Target, program};

/// A run whose wire does not wait for what else this machine does: late packets would make it
/// invalid.
fn running(text: &str) -> Throng {
    throng_first("run scenario.yaml --json --out record").file("scenario.yaml", text)
}

/// Two sessions that do the same over different networks.
fn two(target: &str, [near, far]: [&str; 2], steps: &str) -> String {
    format!(
        "target: {target}\nload: [{{users: 4, for: 3s}}]\nsessions:\n  near: {{network: {near}, \
         steps: [{steps}]}}\n  far: {{network: {far}, steps: [{steps}]}}\n"
    )
}

#[test]
fn a_round_trip_takes_the_delay_and_a_connection_one_more() {
    let http = Target::start("http");
    let text = format!(
        "target: {}\nload: [{{users: 6, for: 3s}}]\nsessions:\n  far: {{network: {{delay: 150ms}}, \
         steps: [{{http: GET /, name: far}}]}}\n  near: {{network: {{delay: 20ms..40ms}}, steps: \
         [{{http: GET /, name: near}}]}}\n  here: {{steps: [{{http: GET /, name: here}}, {{think: \
         50ms}}]}}\n",
        http.url("http", "")
    );
    let run = running(&text).run().exits(0);
    run.has("/total/failed", 0);
    let least = |name: &str| run.row("steps", name)["latency"]["min_ns"].as_u64().unwrap_or(0);
    let [here, near, far] = ["here", "near", "far"].map(least);
    run.check(far >= 150_000_000 && near >= 20_000_000, "no reply comes before its time");
    run.check(here < near && near < far, "each session has its own network");
    // What is measured is what the kernel waits for: a handshake takes a round trip as well.
    let connect = run.row("stages", "connect");
    run.check(connect["latency"]["max_ns"].as_u64() >= Some(150_000_000), "the handshake");
    let json = run.json();
    assert_eq!(json["networks"][0]["network"], "delay 150ms", "{run}");
    assert_eq!(json["networks"][1]["session"], "near", "{run}");
    assert_eq!(json["networks"].as_array().map(Vec::len), Some(2), "{run}");
    run.within("/packets/carried", 50.0, f64::MAX);
    run.has("/packets/lost", 0);
}

/// The kernel's own measurement of the round trip, of connections that stay.
#[test]
fn the_kernel_measures_the_configured_round_trip() {
    let echo = Target::start("echo");
    let text = format!(
        "target: {}\nload: [{{users: 3, for: 4s}}]\nsessions:\n  s:\n    network: {{delay: 100ms}}\n    \
         steps: [connect, {{repeat: 20, steps: [{{request: {{text: hello}}}}]}}, {{stay: 10s}}]\n",
        echo.url("tcp", "")
    );
    let run = running(&text).run().exits(0);
    let round_trip = run.json()["tcp"]["round_trip"]["min_ns"].as_u64();
    // The kernel tells microseconds.
    run.check(round_trip >= Some(99_900_000), "the round trip");
}

#[test]
fn lost_packets_are_resent_and_nothing_fails() {
    let http = Target::start("http");
    let networks = ["{delay: 4ms, loss: 2%}", "{delay: 4ms}"];
    let run = running(&two(&http.url("http", ""), networks, "http: GET /")).run().exits(0);
    run.has("/total/failed", 0);
    run.within("/packets/lost", 5.0, f64::MAX);
    run.has("/packets/overflowed", 0);
    // Half of the packets are of users whose network loses one in fifty.
    let packets = &run.json()["packets"];
    let [lost, carried] = ["lost", "carried"].map(|it| packets[it].as_f64().unwrap_or(0.0));
    run.check(lost < carried * 0.03, "not more than it says");
}

#[test]
fn a_user_gets_no_more_than_its_rate() {
    const BYTES: u64 = 50_000;
    let http = Target::start("http");
    let text = format!(
        "target: {}\nload: [{{iterations: 8, users: 2}}]\nsessions:\n  s:\n    network: {{delay: 10ms, \
         rate: 2Mbit/s}}\n    steps: [{{http: GET /bytes/{BYTES}}}]\n",
        http.url("http", "")
    );
    let run = running(&text).run().exits(0);
    run.has("/total/ok", 8);
    let row = &run.json()["total"]["latency"];
    // 250,000 bytes per second.
    let least = row["min_ns"].as_f64().unwrap_or(0.0) / 1e9;
    run.check(least >= BYTES as f64 / 250_000.0, "no response is faster than its network");
    let packets = &run.json()["packets"];
    run.check(packets["overflowed"] == 0, "throng drops none");
}

#[test]
fn check_and_report_name_the_network() {
    let http = Target::start("http");
    let networks = ["{delay: 5ms..10ms, loss: 0.1%, rate: 10Mbit/s}", "{rate: 1Gbit/s}"];
    let text = two(&http.url("http", ""), networks, "http: GET /, think: 100ms");
    let check = throng("check s.yaml").file("s.yaml", &text).run().exits(0);
    check.says(&["delay 5ms..10ms, loss 0.1%, rate 10Mbit/s", "rate 1Gbit/s"]);
    let run = running(&text).run().exits(0);
    let report = throng("report --details").arg(run.folder().join("record")).run().exits(0);
    report.says(&["near · delay 5ms..10ms, loss 0.1%, rate 10Mbit/s", "far · rate 1Gbit/s"]);
}

#[test]
fn without_privileges_nothing_is_sent_and_the_reason_is_reported() {
    let http = Target::start("http");
    let text = two(&http.url("http", ""), ["{delay: 5ms}", "{delay: 5ms}"], "http: GET /");
    let run = |words: &str, line: &str| Throng::under(words, line).file("s.yaml", &text).run();
    program("setpriv", "util-linux");
    for line in ["run s.yaml", "run s.yaml --force"] {
        let run = run("setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin", line).exits(3);
        run.says(&["CAP_SYS_ADMIN", "root"]);
        assert_eq!(http.counts("/requests"), 0, "{run}");
    }
}

/// In a network of its own, where no other run has a device.
#[test]
fn nothing_is_left_behind_when_throng_is_killed() {
    const SCRIPT: &str = "ip link set lo up\n\
        \"$0\" run s.yaml --no-record > /dev/null 2>&1 &\n\
        until ip -br link | grep throng; do sleep 0.02; done\n\
        kill -9 $!; wait $!\n\
        while ip -br link | grep -q throng; do sleep 0.02; done\n\
        echo routes: $(ip route)";
    let mut words = FIRST.split_whitespace().chain(["unshare", "--net", "sh", "-c", SCRIPT]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).arg(binary());
    let text = two("http://127.0.0.1:1", ["{delay: 5ms}", "{delay: 5ms}"], "http: GET /");
    let run = Throng::new(command).file("s.yaml", text).run();
    assert!(run.out.contains("throng0") && run.out.ends_with("routes:\n"), "{run}");
}

/// In two networks with a cable between them; the target is in the other one, and knows the way
/// back to the users.
#[test]
fn a_target_on_another_host_is_reached_over_a_host_that_forwards() {
    const SCRIPT: &str = "unshare --net sh -c 'until ip link show far0; do sleep 0.02; done\n\
        ip addr add 10.77.0.2/30 dev far0; ip link set far0 up\n\
        ip route add default via 10.77.0.1\n\
        exec \"$0\" target http --listen 10.77.0.2:8080' \"$0\" > /dev/null 2>&1 &\n\
        until [ \"$(readlink /proc/$!/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]\n\
        do sleep 0.02; done\n\
        ip link add near0 type veth peer name far0 netns $!\n\
        ip addr add 10.77.0.1/30 dev near0; ip link set near0 up\n\
        until \"$0\" bench http://10.77.0.2:8080/ -n 1 -c 1 --no-record > /dev/null 2>&1\n\
        do sleep 0.1; done\n\
        \"$0\" run s.yaml --no-record; echo without $?\n\
        sysctl -qw net.ipv4.ip_forward=1\n\
        \"$0\" run s.yaml --no-record; echo with $?; kill $!";
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", SCRIPT]).arg(binary());
    let networks = ["{delay: 20ms}", "{delay: 40ms}"];
    let text = two("http://10.77.0.2:8080", networks, "http: GET /, think: 100ms");
    let run = Throng::new(command).file("s.yaml", text).run();
    run.says(&["without 3\n", "with 0\n", "does not forward the packets", "ip_forward=1"]);
}
