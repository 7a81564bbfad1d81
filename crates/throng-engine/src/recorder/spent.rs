//! Where the time of one attempt went, from its measurements and those of its connection.

use std::time::Duration;

use throng_metrics::{Chain, Stage};

/// Duration of each stage of opening a connection; zero for a skipped stage.
pub(crate) type Times = [Duration; Stage::ALL.len()];

/// The stages of a connection that was opened for an attempt, in microseconds: at most 71 minutes
/// each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpeningTimes {
    /// Since the attempt was due.
    waiting: u32,
    resolve: u32,
    connect: u32,
    proxy: u32,
    tls: u32,
    upgrade: u32,
    resumed: Option<bool>,
}

/// The times of an attempt besides those of its connection.
pub(crate) struct Spent {
    /// From when it was due until its request was handed over.
    pub(crate) waited: Duration,
    /// Since it was due.
    pub(crate) first_byte: Option<Duration>,
    /// Since its last byte arrived.
    pub(crate) read: Duration,
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl OpeningTimes {
    pub(crate) fn new(waiting: Duration, times: &Times, resumed: Option<bool>) -> OpeningTimes {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let of = |stage: Stage| micros(times[stage as usize]);
        OpeningTimes {
            waiting: micros(waiting),
            resolve: of(Stage::Resolve),
            connect: of(Stage::Connect),
            proxy: of(Stage::Proxy),
            tls: of(Stage::Tls),
            upgrade: of(Stage::Upgrade),
            resumed,
        }
    }

    fn chain(self) -> Chain {
        let ns = |micros: u32| u64::from(micros) * 1_000;
        Chain {
            waiting_ns: ns(self.waiting),
            resolve_ns: ns(self.resolve),
            connect_ns: ns(self.connect),
            proxy_ns: ns(self.proxy),
            tls_ns: ns(self.tls),
            upgrade_ns: ns(self.upgrade),
            tls_resumed: self.resumed,
            opened: true,
            ..Chain::default()
        }
    }
}

impl Spent {
    /// The stages of an attempt with this response time.
    pub(crate) fn chain(&self, opening: Option<OpeningTimes>, latency_ns: u64) -> Chain {
        let waited = nanos(self.waited).min(latency_ns);
        let mut chain = match opening {
            Some(opening) => opening.chain(),
            None => Chain { waiting_ns: waited, ..Chain::default() },
        };
        let first = self.first_byte.map_or(latency_ns, nanos).min(latency_ns);
        // Each stage starts where the previous one ends.
        chain.send_ns = waited.saturating_sub(chain.response_ns());
        chain.first_byte_ns = first.saturating_sub(chain.response_ns());
        chain.last_byte_ns = latency_ns.saturating_sub(chain.response_ns());
        chain.read_ns = nanos(self.read);
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn spent(waited: u64, first_byte: Option<u64>) -> Spent {
        Spent { waited: MS(waited), first_byte: first_byte.map(MS), read: MS(1) }
    }

    #[test]
    fn the_stages_of_an_attempt_add_up_to_its_response_time() {
        let mut times = Times::default();
        times[Stage::Connect as usize] = MS(20);
        times[Stage::Tls as usize] = MS(5);
        let opening = OpeningTimes::new(MS(3), &times, Some(true));
        let chain = spent(30, Some(70)).chain(Some(opening), 80_000_000);
        let of = [3, 20, 5, 2, 40, 10, 1].map(|ms| ms * 1_000_000);
        let stages: Vec<u64> = chain.stages().into_iter().map(|(_, ns)| ns).collect();
        assert_eq!(stages.into_iter().filter(|ns| *ns > 0).collect::<Vec<_>>(), of);
        assert_eq!((chain.response_ns(), chain.opened), (80_000_000, true));
        assert_eq!(chain.tls_resumed, Some(true));
    }

    #[test]
    fn an_open_connection_has_only_the_wait_and_response_stages() {
        let chain = spent(4, None).chain(None, 9_000_000);
        assert_eq!((chain.waiting_ns, chain.first_byte_ns), (4_000_000, 5_000_000));
        assert_eq!(
            (chain.response_ns(), chain.opened, chain.tls_resumed),
            (9_000_000, false, None)
        );
    }
}
