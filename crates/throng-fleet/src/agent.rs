//! An agent: joins the fleet, takes a share of a run, forwards orders to the child that generates
//! the load, and sends its output until it is in the log. All access to its machine goes through a
//! [`Host`], so that tests can run a fleet without processes.

mod announcing;
mod join;
mod sending;

use std::rc::Rc;
use std::time::Duration;

use throng_base::{Random, Said, Time};
use throng_bus::{Bus, BusError, Entry, Link, Message, Subscription};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use crate::offset::Offset;
use crate::orphan::{Orphan, Patience};
use crate::presence::{HEARTBEAT_EVERY, Incarnation};
use crate::wire::{
    Beacon, Desired, End, Heartbeat, Plan, Registered, Stage, from_json, names, to_json,
};
use crate::{Ticking, every, ticking};
use join::{Joined, NotJoined, join};
use sending::Sending;

/// How often an agent checks its child.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often it checks whether another process uses the same name.
const REGISTER_EVERY: Duration = Duration::from_secs(10);
const OFFSET_EVERY: Duration = Duration::from_secs(30);
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Maximum number of finished runs that are remembered.
const RUNS_KEPT: usize = 64;

/// A share to be started.
pub struct Begin<'a> {
    pub plan: &'a Plan,
    pub part: throng_base::LoadPart,
    /// One life has one share of a run.
    pub life: Incarnation,
    /// In the order of their names in the plan.
    pub files: Vec<bytes::Bytes>,
}

/// The machine of an agent.
pub trait Host: 'static {
    type Child: Child;
    type Spool: Spool;

    /// Nanoseconds since the Unix epoch by the machine's clock.
    fn unix_ns(&self) -> u64;

    /// Starts a child that prepares and waits.
    ///
    /// # Errors Says why it cannot or must not.
    async fn begin(&self, begin: Begin<'_>) -> Result<(Self::Child, Self::Spool), Said>;

    /// What earlier lives have not completely sent: run, life, lines.
    fn left(&self) -> Vec<(String, Incarnation, Self::Spool)>;
}

/// The process that generates the load. When dropped, it ends its load gracefully.
pub trait Child: 'static {
    /// Starts the load at this time of the machine's clock.
    fn start(&mut self, unix_ns: u64);

    /// Forwards an order unchanged. False if the machine's owner does not allow it; the child then
    /// reports that.
    fn order(&mut self, order: &str) -> bool;

    /// True if it waits for its start.
    fn is_ready(&self) -> bool;

    /// New announcements for the children of other agents, unchanged. Children detect lost
    /// announcements.
    fn announced(&mut self) -> Vec<String>;

    /// An announcement of another agent's child; the clocks of both agree within the error.
    fn hear(&mut self, announced: &str, error_ns: u64);
}

/// The output of a child, on disk.
pub trait Spool: 'static {
    /// The next complete lines, a limited number; empty if there are none yet.
    fn read(&mut self) -> Vec<u8>;

    /// How it ended, if nothing follows. Called after a read that returned nothing.
    fn ended(&mut self) -> Option<Finish>;

    /// All of it is in the log.
    fn sent(&mut self);
}

/// How a child ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    /// Why, if it did not end gracefully.
    pub cut_short: Option<Said>,
    /// It was never ready.
    pub refused: bool,
}

/// Checks that the fleet's operator has signed a plan or an order: the text, and its signature.
pub type Verify = Rc<dyn Fn(&str, &str) -> bool>;

/// The properties of an agent.
#[derive(Clone)]
pub struct About {
    pub name: String,
    pub registered: Registered,
    pub patience: Patience,
    pub verify: Verify,
}

/// For the log of the agent's machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    Link(Link),
    Registered,
    Preparing {
        run: String,
    },
    Refused {
        run: String,
        why: Said,
    },
    Started {
        run: String,
    },
    /// An order without the operator's signature, which was ignored.
    Forged {
        run: String,
    },
    /// An order above the limits of the machine's owner, which was ignored.
    Declined {
        run: String,
    },
    /// It was isolated for too long: its load ends.
    Alone {
        run: String,
    },
    Sent {
        run: String,
        lines: u64,
    },
}

/// See the module's description.
pub struct Agent<B, H: Host> {
    bus: B,
    host: Rc<H>,
    about: About,
    tell: UnboundedSender<Happened>,
    ticking: Ticking,
    duty: Option<Duty<H::Child>>,
    sendings: Vec<Sending<H::Spool>>,
    offset: Option<Offset>,
    /// When the bus was last heard.
    heard: Time,
    /// It joins no further runs.
    leaves: bool,
    /// Runs that were checked and need no further action.
    known: Vec<String>,
    /// The run that it is joining.
    joining: Option<String>,
    again: Again,
    is_reading: bool,
    /// Announcements of other agents in the run.
    announced: Option<Subscription>,
    done: (UnboundedSender<Done<H>>, UnboundedReceiver<Done<H>>),
}

/// The current share.
struct Duty<C> {
    run: String,
    child: C,
    epoch: u64,
    revision: u64,
    applied: usize,
    is_started: bool,
    /// The offset of the clock at the start of the load.
    began: Option<Offset>,
    orphan: Orphan,
}

/// A background operation that has finished.
enum Done<H: Host> {
    Joined(Box<Joined<H>>),
    NotJoined(String, NotJoined),
    Read(String, Result<Option<Entry>, BusError>),
    Appended { sending: usize, batch: u64, result: Result<(), BusError> },
    Offset(Option<Offset>),
    Listens(String, Result<Subscription, BusError>),
    Register(Result<(), NotJoined>),
}

/// When it tries to join again. All agents of a fleet learn of a run at the same moment: those that
/// the bus was too busy for retry at different times.
#[derive(Debug, Default)]
struct Again {
    tries: u64,
    not_before: Time,
}

impl Again {
    const MAX: Duration = Duration::from_secs(16);

    fn later(&mut self, about: &About, now: Time) {
        self.tries += 1;
        let longest = Again::MAX.min(Duration::from_secs(1 << self.tries.min(10)));
        let add = |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte));
        let owner = about.name.bytes().fold(about.registered.life.0, add);
        let nanos = Random::for_owner(owner, self.tries).below(longest.as_nanos() as u64);
        self.not_before = now + Duration::from_nanos(nanos);
    }
}

impl<B: Bus, H: Host> Agent<B, H> {
    pub fn new(bus: B, host: H, about: About, tell: UnboundedSender<Happened>) -> Agent<B, H> {
        Agent {
            bus,
            host: Rc::new(host),
            about,
            tell,
            ticking: ticking(),
            duty: None,
            sendings: Vec::new(),
            offset: None,
            heard: Time::ZERO,
            leaves: false,
            known: Vec::new(),
            joining: None,
            again: Again::default(),
            is_reading: false,
            announced: None,
            done: unbounded_channel(),
        }
    }

    /// Runs until it cannot continue, which is returned, or is asked to leave: then it ends its
    /// load gracefully and sends the rest. Must run in a `LocalSet`.
    pub async fn work(mut self, leave: impl Future<Output = ()>) -> Result<(), Said> {
        self.works(leave).await.map_err(|error| match error {
            BusError::Refused(why) => why,
            _ => say!("the bus does not respond"),
        })
    }

    async fn works(&mut self, leave: impl Future<Output = ()>) -> Result<(), BusError> {
        tokio::pin!(leave);
        for (run, life, spool) in self.host.left() {
            self.send(run, life, Some(spool), None);
        }
        let mut beacons = self.bus.subscribe(names::BEACON).await?;
        let mut written = self.bus.subscribe(&names::written(&names::desired("*"))).await?;
        let mut link = self.bus.link();
        self.linked(&link.borrow_and_update().clone())?;
        let (mut look, mut beat) = (every(LOOK_EVERY), every(HEARTBEAT_EVERY));
        let (mut register, mut offset) = (every(REGISTER_EVERY), every(OFFSET_EVERY));
        while !self.leaves || !self.sendings.is_empty() {
            tokio::select! {
                biased;
                () = &mut leave, if !self.leaves => {
                    self.leaves = true;
                    self.cut_short(&say!("it received a request to leave"));
                }
                changed = link.changed() => {
                    if changed.is_err() {
                        return Err(BusError::Refused(say!("the connection to the bus is permanently lost")));
                    }
                    let now = link.borrow_and_update().clone();
                    self.linked(&now)?;
                }
                Some(done) = self.done.1.recv() => self.done(done)?,
                Some(message) = written.recv() => self.written(&message),
                Some(message) = beacons.recv() => self.beacon(&message),
                Some(message) = announcing::next(&mut self.announced) => self.hear(&message),
                _ = look.tick() => self.look(),
                _ = beat.tick() => self.beat(),
                _ = register.tick() => self.register(Duration::ZERO),
                _ = offset.tick() => self.measure(),
            }
        }
        Ok(())
    }

    /// Ends its load.
    fn cut_short(&mut self, why: &Said) {
        let Some(duty) = &self.duty else { return };
        let own = self.sendings.iter_mut().find(|sending| sending.run == duty.run);
        own.into_iter().for_each(|sending| sending.cut_short(why.clone()));
        // The child ends gracefully when its input is closed.
        self.leave();
    }

    fn tell(&self, happened: Happened) {
        let _ = self.tell.send(happened);
    }

    fn linked(&mut self, link: &Link) -> Result<(), BusError> {
        self.tell(Happened::Link(link.clone()));
        match link {
            Link::Refused(why) => return Err(BusError::Refused(why.clone())),
            Link::Up => {
                self.duty.iter_mut().for_each(|duty| duty.orphan.bus_is_back());
                self.sendings.iter_mut().for_each(Sending::reconnected);
                self.register(Duration::ZERO);
            }
            // The disconnect began before it was noticed; others count from its begin too.
            Link::Cut => {
                let heard = self.heard;
                self.duty.iter_mut().for_each(|duty| duty.orphan.bus_is_lost(heard));
            }
            Link::Begun => {}
        }
        Ok(())
    }

    /// Writes its own register, and checks that no other agent uses it.
    fn register(&self, after: Duration) {
        let (bus, sender) = (self.bus.clone(), self.done.0.clone());
        let (name, registered) = (self.about.name.clone(), self.about.registered.clone());
        tokio::task::spawn_local(async move {
            sleep(after).await;
            let _ = sender.send(Done::Register(join::register(&bus, &name, &registered).await));
        });
    }

    fn measure(&self) {
        let (bus, host, sender) = (self.bus.clone(), Rc::clone(&self.host), self.done.0.clone());
        tokio::task::spawn_local(async move {
            let _ = sender.send(Done::Offset(join::offset(&bus, &*host).await));
        });
    }

    fn beacon(&mut self, message: &Message) {
        let Some(beacon) = from_json::<Beacon>(&message.payload) else { return };
        let now = self.ticking.now();
        self.heard = now;
        match &mut self.duty {
            Some(duty) if duty.run == beacon.run => {
                duty.orphan.beacon(now);
                if beacon.revision > duty.revision {
                    self.read(beacon.run);
                }
            }
            Some(_) => {}
            None => self.join(beacon.run),
        }
    }

    /// Joins a run if the plan contains a share for it.
    fn join(&mut self, run: String) {
        let is_early = self.ticking.now() < self.again.not_before;
        if self.leaves || self.joining.is_some() || self.known.contains(&run) || is_early {
            return;
        }
        self.joining = Some(run.clone());
        self.tell(Happened::Preparing { run: run.clone() });
        let (bus, host, about) = (self.bus.clone(), Rc::clone(&self.host), self.about.clone());
        let sender = self.done.0.clone();
        tokio::task::spawn_local(async move {
            let done = match join(&bus, host, &about, &run).await {
                Ok(joined) => Done::Joined(Box::new(joined)),
                Err(why) => Done::NotJoined(run, why),
            };
            let _ = sender.send(done);
        });
    }

    /// Reads the desired state.
    fn read(&mut self, run: String) {
        if std::mem::replace(&mut self.is_reading, true) {
            return;
        }
        let (bus, sender) = (self.bus.clone(), self.done.0.clone());
        tokio::task::spawn_local(async move {
            let entry = bus.read(&names::desired(&run)).await;
            let _ = sender.send(Done::Read(run, entry));
        });
    }

    fn written(&mut self, message: &Message) {
        let Some(revision) = message.revision else { return };
        let run = self.duty.as_ref().map(|duty| duty.run.clone());
        let is_ours =
            run.as_ref().is_some_and(|run| message.subject == names::written(&names::desired(run)));
        if is_ours {
            self.obey(revision, &message.payload);
        }
    }

    /// Executes new orders.
    fn obey(&mut self, revision: u64, desired: &[u8]) {
        let Some(desired) = from_json::<Desired>(desired) else { return };
        let Some(duty) = &mut self.duty else { return };
        if revision <= duty.revision || desired.epoch < duty.epoch {
            return;
        }
        (duty.revision, duty.epoch) = (revision, desired.epoch);
        if let Some(start) = desired.start.filter(|_| !duty.is_started) {
            let run = duty.run.clone();
            let is_signed = (self.about.verify)(&start.signed_text(&run), &start.signature);
            if is_signed {
                let ahead = self.offset.map_or(0, |offset| offset.ahead_ns);
                duty.child.start(start.start.unix_ns.saturating_add_signed(ahead.saturating_neg()));
                (duty.is_started, duty.began) = (true, self.offset);
            }
            let told = if is_signed { Happened::Started { run } } else { Happened::Forged { run } };
            let _ = self.tell.send(told);
        }
        if duty.is_started {
            for ordered in desired.orders.iter().skip(duty.applied) {
                let text = ordered.signed_text(&duty.run, duty.applied);
                if !(self.about.verify)(&text, &ordered.signature) {
                    let _ = self.tell.send(Happened::Forged { run: duty.run.clone() });
                    break;
                }
                let is_excepted = ordered.except.as_ref() == Some(&self.about.name);
                if !is_excepted && !duty.child.order(ordered.order.text()) {
                    let _ = self.tell.send(Happened::Declined { run: duty.run.clone() });
                }
                duty.applied += 1;
            }
        }
        if desired.over && !duty.is_started {
            self.leave();
        }
    }

    /// It has no more orders to follow.
    fn leave(&mut self) {
        // There may be a last announcement after the end of its child.
        self.announce();
        self.announced = None;
        if let Some(duty) = self.duty.take() {
            self.forget(duty.run);
        }
    }

    fn forget(&mut self, run: String) {
        if self.known.len() == RUNS_KEPT {
            self.known.remove(0);
        }
        self.known.push(run);
    }

    fn done(&mut self, done: Done<H>) -> Result<(), BusError> {
        match done {
            Done::Joined(joined) => self.joined(*joined),
            Done::NotJoined(run, why) => self.not_joined(run, why),
            Done::Read(run, entry) => {
                self.is_reading = false;
                let is_ours = self.duty.as_ref().is_some_and(|duty| duty.run == run);
                match entry {
                    Ok(Some(entry)) if is_ours => self.obey(entry.revision, &entry.value),
                    Err(BusError::Refused(why)) => return Err(BusError::Refused(why)),
                    // The next beacon triggers another attempt.
                    _ => {}
                }
            }
            Done::Appended { sending, batch, result } => {
                self.appended(sending, batch, result)?;
            }
            Done::Offset(offset) => self.offset = offset.or(self.offset),
            Done::Listens(run, subscription) => self.listens(run, subscription)?,
            Done::Register(Ok(())) => self.tell(Happened::Registered),
            Done::Register(Err(NotJoined::Refused(why))) => return Err(BusError::Refused(why)),
            Done::Register(Err(_)) => self.register(AGAIN_AFTER),
        }
        Ok(())
    }

    fn joined(&mut self, joined: Joined<H>) {
        let Joined { run, life, child, spool, offset } = joined;
        (self.joining, self.again) = (None, Again::default());
        self.offset = Some(offset);
        let orphan = Orphan::new(self.about.patience, self.ticking.now());
        self.duty = Some(Duty {
            run: run.clone(),
            child,
            epoch: 0,
            revision: 0,
            applied: 0,
            is_started: false,
            began: None,
            orphan,
        });
        self.listen(run.clone(), Duration::ZERO);
        self.send(run.clone(), life, Some(spool), None);
        self.read(run);
    }

    fn not_joined(&mut self, run: String, why: NotJoined) {
        self.joining = None;
        match why {
            // A later beacon triggers another attempt.
            NotJoined::Again => self.again.later(&self.about, self.ticking.now()),
            NotJoined::NoPart => self.forget(run),
            NotJoined::Refused(why) => {
                self.tell(Happened::Refused { run: run.clone(), why: why.clone() });
                let end = End { lines: 0, cut_short: Some(why), refused: true };
                self.send(run.clone(), self.about.registered.life, None, Some(end));
                self.forget(run);
            }
        }
    }

    fn send(&mut self, run: String, life: Incarnation, spool: Option<H::Spool>, end: Option<End>) {
        let number = self.sendings.iter().map(|sending| sending.number + 1).max().unwrap_or(0);
        let subject = names::lines(&run, &self.about.name);
        self.sendings.push(Sending::new((number, run, subject), life, spool, end));
        self.pump();
    }

    fn appended(
        &mut self,
        sending: usize,
        batch: u64,
        result: Result<(), BusError>,
    ) -> Result<(), BusError> {
        let now = self.ticking.now();
        let Some(at) = self.sendings.iter().position(|one| one.number == sending) else {
            return Ok(());
        };
        if result.is_ok() {
            self.heard = now;
        }
        match result {
            Ok(()) if self.sendings[at].acknowledged(batch) => {
                let sending = self.sendings.remove(at);
                self.tell(Happened::Sent { run: sending.run.clone(), lines: sending.lines() });
                let is_duty = |duty: &Duty<_>| duty.run == sending.run;
                if self.duty.as_ref().is_some_and(is_duty) {
                    self.leave();
                }
            }
            Ok(()) => {}
            Err(BusError::Refused(why)) => return Err(BusError::Refused(why)),
            Err(_) => self.sendings[at].refused(batch, now),
        }
        self.pump();
        Ok(())
    }

    /// Sends as much as the bus has capacity for.
    fn pump(&mut self) {
        let now = self.ticking.now();
        for sending in &mut self.sendings {
            sending.fill();
            while let Some((batch, id, payload)) = sending.next(now, &self.about.name) {
                let (bus, sender) = (self.bus.clone(), self.done.0.clone());
                let (number, subject) = (sending.number, sending.subject.clone());
                tokio::task::spawn_local(async move {
                    let result = bus.append(&subject, &id, payload).await;
                    let _ = sender.send(Done::Appended { sending: number, batch, result });
                });
            }
        }
    }

    fn look(&mut self) {
        let now = self.ticking.now();
        if let Some(duty) = &mut self.duty
            && duty.is_started
            && duty.orphan.alone(now).is_some()
        {
            let run = duty.run.clone();
            self.tell(Happened::Alone { run });
            self.cut_short(&say!("no contact with the bus or the controller for too long"));
        }
        self.announce();
        self.pump();
    }

    fn stage(&self) -> Stage {
        match &self.duty {
            Some(duty) if duty.is_started => Stage::Running,
            Some(duty) if duty.child.is_ready() => Stage::Ready,
            Some(_) => Stage::Preparing,
            None if self.joining.is_some() => Stage::Preparing,
            None if !self.sendings.is_empty() => Stage::Sending,
            None => Stage::Idle,
        }
    }

    fn beat(&self) {
        let offset = self.offset;
        let sending = self.sendings.last();
        let heartbeat = Heartbeat {
            life: self.about.registered.life,
            stage: self.stage(),
            run: match &self.duty {
                Some(duty) => Some(duty.run.clone()),
                None => sending.map(|sending| sending.run.clone()),
            },
            applied: self.duty.as_ref().map_or(0, |duty| duty.applied as u64),
            waiting: self.sendings.iter().map(Sending::waiting).sum(),
            ahead_ns: offset.map(|offset| offset.ahead_ns),
            error_ns: offset.map(|offset| offset.error_ns),
        };
        self.bus.publish(&names::heartbeat(&self.about.name), to_json(&heartbeat).into());
    }
}
