//! Output that others cause on a connection: deliveries with their faults, which precede responses
//! that are not due, and a requested close.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use throng_base::Time;

use crate::address::Address;
use crate::arrival::Arrival;
use crate::faults::Mishap;
use crate::output::{Finish, Segment};
use crate::redis::Ticket;
use crate::session::{Role, Session};
use crate::stats::DeliveryStats;
use crate::worker::Due;

use super::{Connection, ConnectionState, End, LINGER_TIME_MAX, Phase, try_write};

/// The limit of deliveries in memory for a peer that does not read; further ones are dropped and
/// counted.
const BACKLOG_BYTES_MAX: usize = 256 * 1024;
/// The longest time that a swapped delivery waits for the next one.
const SWAP_TIME_MAX: Duration = Duration::from_secs(1);
/// The limit of delayed deliveries per worker; further ones are delivered on time.
const LATE_DELIVERIES_MAX: usize = 1_000_000;

/// Messages that are written together.
pub(crate) struct Parcel<'a> {
    frames: &'a [Arc<[u8]>],
    bytes: Cow<'a, [u8]>,
}

impl<'a> Parcel<'a> {
    pub(crate) fn new(frames: &'a [Arc<[u8]>]) -> Parcel<'a> {
        let bytes = match frames {
            [frame] => Cow::Borrowed(&frame[..]),
            frames => Cow::Owned(frames.concat()),
        };
        Parcel { frames, bytes }
    }
}

impl Connection {
    /// Delivers each frame, except those that a fault affects.
    pub(crate) fn deliver(
        self: &Rc<Self>,
        parcel: &Parcel<'_>,
        bytes_out: &mut u64,
    ) -> DeliveryStats {
        let mut done = DeliveryStats::default();
        let state = &mut *self.state.borrow_mut();
        let count = parcel.frames.len() as u64;
        if !matches!(state.phase, Phase::Open) {
            done.gone = count;
            return done;
        }
        done.owed = count;
        let touched = self.worker.setup.faults.touch_deliveries();
        match touched.then(|| self.meddle(parcel.frames, &mut done)).flatten() {
            None => put(state, parcel, bytes_out, &mut done),
            Some(frames) if frames.is_empty() => {}
            Some(frames) => put(state, &Parcel::new(&frames), bytes_out, &mut done),
        }
        done
    }

    /// Makes a delayed delivery; no further fault applies to it.
    pub(crate) fn deliver_late(&self, parcel: &Parcel<'_>, bytes_out: &mut u64) -> DeliveryStats {
        let mut done = DeliveryStats::default();
        let state = &mut *self.state.borrow_mut();
        if matches!(state.phase, Phase::Open) {
            put(state, parcel, bytes_out, &mut done);
        } else {
            done.late_unsent = 1;
        }
        done
    }

    /// No delivery followed the one that was held back to be swapped.
    pub(crate) fn not_overtaken(&self) {
        let Some(frame) = self.take_held() else { return };
        let state = &mut *self.state.borrow_mut();
        let figures = &mut *self.worker.figures();
        if matches!(state.phase, Phase::Open) {
            let frames = [frame];
            let bytes_out = &mut figures.counts.bytes_out;
            put(state, &Parcel::new(&frames), bytes_out, &mut figures.deliveries);
        } else {
            figures.deliveries.swaps_unsent += 1;
        }
    }

    /// Sends a broadcast if a user is logged in.
    pub(crate) fn tell(&self, parcel: &Parcel<'_>) {
        let state = &mut *self.state.borrow_mut();
        if !matches!(state.phase, Phase::Open) || !state.session.is_logged_in() {
            return;
        }
        let figures = &mut *self.worker.figures();
        let mut done = DeliveryStats::default();
        put(state, parcel, &mut figures.counts.bytes_out, &mut done);
        figures.counts.broadcast_messages += done.written;
        figures.counts.broadcast_messages_dropped += done.dropped;
    }

    /// Replies to a device: Redis has confirmed its bind, or has not in time.
    pub(crate) fn bound(self: &Rc<Self>, ticket: Ticket, confirmed: bool) {
        let state = &mut *self.state.borrow_mut();
        if matches!(state.phase, Phase::Open) {
            let arrival = Arrival { at: ticket.arrived, read: self.worker.clock.now() };
            self.take_turn(state, arrival, |session, turn| {
                if let Session::Push(push) = session {
                    push.bound(ticket.seq, confirmed, turn);
                }
            });
            state.wake();
        }
    }

    pub(crate) fn is_silent_since(&self, since: Time) -> bool {
        let state = &*self.state.borrow();
        let silent = matches!(&state.session, Session::Push(push) if push.is_silent_since(since));
        silent && matches!(state.phase, Phase::Open)
    }

    /// Whether its client was silent for too long.
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.session.is_overdue(now) && matches!(state.phase, Phase::Open)
    }

    pub(crate) fn address(&self) -> Address {
        self.address.get()
    }

    /// Closes gracefully at the request of another connection or thread. The user is logged out
    /// immediately.
    pub(crate) fn send_away(self: &Rc<Self>) {
        let state = &mut *self.state.borrow_mut();
        if !matches!(state.phase, Phase::Open) {
            return;
        }
        let worker = &self.worker;
        let before = state.session.is_logged_in();
        if let Some(farewell) = state.session.farewell() {
            let frames = [farewell.into()];
            let figures = &mut *worker.figures();
            let bytes_out = &mut figures.counts.bytes_out;
            put(state, &Parcel::new(&frames), bytes_out, &mut DeliveryStats::default());
        }
        state.session.end(&worker.setup, self.address.get());
        self.note_login(before, false);
        worker.places.move_to(self.address.get(), None);
        match &mut state.backlog {
            Some(backlog) if !backlog.output.is_empty() => {
                backlog.output.push(Segment::Finish(Finish::Linger));
                // The same limit applies to a peer that does not read.
                let until = worker.clock.now() + LINGER_TIME_MAX;
                worker.timer.at(until, Due::Close(Rc::downgrade(self)));
            }
            _ => self.finish(state, Finish::Linger),
        }
        state.wake();
    }

    /// The frames after faults; `None` if they are unchanged.
    fn meddle(
        self: &Rc<Self>,
        frames: &[Arc<[u8]>],
        done: &mut DeliveryStats,
    ) -> Option<Vec<Arc<[u8]>>> {
        let worker = &self.worker;
        let faults = &worker.setup.faults;
        let mut held = self.take_held();
        let mut made: Option<Vec<Arc<[u8]>>> = None;
        for (index, frame) in frames.iter().enumerate() {
            let mishap = faults.delivery();
            if made.is_none() && held.is_none() && mishap == Mishap::None {
                continue;
            }
            let out = made.get_or_insert_with(|| frames[..index].to_vec());
            match mishap {
                Mishap::Lose => {
                    done.lost += 1;
                    continue;
                }
                Mishap::Late if self.hold_back(frame) => {
                    done.late += 1;
                    continue;
                }
                Mishap::Swap if held.is_none() => {
                    held = Some(Arc::clone(frame));
                    continue;
                }
                Mishap::Garble => {
                    done.garbage += 1;
                    out.push(garbled(frame, worker.role));
                }
                Mishap::Twice => {
                    done.twice += 1;
                    out.extend([Arc::clone(frame), Arc::clone(frame)]);
                }
                Mishap::None | Mishap::Late | Mishap::Swap => out.push(Arc::clone(frame)),
            }
            if let Some(held) = held.take() {
                done.swapped += 1;
                out.push(held);
            }
        }
        if let Some(held) = held {
            worker.held_back.swaps.borrow_mut().insert(self.address.get().place, held);
            let until = worker.clock.now() + SWAP_TIME_MAX;
            worker.timer.at(until, Due::Overtaken(Rc::downgrade(self)));
        }
        made
    }

    /// The delivery that waits to be swapped.
    pub(super) fn take_held(&self) -> Option<Arc<[u8]>> {
        let swaps = &mut *self.worker.held_back.swaps.borrow_mut();
        if swaps.is_empty() { None } else { swaps.remove(&self.address.get().place) }
    }

    /// True if the frame is now delayed.
    fn hold_back(self: &Rc<Self>, frame: &Arc<[u8]>) -> bool {
        let worker = &self.worker;
        let late = worker.held_back.late.get();
        if late >= LATE_DELIVERIES_MAX {
            return false;
        }
        worker.held_back.late.set(late + 1);
        let due = worker.clock.now() + worker.setup.faults.options().late_by;
        worker.timer.at(due, Due::Late(Rc::downgrade(self), Arc::clone(frame)));
        true
    }
}

/// Writes what the socket takes, and keeps whole frames of the rest up to the limit.
fn put(
    state: &mut ConnectionState,
    parcel: &Parcel<'_>,
    bytes_out: &mut u64,
    done: &mut DeliveryStats,
) {
    let mut at = 0;
    let waiting = match state.backlog.as_ref().filter(|backlog| !backlog.output.is_empty()) {
        Some(backlog) => backlog.output.held(),
        None => match try_write(&mut state.stream, &parcel.bytes) {
            Ok(n) => {
                at = n;
                *bytes_out += n as u64;
                0
            }
            Err(_) => {
                done.dropped += parcel.frames.len() as u64;
                state.phase = Phase::Ended(End::Reset);
                return state.wake();
            }
        },
    };
    if at == parcel.bytes.len() && !state.stream.holds_back() {
        done.written += parcel.frames.len() as u64;
        return;
    }
    let (mut kept, mut end) = (0, 0);
    for frame in parcel.frames {
        let begun = end < at;
        let next = end + frame.len();
        if !begun && waiting + next - at > BACKLOG_BYTES_MAX {
            break;
        }
        kept += 1;
        end = next;
    }
    done.written += kept;
    done.dropped += parcel.frames.len() as u64 - kept;
    if end > at {
        state.backlog.get_or_insert_default().output.push_bytes(&parcel.bytes[at..end]);
    }
    state.wake();
}

/// A copy with an undefined packet type.
fn garbled(frame: &Arc<[u8]>, role: Role) -> Arc<[u8]> {
    let mut bytes = frame.to_vec();
    if let Some(kind) = bytes.get_mut(role.kind_at()) {
        *kind ^= 0x80;
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_garbled_packet_has_an_undefined_kind() {
        let frame: Arc<[u8]> = vec![0; 20].into();
        let garbled = garbled(&frame, Role::Chat);
        let differ = |i: &usize| garbled[*i] != frame[*i];
        assert_eq!((0..20).filter(differ).collect::<Vec<_>>(), [crate::chat::KIND_AT]);
    }

    #[test]
    fn a_parcel_of_one_is_not_copied() {
        let frames: [Arc<[u8]>; 2] = [vec![1, 2].into(), vec![3].into()];
        assert!(matches!(Parcel::new(&frames[..1]).bytes, Cow::Borrowed([1, 2])));
        assert_eq!(*Parcel::new(&frames).bytes, [1, 2, 3]);
    }
}
