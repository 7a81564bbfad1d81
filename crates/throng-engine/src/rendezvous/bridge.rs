//! Places of several machines. Each says how many wait at its own; the first machine of the run
//! that is there says how many of whom go on, and when. All figures are sums since the beginning:
//! a word that is lost or comes twice does no harm, as the next one says it, too. When the machine
//! that counts ends, or is not heard any more, the next one counts on from what it has heard.
//!
//! A group can lose a member between the word and its moment: the others go on all the same.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::{Share, Time};

use super::{Count, Places};
use crate::peers::{Known, Muster, is_another, silent};

/// Groups go on so long after it was said, or three round trips after it if those are longer: the
/// others have to hear of it before. A round trip is about twice the error of their clocks.
const AHEAD_MIN: Duration = Duration::from_millis(50);
const AHEAD_ERRORS: u32 = 6;
const AHEAD_MAX: Duration = Duration::from_secs(2);

/// What a machine says of its places, by their numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Announced {
    /// Its part of the run, which names it.
    pub(super) first: u64,
    pub(super) width: u64,
    /// Counts up: of two words the one with the larger number holds.
    number: u64,
    /// Its load is over.
    left: bool,
    counts: BTreeMap<u16, Count>,
    /// Of whoever counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    releases: BTreeMap<u16, Release>,
}

/// So many go on, by the first number of their machine, at the latest at this moment in nanoseconds
/// on the clock of the run.
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
    /// The last of each place, whoever has said it.
    releases: BTreeMap<u16, Release>,
    /// The largest that was seen.
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

    /// The load of this machine is over: nobody is to wait for its users.
    pub(crate) fn leave(&mut self) {
        self.left = true;
    }

    /// What the others have to hear.
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

    /// How it stands on all machines that are there, by place and machine; None where another one
    /// counts.
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

    /// Lets all groups go on that are complete.
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

    /// Another machine has said this; its clock and ours agree within `error`.
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
    /// Whole groups, taken from those who wait; those that some have said are on their way wait no
    /// more, though their machine has not heard of it yet. False where none is complete.
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
        // Whoever has most that wait is first: what is left over is with none for long.
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
