//! Shards in simulated time: which users get work, when phases end, what is recorded.

use std::cell::Cell;
use std::sync::Arc;

use throng_base::{Random, Share, StepId};
use throng_metrics::{Gauges, Interval};
use throng_program::{
    Coming, ConnectionOptions, Drive, Failing, Iterations, Limits, Link, Load, Phase, Program,
    Scheme, Session, Statement, StepInfo, StepKind, Target, Text, Tls, Users,
};
use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::control::Control;
use crate::network::Connector;
use crate::prepared::Prepared;
use crate::rendezvous::Places;
use crate::shard::alarm::Alarm;
use crate::shard::budget::Budget;
use crate::shard::{Mark, Parts};
use crate::world::{Deed, Hand, World};

mod dropped;
mod growth;
mod loads;
mod machines;

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

fn users(to: u64, time: Duration) -> Phase {
    let drive = Drive::Users(Users { to, coming: Coming::AtOnce });
    Phase { name: "users".into(), drive, time: Some(time), churn: None, measured: true }
}

fn iterations(users: u64, rate: Option<f64>, total: Option<u64>) -> Phase {
    let drive = Drive::Iterations(Iterations::new(users, rate, total));
    Phase { name: "iterations".into(), drive, time: None, churn: None, measured: true }
}

/// One request per iteration.
fn program(phases: Vec<Phase>) -> Program {
    let session = Session {
        name: "s".into(),
        weight: 1,
        steps: vec![crate::world::get(S, Vec::new())],
        links: [Link::default()].into(),
        ..Session::default()
    };
    Program {
        name: "shards".into(),
        labels: Default::default(),
        targets: vec![Target::new(Scheme::Http, "127.0.0.1", 1)],
        steps: vec![StepInfo::new("get", StepKind::Http)],
        sessions: vec![session],
        broken: None,
        expressions: None,
        protocols: Vec::new(),
        schema: None,
        deliveries: Vec::new(),
        setup: None,
        teardown: None,
        setup_values: Default::default(),
        loads: vec![Load::alone(phases)],
        graceful_stop: 5 * S,
        precision: Duration::ZERO,
        thresholds: Vec::new(),
        abort_when: Vec::new(),
        hold_when: Vec::new(),
        events: Vec::new(),
        tls: Tls::default(),
        connection: ConnectionOptions::default(),
        limits: Limits::default(),
        data: Vec::new(),
        rendezvous: 0,
        trace: None,
        monitors: Vec::new(),
        audits: Vec::new(),
        outputs: Vec::new(),
        seed: 1,
        run_id: "r1".into(),
        users_room: 0,
        secrets: throng_base::Secrets::default(),
        changes: Vec::new(),
    }
}

/// The results of a shard.
#[derive(Default)]
struct Outcome {
    marks: Vec<Mark>,
    intervals: Vec<Interval>,
    sum: Interval,
    /// Turns of the driver, per probe.
    probes: u64,
    /// How often the driver's timer expired, and how often it was set to a time in the past.
    rung: u64,
    set_in_the_past: u64,
    /// When all was over.
    end: Time,
}

impl Outcome {
    fn ended(&self, phase: u16) -> Time {
        let found = self.marks.iter().find(|mark| mark.phase == phase && !mark.begins);
        found.expect("the phase ended").at
    }
}

/// Runs one shard against a server that answers after `delay`.
fn run(phases: Vec<Phase>, share: Share, delay: Duration, stop_at: Option<Time>) -> Outcome {
    let stop = |control: &Control, _| control.stop();
    let words: Option<Word> = stop_at.map(|time| (time, stop as fn(&Control, Time)));
    run_told(program(phases), share, delay, words.as_slice())
}

/// Calls on the control of a run, and when.
type Word = (Time, fn(&Control, Time));

fn run_told(program: Program, share: Share, delay: Duration, words: &[Word]) -> Outcome {
    run_in(&Hand::new(), program, share, delay, words)
}

fn run_in(
    hand: &Rc<Hand>,
    program: Program,
    share: Share,
    delay: Duration,
    words: &[Word],
) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap();
    let control = Control::default();
    for (time, word) in words.iter().copied() {
        let control = control.clone();
        hand.at(time, move || word(&control, time));
    }
    let server = Box::new(move |asked: &mut Vec<u8>, _: &mut Random| {
        let mut deeds = Vec::new();
        while let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") {
            asked.drain(..end + 4);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            deeds.push((delay, Deed::Say(answer.to_vec())));
        }
        deeds
    });
    let world = Rc::new(World::new(Rc::clone(hand), 1, server));
    let (reports, mut received) = unbounded_channel();
    let addresses = [vec!["127.0.0.1:1".parse().unwrap()]];
    runtime.block_on(async {
        let parts = Parts {
            share,
            ledgers: Vec::new(),
            presence: None,
            budget: Budget::new(None, 1),
            prepared: Prepared::new(Arc::new(program), &addresses).into(),
            lookups: None,
            control,
            places: Places::default(),
            tracer: None,
            gate: None,
            keep: None,
            give_back: None,
        };
        let connector = Connector::World(Rc::clone(&world));
        let alarm = Alarm::simulated(Rc::clone(hand));
        let shard = Shard::new(parts, hand.clock.clone(), Vec::new(), connector, alarm);
        let done = Rc::new(Cell::new(false));
        let driven = Rc::clone(&done);
        tokio::task::spawn_local(async move {
            drive(shard, reports).await;
            driven.set(true);
        });
        hand.run(&done).await;
    });
    drop(runtime);
    let mut outcome = Outcome {
        rung: hand.rung.get(),
        set_in_the_past: hand.set_in_the_past.get(),
        end: hand.clock.now(),
        ..Outcome::default()
    };
    let mut last = Vec::new();
    while let Ok(report) = received.try_recv() {
        outcome.marks.extend(report.marks);
        outcome.probes += report.interval.generator.lateness.count();
        outcome.sum.merge_later(&report.interval);
        outcome.intervals.push(report.interval);
        last.push(report.last);
    }
    assert_eq!(last.iter().position(|last| *last), Some(last.len() - 1), "the last word is last");
    assert_eq!(outcome.sum.gauges, Gauges::default());
    outcome
}

#[test]
fn a_counted_phase_ends_on_shards_without_users() {
    for rate in [None, Some(20.0)] {
        let done: Vec<u64> = (0..2)
            .map(|index| {
                let phases = vec![users(4, S), iterations(1, rate, Some(10))];
                let outcome = run(phases, Share::WHOLE.thread(index, 2), 10 * MS, None);
                let free = run(vec![users(4, S)], Share::WHOLE.thread(index, 2), 10 * MS, None);
                assert!(outcome.end < Time::from_secs(3), "{}", outcome.end);
                let done = outcome.sum.population.iterations_finished;
                done - free.sum.population.iterations_finished
            })
            .collect();
        // Users in the middle of an iteration finish it before they leave.
        assert!((10..=12).contains(&done[0]) && done[1] <= 2, "{done:?}");
    }
}

#[test]
fn a_user_that_is_told_to_leave_gets_no_iteration() {
    // All wait for work when most of them have to leave; later phases count again.
    let phases = vec![
        iterations(50, Some(1000.0), Some(20)),
        users(3, S),
        iterations(40, Some(1000.0), Some(10)),
        iterations(2, None, Some(20)),
        iterations(30, None, Some(7)),
    ];
    let outcome = run(phases, Share::WHOLE, MS, None);
    let population = &outcome.sum.population;
    assert_eq!(population.iterations_started, population.iterations_finished);
    assert_eq!((population.interrupted, population.unmet), (0, 0));
    assert!(outcome.end < Time::from_secs(2), "{}", outcome.end);
}

#[test]
fn only_scheduled_starts_can_be_delayed() {
    let free = run(vec![iterations(2, None, Some(100))], Share::WHOLE, 10 * MS, None);
    assert_eq!(free.sum.population.waited, 0);
    let paced = run(vec![iterations(2, Some(1000.0), Some(100))], Share::WHOLE, 10 * MS, None);
    assert!(paced.sum.population.waited > 50, "{:?}", paced.sum.population);
}

#[test]
fn a_paced_run_lasts_as_long_as_its_rate_requires() {
    let outcome = run(vec![iterations(5, Some(20.0), Some(20))], Share::WHOLE, MS, None);
    assert_eq!(outcome.sum.total().ok, 20);
    assert_eq!(outcome.ended(0), Time::from_secs(1));
    // A target that is too slow makes it longer.
    let outcome = run(vec![iterations(1, Some(20.0), Some(20))], Share::WHOLE, 100 * MS, None);
    assert!(outcome.ended(0) > Time::from_secs(2));
}

#[test]
fn idle_users_take_turns() {
    let outcome = run(vec![iterations(50, Some(500.0), Some(500))], Share::WHOLE, MS, None);
    assert_eq!(outcome.sum.connections.counts.opened, 50);
    assert_eq!(outcome.sum.total().ok, 500);
}

#[test]
fn a_quiet_shard_sleeps_and_still_notices_a_stop() {
    let hold = Phase {
        name: "h".into(),
        drive: Drive::Hold,
        time: Some(60 * S),
        churn: None,
        measured: true,
    };
    let stop = Time::from_secs(20) + 3 * MS;
    let quiet = run(vec![hold], Share::WHOLE, MS, Some(stop));
    assert!(quiet.end - stop <= PROBE_QUIET, "{}", quiet.end);
    assert!((190..250).contains(&quiet.probes), "{}", quiet.probes);
    let busy = run(vec![users(1, 2 * S)], Share::WHOLE, 5 * MS, None);
    assert!(busy.probes > 190, "{}", busy.probes);
}

#[test]
fn only_one_group_of_many_shards_is_active_at_a_time() {
    let turns: Vec<Duration> = (0..4096).map(turn_of).collect();
    assert!(turns[..16].iter().all(|turn| turn.is_zero()), "few shards are on time");
    assert!(turns.iter().all(|turn| *turn < 100 * MS));
    for turn in &turns[..1024] {
        assert_eq!(turns[..1024].iter().filter(|other| *other == turn).count(), 16, "{turn:?}");
    }
}

#[test]
fn one_of_many_shards_reports_and_stops_like_any_other() {
    let share = Share::WHOLE.thread(1000, 4096);
    let hold = Phase { drive: Drive::Hold, ..users(1, 60 * S) };
    let stop = Time::from_secs(20) + 3 * MS;
    let quiet = run(vec![hold], share, MS, Some(stop));
    assert!(quiet.end - stop <= PROBE_MAX, "{}", quiet.end);
    assert!((5 * 20..7 * 20).contains(&quiet.probes), "{}", quiet.probes);
    // Every second is reported once for each of its phases, in order.
    let phases = vec![users(4096, 1500 * MS), users(8192, 2 * S)];
    let busy = run(phases, share, 5 * MS, None);
    let told: Vec<(u64, u16)> =
        busy.intervals.iter().map(|interval| (interval.second, interval.phase)).collect();
    assert_eq!(told[..5], [(0, 0), (1, 0), (1, 1), (2, 1), (3, 1)], "{told:?}");
    assert!(told.is_sorted() && busy.sum.total().ok > 100);
}

#[test]
fn overdue_starts_without_a_free_user_cause_no_wake_ups() {
    let overloaded = |rate: f64, seconds: u32| {
        let phase = Phase { time: Some(S * seconds), ..iterations(20, Some(rate), None) };
        let outcome = run(vec![phase], Share::WHOLE, 20 * MS, None);
        // Users continue with the oldest start that is due: none is left idle meanwhile.
        let done = outcome.sum.population.iterations_finished;
        assert!(done >= u64::from(seconds) * 940, "{:?}", outcome.sum.population);
        assert!(outcome.sum.population.unmet > 0);
        assert_eq!(outcome.set_in_the_past, 0);
        outcome.rung
    };
    let (short, long, steep) =
        (overloaded(2000.0, 2), overloaded(2000.0, 4), overloaded(50_000.0, 2));
    // The driver wakes for its probes, a hundred a second, and for users that waited at the start.
    assert!(short < 300 && steep < 300 && long < 600, "{short} {long} {steep}");
}

#[test]
fn no_timer_is_armed_for_a_time_that_has_passed() {
    // The last user that leaves makes the driver check immediately whether the phase is done.
    let leave = run(vec![iterations(3, None, Some(30)), users(0, S)], Share::WHOLE, MS, None);
    let paced = run(vec![iterations(4, Some(1000.0), Some(50))], Share::WHOLE, 10 * MS, None);
    assert_eq!((leave.set_in_the_past, paced.set_in_the_past), (0, 0));
    assert_eq!((leave.sum.total().ok, paced.sum.total().ok), (30, 50));
}

#[test]
fn a_suspended_shard_records_lost_time() {
    let program = || program(vec![users(3, 12 * S)]);
    let moving = run_in(&Hand::new(), program(), Share::WHOLE, 5 * MS, &[]);
    assert_eq!((moving.sum.generator.lost_ns, moving.sum.generator.lost_max_ns), (0, 0));
    // As with SIGSTOP: nothing happens, and then it is five seconds later.
    let hand = Hand::new();
    let clock = hand.clock.clone();
    hand.at(Time::from_secs(3), move || clock.set(Time::from_secs(8)));
    let stopped = run_in(&hand, program(), Share::WHOLE, 5 * MS, &[]);
    let lost = Duration::from_nanos(stopped.sum.generator.lost_ns);
    assert!(lost > 5 * S - 2 * PROBE && lost <= 5 * S, "{lost:?}");
    assert_eq!(stopped.sum.generator.lost_max_ns, stopped.sum.generator.lost_ns);
    // It is one late turn among a thousand, which no percentile of the lateness shows.
    assert!(stopped.sum.generator.lateness.value_at(0.99) < 10_000_000);
}
