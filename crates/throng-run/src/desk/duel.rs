//! A duel: compares the figures of both sides, and ends the run once they are precise enough.

use throng_base::Side;
use throng_metrics::Interval;
use throng_metrics::duel::{DuelEnd, Outcome};
use throng_results::Event;
use throng_results::compare::{Plan, Referee};

use super::Desk;
use crate::desk::cpu::Sampler;
use crate::wire::Order;

/// See the module's description.
pub(super) struct Ring {
    referee: Referee,
    sampler: Sampler,
    ended_by: DuelEnd,
}

impl Ring {
    pub(super) fn add(&mut self, interval: &Interval) {
        self.referee.add(interval);
    }

    fn take_cpu(&mut self) {
        for (second, cpu) in self.sampler.taken() {
            self.referee.add_cpu(second, cpu);
        }
    }
}

impl Desk<'_> {
    pub(super) fn begin_duel(&mut self) {
        let Some(duel) = &self.conduct.duel else { return };
        let Plan { seed, slice_s, .. } = duel.plan;
        let side = move |second: u64| Side::of_slice(seed, second / slice_s);
        let programs = [&self.conduct.program, &duel.program];
        let sampler = Sampler::start(&self.posts.clock, programs, side);
        let referee = Referee::new(&self.info, duel.plan.clone());
        self.ring = Some(Ring { referee, sampler, ended_by: DuelEnd::Running });
    }

    /// All figures of a second have come.
    pub(super) fn dueled(&mut self, second: u64) {
        let Some(ring) = self.ring.as_mut().filter(|_| self.stops == 0) else { return };
        ring.take_cpu();
        let has_pair = ring.referee.second(second);
        if let Some(side) = ring.referee.silent() {
            return self.end_one_sided(side);
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

    /// Without answers of one side there is nothing to compare.
    fn end_one_sided(&mut self, side: Side) {
        let at_ns = self.posts.clock.now().as_nanos();
        let name = side.name();
        self.stops = 1;
        let text = say!("no attempt succeeded on side {name}, so the duel ends");
        self.event(&Event::Notice { at_ns, text: text.english() });
        self.say(text);
        self.event(&Event::TargetLost { at_ns });
        self.send_order(Order::Stop);
    }

    /// Records what is known by now.
    pub(super) fn end_duel(&mut self) {
        let Some(mut ring) = self.ring.take() else { return };
        ring.take_cpu();
        if self.stops == 0 {
            ring.ended_by = DuelEnd::Budget;
        }
        let (at_ns, duel) = (self.ended_ns, Box::new(ring.referee.duel(ring.ended_by)));
        self.event(&Event::Duel { at_ns, duel });
    }
}
