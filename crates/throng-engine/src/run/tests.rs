//! Merging the reports of shards, and runs on real threads.

use super::*;
use crate::trace::What;
use throng_base::{Said, ShardId, StepId};
use throng_metrics::StopBy;
use throng_program::{
    Block, Coming, Connect, ConnectionOptions, Drive, Failing, Limits, Link, Load, OnError, Pause,
    Phase, Rendezvous, Scheme, Session, Statement, StepInfo, StepKind, Target, Text, Tls, Users,
    Way,
};

fn report(shard: u16, second: u64) -> Report {
    let interval = Interval { second, shards: 1, ..Interval::default() };
    Report {
        shard: ShardId(shard),
        interval,
        reached: Some((second, 0)),
        examples: Vec::new(),
        oddities: Vec::new(),
        marks: Vec::new(),
        logs: Vec::new(),
        last: false,
    }
}

fn told(merger: &mut Merger) -> Vec<(u64, u16)> {
    let told = merger.updates.drain(..);
    told.map(|update| match update {
        Update::Interval(interval) => (interval.second, interval.shards),
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn a_second_is_passed_on_when_all_shards_have_reported_it() {
    let mut merger = Merger::new(&[0], 2, Duration::ZERO, 1);
    merger.add(report(0, 0));
    assert_eq!(told(&mut merger), []);
    merger.add(report(1, 0));
    assert_eq!(told(&mut merger), [(0, 2)]);
    merger.add(report(0, 1));
    merger.add(report(0, 2));
    assert_eq!(told(&mut merger), []);
    merger.flush_all();
    assert_eq!(told(&mut merger), [(1, 1), (2, 1)]);
}

#[test]
fn a_hanging_shard_does_not_delay_the_others() {
    let mut merger = Merger::new(&[0], 2, Duration::ZERO, 1);
    merger.add(report(1, 0));
    (0..=5).for_each(|second| merger.add(report(0, second)));
    assert_eq!(told(&mut merger), [(0, 2), (1, 1)]);
    merger.add(report(1, 5));
    assert_eq!(told(&mut merger), [(2, 1), (3, 1), (4, 1), (5, 2)]);
}

#[test]
fn a_shard_that_is_over_is_not_waited_for() {
    let mut merger = Merger::new(&[0], 2, Duration::ZERO, 1);
    merger.add(Report { last: true, ..report(1, 0) });
    assert_eq!(told(&mut merger), []);
    merger.add(report(0, 0));
    assert_eq!(told(&mut merger), [(0, 2)]);
    merger.add(report(0, 1));
    assert_eq!(told(&mut merger), [(1, 1)]);
    merger.add(Report { last: true, ..report(0, 2) });
    assert_eq!(told(&mut merger), [(2, 1)]);
    assert!(merger.is_empty());
}

fn marked(shard: u16, second: u64, phase: u16, marks: &[(u16, u64, bool)]) -> Report {
    let mark = |(phase, at, begins): &(u16, u64, bool)| Mark {
        phase: *phase,
        at: Time(*at),
        begins: *begins,
    };
    let mut report = report(shard, second);
    (report.interval.phase, report.reached) = (phase, Some((report.interval.second, phase)));
    Report { marks: marks.iter().map(mark).collect(), ..report }
}

/// Phase, time, and whether it starts; `None` is an interval.
fn heard(merger: &mut Merger) -> Vec<Option<(u16, u64, bool)>> {
    let heard = merger.updates.drain(..);
    heard
        .map(|update| match update {
            Update::PhaseBegun { phase, at } => Some((phase, at.0, true)),
            Update::PhaseEnded { phase, at } => Some((phase, at.0, false)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_phase_lasts_from_its_first_start_to_its_last_end() {
    let mut merger = Merger::new(&[0], 2, Duration::ZERO, 1);
    merger.add(marked(0, 0, 0, &[(0, 7, true), (0, 50, false), (1, 50, true)]));
    assert_eq!(heard(&mut merger), []);
    merger.add(marked(1, 0, 0, &[(0, 5, true)]));
    assert_eq!(heard(&mut merger), [Some((0, 5, true)), None]);
    // The first shard is far ahead: its results are not delayed, nor is its phase.
    (0..5).for_each(|second| merger.add(marked(0, second, 1, &[])));
    assert_eq!(heard(&mut merger), [Some((1, 50, true)), None]);
    let mut last = marked(1, 4, 1, &[(0, 40, false), (1, 41, true), (1, 60, false)]);
    last.last = true;
    merger.add(last);
    let wanted = [Some((0, 50, false)), None, None, None, None];
    assert_eq!(heard(&mut merger), wanted);
    merger.add(Report { last: true, ..marked(0, 5, 1, &[(1, 55, false)]) });
    assert_eq!(heard(&mut merger), [None, Some((1, 60, false))]);
    assert!(merger.is_empty());
}

#[test]
fn a_shard_that_broke_off_hides_no_phase() {
    let mut merger = Merger::new(&[0], 2, Duration::ZERO, 1);
    merger.add(Report { last: true, ..marked(0, 0, 0, &[(0, 1, true), (0, 9, false)]) });
    assert_eq!(heard(&mut merger), []);
    assert!(!merger.is_empty());
    merger.flush_all();
    assert_eq!(heard(&mut merger), [Some((0, 1, true)), None, Some((0, 9, false))]);
    assert!(merger.is_empty());
}

#[test]
fn a_run_stopped_before_its_start_has_no_phase() {
    let mut merger = Merger::new(&[0], 1, Duration::ZERO, 1);
    merger.add(Report { last: true, ..marked(0, 0, 0, &[(0, 3, false)]) });
    assert_eq!(heard(&mut merger), [None]);
    assert!(merger.is_empty());
}

const MS: Duration = Duration::from_millis(1);

/// Users of two shards that need no target.
pub(crate) fn program(steps: Block, users: u64, time: Duration) -> Arc<Program> {
    let kinds = [StepKind::Rendezvous, StepKind::Http];
    Arc::new(Program {
        name: "threads".into(),
        labels: Default::default(),
        targets: vec![Target::new(Scheme::Http, "127.0.0.1", 1)],
        steps: kinds.map(|kind| StepInfo::new(kind.word(), kind)).to_vec(),
        sessions: vec![Session {
            name: "s".into(),
            weight: 1,
            steps,
            links: [Link::default()].into(),
            ..Session::default()
        }],
        broken: None,
        expressions: None,
        protocols: Vec::new(),
        schema: None,
        deliveries: Vec::new(),
        setup: None,
        teardown: None,
        setup_values: Default::default(),
        loads: vec![Load::alone(vec![Phase {
            name: "p".into(),
            drive: Drive::Users(Users { to: users, coming: Coming::AtOnce }),
            time: Some(time),
            churn: None,
            measured: true,
        }])],
        graceful_stop: Duration::from_secs(1),
        precision: Duration::ZERO,
        thresholds: Vec::new(),
        abort_when: Vec::new(),
        hold_when: Vec::new(),
        events: Vec::new(),
        tls: Tls::default(),
        connection: ConnectionOptions::default(),
        limits: Limits::default(),
        data: Vec::new(),
        rendezvous: 1,
        trace: None,
        monitors: Vec::new(),
        audits: Vec::new(),
        outputs: Vec::new(),
        seed: 1,
        run_id: "r1".into(),
        users_room: 0,
        secrets: throng_base::Secrets::default(),
        changes: Vec::new(),
    })
}

fn meet(users: u64) -> Statement {
    let timeout = Duration::from_secs(30);
    Statement::Rendezvous(Arc::new(Rendezvous { step: StepId(0), place: 0, users, timeout }))
}

/// Runs it on two shards to its end.
fn updates(program: &Arc<Program>, trace: bool) -> Vec<Update> {
    // With I/O: if tokio's signals are compiled in, the first runtime creates a descriptor that all
    // others need, and it must exist before a shard has its own table.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let options = Options { shards: Some(2), trace, ..Options::default() };
    let mut run = start(program, &options).unwrap();
    assert_eq!(run.shards, 2);
    let mut updates = Vec::new();
    runtime.block_on(async {
        while let Some(update) = run.next().await {
            updates.push(update);
        }
    });
    assert!(run.join(), "no shard has panicked");
    updates
}

#[test]
fn users_on_two_threads_meet() {
    let low = Duration::ZERO;
    let come = Statement::Think(Pause::Uniform { low, high: 100 * MS });
    let words = Statement::Log(Arc::new(Text::literal("now")));
    let program = program(vec![come, meet(20), words], 20, Duration::from_secs(1));
    let updates = updates(&program, true);
    let mut sum = Interval::default();
    let mut at = Vec::new();
    for update in &updates {
        match update {
            Update::Interval(interval) => sum.merge_later(interval),
            Update::Trace(Trace { at: moment, what: What::Log(_), .. }) => at.push(*moment),
            _ => {}
        }
    }
    let step = sum.step(StepId(0)).expect("they met");
    assert!(step.ok >= 20 && step.ok % 20 == 0 && step.errors.is_empty(), "{step:?}");
    // All users of a group are woken for the same time; how late they are depends on this machine.
    let (first, last) = (at.iter().take(20).min(), at.iter().take(20).max());
    let apart = *last.unwrap() - *first.unwrap();
    assert!(apart < Duration::from_millis(500), "{apart:?}");
    assert!(updates.iter().any(|update| matches!(update, Update::Log(_))));
}

#[test]
fn a_run_reports_once_why_it_was_stopped() {
    let stop = |reason: &str| Statement::Stop(Arc::new(Text::literal(reason)));
    let ways = ["one", "two"]
        .map(|reason| Way { weight: 1, steps: vec![stop(&Said::of_others(reason).english())] });
    let program = program(vec![Statement::Choose(ways.into())], 10, Duration::from_secs(3600));
    let updates = updates(&program, false);
    let stopped: Vec<&Stopped> = updates
        .iter()
        .filter_map(|update| match update {
            Update::Stopped(stopped) => Some(stopped),
            _ => None,
        })
        .collect();
    assert_eq!((stopped.len(), stopped[0].by), (1, StopBy::Rule));
}

#[test]
fn a_closed_target_stops_the_run_with_its_cause() {
    let failing = Failing { retry: None, then: OnError::Stop };
    let mut request = crate::world::get(Duration::from_secs(1), Vec::new());
    if let Statement::Http(http) = &mut request {
        let http = Arc::make_mut(http);
        (http.step, http.failing) = (StepId(1), failing);
    }
    // No process listens on port 1.
    let code = vec![request];
    let updates = updates(&program(code, 10, Duration::from_secs(3600)), false);
    let reason = updates.iter().find_map(|update| match update {
        Update::Stopped(stopped) => Some(stopped.reason.english()),
        _ => None,
    });
    let reason = reason.expect("it was stopped");
    assert!(reason.starts_with("step `http` failed: the target refused"), "{reason}");
}

pub(crate) fn connect() -> Connect {
    Connect {
        step: StepId(1),
        link: 0,
        path: Text::literal("/"),
        headers: Vec::new(),
        cookies: Vec::new(),
        request: None,
        protocols: Vec::new(),
        options: None,
        timeout: Duration::from_secs(10),
        failing: Failing { retry: None, then: OnError::Stop },
        reconnect: None,
    }
}

#[test]
fn shards_share_addresses_and_use_all_their_ports() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let open = Statement::Connect(Arc::new(connect()));
    let low = Duration::from_secs(20);
    let think = Statement::Think(Pause::Uniform { low, high: low });
    let mut program = program(vec![open, think], 6, Duration::from_millis(300));
    let inner = Arc::get_mut(&mut program).unwrap();
    (inner.targets[0].scheme, inner.targets[0].port) = (Scheme::Tcp, port);
    inner.graceful_stop = Duration::ZERO;
    let (first, last) = ([127, 9, 3, 1].into(), [127, 9, 3, 2].into());
    inner.connection.sources = throng_program::Sources {
        blocks: vec![throng_program::SourceBlock::Range { first, last }],
        ports: Some((50_101, 50_103)),
        transparent: false,
    };
    let mut sum = Interval::default();
    for update in updates(&program, false) {
        match update {
            Update::Interval(interval) => sum.merge_later(&interval),
            Update::Stopped(stopped) => panic!("{stopped:?}"),
            _ => {}
        }
    }
    listener.set_nonblocking(true).unwrap();
    let mut from: Vec<SocketAddr> =
        std::iter::from_fn(|| listener.accept().ok()).map(|(_, from)| from).collect();
    from.sort_unstable();
    let all = [1, 2].iter().flat_map(|host| {
        (50_101..=50_103).map(|port| SocketAddr::from(([127, 9, 3, *host], port)))
    });
    assert_eq!(from, all.collect::<Vec<_>>());
    let stage = sum.connections.stages.iter().find(|stage| stage.stage == Stage::Connect).unwrap();
    assert_eq!((stage.began, stage.ok, stage.failed), (6, 6, 0));
}
