//! Where the shards of a run tell each other what their users have sent: the only shared part of
//! the ledgers. It is accessed once per probe of a shard and never per message; the lock is held
//! just long enough to append one segment and to take references to the new ones.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_base::{Time, UserId};

use super::MemberId;

/// Announcements of all shards together that are kept for shards that have not read them. A shard
/// with more must wait.
pub(super) const HELD_MAX: usize = 1 << 20;
/// Messages that are known to be unwatched. A shard that reports an older one late is taken for the
/// first.
const UNWATCHED_MAX: usize = 1 << 20;

/// News of one shard for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    Sent(Sent),
    Withdrawn {
        id: u64,
        at: Time,
    },
    /// Messages sent in this period are not announced.
    Unannounced {
        at: Time,
        until: Time,
    },
}

impl News {
    pub(super) fn at(&self) -> Time {
        match self {
            News::Sent(sent) => sent.at,
            News::Withdrawn { at, .. } | News::Unannounced { at, .. } => *at,
        }
    }
}

/// A message to its audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) id: u64,
    /// The ID as in the message, if it is not just a number.
    pub(super) text: Option<Arc<str>>,
    pub(super) group: u64,
    pub(super) sender: UserId,
    /// Unique among the messages of its shard.
    pub(super) at: Time,
    /// The shard of its sender.
    pub(super) home: u32,
    /// The sender, if it is a receiver on this shard.
    pub(super) member: Option<MemberId>,
}

/// The only message of the run that was sent on this shard at this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Told {
    pub(super) at: Time,
    pub(super) home: u32,
}

/// Published news, in order, until every shard has read them.
#[derive(Debug)]
pub(crate) struct Exchange {
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    /// Since the start of the run; the front one has the number `first`.
    segments: VecDeque<Segment>,
    first: u64,
    news: usize,
    /// Messages that some shard did not watch.
    unwatched: BTreeSet<Told>,
    /// By shard; `None` has left.
    readers: Vec<Option<Reader>>,
}

#[derive(Clone, Debug)]
struct Segment {
    shard: usize,
    news: Arc<[News]>,
}

#[derive(Clone, Copy, Debug)]
struct Reader {
    next: u64,
    /// Everything it sent before is published.
    published: Time,
}

/// A shard's access to the exchange. Dropping it leaves the exchange: no shard waits for one that
/// has ended.
#[derive(Debug)]
pub(crate) struct Port {
    exchange: Arc<Exchange>,
    shard: usize,
}

/// News for a shard.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) news: Vec<Arc<[News]>>,
    /// All others have published what they sent before.
    pub(super) complete_until: Time,
    /// There was no room for the news of this shard.
    pub(super) refused: bool,
}

impl Exchange {
    /// The ports of this many shards. Nothing is complete until each of them has published or is
    /// dropped.
    pub(crate) fn ports(shards: usize) -> Vec<Port> {
        let reader = Reader { next: 0, published: Time::ZERO };
        let held = Held {
            segments: VecDeque::new(),
            first: 0,
            news: 0,
            unwatched: BTreeSet::new(),
            readers: vec![Some(reader); shards],
        };
        let exchange = Arc::new(Exchange { held: Mutex::new(held) });
        (0..shards).map(|shard| Port { exchange: Arc::clone(&exchange), shard }).collect()
    }

    /// A panic elsewhere leaves consistent data: nothing in here can panic half-way.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Port {
    pub(super) fn shard(&self) -> u32 {
        self.shard as u32
    }

    /// How many of these messages no shard has reported as unwatched before.
    pub(super) fn first_to_say(&self, unwatched: &[Told]) -> u64 {
        let mut held = self.exchange.held();
        let mut first = 0;
        for told in unwatched {
            first += u64::from(held.unwatched.insert(*told));
            if held.unwatched.len() > UNWATCHED_MAX {
                held.unwatched.pop_first();
            }
        }
        first
    }

    /// Publishes everything sent up to `until`, and returns what others have published.
    pub(super) fn trade(&self, news: &[News], until: Time) -> Heard {
        let segment = (!news.is_empty()).then(|| Segment { shard: self.shard, news: news.into() });
        let mut held = self.exchange.held();
        let refused = segment.is_some() && held.news + news.len() > HELD_MAX;
        if let Some(segment) = segment.filter(|_| !refused) {
            held.news += segment.news.len();
            held.segments.push_back(segment);
        }
        let end = held.first + held.segments.len() as u64;
        let next = match &mut held.readers[self.shard] {
            Some(reader) => {
                if !refused {
                    reader.published = reader.published.max(until);
                }
                std::mem::replace(&mut reader.next, end)
            }
            None => end,
        };
        let skipped = next.saturating_sub(held.first) as usize;
        let others = held.segments.range(skipped.min(held.segments.len())..);
        let others = others.filter(|segment| segment.shard != self.shard);
        let heard = Heard {
            news: others.map(|segment| Arc::clone(&segment.news)).collect(),
            complete_until: held.complete_until(self.shard),
            refused,
        };
        let freed = held.free();
        drop(held);
        drop(freed);
        heard
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let mut held = self.exchange.held();
        held.readers[self.shard] = None;
        let freed = held.free();
        drop(held);
        drop(freed);
    }
}

impl Held {
    fn complete_until(&self, shard: usize) -> Time {
        let others = self.readers.iter().enumerate().filter(|(other, _)| *other != shard);
        let published = others.filter_map(|(_, reader)| Some((*reader)?.published));
        published.min().unwrap_or(Time::NEVER)
    }

    /// Takes out what every shard has read; it is dropped after the lock is released.
    fn free(&mut self) -> Vec<Segment> {
        let end = self.first + self.segments.len() as u64;
        let read = self.readers.iter().flatten().map(|reader| reader.next).min().unwrap_or(end);
        let count = read.saturating_sub(self.first) as usize;
        let freed: Vec<Segment> = self.segments.drain(..count.min(self.segments.len())).collect();
        self.first += freed.len() as u64;
        self.news -= freed.iter().map(|segment| segment.news.len()).sum::<usize>();
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn withdrawn(id: u64) -> News {
        News::Withdrawn { id, at: Time(id) }
    }

    #[test]
    fn every_shard_reads_all_news_once_and_read_news_are_freed() {
        let mut ports = Exchange::ports(3);
        let exchange = Arc::clone(&ports[0].exchange);
        let held = || {
            let held = exchange.held();
            (held.segments.len(), held.news)
        };
        let heard = ports[0].trade(&[withdrawn(1)], Time(10));
        assert!(heard.news.is_empty());
        assert_eq!(heard.complete_until, Time::ZERO, "the others have said nothing");
        assert_eq!(ports[1].trade(&[withdrawn(2)], Time(11)).news.len(), 1);
        assert_eq!(ports[0].trade(&[], Time(12)).news.len(), 1);
        assert_eq!(held(), (2, 2), "the third has not read");
        drop(ports.pop());
        assert_eq!(held(), (0, 0));
        let heard = ports[1].trade(&[], Time(13));
        assert!(heard.news.is_empty());
        assert_eq!(heard.complete_until, Time(12));
    }

    #[test]
    fn a_shard_that_does_not_read_fills_it_to_its_limit() {
        let ports = Exchange::ports(2);
        let much = vec![withdrawn(1); HELD_MAX / 2];
        assert!(!ports[0].trade(&much, Time(1)).refused);
        assert!(!ports[0].trade(&much, Time(2)).refused);
        assert!(ports[0].trade(&much, Time(3)).refused);
        let heard = ports[1].trade(&[], Time(4));
        assert_eq!((heard.news.len(), heard.complete_until), (2, Time(2)));
        assert!(!ports[0].trade(&much, Time(5)).refused, "there is room again");
    }
}
