//! StatsD over UDP: counters, gauges, and of times their count and percentiles in milliseconds.
//! Labels are parts of the name, as the first StatsD has no tags.

use std::io;
use std::net::UdpSocket;

use throng_base::Said;
use throng_metrics::Percentile;

use crate::metrics::{Metric, Value, metrics};
use crate::{Export, Second};

/// So much goes through any network in one piece.
const DATAGRAM_BYTES_MAX: usize = 1400;

pub(crate) struct Statsd {
    socket: UdpSocket,
}

impl Statsd {
    pub(crate) fn new(place: &str) -> io::Result<Statsd> {
        use std::net::ToSocketAddrs as _;
        let address = place.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let own = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(own)?;
        socket.connect(address)?;
        Ok(Statsd { socket })
    }
}

impl Export for Statsd {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        let mut datagram = String::new();
        let mut result = Ok(());
        let mut send = |datagram: &mut String| {
            // A port that is closed is told by a later call. What is lost on the way is lost.
            if let Err(error) = self.socket.send(datagram.as_bytes()) {
                result = Err(Said::of_error(&error));
            }
            datagram.clear();
        };
        for metric in metrics(second) {
            for line in lines(&metric) {
                if datagram.len() + line.len() + 1 > DATAGRAM_BYTES_MAX && !datagram.is_empty() {
                    send(&mut datagram);
                }
                if !datagram.is_empty() {
                    datagram.push('\n');
                }
                datagram.push_str(&line);
            }
        }
        if !datagram.is_empty() {
            send(&mut datagram);
        }
        result
    }
}

fn lines(metric: &Metric<'_>) -> Vec<String> {
    let name = metric.name.replacen('_', ".", 1);
    let mut name = name.trim_end_matches("_total").trim_end_matches("_seconds").to_string();
    for (_, value) in &metric.labels {
        name.push('.');
        name.push_str(&part(value));
    }
    match metric.value {
        Value::Counter(0.0) => Vec::new(),
        Value::Counter(value) => vec![format!("{name}:{value}|c")],
        Value::Gauge(value) => vec![format!("{name}:{value}|g")],
        Value::Times(times) => {
            let quantiles =
                Percentile::MAIN.iter().map(|it| (it.plain(), times.value_at(it.quantile())));
            let told = quantiles.into_iter().chain([("max", times.max())]);
            let ms = |(word, ns): (&str, u64)| format!("{name}.{word}:{}|g", ns as f64 / 1e6);
            let count = format!("{name}.count:{}|c", times.count());
            told.map(ms).chain([count]).collect()
        }
    }
}

/// Of a name: what would end it or begin another part becomes `_`.
fn part(text: &str) -> String {
    let keep = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_nothing_that_statsd_would_read() {
        assert_eq!(part("GET /a:b|c@d#e\n.é"), "GET__a_b_c_d_e__é");
    }
}
