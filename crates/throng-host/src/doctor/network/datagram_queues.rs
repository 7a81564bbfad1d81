//! `net.core.rmem_default` and `rmem_max`: the queue limit of one UDP socket.

use throng_base::units::format_count;

use crate::doctor::{Finding, Fix, Host, Needs, Severity, in_bytes, rounded_up};
use crate::network::datagrams_dropped;

const RULE: &str = "udp-queues";
const DEFAULT_KEY: &str = "net.core.rmem_default";
const MAX_KEY: &str = "net.core.rmem_max";
/// The queue space of a datagram with a few bytes: the kernel includes its own overhead
/// (`SKB_TRUESIZE`).
const DATAGRAM_BYTES: u64 = 768;
/// The same for the largest datagram.
const LARGEST_BYTES: u64 = 128 << 10;
/// A pause of a service, such as for garbage collection, that is not unusual.
const PAUSE_SECONDS: f64 = 0.1;

pub(crate) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    if !needs.has_datagrams() {
        return None;
    }
    let serves = needs.is_target() || needs.is_local();
    let detail = match serves {
        true => {
            say!(
                "all users of a service send to one or a few sockets; when the queue of a socket \
                 is full, datagrams are dropped silently; the service must request a longer \
                 queue than the default with SO_RCVBUF"
            )
        }
        false => {
            say!(
                "each user has its own socket with a queue of the default size; when the queue \
                 is full, datagrams are dropped silently"
            )
        }
    };
    let mut finding = Finding::new(RULE, say!("UDP socket queue"), detail);
    let (Some(usual), Some(most)) = (host.number(DEFAULT_KEY), host.number(MAX_KEY)) else {
        return Some(finding);
    };
    let dropped = datagrams_dropped(&host.root).unwrap_or(0);
    finding.value = match dropped {
        0 => say!("{} by default, up to {} on request", in_bytes(usual), in_bytes(most)),
        _ => say!(
            "{} by default, up to {} on request ({} datagrams dropped since boot)",
            in_bytes(usual),
            in_bytes(most),
            format_count(dropped)
        ),
    };
    let burst = needs.opened_per_second.filter(|_| serves).map_or(0, |rate| {
        let datagrams = (rate * needs.datagrams * PAUSE_SECONDS) as u64;
        datagrams.min(needs.of_datagrams()).saturating_mul(DATAGRAM_BYTES)
    });
    if usual < LARGEST_BYTES {
        finding.fixes.push(Fix::setting(DEFAULT_KEY, LARGEST_BYTES));
    }
    // The kernel doubles the requested size (socket(7)).
    let most = most.saturating_mul(2).max(usual);
    if most < burst {
        finding.fixes.push(Fix::setting(MAX_KEY, rounded_up(burst.div_ceil(2))));
    }
    let is_fit = finding.fixes.is_empty();
    if !is_fit {
        finding.needed = say!("{}", in_bytes(burst.max(LARGEST_BYTES)));
    }
    Some(finding.judge(is_fit, Severity::Warn))
}
