//! The rate was below the required one because of users' pauses: more users would increase it, a
//! faster target would not.

use crate::finding::{Code, Finding, Judgement, Level, count, percent, rate, time};
use crate::record::Record;

/// Share of the time that users spend with a request: R / (R + Z) for R = 20 % of Z.
const BUSY_MAX: f64 = 0.2 / 1.2;
/// Minimum number of users at the ends of seconds, and of attempts.
const USERS_MIN: f64 = 1.0;
const ATTEMPTS_MIN: f64 = 100.0;

pub(super) fn judge(record: &Record) -> Judgement {
    // Without a required rate, pauses are assumed to be intended.
    let Some(missed) = record.facts.missed_rates.first() else { return Ok(Vec::new()) };
    let all = record.all();
    if record.is_open(&all) || record.is_long_lived() {
        return Ok(Vec::new());
    }
    let measured: Vec<_> = record.points().iter().filter(|it| it.measured > 0.0).collect();
    let of = |figure: fn(&crate::timeline::Point) -> f64| -> f64 {
        measured.iter().map(|point| figure(point)).sum()
    };
    let user_s = of(|point| point.users * point.lines);
    let attempts = of(|point| point.timed);
    let busy = of(|point| point.time) / 1e9 / user_s.max(1.0);
    let users = user_s / of(|point| point.lines).max(1.0);
    if users < USERS_MIN || attempts < ATTEMPTS_MIN || busy > BUSY_MAX {
        return Ok(Vec::new());
    }
    let mean = of(|point| point.time) / attempts.max(1.0);
    // At constant response times, the rate is proportional to the users.
    let needed = users * missed.wanted / missed.figure.max(1e-9);
    let text = say!(
        "users spend {} of their time waiting for responses; the rest is think time",
        percent(busy)
    );
    let found = Finding::new(Code::ThinkBound, Level::Likely, text, record.measured_span())
        .on(&["ok", "users_online"])
        .figure(say!("threshold not met: {} (value: {})", (missed.text.clone()), {
            rate(missed.figure)
        }))
        .figure(say!("users: {} on average; mean response time: {}", count(users), time(mean)))
        .not(
            say!("a slow target"),
            say!("even with immediate responses, the rate would rise by at most {}", {
                percent(busy / (1.0 - busy))
            }),
        )
        .then(say!("use about {} users: `throng run FILE --users {:.0}`", count(needed), needed));
    Ok(vec![found])
}
