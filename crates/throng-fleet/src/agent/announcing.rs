//! What the children of a run announce to each other. It goes to whoever listens now: children find
//! out what is lost, and nothing of it is a line of the record.

use std::time::Duration;

use throng_bus::{Bus, BusError, Message, Subscription};
use tokio::time::sleep;

use super::{AGAIN_AFTER, Agent, Child, Done, Host};
use crate::wire::{Announcement, names};

/// Of a clock that was never compared with the controller's.
const UNKNOWN_ERROR_NS: u64 = 1_000_000_000;

/// Without a run there is nothing to hear.
pub(super) async fn next(announced: &mut Option<Subscription>) -> Option<Message> {
    match announced {
        Some(announced) => announced.recv().await,
        None => std::future::pending().await,
    }
}

impl<B: Bus, H: Host> Agent<B, H> {
    /// Begins to hear the others of a run.
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

    /// How far the clock of the run here may be from the controller's: by what was known at its
    /// start and is known now, and by how far the machine's own clock has moved meanwhile.
    fn error_ns(&self) -> u64 {
        let began = self.duty.as_ref().and_then(|duty| duty.began);
        let (Some(began), Some(now)) = (began, self.offset) else { return UNKNOWN_ERROR_NS };
        let moved = now.ahead_ns.abs_diff(began.ahead_ns);
        began.error_ns.saturating_add(now.error_ns).saturating_add(moved)
    }

    /// Hands on what its child has said.
    pub(super) fn announce(&mut self) {
        let error_ns = self.error_ns();
        let Some(duty) = &mut self.duty else { return };
        let subject = names::announced(&duty.run, &self.about.name);
        for announced in duty.child.announced() {
            self.bus.publish(&subject, Announcement { announced, error_ns }.to_bytes());
        }
    }

    /// Hands on what the child of another has said.
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
