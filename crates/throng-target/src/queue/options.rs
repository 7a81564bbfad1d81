//! The options of a server's capacity, and their notation.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use throng_base::Said;
use throng_base::flags::{any_count, count, unit};
use throng_base::units::{self, UnitError};

use super::bucket::RateLimit;
use super::machine::{Shape, Usl};
use super::speed::{SlowSpells, Speed, WarmUp};
use crate::latency::Latency;

/// The capacity of a server; unlimited without a service time and a rate limit.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Capacity (http)")]
pub struct CapacityOptions {
    /// Service time of a request, which occupies one server of the queue: `exponential 1ms`
    #[arg(long, value_name = "LATENCY", value_parser = unit::<Latency>)]
    pub service: Option<Latency>,
    /// Maximum number of requests served at the same time; further requests wait in order of
    /// arrival. The default is 1, or unlimited with --usl
    #[arg(long, value_name = "N", value_parser = servers)]
    pub servers: Option<u32>,
    /// Respond with 503 to a request if this many are already waiting; with 0, no request waits
    #[arg(long, value_name = "N", value_parser = any_count)]
    pub queue_max: Option<u64>,
    /// Slow down concurrent requests according to the universal scalability law: `0.02,0.0005`
    #[arg(long, value_name = "CONTENTION,CROSSTALK", value_parser = unit::<Usl>)]
    pub usl: Option<Usl>,
    /// Respond with 429 to requests above this rate. A token bucket allows bursts of 100 ms worth
    /// of requests, or of the given number: `500/s:20`
    #[arg(long, value_name = "RATE[:BURST]", value_parser = unit::<RateLimit>)]
    pub rate_limit: Option<RateLimit>,
    /// Serve requests even if their client has disconnected or reset the stream; by default, such
    /// requests are removed from the queue
    #[arg(long)]
    pub work_on: bool,
    /// Duration of the server's warm-up, and its speed during that time: `60s:60%`
    #[arg(long, value_name = "TIME:SPEED", value_parser = unit::<WarmUp>)]
    pub warm_up: Option<WarmUp>,
    /// In each interval, run slower by this share for the given time: `45s:5s:15%`
    #[arg(
        long,
        value_name = "EVERY:TIME:SLOWER",
        value_parser = unit::<SlowSpells>
    )]
    pub slow_spells: Option<SlowSpells>,
}

fn servers(text: &str) -> Result<u32, String> {
    count(text).map(|servers| u32::try_from(servers).unwrap_or(u32::MAX))
}

/// The maximum number of servers.
const SERVERS_MAX: u32 = 100_000;
/// The maximum length of a queue.
const QUEUE_MAX: u64 = 1_000_000;
/// The tokens of the largest bucket for which the law is exact.
const BURST_MAX: u64 = 20_000;

impl CapacityOptions {
    /// True if any limit applies to requests.
    pub(crate) fn any(&self) -> bool {
        *self != CapacityOptions::default()
    }

    /// The number of servers; `None`: unlimited.
    pub(crate) fn servers(&self) -> Option<u32> {
        self.servers.or(if self.usl.is_some() { None } else { Some(1) })
    }

    pub(crate) fn speed(&self) -> Speed {
        Speed { warm_up: self.warm_up, spells: self.slow_spells }
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape {
            servers: self.servers(),
            waiting_max: self.queue_max,
            usl: self.usl,
            speed: self.speed(),
        }
    }

    /// Describes values that are not valid.
    pub(crate) fn fault(&self, latency: Latency) -> Option<Said> {
        let without_service = [
            (self.servers.is_some(), "--servers"),
            (self.queue_max.is_some(), "--queue-max"),
            (self.usl.is_some(), "--usl"),
            (self.work_on, "--work-on"),
            (self.warm_up.is_some(), "--warm-up"),
            (self.slow_spells.is_some(), "--slow-spells"),
        ];
        let lone = without_service.iter().find(|(given, _)| *given && self.service.is_none());
        if let Some((_, option)) = lone {
            return Some(say!("`{option}` requires `--service`, the time that a request takes"));
        }
        match self.service {
            Some(Latency::None | Latency::Stall { .. }) => {
                return Some(say!(
                    "a service time must be a duration, a range, `exponential` or `lognormal`; \
                     `--slow-spells` slows the server from time to time"
                ));
            }
            Some(service) if service.mean_ns() <= 0.0 => {
                return Some(say!("the service time must be more than 0"));
            }
            Some(service) => {
                if let Some(fault) = service.fault() {
                    return Some(fault);
                }
            }
            None => {}
        }
        let mixed = self.any() && latency != Latency::None;
        if mixed {
            return Some(say!(
                "`--latency` cannot be combined with `--service` or `--rate-limit`; remove it"
            ));
        }
        self.number_fault()
    }

    fn number_fault(&self) -> Option<Said> {
        let whole = |time: Duration| !time.is_zero();
        match self {
            _ if self.servers.is_some_and(|n| !(1..=SERVERS_MAX).contains(&n)) => {
                Some(say!("a queue must have 1 to {SERVERS_MAX} servers"))
            }
            _ if self.queue_max.is_some_and(|n| n > QUEUE_MAX) => {
                Some(say!("`--queue-max` must be at most {QUEUE_MAX}"))
            }
            _ if self.queue_max.is_some() && self.servers().is_none() => Some(say!(
                "with `--usl`, no request waits; to limit waiting requests with `--queue-max`, \
                 first limit concurrent requests with `--servers`"
            )),
            CapacityOptions { usl: Some(usl), .. }
                if !(0.0..=1.0).contains(&usl.contention)
                    || !(0.0..=1.0).contains(&usl.crosstalk) =>
            {
                Some(say!("contention and crosstalk must be between 0 and 1"))
            }
            CapacityOptions { rate_limit: Some(limit), .. }
                if !(limit.per_s > 0.0 && (1..=BURST_MAX).contains(&limit.burst)) =>
            {
                Some(say!(
                    "a rate limit must be more than 0, and its burst size between 1 and \
                     {BURST_MAX}"
                ))
            }
            CapacityOptions { warm_up: Some(warm_up), .. }
                if !(warm_up.speed > 0.0 && warm_up.speed <= 1.0) =>
            {
                Some(say!("the speed of a warm-up must be more than 0% and at most 100%"))
            }
            CapacityOptions { slow_spells: Some(spells), .. }
                if !whole(spells.time) || spells.time >= spells.every =>
            {
                Some(say!("a slow spell must be shorter than the interval at which it repeats"))
            }
            CapacityOptions { slow_spells: Some(spells), .. }
                if !(0.0..1.0).contains(&spells.slower) =>
            {
                Some(say!("the slowdown in a slow spell must be at least 0% and less than 100%"))
            }
            _ => None,
        }
    }
}

const USL_HELP: Said = say!("write CONTENTION,CROSSTALK, two numbers from 0 to 1: `0.02,0.0005`");
const RATE_HELP: Said = say!("write a rate, or a rate and a burst size: `500/s`, `500/s:20`");
const WARM_UP_HELP: Said = say!("write a duration and a speed: `60s:60%`");
const SPELLS_HELP: Said = say!("write an interval, a duration and a slowdown: `45s:5s:15%`");

fn wrong<T>(text: &str, help: Said) -> Result<T, UnitError> {
    Err(UnitError { message: say!("`{text}` is not a valid value"), help })
}

impl FromStr for Usl {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Usl, UnitError> {
        let numbers = text.split_once(',').and_then(|(contention, crosstalk)| {
            let number = |text: &str| text.trim().parse().ok();
            Some(Usl { contention: number(contention)?, crosstalk: number(crosstalk)? })
        });
        numbers.map_or_else(|| wrong(text, USL_HELP), Ok)
    }
}

impl FromStr for RateLimit {
    type Err = UnitError;

    /// The default burst is a tenth of a second of the rate.
    fn from_str(text: &str) -> Result<RateLimit, UnitError> {
        let (rate, burst) =
            text.split_once(':').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
        let (number, unit) = rate.split_once('/').unwrap_or((rate, ""));
        // A rate may use the units of counts: `10k/s`.
        let number = units::parse_count(number).map_or(number.into(), |count| count.to_string());
        let per_s = match unit {
            "" => return wrong(text, RATE_HELP),
            unit => units::parse_rate(&format!("{number}/{unit}"))?,
        };
        let burst = match burst {
            Some(burst) => units::parse_count(burst)?,
            None => (per_s / 10.0).round().clamp(1.0, BURST_MAX as f64) as u64,
        };
        Ok(RateLimit { per_s, burst })
    }
}

impl FromStr for WarmUp {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<WarmUp, UnitError> {
        let Some((time, speed)) = text.split_once(':') else { return wrong(text, WARM_UP_HELP) };
        Ok(WarmUp { time: units::parse_duration(time)?, speed: units::parse_share(speed)? })
    }
}

impl FromStr for SlowSpells {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<SlowSpells, UnitError> {
        let [every, time, slower] = text.split(':').collect::<Vec<_>>()[..] else {
            return wrong(text, SPELLS_HELP);
        };
        Ok(SlowSpells {
            every: units::parse_duration(every)?,
            time: units::parse_duration(time)?,
            slower: units::parse_share(slower)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        assert_eq!("0.02, 0.0005".parse(), Ok(Usl { contention: 0.02, crosstalk: 0.0005 }));
        assert_eq!("500/s".parse(), Ok(RateLimit { per_s: 500.0, burst: 50 }));
        assert_eq!("1/s".parse(), Ok(RateLimit { per_s: 1.0, burst: 1 }));
        assert_eq!("10k/s:2k".parse(), Ok(RateLimit { per_s: 10_000.0, burst: 2_000 }));
        let second = Duration::from_secs(1);
        assert_eq!("1m:60%".parse(), Ok(WarmUp { time: 60 * second, speed: 0.6 }));
        let spells = SlowSpells { every: 45 * second, time: 5 * second, slower: 0.15 };
        assert_eq!("45s:5s:15%".parse(), Ok(spells));
    }

    #[test]
    fn invalid_values_are_refused_with_help() {
        let told =
            |error: UnitError| format!("{}; {}", error.message.english(), error.help.english());
        let usl = |text: &str| told(text.parse::<Usl>().unwrap_err());
        let rate = |text: &str| told(text.parse::<RateLimit>().unwrap_err());
        let warm_up = |text: &str| told(text.parse::<WarmUp>().unwrap_err());
        let spells = |text: &str| told(text.parse::<SlowSpells>().unwrap_err());
        for (told, wanted) in [
            (usl("0.02"), "`0.02` is not a valid value; write CONTENTION,CROSSTALK"),
            (usl("a,b"), "`0.02,0.0005`"),
            (rate("500"), "`500` is not a valid value; write a rate, or a rate and a burst"),
            (rate("500/x"), "`x` is not a unit of time"),
            (rate("500/s:many"), "a count is a whole number"),
            (warm_up("60s"), "write a duration and a speed: `60s:60%`"),
            (warm_up("60:60%"), "the unit of the duration is missing"),
            (warm_up("60s:60"), "the `%` is missing"),
            (spells("45s:5s"), "write an interval, a duration and a slowdown"),
            (spells("45s:5s:1:2"), "`45s:5s:15%`"),
        ] {
            assert!(told.contains(wanted), "{told}");
        }
    }

    fn fault(change: impl FnOnce(&mut CapacityOptions)) -> String {
        let service = Some(Latency::Exponential(Duration::from_millis(1)));
        let mut options = CapacityOptions { service, ..CapacityOptions::default() };
        change(&mut options);
        options.fault(Latency::None).map_or(String::new(), |fault| fault.english())
    }

    #[test]
    fn invalid_capacities_are_refused() {
        assert_eq!(fault(|_| ()), "");
        assert_eq!(fault(|it| *it = CapacityOptions::default()), "");
        let usl = Usl { contention: 0.1, crosstalk: 0.0 };
        for (told, wanted) in [
            (fault(|it| (it.service, it.work_on) = (None, true)), "`--work-on` requires"),
            (fault(|it| (it.service, it.servers) = (None, Some(8))), "`--servers` requires"),
            (fault(|it| it.service = Some(Latency::None)), "a service time must be a duration"),
            (fault(|it| it.service = Some(Latency::Fixed(Duration::ZERO))), "more than 0"),
            (fault(|it| it.servers = Some(0)), "must have 1 to 100000 servers"),
            (fault(|it| it.queue_max = Some(u64::MAX)), "must be at most 1000000"),
            (fault(|it| (it.usl, it.queue_max) = (Some(usl), Some(9))), "no request waits"),
            (fault(|it| it.usl = Some(Usl { crosstalk: f64::NAN, ..usl })), "between 0 and 1"),
            (fault(|it| it.rate_limit = "0/s".parse().ok()), "more than 0"),
            (fault(|it| it.warm_up = "60s:0%".parse().ok()), "more than 0%"),
            (fault(|it| it.warm_up = "60s:101%".parse().ok()), "at most 100%"),
            (fault(|it| it.slow_spells = "5s:5s:1%".parse().ok()), "shorter than the interval"),
            (fault(|it| it.slow_spells = "5s:1s:100%".parse().ok()), "less than 100%"),
        ] {
            assert!(told.contains(wanted), "{wanted}: {told}");
        }
        let fixed = Latency::Fixed(Duration::from_millis(1));
        let limited = CapacityOptions { rate_limit: "5/s".parse().ok(), ..Default::default() };
        assert!(limited.fault(Latency::None).is_none());
        assert!(limited.fault(fixed).is_some());
        assert!(CapacityOptions::default().fault(fixed).is_none());
    }
}
