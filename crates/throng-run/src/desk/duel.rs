//! Runs a duel: compares the results of both sides, and ends the run once they are precise enough.

use throng_base::{Clock, Side};
use throng_metrics::duel::{DuelEnd, Outcome};
use throng_metrics::{Duel, Interval};
use throng_results::compare::{Plan, Referee};
use throng_results::{Event, RunInfo};

use super::Desk;
use crate::Conduct;
use crate::desk::cpu::Sampler;
use crate::wire::Order;

pub(super) struct DuelControl {
    referee: Referee,
    sampler: Sampler,
    ended_by: DuelEnd,
}

impl DuelControl {
    pub(super) fn add(&mut self, interval: &Interval) {
        self.referee.add(interval);
    }

    /// Starts the comparison if the run is a duel.
    pub(super) fn begin(
        conduct: &Conduct<'_>,
        info: &RunInfo,
        clock: &Clock,
    ) -> Option<DuelControl> {
        let duel = conduct.duel.as_ref()?;
        let Plan { seed, slice_s, .. } = duel.plan;
        let side = move |second: u64| Side::of_slice(seed, second / slice_s);
        let sampler = Sampler::start(clock, [&conduct.program, &duel.program], side);
        let referee = Referee::new(info, duel.plan.clone());
        Some(DuelControl { referee, sampler, ended_by: DuelEnd::Running })
    }

    /// The result at the end of the run, either as planned or `stopped`.
    pub(super) fn finish(mut self, stopped: bool) -> Duel {
        self.take_cpu();
        if !stopped {
            self.ended_by = DuelEnd::Budget;
        }
        self.referee.duel(self.ended_by)
    }

    fn take_cpu(&mut self) {
        for (second, cpu) in self.sampler.taken() {
            self.referee.add_cpu(second, cpu);
        }
    }
}

impl Desk<'_> {
    /// All results of a second have arrived.
    pub(super) fn dueled(&mut self, second: u64) {
        let Some(ring) = self.duel.as_mut().filter(|_| self.stops == 0) else { return };
        ring.take_cpu();
        let has_pair = ring.referee.second(second);
        if let Some(side) = ring.referee.silent() {
            // Without responses from one side, there is nothing to compare.
            let name = side.name();
            let why = say!("no attempt succeeded on side {name}, so the duel ends");
            return self.give_up(why, self.posts.clock.now());
        }
        if !has_pair {
            return;
        }
        let duel = ring.referee.duel(DuelEnd::Running);
        let is_decided = ring.referee.is_decided(&duel);
        if is_decided {
            ring.ended_by = DuelEnd::Within;
        }
        let (verdict, is_worth_telling) = (duel.verdict(), duel.outcome() != Outcome::TooShort);
        let pairs = duel.pairs;
        let at_ns = self.posts.clock.now().as_nanos();
        self.event(&Event::Duel { at_ns, duel: Box::new(duel) });
        if is_worth_telling {
            self.say(say!("{pairs} pairs: {verdict}"));
        }
        if is_decided {
            self.stops = 1;
            self.send_order(Order::Stop);
        }
    }
}
