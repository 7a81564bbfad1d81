//! Sums up a run line by line, live or from its files. Memory grows with the number of steps and
//! phases, not with time.

mod figures;
mod held;
mod labels;
mod levels;
mod loads;
mod machines;
mod outages;
mod phase;
mod pieces;
mod why;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use throng_base::Said;
use throng_metrics::{
    Blame, Cause, DeliveryCounter, DeliveryInterval, Histogram, InstanceInterval, Interval,
    ResidenceInterval, SessionInterval, Slow, Stage, StageInterval, StepInterval, StepKind,
    Subject, Table, TargetInterval, Threshold, Verdict,
};

use crate::actions::Actions;
use crate::audits::Audits;
use crate::back_off::BackOffs;
use crate::directory::{Outcome, RunInfo, StepInfo};
use crate::event::{Event, TEXT_CHARS_MAX, moved};
use crate::evidence::{EVIDENCE_MAX, Evidence, FailureRow};
use crate::monitors::{self, Monitors};
use crate::once::OnceRun;
use crate::summary::{
    Attempts, Change, ChangeOf, Changes, ConnectionTables, Curves, Damage, DeliveryRow, ErrorRow,
    Example, Generator, Growth, HeartbeatRow, Hold, InstanceRow, Latency, Log, LogLine,
    MessageTables, Opening, OwnRow, PartTables, PhaseRow, ResidenceRow, Row, RunEvents, RunVerdict,
    SessionRow, SlowRow, StageRow, StepTables, Stopped, Summary, TargetRow, TcpRow, ThresholdRow,
    Unbalanced, UserTables, Validity, most_first, per_second,
};
use crate::verdict;
use throng_metrics::Duel;
use throng_metrics::capacity::Capacity;
use throng_why::Judged;

use phase::{PhaseSum, SECOND_NS};

pub(crate) use figures::Figures;
use loads::time_of;

/// Maximum number of examples of failures kept.
const EXAMPLES_MAX: usize = 1_000;

/// Sums up a run. Lines of the same second and phase are added, in any order.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    figures: Figures,
    examples: BTreeMap<(u16, &'static str), Example>,
    /// By step: time, cause, message and evidence.
    failures: Vec<(u16, (u64, Cause, Said, Evidence))>,
    delivery_examples: BTreeMap<(u16, &'static str), (DeliveryCounter, Example)>,
    growth: Growth,
    run_ended_ns: Option<u64>,
    interrupted: bool,
    target_lost_ns: Option<u64>,
    stopped: Option<Stopped>,
    once: Vec<OnceRun>,
    changes: Changes,
    actions: Actions,
    back_offs: BackOffs,
    log: Log,
    monitors: Monitors,
    audits: Audits,
    capacity: Option<Box<Capacity>>,
    duel: Option<Box<Duel>>,
    damage: Damage,
}

impl Collector {
    pub fn new(info: &RunInfo) -> Collector {
        Collector::resume(Figures::new(info), info)
    }

    /// Continues from the sums of the first lines. All events must still be passed.
    pub(crate) fn resume(figures: Figures, info: &RunInfo) -> Collector {
        Collector {
            figures,
            interrupted: info.interrupted,
            audits: Audits::new(&info.tables.audits),
            ..Collector::default()
        }
    }

    pub fn interval(&mut self, interval: &Interval) {
        self.figures.interval(interval);
    }

    pub fn event(&mut self, event: &Event) {
        let phases = &self.figures.phases;
        let is_measured = |phase| phases.get(usize::from(phase)).is_some_and(|it| it.info.measured);
        self.monitors.event(event, is_measured);
        self.audits.event(event);
        self.back_offs.event(event);
        match event {
            Event::PhaseBegun { .. } | Event::PhaseEnded { .. } | Event::MachineLost { .. } => {
                self.figures.event(event);
            }
            Event::Failure { at_ns, step, cause, detail, evidence } => {
                if let Some(evidence) = evidence
                    && self.failures.len() < EVIDENCE_MAX
                {
                    let failure = (*at_ns, *cause, short_said(detail), (**evidence).clone());
                    self.failures.push((*step, failure));
                }
                if self.examples.len() < EXAMPLES_MAX {
                    let example = || Example { at_ns: *at_ns, detail: detail.clone() };
                    self.examples.entry((*step, cause.word())).or_insert_with(example);
                }
            }
            Event::Delivery { at_ns, step, counter, detail } => {
                if self.delivery_examples.len() < EXAMPLES_MAX {
                    let example = || Example { at_ns: *at_ns, detail: short_said(detail) };
                    let all = &mut self.delivery_examples;
                    all.entry((*step, counter.word())).or_insert_with(|| (*counter, example()));
                }
            }
            Event::Interrupted { .. } => self.interrupted = true,
            Event::Log { at_ns, user, text } => self.log.add(*at_ns, *user, text),
            Event::Stopped { at_ns, reason, by } => {
                let stopped = || Stopped { at_ns: *at_ns, reason: short_said(reason), by: *by };
                self.stopped.get_or_insert_with(stopped);
            }
            Event::TargetLost { at_ns } => self.target_lost_ns = Some(*at_ns),
            Event::Held { at_ns, limit, detail } => {
                self.growth.held.get_or_insert_with(|| hold(*at_ns, limit, detail));
            }
            Event::GrowthGivenUp { at_ns, limit, detail } => {
                self.growth.given_up.get_or_insert_with(|| hold(*at_ns, limit, detail));
            }
            Event::Amended { .. }
            | Event::ActionBegun { .. }
            | Event::ActionEnded { .. }
            | Event::Marked { .. }
            | Event::AddressesChanged { .. } => self.changed(event),
            // Keep one of each, because a run directory can contain anything.
            Event::Once { once, .. } => {
                if self.once.iter().all(|known| known.part != once.part) {
                    self.once.push((**once).clone());
                }
            }
            Event::Capacity { capacity, .. } => self.capacity = Some(capacity.clone()),
            // The last one is complete.
            Event::Duel { duel, .. } => self.duel = Some(duel.clone()),
            Event::RunEnded { at_ns } => {
                self.run_ended_ns = self.run_ended_ns.max(Some(*at_ns));
            }
            Event::RecordingTrouble { .. }
            | Event::Series { .. }
            | Event::Scrape { .. }
            | Event::ScrapeFailed { .. }
            | Event::Audited { .. }
            | Event::BooksRead { .. }
            | Event::Notice { .. }
            | Event::Released { .. }
            | Event::BackedOff { .. }
            | Event::Unknown => {}
        }
    }

    /// A change during the run by the operator, an event or the network.
    fn changed(&mut self, event: &Event) {
        self.figures.event(event);
        self.actions.event(event);
        let (at_ns, of, what) = match event {
            Event::Amended { at_ns, phase, change, .. } => {
                let phase = self.figures.phases[self.figures.index(*phase)].info.name.clone();
                (*at_ns, ChangeOf::Phase(phase), change.clone())
            }
            Event::Marked { at_ns, name } => (*at_ns, ChangeOf::Mark, name.clone()),
            Event::AddressesChanged { at_ns, host, before, after } => {
                (*at_ns, ChangeOf::Addresses, moved(host, before, after))
            }
            _ => return,
        };
        self.changes.add(Change { at_ns, of, what });
    }

    /// Adds the damage found in the files.
    pub(crate) fn damage(&mut self, damage: Damage) {
        self.damage = damage;
    }

    /// The summary of everything so far. `info` is the final run file; its verdicts and outcome are
    /// replaced by those computed here.
    pub fn finish(mut self, info: RunInfo) -> Summary {
        self.figures.end_second();
        let lasted = self.lasted();
        let spans = self.settle_phases(lasted);
        let (sum, measured) = self.measured(&spans);
        let (busy, is_shared) = (self.monitors.cores(), info.targets.same_host);
        let watched = self.monitors.watched(&info);
        let monitors = std::mem::take(&mut self.monitors).rows(&info);
        let mut verdict = self.verdict(&info, &sum, measured, &spans);
        for (row, info) in verdict.thresholds.iter_mut().zip(&info.tables.thresholds) {
            if let Subject::Monitored(monitored) = &info.threshold.subject {
                row.verdict = monitors::verdict(&info.threshold, monitored, &monitors);
            }
        }
        let steps = self.step_tables(&info, &sum, measured);
        self.no_gauges(&info, &sum, lasted);
        let users = UserTables {
            online_max: self.figures.users_online_max,
            present_max: self.figures.users_present_max,
            backlog_max: self.figures.backlog_max,
            population: sum.population.clone(),
            picture: std::mem::take(&mut self.figures.picture).finished(),
        };
        let mut summary = Summary {
            directory: None,
            measured,
            lasted: Duration::from_nanos(lasted),
            curves: self.curves(&spans),
            verdict,
            parts: self.part_tables(&info, &sum, measured, &spans),
            users,
            connections: self.connection_tables(&sum, measured),
            messages: MessageTables {
                counts: sum.traffic.messages.clone(),
                heartbeats: heartbeat_row(&info, &sum),
                deliveries: self.delivery_rows(&info, &sum, measured),
            },
            generator: self.generator(&sum, measured, steps.total.count),
            growth: self.growth(),
            monitors,
            audits: std::mem::take(&mut self.audits).rows(),
            events: RunEvents {
                target_lost_ns: self.target_lost_ns,
                outage: self.figures.pace.outages.longest(),
                deserted_s: self.figures.deserted_s(),
                stopped: self.stopped.take(),
                once: std::mem::take(&mut self.once),
                changes: std::mem::take(&mut self.changes),
                actions: self.actions.rows(),
                back_offs: std::mem::take(&mut self.back_offs),
                log: std::mem::take(&mut self.log),
            },
            capacity: self.capacity.take(),
            duel: self.duel.take(),
            steps,
            info,
        };
        summary.parts.levels.iter_mut().for_each(|level| level.take_busy(&busy, is_shared));
        fill_in_verdict(&mut summary, self.interrupted);
        self.figures.fill_levels(&mut summary);
        summary.verdict.why = self.figures.why(&summary, watched, &spans);
        self.figures.effects(&mut summary, &spans);
        summary
    }

    fn verdict(
        &mut self,
        info: &RunInfo,
        sum: &Interval,
        measured: Duration,
        spans: &[Range<u64>],
    ) -> RunVerdict {
        RunVerdict {
            validity: Validity::Valid,
            why: Judged::default(),
            thresholds: self.judge(info, sum, measured, spans),
            unended: info.time.ended.is_none(),
            unbalanced: self.unbalanced(info),
            damage: self.damage.clone(),
        }
    }

    fn step_tables(&mut self, info: &RunInfo, sum: &Interval, measured: Duration) -> StepTables {
        let total = total_row(info, &self.figures.attempts, sum, measured);
        let (rows, mut apart) = rows(info, sum, measured);
        let own = own_rows(info, &mut apart);
        let (transactions, pushed) =
            apart.into_iter().partition(|row: &Row| row.kind.table() == Table::Transactions);
        StepTables {
            errors: self.error_rows(info, sum, total.count),
            failures: self.failure_rows(info),
            slowest: slow_rows(info, sum),
            samples: sum
                .samples
                .iter()
                .map(|row| (info.step_name(row.step), row.clone()))
                .collect(),
            retries: sum.retries.clone(),
            total,
            rows,
            transactions,
            pushed,
            own,
        }
    }

    fn part_tables(
        &mut self,
        info: &RunInfo,
        sum: &Interval,
        measured: Duration,
        spans: &[Range<u64>],
    ) -> PartTables {
        let machines = self.figures.machines.rows(info, measured);
        let figures = &self.figures;
        PartTables {
            loads: loads::rows(info, &figures.phases, spans, &figures.attempts),
            phases: self.phase_rows(spans),
            levels: figures.levels.rows(info, &figures.attempts, (&figures.phases, spans)),
            sessions: sum
                .parts
                .sessions
                .iter()
                .map(|row| session_row(info, row, measured))
                .collect(),
            targets: sum.parts.targets.iter().map(|row| target_row(info, row, measured)).collect(),
            instances: sum
                .parts
                .instances
                .iter()
                .map(|row| instance_row(info, row, measured))
                .collect(),
            machines,
            labels: figures.labels.rows(info, measured),
        }
    }

    fn connection_tables(&self, sum: &Interval, measured: Duration) -> ConnectionTables {
        let stages = self.stage_rows(sum);
        ConnectionTables {
            opening: self.opening(&stages, sum, measured),
            open_max: self.figures.connections_open_max,
            stages,
            residence: sum.connections.residence.iter().map(residence_row).collect(),
            counts: sum.connections.counts.clone(),
            lifecycle: sum.lifecycle.clone(),
            tcp: tcp_row(sum),
            packets: sum.traffic.packets.clone(),
            bytes_in: sum.traffic.bytes_in,
            bytes_out: sum.traffic.bytes_out,
        }
    }

    fn growth(&mut self) -> Growth {
        Growth { held_seconds: self.figures.held.count, ..std::mem::take(&mut self.growth) }
    }

    fn phase_rows(&self, spans: &[Range<u64>]) -> Vec<PhaseRow> {
        let length = |span: &Range<u64>| Duration::from_nanos(span.end - span.start);
        let phases = self.figures.phases.iter().zip(spans);
        phases.map(|(phase, span)| phase.row(length(span), &self.figures.attempts)).collect()
    }

    /// Sets the final gauges of each phase once its end is known, and returns the time spans of the
    /// phases.
    fn settle_phases(&mut self, lasted: u64) -> Vec<Range<u64>> {
        let ends: Vec<u64> =
            (0..self.figures.phases.len()).map(|index| self.end_ns(index, lasted)).collect();
        // The start of the load's next phase, if it has started.
        let mut begun = None;
        for (phase, end) in self.figures.phases.iter_mut().zip(&ends).rev() {
            let own = phase.is_begun().then_some(phase.info.load);
            let is_followed = begun == Some(phase.info.load);
            begun = own;
            phase.settle_gauges(*end, is_followed);
        }
        self.figures.phases.iter().zip(&ends).map(|(phase, end)| phase.span(*end)).collect()
    }

    fn curves(&mut self, spans: &[Range<u64>]) -> Curves {
        let phases = self.figures.phases.iter().zip(spans);
        let counted = phases.filter(|(phase, _)| phase.info.measured && phase.is_begun());
        let spans: Vec<Range<u64>> = counted.map(|(_, span)| span.clone()).collect();
        std::mem::take(&mut self.figures.pieces).finish(&spans)
    }

    /// The sum of the measured phases, and their time. Overlapping time counts once: parallel
    /// loads, and a phase that starts before late shards have ended the previous one.
    fn measured(&self, spans: &[Range<u64>]) -> (Interval, Duration) {
        let counts = |phase: &&PhaseSum| phase.info.measured && phase.is_begun();
        let mut sum = Interval::default();
        self.figures.phases.iter().filter(counts).for_each(|phase| sum.merge_later(&phase.sum));
        let counted = self.figures.phases.iter().zip(spans).filter(|(phase, _)| counts(phase));
        (sum, time_of(counted.map(|(_, span)| span.clone())))
    }

    /// A run shorter than a second has gauges only from its end, when all users have left. Assume
    /// that all started users were present at once, with one connection each.
    fn no_gauges(&mut self, info: &RunInfo, sum: &Interval, lasted_ns: u64) {
        if lasted_ns < SECOND_NS {
            let most = |count: u64| count.min(info.users_planned);
            let users = most(sum.population.started);
            let connections = most(sum.connections.counts.opened);
            // Users that open a long-lived connection are not online without it.
            let needs_one = info.tables.steps.iter().any(|step| step.kind == StepKind::Connect);
            let online = if needs_one { users.min(connections) } else { users };
            self.figures.users_present_max = self.figures.users_present_max.max(users);
            self.figures.users_online_max = self.figures.users_online_max.max(online);
            self.figures.connections_open_max = self.figures.connections_open_max.max(connections);
        }
    }

    /// The length of the run in nanoseconds: until its end, or until the last known line.
    fn lasted(&self) -> u64 {
        let ends = self.figures.phases.iter().map(|phase| {
            let last = phase.seconds.map_or(0, |(_, last)| last);
            let seconds = phase.seconds.map_or(0, |_| last.saturating_add(1));
            seconds.saturating_mul(SECOND_NS).max(phase.ended_ns.unwrap_or(0))
        });
        self.run_ended_ns.unwrap_or_else(|| ends.max().unwrap_or(0))
    }

    /// The end of a phase: as recorded, or the start of the next, or the end of the run.
    fn end_ns(&self, index: usize, lasted: u64) -> u64 {
        let load = self.figures.phases[index].info.load;
        let behind =
            self.figures.phases[index + 1..].iter().filter(|phase| phase.info.load == load);
        let next = || behind.into_iter().find_map(|phase| phase.begun_ns);
        self.figures.phases[index].ended_ns.or_else(next).unwrap_or(lasted)
    }

    fn judge(
        &mut self,
        info: &RunInfo,
        sum: &Interval,
        measured: Duration,
        spans: &[Range<u64>],
    ) -> Vec<ThresholdRow> {
        let length = |span: &Range<u64>| Duration::from_nanos(span.end - span.start);
        let generated = self.back_offs.generated(info, self.lasted());
        let of = |threshold: &Threshold, sum: &Interval, time: Duration| {
            (threshold.judge(sum, time), threshold.largest_of(sum))
        };
        let judge = |threshold: &Threshold| match (threshold.phase, threshold.load) {
            _ if matches!(threshold.subject, Subject::Audit { .. }) => {
                (threshold.judge_figure(self.audits.figure(threshold)), None)
            }
            _ if threshold.subject == Subject::Generated => {
                (threshold.judge_figure(Some(generated)), None)
            }
            (None, None) if measured.is_zero() => (Verdict::Unknown, None),
            (None, None) => of(threshold, sum, measured),
            (None, Some(load)) => match loads::measured(&self.figures.phases, spans, load) {
                Some((sum, time)) => of(threshold, &sum, time),
                None => (Verdict::Unknown, None),
            },
            (Some(phase), _) => match self.figures.phases.get(usize::from(phase)) {
                Some(sum) if sum.is_begun() => {
                    of(threshold, &sum.sum, length(&spans[usize::from(phase)]))
                }
                _ => (Verdict::Unknown, None),
            },
        };
        let phase_name = |phase: u16| match info.tables.phases.get(usize::from(phase)) {
            Some(info) => info.name.clone(),
            None => format!("phase {phase}"),
        };
        let load_name = |load: u16| info.tables.loads.get(usize::from(load)).cloned();
        let row = |threshold: &Threshold| {
            let (verdict, largest_of) = judge(threshold);
            let is_unknown = verdict == Verdict::Unknown && threshold.phase.is_none();
            ThresholdRow {
                text: threshold.text.clone(),
                load: threshold.load.and_then(load_name),
                phase: threshold.phase.map(phase_name),
                unit: threshold.unit(),
                verdict,
                largest_of,
                only_in: is_unknown.then(|| self.only_in(threshold, spans)).flatten(),
            }
        };
        let mut rows: Vec<ThresholdRow> =
            info.tables.thresholds.iter().map(|info| row(&info.threshold)).collect();
        for (at, row) in rows.iter_mut().enumerate() {
            let phases = self.figures.phases.iter();
            row.verdict = held::verdict(phases.flat_map(|phase| phase.held(at)), row.verdict);
        }
        for (row, stretches) in rows.iter_mut().zip(&mut self.figures.stretches) {
            if let Some(stretches) = stretches {
                (row.verdict, row.largest_of) = (stretches.verdict(), None);
            }
        }
        for (row, behind) in rows.iter_mut().zip(&self.figures.behind) {
            if let Some(behind) = behind {
                (row.verdict, row.largest_of) = (behind.verdict(), None);
            }
        }
        rows
    }

    /// The first unmeasured phase with a value for this threshold.
    fn only_in(&self, threshold: &Threshold, spans: &[Range<u64>]) -> Option<String> {
        let mut phases = self.figures.phases.iter().zip(spans);
        let has_figure = |(phase, span): &(&PhaseSum, &Range<u64>)| {
            let time = Duration::from_nanos(span.end - span.start);
            !phase.info.measured && threshold.judge(&phase.sum, time) != Verdict::Unknown
        };
        phases.find(has_figure).map(|(phase, _)| phase.info.name.clone())
    }

    /// Rows of a complete run whose counts do not balance, measured or not. Old run directories
    /// without `begun` are skipped; missing lines are reported elsewhere.
    fn unbalanced(&self, info: &RunInfo) -> Vec<Unbalanced> {
        let mut all = Interval::default();
        self.figures.phases.iter().for_each(|phase| all.add_books(&phase.sum));
        let is_whole = self.damage == Damage::default() && info.lines_lost == 0;
        let is_whole = is_whole && self.figures.machines.are_all_there();
        if info.time.ended.is_none() || !is_whole || all.steps.iter().all(|row| row.begun == 0) {
            return Vec::new();
        }
        let rows = all.steps.iter().filter(|row| !row.is_balanced()).map(|row| {
            let (begun, ended) = (row.begun, row.count + row.interrupted);
            Unbalanced { name: info.step_name(row.step), begun, ended }
        });
        let beats = Some(&all.heartbeats).filter(|beats| !beats.is_balanced()).map(|beats| {
            let ended = beats.answered + beats.lost + beats.interrupted + beats.without_answer;
            Unbalanced { name: StepKind::Heartbeat.word().into(), begun: beats.sent, ended }
        });
        rows.chain(beats).collect()
    }

    /// Stages that occurred. Attempts that neither succeeded nor failed were interrupted by the end
    /// of the run, wherever they started.
    fn stage_rows(&self, sum: &Interval) -> Vec<StageRow> {
        let all = self.figures.phases.iter().flat_map(|phase| &phase.sum.connections.stages);
        let cut_off = |stage: Stage| {
            let of = all.clone().filter(|one| one.stage == stage);
            of.fold((0, 0), |(began, ended), one| (began + one.began, ended + one.ok + one.failed))
        };
        let mut rows: Vec<StageRow> = sum.connections.stages.iter().map(stage_row).collect();
        for row in rows.iter_mut().filter(|row| row.stage != Stage::FirstMessage) {
            let (began, ended) = cut_off(row.stage);
            row.cut_off = Some(began.saturating_sub(ended));
        }
        rows.retain(|row| row.began + row.ok + row.failed > 0);
        rows.sort_by_key(|row| row.stage);
        rows
    }

    fn opening(&self, stages: &[StageRow], sum: &Interval, measured: Duration) -> Opening {
        let errors = stages.iter().flat_map(|row| &row.errors);
        let refused = errors.filter(|(cause, _)| *cause == Cause::ConnectRefused);
        Opening {
            refused: refused.map(|(_, count)| count).sum(),
            per_s_mean: per_second(sum.connections.counts.opened, measured),
            per_s_max: self.figures.pace.opened_per_s_max,
        }
    }

    fn failure_rows(&mut self, info: &RunInfo) -> Vec<FailureRow> {
        let failures = std::mem::take(&mut self.failures).into_iter();
        let row = |(step, (at_ns, cause, detail, evidence))| FailureRow {
            step: info.step_name(step),
            cause,
            at_ns,
            detail,
            evidence,
        };
        failures.map(row).collect()
    }

    fn error_rows(&self, info: &RunInfo, sum: &Interval, attempts: u64) -> Vec<ErrorRow> {
        let mut rows: Vec<ErrorRow> = Vec::new();
        for step in &sum.steps {
            let kind = kind_of(info, step.step);
            // Failures within a transaction belong to the step that failed.
            if kind == StepKind::Transaction {
                continue;
            }
            let share = |count: u64| count as f64 / attempts.max(1) as f64;
            let ledger = sum.deliveries.iter().find(|row| row.step == step.step);
            // Missing messages may be in messages whose records could not be separated.
            let is_joined = ledger.is_some_and(|row| row.received_joined > 0);
            for (cause, count) in &step.errors {
                rows.push(ErrorRow {
                    step: info.step_name(step.step),
                    cause: *cause,
                    blame: match cause {
                        Cause::DeliveryLost if is_joined => Blame::Scenario,
                        _ => step.blame(*cause),
                    },
                    count: *count,
                    share: kind.is_attempt().then(|| share(*count)),
                    example: self.examples.get(&(step.step, cause.word())).cloned(),
                });
            }
        }
        rows.sort_by(|a, b| {
            b.count.cmp(&a.count).then_with(|| (&a.step, a.cause).cmp(&(&b.step, b.cause)))
        });
        rows
    }

    /// Every row of the ledger, even without sent messages.
    fn delivery_rows(
        &self,
        info: &RunInfo,
        sum: &Interval,
        measured: Duration,
    ) -> Vec<DeliveryRow> {
        let known = (0..info.tables.steps.len()).filter_map(|index| u16::try_from(index).ok());
        let mut ids: Vec<u16> =
            known.filter(|id| kind_of(info, *id) == StepKind::Delivery).collect();
        let unknown = sum.deliveries.iter().map(|row| row.step);
        ids.extend(unknown.filter(|id| usize::from(*id) >= info.tables.steps.len()));
        let row = |id: u16| {
            let counts = sum.deliveries.iter().find(|row| row.step == id).cloned();
            let nothing = || DeliveryInterval { step: id, ..DeliveryInterval::default() };
            let counts = counts.unwrap_or_else(nothing);
            let figures = sum.steps.iter().find(|step| step.step == id);
            let examples = self.delivery_examples.iter().filter(|((step, _), _)| *step == id);
            DeliveryRow {
                name: info.step_name(id),
                delivered_per_s: per_second(counts.delivered, measured),
                examples: examples.map(|(_, example)| example.clone()).collect(),
                latency: figures.map(|step| Latency::of(&step.latency)).unwrap_or_default(),
                counts,
            }
        };
        ids.into_iter().map(row).collect()
    }

    fn generator(&self, sum: &Interval, measured: Duration, attempts: u64) -> Generator {
        let phases = || self.figures.phases.iter().filter(|phase| phase.info.measured);
        let readings: u64 = phases().map(|phase| phase.host_cpu_count).sum();
        let host_cpu: f64 = phases().map(|phase| phase.host_cpu_sum).sum();
        let shards = self.figures.machines.shards(sum.shards);
        let own = Generator::of(&sum.generator, shards, attempts, measured);
        Generator {
            late_seconds: self.figures.pace.late_seconds,
            seconds: self.figures.pace.seconds,
            memory_bytes_max: self.figures.machines.memory_bytes().max(own.memory_bytes_max),
            host_cpu_mean: host_cpu / readings.max(1) as f64,
            host_busy_from: self.figures.pace.host_busy_from,
            sustained_per_s: self.figures.pace.sustained_per_s,
            ..own
        }
    }
}

impl Log {
    fn add(&mut self, at_ns: u64, user: u64, text: &str) {
        self.count += 1;
        if self.first.len() < Log::LINES_MAX {
            self.first.push(LogLine { at_ns, user, text: short(text) });
        }
    }
}

/// Determines the validity and the outcome of the run.
fn fill_in_verdict(summary: &mut Summary, interrupted: bool) {
    summary.info.interrupted |= interrupted;
    summary.verdict.validity = verdict::validity(summary);
    for (info, threshold) in
        summary.info.tables.thresholds.iter_mut().zip(&summary.verdict.thresholds)
    {
        info.verdict = Some(threshold.verdict);
    }
    if !summary.verdict.unended {
        let (exit, reasons) = verdict::judge(summary);
        let reasons = reasons.iter().map(Said::english).collect();
        summary.info.end.outcome = Some(Outcome { exit_code: exit.code(), reasons });
    }
}

fn short(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

fn short_said(said: &Said) -> Said {
    said.clone().shortened(TEXT_CHARS_MAX)
}

fn total_row(info: &RunInfo, attempts: &Attempts, sum: &Interval, measured: Duration) -> Row {
    let figures = attempts.total(sum);
    let service = if info.service_times { Latency::of(figures.service()) } else { <_>::default() };
    Row { service, ..Row::new("all".into(), StepKind::NONE, &figures, measured) }
}

/// The kind of a step; the default for one that the run file does not contain.
fn kind_of(info: &RunInfo, step: u16) -> StepKind {
    info.tables.steps.get(usize::from(step)).map_or(StepKind::NONE, |step| step.kind)
}

/// Separates the rows of steps, transactions, pushes and deliveries.
fn rows(info: &RunInfo, sum: &Interval, measured: Duration) -> (Vec<Row>, Vec<Row>) {
    let known = (0..info.tables.steps.len()).filter_map(|index| u16::try_from(index).ok());
    let unknown = sum.steps.iter().map(|step| step.step);
    let mut ids: Vec<u16> =
        known.chain(unknown.filter(|id| usize::from(*id) >= info.tables.steps.len())).collect();
    ids.sort_unstable();
    let nothing = StepInterval::default();
    let row = |id: u16| {
        let figures = sum.steps.iter().find(|step| step.step == id).unwrap_or(&nothing);
        let kind = kind_of(info, id);
        let labels = info.tables.steps.get(usize::from(id)).map(|step| step.labels.clone());
        let service = match info.service_times && kind.is_asked() {
            true => Latency::of(figures.service()),
            false => Latency::default(),
        };
        let row = Row::new(info.step_name(id), kind, figures, measured);
        Row { labels: labels.unwrap_or_default(), service, ..row }
    };
    let is_apart = |row: &Row| row.kind.table() != Table::Steps;
    // Rows of expressions without evaluations are not shown.
    let is_told = |row: &Row| row.kind != StepKind::Expression || row.begun + row.count > 0;
    ids.into_iter().map(row).filter(is_told).partition(|row| !is_apart(row))
}

/// Takes the scenario's own counters and trends, and removes rows that are reported elsewhere.
fn own_rows(info: &RunInfo, rows: &mut Vec<Row>) -> Vec<OwnRow> {
    rows.retain(|row| row.kind.table() != Table::Elsewhere);
    let own = rows.extract_if(.., |row| row.kind.table() == Table::Own);
    let unit = |row: &Row| {
        let is = |step: &&StepInfo| step.kind == row.kind && step.name == row.name;
        info.tables.steps.iter().find(is).and_then(|step| step.unit)
    };
    own.map(|row| OwnRow { unit: unit(&row), row }).collect()
}

fn stage_row(stage: &StageInterval) -> StageRow {
    let mut errors = stage.errors.clone();
    most_first(&mut errors);
    StageRow {
        stage: stage.stage,
        // Old run directories only contain completed attempts.
        began: if stage.began == 0 { stage.ok + stage.failed } else { stage.began },
        ok: stage.ok,
        failed: stage.failed,
        cut_off: None,
        latency: Latency::of(&stage.latency),
        errors,
    }
}

fn heartbeat_row(info: &RunInfo, sum: &Interval) -> HeartbeatRow {
    let mut latency = Histogram::new();
    let beats = sum.steps.iter().filter(|step| kind_of(info, step.step) == StepKind::Heartbeat);
    beats.for_each(|step| latency.merge(&step.latency));
    HeartbeatRow { counts: sum.heartbeats.clone(), latency: Latency::of(&latency) }
}

/// Rates include the few responses after the end of the load, which no row excludes.
fn target_row(info: &RunInfo, row: &TargetInterval, measured: Duration) -> TargetRow {
    let target = info.targets.urls.get(usize::from(row.target)).cloned();
    TargetRow {
        target: target.unwrap_or_default(),
        address: row.address,
        ok_per_s: per_second(row.ok, measured),
        latency: Latency::of(&row.latency),
        counts: row.clone(),
    }
}

fn instance_row(info: &RunInfo, row: &InstanceInterval, measured: Duration) -> InstanceRow {
    InstanceRow {
        target: info.targets.urls.get(usize::from(row.target)).cloned().unwrap_or_default(),
        instance: row.name.clone(),
        count: row.count,
        failed: row.failed,
        ok_per_s: per_second(row.count.saturating_sub(row.failed), measured),
        latency: Latency::of(&row.latency),
    }
}

fn session_row(info: &RunInfo, row: &SessionInterval, measured: Duration) -> SessionRow {
    let name = info.tables.sessions.get(usize::from(row.session)).cloned();
    SessionRow {
        name: name.unwrap_or_else(|| format!("session {}", row.session)),
        begun: row.begun,
        finished: row.finished,
        failed: row.failed,
        interrupted: row.interrupted,
        finished_per_s: per_second(row.finished, measured),
        time: Latency::of(&row.time),
    }
}

fn slow_rows(info: &RunInfo, sum: &Interval) -> Vec<SlowRow> {
    let asked = sum.slowest.iter().filter(|slow| kind_of(info, slow.step).is_attempt());
    let row = |slow: &Slow| SlowRow { step: info.step_name(slow.step), slow: slow.clone() };
    let mut rows: Vec<SlowRow> = asked.map(row).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.slow.latency_ns), row.slow.at_ns, row.slow.user));
    rows
}

fn residence_row(row: &ResidenceInterval) -> ResidenceRow {
    let time = Latency::of(&row.time);
    ResidenceRow { ended: row.ended, unopened: row.unopened, time }
}

fn tcp_row(sum: &Interval) -> TcpRow {
    TcpRow {
        count: sum.tcp.count,
        round_trip: Latency::of(&sum.tcp.round_trip),
        retransmits: sum.tcp.retransmits,
        backlog_bytes_max: sum.tcp.backlog_bytes_max,
    }
}

fn hold(at_ns: u64, limit: &str, detail: &Said) -> Hold {
    Hold { at_ns, limit: short(limit), detail: short_said(detail) }
}

#[cfg(test)]
mod tests;
