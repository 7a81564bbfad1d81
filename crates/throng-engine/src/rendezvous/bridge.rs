//! Rendezvous across machines. Each machine announces how many users wait at its places. The
//! machine with the lowest number that is still there is the counter: it announces how many users
//! of each machine go on, and when. All figures are totals since the start of the run, so a lost or
//! duplicated announcement does no harm: the next one repeats it. When the counter ends or falls
//! silent, the next machine continues from what it has heard.
//!
//! A user may give up between the announcement and its moment: the rest of the group goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::{Share, Time};

use super::{Count, Places};
use crate::peers::{Known, Muster, is_another, silent};

/// Groups go on this long after the announcement, or after three round trips if that is longer, so
/// that all machines have heard of it. A round trip is about twice the error of their clocks.
const AHEAD_MIN: Duration = Duration::from_millis(50);
const AHEAD_ERRORS: u32 = 6;
const AHEAD_MAX: Duration = Duration::from_secs(2);

/// What a machine announces about its places, by their numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Announced {
    /// Its part of the run, which names it.
    pub(super) first: u64,
    pub(super) width: u64,
    /// Counts up: the larger of two numbers is the later announcement.
    number: u64,
    /// Its load is over.
    left: bool,
    counts: BTreeMap<u16, Count>,
    /// Of the counter only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    releases: BTreeMap<u16, Release>,
}

/// How many users have been released in all, by the first number of their machine; the last of them
/// at this moment, in nanoseconds on the clock of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Release {
    at_ns: u64,
    gone: BTreeMap<u64, u64>,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Bridge {
    share: Share,
    places: Places,
    /// By the first of their parts.
    others: BTreeMap<u64, Other>,
    muster: Muster,
    number: u64,
    left: bool,
    /// The latest of each place, from any machine.
    releases: BTreeMap<u16, Release>,
    /// The largest error between our clock and another.
    error: Duration,
}

/// Another machine.
#[derive(Debug)]
struct Other {
    width: u64,
    number: u64,
    heard: Time,
    left: bool,
    counts: BTreeMap<u16, Count>,
}

impl Bridge {
    pub(crate) fn new(share: Share, places: Places) -> Bridge {
        Bridge {
            share,
            places,
            others: BTreeMap::new(),
            muster: Muster::default(),
            number: 0,
            left: false,
            releases: BTreeMap::new(),
            error: Duration::ZERO,
        }
    }

    /// The load of this machine is over: no group needs its users.
    pub(crate) fn leave(&mut self) {
        self.left = true;
    }

    /// The next announcement to the others.
    pub(crate) fn tell(&mut self, now: Time) -> Announced {
        let counts = self.counts_if_first(now);
        if let Some(counts) = &counts {
            self.release(counts, now);
        }
        self.number += 1;
        let (first, width, _) = self.share.machine();
        Announced {
            first,
            width,
            number: self.number,
            left: self.left,
            counts: self.places.counts(),
            releases: if counts.is_some() { self.releases.clone() } else { BTreeMap::new() },
        }
    }

    /// The counts of all machines that are there, by place and machine; None if another machine is
    /// the counter.
    fn counts_if_first(&mut self, now: Time) -> Option<BTreeMap<u16, BTreeMap<u64, Count>>> {
        let widths = self.others.values().map(|other| other.width);
        let known = self.muster.known(self.share, widths, now);
        let (own, silent) = (self.share.machine().0, silent(self.share));
        let is_there = |other: &Other| !other.left && now.since(other.heard) < silent;
        let there = || self.others.iter().filter(|(_, other)| is_there(other));
        if self.left || known == Known::No || there().any(|(first, _)| *first < own) {
            return None;
        }
        let mut all: BTreeMap<u16, BTreeMap<u64, Count>> = BTreeMap::new();
        let ours = self.places.counts();
        for (first, counts) in there().map(|(first, other)| (*first, &other.counts)) {
            for (place, count) in counts {
                all.entry(*place).or_default().insert(first, *count);
            }
        }
        for (place, count) in ours {
            all.entry(place).or_default().insert(own, count);
        }
        Some(all)
    }

    /// Releases all complete groups.
    fn release(&mut self, all: &BTreeMap<u16, BTreeMap<u64, Count>>, now: Time) {
        let own = self.share.machine().0;
        let ahead = (self.error * AHEAD_ERRORS).clamp(AHEAD_MIN, AHEAD_MAX);
        for (place, counts) in all {
            let release = self.releases.entry(*place).or_default();
            if release.take(counts) {
                release.at_ns = (now + ahead).as_nanos();
            }
            let gone = release.gone.get(&own).copied().unwrap_or(0);
            self.places.release_up_to(*place, gone, Time(release.at_ns));
        }
    }

    /// Another machine has announced this; its clock and ours agree within `error`.
    pub(crate) fn hear(&mut self, announced: &Announced, error: Duration, now: Time) {
        let Announced { first, width, number, left, counts, releases } = announced;
        if !is_another(self.share, *first, *width) {
            return;
        }
        let known = self.others.get(first).map_or(0, |other| other.number);
        if *number <= known {
            return;
        }
        self.error = self.error.max(error);
        let other = Other {
            width: *width,
            number: *number,
            heard: now,
            left: *left,
            counts: counts.clone(),
        };
        self.others.insert(*first, other);
        let own = self.share.machine().0;
        for (place, said) in releases {
            let release = self.releases.entry(*place).or_default();
            release.join(said);
            let gone = release.gone.get(&own).copied().unwrap_or(0);
            self.places.release_up_to(*place, gone, Time(said.at_ns));
        }
    }
}

impl Release {
    /// Adds all complete groups. Users that were released already, though their machine has not
    /// heard of it yet, do not count as waiting. False if no group is complete.
    fn take(&mut self, counts: &BTreeMap<u64, Count>) -> bool {
        let wanted = counts.values().map(|count| count.wanted).max().unwrap_or(0).max(1);
        for (first, count) in counts {
            let gone = self.gone.entry(*first).or_default();
            *gone = count.gone.max(*gone);
        }
        let waiting: Vec<(u64, u64)> = counts
            .iter()
            .map(|(first, count)| {
                let told = self.gone[first] - count.gone;
                (*first, count.waiting.saturating_sub(told))
            })
            .collect();
        let all = waiting.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        let mut left = all - all % wanted;
        if left == 0 {
            return false;
        }
        // Machines with most waiting users first, so that no machine keeps the remainder for long.
        let mut waiting = waiting;
        waiting.sort_by_key(|(first, count)| (std::cmp::Reverse(*count), *first));
        for (first, count) in waiting {
            let those = count.min(left);
            left -= those;
            let gone = self.gone.entry(first).or_default();
            *gone = gone.saturating_add(those);
        }
        true
    }

    fn join(&mut self, said: &Release) {
        self.at_ns = self.at_ns.max(said.at_ns);
        for (first, gone) in &said.gone {
            let known = self.gone.entry(*first).or_default();
            *known = (*gone).max(*known);
        }
    }
}
