//! What this machine announces to the others of its run: the messages its users have sent, and how
//! many users wait at its places. Announcements may be lost, duplicated or late.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::{Share, StepId, Time};

use crate::ledger;
use crate::peers::every;
use crate::rendezvous;

/// An announcement of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Announced(Word);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    Sent(ledger::Announced),
    Waiting(rendezvous::Announced),
}

/// See the module's description.
#[derive(Debug)]
pub struct Bridge {
    share: Share,
    ledgers: Option<ledger::Bridge>,
    places: Option<rendezvous::Bridge>,
}

impl Bridge {
    /// None if the run has nothing to announce.
    pub(crate) fn new(
        share: Share,
        ledgers: Option<ledger::Bridge>,
        places: Option<rendezvous::Bridge>,
    ) -> Option<Bridge> {
        let is_bridged = ledgers.is_some() || places.is_some();
        is_bridged.then_some(Bridge { share, ledgers, places })
    }

    /// How often to call `tell`.
    pub fn every(&self) -> Duration {
        every(self.share)
    }

    /// Returns the announcements, and passes those of others on to the shards.
    pub fn tell(&mut self, now: Time) -> Vec<Announced> {
        let sent = self.ledgers.iter_mut().flat_map(|ledgers| ledgers.tell(now));
        let waiting = self.places.iter_mut().map(|places| Word::Waiting(places.tell(now)));
        sent.map(Word::Sent).chain(waiting).map(Announced).collect()
    }

    /// Another machine has announced this; its clock and ours agree within `error`.
    pub fn hear(&mut self, announced: &Announced, error: Duration, now: Time) {
        match (&announced.0, &mut self.ledgers, &mut self.places) {
            (Word::Sent(sent), Some(ledgers), _) => ledgers.hear(sent, error, now),
            (Word::Waiting(waiting), _, Some(places)) => places.hear(waiting, error, now),
            _ => {}
        }
    }

    /// By step: messages of other machines that this one cannot watch, since the last call.
    pub fn missed(&mut self) -> impl Iterator<Item = (StepId, u64)> {
        self.ledgers.iter_mut().flat_map(ledger::Bridge::missed)
    }

    /// The shards are gone: the last announcements.
    pub fn end(mut self, now: Time) -> Vec<Announced> {
        self.places.iter_mut().for_each(rendezvous::Bridge::leave);
        self.tell(now)
    }
}
