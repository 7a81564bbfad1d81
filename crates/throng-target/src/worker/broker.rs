//! A worker's part of the broker: deliveries to the clients that are connected to this worker.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Time;

use super::{Due, Worker};
use crate::mqtt::{Client, Message, Target};

/// The interval of checks for silent clients, due wills and expired sessions.
const SWEEP_EVERY: Duration = Duration::from_millis(250);

impl Worker {
    /// Delivers a message to clients that were connected to this worker when it was sent. If a
    /// client has moved since, the message is forwarded.
    pub(super) fn distribute(&self, targets: Vec<Target>, message: &Arc<Message>) {
        let Some(broker) = &self.setup.mqtt else { return };
        for target in targets {
            match target.take_here(self.index as u16, message) {
                Ok(true) => self.send_waiting(&target.client),
                Ok(false) => broker.count(self.index as u16, |counts| counts.left_out += 1),
                Err(()) => self.setup.send(broker.bundles(vec![target], message)),
            }
        }
    }

    /// Sends all waiting messages that the client may receive now.
    pub(super) fn send_waiting(&self, client: &Client) {
        let Some(broker) = &self.setup.mqtt else { return };
        let now = self.clock.now();
        loop {
            let (address, packet, left_out) = client.next_packet(now);
            broker.count(self.index as u16, |counts| counts.left_out += left_out);
            let (Some(address), Some(packet)) = (address, packet) else { return };
            self.deliver(&mut self.figures(), address, packet.into());
        }
    }

    /// Disconnects clients that were silent for too long, publishes due wills and ends expired
    /// sessions.
    pub(super) fn sweep(&self) {
        let Some(broker) = &self.setup.mqtt else { return };
        let now: Time = self.clock.now();
        self.send_away(
            |connection| connection.is_overdue(now),
            |_| broker.count(self.index as u16, |counts| counts.keep_alive += 1),
        );
        if self.index == 0 {
            self.setup.send(broker.sweep(now));
        }
        self.timer.at(now + SWEEP_EVERY, Due::Sweep);
    }
}
