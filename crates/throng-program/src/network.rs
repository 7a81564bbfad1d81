//! The simulated network between the users of a session and their targets.

use std::fmt;
use std::time::Duration;

use throng_base::units::{write_bandwidth, write_duration};

/// Its effects on packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UserNetwork {
    /// Added to a round trip, half of it in each direction; drawn once per user, uniformly from
    /// this range.
    pub delay: (Duration, Duration),
    /// The share of packets that it drops in each direction, 0 to 1.
    pub loss: f64,
    /// Bits per second of a user in each direction; `None` is unlimited.
    pub rate: Option<u64>,
}

impl fmt::Display for UserNetwork {
    /// In scenario syntax: `delay 50ms..200ms, loss 0.5%, rate 1Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let (least, most) = self.delay;
        if least == most && !most.is_zero() {
            parts.push(format!("delay {}", write_duration(most)));
        } else if !most.is_zero() {
            parts.push(format!("delay {}..{}", write_duration(least), write_duration(most)));
        }
        if self.loss > 0.0 {
            // A share is written with at most twelve digits.
            let percent = (self.loss * 1e14).round() / 1e12;
            parts.push(format!("loss {percent}%"));
        }
        parts.extend(self.rate.map(|rate| format!("rate {}", write_bandwidth(rate))));
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_printed_in_scenario_syntax() {
        let ms = Duration::from_millis;
        let of = |delay, loss, rate| UserNetwork { delay, loss, rate }.to_string();
        let all = of((ms(50), ms(200)), 0.005, Some(1_000_000));
        assert_eq!(all, "delay 50ms..200ms, loss 0.5%, rate 1Mbit/s");
        assert_eq!(of((ms(50), ms(50)), 0.0, None), "delay 50ms");
        assert_eq!(of((ms(0), ms(0)), 0.07, None), "loss 7%");
    }
}
