//! Computes when events are due, as far as known. It does no I/O: its input is what happened, and
//! when.

use std::collections::BTreeSet;
use std::time::Duration;

use throng_base::{Said, Time};
use throng_load::{Planned, plan};
use throng_program::{Program, Trigger};

/// The state of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Waits,
    /// Its condition has been true since then.
    Holds(Time),
    Begun,
    Ended(Time),
    /// It started, or never will.
    Over,
}

pub(super) struct Timetable {
    triggers: Vec<(String, Trigger)>,
    states: Vec<State>,
    phases: Vec<Planned>,
    names: Vec<String>,
    /// By phase: its planned or actual start.
    begins: Vec<Option<Time>>,
    told: Vec<bool>,
    /// Events due earlier were missed, because the run had no controller.
    since: Time,
}

impl Timetable {
    /// `begun` contains the events that an earlier controller started before `since`.
    pub(super) fn new(program: &Program, begun: &BTreeSet<u16>, since: Time) -> Timetable {
        let phases = plan(&program.loads);
        let begin = |it: &Planned| it.begin_is_known.then(|| Time::ZERO + it.begin);
        let state = |number: u16| match begun.contains(&number) {
            true => State::Ended(since),
            false => State::Waits,
        };
        Timetable {
            triggers: program
                .events
                .iter()
                .map(|it| (it.name.clone(), it.trigger.clone()))
                .collect(),
            states: (0..program.events.len() as u16).map(state).collect(),
            names: program.phases().map(|phase| phase.name.clone()).collect(),
            begins: phases.iter().map(begin).collect(),
            told: vec![false; phases.len()],
            phases,
            since,
        }
    }

    /// The first event that is due, and its time.
    pub(super) fn next(&self) -> Option<(Time, u16)> {
        let numbers = (0..self.states.len()).filter_map(|it| Some((self.due(it)?, it as u16)));
        numbers.min()
    }

    /// Whether the event was due while the run had no controller.
    pub(super) fn is_missed(&self, due: Time) -> bool {
        due < self.since
    }

    fn due(&self, number: usize) -> Option<Time> {
        match self.states[number] {
            State::Holds(at) => return Some(at),
            State::Waits => {}
            State::Begun | State::Ended(_) | State::Over => return None,
        }
        match &self.triggers[number].1 {
            Trigger::At(at) => Some(Time::ZERO + *at),
            Trigger::Phase { phase, offset } => {
                Some((*self.begins.get(usize::from(*phase))?)?.saturating_add(*offset))
            }
            Trigger::After { event, offset } => match self.states[usize::from(*event)] {
                State::Ended(at) => Some(at.saturating_add(*offset)),
                _ => None,
            },
            Trigger::When(_) => None,
        }
    }

    pub(super) fn begins(&mut self, event: u16) {
        self.states[usize::from(event)] = State::Begun;
    }

    pub(super) fn ended(&mut self, event: u16, at: Time) {
        self.states[usize::from(event)] = State::Ended(at);
    }

    pub(super) fn missed(&mut self, event: u16) {
        self.states[usize::from(event)] = State::Over;
    }

    /// The condition of an event has been true for the required time.
    pub(super) fn holds(&mut self, event: u16, at: Time) {
        let state = &mut self.states[usize::from(event)];
        if *state == State::Waits {
            *state = State::Holds(at);
        }
    }

    /// A phase has started; each machine reports it.
    pub(super) fn phase_begun(&mut self, phase: u16, at: Time) {
        if let Some(told) = self.told.get_mut(usize::from(phase))
            && !std::mem::replace(told, true)
        {
            self.begins[usize::from(phase)] = Some(at);
            self.plan_behind(usize::from(phase));
        }
    }

    /// A phase ends at this time instead of as planned.
    pub(super) fn phase_ends(&mut self, phase: u16, at: Time) {
        let next = usize::from(phase) + 1;
        let is_of_same_load = |next: &Planned| next.load == self.phases[usize::from(phase)].load;
        if self.phases.get(next).is_some_and(is_of_same_load) {
            self.begins[next] = Some(at);
            self.plan_behind(next);
        }
    }

    /// Plans the starts of the phases after this one, once its own start is known.
    fn plan_behind(&mut self, phase: usize) {
        for next in phase + 1..self.phases.len() {
            if self.phases[next].load != self.phases[phase].load {
                return;
            }
            let before = &self.phases[next - 1];
            let length: Option<Duration> = before.length;
            self.begins[next] = self.begins[next - 1].zip(length).map(|(at, length)| at + length);
        }
    }

    /// Returns the events that will never start, and why.
    pub(super) fn give_up(&mut self) -> Vec<(u16, Said)> {
        let mut out = Vec::new();
        for number in 0..self.states.len() {
            if matches!(self.states[number], State::Waits | State::Holds(_)) {
                out.push((number as u16, self.reason(number)));
                self.states[number] = State::Over;
            }
        }
        out
    }

    fn reason(&self, number: usize) -> Said {
        match &self.triggers[number].1 {
            Trigger::When(rule) => say!("`{}` was never true", rule.condition.text),
            Trigger::After { event, .. } => {
                let name = &self.triggers[usize::from(*event)].0;
                say!("the run ended before the scheduled time after `{name}`")
            }
            Trigger::Phase { phase, .. } => {
                let name = self.names.get(usize::from(*phase)).map_or("", String::as_str);
                say!("the run ended before the scheduled time after the start of phase `{name}`")
            }
            Trigger::At(at) => {
                let at = throng_base::units::write_duration(*at);
                say!("the run ended before {at}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
