//! The side of a run that makes the load: the engine, what it takes of its host, and the limits of
//! that. It tells what happens in [`Message`]s and obeys [`Order`]s; there is one on every machine.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Time;
use throng_engine::{Example, Holder, Oddity, Run, Shown, Stopped, StoppedBy, Update};
use throng_load::Amendment;
use throng_metrics::{Cause, Gauges, Interval, Resources};
use throng_program::Program;
use throng_results::{AllGauges, EVIDENCE_MAX, Event, Evidence, Piece, StopBy};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::limits::{Deed, Limits, Reason, is_growing};
use super::resources::Watcher;
use super::running::Running;
use super::wire::{Message, Order};
use crate::arguments::LimitArguments;

/// Resources are looked at with every interval, and without one after this time: shards that have
/// no processor to run on hand nothing over.
const LOOK_AFTER: Duration = Duration::from_millis(1500);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Where lines go.
pub(super) type Lines = UnboundedSender<(u16, Message)>;

/// See the module's description.
pub(super) struct Post {
    program: Arc<Program>,
    run: Run,
    machine: u16,
    lines: Lines,
    running: Running,
    watcher: Watcher,
    limits: Limits,
    looked: Time,
    /// What was seen since the last interval.
    resources: Option<Resources>,
    /// Of the last interval.
    gauges: Gauges,
    all_gauges: AllGauges,
    /// Nobody comes any more, so that nobody can be held back.
    is_stopping: bool,
    /// Kinds of failures whose evidence was told.
    evidenced: Vec<(u16, Cause, u16)>,
}

impl Post {
    pub(super) fn new(
        program: &Arc<Program>,
        run: Run,
        limits: &LimitArguments,
        (machine, lines): (u16, Lines),
    ) -> Post {
        Post {
            watcher: Watcher::new(program, &run),
            running: Running::new(program),
            program: Arc::clone(program),
            run,
            machine,
            lines,
            limits: Limits::new(limits),
            looked: Time::ZERO,
            resources: None,
            gauges: Gauges::default(),
            all_gauges: AllGauges::default(),
            is_stopping: false,
            evidenced: Vec::new(),
        }
    }

    /// Until the load is over. Where there is nobody any more to give orders, it ends in order.
    pub(super) async fn work(mut self, mut orders: UnboundedReceiver<Order>) {
        // A host that has too little already lets nobody come.
        self.look();
        let mut look = tokio::time::interval(LOOK_EVERY);
        let mut obeys = true;
        loop {
            tokio::select! {
                biased;
                order = orders.recv(), if obeys => match order {
                    Some(order) => self.obey(order),
                    None => {
                        obeys = false;
                        self.obey(Order::Stop);
                    }
                },
                update = self.run.next() => match update {
                    Some(update) => self.update(update),
                    None => break,
                },
                _ = look.tick() => {
                    if self.run.clock.now() - self.looked >= LOOK_AFTER {
                        self.look();
                    }
                }
            }
        }
        let at_ns = self.run.clock.now().as_nanos();
        let whole = self.run.join();
        let _ = self.lines.send((self.machine, Message::Over { at_ns, whole }));
    }

    fn obey(&mut self, order: Order) {
        let (control, now) = (&self.run.control, self.run.clock.now());
        match order {
            Order::Stop => control.stop(),
            Order::Abort => control.abort(),
            Order::Pause => control.hold(Holder::Person, now),
            Order::GoOn => control.release(Holder::Person, now),
            Order::Amend { load, at_ns, change, users_max } => {
                let (at, change) = (Time(at_ns), change.into());
                control.amend(load, Amendment { at, change, users_max });
            }
        }
        self.is_stopping |= matches!(order, Order::Stop | Order::Abort);
    }

    /// The other side may be gone: then nothing can be told.
    fn tell(&self, message: Message) {
        let _ = self.lines.send((self.machine, message));
    }

    fn event(&self, event: &Event) {
        self.tell(Message::Event(event.masked(&self.program.secrets)));
    }

    fn update(&mut self, update: Update) {
        match update {
            Update::Interval(interval) => self.interval(interval),
            Update::Example(example) => self.failure(example),
            Update::PhaseBegun { phase, at } => {
                self.running.begun(phase, at);
                self.event(&Event::PhaseBegun { at_ns: at.as_nanos(), phase });
            }
            Update::PhaseEnded { phase, at } => {
                self.running.ended(phase);
                self.event(&Event::PhaseEnded { at_ns: at.as_nanos(), phase });
            }
            Update::Stopped(Stopped { at, reason, by }) => {
                let by = match by {
                    StoppedBy::Rule => StopBy::Rule,
                    StoppedBy::Data => StopBy::Data,
                };
                self.event(&Event::Stopped { at_ns: at.as_nanos(), reason, by });
            }
            Update::Oddity(Oddity { at, step, counter, detail }) => {
                let (at_ns, step) = (at.as_nanos(), step.0);
                self.event(&Event::Delivery { at_ns, step, counter, detail });
            }
            Update::Log(line) => {
                let user = line.user.map_or(0, |user| user.0);
                self.event(&Event::Log { at_ns: line.at.as_nanos(), user, text: line.text });
            }
            // Only `throng try` asks for them.
            Update::Trace(_) => {}
        }
    }

    fn interval(&mut self, mut interval: Interval) {
        let load = self.running.load_of(interval.phase);
        self.gauges = self.all_gauges.add(load, &interval);
        self.look();
        interval.resources = self.resources.take();
        self.tell(Message::Interval(Box::new(interval)));
    }

    /// An example of a failure. Shards do not know of each other: the first of each kind keeps its
    /// evidence.
    fn failure(&mut self, example: Example) {
        let Example { at, step, cause, mut detail, evidence } = example;
        let evidence = evidence.filter(|evidence| {
            let kind = (step.0, cause, evidence.code);
            let is_new = self.evidenced.len() < EVIDENCE_MAX && !self.evidenced.contains(&kind);
            if is_new {
                self.evidenced.push(kind);
            }
            is_new
        });
        // A password of the user's row is one wherever it was sent.
        let mut secrets = self.program.secrets.clone();
        let row = evidence.iter().flat_map(|evidence| &evidence.row);
        let column_of = |name: &str| name.rsplit('.').next().unwrap_or_default().to_string();
        row.for_each(|(name, value)| {
            if secrets.is_name(&column_of(name)) {
                secrets.add(value.trim_matches('"'));
            }
        });
        detail.change_texts(&|text| secrets.mask(text).into_owned());
        let piece = |shown: &Shown| Piece::of(&shown.bytes, shown.length, &secrets);
        let evidence = evidence.map(|evidence| {
            let masked = |(name, value): &(String, String)| {
                (name.clone(), secrets.mask_value(&column_of(name), value).into_owned())
            };
            Box::new(Evidence {
                user: evidence.user.0,
                iteration: evidence.iteration,
                code: evidence.code,
                row: evidence.row.iter().map(masked).collect(),
                sent: evidence.exchange.sent.as_ref().map(piece),
                received: evidence.exchange.received.as_ref().map(piece),
            })
        });
        let (at_ns, step) = (at.as_nanos(), step.0);
        self.event(&Event::Failure { at_ns, step, cause, detail, evidence });
    }

    /// Looks at this process and its host, and keeps to the limits.
    fn look(&mut self) {
        let now = self.run.clock.now();
        self.looked = now;
        let (mut resources, mut seen) = self.watcher.look(&self.gauges, now);
        resources.held = self.limits.is_held();
        match &mut self.resources {
            Some(before) => before.merge(&resources),
            None => self.resources = Some(resources),
        }
        let loads = self.program.loads.iter().enumerate();
        let mut growing = loads.map(|(number, load)| {
            let present = self.all_gauges.latest_of(number).users_present;
            is_growing(load, self.running.phase_within(number), present)
        });
        seen.is_growing = !self.is_stopping && growing.any(|growing| growing);
        if let Some(deed) = self.limits.see(&seen, now) {
            self.do_deed(deed, now);
        }
    }

    /// A limit was reached or left: the run does as it has to, and a person hears of it at once.
    fn do_deed(&mut self, deed: Deed, now: Time) {
        let at_ns = now.as_nanos();
        let word = |reason: &Reason| reason.limit.word().to_string();
        self.event(&match deed {
            Deed::Hold(reason) => {
                self.run.control.hold(Holder::Limit, now);
                Event::Held { at_ns, limit: word(&reason), detail: reason.detail }
            }
            Deed::Release => {
                self.run.control.release(Holder::Limit, now);
                Event::Released { at_ns }
            }
            Deed::GiveUp(reason) => {
                self.run.control.give_up_growth();
                Event::GrowthGivenUp { at_ns, limit: word(&reason), detail: reason.detail }
            }
            Deed::Tell(reason) => {
                let detail = reason.detail;
                let text = say!("at a limit, with nobody to come who could be held back: {detail}");
                return self.tell(Message::Notice { at_ns, text });
            }
        });
    }
}
