//! The distributions of response delays: parsing and sampling.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use throng_base::units::{self, UnitError, write_duration};
use throng_base::{Random, Said, Time};

use crate::arrival::Arrival;

/// When a response is due, relative to the arrival of the request's last byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Latency {
    /// Immediately.
    #[default]
    None,
    /// `20ms`
    Fixed(Duration),
    /// `10ms..50ms`, uniformly distributed.
    Uniform(Duration, Duration),
    /// `exponential 20ms`, with this mean.
    Exponential(Duration),
    /// `lognormal 5ms 10ms`, with this mean and this standard deviation.
    Lognormal { mean: Duration, deviation: Duration },
    /// `stall 500ms every 5s`: during the first `stall` of each `every`, counted from the start of
    /// the server, no connection gets a response; otherwise, responses are immediate.
    Stall { stall: Duration, every: Duration },
}

const HELP: Said = say!(
    "write a latency as `none`, `20ms`, `10ms..50ms`, `exponential 20ms`, `lognormal 5ms 10ms` or \
         `stall 500ms every 5s`"
);

impl Latency {
    /// When the response to a request is due, at the earliest when the request is read.
    pub(crate) fn due(self, arrival: Arrival, random: &mut Random) -> Time {
        let delay = Duration::from_nanos(self.draw(random) as u64);
        self.release((arrival.at + delay).max(arrival.read))
    }

    /// A random delay in nanoseconds; zero for stalls.
    pub(crate) fn draw(self, random: &mut Random) -> f64 {
        match self {
            Latency::None | Latency::Stall { .. } => 0.0,
            Latency::Fixed(delay) => nanos(delay),
            Latency::Uniform(low, high) => random.uniform(nanos(low), nanos(high)),
            Latency::Exponential(mean) => random.exponential(nanos(mean)),
            Latency::Lognormal { mean, deviation } => {
                let variance = (nanos(deviation) / nanos(mean)).powi(2).ln_1p();
                nanos(mean) * (variance.sqrt() * normal(random) - variance / 2.0).exp()
            }
        }
    }

    /// The mean of the delays, in nanoseconds.
    pub(crate) fn mean_ns(self) -> f64 {
        match self {
            Latency::None | Latency::Stall { .. } => 0.0,
            Latency::Fixed(mean) | Latency::Exponential(mean) | Latency::Lognormal { mean, .. } => {
                nanos(mean)
            }
            Latency::Uniform(low, high) => f64::midpoint(nanos(low), nanos(high)),
        }
    }

    /// The first time from `wanted` on at which the server is not stalled.
    pub(crate) fn release(self, wanted: Time) -> Time {
        let Latency::Stall { stall, every } = self else { return wanted };
        let (stall, every) = (stall.as_nanos() as u64, every.as_nanos() as u64);
        let phase = wanted.0.checked_rem(every).unwrap_or(stall);
        if phase < stall { Time(wanted.0 + (stall - phase)) } else { wanted }
    }

    /// The reason if the latency is impossible.
    pub(crate) fn fault(self) -> Option<Said> {
        match self {
            Latency::Uniform(low, high) if low > high => {
                Some(say!("the start of the range is greater than its end"))
            }
            Latency::Lognormal { mean, .. } if mean.is_zero() => {
                Some(say!("the mean must be more than 0"))
            }
            Latency::Stall { stall, every } if stall >= every => {
                Some(say!("the stall must be shorter than its interval"))
            }
            _ => None,
        }
    }
}

fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

/// A random number of the standard normal distribution (Box and Muller, 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

impl FromStr for Latency {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Latency, UnitError> {
        let wrong = |message: Said| UnitError { message, help: HELP };
        let duration = |text: &str| {
            units::parse_duration(text).map_err(|e| wrong(say!("`{text}`: {}", e.message)))
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let latency = match words[..] {
            ["none" | "0"] => Latency::None,
            ["exponential", mean] => Latency::Exponential(duration(mean)?),
            ["lognormal", mean, deviation] => {
                Latency::Lognormal { mean: duration(mean)?, deviation: duration(deviation)? }
            }
            ["stall", stall, "every", every] => {
                Latency::Stall { stall: duration(stall)?, every: duration(every)? }
            }
            [range] => match range.split_once("..") {
                Some((low, high)) => Latency::Uniform(duration(low)?, duration(high)?),
                None => Latency::Fixed(duration(range)?),
            },
            _ => return Err(wrong(say!("`{text}` is not a latency"))),
        };
        match latency.fault() {
            Some(fault) => Err(wrong(say!("`{text}`: {fault}"))),
            None => Ok(latency),
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |duration: &Duration| write_duration(*duration);
        match self {
            Latency::None => f.write_str("none"),
            Latency::Fixed(delay) => f.write_str(&text(delay)),
            Latency::Uniform(low, high) => write!(f, "{}..{}", text(low), text(high)),
            Latency::Exponential(mean) => write!(f, "exponential {}", text(mean)),
            Latency::Lognormal { mean, deviation } => {
                write!(f, "lognormal {} {}", text(mean), text(deviation))
            }
            Latency::Stall { stall, every } => {
                write!(f, "stall {} every {}", text(stall), text(every))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_latencies_are_read_back() {
        for text in [
            "none",
            "20ms",
            "10ms..50ms",
            "exponential 20ms",
            "lognormal 5ms 10ms",
            "stall 500ms every 5s",
        ] {
            assert_eq!(text.parse::<Latency>().unwrap().to_string(), text);
        }
        assert_eq!("1h30m".parse(), Ok(Latency::Fixed(Duration::from_secs(5400))));
    }

    #[test]
    fn errors_are_reported() {
        for (text, told) in [
            ("", "is not a latency"),
            ("20", "the unit of the duration is missing"),
            ("50ms..10ms", "the start of the range is greater than its end"),
            ("exponential", "the number is missing"),
            ("lognormal 5ms", "is not a latency"),
            ("lognormal 0s 1ms", "the mean must be more than 0"),
            ("stall 5s every 5s", "the stall must be shorter than its interval"),
            ("stall 5s every 0s", "the stall must be shorter than its interval"),
            ("stall 5s each 10s", "is not a latency"),
        ] {
            let error = text.parse::<Latency>().unwrap_err().message.english();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn each_distribution_has_its_mean() {
        let mut random = Random::new(1);
        let at = Time::from_secs(3);
        let arrival = Arrival { at, read: at };
        let mut mean = |law: Latency| {
            let n = 100_000;
            let sum: u64 =
                (0..n).map(|_| (law.due(arrival, &mut random) - at).as_nanos() as u64).sum();
            sum as f64 / f64::from(n) / 1e6
        };
        let ms = Duration::from_millis;
        assert_eq!(mean(Latency::None), 0.0);
        assert_eq!(mean(Latency::Fixed(ms(7))), 7.0);
        assert!((mean(Latency::Uniform(ms(10), ms(50))) - 30.0).abs() < 0.2);
        assert!((mean(Latency::Exponential(ms(20))) - 20.0).abs() < 0.3);
        let lognormal = Latency::Lognormal { mean: ms(20), deviation: ms(20) };
        assert!((mean(lognormal) - 20.0).abs() < 0.3);
    }

    #[test]
    fn a_stall_releases_at_its_end() {
        let law = Latency::Stall { stall: Duration::from_secs(1), every: Duration::from_secs(5) };
        let second = |s: f64| Time((s * 1e9) as u64);
        assert_eq!(law.release(second(0.0)), second(1.0));
        assert_eq!(law.release(second(5.25)), second(6.0));
        assert_eq!(law.release(second(6.0)), second(6.0));
        assert_eq!(law.release(second(9.5)), second(9.5));
    }
}
