//! The tasks of the controller in audits.

use throng_audit::Ask;
use throng_metrics::Interval;
use throng_results::Event;

use super::Controller;
use crate::StopRequests;
use crate::operator::next;
use crate::wire::Order;

impl Controller<'_> {
    /// Handles a request or a finding of an audit.
    pub(super) fn asks(&mut self, ask: Ask) {
        let Some(audits) = &mut self.audits else { return };
        match ask {
            Ask::Presence(tell) => {
                if let Some(ask) = audits.gather(tell) {
                    self.send_order(Order::Presence { ask });
                }
            }
            Ask::Found(found) => {
                let answer = found.event.map(|event| (event, audits.answer(&found)));
                let (events, text) = audits.found(found);
                events.iter().for_each(|event| self.event(event));
                text.into_iter().for_each(|text| self.say(text));
                if let Some((event, answer)) = answer {
                    self.done(event, &answer);
                }
            }
            Ask::Over => audits.one_is_over(),
        }
    }

    /// Counts the results of a second.
    pub(super) fn count_for_audits(&mut self, interval: &Interval) {
        let Some(audits) = &mut self.audits else { return };
        audits.interval(interval);
        let events = audits.judged(false);
        events.into_iter().for_each(|event| books_read(self, event));
    }

    /// After the load, runs the final rounds of audits, unless the operator stops waiting.
    pub(super) async fn finish_audits(&mut self, signals: &mut StopRequests) {
        let Some(audits) = &self.audits else { return };
        audits.end();
        if !self.info.interrupted && self.conduct.program.audits.iter().any(|audit| audit.at_end) {
            self.say(say!("the load has ended; the final audits are running"));
        }
        while self.audits.as_ref().is_some_and(|audits| !audits.are_over()) {
            tokio::select! {
                biased;
                () = signals.next() => break,
                ask = next(self.audits.as_mut().map(|it| &mut it.asked)) => self.asks(ask),
            }
        }
        while let Some(ask) = self.audits.as_mut().and_then(|it| it.asked.try_recv().ok()) {
            self.asks(ask);
        }
        let events = self.audits.as_mut().map(|audits| audits.judged(true)).unwrap_or_default();
        events.into_iter().for_each(|event| books_read(self, event));
        self.audits = None;
    }
}

/// Stores the target's counts for a controller that takes over, because it cannot read them again.
fn books_read(controller: &mut Controller<'_>, event: Event) {
    controller.event(&event);
    if controller.audits.as_mut().is_some_and(|audits| audits.is_kept(&event)) {
        controller.send_order(Order::Record { event: Box::new(event) });
    }
}
