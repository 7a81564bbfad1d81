//! Assigns shares of the load to agents by weight: of every `of` events an agent has the `width`
//! that follow the first `first` ([`throng_base::Share`]). Small numbers keep the load even over
//! time: with a cycle of a million events, the first agent would get hundreds of thousands of
//! consecutive arrivals.

use throng_base::LoadPart;

/// The capacity of an agent, as registered.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    pub name: String,
    /// Processors that its owner allows; can be fractional.
    pub cores: f64,
    pub memory_bytes: u64,
    pub descriptors: u64,
    /// Source ports per address of the target, over all source addresses.
    pub ports: u64,
    /// The owner's limit on requests per second.
    pub rate_max: Option<f64>,
}

/// What a run requires of all agents together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Maximum number of concurrent users.
    pub users: u64,
    pub user_bytes: u64,
    /// Connections per user.
    pub user_connections: u64,
    /// Addresses of the target: each has its own ports.
    pub addresses: u64,
    /// Source ports that the scenario gives to each agent, in addition to the registered ones: from
    /// listed addresses, or from loopback. 0 if none.
    pub ports: u64,
    /// Maximum requests per second, if the load limits them.
    pub rate: Option<f64>,
}

/// What limits an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarce {
    Memory,
    Descriptors,
    Ports,
    Rate,
}

/// The capacity of all agents together is too low.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    /// The number of users that they could run.
    pub users: u64,
    /// What limits each agent, in their order.
    pub scarce: Vec<Scarce>,
}

/// The share of an agent's memory for users: the rest is for the system and recording.
const MEMORY_SHARE: f64 = 0.7;
/// Descriptors that are not connections.
const DESCRIPTORS_KEPT: u64 = 512;
/// Widths of the largest agent; finer ones only if an agent's share would differ too much from its
/// ideal.
const WIDTHS: [u64; 3] = [16, 128, 1_024];
const FAR: f64 = 0.15;

/// The shares of the agents, in their order; None for an agent without capacity for a user.
/// Proportional to processors unless something else limits an agent.
///
/// # Errors All of them together cannot run the users or the rate.
pub fn assign(agents: &[Capacity], need: &Need) -> Result<Vec<Option<LoadPart>>, Shortage> {
    let limits: Vec<(u64, Scarce)> = agents.iter().map(|agent| users_max(agent, need)).collect();
    let shortage = || Shortage {
        users: limits.iter().fold(0, |sum: u64, (users, _)| sum.saturating_add(*users)),
        scarce: limits.iter().map(|(_, scarce)| *scarce).collect(),
    };
    let users = need.users.max(1);
    if agents.is_empty() || shortage().users < users {
        return Err(shortage());
    }
    let level = level(agents, &limits, users);
    let wanted = agents.iter().zip(&limits);
    let wanted: Vec<f64> =
        wanted.map(|(agent, (max, _))| (agent.cores * level).min(*max as f64)).collect();
    let mut finer = WIDTHS.iter().filter_map(|width| parts(&wanted, &limits, users, *width));
    let near = finer.by_ref().find(|parts| is_near(parts, &wanted, users));
    near.or_else(|| parts(&wanted, &limits, users, *WIDTHS.last()?)).ok_or_else(shortage)
}

/// The number of users that the agent can run, and what limits it.
fn users_max(agent: &Capacity, need: &Need) -> (u64, Scarce) {
    let connections = need.user_connections.max(1);
    let memory = (agent.memory_bytes as f64 * MEMORY_SHARE) as u64 / need.user_bytes.max(1);
    let descriptors = agent.descriptors.saturating_sub(DESCRIPTORS_KEPT) / connections;
    let ports = agent.ports.max(need.ports).saturating_mul(need.addresses.max(1)) / connections;
    let rate = match (agent.rate_max, need.rate) {
        (Some(max), Some(rate)) if rate > 0.0 => (need.users.max(1) as f64 * max / rate) as u64,
        _ => u64::MAX,
    };
    let limits = [
        (memory, Scarce::Memory),
        (descriptors, Scarce::Descriptors),
        (ports, Scarce::Ports),
        (rate, Scarce::Rate),
    ];
    limits.into_iter().min_by_key(|(users, _)| *users).unwrap_or((0, Scarce::Memory))
}

/// Users per processor, such that all users run although some agents are limited.
fn level(agents: &[Capacity], limits: &[(u64, Scarce)], users: u64) -> f64 {
    let mut by_need: Vec<(f64, f64)> = agents
        .iter()
        .zip(limits)
        .map(|(agent, (max, _))| (agent.cores.max(f64::MIN_POSITIVE), *max as f64))
        .collect();
    by_need.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let (mut left, mut cores) = (users as f64, by_need.iter().map(|(cores, _)| cores).sum::<f64>());
    for (own, max) in by_need {
        let level = left / cores;
        if max >= own * level {
            return level;
        }
        left -= max;
        cores -= own;
    }
    f64::INFINITY
}

/// True if each agent's share is close to its ideal, or the difference is small for the whole load.
fn is_near(parts: &[Option<LoadPart>], wanted: &[f64], users: u64) -> bool {
    parts.iter().zip(wanted).all(|(part, wanted)| {
        let has = part.map_or(0.0, |part| users as f64 * part.width as f64 / part.of as f64);
        let wrong = (has - wanted).abs();
        wrong <= wanted * FAR || wrong <= users as f64 / 1_000.0
    })
}

/// Integer widths up to a maximum, close to the ideal and within each agent's capacity.
fn parts(
    wanted: &[f64],
    limits: &[(u64, Scarce)],
    users: u64,
    width_max: u64,
) -> Option<Vec<Option<LoadPart>>> {
    let most = wanted.iter().copied().fold(0.0, f64::max);
    let width = |users: &f64| (users / most * width_max as f64).round() as u64;
    let mut widths: Vec<u64> = wanted.iter().map(width).collect();
    // An agent above its capacity gives up one unit, which is distributed to all others.
    loop {
        let of: u64 = widths.iter().sum();
        if of == 0 {
            return None;
        }
        let has_too_much = |(width, (max, _)): (&u64, &(u64, Scarce))| {
            u128::from(users) * u128::from(*width) > u128::from(*max) * u128::from(of)
        };
        let Some(one) = widths.iter().zip(limits).position(has_too_much) else { break };
        widths[one] -= 1;
    }
    let common = widths.iter().copied().fold(0, gcd);
    let of = widths.iter().sum::<u64>() / common;
    let mut first = 0;
    let parts = widths.into_iter().map(|width| {
        let width = width / common;
        let part = LoadPart { first, width, of };
        first += width;
        (width > 0).then_some(part)
    });
    Some(parts.collect())
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    const NEED: Need = Need {
        users: 1_000_000,
        user_bytes: 1_100,
        user_connections: 1,
        addresses: 1,
        ports: 0,
        rate: None,
    };

    fn agent(cores: f64, ports: u64) -> Capacity {
        Capacity {
            name: format!("{cores} cores"),
            cores,
            memory_bytes: 8 << 30,
            descriptors: 2_000_000,
            ports,
            rate_max: None,
        }
    }

    fn widths(agents: &[Capacity], need: &Need) -> Vec<u64> {
        let parts = assign(agents, need).expect("parts");
        parts.into_iter().map(|part| part.map_or(0, |part| part.width)).collect()
    }

    #[test]
    fn ports_of_the_scenario_count_for_every_agent() {
        let agents: Vec<Capacity> = (0..10).map(|_| agent(0.2, 28_232)).collect();
        assert!(assign(&agents, &NEED).is_err());
        let parts = assign(&agents, &Need { ports: 65_534 * 28_232, ..NEED }).unwrap();
        assert!(parts.iter().all(|part| part.is_some_and(|part| part.width * 10 == part.of)));
    }

    #[test]
    fn equal_agents_have_equal_shares_and_others_by_processors() {
        assert_eq!(widths(&vec![agent(4.0, 200_000); 10], &NEED), vec![1; 10]);
        let mixed = [agent(2.0, 1_000_000), agent(4.0, 1_000_000), agent(8.0, 1_000_000)];
        assert_eq!(widths(&mixed, &NEED), vec![1, 2, 4]);
        let parts = assign(&mixed, &NEED).unwrap();
        assert_eq!(parts[2], Some(LoadPart { first: 3, width: 4, of: 7 }));
    }

    #[test]
    fn no_agent_exceeds_its_capacity() {
        // The first is large but only has the ports of one source address.
        let agents = [agent(32.0, 28_000), agent(4.0, 600_000), agent(4.0, 600_000)];
        let parts = assign(&agents, &NEED).expect("parts");
        let users: Vec<u64> =
            parts.iter().map(|part| part.unwrap().share().part(NEED.users)).collect();
        assert_eq!(users.iter().sum::<u64>(), NEED.users);
        assert!(users[0] <= 28_000 && users[0] > 20_000, "{users:?}");
    }

    #[test]
    fn a_shortage_names_what_is_scarce() {
        let need = Need { rate: Some(50_000.0), ..NEED };
        let slow = Capacity { rate_max: Some(10_000.0), ..agent(4.0, 1_000_000) };
        let few = Capacity { descriptors: 20_512, ..agent(4.0, 1_000_000) };
        let small = Capacity { memory_bytes: 64 << 20, ..agent(1.0, 1_000_000) };
        let shortage = assign(&[slow, few, small, agent(4.0, 28_000)], &need).unwrap_err();
        let scarce = [Scarce::Rate, Scarce::Descriptors, Scarce::Memory, Scarce::Ports];
        assert_eq!(shortage.scarce, scarce);
        assert_eq!(shortage.users, 200_000 + 20_000 + 42_705 + 28_000);
        assert_eq!(assign(&[], &NEED).unwrap_err().users, 0);
    }

    #[test]
    fn shares_are_complete_disjoint_and_within_limits_for_any_fleet() {
        let mut assigned = 0;
        for seed in 0..2_000 {
            let mut random = Random::new(seed);
            let count = 1 + random.below(40);
            let mut fleet = Vec::new();
            for _ in 0..count {
                let cores = [0.5, 1.0, 2.0, 4.0, 64.0][random.below(5) as usize];
                fleet.push(agent(cores, 1 + random.below(100_000)));
            }
            let need = Need { users: 1 + random.below(1_000_000), ..NEED };
            let able: u64 = fleet.iter().map(|agent| agent.ports).sum();
            match assign(&fleet, &need) {
                Ok(parts) => {
                    assigned += 1;
                    let mut sum = 0;
                    let mut first = 0;
                    for (part, agent) in parts.iter().zip(&fleet) {
                        let Some(part) = part else { continue };
                        assert_eq!(part.first, first, "seed {seed}");
                        first += part.width;
                        let users = part.share().part(need.users);
                        // At the start of a cycle an agent can have one more width than its
                        // average.
                        assert!(users <= agent.ports + part.width, "seed {seed}: {users}");
                        sum += users;
                    }
                    let of = parts.iter().flatten().next().unwrap().of;
                    assert_eq!((first, sum), (of, need.users), "seed {seed}");
                }
                // Widths are integers: an almost full fleet may not fit.
                Err(shortage) => assert!(
                    need.users as f64 > able as f64 * 0.9,
                    "seed {seed}: {} of {able}, {shortage:?}",
                    need.users
                ),
            }
        }
        assert!(assigned > 500, "{assigned}");
    }
}
