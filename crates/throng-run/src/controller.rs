//! Controls a run: receives the messages of the generators; records, merges and shows them; handles
//! signals; gives orders. Each run has one controller.

mod act;
mod addresses;
mod auditing;
pub(crate) mod audits;
mod cpu;
mod duel;
mod events;
mod levels;
mod loss;
pub(crate) mod monitors;
pub(crate) mod pilot;
mod progress;
mod redistribute;
mod rules;
mod search;
mod steer;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use throng_base::{Clock, Diagnostic, Exit, Said, Time};
use throng_engine::{Options, Spare};
use throng_export::{Exports, Opened};
use throng_metrics::Interval;
use throng_results::{
    AbortRules, AllGauges, Collector, Event, Line as Merged, Merge, OnceRun, Recorder, RunInfo,
    StopBy, machine_name, moved,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::control::socket::{Asked, Socket};
use crate::ending::Ending;
use crate::live::Live;
use crate::once::tear_down;
use crate::operator::next;
use crate::running::Running;
use crate::wire::{Message, Order, Past};
use crate::{Conduct, Line, Operator, StopRequests};
use addresses::AddressChanges;
use audits::{Audits, BooksBefore};
use duel::DuelControl;
use events::Events;
use loss::Loss;
use monitors::{Hosts, Monitors};
use pilot::Pilot;
use progress::progress;
use redistribute::Parts;
use rules::Holds;
use steer::Steer;

/// Interval of progress updates to the operator.
const REDRAW: Duration = Duration::from_millis(200);
/// Minimum length of a final partial second that gets its own progress line.
const LINE_TIME_MIN: Duration = Duration::from_millis(250);
/// Connects a controller to its generators.
pub(crate) struct Posts {
    /// The clock of the run; zero is its start.
    pub(crate) clock: Clock,
    pub(crate) orders: Orders,
    pub(crate) lines: UnboundedReceiver<(u16, Message)>,
    /// Maximum number of users beyond the plan.
    pub(crate) users_spare: Spare,
    /// If some generators generate less load, the others generate more.
    pub(crate) redistributes: bool,
    /// Ends when the generators of a fleet know that no orders follow.
    pub(crate) closing: Option<JoinHandle<()>>,
}

impl Posts {
    pub(crate) fn new(
        clock: Clock,
        orders: Orders,
        lines: UnboundedReceiver<(u16, Message)>,
        users_spare: impl Iterator<Item = Spare>,
    ) -> Posts {
        let users_spare = users_spare.min().unwrap_or(Spare::NONE);
        Posts { clock, orders, lines, users_spare, redistributes: false, closing: None }
    }
}

/// Delivers orders to the generators.
pub(crate) enum Orders {
    /// Posts on this machine, in this or other processes, by number.
    Here(Vec<UnboundedSender<Order>>),
    /// The number of machines in a fleet. Each order can exclude one machine.
    Fleet(usize, UnboundedSender<(Option<usize>, Order)>),
}

impl Orders {
    fn generators(&self) -> usize {
        match self {
            Orders::Here(generators) => generators.len(),
            Orders::Fleet(count, _) => *count,
        }
    }

    /// Whether the generators are on other machines, which read the views of audits themselves.
    fn is_fleet(&self) -> bool {
        matches!(self, Orders::Fleet(..))
    }

    /// Sends an order to all generators except, optionally, one. Posts whose load has ended ignore
    /// it.
    fn give(&self, except: Option<usize>, order: Order) {
        match self {
            Orders::Here(generators) => {
                let others = generators
                    .iter()
                    .enumerate()
                    .filter(|(generator, _)| Some(*generator) != except);
                for (_, orders) in others {
                    let _ = orders.send(order.clone());
                }
            }
            Orders::Fleet(_, orders) => {
                let _ = orders.send((except, order));
            }
        }
    }
}

/// Receivers of a run's results in addition to the terminal.
pub(crate) struct Outlets {
    pub(crate) recorder: Option<Recorder>,
    pub(crate) exports: Opened,
    pub(crate) live: Option<Live>,
    pub(crate) hosts: Hosts,
    /// The target's counts before the load, by audit.
    pub(crate) before: BooksBefore,
}

pub(crate) struct Controller<'a> {
    conduct: &'a Conduct<'a>,
    generators: Posts,
    info: RunInfo,
    recorder: Option<Recorder>,
    exports: Exports,
    /// Taken when the run starts.
    hosts: Hosts,
    live_page: Option<Live>,
    /// Requests from the socket and the live page.
    asked: (UnboundedSender<Asked>, UnboundedReceiver<Asked>),
    merge: Merge,
    addresses: AddressChanges,
    collector: Collector,
    /// The second whose results have arrived but are not printed.
    pending: Option<u64>,
    line_until: Time,
    running: Running,
    steer: Steer,
    /// Sets the load in a capacity search.
    pilot: Option<Pilot>,
    /// Compares the sides in a duel.
    duel: Option<DuelControl>,
    /// The scheduled events.
    events: Option<Events>,
    parts: Parts,
    audits: Option<Audits>,
    loss: Loss,
    /// Gauges of all machines together.
    gauges: AllGauges,
    rules: AbortRules,
    holds: Holds,
    stops: u32,
    /// Posts whose load has ended, when the last one ended, and whether all ended without an error.
    over: usize,
    ended_ns: u64,
    whole: bool,
    /// Orders of an earlier controller that are still to be replayed, and the time up to which the
    /// run is replayed.
    past: VecDeque<Past>,
    since: Time,
}

impl<'a> Controller<'a> {
    pub(crate) fn new(
        conduct: &'a Conduct<'a>,
        generators: Posts,
        info: RunInfo,
        outlets: Outlets,
    ) -> Controller<'a> {
        let Outlets { recorder, exports, mut live, hosts, before } = outlets;
        let asked = unbounded_channel();
        if let Some(live) = &mut live {
            let directory = recorder.as_ref().map(Recorder::directory);
            live.begin(&info, directory, asked.0.clone());
        }
        let rules = AbortRules::new(&conduct.program.abort_when, &info);
        let holds = Holds::new(&conduct.program.hold_when, &info);
        Controller {
            addresses: AddressChanges::default(),
            merge: Merge::new(generators.orders.generators()),
            collector: Collector::new(&info),
            running: Running::new(&conduct.program),
            steer: Steer::new(&conduct.program, generators.users_spare),
            pilot: conduct.search.as_ref().map(|it| Pilot::new(it.clone(), &conduct.program)),
            duel: None,
            events: None,
            parts: Parts::new(generators.orders.generators()),
            audits: Audits::begin(
                &conduct.program.audits,
                &generators.clock,
                (generators.orders.generators(), generators.orders.is_fleet()),
                &before,
            ),
            conduct,
            generators,
            exports: exports.begin(&info),
            hosts,
            live_page: live,
            asked,
            info,
            recorder,
            pending: None,
            line_until: Time::ZERO,
            loss: Loss::default(),
            gauges: AllGauges::default(),
            rules,
            holds,
            stops: 0,
            over: 0,
            ended_ns: 0,
            whole: true,
            past: VecDeque::new(),
            since: Time::ZERO,
        }
    }

    /// A controller that takes over a run, with the orders of the earlier controller.
    pub(crate) fn behind(mut self, past: VecDeque<Past>) -> Controller<'a> {
        (self.past, self.since) = (past, self.generators.clock.now());
        self
    }

    /// `setup` is the result of the scenario's setup, if it has one.
    pub(crate) async fn work(
        mut self,
        setup: Option<OnceRun>,
        options: &Options,
        mut signals: StopRequests,
    ) -> Exit {
        if let Some(once) = setup {
            self.event(&Event::Once { at_ns: 0, once: Box::new(once) });
        }
        let mut redraw = tokio::time::interval(REDRAW);
        let directory = self.recorder.as_ref().map(|recorder| recorder.directory());
        let socket = directory.and_then(|directory| Socket::open(directory, self.asked.0.clone()));
        let hosts = std::mem::take(&mut self.hosts);
        let sources = &self.conduct.program.monitors;
        let clock = self.generators.clock.clone();
        let mut monitors = Monitors::begin(sources, hosts, &clock);
        let info = Cow::Borrowed(&self.info);
        self.conduct.operator.tell(Line::Began { info, clock: clock.clone() });
        self.begin_search();
        self.duel = DuelControl::begin(self.conduct, &self.info, &clock);
        let before = (&self.past, self.since);
        self.events = Events::begin(&self.conduct.program, &self.info, &clock, before);
        let mut keys = self.conduct.operator.keys();
        while self.over < self.generators.orders.generators() {
            tokio::select! {
                biased;
                () = signals.next() => self.interrupted(),
                line = self.generators.lines.recv() => match line {
                    Some((machine, message)) => self.messages(machine, message),
                    None => break,
                },
                Some((request, answer)) = self.asked.1.recv() => {
                    let (command, load) = (&request.command, request.load.as_deref());
                    answer(command.refusal().unwrap_or_else(|| self.command(command, load)));
                }
                key = next(keys.as_mut()) => self.key(key),
                ask = next(self.audits.as_mut().map(|it| &mut it.asked)) => self.asks(ask),
                told = next(monitors.as_mut().map(|it| &mut it.told)) => {
                    let told = monitors.as_mut().map(|monitors| monitors.take(told));
                    let (events, text) = told.unwrap_or_default();
                    rules::read(&mut self, &events);
                    text.into_iter().for_each(|text| self.say(text));
                }
                told = next(self.events.as_mut().map(|it| &mut it.told)) => self.act(told),
                _ = redraw.tick() => self.tell_progress(),
            }
        }
        drop((socket, keys, monitors));
        self.conduct.operator.tell(Line::Over);
        self.finish_audits(&mut signals).await;
        let at_ns = self.ended_ns;
        if let Some(capacity) = self.pilot.take().map(|mut pilot| Box::new(pilot.answer())) {
            self.event(&Event::Capacity { at_ns, capacity });
        }
        self.print_line();
        if let Some(duel) = self.duel.take().map(|ring| Box::new(ring.finish(self.stops > 0))) {
            self.event(&Event::Duel { at_ns, duel });
        }
        self.recover(Time::NEVER);
        self.end_events();
        self.event(&Event::RunEnded { at_ns });
        if let Some(once) = tear_down(self.conduct, options, &mut signals).await {
            self.event(&Event::Once { at_ns, once: Box::new(once) });
        }
        for text in losses(std::mem::take(&mut self.exports)) {
            self.notice(text, at_ns);
        }
        let (live, whole) = (self.live_page, self.whole);
        let Controller { conduct, generators, info, collector, recorder, .. } = self;
        drop(generators.orders);
        if let Some(closing) = generators.closing {
            let _ = closing.await;
        }
        Ending { conduct, info, collector, recorder, live }.conclude(whole)
    }

    /// Processes the messages received so far. A second is printed when all its lines have arrived:
    /// one per load.
    fn messages(&mut self, machine: u16, message: Message) {
        self.message(machine, message);
        while let Ok((machine, message)) = self.generators.lines.try_recv() {
            self.message(machine, message);
        }
        // If a phase ended within this second, the rest of the second is still missing.
        let is_over = |second: u64| self.generators.clock.now() >= Time::from_secs(second + 1);
        if self.pending.is_some_and(is_over) {
            self.print_line();
        }
    }

    fn message(&mut self, machine: u16, message: Message) {
        let number = usize::from(machine);
        match message {
            Message::Interval(mut interval) => {
                interval.machine = machine;
                self.merge.push(number, Merged::Interval(interval));
            }
            Message::Event(mut event) => {
                if let Event::BackedOff { machine: own, .. }
                | Event::MachineLost { machine: own, .. } = &mut event
                {
                    *own = machine;
                }
                if self.addresses.is_known(&event) {
                    return;
                }
                self.tell(machine, &event);
                self.merge.push(number, Merged::Event(event));
            }
            Message::Notice { at_ns, text } => {
                self.notice(text, at_ns);
            }
            Message::Over { at_ns, whole } => {
                self.audits.iter_mut().for_each(|audits| audits.generator_over(number));
                self.over += 1;
                self.ended_ns = self.ended_ns.max(at_ns);
                self.whole &= whole;
                self.merge.over(number);
            }
            Message::Lost { detail } => {
                self.audits.iter_mut().for_each(|audits| audits.lost(number));
                let at_ns = self.generators.clock.now().as_nanos();
                let name =
                    self.info.generator.machines.get(number).map_or("", |it| it.name.as_str());
                let text = say!("{name} and all its users were lost: {detail}", detail = &detail);
                self.say(text);
                self.event(&Event::MachineLost { at_ns, machine, detail });
                self.over += 1;
                self.ended_ns = self.ended_ns.max(at_ns);
                self.merge.over(number);
            }
            Message::Presence { ask, known } => {
                let audits = self.audits.iter_mut();
                audits.for_each(|it| it.presence(number, ask, known.clone()));
            }
            Message::Audited(tally) => {
                if let Some(audits) = &mut self.audits {
                    audits.tally(number, *tally);
                }
            }
            Message::Said { text } => {
                self.conduct.operator.tell(Line::Text(Cow::Owned(text)));
            }
            Message::StopWanted => self.interrupted(),
            Message::Ready(_) | Message::Begun(_) => {}
        }
        while let Some((machine, line)) = self.merge.pop() {
            match line {
                Merged::Interval(interval) => {
                    self.recover(Time::from_secs(interval.second));
                    self.interval(&interval);
                    if let Some(live) = &mut self.live_page {
                        live.line(interval);
                    }
                }
                Merged::Event(event) => self.event_of(machine as u16, &event),
            }
        }
    }

    /// Processes an event, and immediately prints what the operator must know.
    fn tell(&mut self, machine: u16, event: &Event) {
        self.events.iter_mut().for_each(|events| events.hear(event));
        match event {
            Event::PhaseBegun { at_ns, phase } => self.running.begun(*phase, Time(*at_ns)),
            Event::PhaseEnded { phase, .. } => self.running.ended(*phase),
            Event::Log { at_ns, user, text } => {
                let (at, text) = (Some((*at_ns, *user)), Cow::Borrowed(text.as_str()));
                self.conduct.operator.tell(Line::Log { at, text });
            }
            Event::Held { detail, .. } => self.say(say!("growth paused: {detail}")),
            Event::Released { .. } => self.say(say!("growth resumed")),
            Event::GrowthGivenUp { detail, .. } => {
                self.say(say!("growth ended ({detail}); the run continues with the current users"));
            }
            Event::BackedOff { percent, detail, .. } => {
                let name = machine_name(&self.info, machine);
                self.say(say!(
                    "{name} now generates {percent} % of its share of the load: {detail}"
                ));
                self.makes(machine, f64::from(*percent) / 100.0);
            }
            Event::MachineLost { .. } => self.makes(machine, 0.0),
            Event::AddressesChanged { host, before, after, .. } => {
                let moved = moved(host, before, after);
                self.say(say!("the target's addresses have changed: {moved}"));
            }
            // If a rule or a bug stops one machine, all stop. Rows of data are divided between the
            // machines: each continues until its own are used, so that none is left over.
            Event::Stopped { by: StopBy::Rule | StopBy::Bug, .. } => {
                self.generators.orders.give(Some(usize::from(machine)), Order::Stop);
            }
            _ => {}
        }
    }

    fn say(&self, text: Said) {
        self.conduct.operator.say(text);
    }

    /// Prints and records a notice about the run.
    fn notice(&mut self, text: Said, at_ns: u64) {
        self.event(&Event::Notice { at_ns, text: text.english() });
        self.say(text);
    }

    fn interval(&mut self, interval: &Interval) {
        self.loss.add(interval);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.interval(interval)
        {
            trouble(self.conduct.operator, &error.diagnostic());
        }
        self.exports.line(interval);
        self.collector.interval(interval);
        if self.pending.is_some_and(|pending| pending < interval.second) {
            self.print_line();
        }
        self.pending = Some(interval.second);
        let load = self.running.load_of(interval.phase);
        self.pilot.iter_mut().for_each(|pilot| pilot.add(load, interval));
        self.duel.iter_mut().for_each(|duel| duel.add(interval));
        self.apply_rules(interval);
        let until = Time::from_secs(interval.second + 1);
        let of = |phase: u16| self.info.tables.phases.get(usize::from(phase));
        let mut running = self.running.loads().iter().flatten().filter_map(|it| of(it.0));
        let has_end = running.all(|phase| phase.planned_ns.is_some());
        if let Some(why) = self.loss.ends(until, has_end).filter(|_| self.stops == 0) {
            self.give_up(why, until);
        }
    }

    /// Ends the run because the target is unreachable.
    fn give_up(&mut self, why: Said, at: Time) {
        self.stops = 1;
        let at_ns = at.as_nanos();
        self.notice(why, at_ns);
        self.event(&Event::TargetLost { at_ns });
        self.send_order(Order::Stop);
    }

    fn print_line(&mut self) {
        let Some(second) = self.pending.take() else { return };
        self.searched(second);
        self.dueled(second);
        let until = Time::from_secs(second + 1).min(self.generators.clock.now());
        if until < self.since {
            return;
        }
        if until - self.line_until < LINE_TIME_MIN && self.line_until > Time::ZERO {
            return;
        }
        self.line_until = until;
        self.conduct.operator.tell(Line::Second(until));
    }

    fn event(&mut self, event: &Event) {
        self.event_of(0, event);
    }

    fn event_of(&mut self, machine: u16, event: &Event) {
        let event = &event.masked(&self.conduct.program.secrets);
        self.conduct.operator.tell(Line::Event(Cow::Borrowed(event)));
        self.collector.event(event);
        if let Some(live) = &mut self.live_page {
            live.event(event);
        }
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.event_of(machine, event)
        {
            trouble(self.conduct.operator, &error.diagnostic());
        }
    }

    /// Stops the run or pauses its growth if a rule requires it.
    fn apply_rules(&mut self, interval: &Interval) {
        let load = self.running.load_of(interval.phase);
        let gauges = self.gauges.add(load, interval);
        let (shown, all) = (Cow::Borrowed(interval), Cow::Borrowed(&gauges));
        self.conduct.operator.tell(Line::Interval { interval: shown, gauges: all });
        let now = self.generators.clock.now();
        self.events.iter_mut().for_each(|events| events.see(interval, &gauges, now));
        self.count_for_audits(interval);
        let (rulings, held) =
            (self.rules.add(interval, &gauges), self.holds.add(interval, &gauges));
        rules::judge(self, rulings);
        rules::hold(self, held);
    }

    fn send_order(&self, order: Order) {
        if matches!(order, Order::Stop | Order::Abort) {
            self.events.iter().for_each(Events::no_more);
        }
        self.generators.orders.give(None, order);
    }

    fn interrupted(&mut self) {
        self.stops += 1;
        self.conduct.operator.tell(Line::Interrupted);
        if self.info.interrupted {
            self.send_order(Order::Abort);
            return;
        }
        self.info.interrupted = true;
        self.say(say!(
            "interrupted: users finish their step and leave; interrupt again to end now"
        ));
        self.event(&Event::Interrupted { at_ns: self.generators.clock.now().as_nanos() });
        self.send_order(Order::Stop);
    }

    fn tell_progress(&self) {
        if self.conduct.operator.sees_progress() {
            let now = self.generators.clock.now();
            let progress = progress(&self.conduct.program, &self.info, &self.running, now);
            self.conduct.operator.tell(Line::Progress(progress));
        }
    }
}

/// Reports a recording error immediately. The run continues.
fn trouble(operator: &dyn Operator, diagnostic: &Diagnostic) {
    operator.diagnostic(diagnostic);
    operator.say(say!("the run continues; results that cannot be recorded are lost"));
}

/// Waits for the receivers to accept the remaining metrics, and reports what they did not accept.
/// The result does not change, because the run directory is complete.
fn losses(exports: Exports) -> impl Iterator<Item = Said> {
    let finished = exports.finish().into_iter();
    finished.filter_map(|(wanted, throng_export::ExportOutcome { seconds, lost, trouble })| {
        let trouble = trouble.filter(|_| lost > 0)?;
        let (all, export) = (seconds + lost, wanted.to_string());
        Some(say!("`--export {export}` failed for {lost} of {all} seconds: {trouble}"))
    })
}
