//! Exchanges announcements between a generator and the other machines of its run, over the socket
//! on which the process receives its orders. Nothing waits for an announcement: the bridge detects
//! missing ones.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_base::{Clock, StepId, system::to_parent};
use throng_engine::{Announced, Bridge};
use throng_fleet::wire::Announcement;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::wire::write_line;

/// Maximum number of announcements that wait to be written. Further ones are dropped; their
/// receivers detect the gap.
const WAITING_MAX: usize = 64;

pub(crate) struct Announcer {
    bridge: Bridge,
    clock: Clock,
    heard: UnboundedReceiver<Announcement<Announced>>,
    /// Other machines may still send announcements.
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
        // After a pause, missed ticks are not made up.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Announcer { bridge, clock, heard, hears: true, tick, out, writer }
    }

    /// Handles the next received announcement, or sends the next one when it is due. Cancel-safe.
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

    /// See [`Bridge::missed`].
    pub(crate) fn missed(&mut self) -> impl Iterator<Item = (StepId, u64)> {
        self.bridge.missed()
    }

    /// The shards have ended: sends the last announcement.
    pub(crate) fn end(self) {
        let told = self.bridge.end(self.clock.now());
        told.into_iter().for_each(|announced| drop(self.out.try_send(announced)));
        drop(self.out);
        let _ = self.writer.join();
    }
}

/// Fails silently if the controller is lost.
fn write_all(waiting: &Receiver<Announced>) {
    let Ok(mut socket) = to_parent() else { return };
    for announced in waiting {
        if write_line(&mut socket, &announced).is_err() {
            return;
        }
    }
}
