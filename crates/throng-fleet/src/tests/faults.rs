//! Fleets under faults.

use throng_bus::Bus as _;

use super::*;
use crate::wire::{Desired, SignedStart, Start, from_json, names, to_json};

fn bad_bus() -> Faults {
    let delay_max = Duration::from_millis(30);
    Faults { lost: 100_000, doubled: 50_000, unanswered: 100_000, delay_max }
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

/// Another controller continues the run of one that is gone.
async fn resumed(world: &mut World) -> TestController {
    let mut controller = world.controller();
    controller.hears("commands").await;
    controller.says(Input::Resume { run: "r1".into() });
    // The first may have died before any of its orders arrived.
    let Output::Resumed { desired, .. } = controller.hears("resumed").await else { panic!() };
    if desired.start.is_none() {
        let unix_ns = UNIX_NS + world.ticking.now().as_nanos() + 3_000_000_000;
        controller.says(Input::Start { unix_ns });
    }
    controller
}

#[test]
fn no_line_is_lost_whatever_dies_or_is_disconnected() {
    for seed in 0..20 {
        story(move || async move {
            let mut random = Random::new(seed);
            let agents = 2 + random.below(6) as usize;
            let mut world = World::new(seed, bad_bus(), agents);
            let mut controller = begun(&mut world).await;
            for _ in 0..6 {
                seconds(random.below(15)).await;
                let agent = random.below(agents as u64) as usize;
                let name = world.agents[agent].0.clone();
                match random.below(4) {
                    0 => {
                        world.kill(agent);
                        seconds(random.below(8)).await;
                        world.revive(agent);
                    }
                    1 => {
                        world.bus.cut(&name, true);
                        seconds(random.below(60)).await;
                        world.bus.cut(&name, false);
                    }
                    2 => {
                        controller.work.abort();
                        seconds(random.below(20)).await;
                        controller = resumed(&mut world).await;
                    }
                    _ => {
                        world.bus.set_log_max(world.bus.log(">").len() + 3);
                        seconds(random.below(20)).await;
                        world.bus.set_log_max(usize::MAX);
                    }
                }
            }
            controller.stop();
            controller.hears("complete").await;
            assert_eq!(controller.lines, world.truth(), "seed {seed}");
            controller.closes().await;
        });
    }
}

#[test]
fn a_standby_takes_over_within_ten_seconds_with_all_lines() {
    story(|| async {
        let mut world = World::new(4, Faults::default(), 3);
        let first = begun(&mut world).await;
        let mut standby = world.controller();
        seconds(30).await;
        first.work.abort();
        let dead = world.ticking.now();
        standby.hears("commands").await;
        standby.says(Input::Resume { run: "r1".into() });
        standby.hears("resumed").await;
        assert!(world.ticking.now() - dead < Duration::from_secs(10));
        // Nothing has stopped, and orders continue.
        seconds(20).await;
        standby.stop();
        standby.hears("complete").await;
        assert_eq!(standby.lines, world.truth());
        assert!(standby.lines.values().all(|lines| lines.len() > 45));
    });
}

#[test]
fn one_controller_commands_until_it_is_gone() {
    story(|| async {
        let mut world = World::new(5, Faults::default(), 1);
        let mut first = begun(&mut world).await;
        let mut second = world.controller();
        let waits = timeout(Duration::from_secs(60), second.hears("commands")).await;
        assert!(waits.is_err(), "two command");
        // The first is disconnected so long that the second takes over, and comes back.
        world.bus.cut("c1", true);
        second.hears("commands").await;
        second.says(Input::Resume { run: "r1".into() });
        second.hears("resumed").await;
        world.bus.cut("c1", false);
        first.hears("deposed").await;
        second.stop();
        second.hears("complete").await;
        assert_eq!(second.lines, world.truth());
    });
}

#[test]
fn a_disconnected_agent_ends_its_load_before_it_is_declared_lost() {
    story(|| async {
        let mut world = World::new(6, Faults::default(), 2);
        let mut controller = begun(&mut world).await;
        seconds(10).await;
        world.bus.cut("a001", true);
        controller.hears("lost").await;
        let lines = world.truth().remove(&1).unwrap();
        assert_eq!(lines.last().unwrap(), "over", "it goes on");
        world.bus.cut("a001", false);
        controller.hears("back").await;
        match controller.hears("ended").await {
            Output::Ended { agent: 1, end } => assert!(end.cut_short.is_some(), "{end:?}"),
            other => panic!("{other:?}"),
        }
        controller.stop();
        controller.hears("complete").await;
        assert_eq!(controller.lines, world.truth());
    });
}

#[test]
fn without_a_controller_the_load_ends_gracefully_and_is_available_later() {
    story(|| async {
        let mut world = World::new(7, Faults::default(), 2);
        let controller = begun(&mut world).await;
        seconds(10).await;
        controller.work.abort();
        seconds(1_200).await;
        let truth = world.truth();
        assert!(truth.values().all(|lines| lines.last().unwrap() == "over"), "it goes on");
        assert!(truth.values().all(|lines| (590..640).contains(&lines.len())), "{truth:?}");
        let mut late = world.controller();
        late.hears("commands").await;
        late.says(Input::Resume { run: "r1".into() });
        late.hears("complete").await;
        assert_eq!(late.lines, truth);
    });
}

#[test]
fn lines_of_an_agent_that_never_returns_are_named() {
    story(|| async {
        let mut world = World::new(8, Faults::default(), 2);
        let mut controller = begun(&mut world).await;
        seconds(10).await;
        world.kill(1);
        controller.hears("lost").await;
        controller.stop();
        controller.hears("ended").await;
        controller.says(Input::GiveUp { agent: 1 });
        let missing = match controller.hears("given up").await {
            Output::GivenUp(missing) => missing,
            other => panic!("{other:?}"),
        };
        let Missing { agent: 1, lines, open_from: Some(from) } = &missing else {
            panic!("{missing:?}");
        };
        let come = controller.lines[&1].len() as u64;
        assert!(lines.is_empty() && *from == come && come > 8, "{missing:?}");
    });
}

/// An agent's reason for refusing a plan.
async fn refusal(world: &mut World, change: impl FnOnce(&mut Plan, &mut Signed)) -> String {
    let mut controller = world.controller();
    controller.hears("commands").await;
    let agents = controller.gathers(world.agents.len()).await;
    let (mut plan, mut signed) = world.plan(&agents);
    change(&mut plan, &mut signed);
    controller.says(Input::Begin { plan, signed });
    match controller.hears("ended").await {
        Output::Ended { end, .. } if end.refused => end.cut_short.expect("a reason").english(),
        other => panic!("{other:?}"),
    }
}

fn signed_anew(plan: &Plan, signed: &mut Signed) {
    signed.plan = serde_json::to_string(plan).unwrap();
    signed.signature = sign(&signed.plan);
}

#[test]
fn a_refused_plan_is_reported_and_nothing_is_sent() {
    type Change = fn(&mut Plan, &mut Signed);
    let cases: [(Change, &str); 4] = [
        (|_, signed| signed.signature = "stolen".into(), "is not signed by the operator"),
        (
            |plan, signed| {
                plan.version = "2".into();
                signed_anew(plan, signed);
            },
            "it runs throng 1, but the run requires throng 2",
        ),
        (
            |plan, signed| {
                plan.valid_until_ms = plan.valid_from_ms + 1;
                signed_anew(plan, signed);
            },
            "it may have been replayed",
        ),
        (
            |plan, signed| {
                plan.files.push(crate::wire::FileRef {
                    path: "users.csv".into(),
                    sha256: "00".into(),
                    bytes: 1,
                });
                signed_anew(plan, signed);
            },
            "the file `users.csv` of the run is not on the bus",
        ),
    ];
    for (change, says) in cases {
        story(move || async move {
            let mut world = World::new(9, Faults::default(), 1);
            let why = refusal(&mut world, change).await;
            assert!(why.contains(says), "{why}");
            assert!(world.truth().is_empty(), "a child was started");
        });
    }
}

/// A sender with access to the bus, but without the operator's key.
#[test]
fn an_order_without_the_operators_signature_is_ignored() {
    story(|| async {
        let mut world = World::new(13, Faults::default(), 2);
        let mut controller = begun(&mut world).await;
        seconds(5).await;
        controller.says(Input::Order { at_ns: 0, except: None, order: Raw::new(&"pause") });
        seconds(2).await;
        let (bus, key) = (world.bus.join("c9"), names::desired("r1"));
        let entry = bus.read(&key).await.unwrap().expect("what has to be");
        let mut desired: Desired = from_json(&entry.value).expect("JSON");
        // A signature for another position, and none.
        let mut again = desired.orders[0].clone();
        for order in ["abort", "more"] {
            again.order = Raw::new(&order);
            desired.orders.push(again.clone());
            again.signature.clear();
        }
        bus.write(&key, entry.revision, to_json(&desired).into()).await.unwrap();
        seconds(3).await;
        controller.stop();
        controller.hears("complete").await;
        for lines in world.truth().values() {
            let orders: Vec<&String> = lines.iter().filter(|it| it.starts_with("order")).collect();
            assert_eq!(orders, ["order \"pause\""]);
        }
    });
}

#[test]
fn the_owners_limit_applies_and_a_wrong_clock_is_reported() {
    type Change = fn(&mut Registered);
    let hour = 3_600_000_000_000;
    let cases: [(Change, i64, &str); 4] = [
        (|own| own.ceiling.users = Some(999), 0, "1000 users, but its owner allows only 999"),
        (
            |own| own.ceiling.rate = Some(9.0),
            0,
            "the run sets no maximum rate, but its owner allows only 9",
        ),
        (|_| {}, 3 * hour, "its clock differs from the controller's by 10800 s"),
        (|_| {}, -3 * hour, "its clock differs from the controller's by 10800 s"),
    ];
    for (change, skew_ns, says) in cases {
        story(move || async move {
            let mut world = World::new(10, Faults::default(), 0);
            let disk = Disk::default();
            let mut registered = world.registered(1);
            change(&mut registered);
            let work = world.agent_as("a0", &disk, registered, skew_ns);
            world.agents.push(("a0".into(), disk, work));
            let why = refusal(&mut world, |_, _| {}).await;
            assert!(why.contains(says), "{why}");
            assert!(world.truth().is_empty(), "a child was started");
        });
    }
}

#[test]
fn of_two_agents_with_the_same_name_the_older_leaves() {
    story(|| async {
        let mut world = World::new(11, Faults::default(), 1);
        let mut controller = world.controller();
        controller.gathers(1).await;
        let disk = Disk::default();
        let younger = world.agent("a000", &disk);
        let older = &mut world.agents[0].2;
        let why = timeout(Duration::from_secs(30), older).await.expect("it stays").unwrap();
        let why = why.unwrap_err();
        assert!(why.english().contains("another process has joined as agent `a000`"), "{why:?}");
        seconds(30).await;
        assert!(!younger.is_finished());
    });
}

#[test]
fn the_lines_of_sixty_agents_arrive_once() {
    story(|| async {
        let mut world = World::new(12, bad_bus(), 60);
        let mut controller = begun(&mut world).await;
        seconds(60).await;
        controller.stop();
        controller.hears("complete").await;
        assert_eq!(controller.lines, world.truth());
    });
}

#[test]
fn an_attacker_on_the_bus_starts_nothing() {
    story(|| async {
        let mut world = World::new(3, Faults::default(), 2);
        let mut controller = world.controller();
        controller.hears("commands").await;
        let agents = controller.gathers(2).await;
        let (plan, signed) = world.plan(&agents);
        controller.says(Input::Begin { plan, signed });
        controller.ready(2).await;
        // There is no start order yet, and the plan is signed.
        let (thief, key) = (world.bus.join("thief"), names::desired("r1"));
        let unix_ns = UNIX_NS + world.ticking.now().as_nanos() + 1_000_000_000;
        for run in ["r1", "r2"] {
            let entry = thief.read(&key).await.expect("the bus").expect("what has to be");
            let mut desired: Desired = from_json(&entry.value).expect("JSON");
            let mut begins = SignedStart { start: Start { unix_ns }, signature: String::new() };
            if run == "r2" {
                // The start order of another run.
                begins.signature = sign(&begins.signed_text(run));
            }
            desired.start = Some(begins);
            thief.write(&key, entry.revision, to_json(&desired).into()).await.expect("a write");
            seconds(20).await;
        }
        assert!(world.starts().is_empty(), "{:?}", world.starts());
    });
}
