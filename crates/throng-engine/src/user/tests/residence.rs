//! How long connections were there: as many times as ends were counted.

use throng_metrics::{Ending, ResidenceInterval, Stage, StageInterval};

use super::*;

impl Outcome {
    /// Every connection that was established has its time, by who ended it.
    pub(super) fn has_residences(&self, seed: u64) {
        let Outcome { sum, .. } = self;
        let times = |of: &dyn Fn(&&ResidenceInterval) -> bool| {
            sum.residence.iter().filter(of).map(|row| row.time.count()).sum::<u64>()
        };
        let mut counters = sum.connections.clone();
        for ending in Ending::ALL {
            let counted = *ending.of(&mut counters);
            assert_eq!(times(&|row| row.ended == ending), counted, "seed {seed}: {ending:?}");
        }
        assert_eq!(times(&|row| !row.unopened), counters.opened, "seed {seed}: {counters:?}");
        let connect = sum.stage(Stage::Connect).cloned();
        let connect = connect.unwrap_or_else(|| StageInterval::new(Stage::Connect));
        let unanswered = connect.errors.iter().find(|(cause, _)| *cause == Cause::ConnectTimeout);
        let ended = connect.ok + unanswered.map_or(0, |(_, count)| *count);
        assert_eq!(times(&|row| row.unopened), ended - counters.opened, "seed {seed}: {connect:?}");
    }
}
