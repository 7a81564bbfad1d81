//! Think times: gaps without a request in progress.

use std::time::Duration;

use crate::model::{Item, LeftOut, Recording, Think};

/// A shorter gap is browser processing.
const GAP_MIN_MS: f64 = 500.0;
/// In a longer one, the user was away.
const GAP_MAX_MS: f64 = 60_000.0;

/// Inserts the pauses between the items of a recording, which are sorted by start.
pub(super) fn insert(recording: &mut Recording) {
    let mut shortened = 0;
    for session in &mut recording.sessions {
        let mut busy_until = None::<f64>;
        let mut steps = Vec::with_capacity(session.steps.len());
        for item in std::mem::take(&mut session.steps) {
            let time = match &item {
                Item::Http(exchange) => exchange.begin_ms.map(|begin| (begin, exchange.took_ms)),
                Item::Socket(socket) => socket.begin_ms.map(|begin| (begin, socket.took_ms)),
                _ => None,
            };
            if let Some((begin, took)) = time {
                let gap = busy_until.map_or(0.0, |until| begin - until);
                if gap >= GAP_MIN_MS {
                    shortened += usize::from(gap > GAP_MAX_MS);
                    steps.push(Item::Think(Think::Fixed(rounded(gap.min(GAP_MAX_MS)))));
                }
                busy_until = Some(busy_until.unwrap_or(begin).max(begin + took));
            }
            steps.push(item);
        }
        session.steps = steps;
    }
    if shortened > 0 {
        let what = say!("pauses longer than a minute, shortened to one minute");
        recording.left_out.push(LeftOut::of_all(shortened, what));
    }
}

/// To tenths of a second.
fn rounded(ms: f64) -> Duration {
    Duration::from_millis((ms / 100.0).round() as u64 * 100)
}
