//! Computes the number of machines from the load, the cost of a user and the resources of a
//! machine, without I/O.

use throng_host::costs::{SHARDS_MAX, TIME_WAIT_SECONDS, connections_of_table, kept_of_table};

use crate::machine::Machine;

/// The part of a machine's processors that a load may use. Above it, users wait for each other and
/// response times include delays of the generator.
pub const CORES_SHARE: f64 = 0.7;
/// The part of its memory that a load may use. The rest is for the system, for socket buffers, and
/// for users that connect at the same moment.
pub const MEMORY_SHARE: f64 = 0.8;

/// Maximum time until all users are online.
const WAITED_SECONDS_MAX: f64 = 3_600.0;

/// The load of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wish {
    /// Concurrent users.
    pub users: u64,
    /// Concurrent connections of each user; less than one counts as one.
    pub connections_per_user: f64,
    /// Requests, messages and heartbeats per second.
    pub requests_per_s: f64,
    /// Bytes of these.
    pub heartbeats_per_s: f64,
    /// Maximum number of user starts per second; None if all start at once.
    pub opened_per_s: Option<f64>,
    /// Connections that users close and reopen.
    pub reopened_per_s: f64,
    /// Those of them that throng closes gracefully: their ports stay in TIME_WAIT.
    pub closing_per_s: f64,
    /// Connections that users drop silently within the time for which they are kept, if the
    /// descriptor tables have room for them.
    pub vanished: u64,
    /// The descriptor tables have room for these connections.
    pub leaves_behind: bool,
    /// Addresses and ports of the target.
    pub endpoints: u64,
    /// The largest part of all connections that share one set of ports.
    pub fullest_share: f64,
    /// The target, and so both ends of every connection, is on the same machine.
    pub is_local: bool,
}

/// The cost of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub user_bytes: f64,
    pub kernel_bytes: f64,
    /// If the target is on the same machine.
    pub target_bytes: f64,
    pub connect_ns: f64,
    pub request_ns: f64,
    /// Memory of a machine whatever its users: the program, and the figures of each shard.
    pub process_bytes: f64,
    pub shard_bytes: f64,
}

impl Cost {
    /// All memory of the machine.
    pub fn bytes(&self, wish: &Wish) -> f64 {
        let target = if wish.is_local { self.target_bytes + self.kernel_bytes } else { 0.0 };
        self.user_bytes + (self.kernel_bytes + target) * wish.connections_per_user.max(1.0)
    }

    /// Processors that all users keep busy while the last of them start. A target on the same
    /// machine is assumed to need as much again.
    fn cores(&self, wish: &Wish) -> f64 {
        let opened = wish.opened_per_s.unwrap_or(0.0) + wish.reopened_per_s;
        let ns = opened * self.connect_ns + wish.requests_per_s * self.request_ns;
        ns / 1e9 * if wish.is_local { 2.0 } else { 1.0 }
    }
}

/// A resource of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Memory,
    Cores,
    /// Source addresses, with the ports of each.
    Addresses,
    Descriptors,
}

/// One resource: how much all users need, and how much a machine has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub resource: Resource,
    pub needed: f64,
    /// Without the reserve.
    pub given: f64,
    pub machines: u64,
}

/// The needs of the load in total, and on each machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Reckoned {
    pub rows: Vec<Row>,
    pub machines: u64,
    /// The number of machines if each had enough source addresses.
    pub machines_with_addresses: u64,
    /// Connections that were dropped silently and are kept.
    pub kept: u64,
    /// Ports of all connections, including those in TIME_WAIT and those that are kept.
    pub ports: u64,
    pub each: Each,
    /// The time that all users need to start, if they start at once.
    pub coming_seconds: Option<f64>,
    /// If only processors are scarce: how many machines would suffice, and the maximum start rate
    /// then.
    pub slower: Option<(u64, f64)>,
}

/// The needs on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Each {
    pub users: u64,
    pub opened_per_s: Option<f64>,
    pub requests_per_s: f64,
    pub memory_bytes: f64,
    pub cores: f64,
    pub addresses: u64,
    pub ports: u64,
    pub tables: u64,
    pub shards: u64,
}

impl Wish {
    /// The needs of this many users.
    fn connections(&self, users: u64) -> u64 {
        (users as f64 * self.connections_per_user.max(1.0)).ceil() as u64
    }
}

/// Divides the needs of the load by the resources of a machine. A number of machines is
/// [`u64::MAX`] if no number is enough.
pub fn reckon(wish: &Wish, cost: &Cost, machine: &Machine) -> Reckoned {
    let waiting = (wish.closing_per_s * TIME_WAIT_SECONDS).ceil() as u64;
    let kept = kept(wish.users, wish, machine);
    let ports = wish.connections(wish.users).saturating_add(waiting).saturating_add(kept);
    let rows = vec![
        memory(wish, cost, machine),
        cores(wish, cost, machine),
        addresses(ports, wish, machine),
        descriptors(wish, machine),
    ];
    let most = |with: &dyn Fn(&&Row) -> bool| {
        rows.iter().filter(with).map(|row| row.machines).max().unwrap_or(1).max(1)
    };
    let with_addresses = most(&|row| row.resource != Resource::Addresses);
    // Adding addresses is cheaper than adding machines: only the other resources decide.
    let machines = with_addresses;
    let each = each(machines, ports, wish, cost, machine);
    let usable = machine.cores * CORES_SHARE * machines as f64;
    let work = wish.users as f64 * cost.connect_ns / 1e9;
    let ends = if wish.is_local { 2.0 } else { 1.0 };
    Reckoned {
        machines: most(&|_| true),
        machines_with_addresses: with_addresses,
        kept,
        ports,
        each,
        coming_seconds: wish.opened_per_s.is_none().then_some(work * ends / usable),
        slower: slower(&rows, wish, cost, machine),
        rows,
    }
}

/// Users that start more slowly need fewer machines, if nothing else is scarce.
fn slower(rows: &[Row], wish: &Wish, cost: &Cost, machine: &Machine) -> Option<(u64, f64)> {
    let of = |wanted: &[Resource]| {
        let rows = rows.iter().filter(|row| wanted.contains(&row.resource));
        rows.map(|row| row.machines).max()
    };
    let (rate, cores) = (wish.opened_per_s?, of(&[Resource::Cores])?);
    let others = of(&[Resource::Memory, Resource::Descriptors])?;
    let rest = Wish { opened_per_s: None, ..*wish };
    let left = others as f64 * machine.cores * CORES_SHARE - cost.cores(&rest);
    let ends = if wish.is_local { 2.0 } else { 1.0 };
    let slower = left * 1e9 / (cost.connect_ns * ends);
    (others < cores && slower < rate && slower * WAITED_SECONDS_MAX >= wish.users as f64)
        .then_some((others, slower))
}

fn memory(wish: &Wish, cost: &Cost, machine: &Machine) -> Row {
    let usable = machine.memory_bytes as f64 * MEMORY_SHARE;
    let kept = kept(wish.users, wish, machine) as f64 * cost.kernel_bytes;
    let users = wish.users as f64 * cost.bytes(wish) + kept;
    let mut machines = 1;
    // More machines have fewer shards each, so this converges.
    for _ in 0..8 {
        if usable < 2.0 * fixed_bytes(0, wish, cost, machine) {
            // Throng itself leaves no room for users, so no number of machines is enough.
            machines = u64::MAX;
            break;
        }
        let fixed = fixed_bytes(wish.users.div_ceil(machines), wish, cost, machine);
        let wanted = over(users, usable - fixed);
        if wanted <= machines {
            break;
        }
        machines = wanted;
    }
    let fixed = fixed_bytes(wish.users.div_ceil(machines), wish, cost, machine);
    let needed = users + if machines == u64::MAX { fixed } else { fixed * machines as f64 };
    Row { resource: Resource::Memory, needed, given: usable, machines }
}

fn cores(wish: &Wish, cost: &Cost, machine: &Machine) -> Row {
    let (needed, given) = (cost.cores(wish), machine.cores * CORES_SHARE);
    Row { resource: Resource::Cores, needed, given, machines: over(needed, given) }
}

fn addresses(ports: u64, wish: &Wish, machine: &Machine) -> Row {
    let needed = addresses_needed(ports, wish, machine);
    Row {
        resource: Resource::Addresses,
        needed: needed as f64,
        given: machine.addresses as f64,
        machines: needed.div_ceil(machine.addresses.max(1)),
    }
}

fn descriptors(wish: &Wish, machine: &Machine) -> Row {
    let ends = 1 + u64::from(wish.is_local);
    let given = of_table(wish, machine).saturating_mul(SHARDS_MAX).min(machine.files / ends);
    let kept = kept(wish.users, wish, machine);
    Row {
        resource: Resource::Descriptors,
        needed: wish.connections(wish.users).saturating_add(kept) as f64,
        given: given as f64,
        // Kept connections have their own room.
        machines: wish.connections(wish.users).div_ceil(given.max(1)),
    }
}

fn each(machines: u64, ports: u64, wish: &Wish, cost: &Cost, machine: &Machine) -> Each {
    let users = wish.users.div_ceil(machines);
    let ports = ports.div_ceil(machines);
    let part = machines as f64;
    let kept = kept(wish.users, wish, machine) as f64 * cost.kernel_bytes / part;
    let fixed = fixed_bytes(users, wish, cost, machine);
    Each {
        users,
        opened_per_s: wish.opened_per_s.map(|rate| rate / part),
        requests_per_s: wish.requests_per_s / part,
        memory_bytes: users as f64 * cost.bytes(wish) + kept + fixed,
        cores: cost.cores(wish) / part,
        addresses: addresses_needed(ports, wish, machine),
        ports,
        tables: tables(users, wish, machine),
        shards: shards(users, wish, machine),
    }
}

fn addresses_needed(ports: u64, wish: &Wish, machine: &Machine) -> u64 {
    // A share of a third is never exact.
    let fullest = ports as f64 * wish.fullest_share.min(1.0) / machine.ports.max(1) as f64;
    ((fullest * (1.0 - 1e-9)).ceil() as u64).max(1)
}

/// The number of user connections that fit into one descriptor table.
fn of_table(wish: &Wish, machine: &Machine) -> u64 {
    let kept = if wish.leaves_behind { kept_of_table(machine.descriptors) } else { 0 };
    connections_of_table(machine.descriptors).saturating_sub(kept).max(1)
}

/// Kept connections that were dropped silently, on the shards of this many users.
fn kept(users: u64, wish: &Wish, machine: &Machine) -> u64 {
    if !wish.leaves_behind {
        return 0;
    }
    let shards = shards(users, wish, machine).min(SHARDS_MAX);
    wish.vanished.min(kept_of_table(machine.descriptors).saturating_mul(shards))
}

fn tables(users: u64, wish: &Wish, machine: &Machine) -> u64 {
    wish.connections(users).div_ceil(of_table(wish, machine)).max(1)
}

fn shards(users: u64, wish: &Wish, machine: &Machine) -> u64 {
    tables(users, wish, machine).max(machine.cores.ceil() as u64).min(users.max(1))
}

fn fixed_bytes(users: u64, wish: &Wish, cost: &Cost, machine: &Machine) -> f64 {
    cost.process_bytes + cost.shard_bytes * shards(users, wish, machine).min(SHARDS_MAX) as f64
}

/// The number of machines for this amount; [`u64::MAX`] if a machine has none of it.
fn over(needed: f64, given: f64) -> u64 {
    match given > 0.0 {
        true => (needed / given).ceil().max(1.0) as u64,
        false => u64::MAX,
    }
}

/// Page views of a day, most of them in a part of the day: (PV x share) / (day x part of it).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    pub views: u64,
    /// The share of the views, 0 to 1.
    pub share: f64,
    /// The part of the day with this share, 0 to 1.
    pub of_day: f64,
}

const DAY_SECONDS: f64 = 86_400.0;

impl Peak {
    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.views as f64 * self.share / (DAY_SECONDS * self.of_day)
    }

    /// Machines of the service, if each handles this many requests per second.
    pub fn machines(&self, per_machine: f64) -> u64 {
        over(self.rate(), per_machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn machine() -> Machine {
        Machine {
            is_this_host: false,
            cores: 4.0,
            memory_bytes: 16 * GIB,
            addresses: 1,
            ports: 50_000,
            descriptors: 20_100,
            files: u64::MAX,
        }
    }

    fn cost() -> Cost {
        Cost {
            user_bytes: 1_000.0,
            kernel_bytes: 4_000.0,
            target_bytes: 1_000.0,
            connect_ns: 50_000.0,
            request_ns: 10_000.0,
            process_bytes: 10e6,
            shard_bytes: 50_000.0,
        }
    }

    fn million() -> Wish {
        Wish {
            users: 1_000_000,
            connections_per_user: 1.0,
            requests_per_s: 33_333.0,
            heartbeats_per_s: 33_333.0,
            opened_per_s: Some(20_000.0),
            reopened_per_s: 0.0,
            closing_per_s: 0.0,
            vanished: 0,
            leaves_behind: false,
            endpoints: 1,
            fullest_share: 1.0,
            is_local: false,
        }
    }

    fn of(reckoned: &Reckoned, resource: Resource) -> Row {
        *reckoned.rows.iter().find(|row| row.resource == resource).unwrap()
    }

    #[test]
    fn a_million_users_on_one_machine_but_for_its_addresses() {
        let reckoned = reckon(&million(), &cost(), &machine());
        let memory = of(&reckoned, Resource::Memory);
        assert_eq!(memory.machines, 1);
        // 5 KB each, the program, and 50 shards.
        assert_eq!(memory.needed, 5e9 + 10e6 + 50.0 * 50_000.0);
        let cores = of(&reckoned, Resource::Cores);
        assert!((cores.needed - 1.333).abs() < 0.01 && cores.machines == 1, "{cores:?}");
        let addresses = of(&reckoned, Resource::Addresses);
        assert_eq!((addresses.needed, addresses.machines), (20.0, 20));
        assert_eq!((reckoned.machines, reckoned.machines_with_addresses), (20, 1));
        let each = reckoned.each;
        assert_eq!((each.users, each.tables, each.shards, each.addresses), (1_000_000, 50, 50, 20));
        // Every address of the target is a chance for each port.
        let wish = Wish { endpoints: 20, fullest_share: 1.0 / 20.0, ..million() };
        assert_eq!(reckon(&wish, &cost(), &machine()).machines, 1);
    }

    #[test]
    fn a_target_on_the_same_host_needs_its_own_resources() {
        let local = Wish { is_local: true, ..million() };
        let (one, both) =
            (reckon(&million(), &cost(), &machine()), reckon(&local, &cost(), &machine()));
        let bytes = |it: &Reckoned| of(it, Resource::Memory).needed;
        assert_eq!(bytes(&both) - bytes(&one), 5e9);
        let cores = |it: &Reckoned| of(it, Resource::Cores).needed;
        assert!((cores(&both) - 2.0 * cores(&one)).abs() < 1e-9);
    }

    #[test]
    fn the_scarcest_decides_and_is_split_evenly() {
        let small = Machine { memory_bytes: 2 * GIB, addresses: 100, ..machine() };
        let reckoned = reckon(&million(), &cost(), &small);
        assert_eq!((reckoned.machines, reckoned.each.users), (3, 333_334));
        assert!(reckoned.each.memory_bytes < 2.0 * GIB as f64 * MEMORY_SHARE);
        // Three such machines need not be as fast as one.
        assert_eq!(reckoned.slower, None);
        let at_once = Wish { opened_per_s: None, ..million() };
        let reckoned = reckon(&at_once, &cost(), &machine());
        assert!((reckoned.coming_seconds.unwrap() - 50.0 / 2.8).abs() < 0.01);
    }

    #[test]
    fn slower_starts_need_fewer_machines() {
        let quick = Wish { opened_per_s: Some(200_000.0), ..million() };
        let reckoned = reckon(&quick, &cost(), &machine());
        assert_eq!(reckoned.machines_with_addresses, 4);
        let (machines, rate) = reckoned.slower.unwrap();
        // 2.8 processors, of which heartbeats take 0.33.
        assert!(machines == 1 && (rate - 49_333.0).abs() < 1.0, "{rate}");
        let again = Wish { opened_per_s: Some(rate), ..quick };
        assert_eq!(reckon(&again, &cost(), &machine()).machines_with_addresses, 1);
        let busy = Wish { requests_per_s: 1e6, ..quick };
        assert_eq!(reckon(&busy, &cost(), &machine()).slower, None);
    }

    #[test]
    fn ports_that_wait_for_their_end_count() {
        let short = Wish { users: 100, closing_per_s: 5_000.0, ..million() };
        let reckoned = reckon(&short, &cost(), &machine());
        assert_eq!((reckoned.ports, reckoned.each.addresses), (300_100, 7));
    }

    #[test]
    fn dropped_connections_take_their_share() {
        let left = Wish { vanished: 5_000, leaves_behind: true, ..million() };
        let (one, other) =
            (reckon(&million(), &cost(), &machine()), reckon(&left, &cost(), &machine()));
        assert_eq!((one.kept, other.kept, other.ports), (0, 5_000, 1_005_000));
        // An eighth of each table is theirs.
        assert_eq!((one.each.tables, other.each.tables), (50, 58));
        assert_eq!(of(&other, Resource::Descriptors).needed, 1_005_000.0);
        let memory = of(&other, Resource::Memory).needed - of(&one, Resource::Memory).needed;
        assert_eq!(memory, 5_000.0 * 4_000.0 + 8.0 * 50_000.0);
        assert_eq!(other.each.memory_bytes - one.each.memory_bytes, memory);
        let all = Wish { vanished: u64::MAX, ..left };
        assert_eq!(reckon(&all, &cost(), &machine()).kept, 58 * 2_500);
    }

    #[test]
    fn nothing_overflows() {
        let wish = Wish {
            vanished: u64::MAX,
            leaves_behind: true,
            users: u64::MAX,
            requests_per_s: f64::MAX,
            reopened_per_s: f64::MAX,
            closing_per_s: f64::MAX,
            endpoints: 0,
            is_local: true,
            ..million()
        };
        let none = Machine {
            cores: 0.1,
            memory_bytes: 1,
            addresses: 0,
            ports: 0,
            descriptors: 0,
            files: 0,
            ..machine()
        };
        assert_eq!(reckon(&wish, &cost(), &none).machines, u64::MAX);
        assert_eq!(reckon(&Wish::default(), &cost(), &machine()).machines, 1);
    }

    /// The example of the case: 3,000,000 views a day are 139 a second, and three machines of 58.
    #[test]
    fn a_day_has_a_peak() {
        let peak = Peak { views: 3_000_000, share: 0.8, of_day: 0.2 };
        assert_eq!(peak.rate().ceil(), 139.0);
        assert_eq!(peak.machines(58.0), 3);
    }
}
