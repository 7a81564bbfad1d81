//! Generates the load of a run on one machine: the engine, its resources and their limits. Sends
//! [`Message`]s about what happens and executes [`Order`]s. Every machine of a run has a generator.

pub(crate) mod announcer;
pub(crate) mod auditor;
pub(crate) mod limits;
mod polite;
mod resources;

use std::sync::Arc;
use std::time::Duration;

use throng_base::Time;
use throng_engine::{
    Example, GROWTH_AHEAD, Holder, NameNews, Oddity, Presences, Run, Shown, Stopped, Update,
};
use throng_load::{Adjustment, Amendment};
use throng_metrics::{Cause, Gauges, Interval, Merge as _, Resources};
use throng_program::Program;
use throng_results::{AllGauges, EVIDENCE_MAX, Event, Evidence, Piece};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::HostLimits;
use crate::running::Running;
use crate::wire::{Message, Order};
use announcer::Announcer;
use auditor::Auditor;
use limits::{Deed, Limits, Reason, is_growing};
use polite::{Polite, Portion};
use resources::Watcher;

/// Resources are read with every interval, or after this time without one, because shards that get
/// no processor deliver no intervals. While users are added, memory is read more often, because it
/// can run out within a second.
const LOOK_AFTER: Duration = Duration::from_millis(1500);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Receives lines with the number of their machine.
pub(crate) type Lines = UnboundedSender<(u16, Message)>;

pub(crate) struct Generator {
    program: Arc<Program>,
    run: Run,
    machine: u16,
    lines: Lines,
    running: Running,
    watcher: Watcher,
    limits: Limits,
    /// Present if other machines also have ledgers.
    announcer: Option<Announcer>,
    auditor: Option<Auditor>,
    /// Present with `--back-off`.
    polite: Option<Polite>,
    /// The portion of its part that the host allows, and the factor by which it replaces other
    /// machines.
    own: f64,
    taken: f64,
    looked: Time,
    /// Readings since the last interval.
    resources: Option<Resources>,
    /// Second and phase of the last interval.
    last: (u64, u16),
    gauges: Gauges,
    all_gauges: AllGauges,
    /// No users are added anymore, so growth cannot be paused.
    is_stopping: bool,
    /// Kinds of failures whose evidence was sent.
    evidenced: Vec<(u16, Cause, u16)>,
}

impl Generator {
    pub(crate) fn new(
        program: &Arc<Program>,
        run: Run,
        limits: &HostLimits,
        (machine, lines): (u16, Lines),
    ) -> Generator {
        Generator {
            watcher: Watcher::new(program, &run),
            running: Running::new(program),
            program: Arc::clone(program),
            run,
            machine,
            lines,
            limits: Limits::new(limits),
            announcer: None,
            auditor: None,
            polite: limits.back_off.map(Polite::new),
            own: 1.0,
            taken: 1.0,
            looked: Time::ZERO,
            resources: None,
            last: (0, 0),
            gauges: Gauges::default(),
            all_gauges: AllGauges::default(),
            is_stopping: false,
            evidenced: Vec::new(),
        }
    }

    /// A generator that exchanges announcements with other machines.
    pub(crate) fn announcing(self, announcer: Option<Announcer>) -> Generator {
        Generator { announcer, ..self }
    }

    /// A generator that compares its users with the target's data.
    pub(crate) fn auditing(self, auditor: Option<Auditor>) -> Generator {
        Generator { auditor, ..self }
    }

    /// Works until the load ends. If the controller is lost, the load ends gracefully.
    pub(crate) async fn work(mut self, mut orders: UnboundedReceiver<Order>) {
        // If the host is already at a limit, no users start.
        self.look();
        let mut look = tokio::time::interval(LOOK_EVERY);
        let mut obeys = true;
        loop {
            tokio::select! {
                biased;
                order = orders.recv(), if obeys => match order {
                    Some(order) => self.obey(&order),
                    None => {
                        obeys = false;
                        self.left_alone();
                        self.obey(&Order::Stop);
                    }
                },
                update = self.run.next() => match update {
                    Some(update) => self.update(update),
                    None => break,
                },
                () = turn(&mut self.announcer) => {}
                _ = look.tick() => {
                    if self.run.clock.now() - self.looked >= LOOK_AFTER {
                        self.look();
                    } else if self.is_growing() {
                        self.look_at_memory();
                    }
                }
            }
        }
        match self.auditor.take() {
            Some(auditor) => auditor.end(&mut orders).await,
            None if self.run.presences.is_some() => self.presence(None),
            None => {}
        }
        let at_ns = self.run.clock.now().as_nanos();
        let whole = self.run.join();
        if let Some(mut announcer) = self.announcer {
            // Announcements missed after the last interval are counted in it.
            let ((second, phase), machine) = (self.last, self.machine);
            let mut rest = Interval { second, phase, ..Interval::default() };
            unwatched(&mut announcer, &mut rest);
            if !rest.deliveries.is_empty() {
                let _ = self.lines.send((machine, Message::Interval(Box::new(rest))));
            }
            announcer.end();
        }
        let _ = self.lines.send((self.machine, Message::Over { at_ns, whole }));
    }

    /// The controller was lost before the end of the load. The generator records this in its lines,
    /// which may be all that remains of this part.
    fn left_alone(&self) {
        let (at_ns, machine) = (self.run.clock.now().as_nanos(), self.machine);
        let detail = say!("it received no more commands, so it ended its load gracefully");
        let event = Event::MachineLost { at_ns, machine, detail };
        let _ = self.lines.send((machine, Message::Event(event)));
    }

    fn obey(&mut self, order: &Order) {
        let (control, now) = (&self.run.control, self.run.clock.now());
        match *order {
            Order::Stop => control.stop(),
            Order::Abort => control.abort(),
            Order::Pause => control.hold(Holder::Person, now),
            Order::GoOn => control.release(Holder::Person, now),
            Order::Take { at_ns, times, .. } => {
                self.taken = times;
                self.amend_portion(Time(at_ns));
            }
            Order::Amend { load, at_ns, change, users_max } => {
                let (at, change) = (Time(at_ns), change.into());
                control.amend(load, Amendment { at, change, users_max });
            }
            Order::Mark { .. } | Order::Record { .. } => {}
            Order::Presence { ask } => self.presence(Some(ask)),
            Order::Audit { audit, event } => {
                self.auditor.iter().for_each(|auditor| auditor.round(audit, event));
            }
            Order::Decline => self.tell(Message::Notice {
                at_ns: now.as_nanos(),
                text: say!(
                    "the requested load exceeds its owner's limit, so its load is unchanged"
                ),
            }),
        }
        self.is_stopping |= matches!(order, Order::Stop | Order::Abort);
    }

    /// Sends the list of online users.
    fn presence(&self, ask: Option<u64>) {
        let known = self.run.presences.as_ref().map(Presences::snapshot).unwrap_or_default();
        self.tell(Message::Presence { ask, known });
    }

    /// Fails silently if the controller is lost.
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
                self.event(&Event::Stopped { at_ns: at.as_nanos(), reason, by });
            }
            Update::Oddity(Oddity { at, step, counter, detail }) => {
                let (at_ns, step) = (at.as_nanos(), step.0);
                self.event(&Event::Delivery { at_ns, step, counter, detail });
            }
            Update::Name(news) => self.name(news),
            Update::Log(line) => {
                let user = line.user.map_or(0, |user| user.0);
                self.event(&Event::Log { at_ns: line.at.as_nanos(), user, text: line.text });
            }
            // Only `throng try` requests traces.
            Update::Trace(_) => {}
        }
    }

    fn name(&self, news: NameNews) {
        match news {
            NameNews::Moved { at, host, before, after } => {
                self.event(&Event::AddressesChanged { at_ns: at.as_nanos(), host, before, after });
            }
            NameNews::Kept { at, host, reason } => self.tell(Message::Notice {
                at_ns: at.as_nanos(),
                text: say!(
                    "`{host}` cannot be resolved again: {reason}; throng keeps its \
                     previous addresses"
                ),
            }),
        }
    }

    fn interval(&mut self, mut interval: Interval) {
        self.last = (interval.second, interval.phase);
        if let Some(announcer) = &mut self.announcer {
            unwatched(announcer, &mut interval);
        }
        let load = self.running.load_of(interval.phase);
        self.gauges = self.all_gauges.add(load, &interval);
        self.look();
        // If several generators share a process, the first reports the process's resources.
        interval.generator.resources = self.resources.take().filter(|_| self.machine == 0);
        self.tell(Message::Interval(Box::new(interval)));
    }

    /// Sends an example of a failure. Shards are independent, so evidence is kept only for the
    /// first example of each kind.
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
        // A password from the user's data row is masked wherever it was sent.
        let mut secrets = self.program.secrets.clone();
        let row = || evidence.iter().flat_map(|evidence| &evidence.row);
        let column_of = |name: &str| name.rsplit('.').next().unwrap_or_default().to_string();
        for (name, value) in row() {
            if !secrets.is_name(&column_of(name)) {
                continue;
            }
            let is_elsewhere = row().any(|(other, said)| {
                said == value && !self.program.secrets.is_name(&column_of(other))
            });
            let (name, value) = (format!("data.{name}"), value.trim_matches('"'));
            match is_elsewhere {
                true => secrets.learn_placed(&name, value),
                false => secrets.learn(&name, value),
            }
        }
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

    /// Reads the resources of this process and its host, and enforces the limits.
    fn look(&mut self) {
        let now = self.run.clock.now();
        self.looked = now;
        let (mut resources, mut seen) = self.watcher.look(&self.gauges, now);
        resources.held = self.limits.is_held();
        match &mut self.resources {
            Some(before) => before.merge(&resources),
            None => self.resources = Some(resources),
        }
        seen.is_growing = self.is_growing();
        if let Some(deed) = self.limits.see(&seen, now) {
            self.do_deed(deed, now);
        }
        let polite = self.polite.as_mut();
        if let Some(portion) = polite.and_then(|polite| polite.see(&seen.others, now)) {
            self.make(portion, now);
        }
    }

    /// Reads memory between intervals while users are added, because it can run out within a
    /// second.
    fn look_at_memory(&mut self) {
        let now = self.run.clock.now();
        let seen = self.watcher.look_at_memory(&self.gauges);
        if let Some(deed) = self.limits.see(&seen, now) {
            self.do_deed(deed, now);
        }
    }

    /// Whether users are still to be added.
    fn is_growing(&self) -> bool {
        let loads = self.program.loads.iter().enumerate();
        let mut growing = loads.map(|(number, load)| {
            let present = self.all_gauges.latest_of(number).users_present;
            is_growing(load, self.running.phase_within(number), present)
        });
        !self.is_stopping && growing.any(|growing| growing)
    }

    /// Changes the portion of this machine's part that it generates, regardless of orders, and
    /// reports it to the controller.
    fn make(&mut self, portion: Portion, now: Time) {
        let at = now + GROWTH_AHEAD;
        self.own = portion.share();
        self.amend_portion(at);
        let (at_ns, machine) = (at.as_nanos(), self.machine);
        let Portion { percent, detail } = portion;
        self.event(&Event::BackedOff { at_ns, machine, percent, detail });
    }

    /// A machine that backs off does not take over load of other machines.
    fn amend_portion(&self, at: Time) {
        let portion = if self.own < 1.0 { self.own } else { self.taken };
        let (change, spare) = (Adjustment::Portion(portion), self.run.users_spare.users);
        for (load, one) in self.program.loads.iter().enumerate() {
            let users_max = one.staying_max().saturating_add(spare);
            self.run.control.amend(load as u16, Amendment { at, change, users_max });
        }
    }

    /// Acts on a limit that was reached or left, and reports it immediately.
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
                let text = say!(
                    "the generator is at a limit, but all users have started, so growth cannot \
                     be paused: {detail}"
                );
                return self.tell(Message::Notice { at_ns, text });
            }
        });
    }
}

/// Pending forever without an announcer.
async fn turn(announcer: &mut Option<Announcer>) {
    match announcer {
        Some(announcer) => announcer.turn().await,
        None => std::future::pending().await,
    }
}

/// Counts the messages of other machines that were not announced here.
fn unwatched(announcer: &mut Announcer, interval: &mut Interval) {
    for (step, missed) in announcer.missed() {
        interval.delivery_mut(step.0).unwatched += missed;
    }
}
