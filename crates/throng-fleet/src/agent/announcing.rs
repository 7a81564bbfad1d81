//! Announcements between the children of a run. They go to current listeners: children detect lost
//! ones, and they are not recorded.

use std::time::Duration;

use throng_bus::{Bus, BusError, Message, Subscription};
use tokio::time::sleep;

use super::{AGAIN_AFTER, Agent, Child, Done, Host};
use crate::wire::{Announcement, names};

/// For a clock that was never compared with the controller's.
const UNKNOWN_ERROR_NS: u64 = 1_000_000_000;

/// Without a run there are no announcements.
pub(super) async fn next(announced: &mut Option<Subscription>) -> Option<Message> {
    match announced {
        Some(announced) => announced.recv().await,
        None => std::future::pending().await,
    }
}

impl<B: Bus, H: Host> Agent<B, H> {
    /// Subscribes to the announcements of a run.
    pub(super) fn listen(&self, run: String, after: Duration) {
        let (bus, sender) = (self.bus.clone(), self.done.0.clone());
        tokio::task::spawn_local(async move {
            sleep(after).await;
            let subscription = bus.subscribe(&names::all_announced(&run)).await;
            let _ = sender.send(Done::Listens(run, subscription));
        });
    }

    pub(super) fn listens(
        &mut self,
        run: String,
        subscription: Result<Subscription, BusError>,
    ) -> Result<(), BusError> {
        let is_ours = self.duty.as_ref().is_some_and(|duty| duty.run == run);
        match subscription {
            Ok(subscription) if is_ours => self.announced = Some(subscription),
            Err(BusError::Refused(why)) => return Err(BusError::Refused(why)),
            Err(_) if is_ours => self.listen(run, AGAIN_AFTER),
            _ => {}
        }
        Ok(())
    }

    /// The possible error of this machine's run clock against the controller's: from the offset at
    /// the start and now, and the drift of the machine's own clock meanwhile.
    fn error_ns(&self) -> u64 {
        let began = self.duty.as_ref().and_then(|duty| duty.began);
        let (Some(began), Some(now)) = (began, self.offset) else { return UNKNOWN_ERROR_NS };
        let moved = now.ahead_ns.abs_diff(began.ahead_ns);
        began.error_ns.saturating_add(now.error_ns).saturating_add(moved)
    }

    /// Forwards the announcements of its child.
    pub(super) fn announce(&mut self) {
        let error_ns = self.error_ns();
        let Some(duty) = &mut self.duty else { return };
        let subject = names::announced(&duty.run, &self.about.name);
        for announced in duty.child.announced() {
            self.bus.publish(&subject, Announcement { announced, error_ns }.to_bytes());
        }
    }

    /// Forwards an announcement of another agent's child.
    pub(super) fn hear(&mut self, message: &Message) {
        let error_ns = self.error_ns();
        let Some(duty) = &mut self.duty else { return };
        if message.subject == names::announced(&duty.run, &self.about.name) {
            return;
        }
        if let Some(heard) = Announcement::from_bytes(&message.payload) {
            duty.child.hear(&heard.announced, heard.error_ns.saturating_add(error_ns));
        }
    }
}
