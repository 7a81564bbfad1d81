//! Tracks agents by heartbeats. A silent agent is first suspected: it may be frozen or
//! disconnected, while its users still load the target. It counts as lost only when its own switch
//! ([`crate::orphan`]) has certainly ended its load; its share must not be given to others before,
//! or the target would get more load than requested.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::Time;

use crate::orphan::Patience;

/// The interval of an agent's heartbeats.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);
/// An agent is suspected after this time without a heartbeat.
pub const SUSPECT_AFTER: Duration = Duration::from_secs(3);
/// The time for ending its load, once its switch has fired.
pub const ENDING_TIME: Duration = Duration::from_secs(2);
/// Maximum number of agents; others are ignored.
pub const AGENTS_MAX: usize = 10_000;

/// One life of an agent's process: its start in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PresenceState {
    There,
    Suspected,
    Lost,
}

/// A change, for the record and the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    Joined,
    /// It has restarted: its earlier life is over.
    Restarted(Incarnation),
    /// It was silent and is back.
    Back,
    Suspected,
    Lost,
    /// Two processes have the same name; the older one is ignored.
    Twice(Incarnation),
    /// The maximum number of agents is reached.
    TooMany,
}

#[derive(Clone, Debug)]
struct Agent {
    incarnation: Incarnation,
    heard: Time,
    state: PresenceState,
}

#[derive(Clone, Debug)]
pub struct Presence {
    lost_after: Duration,
    agents: BTreeMap<String, Agent>,
}

impl Presence {
    pub fn new(patience: Patience) -> Presence {
        // Its last heartbeats may have been lost while it heard the controller.
        let lost_after = patience.bus + SUSPECT_AFTER + ENDING_TIME;
        Presence { lost_after, agents: BTreeMap::new() }
    }

    /// Handles a heartbeat; returns what has changed.
    pub fn heard(&mut self, name: &str, life: Incarnation, now: Time) -> Option<News> {
        let Some(agent) = self.agents.get_mut(name) else {
            if self.agents.len() == AGENTS_MAX {
                return Some(News::TooMany);
            }
            let agent = Agent { incarnation: life, heard: now, state: PresenceState::There };
            self.agents.insert(name.to_string(), agent);
            return Some(News::Joined);
        };
        if life < agent.incarnation {
            return Some(News::Twice(life));
        }
        let was = std::mem::replace(&mut agent.state, PresenceState::There);
        agent.heard = agent.heard.max(now);
        if life > agent.incarnation {
            agent.incarnation = life;
            return Some(News::Restarted(life));
        }
        (was != PresenceState::There).then_some(News::Back)
    }

    /// Returns what the silence of agents means by now.
    pub fn look(&mut self, now: Time) -> Vec<(&str, News)> {
        let mut news = Vec::new();
        for (name, agent) in &mut self.agents {
            let silent = now.since(agent.heard);
            let (state, what) = match agent.state {
                PresenceState::There | PresenceState::Suspected if silent >= self.lost_after => {
                    (PresenceState::Lost, News::Lost)
                }
                PresenceState::There if silent >= SUSPECT_AFTER => {
                    (PresenceState::Suspected, News::Suspected)
                }
                _ => continue,
            };
            agent.state = state;
            news.push((name.as_str(), what));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;
    use crate::orphan::Orphan;

    fn at(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    const FIRST: Incarnation = Incarnation(1_000);
    const SECOND: Incarnation = Incarnation(2_000);

    #[test]
    fn silence_is_first_suspected_and_then_a_loss() {
        let mut presence = Presence::new(Patience::default());
        assert_eq!(presence.heard("a", FIRST, at(0)), Some(News::Joined));
        assert_eq!(presence.heard("a", FIRST, at(1)), None);
        assert_eq!(presence.look(at(3)), vec![]);
        assert_eq!(presence.look(at(4)), vec![("a", News::Suspected)]);
        assert_eq!(presence.look(at(5)), vec![], "it is said once");
        assert_eq!(presence.heard("a", FIRST, at(6)), Some(News::Back));
        assert_eq!(presence.look(at(40)), vec![("a", News::Suspected)]);
        assert_eq!(presence.look(at(41)), vec![("a", News::Lost)]);
        assert_eq!(presence.agents["a"].state, PresenceState::Lost);
        assert_eq!(presence.heard("a", FIRST, at(42)), Some(News::Back));
    }

    #[test]
    fn an_agent_has_one_life_at_a_time() {
        let mut presence = Presence::new(Patience::default());
        presence.heard("a", FIRST, at(0));
        assert_eq!(presence.heard("a", SECOND, at(1)), Some(News::Restarted(SECOND)));
        assert_eq!(presence.heard("a", FIRST, at(2)), Some(News::Twice(FIRST)));
        assert_eq!(presence.agents["a"].incarnation, SECOND);
        for number in 1..AGENTS_MAX {
            assert_eq!(presence.heard(&number.to_string(), FIRST, at(2)), Some(News::Joined));
        }
        assert_eq!(presence.heard("one more", FIRST, at(2)), Some(News::TooMany));
    }

    /// Heartbeats are lost or late, and partitions start and end: whenever an agent is declared
    /// lost, its own switch has ended its load.
    #[test]
    fn no_agent_is_declared_lost_while_it_may_still_send() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let mut presence = Presence::new(Patience::default());
            let mut orphan = Orphan::new(Patience::default(), at(0));
            let (mut cut, mut until) = (random.below(60), 0);
            let mut late: Vec<(u64, u64)> = Vec::new();
            for second in 0..300 {
                if second >= cut && second < until.max(cut + 1) {
                    orphan.bus_is_lost(at(second));
                } else {
                    orphan.beacon(at(second));
                    if orphan.alone(at(second)).is_none() {
                        late.push((second + random.below(2), second));
                    }
                }
                if second == until.max(cut + 1) {
                    cut = second + 1 + random.below(60);
                    until = cut + random.below(90);
                }
                late.retain(|&(comes, _)| {
                    if comes <= second {
                        presence.heard("a", FIRST, at(second));
                    }
                    comes > second
                });
                let sends = orphan.alone(at(second)).is_none();
                let news = presence.look(at(second));
                assert!(!sends || !news.contains(&("a", News::Lost)), "seed {seed} at {second} s");
            }
        }
    }
}
