//! The ledger of a run on several machines: what is sent on one is expected on the others, and is
//! what the target knows it did.

use crate::machines::fleet::{Fleet, lost};
use crate::machines::processes::{children, kill};
use crate::protocols::chat::running;
use crate::run::Run;
use crate::servers::Target;

/// Thirty users in three rooms, of whom each process has some of each room. All are there when the
/// first of them says something, and until what was said last is settled.
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
      - think: 4s
    steps:
      - repeat: 6
        steps:
          - request: {say: {id: "${random.u64()}", sent_ns: "${now.ns()}", text: "from ${user.id}"}}
            check: {code: 0}
          - think: 100ms
      - stay: 6s
deliveries:
  talk:
    sent: say
    received: said
    match: id
    stamp: sent_ns
    audience: {same: "${user.id % 3}"}
    late_after: 2s
    lost_after: 3s
load: [{iterations: 30, users: 30}]
"#;
const DUE: u64 = 1800;

fn target() -> Target {
    Target::start("chat --workers 3 --lose-every 50 --twice-every 37")
}

/// The ledger says what the target knows.
#[track_caller]
fn agree(run: &Run, target: &Target) {
    let row = run.row("deliveries", "talk");
    let lost = target.counts("/deliveries/lost");
    let wanted = [
        ("sent", 180),
        ("expected", DUE),
        ("delivered", DUE - lost),
        ("lost", lost),
        ("twice", target.counts("/deliveries/twice")),
        ("excused", 0),
        ("unwatched", 0),
        ("stray", 0),
        ("foreign", 0),
        ("out_of_order", 0),
    ];
    for (figure, wanted) in wanted {
        run.check(row[figure] == wanted, &format!("{figure} is {} of {wanted}", row[figure]));
    }
    run.check(lost > 0 && target.counts("/deliveries/twice") > 0, "the target has done no wrong");
    run.check(row["latency"]["count"] == DUE - lost, "each has its latency");
}

/// However many processes there are, they have one ledger.
#[track_caller]
fn have_one_ledger(processes: u8) {
    let target = target();
    let line = format!("--shards 2 --processes {processes}");
    let run = running(&target, ROOMS, &line).run().exits(0);
    agree(&run, &target);
}

#[test]
fn one_process_has_a_ledger() {
    have_one_ledger(1);
}

#[test]
fn two_processes_have_one_ledger() {
    have_one_ledger(2);
}

#[test]
fn five_processes_have_one_ledger() {
    have_one_ledger(5);
}

#[test]
fn the_agents_of_a_fleet_have_one_ledger() {
    let fleet = Fleet::start(&["a", "b", "c"]);
    let target = target();
    let keys = format!("--fleet={}", fleet.keys.display());
    let run = running(&target, ROOMS, "--shards 2").arg(keys).run().exits(0);
    agree(&run, &target);
}

/// What a process has not announced when it is killed may come to users of another. Nothing of it
/// is said to be wrong, and what the others count is so.
#[test]
fn a_killed_process_makes_no_delivery_wrong() {
    let target = Target::start("chat --workers 3");
    let child = running(&target, ROOMS, "--shards 1 --processes 3").start();
    child.until("they talk", || target.counts("/deliveries/written") > 300);
    kill(children(child.id())[1]);
    let run = child.wait().exits(5);
    let row = run.row("deliveries", "talk");
    for figure in ["lost", "twice", "stray", "foreign", "out_of_order", "late"] {
        run.check(row[figure] == 0, &format!("{figure} is {}", row[figure]));
    }
    let ended = |figure: &str| row[figure].as_u64().unwrap_or(0);
    run.check(ended("delivered") > 300, "what comes is counted");
    run.check(ended("expected") == ended("delivered") + ended("excused"), "it adds up");
    run.check(lost(&run), "the result is invalid");
}

#[test]
fn separately_run_parts_have_no_ledger() {
    let target = target();
    let run = running(&target, ROOMS, "--part 1/3").run().exits(2);
    run.says(&["`deliveries` does not work across parts that run separately", "nothing was sent"]);
}
