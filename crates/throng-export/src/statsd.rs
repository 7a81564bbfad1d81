//! StatsD over UDP: counters, gauges, and for times their count and percentiles in milliseconds.
//! Labels are parts of the name, because the original StatsD has no tags.

use std::io;
use std::net::UdpSocket;

use throng_base::Said;

use crate::metrics::{Metric, Value, figures, metrics};
use crate::{Export, Second};

/// A size that any network transmits without fragmentation.
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
            // A closed port is reported by a later call. Lost datagrams are not sent again.
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
            let ms = |(word, ns): (&str, u64)| format!("{name}.{word}:{}|g", ns as f64 / 1e6);
            let count = format!("{name}.count:{}|c", times.count());
            figures(times).map(ms).chain([count]).collect()
        }
    }
}

/// A part of a name: characters with a meaning in StatsD become `_`.
fn part(text: &str) -> String {
    let keep = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_characters_with_a_meaning_in_statsd() {
        assert_eq!(part("GET /a:b|c@d#e\n.é"), "GET__a_b_c_d_e__é");
    }
}
