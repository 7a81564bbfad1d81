//! Connections that are no longer needed and that the target is to close: the side that closes
//! first keeps the port in TIME_WAIT. Their users have gone on; the driver checks them now and
//! then.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use throng_base::Time;
use throng_metrics::Cause;

use crate::failure::Ended;
use crate::failure::lost_failure;
use crate::recorder::Recorder;
use crate::system::Received;
use crate::transport::Transport;

/// How long a target may take to close; after that we do, at the next check.
const CLOSING_MAX: Duration = Duration::from_millis(50);
/// How many of them are open on one shard. Beyond that, the oldest is closed.
const COUNT_MAX: usize = 256;

/// The same for a peer that has announced the end of the connection, over any network.
const GOODBYE_MAX: Duration = Duration::from_secs(1);

/// When it was left, and when it was opened; `None` if its end is counted already.
struct Waiting {
    left: Time,
    established: Option<Time>,
    transport: Transport,
}

impl Waiting {
    fn over(&self, ended: Ended, now: Time, to: &RefCell<Recorder>) {
        if let Some(established) = self.established {
            over(ended, now - established, to);
        }
    }
}

/// The ones of one shard, oldest first. They count as open until they are closed.
#[derive(Default)]
pub(crate) struct Left {
    open: VecDeque<Waiting>,
}

impl Left {
    pub(crate) fn add(
        &mut self,
        mut transport: Transport,
        established: Time,
        now: Time,
        to: &RefCell<Recorder>,
    ) {
        if let Some(ended) = end_of(&mut transport) {
            return over(ended, now - established, to);
        }
        self.make_room(now, to);
        self.open.push_back(Waiting { left: now, established: Some(established), transport });
    }

    /// Keeps one whose end is counted: the target sent the last message.
    pub(crate) fn keep(&mut self, mut transport: Transport, now: Time, to: &RefCell<Recorder>) {
        if end_of(&mut transport).is_none() {
            self.make_room(now, to);
            self.open.push_back(Waiting { left: now, established: None, transport });
        }
    }

    fn make_room(&mut self, now: Time, to: &RefCell<Recorder>) {
        if self.open.len() >= COUNT_MAX
            && let Some(mut oldest) = self.open.pop_front()
        {
            let ended = end_of(&mut oldest.transport).unwrap_or(Ended::ByUs);
            oldest.over(ended, now, to);
        }
    }

    /// Drops those that the target has closed, or did not close in time.
    pub(crate) fn look(&mut self, now: Time, to: &RefCell<Recorder>) {
        self.open.retain_mut(|one| {
            let most = if one.established.is_some() { CLOSING_MAX } else { GOODBYE_MAX };
            let is_late = now - one.left >= most;
            let ended = end_of(&mut one.transport).or(is_late.then_some(Ended::ByUs));
            ended.inspect(|ended| one.over(*ended, now, to)).is_none()
        });
    }

    /// The run is over.
    pub(crate) fn end(&mut self, now: Time, to: &RefCell<Recorder>) {
        for mut one in self.open.drain(..) {
            let ended = end_of(&mut one.transport).unwrap_or(Ended::ByUs);
            one.over(ended, now, to);
        }
    }
}

fn over(ended: Ended, lived: Duration, to: &RefCell<Recorder>) {
    let mut recorder = to.borrow_mut();
    recorder.interval.gauges.connections_open -= 1;
    recorder.connection_ended(ended.ending(), true, lived);
}

/// How the connection has ended, if it has. The runtime knows what has arrived without registering
/// a waker. A target that sends more instead of closing is not waited for.
fn end_of(transport: &mut Transport) -> Option<Ended> {
    let mut cx = Context::from_waker(Waker::noop());
    match transport.poll_read(&mut cx, &mut [0; 64]) {
        Poll::Pending => None,
        Poll::Ready(Ok(Received { bytes: 0, .. })) => Some(Ended::ByTarget),
        Poll::Ready(Ok(_)) => Some(Ended::ByUs),
        Poll::Ready(Err(error)) => Some(match lost_failure(&error).cause {
            Cause::Reset => Ended::Reset,
            // TLS ended without a close alert.
            Cause::ClosedEarly => Ended::ByTarget,
            _ => Ended::ByUs,
        }),
    }
}
