//! The current phase of each load.

use std::time::Duration;

use throng_base::Time;
use throng_program::{Load, Program, Start};

pub(crate) struct Running {
    /// By load: the number in the run of its current phase, and the start of that phase.
    loads: Vec<Option<(u16, Time)>>,
    /// By load: the number in the run of its first phase, and its number of phases.
    phases: Vec<(u16, usize)>,
    /// By phase: its length, if known.
    times: Vec<Option<Duration>>,
}

impl Running {
    pub(crate) fn new(program: &Program) -> Running {
        let firsts = program.first_phases().into_iter();
        let counts = program.loads.iter().map(|load| load.phases.len());
        let phases: Vec<(u16, usize)> = firsts.zip(counts).collect();
        // Loads that start with the run are running before their first message.
        let begins = |load: &Load| load.start == Start::At(Duration::ZERO);
        let loads = program.loads.iter().zip(&phases);
        let loads = loads.map(|(load, (first, _))| begins(load).then_some((*first, Time::ZERO)));
        let all = program.loads.iter().flat_map(|load| &load.phases);
        let times = all.map(|phase| phase.time).collect();
        Running { loads: loads.collect(), phases, times }
    }

    pub(crate) fn begun(&mut self, phase: u16, at: Time) {
        let load = self.load_of(phase);
        self.loads[load] = Some((phase, at));
    }

    /// A load with several parallel loads ends with its last phase.
    pub(crate) fn ended(&mut self, phase: u16) {
        let load = self.load_of(phase);
        let (first, count) = self.phases[load];
        if usize::from(phase - first) + 1 == count && self.loads.len() > 1 {
            self.loads[load] = None;
        }
    }

    /// The load of a phase. What ends after the last phase counts toward it.
    pub(crate) fn load_of(&self, phase: u16) -> usize {
        let behind = self.phases.partition_point(|(first, _)| *first <= phase);
        behind.saturating_sub(1)
    }

    /// The phase of a load at a time, and its start. A phase's start is reported up to a second
    /// late; until then, the planned time applies.
    pub(crate) fn at(&self, load: usize, at: Time) -> Option<(u16, Time)> {
        let (mut phase, mut begun) = self.loads[load]?;
        let (first, count) = self.phases[load];
        while usize::from(phase - first) + 1 < count
            && let Some(time) = self.times[usize::from(phase)]
            && begun + time <= at
        {
            (phase, begun) = (phase + 1, begun + time);
        }
        Some((phase, begun))
    }

    /// The number of a phase within its load.
    pub(crate) fn within(&self, load: usize, phase: u16) -> usize {
        usize::from(phase - self.phases[load].0)
    }

    /// The number of a load's current phase within the load.
    pub(crate) fn phase_within(&self, load: usize) -> u16 {
        let (first, _) = self.phases[load];
        self.loads[load].map_or(0, |(phase, _)| phase - first)
    }

    /// By load: the number in the run of its current phase, and the start of that phase.
    pub(crate) fn loads(&self) -> &[Option<(u16, Time)>] {
        &self.loads
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Source;
    use throng_scenario::{CompileOptions, compile};

    use super::*;

    #[test]
    fn a_phase_is_known_before_it_is_reported() {
        let text = "target: http://127.0.0.1:1\nsessions: {a: {steps: [{http: GET /}]}}\n\
                    load: [{users: 1, for: 2s}, {for: 3s}, {iterations: 5, users: 1}]\n";
        let options = CompileOptions::of_process(Vec::new(), "".into());
        let compiled = compile(&Source::new("it.yaml", text), &options);
        let mut running = Running::new(&compiled.unwrap_or_else(|told| panic!("{told:?}")).0);
        let at = |running: &Running, ms: u64| {
            let (phase, begun) = running.at(0, Time(ms * 1_000_000)).unwrap();
            (phase, begun.as_nanos() / 1_000_000)
        };
        assert_eq!(at(&running, 1_999), (0, 0));
        assert_eq!(at(&running, 2_000), (1, 2_000));
        assert_eq!(at(&running, 60_000), (2, 5_000), "the last phase has no end");
        // The first phase was ended early.
        running.begun(1, Time(700_000_000));
        assert_eq!(at(&running, 3_699), (1, 700));
        assert_eq!(at(&running, 3_700), (2, 3_700));
    }
}
