//! Deliberate faults of deliveries and presence, exact over all workers: a common counter numbers
//! the deliveries.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args, Command};
use throng_base::Said;
use throng_base::flags::{count, duration};

use crate::sums::lock;

/// Which deliveries fail, and which joins are forgotten. A delivery is one message to one open
/// connection. If several faults apply, the first of these is used.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Deliveries (chat, push, mqtt)")]
pub struct FaultOptions {
    /// Drop every N-th delivery: `10k`
    #[arg(long, value_name = "N", value_parser = count)]
    pub lose_every: Option<u64>,
    /// Corrupt the packet type of every N-th delivery
    #[arg(long, value_name = "N", value_parser = count)]
    pub garbage_every: Option<u64>,
    /// Write every N-th delivery twice
    #[arg(long, value_name = "N", value_parser = count)]
    pub twice_every: Option<u64>,
    /// Write every N-th delivery late
    #[arg(long, value_name = "N", value_parser = count)]
    pub late_every: Option<u64>,
    /// Delay of late deliveries
    #[arg(long, value_parser = duration, default_value = "3s")]
    pub late_by: Duration,
    /// Swap every N-th delivery with the next one to the same user
    #[arg(long, value_name = "N", value_parser = count)]
    pub swap_every: Option<u64>,
    /// Confirm every N-th login or subscription, then forget it
    #[arg(long, value_name = "N", value_parser = count)]
    pub forget_every: Option<u64>,
}

impl Default for FaultOptions {
    fn default() -> FaultOptions {
        not_given()
    }
}

/// The options without flags.
pub(crate) fn not_given<T: Args>() -> T {
    let command = T::augment_args(Command::new("target").no_binary_name(true));
    let matches = command.get_matches_from([""; 0]);
    T::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

impl FaultOptions {
    /// Each interval by its name. Those of deliveries are first, in the order of [`MISHAPS`].
    pub(crate) fn intervals(&mut self) -> [(&'static str, &mut Option<u64>); 6] {
        [
            ("lose_every", &mut self.lose_every),
            ("garbage_every", &mut self.garbage_every),
            ("twice_every", &mut self.twice_every),
            ("late_every", &mut self.late_every),
            ("swap_every", &mut self.swap_every),
            ("forget_every", &mut self.forget_every),
        ]
    }

    /// Whether any faults affect deliveries.
    fn touch_deliveries(mut self) -> bool {
        self.intervals().iter().zip(MISHAPS).any(|((_, every), _)| every.is_some())
    }

    pub(crate) fn any(mut self) -> bool {
        self.intervals().iter().any(|(_, every)| every.is_some())
    }

    /// Checks for impossible values.
    pub(crate) fn fault(mut self) -> Option<Said> {
        if self.intervals().iter().any(|(_, every)| **every == Some(0)) {
            return Some(say!("the interval between faults must be at least 1"));
        }
        let late = self.late_every.is_some() && self.late_by.is_zero();
        late.then_some(say!("the delay of late deliveries must be more than 0"))
    }
}

/// The fate of one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    None,
    Lose,
    Garble,
    Twice,
    Late,
    Swap,
}

/// The faults of a server, which can change at runtime, and their counters.
#[derive(Debug)]
pub(crate) struct Faults {
    options: Mutex<FaultOptions>,
    touch_deliveries: AtomicBool,
    deliveries: AtomicU64,
    joins: AtomicU64,
    forgotten: AtomicU64,
}

/// If several apply, the first one happens.
const MISHAPS: [Mishap; 5] =
    [Mishap::Lose, Mishap::Garble, Mishap::Twice, Mishap::Late, Mishap::Swap];

impl Faults {
    pub(crate) fn new(options: FaultOptions) -> Faults {
        Faults {
            options: Mutex::new(options),
            touch_deliveries: AtomicBool::new(options.touch_deliveries()),
            deliveries: AtomicU64::new(0),
            joins: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
        }
    }

    /// Changes the faults; counters continue.
    pub(crate) fn set(&self, options: FaultOptions) {
        *lock(&self.options) = options;
        self.touch_deliveries.store(options.touch_deliveries(), Ordering::Relaxed);
    }

    /// The current faults.
    pub(crate) fn options(&self) -> FaultOptions {
        *lock(&self.options)
    }

    /// Whether deliveries must be counted individually.
    pub(crate) fn touch_deliveries(&self) -> bool {
        self.touch_deliveries.load(Ordering::Relaxed)
    }

    /// Counts a delivery to an open connection, and returns its fate.
    pub(crate) fn delivery(&self) -> Mishap {
        let number = self.deliveries.fetch_add(1, Ordering::Relaxed) + 1;
        let mut options = self.options();
        let mut all = options.intervals().into_iter().zip(MISHAPS);
        let hit = all.find(|((_, every), _)| every.is_some_and(|n| number.is_multiple_of(n)));
        hit.map_or(Mishap::None, |(_, mishap)| mishap)
    }

    /// Counts a join, and returns whether to forget it.
    pub(crate) fn forgets(&self) -> bool {
        let Some(every) = self.options().forget_every else { return false };
        let number = self.joins.fetch_add(1, Ordering::Relaxed) + 1;
        let forgets = number.is_multiple_of(every);
        self.forgotten.fetch_add(u64::from(forgets), Ordering::Relaxed);
        forgets
    }

    /// Number of forgotten joins.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// Restarts all counters.
    pub(crate) fn reset(&self) {
        for count in [&self.deliveries, &self.joins, &self.forgotten] {
            count.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nth_fault_is_exact_over_all_threads() {
        let options = FaultOptions {
            lose_every: Some(10),
            twice_every: Some(4),
            swap_every: Some(3),
            forget_every: Some(7),
            ..FaultOptions::default()
        };
        let faults = Faults::new(options);
        assert_eq!(faults.options(), options);
        let count = |mishap| {
            faults.reset();
            let threads = |_| {
                let met = || (0..1000).filter(|_| faults.delivery() == mishap).count();
                met()
            };
            std::thread::scope(|scope| {
                let running: Vec<_> = (0..4).map(|i| scope.spawn(move || threads(i))).collect();
                running.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
            })
        };
        assert_eq!(count(Mishap::Lose), 400);
        // If two apply, the first one happens: 1000 fourths, of which every fifth is lost.
        assert_eq!(count(Mishap::Twice), 800);
        assert_eq!(count(Mishap::Late), 0);
        assert_eq!((0..70).filter(|_| faults.forgets()).count(), 10);
        assert_eq!(faults.forgotten(), 10);
    }

    #[test]
    fn faults_can_change_while_they_count() {
        let faults = Faults::new(FaultOptions::default());
        assert_eq!((faults.touch_deliveries(), faults.delivery()), (false, Mishap::None));
        let options = FaultOptions {
            twice_every: Some(2),
            forget_every: Some(1),
            late_by: Duration::from_millis(5),
            ..FaultOptions::default()
        };
        faults.set(options);
        assert_eq!((faults.options(), faults.touch_deliveries()), (options, true));
        assert_eq!((faults.delivery(), faults.delivery()), (Mishap::Twice, Mishap::None));
        assert!(faults.forgets());
        faults.set(FaultOptions::default());
        assert_eq!((faults.delivery(), faults.forgets()), (Mishap::None, false));
    }

    #[test]
    fn impossible_faults_are_rejected() {
        let none = FaultOptions::default();
        assert_eq!((none.fault(), none.any()), (None, false));
        assert!(FaultOptions { twice_every: Some(0), ..none }.fault().is_some());
        let late = FaultOptions { late_every: Some(2), late_by: Duration::ZERO, ..none };
        assert!(late.fault().is_some() && late.any());
    }
}
