//! Adds up the rounds in which the generators of a fleet audit their own users. Generators read the
//! views on the same timetable; a late one skips rounds.

use std::collections::BTreeMap;

use throng_audit::{Found, Heard};
use throng_base::Time;
use throng_metrics::audit::Round;

use crate::wire::Tally;

/// The incomplete rounds of a fleet.
#[derive(Default)]
pub(super) struct Sums {
    posts: Vec<Post>,
    pending: BTreeMap<Key, BTreeMap<usize, Tally>>,
}

#[derive(Clone, Default)]
struct Post {
    /// The generator has ended.
    is_over: bool,
    /// By audit: the due time of its last scheduled round.
    told_ns: BTreeMap<u16, u64>,
}

/// Identifies a round by audit and by event or due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    audit: u16,
    event: Option<u16>,
    due_ns: u64,
}

impl Sums {
    pub(super) fn new(posts: usize) -> Sums {
        Sums { posts: vec![Post::default(); posts], pending: BTreeMap::new() }
    }

    /// An event requests a round from all generators.
    pub(super) fn wants(&mut self, audit: u16, event: u16) {
        self.pending.entry(Key { audit, event: Some(event), due_ns: 0 }).or_default();
    }

    /// Adds a generator's results, and returns the rounds that are now complete.
    pub(super) fn take(&mut self, post: usize, tally: Tally) -> Vec<Found> {
        let Tally { audit, due_ns, event, .. } = tally;
        let Some(known) = self.posts.get_mut(post) else { return Vec::new() };
        if event.is_none() {
            known.told_ns.insert(audit, due_ns);
        }
        let key = Key { audit, event, due_ns };
        self.pending.entry(key).or_default().insert(post, tally);
        self.whole()
    }

    /// A generator has ended.
    pub(super) fn over(&mut self, post: usize) -> Vec<Found> {
        if let Some(post) = self.posts.get_mut(post) {
            post.is_over = true;
        }
        self.whole()
    }

    fn whole(&mut self) -> Vec<Found> {
        let posts = &self.posts;
        let is_whole = |key: &Key, told: &mut BTreeMap<usize, Tally>| {
            posts.iter().enumerate().all(|(number, post)| {
                let has_passed = || {
                    key.event.is_none()
                        && post.told_ns.get(&key.audit).is_some_and(|told| *told > key.due_ns)
                };
                post.is_over || told.contains_key(&number) || has_passed()
            })
        };
        self.pending.extract_if(.., is_whole).map(|(key, told)| found(key, told)).collect()
    }
}

fn found(key: Key, told: BTreeMap<usize, Tally>) -> Found {
    let at = told.values().map(|tally| tally.at_ns).min().unwrap_or_default();
    let round = Round::sum(told.into_values().map(|tally| tally.round));
    let Key { audit, event, due_ns } = key;
    Found { audit, at: Time(at), due: Time(due_ns), event, what: Heard::Round(round) }
}

#[cfg(test)]
mod tests {
    use throng_metrics::audit::ViewRound;

    use super::*;

    fn tally(due_ns: u64, event: Option<u16>, agree: u64) -> Tally {
        let view = ViewRound { compared: agree, agree, ..ViewRound::default() };
        let round = Round { views: vec![view], ..Round::default() };
        Tally { audit: 0, at_ns: due_ns.saturating_add(5), due_ns, event, round }
    }

    /// The due time and the number of compared users of each round.
    fn told(found: Vec<Found>) -> Vec<(u64, u64)> {
        let one = |found: Found| match found.what {
            Heard::Round(round) => {
                (found.due.0, round.views.iter().map(|view| view.compared).sum())
            }
            Heard::Books { .. } => panic!("no books"),
        };
        found.into_iter().map(one).collect()
    }

    #[test]
    fn a_round_is_complete_when_all_generators_have_reported() {
        let mut sums = Sums::new(2);
        assert_eq!(told(sums.take(0, tally(10, None, 3))), []);
        assert_eq!(told(sums.take(1, tally(10, None, 4))), [(10, 7)]);
        // The second generator skipped this round.
        assert_eq!(told(sums.take(0, tally(20, None, 3))), []);
        assert_eq!(told(sums.take(1, tally(30, None, 4))), [(20, 3)]);
        assert_eq!(told(sums.take(0, tally(30, None, 3))), [(30, 7)]);
    }

    #[test]
    fn rounds_do_not_wait_for_generators_that_ended() {
        let mut sums = Sums::new(2);
        sums.wants(0, 7);
        assert_eq!(told(sums.take(0, tally(0, Some(7), 3))), []);
        assert_eq!(told(sums.over(1)), [(0, 3)]);
        assert_eq!(told(sums.take(0, tally(u64::MAX, None, 2))), [(u64::MAX, 2)]);
        sums.wants(0, 8);
        assert_eq!(told(sums.over(0)), [(0, 0)], "the audit is over");
    }
}
