//! Connects a desk and the controller of a fleet: orders in one direction, lines in the other.
//! Waits for an agent that is unreachable, because it keeps its lines on its disk and sends them
//! later.

use std::time::Duration;

use throng_base::{Clock, Said};
use throng_fleet::controller::{Input, Missing, Output};
use throng_fleet::presence::News;
use throng_fleet::wire::Raw;
use throng_results::Event;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender};
use tokio::task::yield_now;
use tokio::time::{Instant, interval};

use crate::post::Lines;
use crate::wire::{Message, Order};

/// How long the run waits for a lost agent before it continues without it.
const LOST_TIME: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Bridge {
    agents: Vec<Agent>,
    inputs: UnboundedSender<Input>,
    lines: Lines,
    clock: Clock,
}

struct Agent {
    name: String,
    /// Since when the agent is silent.
    silent: Option<Instant>,
    /// The early end of its load has been recorded.
    is_lost: bool,
    /// The desk no longer waits for messages of this agent.
    is_over: bool,
}

impl Bridge {
    /// `clock` is the clock of the run.
    pub(super) fn new(
        names: Vec<String>,
        inputs: UnboundedSender<Input>,
        lines: Lines,
        clock: Clock,
    ) -> Bridge {
        let agent = |name| Agent { name, silent: None, is_lost: false, is_over: false };
        let agents = names.into_iter().map(agent).collect();
        Bridge { agents, inputs, lines, clock }
    }

    /// Runs until the desk gives no more orders.
    pub(super) async fn work(
        mut self,
        mut outputs: Receiver<Output>,
        mut orders: UnboundedReceiver<(Option<usize>, Order)>,
    ) {
        let mut look = interval(LOOK_EVERY);
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some((except, order)) => {
                        let (at_ns, order) = (self.clock.now().as_nanos(), Raw::new(&order));
                        let _ = self.inputs.send(Input::Order { at_ns, except, order });
                    }
                    None => break,
                },
                output = outputs.recv() => match output {
                    // Let the desk process the line before the next one is read.
                    Some(output) => {
                        self.heard(output);
                        yield_now().await;
                    }
                    None => {
                        self.lost_all(&say!("the connection to the bus is permanently lost"));
                        break;
                    }
                },
                _ = look.tick() => self.look(),
            }
        }
        let _ = self.inputs.send(Input::Over);
        let _ = self.inputs.send(Input::Close);
        while let Some(output) = outputs.recv().await {
            if output == Output::Closed {
                return;
            }
        }
    }

    fn tell(&self, agent: usize, message: Message) {
        let machine = u16::try_from(agent).unwrap_or(u16::MAX);
        let _ = self.lines.send((machine, message));
    }

    fn notice(&self, text: Said) {
        self.tell(0, Message::Notice { at_ns: self.clock.now().as_nanos(), text });
    }

    /// The agent's part of the load ended too early.
    fn lost(&mut self, agent: usize, detail: Said) {
        self.lost_at(agent, self.clock.now().as_nanos(), detail);
    }

    fn lost_at(&mut self, agent: usize, at_ns: u64, detail: Said) {
        if std::mem::replace(&mut self.agents[agent].is_lost, true) {
            return;
        }
        let name = &self.agents[agent].name;
        self.notice(say!("{name} and all its users were lost: {detail}", detail = &detail));
        let event = Event::MachineLost { at_ns, machine: agent as u16, detail };
        self.tell(agent, Message::Event(event));
    }

    pub(super) fn heard(&mut self, output: Output) {
        match output {
            Output::Lines { agent, lines } => {
                // An agent that still sends stored lines is not silent.
                if let Some(since) = &mut self.agents[agent].silent {
                    *since = Instant::now();
                }
                for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    self.line(agent, line);
                }
            }
            Output::Ended { agent, end } => {
                self.agents[agent].silent = None;
                // The agent may have ended gracefully, but too early.
                if let Some(why) = &end.cut_short {
                    self.lost(agent, why.clone());
                }
                self.over(agent, end.cut_short.unwrap_or_else(|| say!("it ended")));
            }
            Output::News { name, news } => self.news(&name, &news),
            Output::StopWanted => self.tell(0, Message::StopWanted),
            Output::Deposed => {
                self.lost_all(&say!("another controller has taken over this run"));
            }
            Output::GivenUp(missing) => {
                let agent = missing.agent;
                let text = told_missing(&missing);
                let name = &self.agents[agent].name;
                self.notice(say!("agent `{name}`: {text}", text = &text));
                self.over(agent, text);
            }
            Output::Failed(why) => self.lost_all(&why),
            _ => {}
        }
    }

    fn line(&mut self, agent: usize, line: &[u8]) {
        // The version of the lines was checked before the start.
        let Ok(message) = serde_json::from_slice::<Message>(line) else { return };
        match message {
            Message::Notice { at_ns, text } => {
                let name = &self.agents[agent].name;
                let text = say!("agent `{name}`: {text}", text = &text);
                self.tell(agent, Message::Notice { at_ns, text });
            }
            // The loss was reported by the agent's own lines, or noticed before they arrived.
            Message::Event(Event::MachineLost { at_ns, detail, .. }) => {
                self.lost_at(agent, at_ns, detail);
            }
            Message::Over { .. } if self.agents[agent].is_over => {}
            Message::Over { .. } => {
                self.agents[agent].is_over = true;
                self.tell(agent, message);
            }
            _ => self.tell(agent, message),
        }
    }

    /// Ends an agent that did not report the end of its load.
    fn over(&mut self, agent: usize, detail: Said) {
        if !self.agents[agent].is_over {
            self.lost(agent, detail);
            self.agents[agent].is_over = true;
            let at_ns = self.clock.now().as_nanos();
            self.tell(agent, Message::Over { at_ns, whole: true });
        }
    }

    fn lost_all(&mut self, why: &Said) {
        for agent in 0..self.agents.len() {
            self.over(agent, why.clone());
        }
    }

    fn news(&mut self, name: &str, news: &News) {
        let number = self.agents.iter().position(|agent| agent.name == name);
        let Some(number) = number.filter(|number| !self.agents[*number].is_over) else { return };
        match news {
            News::Suspected => self.notice(say!("agent `{name}` does not respond")),
            News::Lost => {
                self.agents[number].silent = Some(Instant::now());
                self.lost(number, say!("it stopped responding and ended its load"));
            }
            News::Back => {
                self.agents[number].silent = None;
                self.notice(say!("agent `{name}` responds again"));
            }
            News::Restarted(_) => {
                self.agents[number].silent = Some(Instant::now());
                self.lost(number, say!("its agent restarted"));
            }
            News::Twice(_) => {
                self.notice(say!("two processes claim to be agent `{name}`"));
            }
            News::Joined | News::TooMany => {}
        }
    }

    fn look(&mut self) {
        for (number, agent) in self.agents.iter_mut().enumerate() {
            if !agent.is_over && agent.silent.is_some_and(|at| at.elapsed() >= LOST_TIME) {
                agent.silent = None;
                let _ = self.inputs.send(Input::GiveUp { agent: number });
            }
        }
    }
}

/// Maximum number of gaps that a message names.
const NAMED_MAX: usize = 8;

/// Describes the missing lines of an agent.
fn told_missing(missing: &Missing) -> Said {
    let named = missing.lines.iter().take(NAMED_MAX);
    let named = named.map(|lines| match lines.end - lines.start {
        1 => lines.start.to_string(),
        _ => format!("{}–{}", lines.start, lines.end - 1),
    });
    let mut gaps: Vec<String> = named.collect();
    if missing.lines.len() > NAMED_MAX {
        gaps.push("…".to_string());
    }
    let gaps = gaps.join(", ");
    match missing.open_from {
        Some(from) if gaps.is_empty() => say!("all of its lines from {from} onward are missing"),
        Some(from) => say!("its lines {gaps} are missing, and all lines from {from} onward"),
        None => say!("its lines {gaps} are missing"),
    }
}

#[cfg(test)]
mod tests {
    use throng_fleet::presence::Incarnation;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn a_loss_is_reported_once() {
        let lost = say!("it received no more commands, so it ended its load gracefully");
        let own = Message::Event(Event::MachineLost { at_ns: 7, machine: 0, detail: lost });
        let over = Message::Over { at_ns: 8, whole: true };
        let lines: Vec<u8> = [own, over]
            .iter()
            .flat_map(|message| [serde_json::to_vec(message).unwrap(), b"\n".to_vec()].concat())
            .collect();
        let own_lines = || Output::Lines { agent: 0, lines: lines.clone() };
        let anew = || Output::News { name: "a".into(), news: News::Restarted(Incarnation(2)) };
        for order in [[own_lines(), anew()], [anew(), own_lines()]] {
            let (inputs, _inputs) = unbounded_channel();
            let (tell, mut told) = unbounded_channel();
            let mut bridge = Bridge::new(vec!["a".into()], inputs, tell, Clock::start());
            order.into_iter().for_each(|output| bridge.heard(output));
            let told: Vec<Message> = std::iter::from_fn(|| Some(told.try_recv().ok()?.1)).collect();
            let count = |is: fn(&Message) -> bool| told.iter().filter(|it| is(it)).count();
            let is_lost = |it: &Message| matches!(it, Message::Event(Event::MachineLost { .. }));
            assert_eq!(count(is_lost), 1, "{told:?}");
            assert_eq!(count(|it| matches!(it, Message::Over { .. })), 1, "{told:?}");
        }
    }

    #[test]
    fn missing_lines_are_named() {
        let told = |lines: &[std::ops::Range<u64>], open_from| {
            told_missing(&Missing { agent: 0, lines: lines.to_vec(), open_from }).english()
        };
        assert_eq!(told(&[], Some(7)), "all of its lines from 7 onward are missing");
        let gaps = [2..3, 5..9];
        assert_eq!(told(&gaps, None), "its lines 2, 5–8 are missing");
        let text = "its lines 2, 5–8 are missing, and all lines from 12 onward";
        assert_eq!(told(&gaps, Some(12)), text);
        let many: Vec<_> = (0..20).map(|it| it * 3..it * 3 + 1).collect();
        assert!(told(&many, None).ends_with("21, … are missing"));
    }
}
