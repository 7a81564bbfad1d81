//! Which machines left their hosts to others while a run went on (`--back-off`).

use throng_base::Said;

use crate::directory::RunInfo;

/// Steps that are told in full.
const KEPT_MAX: usize = 50;

/// A machine that makes less of its part of the load, or more again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackOff {
    pub at_ns: u64,
    /// By its index.
    pub machine: u16,
    /// So much of its part is made from then on.
    pub percent: u8,
    pub detail: Said,
}

/// What is kept of all steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackOffs {
    pub count: u64,
    /// The first of them.
    pub first: Vec<BackOff>,
    /// By machine: the first step, with the least that was made at any time.
    pub machines: Vec<BackOff>,
}

impl BackOffs {
    pub(crate) fn add(&mut self, step: BackOff) {
        self.count += 1;
        match self.machines.iter_mut().find(|known| known.machine == step.machine) {
            Some(known) => known.percent = known.percent.min(step.percent),
            None => self.machines.push(step.clone()),
        }
        if self.first.len() < KEPT_MAX {
            self.first.push(step);
        }
    }
}

/// What people call a machine by its index.
pub fn machine_name(info: &RunInfo, machine: u16) -> String {
    let own = info.machines.get(usize::from(machine)).map(|machine| &machine.name);
    let name = own.or(info.host.hostname.as_ref());
    name.cloned().unwrap_or_else(|| format!("machine {}", u32::from(machine) + 1))
}
