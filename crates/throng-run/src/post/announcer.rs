//! Exchanges announcements between a post and the other machines of its run, over the socket on
//! which the process receives its orders. Nothing waits for an announcement: the bridge detects
//! missing ones.

use std::io::Write as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_base::{Clock, StepId, system::to_parent};
use throng_engine::{Announced, Bridge};
use throng_fleet::wire::Announcement;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// What may wait to be written. More is lost, which the others notice.
const WAITING_MAX: usize = 64;

/// See the module's description.
pub(crate) struct Announcer {
    bridge: Bridge,
    clock: Clock,
    heard: UnboundedReceiver<Announcement<Announced>>,
    /// Somebody may still tell something.
    hears: bool,
    tick: Interval,
    out: SyncSender<Announced>,
    writer: JoinHandle<()>,
}

enum Turn {
    Tell,
    Hear(Option<Announcement<Announced>>),
}

impl Announcer {
    pub(crate) fn new(
        bridge: Bridge,
        clock: Clock,
        heard: UnboundedReceiver<Announcement<Announced>>,
    ) -> Announcer {
        let (out, waiting) = sync_channel(WAITING_MAX);
        let writer = std::thread::spawn(move || write_all(&waiting));
        let mut tick = interval(bridge.every());
        // One that stood still has nothing to catch up with.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Announcer { bridge, clock, heard, hears: true, tick, out, writer }
    }

    /// What comes next: a word of another machine, or the time for one of its own. It may be
    /// dropped at any time.
    pub(crate) async fn turn(&mut self) {
        let turn = tokio::select! {
            heard = self.heard.recv(), if self.hears => Turn::Hear(heard),
            _ = self.tick.tick() => Turn::Tell,
        };
        match turn {
            Turn::Tell => self.tell(),
            Turn::Hear(Some(Announcement { announced, error_ns })) => {
                let error = Duration::from_nanos(error_ns);
                self.bridge.hear(&announced, error, self.clock.now());
            }
            Turn::Hear(None) => self.hears = false,
        }
    }

    fn tell(&mut self) {
        let told = self.bridge.tell(self.clock.now());
        told.into_iter().for_each(|announced| drop(self.out.try_send(announced)));
    }

    /// As [`Bridge::missed`].
    pub(crate) fn missed(&mut self) -> impl Iterator<Item = (StepId, u64)> {
        self.bridge.missed()
    }

    /// The shards are gone: says the last of it.
    pub(crate) fn end(self) {
        let told = self.bridge.end(self.clock.now());
        told.into_iter().for_each(|announced| drop(self.out.try_send(announced)));
        drop(self.out);
        let _ = self.writer.join();
    }
}

/// Nobody may be there to hear it any more.
fn write_all(waiting: &Receiver<Announced>) {
    let Ok(mut socket) = to_parent() else { return };
    for announced in waiting {
        let Ok(mut line) = serde_json::to_vec(&announced) else { continue };
        line.push(b'\n');
        if socket.write_all(&line).is_err() {
            return;
        }
    }
}
