//! The simulated network between the users of a session and their targets.

use std::time::Duration;

use throng_base::{Said, units};
use throng_program::{Link, Session, Target, UserNetwork};

use crate::ast;
use crate::read::Context;
use crate::syntax::{Key, Kind, Node};

/// No network on Earth has a longer round-trip time; most handshakes would time out.
const DELAY_MAX: Duration = Duration::from_secs(10);

const HELP: Said = say!("write `network: {{delay: 50ms..200ms, loss: 0.5%, rate: 1Mbit/s}}`");

/// `network: {delay: 50ms..200ms, loss: 0.5%, rate: 1Mbit/s}`
pub(crate) fn read_network(cx: &mut Context<'_>, node: &Node) -> Option<UserNetwork> {
    let fields = ast::Network::read(cx, node)?;
    if matches!(&node.kind, Kind::Map(entries) if entries.is_empty()) {
        return cx.bad_value(node, say!("`network` has no keys"), HELP);
    }
    let delay = fields.delay.node().map(|node| read_delay(cx, node));
    let loss = fields.loss.node().map(|node| read_loss(cx, node));
    let bandwidth = |node| cx.unit(node, say!("a bandwidth"), units::parse_bandwidth);
    let rate = fields.rate.node().map(bandwidth);
    Some(UserNetwork {
        delay: delay.unwrap_or(Some((Duration::ZERO, Duration::ZERO)))?,
        loss: loss.unwrap_or(Some(0.0))?,
        rate: match rate {
            Some(rate) => Some(rate? as u64),
            None => None,
        },
    })
}

fn read_delay(cx: &mut Context<'_>, node: &Node) -> Option<(Duration, Duration)> {
    let delay = cx.duration_range(node)?;
    match delay.1 <= DELAY_MAX {
        true => Some(delay),
        false => {
            let longest = units::write_duration(DELAY_MAX);
            cx.bad_value(node, say!("the delay is longer than {longest}"), HELP)
        }
    }
}

fn read_loss(cx: &mut Context<'_>, node: &Node) -> Option<f64> {
    let loss = cx.share(node)?;
    let help = say!("write a loss of less than 100%");
    match loss < 1.0 {
        true => Some(loss),
        false => cx.bad_value(node, say!("the network loses all packets"), help),
    }
}

/// A Unix socket is local, so no network is simulated for it.
pub(crate) fn check_targets(
    cx: &mut Context<'_>,
    session: &Session,
    key: Option<&Key>,
    targets: &[Target],
) {
    let is_unix = |target: &Target| target.unix_socket.is_some();
    let of_number = |number: &u16| targets.get(usize::from(*number)).is_some_and(is_unix);
    let reaches = |link: &Link| match link.targets.is_empty() {
        true => targets.iter().any(is_unix),
        false => link.targets.iter().any(of_number),
    };
    if let Some(key) = key
        && session.links.iter().any(reaches)
    {
        let message = say!("connections to a Unix socket have no network");
        let help = say!("remove `network`, or give the target an address");
        cx.report("conflicting-keys", key.place, message, say!("has no effect"), help);
    }
}
