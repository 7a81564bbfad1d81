//! How long connections were there, by who ended them: as many times as the counters say, and as
//! long as the target has them.

use serde_json::Value;

use crate::faulty::Faulty;
use crate::run::{Run, throng, throng_first};
use crate::servers::{Nginx, Target};

const ENDINGS: [&str; 7] = [
    "closed_by_us",
    "closed_by_target",
    "reset",
    "reset_by_us",
    "vanished",
    "half_closed",
    "timed_out",
];

fn times(json: &Value, is_its: impl Fn(&Value) -> bool) -> u64 {
    let rows = json["residence"].as_array().expect("rows").iter().filter(|row| is_its(row));
    rows.map(|row| row["time"]["count"].as_u64().expect("a count")).sum()
}

/// Every connection has its time.
#[track_caller]
fn adds_up(run: &Run) {
    let json = run.json();
    for ending in ENDINGS {
        let counted = json["connections"][ending].as_u64().expect("a counter");
        let times = times(&json, |row| row["ended"] == ending);
        run.check(times == counted, &format!("{times} times of {counted}: {ending}"));
    }
    let opened = times(&json, |row| row["unopened"] == false);
    run.check(json["connections"]["opened"] == opened, "those that were open");
}

fn of<'a>(json: &'a Value, ended: &str, unopened: bool) -> &'a Value {
    let mut rows = json["residence"].as_array().expect("rows").iter();
    let row = rows.find(|row| row["ended"] == ended && row["unopened"] == unopened);
    &row.unwrap_or_else(|| panic!("no row of {ended}: {}", json["residence"]))["time"]
}

#[test]
fn every_connection_has_its_time_by_who_ended_it() {
    let target = Target::start("http --latency 5ms --errors 10% --resets 2%");
    let run = throng(&format!("bench {} -c 20 -n 4000 --json", target.http("/"))).run();
    adds_up(&run);
    run.has("/connections/reset", target.counts("/resets_sent"));
    run.check(of(&run.json(), "reset", false)["min_ns"].as_u64() >= Some(5_000_000), "after 5 ms");
    target.comes_to("/connections/open", 0);
    run.has("/connections/opened", target.counts("/connections/accepted"));
    let target = Target::start("http --latency 5ms --close-after 200ms");
    let line = format!("bench {} -c 20 -n 4000 --json --out record", target.http("/"));
    // A connection that is noticed late is younger for throng than for the target.
    let run = throng_first(&line).start().wait();
    adds_up(&run);
    let json = run.json();
    // The target closes none that is younger.
    let closed = of(&json, "closed_by_target", false)["min_ns"].as_u64();
    run.check(closed > Some(195_000_000), "none is closed earlier");
    let again = throng(&format!("report {} --json", run.folder().join("record").display())).run();
    again.check(again.json()["residence"] == json["residence"], "the record has the same");
    let text = throng(&format!("report {} --details", run.folder().join("record").display()));
    text.run().says(&["connections ended", "closed by the target"]);
}

#[test]
fn a_server_closes_after_so_many_requests() {
    let nginx = Nginx::start("", "keepalive_requests 3;");
    let run = throng(&format!("bench {} -n 300 -c 4 --json", nginx.url("/"))).run().succeeds(300);
    adds_up(&run);
    let json = run.json();
    let counts = |name: &str| json["connections"][name].as_u64().unwrap_or(0);
    // Each user is left with one that has served less.
    let opened = counts("opened");
    run.check((100..=104).contains(&opened), &format!("{opened} connections"));
    run.check(counts("closed_by_target") + counts("closed_by_us") == opened, "in order");
    run.check(counts("closed_by_target") > 0, "some are closed by nginx");
}

#[test]
fn connections_that_were_never_open_have_times_of_their_own() {
    // Accepted, and then nothing: there is no end of the handshake.
    let silent = Faulty::start(|peer| peer.waits());
    let line = format!("bench {} -n 6 -c 3 --timeout 1s --json", silent.url("https"));
    let run = throng(&line).run();
    adds_up(&run);
    run.has("/connections/opened", 0);
    run.has("/connections/timed_out", 6);
    let time = of(&run.json(), "timed_out", true).clone();
    run.check(time["min_ns"].as_u64() > Some(900_000_000), "the connection was there for a second");
    // No TLS is spoken there: it is we who close, or the server that hears what it does not know.
    let closing = Faulty::start(|mut peer| {
        peer.bytes();
        peer.closes();
    });
    let run = throng(&format!("bench {} -n 6 -c 3 --json", closing.url("https"))).run();
    adds_up(&run);
    run.check(times(&run.json(), |row| row["unopened"] == true) == 6, "six were never open");
}

#[test]
fn those_that_are_open_at_the_end_are_ended_by_us() {
    let target = Target::start("echo");
    let scenario = format!(
        "target: {}\nsessions: {{one: {{steps: [connect: /, stay: 1h]}}}}\n\
         load: [{{users: 40, for: 2s}}]\ngraceful_stop: 0s\n",
        target.url("ws", "")
    );
    let run = throng("run stay.yaml --json").file("stay.yaml", scenario).run();
    adds_up(&run);
    run.has("/connections/opened", 40);
    run.has("/connections/closed_by_us", 40);
    let time = of(&run.json(), "closed_by_us", false).clone();
    run.check(time["min_ns"].as_u64() > Some(1_000_000_000), "they were there for two seconds");
}
