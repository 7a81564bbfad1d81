//! Presence audits of a generator in a fleet: compares its own users with the views, and reports
//! the differences to the desk. The list of online users never leaves the machine.

use throng_audit::{Ask, Audits, Found, Heard, Own};
use throng_base::{Clock, Share};
use throng_engine::Presences;
use throng_program::{Audit, AuditWhat, Program};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::wire::{Message, Order, Tally};

pub(crate) struct Auditor {
    audits: Audits,
    /// One message for each audit that has ended.
    over: UnboundedReceiver<()>,
}

/// The presence audits, with their numbers.
pub(crate) fn of_presence(audits: &[Audit]) -> impl Iterator<Item = (u16, &Audit)> {
    let is_so = |audit: &Audit| matches!(audit.what, AuditWhat::Presence { .. });
    (0..).zip(audits).filter(move |(_, audit)| is_so(audit))
}

impl Auditor {
    /// Returns `None` if there is no presence audit.
    pub(crate) fn begin(
        program: &Program,
        share: Share,
        (presences, clock): (Presences, &Clock),
        lines: UnboundedSender<(u16, Message)>,
    ) -> Auditor {
        let (done, over) = unbounded_channel();
        let own = Own::of(presences.owns(share), share.machine().0 == 0);
        let ask = move |ask| match ask {
            Ask::Presence(tell) => drop(tell.send(presences.snapshot())),
            Ask::Found(Found { audit, at, due, event, what: Heard::Round(round) }) => {
                let (at_ns, due_ns) = (at.0, due.0);
                let tally = Tally { audit, at_ns, due_ns, event, round };
                let _ = lines.send((0, Message::Audited(Box::new(tally))));
            }
            Ask::Found(_) => {}
            Ask::Over => drop(done.send(())),
        };
        let audits = Audits::begin(of_presence(&program.audits), &own, clock, ask);
        Auditor { audits, over }
    }

    /// An event requests a round.
    pub(crate) fn round(&self, audit: u16, event: u16) {
        self.audits.round(audit, event);
    }

    /// After the load, runs the final rounds, unless the operator stops waiting.
    pub(crate) async fn end(mut self, orders: &mut UnboundedReceiver<Order>) {
        self.audits.end();
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Order::Abort) | None => return,
                    Some(_) => {}
                },
                over = self.over.recv() => if over.is_none() {
                    return;
                },
            }
        }
    }
}
