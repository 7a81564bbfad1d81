//! Tests sums, durations, gauges, verdicts and exit codes.

use throng_base::{Exit, Said};
use throng_metrics::{Connections, Percentile, Population, StepKind, Subject};

use throng_base::StepId;

use super::*;
use crate::directory::{MachineInfo, PhaseInfo, TablesInfo, ThresholdInfo, TimeInfo};
use crate::event::{Event, StopBy};
use crate::summary::{InvalidReason, Validity};
use crate::terminal::Style;
use crate::tests::sample::{self, summary_of};
use crate::verdict::{self, exit_code};
use throng_metrics::{Comparison, Interval, Measure, Threshold};

#[test]
fn only_measured_phases_are_summed() {
    let summary = sample::summary();
    assert_eq!(summary.measured, Duration::from_secs(10));
    assert_eq!((summary.steps.total.count, summary.steps.total.ok), (101_000, 100_900));
    assert!((summary.steps.total.ok_per_s - 10_090.0).abs() < 1e-6);
    assert_eq!(summary.parts.phases[0].count, 20_200);
    assert_eq!(summary.steps.total.codes, [(200, 99_900), (503, 80)]);
    assert_eq!(summary.generator.sustained_per_s, 10_090);
    assert_eq!(summary.generator.seconds, 10);
    assert_eq!(exit_code(&summary), Exit::Success);
    assert_eq!(summary.info.end.outcome.as_ref().unwrap().exit_code, 0);
}

/// Each interval in two parts, as if from two shards or machines.
fn in_parts(intervals: &[Interval]) -> Vec<Interval> {
    let part = |interval: &Interval, is_first: bool| {
        let mut part = interval.clone();
        part.steps.retain(|step| (step.step == 0) == is_first);
        if is_first {
            return part;
        }
        (part.connections.stages, part.connections.counts) = (Vec::new(), Connections::default());
        part.population = Population::default();
        part.generator.lateness = Histogram::new();
        (part.traffic.bytes_in, part.traffic.bytes_out, part.generator.resources) = (0, 0, None);
        part
    };
    intervals.iter().flat_map(|interval| [part(interval, true), part(interval, false)]).collect()
}

#[test]
fn lines_of_the_same_second_are_added() {
    let whole = sample::summary();
    let mut parts = in_parts(&sample::intervals());
    let compare = |parts: &[Interval]| {
        let summary = summary_of(sample::info(), parts, &sample::events());
        assert_eq!(summary.steps.total, whole.steps.total);
        assert_eq!(summary.steps.rows, whole.steps.rows);
        assert_eq!(summary.users.online_max, 2 * whole.users.online_max);
        assert_eq!(summary.parts.phases[1].users_online, 128);
        assert_eq!(summary.measured, whole.measured);
        summary
    };
    let summary = compare(&parts);
    assert_eq!(summary.generator.sustained_per_s, 10_090);
    // A shard that is a second late changes nothing.
    for index in (1..parts.len() - 1).step_by(2) {
        parts.swap(index, index + 1);
    }
    compare(&parts);
}

#[test]
fn times_come_from_events_or_else_from_seconds() {
    let lasted = |events: &[Event]| {
        let summary = summary_of(sample::info(), &sample::intervals(), events);
        (summary.measured.as_secs(), summary.lasted.as_secs())
    };
    assert_eq!(lasted(&sample::events()), (10, 12));
    assert_eq!(lasted(&[]), (10, 12));
    assert_eq!(lasted(&sample::events()[..3]), (10, 12), "killed in the second phase");
    // A late shard was still in the first phase when the others had started the second.
    let mut all_measured = sample::info();
    all_measured.tables.phases[0].measured = true;
    let second = Duration::from_secs(1);
    let mut events = sample::events();
    for event in &mut events {
        if let Event::PhaseBegun { at_ns, phase: 1 } = event {
            *at_ns -= 1_500_000_000;
        }
    }
    let summary = summary_of(all_measured, &sample::intervals(), &events);
    assert_eq!(summary.measured, 12 * second);
    assert_eq!(summary.parts.phases[1].lasted, 23 * second / 2);
    let backwards = [
        Event::PhaseBegun { at_ns: u64::MAX, phase: 0 },
        Event::PhaseBegun { at_ns: u64::MAX, phase: 7 },
        Event::PhaseEnded { at_ns: 1, phase: 1 },
    ];
    assert_eq!(lasted(&backwards).0, 0);
}

/// The last line of a phase followed by another has the gauges at its end; the last line of the
/// last phase has the gauges after all users have left.
#[test]
fn a_phase_has_the_gauges_of_its_end() {
    let info = sample::info();
    let mut collector = Collector::new(&info);
    let second = 1_000_000_000;
    let begun = |phase, at_ns| Event::PhaseBegun { at_ns, phase };
    let ended = |phase, at_ns| Event::PhaseEnded { at_ns, phase };
    let border = second + second / 2;
    for event in [
        begun(0, 0),
        ended(0, border),
        begun(1, border),
        ended(1, 3 * second + second / 2),
        Event::RunEnded { at_ns: 4 * second },
    ] {
        collector.event(&event);
    }
    for (second, phase, online) in [(0, 0, 400), (1, 0, 600), (1, 1, 600), (2, 1, 600), (3, 1, 7)] {
        let mut interval = Interval { second, phase, shards: 1, ..Interval::default() };
        (interval.gauges.users_online, interval.gauges.users_present) = (online, online);
        collector.interval(&interval);
    }
    let phases = collector.finish(info).parts.phases;
    assert_eq!((phases[0].users_online, phases[0].users_present_max), (600, 600));
    assert_eq!((phases[1].users_online, phases[1].users_online_min), (600, 600));
}

#[test]
fn online_users_are_judged_before_they_leave() {
    let mut info = sample::info();
    info.tables.thresholds = [(64.0, Some(1)), (65.0, None), (1.0, Some(9))]
        .map(|(value, phase)| {
            ThresholdInfo::from(&Threshold {
                phase,
                ..Threshold::new(
                    "users.online >= 64",
                    Subject::UsersOnline,
                    Measure::Count,
                    Comparison::GreaterOrEqual,
                    value,
                )
            })
        })
        .into();
    let mut intervals = sample::intervals();
    for second in 12..40 {
        let mut leaving = Interval { second, phase: 1, ..Interval::default() };
        leaving.gauges.users_online = 40 - second;
        intervals.push(leaving);
    }
    // The end of the phase can arrive after seconds in which users leave.
    for told_after in [0, 12, 14, 16] {
        let mut collector = Collector::new(&info);
        let events = sample::events();
        for (index, interval) in intervals.iter().enumerate() {
            if index == told_after {
                events.iter().for_each(|event| collector.event(event));
            }
            collector.interval(interval);
        }
        let thresholds = collector.finish(info.clone()).verdict.thresholds;
        assert_eq!(thresholds[0].verdict, Verdict::Met(64.0), "{told_after}");
        assert_eq!(thresholds[1].verdict, Verdict::NotMet(64.0));
        assert_eq!(thresholds[2].verdict, Verdict::Unknown);
    }
}

#[test]
fn a_load_without_users_is_reported() {
    let second = 1_000_000_000;
    let phase = |planned| PhaseInfo {
        planned_ns: Some(5 * second),
        users_planned: planned,
        measured: true,
        ..PhaseInfo::default()
    };
    let deserted = |planned: Option<u64>, until: u64, count: u64| {
        let info = RunInfo {
            tables: TablesInfo { phases: vec![phase(planned)], ..sample::info().tables },
            ..sample::info()
        };
        let intervals: Vec<Interval> = (0..6)
            .map(|second| {
                let mut interval = Interval { second, shards: 1, ..Interval::default() };
                interval.gauges.users_present = if second < until { 3 } else { 0 };
                interval.steps = vec![StepInterval { count, ..StepInterval::default() }];
                interval
            })
            .collect();
        let events = [
            Event::PhaseBegun { at_ns: 0, phase: 0 },
            Event::PhaseEnded { at_ns: 5 * second, phase: 0 },
            Event::RunEnded { at_ns: 5 * second },
        ];
        summary_of(info, &intervals, &events).events.deserted_s
    };
    assert_eq!(deserted(Some(3), 1, 3), Some(2));
    assert_eq!(deserted(Some(3), 0, 3), Some(1), "none was there at the end of a second");
    assert_eq!(deserted(Some(3), 3, 3), None, "they left at the end");
    assert_eq!(deserted(Some(3), 0, 0), None, "none came");
    assert_eq!(deserted(Some(0), 1, 3), None, "none is wanted");
    assert_eq!(deserted(None, 1, 3), None, "users arrive");
}

#[test]
fn a_value_of_an_unmeasured_phase_only_is_reported() {
    let mut info = sample::info();
    info.tables.phases[0].measured = false;
    let (name, step) = (info.tables.phases[0].name.clone(), Subject::Steps(vec![StepId(0)]));
    let max = Threshold::new("max", step, Measure::Max, Comparison::Less, 1e12);
    info.tables.thresholds = vec![ThresholdInfo::from(&max)];
    let mut intervals = sample::intervals();
    intervals.retain(|interval| interval.phase == 0);
    assert!(!intervals.is_empty());
    let rows = summary_of(info.clone(), &intervals, &sample::events()).verdict.thresholds;
    assert_eq!((rows[0].verdict, rows[0].only_in.as_ref()), (Verdict::Unknown, Some(&name)));
    let nothing = summary_of(info, &[], &sample::events()).verdict.thresholds;
    assert_eq!(nothing[0].only_in, None);
}

#[test]
fn a_phase_that_never_started_fails_its_thresholds() {
    let mut info = sample::info();
    let name = "later".to_string();
    info.tables.phases.push(PhaseInfo { name, measured: true, ..PhaseInfo::default() });
    info.tables.thresholds[0].threshold.phase = Some(2);
    let summary = summary_of(info, &sample::intervals(), &sample::events());
    assert_eq!(summary.verdict.thresholds[0].verdict, Verdict::Unknown);
    assert_eq!(exit_code(&summary), Exit::ThresholdsNotMet);
    assert_eq!(summary.measured, Duration::from_secs(10));
    assert!(!summary.parts.phases[2].begun);
}

#[test]
fn the_worst_verdict_decides_the_exit_code() {
    let exit = |info: &RunInfo, change: &dyn Fn(&mut Interval)| {
        let mut intervals = sample::intervals();
        intervals.iter_mut().for_each(change);
        let summary = summary_of(info.clone(), &intervals, &sample::events());
        let told = summary.info.end.outcome.clone();
        assert!(told.is_none_or(|told| told.exit_code == exit_code(&summary).code()));
        (exit_code(&summary), summary.verdict.validity)
    };
    let good = sample::info();
    let mut strict = good.clone();
    strict.tables.thresholds[0].threshold.value = 1e6;
    let lossy = RunInfo { lines_lost: 1, ..strict.clone() };
    let fail = |cause: Cause| {
        move |interval: &mut Interval| {
            for step in &mut interval.steps {
                step.ok = 0;
                step.errors = vec![(cause, step.count)];
            }
        }
    };
    assert_eq!(exit(&good, &|_| {}).0, Exit::Success);
    assert_eq!(exit(&strict, &|_| {}).0, Exit::ThresholdsNotMet);
    assert_eq!(exit(&lossy, &|_| {}).0, Exit::ResultInvalid);
    assert_eq!(exit(&lossy, &fail(Cause::ConnectRefused)).0, Exit::TargetUnreachable);
    assert_eq!(exit(&good, &fail(Cause::Timeout)).0, Exit::ThresholdsNotMet);
    let interrupted = RunInfo { interrupted: true, ..lossy.clone() };
    assert_eq!(exit(&interrupted, &fail(Cause::ConnectRefused)).0, Exit::Interrupted);
    let killed = RunInfo { time: TimeInfo { ended: None, ..good.time.clone() }, ..good.clone() };
    assert_eq!(exit(&killed, &|_| {}).0, Exit::Interrupted);
    let (code, validity) = exit(&good, &fail(Cause::PortsExhausted));
    assert_eq!(code, Exit::ResultInvalid);
    let (failed, attempts) = (101_000, 101_000);
    let reasons = vec![InvalidReason::GeneratorErrors { failed, attempts }];
    assert_eq!(validity, Validity::Invalid { reasons });
}

#[test]
fn a_late_generator_and_too_few_users_are_reported() {
    let validity = |lateness_ns: u64, unmet: u64| {
        let mut intervals = sample::intervals();
        for interval in &mut intervals {
            interval.generator.lateness.record_times(lateness_ns, 500);
            interval.population.unmet = unmet;
        }
        let summary = summary_of(sample::info(), &intervals, &sample::events());
        match summary.verdict.validity {
            Validity::Valid => Vec::new(),
            Validity::Invalid { reasons } => reasons.iter().map(InvalidReason::word).collect(),
        }
    };
    assert_eq!(validity(50_000, 9_000), ["too-few-users"], "all users were busy");
    assert!(validity(50_000, 50).is_empty());
    assert!(validity(20_000_000, 0).is_empty());
    assert!(validity(20_000_000, 50).is_empty());
    assert_eq!(validity(20_000_000, 500), ["starts-unmet"]);
    assert_eq!(validity(200_000_000, 0), ["late"]);
    assert_eq!(validity(200_000_000, 500), ["starts-unmet", "late"]);
}

/// A run with steps of these kinds and equal counts.
fn of_kinds(kinds: &[&str], figures: &StepInterval) -> Summary {
    let mut info = sample::info();
    let attempts = (0u16..).zip(kinds).filter(|(_, kind)| StepKind::from(**kind).is_attempt());
    let steps = attempts.map(|(id, _)| StepId(id));
    let threshold = |text: &str, measure, comparison, value| {
        let subject = Subject::Steps(steps.clone().collect());
        let (text, phase, with_pauses) = (text, None, false);
        Threshold {
            phase,
            with_pauses,
            ..Threshold::new(text, subject, measure, comparison, value)
        }
    };
    let thresholds = [
        threshold("errors <= 100%", Measure::FailedShare, Comparison::LessOrEqual, 1.0),
        threshold("rate > 0", Measure::Rate, Comparison::Greater, 0.0),
    ];
    info.tables.thresholds = thresholds.iter().map(ThresholdInfo::from).collect();
    info.tables.steps = kinds
        .iter()
        .map(|kind| StepInfo { name: (*kind).into(), kind: (*kind).into(), ..StepInfo::default() })
        .collect();
    let steps = (0u16..).zip(kinds).map(|(step, _)| StepInterval { step, ..figures.clone() });
    let interval = Interval { phase: 1, steps: steps.collect(), ..Interval::default() };
    summary_of(info, &[interval], &sample::events())
}

/// The total row, thresholds without a subject, error shares, phases and the generator use the same
/// definition of an attempt.
#[test]
fn all_sums_use_the_same_definition_of_an_attempt() {
    let mut figures = StepInterval { begun: 11, count: 10, ok: 7, ..StepInterval::default() };
    figures.errors = vec![(Cause::Reset, 3)];
    figures.interrupted = 1;
    figures.latency.record_times(1_000, 10);
    for (kinds, attempts) in [
        (&["http"][..], 1),
        (&["connect"], 1),
        (&["connect", "stay"], 2),
        (&["connect", "request", "rendezvous"], 2),
        (&["connect", "send", "expect", "stay", "message"], 4),
        (&["http", "transaction", "heartbeat", "expression", "delivery", "broken"], 3),
    ] {
        let summary = of_kinds(kinds, &figures);
        let total = &summary.steps.total;
        let want = (attempts * 7, attempts * 3, attempts * 10, attempts);
        assert_eq!((total.ok, total.failed, total.latency.count, total.interrupted), want);
        let rows = summary.steps.rows.iter().filter(|row| row.kind.is_attempt());
        assert_eq!(rows.map(|row| row.count).sum::<u64>(), total.count, "{kinds:?}");
        assert_eq!((summary.parts.phases[1].ok, summary.parts.phases[1].failed), (want.0, want.1));
        assert_eq!(summary.generator.sustained_per_s, want.0);
        let shares: f64 = summary.steps.errors.iter().filter_map(|row| row.share).sum();
        let own = total.failed as f64 / total.count as f64;
        assert_eq!(summary.verdict.thresholds[0].verdict, Verdict::Met(own), "{kinds:?}");
        assert!((shares - own).abs() < 1e-9, "{kinds:?}: {shares}");
    }
}

#[test]
fn responses_after_the_load_are_in_no_rate() {
    let mut figures = StepInterval { begun: 10, count: 10, ok: 10, ..StepInterval::default() };
    figures.ok_after = 4;
    let summary = of_kinds(&["http"], &figures);
    let per_s = 6.0 / summary.measured.as_secs_f64();
    assert_eq!((summary.steps.total.ok, summary.steps.total.ok_per_s), (10, per_s));
    assert_eq!(
        summary.parts.phases[1].ok_per_s,
        6.0 / summary.parts.phases[1].lasted.as_secs_f64()
    );
    assert_eq!(summary.verdict.thresholds[1].verdict, Verdict::Met(per_s));
    assert_eq!(summary.generator.sustained_per_s, 6);
}

#[test]
fn a_run_with_unbalanced_rows_is_invalid() {
    let sound = StepInterval { begun: 11, count: 10, ok: 10, interrupted: 1, ..<_>::default() };
    assert_eq!(of_kinds(&["http"], &sound).verdict.unbalanced, []);
    for (begun, interrupted) in [(12, 1), (10, 1), (11, 0)] {
        let figures = StepInterval { begun, interrupted, ..sound.clone() };
        let summary = of_kinds(&["http"], &figures);
        let ended = 10 + interrupted;
        assert_eq!(summary.verdict.unbalanced, [Unbalanced { name: "http".into(), begun, ended }]);
        let (exit, reasons) = verdict::judge(&summary);
        let text = format!("the counts of `http` do not match: {begun} started, {ended} ended");
        let reasons: Vec<String> = reasons.iter().map(throng_base::Said::english).collect();
        assert_eq!((exit, reasons), (Exit::ResultInvalid, vec![text]));
    }
    // Old run directories without `begun` are not checked.
    let old = StepInterval { begun: 0, interrupted: 0, ..sound };
    assert_eq!(of_kinds(&["http"], &old).verdict.unbalanced, []);
}

#[test]
fn transactions_and_rendezvous_are_in_no_sum() {
    let (plain, shop) = (sample::summary(), sample::shop(false));
    assert_eq!(shop.steps.total, plain.steps.total);
    assert_eq!(shop.parts.phases, plain.parts.phases);
    assert_eq!(shop.steps.total.codes, plain.steps.total.codes);
    assert_eq!(shop.generator, plain.generator);
    assert_eq!(shop.steps.rows.len(), 3);
    assert_eq!((shop.steps.rows[2].kind.word(), shop.steps.rows[2].failed), ("rendezvous", 20));
    let transaction = &shop.steps.transactions[0];
    assert_eq!((transaction.count, transaction.failed), (500, 20));
    assert!(transaction.latency.at(Percentile::P95) < 7_000_000);
    assert!(transaction.with_pauses.at(Percentile::P95) > 2_900_000_000);
    // Failures within a transaction belong to the step that failed.
    let errors: Vec<_> =
        shop.steps.errors.iter().map(|row| (row.step.as_str(), row.count)).collect();
    assert_eq!(errors, [("GET /", 80), ("GET /", 20), ("doors open", 20)]);
    assert_eq!(shop.steps.errors[2].share, None, "it is no attempt");
    assert_eq!(shop.verdict.thresholds[..2], plain.verdict.thresholds[..]);
}

#[test]
fn waiting_at_a_rendezvous_does_not_reach_the_target() {
    let mut figures = StepInterval { count: 10, ok: 0, ..StepInterval::default() };
    figures.errors = vec![(Cause::ConnectRefused, 10)];
    let mut summary = of_kinds(&["connect", "rendezvous", "transaction"], &figures);
    (summary.steps.rows[1].ok, summary.steps.errors[1].cause) = (5, Cause::RendezvousTimeout);
    assert!(!summary.steps.errors[1].is_attempt());
    assert_eq!(exit_code(&summary), Exit::TargetUnreachable);
    assert_eq!((summary.steps.total.name.as_str(), summary.steps.total.count), ("all", 10));
}

#[test]
fn a_stop_by_a_rule_decides_unless_the_result_is_invalid() {
    let stopped = sample::shop(true);
    assert_eq!(exit_code(&stopped), Exit::TargetUnreachable);
    let reason =
        r"a rule in the scenario stopped the run at 11.0s: half of the baskets are \u{1b}[31mempty";
    assert_eq!(stopped.info.end.outcome.as_ref().unwrap().reasons, [reason]);
    assert_eq!(exit_code(&sample::shop(false)), Exit::ThresholdsNotMet);
    let lossy = RunInfo { lines_lost: 1, ..sample::shop_info() };
    let lossy = summary_of(lossy, &sample::shop_intervals(), &sample::shop_events());
    assert_eq!(exit_code(&lossy), Exit::ResultInvalid);
    // If the data ends the run, the thresholds decide.
    let by_data =
        [Event::Stopped { at_ns: 1, reason: Said::of_others(String::new()), by: StopBy::Data }];
    let events = [&by_data[..], &sample::shop_events()].concat();
    let summary = summary_of(sample::info(), &sample::intervals(), &events);
    assert_eq!(summary.events.stopped.as_ref().unwrap().at_ns, 1, "the first one counts");
    assert_eq!(exit_code(&summary), Exit::Success);
    // A bug in throng takes precedence over every other result.
    let by_bug = Event::Stopped { at_ns: 1, reason: Said::of_others("it waits"), by: StopBy::Bug };
    for info in [sample::info(), RunInfo { interrupted: true, ..sample::info() }] {
        let summary = summary_of(info, &sample::intervals(), std::slice::from_ref(&by_bug));
        assert_eq!(exit_code(&summary), Exit::Bug);
        let reasons = &summary.info.end.outcome.as_ref().unwrap().reasons;
        assert_eq!(*reasons, ["throng has a bug: it waits"]);
    }
    // A rule may stop a run before any response.
    let mut interval = Interval { phase: 1, ..Interval::default() };
    interval.population.interrupted = 5;
    let summary = summary_of(sample::shop_info(), &[interval], &sample::shop_events());
    assert_eq!(exit_code(&summary), Exit::TargetUnreachable);
}

#[test]
fn log_lines_are_counted_and_the_first_are_kept() {
    let summary = sample::shop(true);
    assert_eq!((summary.events.log.count, summary.events.log.first.len()), (12, Log::LINES_MAX));
    assert_eq!((summary.events.log.first[0].user, summary.events.log.first[9].user), (37, 370));
}

#[test]
fn a_target_that_accepts_connections_is_reachable() {
    let mut figures = StepInterval { count: 10, ok: 7, ..StepInterval::default() };
    figures.errors = vec![(Cause::ConnectRefused, 3)];
    let mut summary = of_kinds(&["connect", "request"], &figures);
    summary.steps.rows[1].ok = 0;
    summary.steps.total.ok = 0;
    assert_eq!(exit_code(&summary), Exit::ThresholdsNotMet, "it is there, and nothing succeeded");
    summary.steps.rows[0].ok = 0;
    assert_eq!(exit_code(&summary), Exit::TargetUnreachable);
}

#[test]
fn a_lost_target_decides_the_exit_code() {
    let mut events = sample::events();
    events.insert(5, Event::TargetLost { at_ns: 11 * sample::SECOND_NS });
    let summary = summary_of(sample::info(), &sample::intervals(), &events);
    assert_eq!(exit_code(&summary), Exit::TargetUnreachable);
    let outcome = summary.info.end.outcome.unwrap();
    assert_eq!(outcome.reasons, ["the target became unreachable; the run ended at 11.0s"]);
}

#[test]
fn a_run_without_responses_is_invalid() {
    let mut interval = Interval { phase: 1, ..Interval::default() };
    interval.population.interrupted = 5;
    interval.gauges.connections_open = 5;
    let reasons = |info: RunInfo, interval: &Interval| {
        let summary = summary_of(info, std::slice::from_ref(interval), &sample::events());
        let told: Vec<String> = summary.diagnostics().iter().map(|it| it.render(false)).collect();
        (exit_code(&summary), told.concat())
    };
    let mut info = sample::info();
    info.tables.thresholds.clear();
    let (exit, told) = reasons(info.clone(), &interval);
    assert_eq!(exit, Exit::ResultInvalid);
    assert!(told.starts_with("error[nothing-answered]: this run received no response\n"), "{told}");
    for step in &mut info.tables.steps {
        step.kind = StepKind::Stay;
    }
    assert_eq!(reasons(info.clone(), &interval).0, Exit::Success, "they stay, as they should");
    interval.gauges.connections_open = 0;
    assert_eq!(reasons(info, &interval).0, Exit::ResultInvalid);
}

#[test]
fn starts_due_while_growth_is_paused_by_the_operator_are_not_missed() {
    let mut info = sample::info();
    info.tables.thresholds.clear();
    let mut interval = sample::interval(2, 1);
    (interval.population.iterations_started, interval.population.unmet) = (60, 240);
    let changed = |change: &str| {
        let change = change.into();
        let paused = Event::Amended { at_ns: 1, load: 0, phase: 1, change };
        let events = [sample::events(), vec![paused]].concat();
        summary_of(info.clone(), std::slice::from_ref(&interval), &events)
    };
    assert_eq!(exit_code(&changed("times 1.1")), Exit::ResultInvalid);
    let paused = changed("pause");
    assert_eq!(exit_code(&paused), Exit::Success, "{:?}", paused.verdict.validity);
    assert!(verdict::unmet_text(&paused).english().contains("the run was paused"));
}

#[test]
fn unmet_starts_report_the_required_users() {
    let mut info = sample::info();
    info.tables.thresholds.clear();
    info.users_planned = 10;
    let mut interval = sample::interval(2, 1);
    (interval.population.iterations_started, interval.population.unmet) = (60, 240);
    // A busy host is slightly late, but users are busy for more than a second.
    interval.generator.lateness.record_times(20_000_000, 500);
    let summary = summary_of(info, &[interval], &sample::events());
    assert_eq!(exit_code(&summary), Exit::ResultInvalid);
    let (unmet, due, needed) = (240, 300, Some(50));
    let reasons = vec![InvalidReason::TooFewUsers { unmet, due, needed }];
    assert_eq!(summary.verdict.validity, Validity::Invalid { reasons });
    let told: Vec<String> = summary.diagnostics().iter().map(|it| it.render(false)).collect();
    expect_test::expect![[r#"
        error[too-few-users]: the requested load was not reached
          = 240 of 300 starts (80.0 %) never happened: too few users for this rate
          = cause: all users were busy or pausing when the next start was due
          = help: allow about 50 users (--users), or lower the rate to 6/s, which these users sustained
        warning[generator-strained]: throng fell behind schedule; results are affected
          = throng was more than 10 ms behind schedule in 1 of 1 seconds (worst 20.0ms)
          = help: lower the load, or use a faster host
    "#]]
    .assert_eq(&told.concat());
    let style = Style { details: true, ..Style::plain() };
    let text = crate::terminal::summary_text(&summary, &style);
    let line = "240 starts never happened: too few users for this rate (about 50 needed)";
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(line), "{text}");
    assert!(!text.contains("throng stayed on schedule"));
}

#[test]
fn a_run_of_less_than_a_second_has_users() {
    let mut interval = sample::interval(0, 1);
    (interval.gauges.users_online, interval.gauges.connections_open) = (0, 0);
    interval.population.started = 1_000;
    let events = [Event::RunEnded { at_ns: sample::SECOND_NS / 3 }];
    let summary = summary_of(sample::info(), &[interval], &events);
    assert_eq!((summary.users.online_max, summary.connections.open_max), (64, 6));
}

#[test]
fn steps_missing_in_the_run_file_are_counted() {
    let mut interval = sample::interval(0, 65_535);
    interval.steps[1].step = 40_000;
    let summary = summary_of(RunInfo::default(), &[interval], &[]);
    assert_eq!(summary.steps.total.count, 10_100);
    assert_eq!(summary.steps.rows[1].name, "step 40000");
    assert_eq!(summary.steps.errors[0].step, "step 0");
}

#[test]
fn a_run_with_a_million_users_is_summed_up() {
    let summary = sample::im();
    assert_eq!((summary.users.online_max, summary.users.present_max), (1_000_000, 1_000_000));
    assert_eq!(summary.connections.opening.per_s_max, 20_000);
    assert!((summary.connections.opening.per_s_mean - 1_000_003.0 / 670.0).abs() < 1e-9);
    let online: Vec<_> =
        summary.parts.phases.iter().map(|p| (p.users_online_min, p.users_online_max)).collect();
    assert_eq!(online, [(20_000, 1_000_000), (999_997, 1_000_000), (0, 950_000)]);
    let stages: Vec<Stage> = summary.connections.stages.iter().map(|row| row.stage).collect();
    let lived = [Stage::Login, Stage::FirstMessage, Stage::Steady, Stage::End];
    assert_eq!(stages, [&[Stage::Connect, Stage::Upgrade][..], &lived].concat());
    assert!(summary.connections.stages.iter().all(|row| row.cut_off.unwrap_or(0) == 0));
    assert_eq!(summary.connections.stages[4].errors, [(Cause::Reset, 2), (Cause::Lost, 1)]);
    assert_eq!(summary.messages.heartbeats.latency, summary.steps.rows[3].latency);
    assert_eq!(
        summary.messages.heartbeats.lost_share(),
        Some(2.0 / summary.messages.heartbeats.counts.sent as f64)
    );
    assert!(summary.complete_share().is_some_and(|share| share < 1.0));
    // Unsolicited messages are in no sum and belong to no step.
    assert_eq!((summary.steps.pushed.len(), summary.steps.pushed[0].count), (2, 10_500_000));
    let rows = summary.steps.rows.iter().filter(|row| row.kind.is_attempt());
    assert_eq!(summary.steps.total.count, rows.map(|row| row.count).sum::<u64>());
    assert_eq!(exit_code(&summary), Exit::Success);
}

#[test]
fn a_user_lost_for_a_second_is_counted_in_any_order_of_lines() {
    // Two shards; the second one is three seconds late.
    let half = |interval: &Interval| {
        let mut half = interval.clone();
        let gauges = &mut half.gauges;
        (gauges.users_online, gauges.users_present) = (gauges.users_online / 2, 0);
        half
    };
    let whole: Vec<Interval> = sample::im_intervals();
    let mut lines: Vec<(u64, Interval)> = Vec::new();
    for interval in &whole {
        let (first, mut second) = (half(interval), half(interval));
        second.gauges.users_online = interval.gauges.users_online - first.gauges.users_online;
        lines.push((interval.second, first));
        lines.push((interval.second + 3, second));
    }
    lines.sort_by_key(|(when, _)| *when);
    let info = sample::im_info();
    // Events are read first from a run directory, and in order during a run.
    for is_live in [false, true] {
        let mut collector = Collector::new(&info);
        let mut events = sample::im_events();
        if !is_live {
            events.drain(..).for_each(|event| collector.event(&event));
        }
        for (when, interval) in &lines {
            collector.interval(interval);
            let is_due = |event: &Event| match event {
                Event::PhaseBegun { at_ns, .. } | Event::PhaseEnded { at_ns, .. } => {
                    *at_ns <= when * sample::SECOND_NS
                }
                _ => true,
            };
            while events.first().is_some_and(is_due) {
                collector.event(&events.remove(0));
            }
        }
        events.iter().for_each(|event| collector.event(event));
        let phase = &collector.finish(info.clone()).parts.phases[1];
        let online = (phase.users_online_min, phase.users_online_max, phase.users_online);
        assert_eq!(online, (999_997, 1_000_000, 1_000_000), "live: {is_live}");
    }
}

#[test]
fn a_very_late_line_is_not_a_separate_second() {
    let mut collector = Collector::new(&sample::im_info());
    let mut intervals = sample::im_intervals();
    let mut late = intervals[100].clone();
    (late.gauges.users_online, late.gauges.users_present) = (7, 7);
    intervals.insert(200, late);
    sample::im_events().iter().for_each(|event| collector.event(event));
    intervals.iter().for_each(|interval| collector.interval(interval));
    assert_eq!(collector.finish(sample::im_info()).parts.phases[1].users_online_min, 999_997);
}

#[test]
fn a_phase_of_less_than_a_second_has_its_users() {
    let mut interval = sample::im_intervals().swap_remove(0);
    interval.phase = 1;
    let events = [
        Event::PhaseBegun { at_ns: 0, phase: 1 },
        Event::PhaseEnded { at_ns: sample::SECOND_NS / 2, phase: 1 },
    ];
    let summary = summary_of(sample::im_info(), &[interval], &events);
    let phase = &summary.parts.phases[1];
    assert_eq!((phase.users_online_min, phase.users_online_max), (20_000, 20_000));
    let never = &summary.parts.phases[0];
    assert_eq!((never.users_online_min, never.users_online_max, never.begun), (0, 0, false));
}

#[test]
fn users_missing_due_to_paused_growth_make_the_result_invalid() {
    let words = |summary: &Summary| match &summary.verdict.validity {
        Validity::Valid => Vec::new(),
        Validity::Invalid { reasons } => reasons.iter().map(InvalidReason::word).collect(),
    };
    let held = sample::im_held(false);
    assert_eq!(words(&held), ["users-held", "users-held"]);
    assert_eq!(exit_code(&held), Exit::ResultInvalid);
    let told: Vec<String> = held.diagnostics().iter().map(|it| it.render(false)).collect();
    expect_test::expect![[r#"
        error[generator-limited]: this host could not sustain the load
          = `fill` reached at most 612,000 of 1,000,000 users: the generator was at its memory limit for 20 s
          = `hold` reached at most 612,000 of 1,000,000 users: the generator was at its memory limit for 40 s
          = cause: growth was paused at 30.0s: 14.1 GB of 14.0 GB are in use
          = help: lower the number of users, raise `--max-memory`, or use a host with more memory
    "#]].assert_eq(&told.concat());
    let given_up = sample::im_held(true);
    assert_eq!(words(&given_up), ["growth-given-up"]);
    assert_eq!(exit_code(&given_up), Exit::ResultInvalid);
    // Growth was paused for a while, but all users started in the end.
    let mut intervals = sample::im_intervals();
    intervals[20..40]
        .iter_mut()
        .for_each(|one| one.generator.resources.as_mut().unwrap().held = true);
    let late = summary_of(sample::im_info(), &intervals, &sample::im_events());
    assert_eq!((late.growth.held_seconds, late.parts.phases[0].held_seconds), (20, 20));
    assert_eq!((words(&late), exit_code(&late)), (Vec::new(), Exit::Success));
    // A run that was stopped in the meantime misses no users.
    intervals.truncate(30);
    let events = [&sample::im_events()[..1], &[Event::Interrupted { at_ns: 1 }]].concat();
    let stopped = summary_of(sample::im_info(), &intervals, &events);
    assert_eq!((words(&stopped), exit_code(&stopped)), (Vec::new(), Exit::Interrupted));
}

#[test]
fn attempts_without_a_result_were_interrupted() {
    let intervals = sample::im_intervals();
    let mut info = sample::im_info();
    let cut = |info: &RunInfo, seconds: usize| {
        let summary = summary_of(info.clone(), &intervals[..seconds], &sample::im_events()[..3]);
        let rows = summary.connections.stages.iter();
        rows.map(|row| (row.stage.word(), row.began, row.cut_off)).collect::<Vec<_>>()
    };
    assert_eq!(cut(&info, 100).last(), Some(&("steady", 1_000_000, Some(1_000_000))));
    assert_eq!(cut(&info, 100)[3], ("first-message", 1_000_000, None));
    // Attempts of users that started in an unmeasured phase were interrupted, too.
    info.tables.phases[0].measured = false;
    assert_eq!(cut(&info, 400).last(), Some(&("steady", 3, Some(1_000_000))));
}

#[test]
fn users_without_a_heartbeat_yet_are_online() {
    let mut info = sample::im_info();
    info.tables.thresholds.clear();
    info.tables.steps.remove(1);
    let mut interval = Interval::default();
    interval.population.interrupted = 5;
    interval.gauges.connections_open = 5;
    let summary = summary_of(info, &[interval], &[]);
    assert_eq!((exit_code(&summary), summary.verdict.validity), (Exit::Success, Validity::Valid));
}

#[test]
fn users_without_a_connection_are_not_online_in_a_short_run() {
    let mut interval = sample::im_intervals().swap_remove(0);
    (interval.gauges, interval.connections.counts.opened) =
        (throng_metrics::Gauges::default(), 15_000);
    let events = [Event::RunEnded { at_ns: sample::SECOND_NS / 3 }];
    let summary = summary_of(sample::im_info(), &[interval], &events);
    assert_eq!((summary.users.online_max, summary.users.present_max), (15_000, 20_000));
}

#[test]
fn a_late_machine_is_named_even_if_the_total_is_not_late() {
    let mut info = sample::info();
    info.generator.machines = ["one", "two", "three"]
        .map(|name| MachineInfo { name: name.into(), shards: 2, ..MachineInfo::default() })
        .into();
    let mut collector = Collector::new(&info);
    sample::events().iter().for_each(|event| collector.event(event));
    for interval in sample::intervals() {
        for machine in 0..3 {
            let mut part = Interval { machine, ..interval.clone() };
            part.generator.lateness = Histogram::new();
            let (count, late) = if machine == 1 { (10, 300_000_000) } else { (1000, 50_000) };
            (0..count).for_each(|_| part.generator.lateness.record(late));
            collector.interval(&part);
        }
    }
    let summary = collector.finish(info);
    assert!(summary.generator.lateness.at(Percentile::P99) < 1_000_000);
    let late = summary.parts.machines.iter().map(|it| it.generator.late_seconds);
    assert_eq!(late.collect::<Vec<_>>(), [0, 10, 0]);
    let Validity::Invalid { reasons } = &summary.verdict.validity else { panic!("it is valid") };
    let [InvalidReason::OfMachine { name, reason }] = reasons.as_slice() else {
        panic!("{reasons:?}")
    };
    assert_eq!((name.as_str(), reason.word()), ("two", "late"));
    assert_eq!(exit_code(&summary), Exit::ResultInvalid);
    let told = |summary: &Summary| summary.diagnostics()[0].render(false);
    let text = told(&summary);
    assert!(text.contains("in 10 of 10 seconds (worst 300ms), on two\n"), "{text}");
    assert!(
        text.contains("use fewer users, longer pauses or more machines (these machines"),
        "{text}"
    );
    let mut other = summary.clone();
    other.parts.machines[2].generator = other.parts.machines[1].generator.clone();
    other.users.population.wanted = 10;
    let text = told(&other);
    assert!(text.contains(", on two; three also fell behind\n"), "{text}");
    assert!(text.contains("lower the rate") && text.contains("which these machines"), "{text}");
    // Users of all machines are present at the same time.
    let one = sample::summary();
    assert_eq!(summary.users.present_max, 3 * one.users.present_max);
    assert_eq!(summary.steps.total.count, 3 * one.steps.total.count);
}
