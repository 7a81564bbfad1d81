//! Users who behave as no user should, as the statistics of the target see them.

use crate::run::{Run, throng};
use crate::servers::Target;

const CHAT: &str = include_str!("../../../../../examples/chat.protocol.yaml");
const MIOP: &str = include_str!("../../../../../examples/miop.protocol.yaml");

const JOIN: &str = r#"- request: {join: {room: 1, user: "${user.id}", token: "t-${user.id}"}}
  check: {code: 0}
"#;

/// Sessions of a scenario, each with its steps, against a target that speaks a protocol.
#[track_caller]
fn run(target: &Target, protocol: &str, sessions: &[(&str, &str)], load: &str) -> Run {
    let mut text = format!("target: {}\nprotocol: {protocol}.protocol.yaml\n", target.address);
    text.push_str("sessions:\n");
    for (index, (head, steps)) in sessions.iter().enumerate() {
        text.push_str(&format!("  session{index}:\n    {head}\n    steps:\n"));
        steps.lines().for_each(|line| text.push_str(&format!("      {line}\n")));
    }
    text.push_str(load);
    throng("run odd.yaml --json --out record --shards 2")
        .file("odd.yaml", text)
        .file("chat.protocol.yaml", CHAT)
        .file("miop.protocol.yaml", MIOP)
        .run()
}

/// Thirty users do the steps once in the chat room.
#[track_caller]
fn thirty(target: &Target, head: &str, steps: &str) -> Run {
    run(target, "chat", &[(head, steps)], "load: [{iterations: 30, users: 30}]\n")
}

#[test]
fn connections_end_with_every_close_mode() {
    let target = Target::start("chat");
    let steps = format!(
        "- connect\n{JOIN}{}",
        "\
- if: user.id % 3 == 0
  then: [disconnect: reset]
- if: user.id % 3 == 1
  then: [disconnect: vanish]
- if: user.id % 3 == 2
  then: [disconnect: half_close]
- think: 300ms"
    );
    let run = thirty(&target, "weight: 1", &steps).exits(0);
    run.has("/connections/opened", 30);
    run.has("/connections/reset_by_us", 10);
    run.has("/connections/vanished", 10);
    let json = run.json();
    let of = |name: &str| json["connections"][name].as_u64().unwrap_or_default();
    run.check(of("half_closed") + of("closed_by_target") + of("closed_by_us") == 10, "the halves");
    target.comes_to("/connections/reset", 10);
    target.comes_to("/connections/closed_by_peer", 10);
    // Nobody has told the target that these are gone.
    target.comes_to("/connections/open", 10);
    target.comes_to("/chat/online", 10);
    run.has("/total/failed", 0);
}

#[test]
fn garbage_is_sent_and_the_target_closes() {
    let target = Target::start("chat");
    let steps = format!("- connect\n{JOIN}- send: {{garbage: 64B}}\n- stay: 5s\n  on_error: leave");
    let run = thirty(&target, "weight: 1", &steps).exits(0);
    let bad = ["bad_magic", "bad_length", "bad_kind", "bad_body"];
    let closed: u64 = bad.iter().map(|why| target.counts(&format!("/chat/{why}"))).sum();
    assert_eq!((closed, target.counts("/connections/closed_by_us")), (30, 30), "{run}");
    run.has("/connections/closed_by_target", 30);
    run.check(run.row("steps", "stay")["failed"] == 30, "the connection is lost");
    run.has("/users/finished", 30);
}

#[test]
fn frames_end_too_early() {
    let target = Target::start("chat");
    let light = "{light: {colour: 3}}";
    let steps = format!("- connect\n{JOIN}- {{send: {light}, cut: 5B}}\n- disconnect");
    let run = thirty(&target, "heartbeat: none", &steps).exits(0);
    assert_eq!(target.counts("/chat/lights"), 0, "{run}");
    target.comes_to("/connections/closed_by_peer", 30);
    // Joins with tokens of three and four letters, and five bytes of a head each.
    assert_eq!(target.counts("/bytes_in"), 30 * 29 + 9 * 3 + 21 * 4 + 30 * 5, "{run}");
    // What follows is out of step, and the target says so.
    let steps = format!(
        "- connect\n{JOIN}- {{send: {light}, cut: 5B}}\n- {{request: {light}, on_error: leave}}"
    );
    let run = thirty(&target, "timeout: 3s", &steps);
    let closed = target.counts("/connections/closed_by_us");
    run.check(closed == 30 || run.row("steps", "light")["failed"] == 30, "it is out of step");
    assert_eq!(target.counts("/chat/lights"), 0, "{run}");
    // A request without its end is not answered.
    let steps = format!("- connect\n{JOIN}- {{request: {light}, cut: 5B, timeout: 500ms}}");
    let run = thirty(&target, "weight: 1", &steps);
    run.fails("timeout", "target", Some(30));
}

#[test]
fn two_logins_with_one_identity() {
    let target = Target::start("chat");
    let join = JOIN.replace("user.id", "(user.id - 1) / 2");
    let steps = format!("- connect\n{join}- stay: 1s\n  on_error: leave");
    let run = thirty(&target, "weight: 1", &steps).exits(0);
    assert_eq!(target.counts("/double_logins"), 15, "{run}");
    run.has("/connections/closed_by_target", 15);
    run.has("/connections/closed_by_us", 15);
    run.has("/connections/opened", 30);
    run.check(run.row("steps", "stay")["failed"] == 15, "half of them are thrown out");
    run.has("/lifecycle/broken", 15);
    assert_eq!(target.counts("/connections/closed_by_us"), 15, "{run}");
}

const BIND: &str =
    "- connect\n- request: {bind: {device: \"d${user.id}\", key: pk}}\n  check: {code: 0}";

#[test]
fn heartbeats_stop() {
    let target = Target::start("push --idle-timeout 2s");
    let steps = format!("{BIND}\n- stay: 30s\n  on_error: leave");
    let silent = "heartbeat: {every: 200ms, lost_after: 200ms, stop_after: 3}";
    let alive = "heartbeat: {every: 200ms, lost_after: never}";
    let short = format!("{BIND}\n- stay: 4s\n  on_error: leave");
    let sessions = [(silent, steps.as_str()), (alive, short.as_str())];
    let sessions = sessions.map(|(head, steps)| (format!("users: 10\n    {head}"), steps));
    let sessions = sessions.each_ref().map(|(head, steps)| (head.as_str(), *steps));
    let run = run(&target, "miop", &sessions, "load: [{iterations: 20, users: 20}]\n").exits(0);
    assert_eq!(target.counts("/push/closed/idle"), 10, "{run}");
    run.has("/connections/closed_by_target", 10);
    run.has("/connections/closed_by_us", 10);
    run.check(run.took.as_secs() < 25, "the target closes who is silent");
    let sent = run.figure("/heartbeats/sent");
    assert_eq!(sent, target.counts("/push/heartbeats") as f64, "{run}");
    run.check(sent > 30.0 + 50.0, "some go on");
    run.within("/heartbeats/faulty", 10.0, 10_000.0);
}

#[test]
fn heartbeats_come_late_and_twice() {
    let target = Target::start("push");
    let steps = format!("{BIND}\n- stay: 2s");
    let twice = "users: 5\n    heartbeat: {every: 200ms, lost_after: 200ms, times: 2}";
    let late = "users: 5\n    heartbeat: {every: 200ms, lost_after: 200ms, late: 100ms}";
    let sessions = [(twice, steps.as_str()), (late, steps.as_str())];
    let run = run(&target, "miop", &sessions, "load: [{iterations: 10, users: 10}]\n").exits(0);
    run.check(run.figure("/heartbeats/faulty") >= 30.0, "most of them are faulty");
    let sent = run.figure("/heartbeats/sent");
    assert!(target.counts("/push/heartbeats") as f64 >= sent, "{run}");
    let one = run.figure("/heartbeats/answered") + run.figure("/heartbeats/lost");
    run.check(one <= sent, "an answer for each at most");
}

#[test]
fn a_slow_reader_fills_the_buffers_of_the_target() {
    let target = Target::start("chat --workers 1");
    let long = "x".repeat(60_000);
    let there = "- {rendezvous: all are there, users: 4}";
    let said = "- {rendezvous: all is said, users: 4}";
    let slow = format!("- connect\n{JOIN}- slow: {{read: 0B/s}}\n{there}\n{said}\n- stay: 4s");
    // One message at a time, so that only who does not want to read is behind.
    let heard = "    - expect: said\n    - {rendezvous: it is heard, users: 3}";
    let repeat = "- repeat: 200\n  steps:";
    let good = format!("- connect\n{JOIN}{there}\n{repeat}\n{heard}\n{said}\n- stay: 4s");
    let says = format!(
        "- connect\n{JOIN}{there}\n{repeat}\n    - request: {{say: \
         {{id: \"${{random.u64()}}\", sent_ns: 0, text: {long}}}}}\n{heard}\n{said}\n- stay: 4s"
    );
    let sessions =
        [("users: 1", slow.as_str()), ("users: 2", good.as_str()), ("users: 1", says.as_str())];
    let load = "deliveries:\n  talk: {sent: say, received: said, match: id, lost_after: 3s}\n\
                load: [{iterations: 4, users: 4}]\n";
    let run = run(&target, "chat", &sessions, load).exits(0);
    let dropped = target.counts("/deliveries/dropped");
    run.check(dropped > 0, "its buffers are full");
    let row = run.row("deliveries", "talk");
    let of = |figure: &str| row[figure].as_u64().unwrap_or_default();
    run.check(of("expected") == 800 && of("sent") == 200, "all is due");
    // The slow one reads nothing at all, the others everything.
    run.check(of("delivered") == 600 && of("lost") == 200, &format!("{row}"));
    run.has("/connections/opened", 4);
}

#[test]
fn a_slow_writer_takes_its_time() {
    let target = Target::start("chat");
    let text = "x".repeat(200);
    let say = |id: u8| format!("- request: {{say: {{id: {id}, sent_ns: 0, text: {text}}}}}");
    let (slow, fast) = (say(1), say(2));
    let steps = format!(
        "- connect\n{JOIN}- slow: {{write: 200B/s}}\n{slow}\n- slow: off\n{fast}\n  name: fast"
    );
    let run = thirty(&target, "weight: 1", &steps).exits(0);
    run.has("/total/failed", 0);
    let least = |name: &str| run.row("steps", name)["latency"]["min_ns"].as_u64();
    run.check(least("say") > Some(500_000_000), "229 bytes at 200 bytes a second");
    run.check(least("fast") < Some(500_000_000), "and none without");
    assert_eq!(target.counts("/chat/says"), 60, "{run}");
}

#[test]
fn all_users_disconnect_at_the_same_time_and_reconnect() {
    let target = Target::start("chat");
    let steps = format!(
        "- {{connect: , reconnect: {{times: forever, wait: 10ms..100ms}}}}\n{JOIN}- stay: forever"
    );
    let load = "load:\n  - {users: 40, for: 1s}\n  - {name: storm, churn: {share: 100%, every: 1s, \
                how: [fin, reset, vanish, half_close]}, for: 2500ms}\n  - {users: 40, for: 2s}\n";
    let run = run(&target, "chat", &[("weight: 1", steps.as_str())], load).exits(0);
    let back = run.figure("/connections/reconnects");
    run.check(back >= 80.0 && back % 40.0 == 0.0, "everybody, each time");
    run.has("/connections/opened", 40 + back as u64);
    assert_eq!(target.counts("/chat/joins"), 40 + back as u64, "{run}");
    // Who vanished was still there for the target when he came back.
    let vanished = run.figure("/connections/vanished") as u64;
    run.check(vanished as f64 == back / 4.0, "each way in turn");
    // Others may be back before the target has read their end.
    let twice = target.counts("/double_logins");
    run.check((vanished..=back as u64).contains(&twice), "who vanished is there twice");
    run.has("/connections/reset_by_us", vanished);
    target.comes_to("/connections/reset", vanished);
    run.has("/phases/2/users_online", 40);
    run.has("/users/started", 40);
}
