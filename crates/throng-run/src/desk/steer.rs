//! Checks, executes and records the commands that a user sends to a run.

use std::time::Duration;

use throng_base::{Said, Time};
use throng_engine::{GROWTH_AHEAD, Spare};
use throng_program::{Change, Program};
use throng_results::Event;

use super::Desk;
use crate::control::command::{Answer, Command, of_key};
use crate::desk::levels::{Levels, Refusal};
use crate::desk::pilot::Pilot;
use crate::wire::Order;

/// The commands so far.
pub(super) struct Steer {
    pub(super) levels: Levels,
    pub(super) paused: bool,
    /// When the last change takes effect. Changes by repeated keys follow each other.
    pub(super) amended: Time,
    marks: u64,
}

impl Steer {
    pub(super) fn new(program: &Program, users_spare: Spare) -> Steer {
        let levels = Levels::new(program, users_spare);
        Steer { levels, paused: false, amended: Time::ZERO, marks: 0 }
    }
}

impl Desk<'_> {
    /// Executes the command of a key; the operator sees the result.
    pub(super) fn key(&mut self, key: u8) {
        if key == b'?' {
            if self.conduct.operator.helps() {
                return;
            }
            return self.say(say!(
                "keys: + more, - less, p pause, g go on, n end this phase, m mark, q stop"
            ));
        }
        let Some(command) = of_key(key) else { return };
        match self.command(&command, None) {
            Answer::Done(_) if command == Command::Stop => {}
            Answer::Done(said) | Answer::Refused { message: said, .. } => self.say(said),
            Answer::Status(_) => {}
        }
    }

    /// Executes the command, or returns why it is refused.
    pub(super) fn command(&mut self, command: &Command, load: Option<&str>) -> Answer {
        let now = self.posts.clock.now();
        let done = match command {
            Command::Status => {
                let (program, paused) = (&self.conduct.program, self.steer.paused);
                let levels = &self.steer.levels;
                return Answer::Status(levels.status(program, &self.running, (paused, now)));
            }
            Command::Change(Change::EndPhase) if self.pilot.is_some() => {
                self.pilot.iter_mut().for_each(Pilot::skip);
                Ok(say!("the search skips this level"))
            }
            Command::Change(_) | Command::Pause | Command::GoOn if self.duel.is_some() => Err((
                say!("a duel sets the load of this run"),
                say!("end the duel: `throng control stop`"),
            )),
            Command::Change(_) | Command::Pause | Command::GoOn if self.pilot.is_some() => Err((
                say!("a search sets the load of this run"),
                say!(
                    "skip the level: `throng control end-phase`; end the search: `throng control stop`"
                ),
            )),
            Command::Change(change) => self.change(*change, load, now),
            Command::Pause | Command::GoOn => self.pause(command, now),
            Command::Mark(name) => {
                let marks = self.steer.marks + 1;
                let name = if name.is_empty() { format!("mark {marks}") } else { name.clone() };
                self.send_order(Order::Mark { name: name.clone() });
                self.was_marked(name.clone(), now);
                Ok(say!("marked: {name}"))
            }
            Command::Stop => {
                self.interrupted();
                Ok(say!("the run ends: users finish their step and leave"))
            }
            Command::Abort => {
                self.interrupted();
                self.send_order(Order::Abort);
                Ok(say!("the run ends immediately"))
            }
        };
        match done {
            Ok(said) => Answer::Done(said),
            Err((message, help)) => Answer::Refused { message, help },
        }
    }

    fn pause(&mut self, command: &Command, now: Time) -> Result<Said, Refusal> {
        let pauses = *command == Command::Pause;
        if self.steer.paused == pauses {
            return Ok(match pauses {
                true => say!("already paused: no users are added until the command `go-on`"),
                false => say!("the run was not paused"),
            });
        }
        self.send_order(if pauses { Order::Pause } else { Order::GoOn });
        self.was_paused(pauses, now + GROWTH_AHEAD);
        Ok(match pauses {
            true => say!("paused: no users are added until the command `go-on`"),
            false => say!("growth resumed"),
        })
    }

    pub(super) fn change(
        &mut self,
        change: Change,
        load: Option<&str>,
        now: Time,
    ) -> Result<Said, Refusal> {
        let number = load_named(&self.conduct.program, load)?;
        let program = &self.conduct.program;
        let one = &program.loads[number];
        let at = (now + GROWTH_AHEAD).max(self.steer.amended);
        let Some((phase, begun)) = self.running.at(number, at) else {
            let help = say!("show the running loads: `throng control status`");
            return Err((say!("the load is not running now"), help));
        };
        let within = self.running.within(number, phase);
        let passed: Duration = at.since(begun);
        let users_max = self.steer.levels.change((one, number), (within, passed), change)?;
        self.steer.amended = at;
        let (load, at_ns) = (number as u16, at.as_nanos());
        self.send_order(Order::Amend { load, at_ns, change, users_max });
        if change == Change::EndPhase {
            self.events.iter().for_each(|events| events.phase_ends(phase, at));
        }
        let command = Command::Change(change);
        let name = one.phases[within].name.clone();
        self.amended(&command, (at, number, phase));
        Ok(match change {
            Change::EndPhase => say!("phase `{name}` ends"),
            _ => say!("phase `{name}`: {change}", change = Said::of_others(command.word())),
        })
    }

    /// Restores the orders of the earlier desk up to a time: records them, but does not send them.
    pub(super) fn recover(&mut self, until: Time) {
        while let Some(past) = self.past.pop_front_if(|past| past.at_ns <= until.as_nanos()) {
            let at = Time(past.at_ns);
            match past.order {
                Order::Pause => self.was_paused(true, at),
                Order::GoOn => self.was_paused(false, at),
                Order::Amend { load, at_ns, change, .. } => {
                    self.was_changed((usize::from(load), Time(at_ns)), change);
                }
                // Stops caused by a rule or a machine are reported again by those.
                Order::Stop if !past.for_all || self.stops > 0 => {}
                Order::Stop => {
                    (self.stops, self.info.interrupted) = (1, true);
                    self.event(&Event::Interrupted { at_ns: past.at_ns });
                }
                Order::Abort => self.stops += 1,
                Order::Mark { name } => self.was_marked(name, at),
                Order::Record { event } => self.event(&event),
                // Machines that are lost, throttled or decline an order report it again.
                Order::Take { .. }
                | Order::Presence { .. }
                | Order::Audit { .. }
                | Order::Decline => {}
            }
        }
    }

    fn was_marked(&mut self, name: String, at: Time) {
        self.steer.marks += 1;
        self.event(&Event::Marked { at_ns: at.as_nanos(), name });
    }

    fn was_paused(&mut self, pauses: bool, at: Time) {
        self.steer.paused = pauses;
        let running = self.running.loads().iter().flatten().next();
        let phase = running.map_or(0, |(phase, _)| *phase);
        let command = if pauses { Command::Pause } else { Command::GoOn };
        self.amended(&command, (at, self.running.load_of(phase), phase));
    }

    fn was_changed(&mut self, (number, at): (usize, Time), change: Change) {
        let program = &self.conduct.program;
        let Some(one) = program.loads.get(number) else { return };
        let Some((phase, begun)) = self.running.at(number, at) else { return };
        let within = self.running.within(number, phase);
        // The change was allowed before.
        let _ = self.steer.levels.change((one, number), (within, at.since(begun)), change);
        self.steer.amended = at;
        self.amended(&Command::Change(change), (at, number, phase));
    }

    fn amended(&mut self, command: &Command, (at, load, phase): (Time, usize, u16)) {
        let (at_ns, load) = (at.as_nanos(), load as u16);
        self.event(&Event::Amended { at_ns, load, phase, change: command.word() });
    }
}

fn load_named(program: &Program, load: Option<&str>) -> Result<usize, Refusal> {
    let loads = &program.loads;
    let names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
    let names = names.join(", ");
    match load {
        Some(load) => loads
            .iter()
            .position(|one| one.name == load)
            .ok_or_else(|| (say!("the run has no load `{load}`"), say!("its loads: {names}"))),
        None if loads.len() == 1 => Ok(0),
        None => Err((
            say!("the run has several loads"),
            say!("choose one with `throng control --load NAME`: {names}"),
        )),
    }
}
