//! Which phase of each load goes on.

use std::time::Duration;

use throng_base::Time;
use throng_program::{Load, Program, Start};

pub(super) struct Running {
    /// By load: its running phase by its number in the run, and when that began.
    loads: Vec<Option<(u16, Time)>>,
    /// By load: the number of its first phase in the run, and how many it has.
    phases: Vec<(u16, usize)>,
}

impl Running {
    pub(super) fn new(program: &Program) -> Running {
        let firsts = program.first_phases().into_iter();
        let counts = program.loads.iter().map(|load| load.phases.len());
        let phases: Vec<(u16, usize)> = firsts.zip(counts).collect();
        // What begins with the run does so before it is told.
        let begins = |load: &Load| load.start == Start::At(Duration::ZERO);
        let loads = program.loads.iter().zip(&phases);
        let loads = loads.map(|(load, (first, _))| begins(load).then_some((*first, Time::ZERO)));
        Running { loads: loads.collect(), phases }
    }

    pub(super) fn begun(&mut self, phase: u16, at: Time) {
        let load = self.load_of(phase);
        self.loads[load] = Some((phase, at));
    }

    /// With the last phase of one of several loads the load is over.
    pub(super) fn ended(&mut self, phase: u16) {
        let load = self.load_of(phase);
        let (first, count) = self.phases[load];
        if usize::from(phase - first) + 1 == count && self.loads.len() > 1 {
            self.loads[load] = None;
        }
    }

    /// The load of a phase; what ends after the last phase counts to it.
    pub(super) fn load_of(&self, phase: u16) -> usize {
        let behind = self.phases.partition_point(|(first, _)| *first <= phase);
        behind.saturating_sub(1)
    }

    /// The running phase of a load, counted from its first.
    pub(super) fn phase_within(&self, load: usize) -> u16 {
        let (first, _) = self.phases[load];
        self.loads[load].map_or(0, |(phase, _)| phase - first)
    }

    /// By load: its running phase by its number in the run, and when that began.
    pub(super) fn loads(&self) -> &[Option<(u16, Time)>] {
        &self.loads
    }
}
