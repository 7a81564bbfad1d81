//! What part of its load one machine makes for now, where it has to leave the rest of itself to
//! others. All shards of that machine hear of it at the same instant; those of others do not.

use throng_program::{Drive, Iterations, Phase, Rate};

#[derive(Clone, Debug)]
pub(crate) struct Portion {
    of: f64,
    /// By phase: what it drives where all of it is made.
    whole: Vec<Drive>,
}

impl Portion {
    /// All of it.
    pub(crate) fn whole(phases: &[Phase]) -> Portion {
        Portion { of: 1.0, whole: phases.iter().map(|phase| phase.drive.clone()).collect() }
    }

    /// So many users would stay if all of it were made; `present` do.
    pub(crate) fn present(&self, present: u64, current: usize) -> u64 {
        let users = |drive: &Drive| match drive {
            Drive::Users(users) => Some(users.to),
            Drive::Iterations(iterations) => Some(iterations.users),
            Drive::Arrivals(_) | Drive::Hold => None,
        };
        let level = self.whole.iter().take(current + 1).rev().find_map(users);
        if self.is_whole() { present } else { level.unwrap_or(present) }
    }

    /// From now on this part is made; `behind` are the last phases, which have not begun.
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

    /// The phase as it is where all of it is made.
    pub(crate) fn phase_of_whole(&self, phase: &Phase, current: usize) -> Phase {
        match &phase.drive {
            // What is left of it gets less with every change.
            Drive::Iterations(Iterations { total: Some(_), .. }) => phase.clone(),
            _ => Phase { drive: self.whole[current].clone(), ..phase.clone() },
        }
    }

    /// The running phase drives this from now on, if all of it is made; what it comes to.
    pub(crate) fn amended(&mut self, whole: Drive, current: usize) -> Drive {
        let part = self.part(&whole);
        self.whole[current] = whole;
        part
    }

    #[allow(clippy::float_cmp)] // It is set to 1, not reckoned.
    fn is_whole(&self) -> bool {
        self.of == 1.0
    }

    fn part(&self, whole: &Drive) -> Drive {
        let mut part = whole.clone();
        let users = |users: u64| (users as f64 * self.of).round() as u64;
        match &mut part {
            _ if self.is_whole() => {}
            // Each of them is somebody's, so that all together are exact.
            Drive::Iterations(Iterations { total: Some(_), .. }) | Drive::Hold => {}
            Drive::Users(all) => all.to = users(all.to),
            Drive::Iterations(iterations) => {
                iterations.rate = iterations.rate.as_ref().map(|rate| self.rate(rate));
                iterations.users = match iterations.rate {
                    // How many are needed for that depends on the target.
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
