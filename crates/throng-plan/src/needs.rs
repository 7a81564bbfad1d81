//! The resources that a scenario requires of a host. If the load determines them only in part, the
//! lower estimate is used: a run that would work must not be stopped.

use std::net::SocketAddr;

use throng_engine::target_shares;
use throng_host::costs::KEPT_SECONDS;
use throng_host::doctor::{Block, Needs, Role, Route};
use throng_load::{Bound, Forecast, connects};
use throng_program::{CloseMode, Program, Scheme, Session, SourceBlock, Statement, Target};

/// The requirements of the scenario on the host that generates its load. Resolves target names.
pub fn needs(program: &Program) -> Needs {
    let forecast = Forecast::new(program);
    let datagrams = datagrams(program);
    let unix_sockets = unix_sockets(program);
    // Connections whose ports stay in TIME_WAIT: throng closes them first and gracefully.
    let reopened = forecast.falling_out(&[CloseMode::Fin, CloseMode::HalfClose]);
    let closing = forecast.closed_per_second();
    let sources = &program.connection.sources;
    let block = |block: &SourceBlock| match block {
        SourceBlock::Range { first, last } => Block::Range { first: *first, last: *last },
        SourceBlock::Interface(name) => Block::Interface(name.clone()),
    };
    Needs {
        role: Role::Generator,
        users: users(&forecast),
        connections_per_user: forecast.connections_per_user(),
        holds: holds(program, &forecast),
        opened_per_second: forecast.opened_per_second(),
        // UDP has no TIME_WAIT, and unix sockets have no ports.
        reopened_per_second: (reopened * (1.0 - datagrams)).max(closing) * (1.0 - unix_sockets),
        vanished: forecast.vanished(KEPT_SECONDS),
        leaves_behind: forecast.leaves_behind(),
        routes: routes(program),
        sources: sources.blocks.iter().map(block).collect(),
        ports: sources.ports,
        transparent: sources.transparent,
        tls: program.targets.iter().any(|target| target.scheme.is_secure()) || program.secures(),
        datagrams,
        unix_sockets,
        wired: wired(program),
    }
}

/// Maximum number of concurrent users that the scenario requests. Resolves no names.
pub fn users_at_once(program: &Program) -> u64 {
    users(&Forecast::new(program))
}

/// As many users as the phases have time to start. For arrivals: as many as their pauses alone keep
/// online, and at least those of one second.
fn users(forecast: &Forecast<'_>) -> u64 {
    let second = forecast.arrivals_per_second().unwrap_or_default().ceil() as u64;
    // Results in parts of a second are never exact.
    let present = (forecast.users_at_once(Bound::Least, 0.0) + 1e-6).floor() as u64;
    present.max(forecast.staying_at_once().saturating_add(second))
}

/// The part of all connections that go to each target; the sum is 1.
fn connection_shares(program: &Program) -> Vec<f64> {
    let shares = target_shares(program);
    let all = shares.iter().sum::<f64>().max(1.0);
    shares.into_iter().map(|share| share / all).collect()
}

/// The part of all connections that go to targets like these.
pub fn share_to(program: &Program, wanted: impl Fn(Scheme) -> bool) -> f64 {
    let shares = program.targets.iter().zip(connection_shares(program));
    shares.filter(|(target, _)| wanted(target.scheme)).map(|(_, share)| share).sum::<f64>().min(1.0)
}

fn datagrams(program: &Program) -> f64 {
    let is_all = program.targets.iter().all(|target| target.scheme == Scheme::Udp);
    if is_all { 1.0 } else { share_to(program, |scheme| scheme == Scheme::Udp) }
}

fn unix_sockets(program: &Program) -> f64 {
    let is_unix = |target: &Target| target.unix_socket.is_some();
    if program.targets.iter().all(is_unix) {
        return 1.0;
    }
    let shares = program.targets.iter().zip(connection_shares(program));
    shares.filter(|(target, _)| is_unix(target)).map(|(_, share)| share).sum::<f64>().min(1.0)
}

/// The part of the users that have their own network.
fn wired(program: &Program) -> f64 {
    let shares = program.sessions.iter().zip(program.session_shares());
    let shares = shares.filter(|(session, _)| session.network.is_some());
    // Sums of fractions are never exact.
    (shares.map(|(_, share)| share).sum::<f64>() + 1e-9).min(1.0)
}

/// Whether each user has a connection all the time. A user that pauses between HTTP requests may
/// have none, because servers close idle connections; one that disconnects has none for a while.
fn holds(program: &Program, forecast: &Forecast<'_>) -> bool {
    let waits = forecast.planned().any(|phase| phase.iterations.is_some());
    let holds = |session: &Session| {
        let any = |wanted: fn(&Statement) -> bool| session.all().any(wanted);
        if any(|step| matches!(step, Statement::Disconnect { .. })) {
            return false;
        }
        let asks = any(|step| matches!(step, Statement::Http(_)));
        let pauses = waits || any(|step| matches!(step, Statement::Think(_) | Statement::Stay(_)));
        connects(session) || (asks && program.connection.keep_alive && !pauses)
    };
    let mut shares = program.sessions.iter().zip(&forecast.shares);
    shares.all(|(session, share)| *share <= 0.0 || holds(session))
}

/// The destinations of connections, as a run resolves them: users are distributed over the targets
/// of their sessions by weight, and over the addresses of each target in turn.
fn routes(program: &Program) -> Vec<Route> {
    let mut routes: Vec<(Option<SocketAddr>, bool, f64)> = Vec::new();
    let shares = program.targets.iter().zip(connection_shares(program));
    for (target, share) in shares.filter(|(target, _)| target.unix_socket.is_none()) {
        let is_datagram = target.scheme == Scheme::Udp;
        let addresses = addresses(target, program);
        let each = share / addresses.len().max(1) as f64;
        let found = addresses.into_iter().map(Some);
        // The run reports a name that cannot be resolved when it starts.
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

/// The addresses for which there is a source of the same family.
fn addresses(target: &Target, program: &Program) -> Vec<SocketAddr> {
    let mut found = throng_engine::addresses(program, target).unwrap_or_default();
    found.retain(|address| has_source(program, *address));
    found
}

/// If the scenario names sources, addresses without a matching source are not used.
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
    use throng_scenario::{CompileOptions, compile};

    use super::*;

    fn of(head: &str, steps: &str) -> Needs {
        let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
        let text = format!("name: test\n{head}\nsessions:\n  user:\n    steps:\n{steps}");
        let source = Source::new("test.yaml", text);
        match compile(&source, &CompileOptions::of_process(Vec::new(), PathBuf::new())) {
            Ok((program, _)) => needs(&program),
            Err(diagnostics) => panic!("{diagnostics:#?}\n{}", source.text),
        }
    }

    const STAYING_RAW: &str = "- connect\n- stay: forever";
    const STAYING: &str = "- connect: /\n- stay: forever";

    #[test]
    fn connections_are_those_of_all_links() {
        let targets = "targets: {api: 'https://127.0.0.1:1', chat: 'ws://127.0.0.2:2'}";
        let steps = "- http: GET /\n- connect: /\n- stay: forever";
        let several = of(&format!("{targets}\nload: [{{users: 100, for: 1s}}]"), steps);
        assert_eq!((several.users, several.connections_per_user), (100, 2.0));
        let shares: Vec<f64> = several.routes.iter().map(|route| route.share).collect();
        assert_eq!(shares, [0.5, 0.5]);
        let one = of("target: ws://127.0.0.1:9\nload: [{users: 100, for: 1s}]", STAYING);
        assert_eq!(one.connections_per_user, 1.0);
    }

    #[test]
    fn users_are_limited_by_the_time_of_the_phases() {
        let users = |load: &str| {
            let needs = of(&format!("target: ws://127.0.0.1:9\nload: [{load}]"), STAYING);
            (needs.users, needs.opened_per_second)
        };
        assert_eq!(users("{users: 5000, for: 1s}"), (5000, Some(5000.0)));
        assert_eq!(users("{users: {to: 5000, rate: 100/s}, for: 10s}").0, 1000);
        assert_eq!(users("{users: {to: 5000, rate: 100/s}}, {for: 1m}"), (5000, Some(100.0)));
    }

    #[test]
    fn only_users_that_keep_a_connection_hold_one() {
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
    fn sessions_use_their_targets() {
        let text = "name: test\ntarget: udp://127.0.0.1:9\nsessions:\n  device:\n    weight: 3\n    \
                    steps:\n      - connect\n      - stay: forever\n  caller:\n    weight: 1\n    \
                    target: http://127.0.0.1:8\n    steps:\n      - http: GET /\n      \
                    - think: 1s\nload: [{users: 5, for: 1s}]\n";
        let source = Source::new("test.yaml", text);
        let (program, _) =
            compile(&source, &CompileOptions::of_process(Vec::new(), PathBuf::new())).unwrap();
        let needs = needs(&program);
        let routes: Vec<(f64, bool)> =
            needs.routes.iter().map(|route| (route.share, route.is_datagram)).collect();
        assert_eq!(routes, [(0.75, true), (0.25, false)]);
        assert_eq!((needs.datagrams, needs.fullest_share()), (0.75, 0.75));
        assert!(!needs.holds, "callers pause");
    }

    /// A session on a stream, with a load of one line.
    fn loaded(load: &str, steps: &str) -> Needs {
        of(&format!("target: tcp://127.0.0.1:9\nload: [{load}]"), steps)
    }

    #[test]
    fn arriving_users_stay_for_their_pauses() {
        let users = |load: &str, steps: &str| loaded(load, steps).users;
        let arriving = "{arrivals: 100/s, for: 10m}";
        assert_eq!(users(arriving, "- connect"), 100, "nobody knows");
        assert_eq!(users(arriving, "- connect\n- stay: 30s"), 3_000);
        assert_eq!(users(arriving, "- connect\n- think: 2s..4s\n- stay: 30s"), 3_200);
        assert_eq!(users(arriving, "- connect\n- think: 100ms"), 100, "one second at least");
        assert_eq!(users(arriving, STAYING_RAW), 60_000);
        let short = "{arrivals: 100/s, for: 10s}, {name: more, arrivals: 10/s, for: 10s}";
        assert_eq!(users(short, "- connect\n- stay: 30s"), 1_100);
        assert_eq!(
            users("{users: 7, for: 5s}, {name: a, arrivals: 2/s, for: 5s}", STAYING_RAW),
            17
        );
        let choice = "- connect\n- choose:\n    - {weight: 1, steps: [{stay: 9s}]}\n    \
                      - {weight: 3, steps: [{stay: 5s}]}";
        assert_eq!(users(arriving, choice), 500);
        let ramp = "{arrivals: {from: 0/s, to: 100/s}, for: 10s}";
        assert_eq!(users(ramp, "- connect\n- stay: 5s"), 375);
    }

    #[test]
    fn silently_dropped_connections_are_kept_for_two_minutes() {
        let vanished = |load: &str| {
            let needs = loaded(load, STAYING_RAW);
            (needs.vanished, needs.leaves_behind)
        };
        let rate = "{users: 100, for: TIME, churn: {rate: 10/s, how: WAY}}";
        let with = |time: &str, way: &str| rate.replace("TIME", time).replace("WAY", way);
        assert_eq!(vanished(&with("10m", "vanish")), (1_200, true));
        assert_eq!(vanished(&with("10s", "vanish")), (100, true));
        assert_eq!(vanished(&with("10m", "fin")), (0, false));
        assert_eq!(vanished(&with("10m", "half_close")), (0, true));
        assert_eq!(vanished(&with("10m", "[fin, reset, vanish]")), (400, true));
        // Connections of the previous phase are still kept.
        let two = format!("{}, {{for: 20s}}, {}", with("1m", "vanish"), with("20s", "vanish"));
        assert_eq!(vanished(&two), (800, true));
        // A share disconnects at once: at the latest before the phase ends.
        let share = |every: &str, time: &str| {
            let load = "{users: 100, for: TIME, churn: {share: 50%, every: EVERY, how: vanish}}";
            vanished(&load.replace("TIME", time).replace("EVERY", every)).0
        };
        assert_eq!(share("5m", "10m"), 50);
        assert_eq!(share("50s", "10m"), 150);
        assert_eq!(share("60s", "10m"), 100);
        assert_eq!(share("10s", "25s"), 100);
        assert_eq!(share("10s", "20s"), 50);
        assert_eq!(share("10m", "5m"), 0);
    }

    #[test]
    fn sessions_drop_connections_too() {
        let vanished = |load: &str, steps: &str| loaded(load, steps).vanished;
        let arriving = "{arrivals: 10/s, for: 10m}";
        assert_eq!(vanished(arriving, "- connect\n- disconnect: vanish"), 1_200);
        assert_eq!(vanished(arriving, "- connect\n- disconnect: reset"), 0);
        let choice = "- connect\n- choose:\n    - {weight: 1, steps: [disconnect: vanish]}\n    \
                      - {weight: 3, steps: [disconnect: reset]}";
        assert_eq!(vanished(arriving, choice), 300);
        let condition = "- connect\n- if: \"${user.id > 5}\"\n  then: [disconnect: vanish]";
        assert_eq!(vanished(arriving, condition), 0, "nobody knows who does");
        let repeated = "- repeat: 3\n  steps: [connect, disconnect: vanish]";
        assert_eq!(vanished(arriving, repeated), 1_200);
        let iterations = "{iterations: 5/s, users: 100, for: 10m}";
        assert_eq!(vanished(iterations, "- connect\n- disconnect: vanish"), 600);
        assert_eq!(vanished("{users: 9, for: 1m}", "- connect\n- disconnect: vanish"), 0);
    }

    #[test]
    fn ports_of_datagrams_have_no_time_wait() {
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
