//! Measurements besides the steps agree with them: how long connections were open, and the counts
//! per address.

use throng_metrics::{
    Census, Ending, Merge as _, ResidenceInterval, SessionInterval, Stage, StageInterval,
    TargetInterval, UserState,
};
use throng_program::OnError;

use super::*;

impl Outcome {
    /// Every established connection has a duration, by the side that ended it.
    pub(super) fn has_residences(&self, seed: u64) {
        let Outcome { sum, .. } = self;
        let times = |of: &dyn Fn(&&ResidenceInterval) -> bool| {
            sum.connections.residence.iter().filter(of).map(|row| row.time.count()).sum::<u64>()
        };
        let mut counters = sum.connections.counts.clone();
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

    /// By second, how many users of the population map are in which state; empty without a map.
    pub(super) fn pictured(&self) -> Vec<(u64, [u64; 6])> {
        let mut intervals: Vec<&Interval> = self.intervals.iter().collect();
        intervals.sort_by_key(|interval| interval.second);
        if intervals.iter().all(|interval| interval.cells.is_empty()) {
            return Vec::new();
        }
        let mut census = Census::default();
        let seconds = intervals.chunk_by(|one, next| one.second == next.second);
        let at_end = seconds.map(|parts| {
            parts.iter().for_each(|interval| census.add(&interval.cells));
            (parts[0].second, census.all())
        });
        at_end.collect()
    }

    /// The population map agrees with the gauges, and no user is left.
    pub(super) fn has_picture(&self, seed: u64) {
        let pictured = self.pictured();
        if let Some((second, last)) = pictured.last() {
            assert_eq!(*last, [0; 6], "seed {seed}: all are gone in second {second}");
        }
        for (second, states) in pictured {
            let parts = || self.intervals.iter().filter(|interval| interval.second == second);
            // Of two phases in a second, the later one has the gauges.
            if parts().any(|part| part.phase != parts().next().map_or(0, |first| first.phase)) {
                continue;
            }
            let sum = |of: fn(&Interval) -> u64| parts().map(of).sum::<u64>();
            let online = sum(|part| part.gauges.users_online);
            let present = sum(|part| part.gauges.users_present);
            let told = (states[UserState::Online as usize], states.iter().sum::<u64>());
            assert_eq!(told, (online, present), "seed {seed}, second {second}: {states:?}");
        }
    }

    /// The counts by address, if there are several.
    fn all_targets(&self) -> TargetInterval {
        let mut all = TargetInterval::default();
        self.sum.parts.targets.iter().for_each(|row| all.merge(row));
        all
    }

    /// Counts of iterations by session.
    pub(super) fn has_sessions(&self, seed: u64) {
        let (rows, all) = (&self.sum.parts.sessions, &self.sum.population);
        if rows.is_empty() {
            return;
        }
        for row in rows {
            let ended = row.finished + row.failed + row.interrupted;
            assert_eq!(row.begun, ended, "seed {seed}: {row:?}");
            assert!(row.time.count() <= row.finished, "seed {seed}: {row:?}");
        }
        let sum = |of: fn(&SessionInterval) -> u64| rows.iter().map(of).sum::<u64>();
        assert_eq!(sum(|row| row.begun), all.iterations_started, "seed {seed}");
        assert_eq!(sum(|row| row.finished), all.iterations_finished, "seed {seed}");
    }

    pub(super) fn has_targets(&self, seed: u64) {
        if self.sum.parts.targets.is_empty() {
            return;
        }
        let (all, connections) = (self.all_targets(), &self.sum.connections.counts);
        assert_eq!(all.begun, all.count + all.interrupted, "seed {seed}: {all:?}");
        assert_eq!(all.connections_attempted, connections.attempted, "seed {seed}");
        assert_eq!(all.connections_opened, connections.opened, "seed {seed}");
        let not_opened = connections.attempted - connections.opened;
        assert!(all.connections_failed <= not_opened, "seed {seed}: {all:?}");
        let total = self.sum.total();
        assert!(all.count <= total.count && all.ok <= total.ok, "seed {seed}: {all:?}");
    }
}

/// Each user has one of two targets.
#[test]
fn two_targets_are_counted_separately() {
    for seed in 1..20 {
        let drive = Drive::Users(Users { to: 20, coming: Coming::AtOnce });
        let mut one = program(
            Scheme::Http,
            vec![session(vec![get(Vec::new())], 0)],
            &[StepKind::Http],
            phase(drive, Some(S)),
        );
        let second = one.targets[0].clone();
        one.targets.push(second);
        one.sessions[0].links[0].targets = Box::new([0, 1]);
        let outcome = run(one, seed, |world| world, http_server(|_| vec![(MS, say(HELLO))]));
        outcome.is_sound(seed);
        let (rows, all, total) =
            (&outcome.sum.parts.targets, outcome.all_targets(), outcome.sum.total());
        assert_eq!(rows.len(), 2);
        assert_eq!((all.begun, all.count, all.ok), (total.begun, total.count, total.ok));
        assert_eq!((all.interrupted, &all.latency), (total.interrupted, &total.latency));
        assert_eq!((all.bytes_in, all.bytes_out), (total.bytes_in, total.bytes_out));
        assert!(rows.iter().all(|row| row.ok > 100), "seed {seed}: {rows:?}");
    }
}

/// One session calls a server that answers after a millisecond, one also pauses, and one fails.
#[test]
fn sessions_are_counted_separately() {
    for seed in 1..20u64 {
        let mut fails = get(vec![status(404)]);
        if let Statement::Http(http) = &mut fails {
            Arc::make_mut(http).failing.then = OnError::Next;
        }
        let codes = [vec![get(Vec::new())], vec![get(Vec::new()), think()], vec![fails]];
        let rate = (seed % 2 == 0).then_some(200.0);
        let drive = Drive::Iterations(Iterations::new(30, rate, None));
        let mut one = program(Scheme::Http, Vec::new(), &[StepKind::Http], phase(drive, Some(S)));
        one.sessions = codes.map(|code| session(code, 0)).to_vec();
        let stop_at = (seed % 3 == 0).then(|| Time::ZERO + 700 * MS);
        let play = Play { stop_at, shards: 1 + seed % 2, ..Play::new(one, seed) };
        let outcome = play.run(|world| world, http_server(|_| vec![(MS, say(HELLO))]));
        outcome.is_sound(seed);
        let rows = &outcome.sum.parts.sessions;
        assert_eq!(rows.iter().map(|row| row.session).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((rows[0].time.count(), rows[0].failed), (rows[0].finished, 0), "seed {seed}");
        assert!(rows[0].finished > 10 && rows[2].failed > 10, "seed {seed}: {rows:?}");
        assert_eq!((rows[2].finished, rows[2].time.count()), (0, 0), "seed {seed}");
        assert!(rows[0].time.value_at(0.5) < rows[1].time.value_at(0.5), "seed {seed}: {rows:?}");
    }
}
