//! All source ports of this host were in use (EADDRNOTAVAIL, EADDRINUSE).

use throng_metrics::Cause;

use crate::finding::{Code, Finding, Judgement, Level, count};
use crate::record::Record;

pub(crate) fn judge(record: &Record) -> Judgement {
    let Some((failed, when)) = record.failures(Cause::PortsExhausted) else {
        return Ok(Vec::new());
    };
    let text = say!("{} connects found no free source port on this host", count(failed as f64));
    let mut found = Finding::new(Code::PortsExhausted, Level::Certain, text, when)
        .on(&["connections_open"])
        .figure(say!("failures with the cause `ports-exhausted`: {}", count(failed as f64)));
    let open = record.points().iter().map(|point| point.open).fold(0.0, f64::max);
    found = found.figure(say!("maximum open connections: {}", count(open)));
    if let Some((low, high)) = record.facts.port_range {
        let ports = f64::from(high) - f64::from(low) + 1.0;
        let range = format!("{low}-{high}");
        found = found.figure(say!("ports of this host: {} ({range})", count(ports)));
    }
    let found = found.not(
        say!("the target has run out of ports"),
        say!("the error came from this host's connect(2), before any packet was sent"),
    );
    let next = say!(
        "`throng doctor` shows how to get more ports and addresses; or keep connections alive"
    );
    Ok(vec![found.then(next)])
}
