//! The portion of its load that one machine generates while it backs off. All shards of that
//! machine learn of a change at the same time; those of other machines do not.

use throng_program::{Drive, Iterations, Phase, Rate};

#[derive(Clone, Debug)]
pub(crate) struct Portion {
    of: f64,
    /// By phase: its drive at the full portion.
    whole: Vec<Drive>,
}

impl Portion {
    /// The full portion.
    pub(crate) fn whole(phases: &[Phase]) -> Portion {
        Portion { of: 1.0, whole: phases.iter().map(|phase| phase.drive.clone()).collect() }
    }

    /// The number of users at the full portion, given that `present` stay now.
    pub(crate) fn present(&self, present: u64, current: usize) -> u64 {
        let users = |drive: &Drive| match drive {
            Drive::Users(users) => Some(users.to),
            Drive::Iterations(iterations) => Some(iterations.users),
            Drive::Arrivals(_) | Drive::Hold => None,
        };
        let level = self.whole.iter().take(current + 1).rev().find_map(users);
        if self.is_whole() { present } else { level.unwrap_or(present) }
    }

    /// Sets the portion; `behind` are the phases that have not started.
    pub(crate) fn set<'a>(
        &mut self,
        of: f64,
        behind: impl ExactSizeIterator<Item = &'a mut Phase>,
    ) {
        self.of = of;
        let first = self.whole.len() - behind.len();
        for (phase, whole) in behind.zip(&self.whole[first..]) {
            phase.drive = self.part(whole);
        }
    }

    /// The phase at the full portion.
    pub(crate) fn phase_of_whole(&self, phase: &Phase, current: usize) -> Phase {
        match &phase.drive {
            // The remaining number changes with every amendment.
            Drive::Iterations(Iterations { total: Some(_), .. }) => phase.clone(),
            _ => Phase { drive: self.whole[current].clone(), ..phase.clone() },
        }
    }

    /// Changes the full drive of the current phase, and returns the resulting one.
    pub(crate) fn amended(&mut self, whole: Drive, current: usize) -> Drive {
        let part = self.part(&whole);
        self.whole[current] = whole;
        part
    }

    #[allow(clippy::float_cmp)] // It is assigned 1, not computed.
    fn is_whole(&self) -> bool {
        self.of == 1.0
    }

    fn part(&self, whole: &Drive) -> Drive {
        let mut part = whole.clone();
        let users = |users: u64| (users as f64 * self.of).round() as u64;
        match &mut part {
            _ if self.is_whole() => {}
            // Each iteration is assigned to a shard, so that the total is exact.
            Drive::Iterations(Iterations { total: Some(_), .. }) | Drive::Hold => {}
            Drive::Users(all) => all.to = users(all.to),
            Drive::Iterations(iterations) => {
                iterations.rate = iterations.rate.as_ref().map(|rate| self.rate(rate));
                iterations.users = match iterations.rate {
                    // The number needed for the rate depends on the target.
                    Some(_) => iterations.users,
                    None => users(iterations.users),
                };
            }
            Drive::Arrivals(arrivals) => arrivals.rate = self.rate(&arrivals.rate),
        }
        part
    }

    fn rate(&self, rate: &Rate) -> Rate {
        rate.scaled(1.0, self.of)
    }
}
