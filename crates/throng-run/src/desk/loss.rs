//! Ends a run early if the target is unreachable.

use std::time::Duration;

use throng_base::{Said, Time};
use throng_metrics::{Interval, StepInterval};
use throng_results::is_connecting;

/// A target is unreachable if no connection succeeds for this time.
const UNREACHABLE_AFTER: Time = Time(3_000_000_000);
/// A target is lost if it responds to no request and accepts no connection for this time. This
/// applies only to a load without a fixed duration.
const LOST_AFTER: Duration = Duration::from_secs(30);

/// Whether connections and steps have reached the target.
#[derive(Debug, Default)]
pub(super) struct Loss {
    attempted: u64,
    opened: u64,
    failed: u64,
    /// Since when there are no responses and no open connections, and new connections fail.
    since: Option<Time>,
}

impl Loss {
    pub(super) fn add(&mut self, interval: &Interval) {
        let steps = || interval.steps.iter();
        self.attempted += interval.connections.counts.attempted;
        self.opened += interval.connections.counts.opened;
        self.failed += steps().map(StepInterval::failed).sum::<u64>();
        let mut causes = steps().flat_map(|step| &step.errors).map(|(cause, _)| *cause);
        let is_alive = interval.gauges.connections_open > 0
            || steps().any(|step| step.ok > 0)
            || !causes.all(is_connecting);
        if is_alive {
            self.since = None;
        } else if steps().any(|step| step.failed() > 0) {
            self.since.get_or_insert(Time::from_secs(interval.second));
        }
    }

    /// Why the run must end, if it must. A load that ends only after a number of iterations would
    /// never end without its target; a load with a fixed duration (`has_end`) continues to its end.
    pub(super) fn ends(&self, now: Time, has_end: bool) -> Option<Said> {
        let is_unreachable = self.attempted > 0 && self.opened == 0 && self.failed > 0;
        if is_unreachable && now >= UNREACHABLE_AFTER {
            return Some(say!(
                "no connection was established in {} s, so the run ends",
                now.second()
            ));
        }
        (!has_end && self.lasts(now) >= LOST_AFTER).then(|| {
            say!(
                "no response and no new connection in {} s, so the run ends",
                self.lasts(now).as_secs()
            )
        })
    }

    fn lasts(&self, now: Time) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use throng_metrics::Cause;

    use super::*;

    #[test]
    fn a_target_is_lost_while_all_connections_fail() {
        let second = |second: u64, ok: u64, errors: &[(Cause, u64)], open: u64| {
            let mut interval = Interval { second, ..Interval::default() };
            let count = ok + errors.iter().map(|(_, n)| n).sum::<u64>();
            let errors = errors.to_vec();
            interval.steps = vec![StepInterval { count, ok, errors, ..StepInterval::default() }];
            interval.gauges.connections_open = open;
            interval
        };
        let refused = [(Cause::ConnectRefused, 4)];
        let lasts = |intervals: &[Interval]| {
            let mut loss = Loss::default();
            intervals.iter().for_each(|interval| loss.add(interval));
            loss.lasts(Time::from_secs(40)).as_secs()
        };
        let good = second(1, 100, &[], 4);
        let torn = second(2, 0, &[(Cause::ClosedEarly, 4), (Cause::ConnectRefused, 1)], 0);
        let [gone, silent] = [second(3, 0, &refused, 0), second(4, 0, &[], 0)];
        assert_eq!(lasts(&[good.clone(), torn.clone()]), 0);
        assert_eq!(lasts(&[good.clone(), torn, gone.clone(), silent.clone()]), 37);
        assert_eq!(lasts(&[good, silent]), 0, "nobody tried: users think");
        assert_eq!(lasts(&[gone.clone(), second(5, 0, &refused, 1)]), 0, "one is still there");
        assert_eq!(lasts(&[gone, second(5, 1, &refused, 0)]), 0, "one was answered");
    }
}
