//! One of several addresses of a target, or one of the instances behind them, is slower than the
//! others, or fails.

use throng_base::Said;
use throng_metrics::{Histogram, InstanceInterval, TargetInterval};

use crate::finding::{Code, Finding, Judgement, Level, percent, time};
use crate::record::Record;
use crate::stats;

/// Minimum attempts per address. Users back off from an unresponsive address, so it has fewer: if
/// most of its attempts fail, the lower minimum applies.
const ATTEMPTS_MIN: u64 = 200;
const DEAD_ATTEMPTS_MIN: u64 = 20;
/// Minimum ratio of response times or failures.
const RATIO_MIN: f64 = 1.5;
/// Minimum error share of the address.
const FAILED_MIN: f64 = 0.005;
/// Level of significance, over all addresses.
const CHANCE_MAX: f64 = 0.01;

/// A compared address or instance.
struct Server<'a> {
    name: String,
    target: u16,
    count: u64,
    failed: u64,
    latency: &'a Histogram,
    /// It took over the connections of a closed one, so they take longer to open.
    is_fuller: bool,
}

impl Server<'_> {
    fn of_address(row: &TargetInterval) -> Server<'_> {
        let (attempted, opened) = (row.connections_attempted, row.connections_opened);
        Server {
            name: row.address.map(|address| address.to_string()).unwrap_or_default(),
            target: row.target,
            count: row.count,
            failed: row.failed(),
            latency: &row.latency,
            is_fuller: attempted > 0 && opened > attempted,
        }
    }

    fn of_instance(row: &InstanceInterval) -> Server<'_> {
        let (name, is_fuller) = (row.name.clone(), false);
        let (target, count, failed) = (row.target, row.count, row.failed);
        Server { name, target, count, failed, latency: &row.latency, is_fuller }
    }

    fn is_enough(&self) -> bool {
        match self.failed * 2 > self.count {
            true => self.count >= DEAD_ATTEMPTS_MIN,
            false => self.count >= ATTEMPTS_MIN,
        }
    }

    fn counts(&self) -> (u64, u64) {
        (self.failed, self.count)
    }

    fn share(&self) -> f64 {
        self.failed as f64 / self.count.max(1) as f64
    }

    fn middle(&self) -> f64 {
        self.latency.value_at(0.5) as f64
    }
}

pub(super) fn judge(record: &Record) -> Judgement {
    let addresses = record.whole.parts.targets.iter().map(Server::of_address).collect();
    let instances = record.whole.parts.instances.iter().map(Server::of_instance).collect();
    let worst = [(addresses, resolve as Next), (instances, ask_for)].into_iter().flat_map(
        |(servers, next): (Vec<Server<'_>>, Next)| {
            let mut services: Vec<u16> =
                servers.iter().map(|server| record.service(server.target)).collect();
            services.sort_unstable();
            services.dedup();
            let worst = services.into_iter().filter_map(|service| {
                let own = |server: &&Server<'_>| record.service(server.target) == service;
                let own: Vec<&Server<'_>> =
                    servers.iter().filter(own).filter(|server| server.is_enough()).collect();
                worst(record, &own).map(|(server, found)| finish(record, server, found, next))
            });
            worst.collect::<Vec<_>>()
        },
    );
    Ok(worst.collect())
}

fn worst<'a>(record: &Record, servers: &[&'a Server<'a>]) -> Option<(&'a Server<'a>, Finding)> {
    if servers.len() < 2 {
        return None;
    }
    let others = |one: &Server<'_>| -> Vec<&Server<'_>> {
        servers
            .iter()
            .copied()
            .filter(|it| it.name != one.name || it.target != one.target)
            .collect()
    };
    let sum = |servers: &[&Server<'_>]| {
        servers.iter().fold((0, 0), |sum, it| (sum.0 + it.failed, sum.1 + it.count))
    };
    let chances: Vec<f64> = servers
        .iter()
        .map(|server| {
            let z = stats::shares_apart(server.counts(), sum(&others(server)));
            if z > 0.0 { stats::chance_beyond(z) } else { 1.0 }
        })
        .collect();
    let significant = stats::holm(&chances, CHANCE_MAX);
    let fails = servers.iter().zip(significant).find(|(server, is_found)| {
        let worst = others(server).iter().map(|it| it.share()).fold(0.0, f64::max);
        let share = server.share();
        *is_found && share >= FAILED_MIN && share >= worst * RATIO_MIN
    });
    if let Some((server, _)) = fails {
        return Some((server, failing(record, server, sum(&others(server)))));
    }
    if servers.iter().any(|server| server.is_fuller) {
        return None;
    }
    let slowest = |of: &Server<'_>| others(of).iter().map(|it| it.middle()).fold(0.0, f64::max);
    let slow = servers.iter().find(|server| {
        let slowest = slowest(server);
        slowest > 0.0 && server.middle() >= slowest * RATIO_MIN
    })?;
    Some((slow, slower(record, slow, slowest(slow))))
}

fn failing(record: &Record, server: &Server<'_>, others: (u64, u64)) -> Finding {
    let (name, share) = (server.name.clone(), percent(server.share()));
    let theirs = percent(others.0 as f64 / others.1.max(1) as f64);
    let text = say!(
        "{share} of the attempts at {} fail, compared with {theirs} at the others",
        name.clone()
    );
    Finding::new(Code::OneBadAddress, Level::Likely, text, record.measured_span())
        .on(&["failed"])
        .figure(say!("failed at {}: {} of {}", name, (server.failed), (server.count)))
}

fn slower(record: &Record, server: &Server<'_>, others: f64) -> Finding {
    let (name, own) = (server.name.clone(), server.middle());
    let text = say!(
        "the median response time of {} is {}; the others have {} or less",
        name.clone(),
        time(own),
        time(others)
    );
    let figure =
        say!("median of {}: {}; highest median of the others: {}", name, time(own), time(others));
    Finding::new(Code::OneBadAddress, Level::Likely, text, record.measured_span())
        .on(&["p50"])
        .figure(figure)
}

/// What to do next about a server of a target.
type Next = fn(&Server<'_>, &str) -> Said;

fn resolve(_: &Server<'_>, target: &str) -> Said {
    say!("test this address alone with `resolve` (docs/connections.md): {}", target.to_string())
}

fn ask_for(server: &Server<'_>, _: &str) -> Said {
    say!("test {} alone, without the load balancer", server.name.clone())
}

fn finish(record: &Record, server: &Server<'_>, found: Finding, next: Next) -> Finding {
    let target = record.facts.targets.get(usize::from(server.target));
    found
        .figure(say!("attempts at {}: {}", server.name.clone(), (server.count)))
        .not(say!("chance"), say!("all addresses with enough attempts are compared"))
        .then(next(server, target.map_or("", String::as_str)))
}
