//! What a scenario asks of a host. Where the load says it only in part, less is asked for: a run
//! that would have worked must not be stopped.

use std::net::{SocketAddr, ToSocketAddrs as _};

use throng_engine::{session_shares, target_shares};
use throng_host::doctor::{Block, Needs, Role, Route};
use throng_load::plan;
use throng_program::{
    Amount, Coming, Drive, Family, Instruction, Parting, Phase, Program, Scheme, Session,
    SourceBlock, Target,
};

pub(crate) fn needs(program: &Program) -> Needs {
    let users = users(program);
    let phases = || program.load.phases.iter();
    let opened = phases().filter_map(|phase| opened(phase, program)).reduce(f64::max);
    let datagrams = datagrams(program);
    let reopened = phases().map(|phase| reopened(phase, users)).fold(0.0, f64::max);
    let closing = match program.connection.keep_alive {
        true => 0.0,
        false => phases().filter_map(|phase| iterations(&phase.drive)).fold(0.0, f64::max),
    };
    let closing = closing * share(program, |session| !connects(session));
    let sources = &program.connection.sources;
    let block = |block: &SourceBlock| match block {
        SourceBlock::Range { first, last } => Block::Range { first: *first, last: *last },
        SourceBlock::Interface(name) => Block::Interface(name.clone()),
    };
    Needs {
        role: Role::Generator,
        users,
        holds: holds(program),
        opened_per_second: opened,
        // No port of UDP waits for anything.
        reopened_per_second: (reopened * (1.0 - datagrams)).max(closing),
        routes: routes(program),
        sources: sources.blocks.iter().map(block).collect(),
        ports: sources.ports,
        transparent: sources.transparent,
        tls: program.targets.iter().any(|target| target.scheme.is_secure()),
        datagrams,
    }
}

/// The part of all users who go to targets like these.
pub(crate) fn share_to(program: &Program, wanted: impl Fn(Scheme) -> bool) -> f64 {
    let shares = program.targets.iter().zip(target_shares(program));
    shares.filter(|(target, _)| wanted(target.scheme)).map(|(_, share)| share).sum::<f64>().min(1.0)
}

fn datagrams(program: &Program) -> f64 {
    let is_all = program.targets.iter().all(|target| target.scheme == Scheme::Udp);
    if is_all { 1.0 } else { share_to(program, |scheme| scheme == Scheme::Udp) }
}

/// The part of all users who do such sessions.
fn share(program: &Program, wanted: impl Fn(&Session) -> bool) -> f64 {
    let shares = program.sessions.iter().zip(session_shares(program));
    shares.filter(|(session, _)| wanted(session)).map(|(_, share)| share).sum::<f64>().min(1.0)
}

/// The most users at once, as far as the phases have time to bring them; of those who arrive, one
/// second's worth.
fn users(program: &Program) -> u64 {
    let planned = plan(&program.load);
    let staying = planned.iter().map(|phase| phase.users.0.max(phase.users.1)).max().unwrap_or(0);
    let arriving = planned.iter().filter_map(|phase| phase.arrivals);
    let arriving = arriving.map(|(from, to)| from.max(to).ceil() as u64).max().unwrap_or(0);
    staying.saturating_add(arriving)
}

/// Whether each user has a connection all the time. Who pauses between requests of HTTP may have
/// none, as servers end connections that are idle; who disconnects has none for a while.
fn holds(program: &Program) -> bool {
    let waits = program.load.phases.iter().any(|phase| iterations(&phase.drive).is_some());
    let holds = |session: &Session| {
        let any = |wanted: fn(&Instruction) -> bool| session.code.iter().any(wanted);
        if any(|step| matches!(step, Instruction::Disconnect(_))) {
            return false;
        }
        let asks = any(|step| matches!(step, Instruction::Http(_)));
        let pauses =
            waits || any(|step| matches!(step, Instruction::Think(_) | Instruction::Stay(_)));
        connects(session) || (asks && program.connection.keep_alive && !pauses)
    };
    let shares = program.sessions.iter().zip(session_shares(program));
    shares.filter(|(_, share)| *share > 0.0).all(|(session, _)| holds(session))
}

/// It has long-lived connections.
pub(crate) fn connects(session: &Session) -> bool {
    session.code.iter().any(|step| matches!(step, Instruction::Connect(_)))
}

/// Iterations per second, where the load sets them.
fn iterations(drive: &Drive) -> Option<f64> {
    match drive {
        Drive::Iterations(iterations) => iterations.rate,
        Drive::Arrivals(_) | Drive::Users(_) | Drive::Hold => None,
    }
}

/// Connections that a phase opens per second at most.
fn opened(phase: &Phase, program: &Program) -> Option<f64> {
    match &phase.drive {
        Drive::Users(users) => Some(match users.coming {
            Coming::AtOnce => users.to as f64,
            Coming::Rate(rate) => rate.min(users.to as f64),
            Coming::Steps { size, .. } => size.min(users.to) as f64,
        }),
        Drive::Arrivals(arrivals) => Some(arrivals.rate.max(arrivals.to)),
        Drive::Iterations(iterations) => match program.connection.keep_alive {
            true => Some(iterations.users as f64),
            false => iterations.rate.or(Some(iterations.users as f64)),
        },
        Drive::Hold => None,
    }
}

/// Connections per second whose ports wait for a minute: those that we end first and in order, be
/// it by halves.
fn reopened(phase: &Phase, users: u64) -> f64 {
    let Some(churn) = &phase.churn else { return 0.0 };
    let per_second = match churn.amount {
        Amount::Rate(rate) => rate,
        Amount::Share { share, every } => users as f64 * share / every.as_secs_f64().max(1e-3),
    };
    let waits = |way: &&Parting| matches!(way, Parting::Fin | Parting::HalfClose);
    let in_order = churn.ways.iter().filter(waits).count();
    per_second * in_order as f64 / churn.ways.len().max(1) as f64
}

/// Where connections go, as a run resolves it: users spread over the targets of their sessions by
/// weight, and over the addresses of each in turn.
fn routes(program: &Program) -> Vec<Route> {
    let mut routes: Vec<(Option<SocketAddr>, bool, f64)> = Vec::new();
    for (target, share) in program.targets.iter().zip(target_shares(program)) {
        let is_datagram = target.scheme == Scheme::Udp;
        let addresses = addresses(target, program);
        let each = share / addresses.len().max(1) as f64;
        let found = addresses.into_iter().map(Some);
        // A name that cannot be resolved is told when the run begins.
        let unknown = found.len() == 0;
        for address in found.chain(unknown.then_some(None)) {
            let is_known = |known: &&mut (Option<SocketAddr>, bool, f64)| {
                address.is_some() && (known.0, known.1) == (address, is_datagram)
            };
            match routes.iter_mut().find(is_known) {
                Some((_, _, share)) => *share += each,
                None => routes.push((address, is_datagram, each)),
            }
        }
    }
    routes.retain(|(_, _, share)| *share > 0.0);
    let route = |(address, is_datagram, share): (Option<SocketAddr>, bool, f64)| Route {
        address: address.map(|it| it.ip()),
        share: share.min(1.0),
        is_datagram,
    };
    routes.into_iter().map(route).collect()
}

fn addresses(target: &Target, program: &Program) -> Vec<SocketAddr> {
    let found = (target.host.as_str(), target.port).to_socket_addrs();
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found.into_iter().flatten() {
        let is_wanted = match program.connection.family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        };
        if is_wanted && has_source(program, address) && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Where sources are named, nobody goes where none of them fits.
fn has_source(program: &Program, address: SocketAddr) -> bool {
    let blocks = &program.connection.sources.blocks;
    let fits = |block: &SourceBlock| match block {
        SourceBlock::Range { first, .. } => first.is_ipv4() == address.is_ipv4(),
        SourceBlock::Interface(_) => true,
    };
    blocks.is_empty() || blocks.iter().any(fits)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use throng_base::Source;

    use super::*;

    fn of(head: &str, steps: &str) -> Needs {
        let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
        let text = format!("name: test\n{head}\nsessions:\n  user:\n    steps:\n{steps}");
        let source = Source::new("test.yaml", text);
        match crate::scenario::compile(&source, Vec::new(), PathBuf::new()) {
            Ok((program, _)) => needs(&program),
            Err(diagnostics) => panic!("{diagnostics:#?}\n{}", source.text),
        }
    }

    const STAYING_RAW: &str = "- connect\n- stay: forever";
    const STAYING: &str = "- connect: /\n- stay: forever";

    #[test]
    fn users_are_those_whom_the_phases_have_time_to_bring() {
        let users = |load: &str| {
            let needs = of(&format!("target: ws://127.0.0.1:9\nload: [{load}]"), STAYING);
            (needs.users, needs.opened_per_second)
        };
        assert_eq!(users("{users: 5000, for: 1s}"), (5000, Some(5000.0)));
        assert_eq!(users("{users: {to: 5000, rate: 100/s}, for: 10s}").0, 1000);
        assert_eq!(users("{users: {to: 5000, rate: 100/s}}, {for: 1m}"), (5000, Some(100.0)));
    }

    #[test]
    fn only_who_keeps_a_connection_holds_one() {
        let holds = |target: &str, steps: &str| {
            of(&format!("target: {target}\nload: [{{users: 5, for: 1s}}]"), steps).holds
        };
        assert!(holds("ws://127.0.0.1:9", STAYING));
        assert!(holds("http://127.0.0.1:9", "- http: GET /"));
        assert!(!holds("http://127.0.0.1:9", "- http: GET /\n- think: 1m"));
        assert!(!holds("http://127.0.0.1:9\nconnection: {keep_alive: false}", "- http: GET /"));
        assert!(!holds("ws://127.0.0.1:9", "- connect: /\n- disconnect\n- think: 1m"));
    }

    #[test]
    fn routes_are_weighed_addresses_of_the_targets() {
        let targets = "target: {addresses: [{url: \"wss://127.0.0.1:9\", weight: 3}, \
                       \"wss://[::1]:9\"]}\nload: [{users: 5, for: 1s}]";
        let needs = of(targets, STAYING);
        let shares: Vec<f64> = needs.routes.iter().map(|route| route.share).collect();
        assert_eq!(shares, [0.75, 0.25]);
        assert!(needs.is_local() && needs.tls);
        let needs = of(&format!("{targets}\nsource: {{addresses: 127.1.0.0/16}}"), STAYING);
        assert_eq!(needs.sources.len(), 1);
        assert_eq!(needs.routes[1].address, None, "no source fits the second");
    }

    #[test]
    fn sessions_go_where_they_go() {
        let text = "name: test\ntarget: udp://127.0.0.1:9\nsessions:\n  device:\n    weight: 3\n    \
                    steps:\n      - connect\n      - stay: forever\n  caller:\n    weight: 1\n    \
                    target: http://127.0.0.1:8\n    steps:\n      - http: GET /\n      \
                    - think: 1s\nload: [{users: 5, for: 1s}]\n";
        let source = Source::new("test.yaml", text);
        let (program, _) = crate::scenario::compile(&source, Vec::new(), PathBuf::new()).unwrap();
        let needs = needs(&program);
        let routes: Vec<(f64, bool)> =
            needs.routes.iter().map(|route| (route.share, route.is_datagram)).collect();
        assert_eq!(routes, [(0.75, true), (0.25, false)]);
        assert_eq!((needs.datagrams, needs.fullest_share()), (0.75, 0.75));
        assert!(!needs.holds, "callers pause");
    }

    #[test]
    fn ports_of_datagrams_wait_for_nothing() {
        let churn = |target: &str, way: &str| {
            let load = "load: [{users: 100, for: 10s, churn: {rate: 10/s, how: WAY}}]";
            let load = load.replace("WAY", way);
            of(&format!("target: {target}\n{load}"), STAYING_RAW).reopened_per_second
        };
        assert_eq!(churn("tcp://127.0.0.1:9", "fin"), 10.0);
        assert_eq!(churn("tcp://127.0.0.1:9", "half_close"), 10.0);
        assert_eq!(churn("tcp://127.0.0.1:9", "reset"), 0.0);
        assert_eq!(churn("udp://127.0.0.1:9", "fin"), 0.0);
    }
}
