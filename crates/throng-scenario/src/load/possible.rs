//! Checks whether the churn of loads is possible, once sessions and deliveries are known. Problems
//! are only warnings: the rest of the run is still useful.

use std::time::Duration;

use throng_base::units::{format_duration, write_duration};
use throng_program::{Amount, Churn, Delivery, Phase, Session, Statement, StepInfo};

use super::{Facts, Span};
use crate::read::Context;
use crate::syntax::Place;
use crate::words::shorten;

/// Without a wait users reconnect as fast as the target lets them; an average time online below
/// this is hardly a connection.
const ONLINE_MIN: Duration = Duration::from_secs(1);

/// A user that stays for less than this many loss timeouts often leaves before a message can be
/// counted as received or lost.
const LOST_TIMES: u32 = 3;

/// The sessions of the loads, their deliveries, and all rows.
type Compiled<'a> = (&'a [Session], &'a [Delivery], &'a [StepInfo]);

/// Warns of churn in these phases that never happens, is faster than users reconnect, or hides what
/// `deliveries` measure.
pub(crate) fn warn_churn(
    cx: &mut Context<'_>,
    phases: &[&Phase],
    facts: &Facts,
    (sessions, deliveries, steps): Compiled<'_>,
) {
    if facts.broken || cx.mistakes.has_errors() {
        return;
    }
    for (index, place) in &facts.churns {
        let (Some(phase), Some(span)) = (phases.get(*index), facts.spans.get(*index)) else {
            continue;
        };
        let Some(churn) = &phase.churn else { continue };
        if is_never(cx, *place, churn, *span, sessions) {
            continue;
        }
        // A user does not disconnect twice at the same time.
        let stays = stays(churn, span.users_max);
        if span.time.is_some_and(|time| time <= stays) {
            continue;
        }
        warn_fast(cx, *place, stays, sessions);
        warn_hidden(cx, *place, stays, deliveries, steps);
    }
}

/// How long a user stays online until it disconnects again.
fn stays(churn: &Churn, users: u64) -> Duration {
    let seconds = match churn.amount {
        Amount::Rate(rate) => users as f64 / rate,
        Amount::Share { share, every } => every.as_secs_f64() / share,
    };
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn is_never(
    cx: &mut Context<'_>,
    place: Place,
    churn: &Churn,
    span: Span,
    sessions: &[Session],
) -> bool {
    let users = span.users_max;
    let connects =
        |session: &Session| session.all().any(|step| matches!(step, Statement::Connect(_)));
    let stay = say!(
        "users from `arrivals` leave after one session; use `users` for users that \
         stay"
    );
    let (label, help) = if users == 0 {
        (say!("no user stays connected"), stay)
    } else if !sessions.iter().any(connects) {
        let help = say!(
            "`churn` requires a target with `ws://`, `wss://`, `tcp://` or `tls://`, and users \
             that stay connected"
        );
        (say!("no user keeps a connection open"), help)
    } else {
        let Amount::Share { share, every } = churn.amount else { return false };
        match span.time {
            Some(time) if every >= time => {
                let (every, time) = (write_duration(every), write_duration(time));
                let label = say!(
                    "the first users disconnect after {every}, but the phase lasts only \
                         {time}"
                );
                (label, say!("write an `every` that is shorter than the phase, or a longer `for`"))
            }
            _ if share * (users as f64) < 0.5 => {
                let percent = (share * 1e6).round() / 1e4;
                let label = say!("{percent}% of {users} users is less than one user");
                (label, say!("write a larger share, or more users"))
            }
            _ => return false,
        }
    };
    cx.warn("churn-never", place, say!("no user ever disconnects in this phase"), label, help);
    true
}

fn warn_fast(cx: &mut Context<'_>, place: Place, stays: Duration, sessions: &[Session]) {
    let waits = sessions.iter().filter_map(wait);
    let Some(wait) = waits.min() else { return };
    let label = if stays < wait {
        let (stays, wait) = (format_duration(stays), write_duration(wait));
        say!("each user disconnects every {stays}, but `reconnect` waits {wait} on average")
    } else if stays < ONLINE_MIN {
        say!("each user disconnects every {}", format_duration(stays))
    } else {
        return;
    };
    let message = say!("users disconnect faster than they reconnect");
    let help = say!("disconnect fewer users, or shorten the `wait` of `reconnect`");
    cx.warn("churn-too-fast", place, message, label, help);
}

/// The average time until a disconnected user reconnects; None if it has no connection. Half of the
/// wait is random.
fn wait(session: &Session) -> Option<Duration> {
    let waits = session.all().filter_map(|step| match step {
        Statement::Connect(connect) => {
            Some(connect.reconnect.map_or(Duration::ZERO, |retry| retry.low - retry.low / 4))
        }
        _ => None,
    });
    waits.min()
}

fn warn_hidden(
    cx: &mut Context<'_>,
    place: Place,
    stays: Duration,
    deliveries: &[Delivery],
    steps: &[StepInfo],
) {
    let slowest = deliveries.iter().max_by_key(|delivery| delivery.lost_after);
    let Some(delivery) = slowest else { return };
    if stays >= delivery.lost_after.saturating_mul(LOST_TIMES) {
        return;
    }
    let step = steps.get(delivery.step.index());
    let name = step.map_or("", |step| &step.name);
    let (stays, lost) = (format_duration(stays), write_duration(delivery.lost_after));
    let message = say!("users disconnect before a message can count as lost");
    let label = say!(
        "users stay connected for {stays} on average, but the delivery `{}` counts as lost after \
         {lost}",
        shorten(name)
    );
    let help = say!(
        "missed messages are undetermined, not lost: disconnect fewer users, or shorten \
         `lost_after`"
    );
    cx.warn("churn-hides-losses", place, message, label, help);
}
