//! Computes the progress of a run: its phase or, with several loads, the phases that are running.

use std::time::Duration;

use throng_base::Time;
use throng_load::plan;
use throng_program::Program;
use throng_results::RunInfo;
use throng_results::terminal::Progress;

use crate::running::Running;

pub(super) fn progress(
    program: &Program,
    info: &RunInfo,
    running: &Running,
    now: Time,
) -> Option<Progress> {
    match running.loads() {
        [running] => of_phase(info, running.unwrap_or((0, Time::ZERO)), now),
        _ => Some(of_loads(program, info, running, now)),
    }
}

/// Progress of the only load.
fn of_phase(info: &RunInfo, (number, begun): (u16, Time), now: Time) -> Option<Progress> {
    let phases = &info.tables.phases;
    let phase = phases.get(usize::from(number))?;
    let passed = now - begun;
    let planned = phase.planned_ns.map(Duration::from_nanos);
    let rest = phases.iter().skip(usize::from(number) + 1);
    let rest: Option<u64> = rest.map(|phase| phase.planned_ns).sum();
    let left = planned.map(|planned| planned.saturating_sub(passed));
    Some(Progress {
        phase: phase.name.clone(),
        number: usize::from(number) + 1,
        phases: phases.len(),
        share: planned.map(|planned| passed.as_secs_f64() / planned.as_secs_f64().max(1e-9)),
        left: left.and_then(|left| Some(left + Duration::from_nanos(rest?))),
        elapsed: now - Time::ZERO,
    })
}

/// Progress of all loads: which are running, and how much of the run has passed.
fn of_loads(program: &Program, info: &RunInfo, running: &Running, now: Time) -> Progress {
    let loads = info.tables.loads.iter().zip(running.loads());
    let running = loads.filter(|(_, running)| running.is_some());
    let names: Vec<&str> = running.map(|(name, _)| name.as_str()).collect();
    let ends = plan(&program.loads);
    let ends = ends.iter().map(|one| Some(one.begin.saturating_add(one.length?)));
    let end = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
    let elapsed = now - Time::ZERO;
    Progress {
        phase: names.join(", "),
        number: 1,
        phases: 1,
        share: end.map(|end| elapsed.as_secs_f64() / end.as_secs_f64().max(1e-9)),
        left: end.map(|end| end.saturating_sub(elapsed)),
        elapsed,
    }
}
