//! Starts the events of a run at their times. A separate thread starts them, so that the controller
//! cannot delay them; the controller records them. Only the controller of a run has events.
//!
//! - [`command`]: executes a command. [`timetable`]: when events are due.

mod command;
mod timetable;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_base::{Clock, Said, Time};
use throng_metrics::{Gauges, Interval};
use throng_monitor::ask;
use throng_program::{Action, HttpCall, Program, Trigger};
use throng_results::{AbortRules, ActionStatus, Event, Ruling, RunInfo};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::wire::{Order, Past};
use command::{Signal, execute, kept, line};
use timetable::Timetable;

/// The result of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) status: ActionStatus,
    pub(crate) detail: Said,
    pub(crate) output: String,
}

/// Messages to the thread.
enum Heard {
    PhaseBegun(u16, Time),
    PhaseEnds(u16, Time),
    Holds(u16, Time),
    Ended(u16, Outcome),
    /// Start no further event.
    NoMore,
    /// The run has ended.
    Stop,
}

/// Messages from the thread to the controller.
#[derive(Debug)]
pub(crate) enum EventReport {
    /// An event to record.
    Event(Box<Event>),
    /// The controller must change the load or start an audit, and report the result.
    Do(u16),
}

/// The events of a run.
pub(crate) struct Events {
    heard: Sender<Heard>,
    /// Messages of the thread.
    pub(super) told: UnboundedReceiver<EventReport>,
    thread: Option<JoinHandle<()>>,
    /// Conditions that have not been true yet, with their events.
    rules: Vec<(u16, AbortRules)>,
    /// By load: whether its last phase is running or has yet to start.
    going: Vec<bool>,
    /// By load: the number of its last phase.
    last: Vec<u16>,
}

impl Events {
    /// Returns `None` if the scenario has no events. `begun` contains the events that an earlier
    /// controller started before `since`.
    pub(crate) fn begin(
        program: &Arc<Program>,
        info: &RunInfo,
        clock: &Clock,
        (past, since): (&VecDeque<Past>, Time),
    ) -> Option<Events> {
        if program.events.is_empty() {
            return None;
        }
        let begun = past.iter().filter_map(|past| match &past.order {
            Order::Record { event } => match &**event {
                Event::ActionBegun { number, .. } => Some(*number),
                _ => None,
            },
            _ => None,
        });
        let begun: BTreeSet<u16> = begun.collect();
        let (heard, hears) = channel();
        let (tell, told) = unbounded_channel();
        let work = Work {
            table: Timetable::new(program, &begun, since),
            program: Arc::clone(program),
            clock: clock.clone(),
            own: heard.clone(),
            tell,
            running: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new().name("events".into());
        let thread = thread.spawn(move || work.run(&hears)).ok();
        let rule = |(number, event): (u16, &throng_program::TimedEvent)| match &event.trigger {
            Trigger::When(rule) if !begun.contains(&number) => {
                Some((number, AbortRules::new(std::slice::from_ref(rule.as_ref()), info)))
            }
            _ => None,
        };
        let counts = program.loads.iter().map(|load| load.phases.len() as u16);
        let last = program.first_phases().into_iter().zip(counts);
        let rules = (0..).zip(&program.events).filter_map(rule).collect();
        let going = vec![true; program.loads.len()];
        let last = last.map(|(first, count)| first + count.saturating_sub(1)).collect();
        Some(Events { heard, told, thread, rules, going, last })
    }

    /// Processes an event that a generator reported.
    pub(crate) fn hear(&mut self, event: &Event) {
        match event {
            Event::PhaseBegun { at_ns, phase } => {
                self.send(Heard::PhaseBegun(*phase, Time(*at_ns)));
            }
            Event::PhaseEnded { phase, .. } => {
                let ended = self.last.iter().position(|last| last == phase);
                ended.into_iter().for_each(|load| self.going[load] = false);
                if !self.going.contains(&true) {
                    self.no_more();
                }
            }
            _ => {}
        }
    }

    /// A user or an event ends the phase at this time.
    pub(crate) fn phase_ends(&self, phase: u16, at: Time) {
        self.send(Heard::PhaseEnds(phase, at));
    }

    /// Evaluates the conditions, once a second.
    pub(crate) fn see(&mut self, interval: &Interval, gauges: &Gauges, now: Time) {
        self.met(now, |rules| rules.add(interval, gauges));
    }

    /// Evaluates the conditions on a reading of a monitor.
    pub(crate) fn read(&mut self, event: &Event, now: Time) {
        self.met(now, |rules| rules.read(event));
    }

    /// Starts the events whose conditions have become true.
    fn met(&mut self, now: Time, mut judged: impl FnMut(&mut AbortRules) -> Vec<Ruling>) {
        let mut held = Vec::new();
        self.rules.retain_mut(|(number, rules)| {
            let is_met = |ruling: &Ruling| matches!(ruling, Ruling::Aborted { .. });
            let holds = judged(rules).iter().any(is_met);
            held.extend(holds.then_some(*number));
            !holds
        });
        held.into_iter().for_each(|number| self.send(Heard::Holds(number, now)));
    }

    /// Reports the result of an event that the controller executed.
    pub(crate) fn done(&self, number: u16, done: Result<Said, Said>) {
        let (status, detail) = match done {
            Ok(said) => (ActionStatus::Done, said),
            Err(said) => (ActionStatus::Failed, said),
        };
        self.send(Heard::Ended(number, Outcome { status, detail, output: String::new() }));
    }

    /// The run is ending: start no further event.
    pub(crate) fn no_more(&self) {
        self.send(Heard::NoMore);
    }

    /// The run has ended: stops running events and returns the events to record.
    pub(crate) fn finish(mut self) -> Vec<Event> {
        self.send(Heard::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let mut events = Vec::new();
        while let Ok(told) = self.told.try_recv() {
            if let EventReport::Event(event) = told {
                events.push(*event);
            }
        }
        events
    }

    /// The thread runs until the run ends, so this cannot fail earlier.
    fn send(&self, heard: Heard) {
        let _ = self.heard.send(heard);
    }
}

/// An event in progress.
struct Running {
    begun: Time,
    /// Set for a command.
    signal: Option<Sender<Signal>>,
}

/// State of the thread.
struct Work {
    table: Timetable,
    program: Arc<Program>,
    clock: Clock,
    own: Sender<Heard>,
    tell: UnboundedSender<EventReport>,
    running: BTreeMap<u16, Running>,
}

/// How long the thread waits for commands that it ended. It does not wait for responses.
const PATIENCE: Duration = Duration::from_secs(2);
/// Timeout if no event is due.
const IDLE: Duration = Duration::from_secs(3600);

impl Work {
    fn run(mut self, heard: &Receiver<Heard>) {
        self.clock.wait_for_zero();
        loop {
            let next = self.table.next();
            let wait = next.map_or(IDLE, |(at, _)| at.since(self.clock.now()));
            match heard.recv_timeout(wait) {
                Ok(Heard::Stop) => return self.stop(heard),
                Ok(heard) => self.hear(heard),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some((due, number)) = next.filter(|(at, _)| *at <= self.clock.now()) {
                        self.reached(number, due);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::PhaseBegun(phase, at) => self.table.phase_begun(phase, at),
            Heard::PhaseEnds(phase, at) => self.table.phase_ends(phase, at),
            Heard::Holds(number, at) => self.table.holds(number, at),
            Heard::Ended(number, outcome) => self.ended(number, outcome),
            Heard::NoMore | Heard::Stop => {
                for (number, detail) in self.table.give_up() {
                    self.never(number, ActionStatus::NotReached, detail);
                }
            }
        }
    }

    fn reached(&mut self, number: u16, due: Time) {
        if self.table.is_missed(due) {
            self.table.missed(number);
            let detail = say!("the run had no controller at that time");
            return self.never(number, ActionStatus::Missed, detail);
        }
        let now = self.clock.now();
        self.table.begins(number);
        let program = Arc::clone(&self.program);
        let event = &program.events[usize::from(number)];
        self.told(Event::ActionBegun {
            at_ns: now.as_nanos(),
            number,
            name: event.name.clone(),
            action: event.action.word().into(),
            due_ns: due.as_nanos(),
        });
        let mut running = Running { begun: now, signal: None };
        let is_begun = match &event.action {
            Action::Mark => self.own.send(Heard::Ended(number, done(Said::default()))).is_ok(),
            Action::Amend { .. } | Action::Audit(_) => {
                self.tell.send(EventReport::Do(number)).is_ok()
            }
            Action::Http(call) => {
                let call = call.clone();
                self.apart(number, move |_| answered(&call))
            }
            Action::Run { command, timeout } => {
                let (signal, hears) = line();
                running.signal = Some(signal.clone());
                let (command, timeout) = (command.clone(), *timeout);
                let (run, name) = (program.run_id.clone(), event.name.clone());
                self.apart(number, move |clock| {
                    let variables = [("THRONG_RUN", run.as_str()), ("THRONG_EVENT", &name)];
                    execute((&command, timeout), &variables, clock, (signal, &hears))
                })
            }
        };
        self.running.insert(number, running);
        if !is_begun {
            let detail = say!("a thread could not be started");
            self.ended(
                number,
                Outcome { status: ActionStatus::Failed, detail, ..done(Said::default()) },
            );
        }
    }

    /// Executes the event in a separate thread.
    fn apart(&self, number: u16, act: impl FnOnce(&Clock) -> Outcome + Send + 'static) -> bool {
        let (own, clock) = (self.own.clone(), self.clock.clone());
        let work = move || drop(own.send(Heard::Ended(number, act(&clock))));
        std::thread::Builder::new().name("event".into()).spawn(work).is_ok()
    }

    fn ended(&mut self, number: u16, outcome: Outcome) {
        let Some(running) = self.running.remove(&number) else { return };
        let now = self.clock.now();
        self.table.ended(number, now);
        self.over(number, now, now.since(running.begun), outcome);
    }

    fn never(&self, number: u16, status: ActionStatus, detail: Said) {
        let outcome = Outcome { status, detail, output: String::new() };
        self.over(number, self.clock.now(), Duration::ZERO, outcome);
    }

    fn over(&self, number: u16, at: Time, took: Duration, outcome: Outcome) {
        let event = &self.program.events[usize::from(number)];
        self.told(Event::ActionEnded {
            at_ns: at.as_nanos(),
            number,
            name: event.name.clone(),
            action: event.action.word().into(),
            status: outcome.status,
            took_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
            detail: outcome.detail,
            output: outcome.output,
        });
    }

    /// Stops running events, and reports those that never started.
    fn stop(mut self, heard: &Receiver<Heard>) {
        self.hear(Heard::NoMore);
        let signals = self.running.values().filter_map(|running| running.signal.as_ref());
        signals.for_each(|signal| drop(signal.send(Signal::Stop)));
        let until = self.clock.now() + PATIENCE;
        while self.running.values().any(|running| running.signal.is_some()) {
            match heard.recv_timeout(until.since(self.clock.now())) {
                Ok(Heard::Ended(number, outcome)) => self.ended(number, outcome),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        let left: Vec<u16> = self.running.keys().copied().collect();
        for number in left {
            let detail = say!("the run ended");
            let outcome = Outcome { status: ActionStatus::Stopped, detail, ..Outcome::default() };
            self.ended(number, outcome);
        }
    }

    /// Fails silently if the controller has ended.
    fn told(&self, event: Event) {
        let _ = self.tell.send(EventReport::Event(Box::new(event)));
    }
}

fn done(detail: Said) -> Outcome {
    Outcome { status: ActionStatus::Done, detail, output: String::new() }
}

fn answered(call: &HttpCall) -> Outcome {
    match ask(call) {
        Ok(answer) => {
            let is_good = call.accepts(answer.status);
            let status = if is_good { ActionStatus::Done } else { ActionStatus::Failed };
            let detail = say!("status {}", answer.status);
            Outcome { status, detail, output: kept(&answer.body) }
        }
        Err(detail) => Outcome { status: ActionStatus::Failed, detail, ..Outcome::default() },
    }
}
