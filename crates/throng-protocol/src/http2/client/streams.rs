//! The open streams of one connection, in order of their IDs.

use std::collections::VecDeque;

use super::upload::Upload;
use crate::http1::{HttpError, RequestKind};
use crate::http2::Violation;

/// Capacity that an idle connection keeps.
const KEPT_STREAMS_MAX: usize = 16;
/// This many ended streams may remain between open ones before the list is compacted.
const GAPS_MAX: usize = 16;

/// Progress of a stream's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Head,
    Body,
    /// It has no body, whatever its headers say: only its end can follow.
    NoBody,
    /// The stream has ended; its entry is still in the list.
    Gone,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    /// How much of our body the peer accepts; negative after it has reduced its windows.
    pub(super) send_window: i32,
    /// How much more the peer may send.
    pub(super) receive_window: u32,
    pub(super) phase: Phase,
    pub(super) kind: RequestKind,
    pub(super) informational: u16,
    /// Our end of the stream has not been sent.
    pub(super) sends: bool,
    /// Of the body: announced, received, maximum.
    pub(super) expected: Option<u64>,
    pub(super) received: u64,
    pub(super) body_bytes_max: u64,
    /// The part of our body that waits for a window.
    pub(super) upload: Option<Box<Upload>>,
}

const _: () = assert!(size_of::<Stream>() <= 64);

impl Stream {
    /// Nothing has arrived in response: the peer's statement that it has not processed the request
    /// is plausible.
    pub(super) fn is_untouched(&self) -> bool {
        self.phase == Phase::Head && self.informational == 0
    }

    /// The violation if the announced size exceeds the limit.
    pub(super) fn too_large(&self) -> Option<Violation> {
        let bytes_max = self.body_bytes_max;
        let violation = Violation::Http(HttpError::BodyTooLarge { bytes_max });
        self.expected.filter(|length| *length > bytes_max).map(|_| violation)
    }
}

#[derive(Debug, Default)]
pub(super) struct Streams {
    list: VecDeque<Stream>,
    open: usize,
}

impl Streams {
    /// The number of open streams.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// The number of list entries.
    pub(super) fn places(&self) -> usize {
        self.list.len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.list.capacity() * size_of::<Stream>()
    }

    /// Adds a stream with the highest ID so far.
    pub(super) fn push(&mut self, stream: Stream) -> usize {
        self.open += 1;
        self.list.push_back(stream);
        self.list.len() - 1
    }

    /// The index of an open stream, valid until the next one ends.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<usize> {
        let first = self.list.front()?.id;
        let guess = (id.checked_sub(first)? / 2) as usize;
        let place = match self.list.get(guess) {
            Some(stream) if stream.id == id => guess,
            _ => self.list.binary_search_by_key(&id, |stream| stream.id).ok()?,
        };
        (self.list[place].phase != Phase::Gone).then_some(place)
    }

    pub(super) fn at(&mut self, place: usize) -> &mut Stream {
        &mut self.list[place]
    }

    pub(super) fn get(&self, place: usize) -> Option<&Stream> {
        self.list.get(place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.list.iter().filter(|stream| stream.phase != Phase::Gone)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.list.iter_mut().filter(|stream| stream.phase != Phase::Gone)
    }

    /// Removes an ended stream, immediately or together with its neighbours.
    pub(super) fn remove(&mut self, place: usize) {
        let stream = &mut self.list[place];
        stream.phase = Phase::Gone;
        stream.upload = None;
        self.open -= 1;
        while self.list.front().is_some_and(|stream| stream.phase == Phase::Gone) {
            self.list.pop_front();
        }
        if self.list.len() > 2 * self.open + GAPS_MAX {
            self.list.retain(|stream| stream.phase != Phase::Gone);
        }
        if self.open == 0 && self.list.capacity() > KEPT_STREAMS_MAX {
            self.list.shrink_to(0);
        }
    }

    /// Whether a body waits only for its end flag, which needs no window.
    pub(super) fn any_ends(&self) -> bool {
        let mut uploads = self.iter().filter_map(|stream| stream.upload.as_ref());
        uploads.any(|upload| upload.bytes == 0)
    }

    /// The first stream that a closing peer will not process, those above `last`.
    pub(super) fn first_above(&self, last: Option<u32>) -> Option<u32> {
        self.iter().map(|stream| stream.id).find(|id| last.is_some_and(|last| *id > last))
    }

    /// Resizes the windows of open streams with the initial window (RFC 9113, 6.9.2); `None` if one
    /// overflows.
    pub(super) fn resize_windows(&mut self, change: i64) -> Option<()> {
        for stream in self.iter_mut().filter(|_| change != 0) {
            stream.send_window = i32::try_from(i64::from(stream.send_window) + change).ok()?;
        }
        Some(())
    }

    pub(super) fn clear(&mut self) {
        *self = Streams::default();
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    fn stream(id: u32) -> Stream {
        Stream {
            id,
            send_window: 0,
            receive_window: 0,
            phase: Phase::Head,
            kind: RequestKind::Normal,
            informational: 0,
            sends: false,
            expected: None,
            received: 0,
            body_bytes_max: 0,
            upload: None,
        }
    }

    #[test]
    fn streams_are_found_whichever_have_ended() {
        let mut streams = Streams::default();
        let mut open: Vec<u32> = Vec::new();
        let mut random = Random::for_owner(5, 5);
        let mut next = 1;
        for round in 0..20_000 {
            let grows = if round < 10_000 { 60 } else { 35 };
            if open.is_empty() || random.below(100) < grows {
                let place = streams.push(stream(next));
                assert_eq!(streams.at(place).id, next);
                open.push(next);
                next += 2;
            } else {
                let id = open.swap_remove(random.below(open.len() as u64) as usize);
                streams.remove(streams.find(id).unwrap());
                assert_eq!(streams.find(id), None);
            }
            assert_eq!(streams.open(), open.len());
            assert!(streams.places() <= 2 * open.len() + GAPS_MAX + 1);
            if let Some(id) = open.get(random.below(open.len() as u64 + 1) as usize) {
                let place = streams.find(*id).unwrap();
                assert_eq!(streams.at(place).id, *id);
            }
        }
        for id in open {
            streams.remove(streams.find(id).unwrap());
        }
        assert_eq!((streams.places(), streams.find(1)), (0, None));
        assert!(streams.heap_bytes() <= KEPT_STREAMS_MAX * size_of::<Stream>());
    }
}
