//! Levels: loads that a run held for a while. Each phase is one. Changes of its load (by a search
//! or a command) and the steps of a staircase divide it into several.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_metrics::{ConnectionsInterval, Gauges, GeneratorInterval, Interval};

use super::phase::{PhaseSum, SECOND_NS};
use super::{Attempts, rows, total_row};
use crate::directory::RunInfo;
use crate::summary::{LevelRow, per_second};

/// Maximum number of levels, because the memory for each grows with the number of steps.
const LEVELS_MAX: usize = 256;

/// Part of a phase between two changes of its load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct LevelPart {
    phase: usize,
    /// `None` if it is unchanged.
    change: Option<String>,
    at_ns: u64,
    sum: Interval,
    users_online: u64,
    connections_open: u64,
}

impl LevelPart {
    fn new(phase: usize, change: Option<String>, at_ns: u64) -> LevelPart {
        LevelPart { phase, change, at_ns, ..LevelPart::default() }
    }
}

/// The parts of phases with changed load, in the order of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Levels {
    parts: Vec<LevelPart>,
}

impl Levels {
    /// The load of a phase has changed. An event may be passed twice, and before the lines of
    /// earlier seconds.
    pub(super) fn changed(&mut self, at_ns: u64, (index, phase): (usize, &PhaseSum), change: &str) {
        let is_load = ["times ", "users ", "rate "].iter().any(|word| change.starts_with(word));
        let is_known = |part: &LevelPart| part.phase == index && part.at_ns == at_ns;
        if !is_load || self.parts.len() + 2 > LEVELS_MAX || self.parts.iter().any(is_known) {
            return;
        }
        if self.parts.iter().all(|part| part.phase != index) {
            let at_ns = phase.begun_ns.unwrap_or(0).min(at_ns);
            let Gauges { users_online, connections_open, .. } = phase.sum.gauges;
            let sum = counted(&phase.sum);
            let part = LevelPart::new(index, None, at_ns);
            self.parts.push(LevelPart { sum, users_online, connections_open, ..part });
        }
        self.parts.push(LevelPart::new(index, Some(change.to_string()), at_ns));
        self.parts.sort_by_key(|part| part.at_ns);
    }

    /// A phase with steps starts: each step is a level.
    pub(super) fn begun(&mut self, at_ns: u64, (index, phase): (usize, &PhaseSum)) {
        let Some(stairs) = phase.info.stairs.filter(|stairs| stairs.size > 0) else { return };
        if self.parts.iter().any(|part| part.phase == index) {
            return;
        }
        let to = phase.info.users_planned.unwrap_or(0);
        let steps = to.saturating_sub(stairs.from).div_ceil(stairs.size);
        let room = LEVELS_MAX.saturating_sub(self.parts.len()) as u64;
        for step in 0..steps.min(room) {
            let users = stairs.from.saturating_add(stairs.size.saturating_mul(step + 1)).min(to);
            let at_ns = at_ns.saturating_add(stairs.every_ns.saturating_mul(step));
            self.parts.push(LevelPart::new(index, Some(format!("users {users}")), at_ns));
        }
    }

    /// Adds a line of a phase. A second with a change belongs to the level before it, but its final
    /// gauges do not.
    pub(super) fn add(&mut self, index: usize, interval: &Interval, gauges: &Gauges) {
        let begin_ns = interval.second.saturating_mul(SECOND_NS);
        let is_own = |part: &LevelPart| part.phase == index;
        let is_over = |part: &LevelPart| is_own(part) && part.at_ns <= begin_ns;
        let place = self.parts.iter().rposition(is_over);
        let Some(place) = place.or_else(|| self.parts.iter().position(is_own)) else { return };
        let next = self.parts[place + 1..].iter().find(|part| is_own(part));
        let is_whole = next.is_none_or(|next| begin_ns + SECOND_NS <= next.at_ns);
        let part = &mut self.parts[place];
        part.sum.merge_later(&counted(interval));
        // The level ends when users leave at the end of the run.
        if gauges.users_online > 0 && (is_whole || part.users_online == 0) {
            part.users_online = gauges.users_online;
            part.connections_open = gauges.connections_open;
        }
    }

    /// One row per level that has started: phases by number, and the parts of each.
    pub(super) fn rows(
        &self,
        info: &RunInfo,
        attempts: &Attempts,
        (phases, spans): (&[PhaseSum], &[std::ops::Range<u64>]),
    ) -> Vec<LevelRow> {
        let begun = phases.iter().zip(spans).enumerate().filter(|(_, (it, _))| it.is_begun());
        let of_phase = |(index, (phase, span)): (usize, (&PhaseSum, &std::ops::Range<u64>))| {
            let own: Vec<&LevelPart> =
                self.parts.iter().filter(|part| part.phase == index).collect();
            let row = |sum: &Interval, change: Option<String>, from, to| LevelRow {
                name: phase.info.name.clone(),
                load: usize::from(phase.info.load),
                measured: phase.info.measured,
                change,
                ..level(info, attempts, sum, (from, to))
            };
            if own.is_empty() {
                let Gauges { users_online, connections_open, .. } = phase.sum.gauges;
                let row = row(&phase.sum, None, span.start, span.end);
                return vec![LevelRow { users_online, connections_open, ..row }];
            }
            // As in `add`, a second belongs to one level as a whole.
            let changes = || own.iter().skip(1).map(|part| part.at_ns);
            let seconds = changes().map(|at| at.next_multiple_of(SECOND_NS));
            let seconds = seconds.map(|at| at.clamp(span.start, span.end));
            let begins = std::iter::once(span.start).chain(seconds.clone());
            let spans = begins.zip(seconds.chain([span.end]));
            let rows = own.iter().zip(spans).zip(changes().chain([span.end]));
            let row = |((part, (from, to)), kept_to_ns): ((&&LevelPart, (u64, u64)), u64)| {
                let LevelPart { users_online, connections_open, .. } = **part;
                let row = row(&part.sum, part.change.clone(), from, to);
                LevelRow { users_online, connections_open, kept_to_ns, ..row }
            };
            rows.map(row).collect()
        };
        begun.flat_map(of_phase).filter(|level| !level.lasted.is_zero()).collect()
    }
}

fn level(
    info: &RunInfo,
    attempts: &Attempts,
    sum: &Interval,
    (from_ns, to_ns): (u64, u64),
) -> LevelRow {
    let lasted = Duration::from_nanos(to_ns - from_ns);
    let resources = sum.generator.resources.clone().unwrap_or_default();
    let (steps, _) = rows(info, sum, lasted);
    let total = total_row(info, attempts, sum, lasted);
    LevelRow {
        at_ns: from_ns,
        kept_to_ns: to_ns,
        lasted,
        rate_per_s: per_second(total.begun, lasted),
        opened_per_s: per_second(sum.connections.counts.opened, lasted),
        cores: per_second(resources.cpu.time_ns(), lasted) / 1e9,
        steps: steps.into_iter().filter(|row| row.begun + row.count > 0).collect(),
        total,
        ..LevelRow::default()
    }
}

/// The part of a line that level rows use.
fn counted(interval: &Interval) -> Interval {
    Interval {
        second: interval.second,
        steps: interval.steps.clone(),
        connections: ConnectionsInterval {
            counts: interval.connections.counts.clone(),
            ..ConnectionsInterval::default()
        },
        generator: GeneratorInterval {
            resources: interval.generator.resources.clone(),
            ..GeneratorInterval::default()
        },
        ..Interval::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::event::Event;
    use crate::summary::{LevelRow, Summary};
    use crate::tests::sample;
    use crate::{Collector, Stairs};

    const SECOND_NS: u64 = 1_000_000_000;

    fn amended(at_ns: u64, change: &str) -> Event {
        Event::Amended { at_ns, load: 0, phase: 1, change: change.into() }
    }

    /// Label, seconds and attempts of each level.
    fn told(summary: &Summary) -> Vec<(String, u64, u64)> {
        let row = |level: &LevelRow| {
            (level.label(&summary.info).english(), level.lasted.as_secs(), level.total.count)
        };
        summary.parts.levels.iter().map(row).collect()
    }

    fn expected(of: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
        of.iter().map(|(label, seconds, count)| ((*label).to_string(), *seconds, *count)).collect()
    }

    #[test]
    fn load_changes_divide_a_phase_into_levels() {
        let plain = sample::summary();
        let each = plain.parts.phases[1].count / 10;
        let mut events = sample::events();
        events.insert(3, amended(5 * SECOND_NS, "rate 820"));
        events.insert(4, amended(9 * SECOND_NS + 500_000_000, "users 1500"));
        // Repeated events and other kinds of changes start no level.
        events.insert(5, amended(5 * SECOND_NS, "rate 820"));
        events.insert(6, amended(8 * SECOND_NS, "pause"));
        let (info, intervals) = (sample::info(), sample::intervals());
        let summary = sample::summary_of(info.clone(), &intervals, &events);
        let levels = [
            ("warm-up", 2, plain.parts.phases[0].count),
            ("load", 3, 3 * each),
            ("load, 820/s", 5, 5 * each),
            ("load, 1,500 users", 2, 2 * each),
        ];
        assert_eq!(told(&summary), expected(&levels));
        // During a run, a change arrives after the earlier seconds.
        let mut live = Collector::new(&info);
        for interval in &intervals {
            let now = interval.second * SECOND_NS;
            let is_due = |event: &Event| {
                let at_ns = event.clone().at_ns_mut().map(|at_ns| *at_ns);
                at_ns.is_some_and(|at_ns| at_ns / SECOND_NS == now / SECOND_NS)
            };
            events.iter().filter(|event| is_due(event)).for_each(|event| live.event(event));
            live.interval(interval);
        }
        events.iter().rev().take(2).for_each(|event| live.event(event));
        assert_eq!(told(&live.finish(info)), told(&summary));
    }

    #[test]
    fn each_step_of_a_staircase_is_a_level() {
        let mut info = sample::info();
        info.tables.phases[1].users_planned = Some(250);
        info.tables.phases[1].stairs = Some(Stairs { from: 0, size: 100, every_ns: 3 * SECOND_NS });
        let summary = sample::summary_of(info, &sample::intervals(), &sample::events());
        let each = summary.parts.phases[1].count / 10;
        let levels = [
            ("warm-up", 2, summary.parts.phases[0].count),
            ("load, 100 users", 3, 3 * each),
            ("load, 200 users", 3, 3 * each),
            ("load, 250 users", 4, 4 * each),
        ];
        assert_eq!(told(&summary), expected(&levels));
    }
}
