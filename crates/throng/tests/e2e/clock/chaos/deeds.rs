//! The faults of a fleet: a list of actions with their times, generated from a seed, and their
//! execution.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use throng_base::{Clock, Random, Time};
use throng_bus::keys::Token;

use super::wire::{State, Wire};
use crate::machines::fleet::Fleet;
use crate::run::{Child, throng};

/// Of a run from the moment that its agents are known.
const STORY_MS: u64 = 11_000;
/// In most stories, nothing happens before all agents generate load.
const QUIET_MS: u64 = 4_000;
/// Beside agents, which have their numbers.
const BUS: u64 = 100;
const CONTROLLER: u64 = 101;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    KillAgent(usize),
    /// The agent and its engine at the same time, like a machine failure.
    KillMachine(usize),
    ReviveAgent(usize),
    FreezeAgent(usize),
    ThawAgent(usize),
    KillEngine(usize),
    FreezeEngine(usize),
    ThawEngine(usize),
    Cut(usize),
    Disconnect(usize),
    Heal(usize),
    KillBus,
    FreezeBus,
    ThawBus,
    KillKeeper,
    ReviveKeeper,
    FreezeController,
    ThawController,
    KillController,
    /// Another controller takes the run over.
    Resume,
}

/// What is to happen.
pub(super) struct Story {
    pub(super) agents: usize,
    /// With their times in milliseconds.
    deeds: Vec<(u64, Deed)>,
}

impl Story {
    pub(super) fn new(random: &mut Random) -> Story {
        let agents = 2 + random.below(3) as usize;
        let quiet = if random.below(5) == 0 { 0 } else { QUIET_MS };
        let mut deeds = Vec::new();
        // Each component has one fault at a time: the intervals of faults.
        let mut busy: Vec<(u64, u64, u64)> = Vec::new();
        for _ in 0..3 + random.below(4) {
            let agent = random.below(agents as u64) as usize;
            let from = quiet + random.below(STORY_MS - quiet);
            let to = from + 300 + random.below(5_500);
            let kind = random.below(12);
            let thing = match kind {
                0..=6 => agent as u64,
                7..=9 => BUS,
                _ => CONTROLLER,
            };
            if busy.iter().any(|&(it, begin, end)| it == thing && from <= end && begin <= to) {
                continue;
            }
            busy.push((thing, from, to));
            let (begin, end) = match kind {
                0 => (Deed::KillAgent(agent), Some(Deed::ReviveAgent(agent))),
                1 => (Deed::KillMachine(agent), Some(Deed::ReviveAgent(agent))),
                2 => (Deed::FreezeAgent(agent), Some(Deed::ThawAgent(agent))),
                3 => (Deed::KillEngine(agent), None),
                4 => (Deed::FreezeEngine(agent), Some(Deed::ThawEngine(agent))),
                5 => (Deed::Cut(agent), Some(Deed::Heal(agent))),
                6 => (Deed::Disconnect(agent), Some(Deed::Heal(agent))),
                7 => (Deed::KillBus, None),
                8 => (Deed::FreezeBus, Some(Deed::ThawBus)),
                9 => (Deed::KillKeeper, Some(Deed::ReviveKeeper)),
                // Before all agents generate load, there is nothing to take over.
                10 if from >= QUIET_MS => (Deed::KillController, Some(Deed::Resume)),
                _ => (Deed::FreezeController, Some(Deed::ThawController)),
            };
            deeds.push((from, begin));
            deeds.extend(end.map(|end| (to, end)));
        }
        deeds.sort_by_key(|(at, _)| *at);
        Story { agents, deeds }
    }

    pub(super) fn kills_engines(&self) -> u64 {
        let kills = |deed| matches!(deed, Deed::KillEngine(_) | Deed::KillMachine(_));
        self.deeds.iter().filter(|(_, deed)| kills(*deed)).count() as u64
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (at, deed)) in self.deeds.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{:.1} s {deed:?}", *at as f64 / 1e3)?;
        }
        Ok(())
    }
}

/// A fleet in which each agent has its own network.
pub(super) struct Chaos {
    pub(super) fleet: Fleet,
    wires: Vec<Wire>,
    tokens: Vec<PathBuf>,
}

impl Chaos {
    pub(super) fn new(story: &Story) -> Chaos {
        let mut fleet = Fleet::serving();
        let (mut wires, mut tokens) = (Vec::new(), Vec::new());
        for number in 0..story.agents {
            let name = format!("a{number}");
            let file = fleet.token(&name);
            let text = std::fs::read_to_string(&file).expect("a token");
            let mut token = Token::parse(&text).expect("a token");
            let wire = Wire::to(token.identity.address);
            token.identity.address = wire.address;
            std::fs::write(&file, token.to_string()).expect("a file");
            fleet.joins(&name, &file);
            wires.push(wire);
            tokens.push(file);
        }
        Chaos { fleet, wires, tokens }
    }

    /// Gives the controller that ends the run.
    pub(super) fn lives_through(&mut self, story: &Story, mut desk: Child) -> Child {
        let clock = Clock::start();
        for (at, deed) in &story.deeds {
            let left = Time(at * 1_000_000).since(clock.now());
            if left > Duration::ZERO {
                Clock::start_in(left).wait_for_zero();
            }
            match deed {
                Deed::KillController => {
                    desk.signal(libc::SIGKILL);
                }
                Deed::FreezeController => desk.signal(libc::SIGSTOP),
                Deed::ThawController => desk.signal(libc::SIGCONT),
                Deed::Resume => {
                    let keys = format!("--fleet={}", self.fleet.keys.display());
                    desk = throng("resume --json --out record").arg(keys).start();
                }
                other => self.does(*other),
            }
        }
        desk
    }

    /// What is not done to a controller.
    fn does(&mut self, deed: Deed) {
        let agents = &mut self.fleet.agents;
        match deed {
            Deed::KillAgent(agent) => agents[agent].1.signal(libc::SIGKILL),
            Deed::KillMachine(agent) => {
                let engine = engine(&agents[agent].1);
                agents[agent].1.signal(libc::SIGKILL);
                signal(engine, libc::SIGKILL);
            }
            Deed::ReviveAgent(agent) => {
                let name = agents[agent].0.clone();
                let next = self.fleet.agent(&name, &self.tokens[agent], "").start();
                self.fleet.agents[agent].1 = next;
            }
            Deed::FreezeAgent(agent) => agents[agent].1.signal(libc::SIGSTOP),
            Deed::ThawAgent(agent) => agents[agent].1.signal(libc::SIGCONT),
            Deed::KillEngine(agent) => signal(engine(&agents[agent].1), libc::SIGKILL),
            Deed::FreezeEngine(agent) => signal(engine(&agents[agent].1), libc::SIGSTOP),
            Deed::ThawEngine(agent) => signal(engine(&agents[agent].1), libc::SIGCONT),
            Deed::Cut(agent) => self.wires[agent].becomes(State::Silent),
            Deed::Disconnect(agent) => self.wires[agent].becomes(State::Closed),
            Deed::Heal(agent) => self.wires[agent].becomes(State::Open),
            Deed::KillBus => signal(self.fleet.server(), libc::SIGKILL),
            Deed::FreezeBus => signal(self.fleet.server(), libc::SIGSTOP),
            Deed::ThawBus => signal(self.fleet.server(), libc::SIGCONT),
            Deed::KillKeeper => self.fleet.keeper_dies(),
            Deed::ReviveKeeper => self.fleet.serves(),
            Deed::FreezeController | Deed::ThawController | Deed::KillController | Deed::Resume => {
            }
        }
    }
}

/// The process that generates an agent's load; `None` if there is none now.
fn engine(agent: &Child) -> Option<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", agent.id())).ok()?;
    let children = tasks.flatten().filter_map(|task| {
        let children = std::fs::read_to_string(task.path().join("children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    });
    children.into_iter().next()
}

fn signal(process: Option<i32>, signal: i32) {
    if let Some(process) = process {
        // SAFETY: a signal to a process that this test has started by one of its children.
        unsafe { libc::kill(process, signal) };
    }
}
