//! The controller of a fleet: commands while it holds the lease, tells agents what has to be, and
//! gathers what they tell until every line is there. Whoever makes a run of that (the controller)
//! says what it wants by [`Input`]s and hears by [`Output`]s. All that matters stands on the bus,
//! so another controller can take over at any moment ([`Input::Resume`]).

mod command;
mod gather;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use throng_base::Said;
use throng_bus::{Bus, BusError, Entry, Following, Link, Logged, Message};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};
use tokio::time::timeout;

use crate::lease::{self, Held, Lease, RegisterValue};
use crate::orphan::Patience;
use crate::presence::{News, Presence};
use crate::wire::{
    Beacon, Desired, End, Heartbeat, Plan, Raw, Registered, Signed, from_json, names, to_json,
};
use crate::{Ticking, every, ticking};
use command::Command;
use gather::Gather;

const BEACON_EVERY: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// While this many outputs are waiting, no more lines are read.
const OUTPUTS_WAITING: usize = 512;
/// Time limit for writing the last order.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// What the controller wants.
#[derive(Clone, Debug)]
pub enum Input {
    /// A new run.
    Begin { plan: Box<Plan>, signed: Signed },
    /// The run of a controller that is gone, from its first line on.
    Resume { run: String },
    /// The start of the load, in nanoseconds since the Unix epoch.
    Start { unix_ns: u64 },
    /// For all agents, optionally except one in the plan. The time is that of the run.
    Order { at_ns: u64, except: Option<usize>, order: Raw },
    /// Stops waiting for this agent.
    GiveUp { agent: usize },
    /// No more shares start.
    Over,
    /// Releases the lease and ends.
    Close,
}

/// What the controller hears. Agents of a run are numbered by their place in its plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// An agent has joined or restarted.
    Agent {
        name: String,
        registered: Box<Registered>,
    },
    News {
        name: String,
        news: News,
    },
    /// This controller has the lease.
    Commands,
    /// Another one has the lease: this one has ended.
    Deposed,
    /// Read from the bus: the caller must verify the signatures.
    Resumed {
        plan: Box<Plan>,
        desired: Box<Desired>,
    },
    /// New complete lines.
    Lines {
        agent: usize,
        lines: Vec<u8>,
    },
    Ended {
        agent: usize,
        end: End,
    },
    /// A user has requested the end of the run, over the bus.
    StopWanted,
    /// All lines of all agents have arrived.
    Complete,
    /// It cannot continue.
    Failed(Said),
    /// All lines of an abandoned agent are reported, and these are missing.
    GivenUp(Missing),
    /// It has ended.
    Closed,
}

/// Missing lines of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    pub agent: usize,
    pub lines: Vec<Range<u64>>,
    /// It has not reported its end: more lines may exist from this one on.
    pub open_from: Option<u64>,
}

/// A channel for reports: the controller never waits for the receiver, but reads no more lines
/// while many are waiting.
pub fn outputs() -> (Sender<Output>, Receiver<Output>) {
    channel(Semaphore::MAX_PERMITS)
}

/// The operator's signature of a text.
pub type Sign = Box<dyn Fn(&str) -> String>;

/// See the module's description.
pub struct Controller<B> {
    bus: B,
    sign: Sign,
    ticking: Ticking,
    unix_ns: Box<dyn Fn() -> u64>,
    tell: Sender<Output>,
    lease: Lease,
    has_commanded: bool,
    presence: Presence,
    /// Registered agents.
    agents: BTreeMap<String, Registered>,
    run: Option<Run>,
    following: Option<Following>,
    done: (UnboundedSender<Done>, UnboundedReceiver<Done>),
}

/// The current run.
struct Run {
    command: Command,
    gather: Gather,
    /// How far the log was read.
    sequence: u64,
    is_complete: bool,
}

/// A background operation that has finished.
enum Done {
    /// The lease was read.
    Held(Result<Option<Entry>, BusError>),
    /// The lease was written, or not.
    Leased {
        attempt: u64,
        result: Result<u64, BusError>,
    },
    Agent {
        name: String,
        entry: Result<Option<Entry>, BusError>,
    },
    /// The plan is written.
    Planned(Result<(), BusError>),
    /// The desired state was written, or read after a conflict.
    Desired(Result<u64, BusError>),
    Reread(Result<Option<Entry>, BusError>),
    Resumed(String, Result<Option<(Entry, Entry)>, BusError>),
}

impl<B: Bus> Controller<B> {
    /// `own` must be different for each controller.
    pub fn new(
        (bus, sign): (B, Sign),
        own: u64,
        patience: Patience,
        unix_ns: Box<dyn Fn() -> u64>,
        tell: Sender<Output>,
    ) -> Controller<B> {
        Controller {
            bus,
            sign,
            ticking: ticking(),
            unix_ns,
            tell,
            lease: Lease::new(lease::Controller(own)),
            has_commanded: false,
            presence: Presence::new(patience),
            agents: BTreeMap::new(),
            run: None,
            following: None,
            done: unbounded_channel(),
        }
    }

    /// Runs until it is closed or deposed. Must run in a `LocalSet`.
    pub async fn work(mut self, mut inputs: UnboundedReceiver<Input>) {
        match self.works(&mut inputs).await {
            Ok(()) => {}
            Err(BusError::Refused(why)) => self.tell(Output::Failed(why)),
            Err(_) => self.tell(Output::Failed(say!("the bus does not respond"))),
        }
    }

    async fn works(&mut self, inputs: &mut UnboundedReceiver<Input>) -> Result<(), BusError> {
        let mut heartbeats = self.bus.subscribe(names::HEARTBEATS).await?;
        let mut asked = self.bus.subscribe(names::TIME).await?;
        let mut stops = self.bus.subscribe(names::STOP).await?;
        let mut leases = self.bus.subscribe(&names::written(names::LEASE)).await?;
        let mut link = self.bus.link();
        self.linked(&link.borrow_and_update().clone())?;
        let (mut look, mut beacon) = (every(LOOK_EVERY), every(BEACON_EVERY));
        loop {
            if self.following.is_none() {
                self.follow().await?;
            }
            let following = async {
                match &mut self.following {
                    Some(following) => following.recv().await,
                    None => std::future::pending().await,
                }
            };
            // A resumed run may have the lines of a whole day, which are read as they are consumed.
            let reads = self.tell.max_capacity() - self.tell.capacity() < OUTPUTS_WAITING;
            tokio::select! {
                biased;
                changed = link.changed() => {
                    if changed.is_err() {
                        return Err(BusError::Refused(say!("the connection to the bus is permanently lost")));
                    }
                    let now = link.borrow_and_update().clone();
                    self.linked(&now)?;
                }
                Some(message) = asked.recv() => self.answer(&message),
                Some(done) = self.done.1.recv() => self.done(done)?,
                Some(message) = leases.recv() => {
                    if let Some(revision) = message.revision {
                        self.saw(revision, &message.payload);
                    }
                }
                Some(message) = stops.recv() => self.stop(&message),
                _ = look.tick() => self.look(),
                _ = beacon.tick() => self.beacon(),
                input = inputs.recv() => match input {
                    Some(Input::Close) | None => return self.close().await,
                    Some(input) => self.input(input),
                },
                Some(message) = heartbeats.recv() => self.heartbeat(&message),
                line = following, if reads => match line {
                    Some(line) => self.line(&line),
                    None => self.following = None,
                },
            }
            // After it is deposed it reports nothing more.
            if self.is_deposed() {
                self.tell(Output::Deposed);
                return Ok(());
            }
        }
    }

    fn tell(&self, output: Output) {
        let _ = self.tell.try_send(output);
    }

    fn linked(&mut self, link: &Link) -> Result<(), BusError> {
        match link {
            Link::Refused(why) => return Err(BusError::Refused(why.clone())),
            Link::Up => self.read_lease(),
            Link::Begun | Link::Cut => {}
        }
        Ok(())
    }

    /// Replies with the controller's time.
    fn answer(&self, message: &Message) {
        if let Some(reply) = message.reply.as_ref().filter(|_| self.holds().is_some()) {
            self.bus.publish(reply, to_json(&(self.unix_ns)()).into());
        }
    }

    fn stop(&self, message: &Message) {
        let Some(run) = self.run.as_ref().filter(|_| self.holds().is_some()) else { return };
        if let Some(reply) = &message.reply {
            self.bus.publish(reply, Bytes::copy_from_slice(run.command.run().as_bytes()));
        }
        self.tell(Output::StopWanted);
    }

    /// The epoch, while this controller has the lease.
    fn holds(&self) -> Option<u64> {
        self.lease.epoch(self.ticking.now())
    }

    fn is_deposed(&self) -> bool {
        self.has_commanded && self.run.is_some() && self.lease.is_of_another()
    }

    /// Runs an operation on the bus in the background.
    fn aside(&self, work: impl Future<Output = Done> + 'static) {
        let sender = self.done.0.clone();
        tokio::task::spawn_local(async move {
            let _ = sender.send(work.await);
        });
    }

    fn read_lease(&self) {
        let bus = self.bus.clone();
        self.aside(async move { Done::Held(bus.read(names::LEASE).await) });
    }

    fn saw(&mut self, revision: u64, held: &[u8]) {
        let held: Option<Held> = from_json(held);
        self.lease.saw(RegisterValue { revision, held }, self.ticking.now());
        self.commands();
    }

    fn commands(&mut self) {
        if !self.has_commanded && self.holds().is_some() {
            self.has_commanded = true;
            self.tell(Output::Commands);
        }
        self.order();
    }

    /// Writes the desired state if it has changed and this controller has the lease.
    fn order(&mut self) {
        let Some(epoch) = self.holds() else { return };
        let Some(run) = &mut self.run else { return };
        let Some((key, expected, value)) = run.command.write(epoch) else { return };
        let bus = self.bus.clone();
        self.aside(async move { Done::Desired(bus.write(&key, expected, value).await) });
    }

    fn look(&mut self) {
        let now = self.ticking.now();
        if let Some(lease::Write { expected, held }) = self.lease.write(now) {
            let bus = self.bus.clone();
            self.aside(async move {
                let value = Bytes::from(to_json(&held));
                let result = bus.write(names::LEASE, expected, value).await;
                Done::Leased { attempt: held.attempt, result }
            });
        }
        let news: Vec<_> = self
            .presence
            .look(now)
            .into_iter()
            .map(|(name, news)| (name.to_string(), news))
            .collect();
        for (name, news) in news {
            self.tell(Output::News { name, news });
        }
        self.order();
    }

    fn beacon(&self) {
        let Some(epoch) = self.holds() else { return };
        let Some(run) = &self.run else { return };
        if let Some(revision) = run.command.revision() {
            let beacon = Beacon { epoch, run: run.command.run().to_string(), revision };
            self.bus.publish(names::BEACON, to_json(&beacon).into());
        }
    }

    fn heartbeat(&mut self, message: &Message) {
        let Some((_, name)) = message.subject.split_once('.') else { return };
        let Some(heartbeat) = from_json::<Heartbeat>(&message.payload) else { return };
        let news = self.presence.heard(name, heartbeat.life, self.ticking.now());
        if news == Some(News::TooMany) {
            return;
        }
        let known = self.agents.get(name).map(|agent| agent.life);
        if known.is_none_or(|life| life < heartbeat.life) {
            let (bus, name) = (self.bus.clone(), name.to_string());
            self.aside(async move {
                let entry = bus.read(&names::agent(&name)).await;
                Done::Agent { name, entry }
            });
        }
        if let Some(news) = news {
            self.tell(Output::News { name: name.to_string(), news });
        }
    }

    fn line(&mut self, line: &Logged) {
        let Some(run) = &mut self.run else { return };
        run.sequence = run.sequence.max(line.sequence);
        let told = run.gather.take(line);
        let was_complete = std::mem::replace(&mut run.is_complete, run.gather.is_complete());
        let is_complete = run.is_complete && !was_complete;
        told.into_iter().for_each(|output| self.tell(output));
        if is_complete {
            self.tell(Output::Complete);
        }
    }

    /// Continues from where the log was read to.
    async fn follow(&mut self) -> Result<(), BusError> {
        let Some(run) = &self.run else { return Ok(()) };
        let pattern = names::all_lines(run.command.run());
        let following = self.bus.follow(&pattern, run.sequence + 1).await;
        self.following = match following {
            Ok(following) => Some(following),
            Err(BusError::Refused(why)) => return Err(BusError::Refused(why)),
            Err(_) => None,
        };
        Ok(())
    }

    fn input(&mut self, input: Input) {
        match input {
            Input::Begin { plan, signed } => {
                let (bus, key) = (self.bus.clone(), names::plan(&plan.run));
                self.begin(&plan, None);
                self.aside(async move {
                    let value = Bytes::from(to_json(&signed));
                    Done::Planned(written(&bus, &key, value).await)
                });
            }
            Input::Resume { run } => self.resume(run),
            Input::Start { unix_ns } => self.change(|command, sign| command.start(unix_ns, sign)),
            Input::Order { at_ns, except, order } => {
                self.change(|command, sign| command.order(at_ns, (except, order), sign));
            }
            Input::GiveUp { agent } => {
                let told = self.run.as_mut().map(|run| run.gather.give_up(agent));
                told.into_iter().flatten().for_each(|output| self.tell(output));
            }
            Input::Over => self.change(|command, _| command.over()),
            Input::Close => {}
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Command, &Sign)) {
        if let Some(run) = &mut self.run {
            change(&mut run.command, &self.sign);
        }
        self.order();
    }

    fn begin(&mut self, plan: &Plan, resumed: Option<(u64, Desired)>) {
        // Agents that are never heard again must be lost too.
        for part in &plan.parts {
            self.presence.heard(&part.agent, part.life, self.ticking.now());
        }
        let gather = Gather::new(plan);
        let command = Command::new(plan, resumed);
        self.run = Some(Run { command, gather, sequence: 0, is_complete: false });
    }

    fn done(&mut self, done: Done) -> Result<(), BusError> {
        let now = self.ticking.now();
        match done {
            Done::Held(Ok(entry)) => match entry {
                Some(entry) => self.saw(entry.revision, &entry.value),
                None => {
                    self.lease.saw(RegisterValue { revision: 0, held: None }, now);
                    self.look();
                }
            },
            Done::Leased { attempt, result: Ok(revision) } => {
                self.lease.written(attempt, revision, now);
                self.commands();
            }
            Done::Leased { attempt, result } => {
                self.lease.refused(attempt);
                refusal(result)?;
                self.read_lease();
            }
            Done::Held(error) => {
                refusal(error)?;
                self.read_lease();
            }
            Done::Agent { name, entry: Ok(Some(entry)) } => {
                if let Some(registered) = from_json::<Registered>(&entry.value) {
                    self.agents.insert(name.clone(), registered.clone());
                    self.tell(Output::Agent { name, registered: Box::new(registered) });
                }
            }
            // The next heartbeat triggers another attempt.
            Done::Agent { entry, .. } => refusal(entry)?,
            Done::Planned(result) => {
                result?;
                self.change(|command, _| command.planned());
            }
            Done::Desired(result) => self.desired(result)?,
            Done::Reread(entry) => self.reread(entry)?,
            Done::Resumed(run, both) => self.resumed(run, both)?,
        }
        Ok(())
    }

    fn resume(&self, run: String) {
        let bus = self.bus.clone();
        self.aside(async move {
            let both = both(&bus, &run).await;
            Done::Resumed(run, both)
        });
    }

    /// Continues a run that another controller has started.
    fn resumed(
        &mut self,
        run: String,
        both: Result<Option<(Entry, Entry)>, BusError>,
    ) -> Result<(), BusError> {
        let read = |(plan, desired): (Entry, Entry)| {
            let signed: Signed = from_json(&plan.value)?;
            let plan: Plan = from_json(signed.plan.as_bytes())?;
            Some((plan, desired.revision, from_json::<Desired>(&desired.value)?))
        };
        let found = match both {
            Ok(found) => found.and_then(read),
            Err(BusError::Refused(why)) => return Err(BusError::Refused(why)),
            Err(_) => {
                self.resume(run);
                return Ok(());
            }
        };
        let Some((plan, revision, desired)) = found else {
            return Err(BusError::Refused(say!("the bus has no such run")));
        };
        self.tell(Output::Resumed {
            plan: Box::new(plan.clone()),
            desired: Box::new(desired.clone()),
        });
        self.begin(&plan, Some((revision, desired)));
        self.order();
        Ok(())
    }

    fn desired(&mut self, result: Result<u64, BusError>) -> Result<(), BusError> {
        let Some(run) = &mut self.run else { return Ok(()) };
        match result {
            Ok(revision) => {
                run.command.written(revision);
                self.beacon();
                self.order();
                Ok(())
            }
            Err(_) => self.read_desired(result),
        }
    }

    fn reread(&mut self, entry: Result<Option<Entry>, BusError>) -> Result<(), BusError> {
        let Some(run) = &mut self.run else { return Ok(()) };
        match entry {
            Ok(entry) => {
                let there = entry.as_ref().map(|entry| (entry.revision, from_json(&entry.value)));
                run.command.reread(there);
                self.order();
                Ok(())
            }
            Err(_) => self.read_desired(entry),
        }
    }

    /// Reads the register after a failed write.
    fn read_desired<T>(&self, failed: Result<T, BusError>) -> Result<(), BusError> {
        refusal(failed)?;
        if let Some(run) = &self.run {
            let (bus, key) = (self.bus.clone(), names::desired(run.command.run()));
            self.aside(async move { Done::Reread(bus.read(&key).await) });
        }
        Ok(())
    }

    /// Ends gracefully.
    async fn close(&mut self) -> Result<(), BusError> {
        let written = async {
            while self.run.as_ref().is_some_and(|run| run.command.is_pending()) {
                let Some(done) = self.done.1.recv().await else { break };
                self.done(done)?;
            }
            Ok(())
        };
        // Without a written end, agents end on their own.
        if let Ok(written) = timeout(CLOSE_TIME, written).await {
            written?;
        }
        if let Some(lease::Write { expected, held }) = self.lease.release(self.ticking.now()) {
            // A waiting controller would get it a few seconds later anyway.
            let _ = self.bus.write(names::LEASE, expected, to_json(&held).into()).await;
        }
        self.tell(Output::Closed);
        Ok(())
    }
}

/// An error if the bus refuses permanently; everything else is retried.
fn refusal<T>(result: Result<T, BusError>) -> Result<(), BusError> {
    match result {
        Err(BusError::Refused(why)) => Err(BusError::Refused(why)),
        _ => Ok(()),
    }
}

/// Writes a register without other writers, and retries until it succeeds.
async fn written(bus: &impl Bus, key: &str, value: Bytes) -> Result<(), BusError> {
    loop {
        match bus.write(key, 0, value.clone()).await {
            Ok(_) => return Ok(()),
            Err(BusError::Refused(why)) => return Err(BusError::Refused(why)),
            Err(_) => {}
        }
        match bus.read(key).await {
            Ok(Some(entry)) if entry.value == value => return Ok(()),
            Ok(Some(_)) => {
                return Err(BusError::Refused(say!(
                    "a different run with the same ID already exists"
                )));
            }
            Err(BusError::Refused(why)) => return Err(BusError::Refused(why)),
            _ => {}
        }
    }
}

/// The plan of a run, and its desired state.
async fn both(bus: &impl Bus, run: &str) -> Result<Option<(Entry, Entry)>, BusError> {
    let plan = bus.read(&names::plan(run)).await?;
    let desired = bus.read(&names::desired(run)).await?;
    Ok(plan.zip(desired))
}
