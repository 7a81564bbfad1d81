//! Users reuse connections for many iterations, and handshakes are expensive: if each iteration
//! represents another visitor, real visitors would cost the target much more.

use throng_metrics::Stage;

use crate::finding::{Code, Finding, Judgement, Level, rate, time};
use crate::record::Record;

/// Iterations on each connection.
const ITERATIONS_MIN: f64 = 50.0;
/// Ratio of the time of a handshake to that of all responses of an iteration.
const DEAR_MIN: f64 = 2.0;
/// Iterations and handshakes.
const ITERATIONS_ALL_MIN: u64 = 500;
const HANDSHAKES_MIN: u64 = 5;

pub(super) fn judge(record: &Record) -> Judgement {
    let iterations = record.whole.population.iterations_finished;
    let Some(tls) = record.stage_latency(Stage::Tls).filter(|it| it.count() >= HANDSHAKES_MIN)
    else {
        return Ok(Vec::new());
    };
    let opened = record.whole.connections.counts.opened.max(1);
    let each = iterations as f64 / opened as f64;
    let total = record.whole.sum(|step| record.kind(step.0).is_asked());
    let responses = total.latency.mean() * total.latency.count() as f64 / iterations.max(1) as f64;
    let dear = tls.value_at(0.5) as f64 / responses.max(1.0);
    let is_long = record.is_long_lived();
    if iterations < ITERATIONS_ALL_MIN || each < ITERATIONS_MIN || dear < DEAR_MIN || is_long {
        return Ok(Vec::new());
    }
    let when = record.measured_span();
    let per_s = iterations as f64 / (when.to_s - when.from_s).max(1.0);
    let text = say!(
        "{:.0} iterations share a connection; if each were a new visitor, the handshake rate \
         would be {}",
        each,
        rate(per_s)
    );
    let found = Finding::new(Code::TlsHidden, Level::Hint, text, when)
        .on(&["stage:tls"])
        .figure(say!(
            "TLS handshake: {}; responses of an iteration: {}",
            { time(tls.value_at(0.5) as f64) },
            time(responses)
        ))
        .then(say!("if each iteration is a new visitor, close connections: see `keep_alive`"));
    Ok(vec![found])
}
