//! Yields the host to other programs (`--back-off`): while they use more than a limit for some
//! time, this generator reduces its part of the load; afterwards, it slowly increases it again.
//! Without I/O: a reading goes in, the portion to generate comes out.
//!
//! The use of other programs does not depend on ours, so the control loop cannot oscillate.

use std::time::Duration;

use throng_base::{Said, Time};

/// Usage must exceed the limit for this time before the load is reduced.
const OVER_TIME: Duration = Duration::from_secs(3);
/// The load increases by one step each time that others were calm for this time.
const CALM_TIME: Duration = Duration::from_secs(10);
/// Others are calm below this share of the limit.
const CALM_SHARE: f64 = 0.8;
/// Programs that wait for memory for a larger share of their time are slowed down.
const STALL_MAX: f64 = 0.10;
const STEP_BACK_PERCENT: u8 = 10;
/// Minimum portion: without any load, the test would be a different one.
const PERCENT_MIN: u8 = 10;

/// Usage by other programs, read once a second; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Others {
    /// Share of all processors of the host, 0 to 1.
    pub(crate) cpu: Option<f64>,
    /// Share of the time, 0 to 1, in which some program of the host waited for memory.
    pub(crate) memory_stall: Option<f64>,
}

/// The new portion of this machine's part of the load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Portion {
    pub(crate) percent: u8,
    /// The reason.
    pub(crate) detail: Said,
}

impl Portion {
    pub(crate) fn share(&self) -> f64 {
        f64::from(self.percent) / 100.0
    }
}

#[derive(Debug)]
pub(crate) struct Polite {
    cpu_max: f64,
    percent: u8,
    /// Since when others exceed the limit, and since when they are calm. Both restart with each
    /// step.
    over: Option<Time>,
    calm: Option<Time>,
}

impl Polite {
    /// `cpu_max` is the share of the host's processors that others may use before this machine
    /// backs off.
    pub(crate) fn new(cpu_max: f64) -> Polite {
        Polite { cpu_max, percent: 100, over: None, calm: None }
    }

    pub(crate) fn see(&mut self, others: &Others, now: Time) -> Option<Portion> {
        // Ignore a second without readings.
        if others.cpu.is_none() && others.memory_stall.is_none() {
            return None;
        }
        let cpu = others.cpu.unwrap_or(0.0) / self.cpu_max;
        let stall = others.memory_stall.unwrap_or(0.0) / STALL_MAX;
        let worst = cpu.max(stall);
        let over = worst > 1.0;
        let calm = worst < CALM_SHARE;
        let since = |since: Option<Time>, is_so: bool| is_so.then(|| since.unwrap_or(now));
        (self.over, self.calm) = (since(self.over, over), since(self.calm, calm));
        let lasts = |since: Option<Time>, time| since.is_some_and(|at| now.since(at) >= time);
        let percent = match (lasts(self.over, OVER_TIME), lasts(self.calm, CALM_TIME)) {
            (true, _) => (self.percent / 2).max(PERCENT_MIN),
            (_, true) => (self.percent + STEP_BACK_PERCENT).min(100),
            _ => return None,
        };
        (self.over, self.calm) = (self.over.map(|_| now), self.calm.map(|_| now));
        if std::mem::replace(&mut self.percent, percent) == percent {
            return None;
        }
        let of_hundred = |share: f64| (share * 100.0).round();
        let detail = match (over, stall > cpu) {
            (false, _) => say!("other programs are no longer busy"),
            (true, true) => say!(
                "programs on this host wait for memory {} % of the time",
                of_hundred(others.memory_stall.unwrap_or(0.0))
            ),
            (true, false) => say!(
                "other programs use {} % of this host's processors; --back-off is {} %",
                of_hundred(others.cpu.unwrap_or(0.0)),
                of_hundred(self.cpu_max)
            ),
        };
        Some(Portion { percent, detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The portions and their reasons, with the second from which they apply.
    fn portions(polite: &mut Polite, seconds: impl IntoIterator<Item = Others>) -> Vec<String> {
        let mut told = Vec::new();
        for (second, others) in (0..).zip(seconds) {
            let portion = polite.see(&others, Time::from_secs(second));
            told.extend(
                portion.map(|it| format!("{second}: {} % {}", it.percent, it.detail.english())),
            );
        }
        told
    }

    fn cpu(share: f64) -> Others {
        Others { cpu: Some(share), memory_stall: Some(0.0) }
    }

    #[test]
    fn load_is_reduced_while_others_are_busy_and_slowly_restored() {
        let mut polite = Polite::new(0.5);
        let seconds = std::iter::repeat_n(cpu(0.2), 5)
            .chain(std::iter::repeat_n(cpu(0.9), 20))
            .chain(std::iter::repeat_n(cpu(0.1), 120));
        let told = portions(&mut polite, seconds);
        let busy = "other programs use 90 % of this host's processors; --back-off is 50 %";
        let wanted: Vec<String> = [(8, 50), (11, 25), (14, 12), (17, 10)]
            .map(|(second, percent)| format!("{second}: {percent} % {busy}"))
            .into_iter()
            .chain((1..=9).map(|step| {
                format!(
                    "{}: {} % other programs are no longer busy",
                    25 + 10 * step,
                    10 + 10 * step
                )
            }))
            .collect();
        assert_eq!(told, wanted);
    }

    #[test]
    fn short_peaks_and_usage_near_the_limit_change_nothing() {
        let mut polite = Polite::new(0.5);
        let peaks = (0..60).map(|second| cpu(if second % 4 < 3 { 0.9 } else { 0.3 }));
        assert_eq!(portions(&mut polite, peaks), [""; 0]);
        let mut polite = Polite::new(0.5);
        let near = (0..60).map(|second| cpu(if second < 5 { 0.9 } else { 0.45 }));
        assert_eq!(portions(&mut polite, near).len(), 1, "it stays where it is");
        let mut polite = Polite::new(0.5);
        assert_eq!(portions(&mut polite, [Others::default(); 60]), [""; 0], "nobody knows");
    }

    #[test]
    fn waiting_for_memory_counts_as_busy() {
        let mut polite = Polite::new(0.9);
        let others = Others { cpu: Some(0.2), memory_stall: Some(0.4) };
        let told = portions(&mut polite, [others; 4]);
        assert_eq!(told, ["3: 50 % programs on this host wait for memory 40 % of the time"]);
    }
}
