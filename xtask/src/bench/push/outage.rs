//! The second part of `bench push`: Redis is killed while devices bind, and comes back empty. No
//! result of the run may be lost, and its curve has to show those seconds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::redis::Redis;
use super::scenario::Plan;
use super::{EXAMPLE, Outcome, Wish, carry_out, start_target};
use crate::bench::record::{self, Second};
use crate::bench::report::{self, Line, spaced};

/// Devices are held so long before any falls out.
const HOLD: Duration = Duration::from_secs(15);
/// From when they fall out until Redis dies, and from then until it is back.
const BEFORE: Duration = Duration::from_secs(10);
const DEAD: Duration = Duration::from_secs(10);
/// From then on binds are answered again, but some of those that failed are still to be made.
const RECOVERY: Duration = Duration::from_secs(5);
const CHURN: Duration = Duration::from_secs(40);

/// What binds did in a part of the run.
#[derive(Debug, Default, PartialEq)]
struct Span {
    ok: u64,
    failed: u64,
    seconds: u64,
    seconds_failed: u64,
    /// The highest p99 of a second.
    p99_ms: f64,
}

pub(super) fn run(
    wish: &Wish,
    program: &Path,
    folder: &Path,
    example: &str,
) -> Result<String, String> {
    let mut redis = Redis::start(folder)?;
    let users = wish.redis_users;
    let (target, admin) = start_target(program, folder, users, &redis, &["--redis-wait"])?;
    let plan = Plan::outage(users, wish.push_rate, HOLD, CHURN);
    let (dies, returns) = (plan.held() + BEFORE, plan.held() + BEFORE + DEAD);
    let (mut dead, mut trouble) = (None, None);
    let mut back = None;
    let each = |at: Duration, redis: &mut Redis| {
        if dead.is_none() && at >= dies {
            redis.kill();
            dead = Some(at);
            crate::say(&format!("{:4} s: Redis was killed", at.as_secs()));
        } else if back.is_none() && trouble.is_none() && at >= returns {
            trouble = redis.start_again(folder).err();
            back = Some(at);
            crate::say(&format!("{:4} s: Redis was started again", at.as_secs()));
        }
    };
    let server = (&target, admin);
    let outcome = carry_out(&plan, example, program, folder, server, &mut redis, each)?;
    if let Some(trouble) = trouble {
        return Err(trouble);
    }
    let (dead, back) = dead.zip(back).ok_or_else(|| {
        format!("throng ended before Redis was back: {}", outcome.ended.complaint())
    })?;
    let binds = record::seconds(&folder.join("record"), "bind")?;
    Ok(report(users, &outcome, &binds, (plan.held(), dead, back)))
}

fn report(
    users: u64,
    outcome: &Outcome,
    binds: &BTreeMap<u64, Second>,
    (churn, dead, back): (Duration, Duration, Duration),
) -> String {
    // The run begins a moment after the bench started it, so a second belongs to neither side.
    let (begin, dead) = (churn.as_secs() + 1, dead.as_secs().saturating_sub(1));
    let (back, calm) = (back.as_secs() + 1, (back + RECOVERY).as_secs());
    let spans = [
        ("before", Span::of(binds, begin, dead)),
        ("Redis is dead", Span::of(binds, dead, back)),
        ("it comes back", Span::of(binds, back, calm)),
        ("after that", Span::of(binds, calm, u64::MAX)),
    ];
    let mut text = format!(
        "## The push service while its Redis dies\n\n`throng target push --redis-wait` answers a \
         bind only when Redis has confirmed it. Of {} devices of `{EXAMPLE}` some lose their \
         connection all the time and bind again; {} s later Redis is killed, and started again, \
         empty, {} s after that. All are pushed to before, meanwhile and afterwards.\n\n\
         | | binds good | failed | seconds with failures | highest p99 of a second |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
        spaced(users),
        BEFORE.as_secs(),
        DEAD.as_secs(),
    );
    for (name, span) in &spans {
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} of {} | {:.1} ms |",
            spaced(span.ok),
            spaced(span.failed),
            span.seconds_failed,
            span.seconds,
            span.p99_ms
        );
    }
    text.push_str("\n| | asked | seen | |\n| --- | ---: | ---: | --- |\n");
    text.push_str(&report::lines(&lines(outcome, binds, &spans)));
    let _ = writeln!(text, "\n{}", outcome.remarks());
    text
}

fn lines(outcome: &Outcome, binds: &BTreeMap<u64, Second>, spans: &[(&str, Span); 4]) -> Vec<Line> {
    let [before, dead, _, after] = spans.each_ref().map(|(_, span)| span);
    let shows = dead.failed > 0 && before.failed + after.failed == 0;
    let all = Span::of(binds, 0, u64::MAX);
    let told = |name: &str| outcome.counted(name).unwrap_or(0);
    let pair = |one: u64, other: u64| Some(format!("{} / {}", spaced(one), spaced(other)));
    let summary: Value = serde_json::from_str(&outcome.ended.output).unwrap_or_default();
    let record = |name: &str| summary.pointer(&format!("/record/{name}")).and_then(Value::as_u64);
    let lines_lost = record("lines_lost").zip(record("lines_unreadable")).map(|(a, b)| a + b);
    let (ledger, served) = (&outcome.ledger, &outcome.served);
    let online = outcome.looks.iter().map(|(look, _)| look.logged_in).max().unwrap_or(0);
    let whole = outcome.looks.iter().rfind(|(look, _)| look.logged_in == online);
    let mirrored = whole.and_then(|(_, mirror)| mirror.present);
    vec![
        Line::new("the curve shows it", "yes", Some(if shows { "yes" } else { "no" }.into()))
            .met(Some(shows)),
        Line::new(
            "binds confirmed, by throng / by the target",
            "the same",
            pair(all.ok, told("bound")),
        )
        .met(Some(all.ok == told("bound"))),
        Line::new(
            "binds not confirmed, by throng / by the target",
            "the same",
            pair(all.failed, told("unconfirmed")),
        )
        .met(Some(all.failed == told("unconfirmed"))),
        Line::new("lines of the record lost", "0", lines_lost.map(spaced))
            .met(lines_lost.map(|lost| lost == 0)),
        Line::new("pushes expected / owed by the target", "", pair(ledger.expected, served.owed)),
        Line::new("delivered", "", Some(spaced(ledger.delivered))),
        Line::new("excused: the device had fallen out", "", Some(spaced(ledger.excused))),
        Line::new("lost, by the ledger / by the target", "none", pair(ledger.lost, served.lost))
            .met(Some(ledger.expected > 0 && ledger.lost + served.lost + ledger.foreign == 0)),
        Line::new("push p50 / p99 / max", "", ledger.times()),
        Line::new(
            "online at the end / in Redis",
            "the same",
            mirrored.and_then(|mirrored| pair(online, mirrored)),
        )
        .met(mirrored.map(|mirrored| mirrored == online)),
    ]
}

impl Span {
    /// From the second `begin` to the one before `end`.
    fn of(binds: &BTreeMap<u64, Second>, begin: u64, end: u64) -> Span {
        let mut span = Span::default();
        for second in binds.range(begin..end.max(begin)).map(|(_, second)| second) {
            span.ok += second.ok;
            span.failed += second.failed;
            span.seconds += 1;
            span.seconds_failed += u64::from(second.failed > 0);
            span.p99_ms = span.p99_ms.max(second.latency.ms_at(0.99).unwrap_or(0.0));
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_added_up() {
        let second = |ok, failed| Second { ok, failed, ..Second::default() };
        let binds = BTreeMap::from([(1, second(5, 0)), (2, second(0, 7)), (9, second(1, 1))]);
        let span = Span::of(&binds, 1, 9);
        let told = Span { ok: 5, failed: 7, seconds: 2, seconds_failed: 1, p99_ms: 0.0 };
        assert_eq!(span, told);
        assert_eq!(Span::of(&binds, 9, 3), Span::default());
    }
}
