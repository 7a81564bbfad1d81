//! The chat room: what the ledger says of its deliveries is what the target knows it did.

use crate::run::{Run, Throng, throng};
use crate::servers::Target;

const CHAT: &str = include_str!("../../../../../examples/chat.protocol.yaml");

/// Thirty users in three rooms say six messages each, and then wait until all is settled.
/// So 1,800 deliveries are due, to users who are all there from the first to the last.
const ROOMS: &str = r#"name: rooms
target: TARGET
protocol: chat.protocol.yaml
sessions:
  member:
    on: [{message: said, name: heard}]
    before:
      - connect
      - request: {join: {room: "${user.id % 3}", user: "${user.id}", token: "t-${user.id}"}}
        check: {code: 0}
      - {rendezvous: all are there, users: 30}
    steps:
      - repeat: 6
        steps:
          - request: {say: {id: "${random.u64()}", sent_ns: "${now.ns()}", text: "from ${user.id}"}}
            check: {code: 0}
      - {rendezvous: all is said, users: 30}
      - stay: STAY
deliveries:
  talk:
    sent: say
    received: said
    match: id
    stamp: sent_ns
    audience: {same: "${user.id % 3}"}
    late_after: 2s
    lost_after: LOST
load: [{iterations: 30, users: 30}]
thresholds: [talk lost = 0]
"#;
const DUE: u64 = 1800;

/// A run of a text against the chat room.
pub(crate) fn running(target: &Target, text: &str, line: &str) -> Throng {
    let text = text.replace("TARGET", &target.address.to_string());
    throng(&format!("run room.yaml --json --out record {line}"))
        .file("room.yaml", text)
        .file("chat.protocol.yaml", CHAT)
}

/// The rooms against a target with this fault; losses are known after two seconds.
#[track_caller]
fn rooms(fault: &str) -> (Run, Target) {
    rooms_in(fault, "3s", "2s")
}

/// The rooms whose messages are lost, for a page: 45 of 1800.
pub(crate) fn lossy_rooms() -> (Run, Target) {
    rooms("--lose-every 40")
}

#[track_caller]
fn rooms_in(fault: &str, stay: &str, lost_after: &str) -> (Run, Target) {
    let target = Target::start(&format!("chat --workers 3 {fault}"));
    let text = ROOMS.replace("STAY", stay).replace("LOST", lost_after);
    let run = running(&target, &text, "--shards 3").run();
    let row = run.row("deliveries", "talk");
    run.check(row["sent"] == 180 && row["expected"] == DUE, "all is due");
    run.check(row["excused"] == 0 && row["unwatched"] == 0, "nothing is excused");
    for none in ["stray", "foreign"] {
        run.check(row[none] == 0, none);
    }
    (run, target)
}

/// A figure of the ledger.
#[track_caller]
fn talk(run: &Run, figure: &str) -> u64 {
    let row = run.row("deliveries", "talk");
    row[figure].as_u64().unwrap_or_else(|| panic!("there is no {figure} in {row}\n{run}"))
}

/// All these figures of the ledger.
#[track_caller]
fn has(run: &Run, figures: &[(&str, u64)]) {
    for &(figure, wanted) in figures {
        let got = talk(run, figure);
        run.check(got == wanted, &format!("{figure} is {got} instead of {wanted}"));
    }
}

/// How many errors there are of a cause.
fn errors(run: &Run, cause: &str) -> u64 {
    let json = run.json();
    let rows = json["errors"].as_array().cloned().unwrap_or_default();
    let of = rows.iter().filter(|row| row["cause"] == cause);
    of.filter_map(|row| row["count"].as_u64()).sum()
}

#[test]
fn every_delivery_of_a_chat_room_is_counted() {
    let (run, target) = rooms("");
    assert_eq!(target.counts("/deliveries/written"), DUE);
    has(&run, &[("delivered", DUE), ("lost", 0), ("twice", 0), ("out_of_order", 0)]);
    let latency = run.row("deliveries", "talk")["latency"].clone();
    run.check(latency["count"] == DUE, "each has its latency");
    run.check(run.row("pushed", "heard")["count"] == DUE, "all of them are pushes");
    run.has("/total/failed", 0);
    run.within("/run/shards", 3.0, 3.0);
    run.exits(0);
}

#[test]
fn every_lost_delivery_is_named() {
    let (run, target) = rooms("--lose-every 50");
    assert_eq!(target.counts("/deliveries/lost"), DUE / 50);
    has(&run, &[("lost", DUE / 50), ("delivered", DUE - DUE / 50), ("twice", 0)]);
    assert_eq!(errors(&run, "delivery-lost"), DUE / 50, "{run}");
    run.check(run.row("thresholds", "talk lost = 0")["verdict"] == "not-met", "the threshold");
    let example = run.json()["errors"][0]["example"]["detail"].to_string();
    run.check(example.contains("did not reach"), "an example");
    run.exits(1);
}

#[test]
fn every_duplicate_delivery_is_counted() {
    let (run, target) = rooms("--twice-every 40");
    assert_eq!(target.counts("/deliveries/twice"), DUE / 40);
    has(&run, &[("twice", DUE / 40), ("delivered", DUE), ("lost", 0)]);
    assert_eq!(errors(&run, "delivery-lost"), 0, "{run}");
    let examples = run.row("deliveries", "talk")["examples"].to_string();
    run.check(examples.contains("twice"), "an example");
    run.exits(0);
}

#[test]
fn every_late_delivery_is_counted() {
    let (run, target) = rooms_in("--late-every 45 --late-by 3s", "5s", "4500ms");
    assert_eq!(target.counts("/deliveries/late"), DUE / 45);
    has(&run, &[("late", DUE / 45), ("delivered", DUE), ("after_lost", 0)]);
    run.exits(0);
}

#[test]
fn deliveries_after_the_timeout_are_lost_and_counted() {
    let (run, target) = rooms_in("--late-every 45 --late-by 3s", "5s", "2s");
    assert_eq!(target.counts("/deliveries/late"), DUE / 45);
    has(&run, &[("lost", DUE / 45), ("after_lost", DUE / 45), ("delivered", DUE - DUE / 45)]);
    run.exits(1);
}

#[test]
fn every_packet_that_breaks_the_declaration_is_counted() {
    let (run, target) = rooms("--garbage-every 90");
    assert_eq!(target.counts("/deliveries/garbage"), DUE / 90);
    run.has("/messages/broken", DUE / 90);
    assert_eq!(errors(&run, "malformed"), DUE / 90, "{run}");
    has(&run, &[("lost", DUE / 90), ("delivered", DUE - DUE / 90)]);
    // Without a word in the scenario, a failure is counted and the user stays.
    run.has("/connections/opened", 30);
    run.has("/connections/closed_by_us", 30);
    let rows = run.json()["errors"].to_string();
    run.check(rows.contains("byte 6") && rows.contains("c4a7"), "the position, and its bytes");
    run.check(rows.contains("`kind`"), "the field");
    for row in run.json()["errors"].as_array().expect("rows") {
        run.check(row["blame"] == "target", "the target is to blame");
    }
    run.exits(1);
}

#[test]
fn a_user_that_the_target_forgot_misses_all_messages() {
    let (run, target) = rooms("--forget-every 10");
    assert_eq!(target.counts("/chat/joins_forgotten"), 3);
    // Three users, and in each room sixty messages.
    has(&run, &[("lost", 3 * 60), ("delivered", DUE - 3 * 60)]);
    run.exits(1);
}

/// The first user says so many messages, one after the other; the others only hear them.
fn speaker(users: u64, says: u64, head: &str) -> String {
    format!(
        r#"name: a speaker
target: TARGET
protocol: chat.protocol.yaml
sessions:
  member:
    {head}
    before:
      - connect
      - request: {{join: {{room: 7, user: "${{user.id}}", token: "t-${{user.id}}"}}}}
        check: {{code: 0}}
      - {{rendezvous: all are there, users: {users}}}
    steps:
      - if: user.id == 1
        then:
          - repeat: {says}
            steps:
              - request: {{say: {{id: "${{random.u64()}}", sent_ns: "${{now.ns()}}", text: hi}}}}
              - think: 20ms
      - stay: 4s
deliveries:
  talk: {{sent: say, received: said, match: id, stamp: sent_ns, lost_after: 3s}}
load: [{{iterations: {users}, users: {users}}}]
"#
    )
}

#[test]
fn every_delivery_behind_a_later_one_is_counted() {
    let target = Target::start("chat --workers 3 --swap-every 7");
    let run = running(&target, &speaker(10, 40, "on_error: count"), "--shards 2").run().exits(0);
    let swapped = target.counts("/deliveries/swapped");
    run.check(swapped >= 40, "the target swaps");
    // All that was said came from one user, so the order is known.
    has(&run, &[("out_of_order", swapped), ("expected", 400), ("delivered", 400), ("lost", 0)]);
}

/// Users who leave when a packet is broken, of which there is one, in the second message.
#[track_caller]
fn one_leaves(text: &str) {
    let target = Target::start("chat --workers 1 --garbage-every 15");
    let text = text.replace("stay: 4s", "stay: forever");
    let text = text.replace("iterations: 10, users: 10", "users: 10, for: 3s");
    let run = running(&target, &text, "").run();
    assert_eq!(target.counts("/deliveries/garbage"), 1, "{run}");
    run.has("/messages/broken", 1);
    assert_eq!(errors(&run, "malformed"), 1, "{run}");
    run.has("/phases/0/users_present", 9);
    has(&run, &[("lost", 0), ("delivered", talk(&run, "expected") - talk(&run, "excused"))]);
    run.exits(0);
}

#[test]
fn a_broken_packet_may_end_a_user_that_stays() {
    one_leaves(&speaker(10, 2, "on_error: leave"));
}

#[test]
fn a_broken_packet_may_end_a_user_in_think_time() {
    let text = speaker(10, 2, "on_error: leave");
    one_leaves(&text.replace("- stay: 4s", "- think: 1m"));
}

#[test]
fn the_audience_may_be_one_user() {
    let (run, target) = couples();
    let lost = target.counts("/deliveries/lost");
    assert_eq!((target.counts("/deliveries/owed"), lost), (360, 18));
    has(&run, &[("expected", 180), ("excused", 0), ("unwatched", 0)]);
    run.check(talk(&run, "lost") + talk(&run, "delivered") == 180, "each is one or the other");
    run.check(talk(&run, "lost") <= 18, "not more than there are");
    run.exits(1);
}

#[test]
fn a_delivery_outside_the_audience_is_stray() {
    let (run, _target) = couples();
    // What the sender itself gets back is for nobody.
    let came = talk(&run, "delivered") + talk(&run, "stray");
    run.check(came == 360 - 18, "all that came is delivered or a stray");
}

/// Each speaks in a room of two, so that it has one other to hear it, and itself.
fn couples() -> (Run, Target) {
    let target = Target::start("chat --lose-every 20");
    let other = "audience: {to: \"${user.id + (user.id % 2) * 2 - 1}\", is: \"${user.id}\"}";
    let text = ROOMS
        .replace(
            "audience: {same: \"${user.id % 3}\"}",
            &format!("without_sender: true\n    {other}"),
        )
        .replace("user.id % 3", "(user.id - 1) / 2")
        .replace("STAY", "3s")
        .replace("LOST", "2s");
    let run = running(&target, &text, "--shards 2").run();
    (run, target)
}

/// The way of those who do not wait.
const LEAVES: &str = "think: 10ms..300ms
      - choose:
          - {steps: [disconnect: reset]}
          - {steps: [disconnect: vanish]}
          - {steps: [{send: leave}, disconnect]}
      - leave";

#[test]
fn deliveries_to_users_that_leave_are_undetermined() {
    // Each delivery takes so long that some are on their way when a user leaves.
    let target = Target::start("chat --workers 2 --late-every 1 --late-by 20ms");
    let text = ROOMS
        .replace("      - {rendezvous: all is said, users: 30}\n", "")
        .replace("      - {rendezvous: all are there, users: 30}\n", "")
        .replace("stay: STAY", LEAVES)
        .replace("LOST", "2s")
        .replace("{iterations: 30, users: 30}", "{arrivals: 100/s, for: 3s}, {for: 2s}");
    let run = running(&target, &text, "--shards 3").run().exits(0);
    has(&run, &[("lost", 0), ("twice", 0), ("foreign", 0), ("stray", 0), ("out_of_order", 0)]);
    run.check(talk(&run, "excused") > 0, "somebody left before he got it");
    run.has("/users/started", 300);
    let all = talk(&run, "delivered") + talk(&run, "excused") + talk(&run, "lost");
    run.check(all == talk(&run, "expected"), "each is one of the three");
    run.check(talk(&run, "sent") == 300 * 6, "all is said");
}

#[test]
fn an_interrupted_run_reports_its_results() {
    let target = Target::start("chat --workers 2 --lose-every 30");
    let text = ROOMS.replace("STAY", "1m").replace("LOST", "2s").replace("repeat: 6", "repeat: 20");
    let child = running(&target, &text, "--shards 2").start();
    child.until("all to be said", || target.counts("/chat/says") == 600);
    child.until("losses to be told", || {
        let folder = child.folder().join("record/intervals.ndjson");
        std::fs::read_to_string(folder).unwrap_or_default().lines().count() >= 5
    });
    child.signal(libc::SIGINT);
    let run = child.wait().exits(130);
    has(&run, &[("expected", 6000), ("lost", 200), ("delivered", 5800), ("excused", 0)]);
    assert_eq!(target.counts("/deliveries/lost"), 200, "{run}");
}

#[test]
fn deliveries_at_the_end_of_a_run_are_undetermined() {
    let target = Target::start("chat --workers 2 --lose-every 30");
    // It ends at once, with all that is under way.
    let text = ROOMS.replace("STAY", "1ms").replace("LOST", "10s");
    let run = running(&target, &text, "--shards 2").run().exits(0);
    let lost = target.counts("/deliveries/lost");
    has(&run, &[("expected", DUE), ("lost", 0), ("twice", 0), ("foreign", 0)]);
    run.check(talk(&run, "excused") >= lost, "what did not come is excused");
    run.check(talk(&run, "excused") + talk(&run, "delivered") == DUE, "nothing is forgotten");
}

#[test]
fn a_recorded_run_has_the_same_report() {
    let (run, _target) = rooms("--lose-every 50");
    let record = run.folder().join("record").display().to_string();
    let again = throng("report --json").arg(&record).run();
    assert_eq!(again.json()["deliveries"], run.json()["deliveries"], "{again}");
    let told = throng("report").arg(&record).run();
    told.says(&["talk", "1,800", "36"]);
    let told = throng("report --lang zh").arg(&record).run();
    told.says(&["talk", "36"]);
}

#[test]
fn handlers_work_beside_the_steps_of_a_user() {
    let target = Target::start("chat --workers 2");
    let text = ROOMS
        .replace(
            "on: [{message: said, name: heard}]",
            "on:
      - {message: said, name: heard, save: {last: {field: text}}, do: [
          {request: {gift: {gift: 1, price: \"${message.from}\"}}, check: {code: 0}},
          {send: {like: {count: 1}}}]}
    every:
      - {time: 500ms, do: [{request: {light: {colour: 3}}, check: {code: 0}}]}",
        )
        .replace("      - stay: STAY", "      - think: 3s\n      - log: \"${saved.last}\"")
        .replace("LOST", "2s");
    let run = running(&target, &text, "--shards 2").run().exits(0);
    has(&run, &[("delivered", DUE), ("lost", 0)]);
    run.has("/total/failed", 0);
    // What is not begun when the next message comes is skipped, and counted.
    let skipped = run.figure("/messages/skipped") as u64;
    let gifts = target.counts("/chat/gifts");
    run.check(gifts <= DUE && gifts + skipped >= DUE, &format!("{gifts} + {skipped}"));
    run.check(run.row("steps", "gift")["ok"] == gifts, "each gift is answered");
    run.check(run.row("steps", "like")["ok"] == target.counts("/chat/likes"), "each is sent");
    let lights = target.counts("/chat/lights");
    run.check(lights >= 30 * 4, "every half second");
    run.check(run.row("steps", "light")["ok"] == lights, "each light is answered");
    let lines: Vec<_> = run.events("log");
    run.check(lines.iter().all(|line| line["text"].to_string().contains("from ")), "the last");
}

#[test]
fn a_killed_run_is_still_reported() {
    let target = Target::start("chat --workers 2 --lose-every 30");
    let text = ROOMS.replace("STAY", "1m").replace("LOST", "2s");
    let child = running(&target, &text, "--shards 2").start();
    child.until("five seconds to be recorded", || {
        let intervals = child.folder().join("record/intervals.ndjson");
        std::fs::read_to_string(intervals).unwrap_or_default().lines().count() >= 5
    });
    child.signal(libc::SIGKILL);
    let run = child.wait();
    let record = run.folder().join("record").display().to_string();
    let told = throng("report --json").arg(&record).run();
    has(&told, &[("expected", DUE), ("lost", DUE / 30), ("delivered", DUE - DUE / 30)]);
}
