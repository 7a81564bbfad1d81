//! Determines the validity of a result and the exit code. The generator is suspected first.

mod headline;
mod lateness;
mod ledger;
mod named;
mod once;

use std::time::Duration;

use throng_base::units::{format_count, format_duration};
use throng_base::{Diagnostic, Exit, Said, StepId, clean};
use throng_metrics::Percentile;
use throng_metrics::{Blame, Cause, Packets, StepKind, Subject, Verdict};
use throng_why::Trend;

use crate::back_off::machine_name;
use crate::event::StopBy;
use crate::summary::{
    DeliveryRow, Generator, Hold, InvalidReason, LATENESS_NS_MAX, PhaseRow, Row, Stopped, Summary,
    ThresholdRow, Validity, only_stays,
};
pub(crate) use headline::{NOTHING_SUCCEEDED, Stamp, Tone, headline, stamp};
pub(crate) use once::failed_setup;
use once::failed_text;
use throng_metrics::Duel;
use throng_metrics::capacity::Capacity;

/// Share of due starts that may remain unmet.
pub const UNMET_SHARE_MAX: f64 = 0.01;
/// Share of the time that a start keeps a user busy: less lateness does not explain why no user was
/// free.
pub const LATENESS_SHARE_MAX: f64 = 0.1;
/// Lateness (p99) above which no latency of the run is meaningful.
pub const LATENESS_INVALID_NS_MAX: u64 = 100_000_000;
/// Share of attempts that may fail because of this host.
pub const GENERATOR_ERRORS_SHARE_MAX: f64 = 0.01;
/// Share of a phase's users that may be missing due to paused growth.
pub const HELD_SHARE_MAX: f64 = 0.01;
/// Share of the time that a shard may lose while work is due. A minimum total time also applies, so
/// that one pause of a busy host does not decide a short run.
pub const LOST_SHARE_MAX: f64 = 0.1;
pub const LOST_NS_MAX: u64 = 1_000_000_000;
/// The same, for a note beside the verdict.
pub const LOST_SHARE_TOLD: f64 = 0.01;
/// Share of late seconds for a note beside the verdict.
pub const LATE_SECONDS_SHARE_MAX: f64 = 0.1;
impl InvalidReason {
    /// The reason as a sentence.
    pub fn text(&self) -> Said {
        match self {
            InvalidReason::StartsUnmet { unmet, due } => say!(
                "{} of {} starts ({:.1} %) never happened while the generator was behind schedule",
                format_count(*unmet),
                format_count(*due),
                percent(*unmet, *due)
            ),
            InvalidReason::Late { p99_ns, max_ns } => say!(
                "1 % of the starts were {} or more behind schedule (worst {})",
                duration(*p99_ns),
                duration(*max_ns)
            ),
            InvalidReason::TimeLost { lost_ns, measured_ns, longest_ns } => {
                lost_text(*lost_ns, *measured_ns, *longest_ns)
            }
            InvalidReason::GeneratorErrors { failed, attempts } => say!(
                "{} of {} attempts ({:.1} %) failed because of this host",
                format_count(*failed),
                format_count(*attempts),
                percent(*failed, *attempts)
            ),
            InvalidReason::TooFewUsers { unmet, due, .. } => say!(
                "{} of {} starts ({:.1} %) never happened: too few users for this rate",
                format_count(*unmet),
                format_count(*due),
                percent(*unmet, *due)
            ),
            InvalidReason::NothingAnswered { cut_off } => say!(
                "no response arrived before the end of the run (iterations cut off: {})",
                format_count(*cut_off)
            ),
            InvalidReason::GrowthGivenUp { hold } => given_up_text(hold),
            InvalidReason::UsersHeld { phase, came, wanted, seconds, limit } => say!(
                "`{}` reached at most {} of {} users: the generator was at its {} limit for {} s",
                clean(phase),
                format_count(*came),
                format_count(*wanted),
                limit_word(limit),
                format_count(*seconds)
            ),
            InvalidReason::DeliveriesBlind { name, sent, received, lost } => {
                ledger::blind_text(name, *sent, *received, *lost)
            }
            InvalidReason::DeliveriesUnwatched { name, unwatched, sent } => {
                ledger::unwatched_text(name, *unwatched, *sent)
            }
            InvalidReason::MessagesDropped { dropped } => dropped_text(*dropped),
            InvalidReason::PacketsLate { packets } => packets_text(packets),
            InvalidReason::DataEnded { at_ns, detail } => {
                let detail = detail.clone().cleaned();
                say!(
                    "the data ran out at {}, before the end of the load: {detail}",
                    duration(*at_ns)
                )
            }
            InvalidReason::MachineLost { name, at_ns, detail } => {
                say!("machine {name} was lost after {}: {detail}", duration(*at_ns))
            }
            InvalidReason::BackedOff { name, at_ns, percent, detail } => say!(
                "machine {} backed off at {}, down to {} % of its share of the load: {}",
                clean(name),
                duration(*at_ns),
                percent,
                detail.clone().cleaned()
            ),
            InvalidReason::OfMachine { name, reason } => {
                say!("machine {name}: {reason}", reason = reason.text())
            }
        }
    }
}

/// Determines whether a run is valid.
pub(crate) fn validity(summary: &Summary) -> Validity {
    let mut reasons = Vec::new();
    let lateness = &summary.generator.lateness;
    let (unmet, due) = (summary.users.population.unmet, due(summary));
    let is_unmet = unmet as f64 > due as f64 * UNMET_SHARE_MAX;
    let is_late = lateness.at(Percentile::P99) > LATENESS_NS_MAX
        && busy_ns(summary)
            .is_none_or(|ns| lateness.at(Percentile::P99) as f64 > ns * LATENESS_SHARE_MAX);
    if is_unmet && is_late {
        reasons.push(InvalidReason::StartsUnmet { unmet, due });
    }
    reasons.extend(not_in_time(&summary.generator, summary.measured));
    for machine in &summary.parts.machines {
        if let Some((at_ns, detail)) = &machine.lost {
            let (name, at_ns, detail) = (machine.name.clone(), *at_ns, detail.clone());
            reasons.push(InvalidReason::MachineLost { name, at_ns, detail });
        }
        for reason in not_in_time(&machine.generator, summary.measured) {
            if reasons.iter().all(|known| known.word() != reason.word()) {
                let (name, reason) = (machine.name.clone(), Box::new(reason));
                reasons.push(InvalidReason::OfMachine { name, reason });
            }
        }
    }
    // A threshold covers the missing load.
    let back_offs = &summary.events.back_offs.machines[..];
    let back_offs = if judges_generated(summary) { &[] } else { back_offs };
    reasons.extend(back_offs.iter().map(|first| {
        let name = machine_name(&summary.info, first.machine);
        let (at_ns, percent, detail) = (first.at_ns, first.percent, first.detail.clone());
        InvalidReason::BackedOff { name, at_ns, percent, detail }
    }));
    let own = summary.steps.errors.iter().filter(|row| row.blame == Blame::Generator);
    let failed: u64 = own.map(|row| row.count).sum();
    let attempts = summary.steps.total.count;
    if failed as f64 > attempts as f64 * GENERATOR_ERRORS_SHARE_MAX {
        reasons.push(InvalidReason::GeneratorErrors { failed, attempts });
    }
    // Starts due while the operator paused growth are not missed.
    if is_unmet && !is_late && !summary.was_paused() {
        let needed = users_needed(summary);
        reasons.push(InvalidReason::TooFewUsers { unmet, due, needed });
    }
    reasons.extend(held(summary));
    reasons.extend(ledger::reasons(summary));
    let dropped = summary.messages.counts.dropped;
    if dropped > 0 && has_threshold_on_messages(summary) {
        reasons.push(InvalidReason::MessagesDropped { dropped });
    }
    let packets = Some(&summary.connections.packets).filter(|packets| packets.are_untrue());
    reasons.extend(packets.cloned().map(|packets| InvalidReason::PacketsLate { packets }));
    if let Some(stopped) = stopped_by(summary, StopBy::DataShort) {
        let (at_ns, detail) = (stopped.at_ns, stopped.reason.clone());
        reasons.push(InvalidReason::DataEnded { at_ns, detail });
    }
    // Users that only stay connected have done their work once they are connected.
    let are_there = only_stays(&summary.info) && summary.connections.open_max > 0;
    let is_given_up = stopped_by_rule(summary).or_else(|| stopped_by_bug(summary)).is_some();
    let cut_off = summary.users.population.interrupted;
    if answered(summary) + summary.steps.total.failed == 0
        && cut_off > 0
        && !are_there
        && !is_given_up
    {
        reasons.push(InvalidReason::NothingAnswered { cut_off });
    }
    if summary.capacity.is_some() {
        reasons.retain(|reason| !reason.is_of_level());
    }
    match reasons.is_empty() {
        true => Validity::Valid,
        false => Validity::Invalid { reasons },
    }
}

/// Whether the generator was late or stopped, so that its results do not describe the target.
fn not_in_time(own: &Generator, measured: Duration) -> Vec<InvalidReason> {
    let mut reasons = Vec::new();
    let (p99_ns, max_ns) = (own.lateness.at(Percentile::P99), own.lateness.max_ns);
    if p99_ns > LATENESS_INVALID_NS_MAX {
        reasons.push(InvalidReason::Late { p99_ns, max_ns });
    }
    let (lost_ns, longest_ns) = (own.lost_ns, own.lost_longest_ns);
    let measured_ns = measured.as_nanos() as u64;
    if lost_ns as f64 > measured_ns as f64 * LOST_SHARE_MAX && lost_ns > LOST_NS_MAX {
        reasons.push(InvalidReason::TimeLost { lost_ns, measured_ns, longest_ns });
    }
    reasons
}

/// Successful attempts, except connecting and staying, which are not responses. If users do nothing
/// else, connects count.
fn answered(summary: &Summary) -> u64 {
    let attempts = || summary.steps.rows.iter().filter(|row| row.kind.is_attempt());
    let idles = attempts().all(|row| [StepKind::Connect, StepKind::Stay].contains(&row.kind));
    let counts = |row: &&Row| row.kind.is_timed() && (idles || row.kind != StepKind::Connect);
    attempts().filter(counts).map(|row| row.ok).sum()
}

/// Users missing because of the generator's own limits.
fn held(summary: &Summary) -> Vec<InvalidReason> {
    if let Some(hold) = &summary.growth.given_up {
        return vec![InvalidReason::GrowthGivenUp { hold: hold.clone() }];
    }
    // A run that was stopped early misses no users.
    let info = &summary.info;
    if summary.events.stopped.is_some() || info.interrupted || summary.verdict.unended {
        return Vec::new();
    }
    let reason = |phase: &PhaseRow| {
        let wanted = phase.users_planned.filter(|_| phase.measured && phase.held_seconds > 0)?;
        let came = phase.users_present_max;
        let is_short = (came as f64) < wanted as f64 * (1.0 - HELD_SHARE_MAX);
        is_short.then(|| InvalidReason::UsersHeld {
            phase: phase.name.clone(),
            came,
            wanted,
            seconds: phase.held_seconds,
            limit: summary.growth.held.as_ref().map(|hold| hold.limit.clone()).unwrap_or_default(),
        })
    };
    summary.parts.phases.iter().filter_map(reason).collect()
}

/// Whether a threshold applies to these deliveries.
fn has_threshold(summary: &Summary, row: &DeliveryRow) -> bool {
    let own = StepId(row.counts.step);
    summary.info.tables.thresholds.iter().any(|info| match &info.threshold.subject {
        Subject::Delivery { step, .. } => *step == own,
        Subject::Steps(steps) => steps.contains(&own),
        _ => false,
    })
}

/// Whether a threshold applies to sent, expected, handled or delivered messages.
fn has_threshold_on_messages(summary: &Summary) -> bool {
    let is_message = |step: &StepId| {
        summary.info.tables.steps.get(step.index()).is_some_and(|step| step.kind.is_message())
    };
    summary.info.tables.thresholds.iter().any(|info| match &info.threshold.subject {
        Subject::Delivery { .. } => true,
        Subject::Steps(steps) => steps.iter().any(is_message),
        Subject::Counter(counter) => counter.word().starts_with("messages."),
        _ => false,
    })
}

fn dropped_text(dropped: u64) -> Said {
    let dropped = format_count(dropped);
    say!("{dropped} messages were dropped because too many were waiting for one user")
}

/// The name of a limit of the generator.
fn limit_word(limit: &str) -> Said {
    match limit {
        LIMIT_CPU => say!("CPU"),
        LIMIT_MEMORY | LIMIT_HOST_MEMORY => say!("memory"),
        _ => say!("own"),
    }
}

/// States that growth ended.
fn given_up_text(hold: &Hold) -> Said {
    let at = duration(hold.at_ns);
    match hold.detail.clone().cleaned() {
        detail if detail.is_empty() => say!("the generator stopped adding users at {at}"),
        detail => say!("the generator stopped adding users at {at}: {detail}"),
    }
}

/// The number of due starts, both those that happened and those that did not.
fn due(summary: &Summary) -> u64 {
    summary.users.population.due()
}

/// How long a start keeps a user busy while every user is busy, in nanoseconds.
fn busy_ns(summary: &Summary) -> Option<f64> {
    let (users, done) = (summary.info.users_planned, summary.users.population.iterations_started);
    let busy = summary.measured.as_nanos() as f64 * users as f64 / done as f64;
    (users > 0 && done > 0).then_some(busy)
}

/// The number of users that the rate needs. Starts are unmet only while every user is busy, so it
/// is the number of users times the ratio of due to completed starts. This includes pauses.
fn users_needed(summary: &Summary) -> Option<u64> {
    let (users, done) = (summary.info.users_planned, summary.users.population.iterations_started);
    let needed = users as f64 * due(summary) as f64 / done as f64;
    (users > 0 && done > 0 && summary.users.population.unmet > 0).then_some(needed.ceil() as u64)
}

/// Dropped starts, in the words of the load.
pub(crate) fn starts_dropped_text(summary: &Summary) -> Said {
    let (dropped, due) = (summary.users.population.dropped, due(summary));
    let (count, share) = (format_count(dropped), percent(dropped, due));
    say!("{count} starts were dropped ({share:.1} %): no user was free for them")
}

/// Explains unmet starts to a user who suspects that the generator was late.
pub(crate) fn unmet_text(summary: &Summary) -> Said {
    let unmet = format_count(summary.users.population.unmet);
    if summary.was_paused() {
        return say!("{unmet} starts never happened because the run was paused");
    }
    match users_needed(summary).map(format_count) {
        None => say!("{unmet} starts never happened: too few users for this rate"),
        Some(needed) => say!(
            "{unmet} starts never happened: too few users for this rate (about {needed} needed)"
        ),
    }
}

/// Whether the result is invalid because of this host or throng.
pub(crate) fn generator_is_to_blame(summary: &Summary) -> bool {
    match &summary.verdict.validity {
        Validity::Valid => false,
        Validity::Invalid { reasons } => reasons.iter().any(InvalidReason::is_of_generator),
    }
}

/// The exit code of a run.
pub fn exit_code(summary: &Summary) -> Exit {
    judge(summary).0
}

/// The exit code, and the reasons if it is not 0.
pub(crate) fn judge(summary: &Summary) -> (Exit, Vec<Said>) {
    let thresholds = || match (&summary.capacity, &summary.duel) {
        // The search judged them per level.
        (Some(capacity), _) => capacity.judge(),
        (None, Some(duel)) => duel.judge(),
        (None, None) => judge_thresholds(summary),
    };
    ended_otherwise(summary).unwrap_or_else(thresholds)
}

/// The result of a capacity search, if it determines the exit code.
pub(crate) fn deciding_capacity(summary: &Summary) -> Option<&Capacity> {
    summary.capacity.as_deref().filter(|_| ended_otherwise(summary).is_none())
}

/// The result of a duel, if it determines the exit code.
pub(crate) fn deciding_duel(summary: &Summary) -> Option<&Duel> {
    summary.duel.as_deref().filter(|_| ended_otherwise(summary).is_none())
}

/// Reasons why the run failed regardless of its thresholds.
fn ended_otherwise(summary: &Summary) -> Option<(Exit, Vec<Said>)> {
    if let Some(stopped) = stopped_by_bug(summary) {
        return Some((Exit::Bug, vec![bug_text(stopped)]));
    }
    if summary.info.interrupted || summary.verdict.unended {
        let reason = match summary.info.interrupted {
            true => say!("the run was interrupted"),
            false => say!("the run is incomplete: it was killed, or it is still running"),
        };
        return Some((Exit::Interrupted, vec![reason]));
    }
    if let Some(setup) = failed_setup(summary) {
        return Some((Exit::TargetUnreachable, vec![failed_text(setup)]));
    }
    if let Some(at_ns) = summary.events.target_lost_ns {
        let at = duration(at_ns);
        let reason = match was_reached(summary) {
            true => say!("the target became unreachable; the run ended at {at}"),
            false => say!("the target could not be reached; the run ended at {at}"),
        };
        return Some((Exit::TargetUnreachable, vec![reason]));
    }
    if is_unreachable(summary) {
        let attempt = summary.steps.errors.iter().find(|row| row.is_attempt());
        let cause = attempt.map_or_else(Said::default, |row| row.cause.text());
        return Some((Exit::TargetUnreachable, vec![cause]));
    }
    let mut reasons = Vec::new();
    if let Validity::Invalid { reasons: invalid } = &summary.verdict.validity {
        reasons.extend(invalid.iter().map(InvalidReason::text));
    }
    reasons.extend(record_trouble(summary));
    if !reasons.is_empty() {
        return Some((Exit::ResultInvalid, reasons));
    }
    if let Some(stopped) = stopped_by_rule(summary) {
        return Some((Exit::TargetUnreachable, vec![rule_text(stopped)]));
    }
    if nothing_succeeded(summary).is_some() {
        return Some((Exit::ThresholdsNotMet, vec![nothing_succeeded_text(summary)]));
    }
    None
}

fn judge_thresholds(summary: &Summary) -> (Exit, Vec<Said>) {
    let thresholds = |is: fn(&Verdict) -> bool, told: fn(&str) -> Said| -> Vec<Said> {
        let these = summary.verdict.thresholds.iter().filter(|threshold| is(&threshold.verdict));
        these.map(|threshold| told(&threshold.text)).collect()
    };
    let is_missed = |it: &Verdict| matches!(it, Verdict::NotMet(_) | Verdict::Unknown);
    let mut missed = thresholds(is_missed, |text| say!("not met: {text}"));
    missed.extend(unstable(summary));
    if !missed.is_empty() {
        return (Exit::ThresholdsNotMet, missed);
    }
    let is_unclear = |it: &Verdict| matches!(it, Verdict::Indeterminate(_));
    let unclear = thresholds(is_unclear, |text| say!("cannot be evaluated: {text}"));
    match unclear.is_empty() {
        true => (Exit::Success, unclear),
        false => (Exit::ResultInvalid, unclear),
    }
}

/// What grew in a load that should be stable (`--soak`).
fn unstable(summary: &Summary) -> Option<Said> {
    let stability = summary.verdict.why.stability.as_ref()?;
    let grows = stability.measures.iter().find(|it| it.trend == Trend::Grows)?;
    summary.info.mode.soak.then(|| say!("unstable: {}", grows.text()))
}

/// The most frequent cause if there were many attempts and no success. Such a run fails regardless
/// of its thresholds.
pub(crate) fn nothing_succeeded(summary: &Summary) -> Option<Cause> {
    let total = &summary.steps.total;
    let first = || summary.steps.errors.iter().find(|row| row.is_attempt()).map(|row| row.cause);
    if total.failed > 0 && answered(summary) == 0 { first() } else { None }
}

fn nothing_succeeded_text(summary: &Summary) -> Said {
    let total = &summary.steps.total;
    say!(
        "no attempt succeeded: {} of {} failed",
        format_count(total.failed),
        format_count(answered(summary) + total.failed)
    )
}

/// Whether the generator of a valid run lacked processor time for so long that the verdict must
/// mention it.
pub(crate) fn is_strained(summary: &Summary) -> bool {
    let own = &summary.generator;
    // The search judged this per level.
    if summary.capacity.is_some() {
        return false;
    }
    own.late_seconds as f64 > own.seconds as f64 * LATE_SECONDS_SHARE_MAX
        || lost_share(summary) > LOST_SHARE_TOLD
}

/// The minimum number of remaining source ports, if it was below a tenth of all.
pub(crate) fn ports_scarce(summary: &Summary) -> Option<u64> {
    let left = summary.generator.resources.ports_left?;
    let all = left.saturating_add(summary.connections.open_max);
    (left.saturating_mul(10) < all).then_some(left)
}

/// Whether the result is valid except for thresholds that throng's own lateness can explain.
pub(crate) fn is_indeterminate(summary: &Summary) -> bool {
    let is = |threshold: &ThresholdRow| matches!(threshold.verdict, Verdict::Indeterminate(_));
    summary.verdict.validity == Validity::Valid && summary.verdict.thresholds.iter().any(is)
}

/// Share of the measured time, 0 to 1.
fn lost_share(summary: &Summary) -> f64 {
    summary.generator.lost_ns as f64 / summary.measured.as_nanos().max(1) as f64
}

fn lost_text(lost_ns: u64, measured_ns: u64, longest_ns: u64) -> Said {
    say!(
        "throng stalled for {} of {} (longest stall {})",
        duration(lost_ns),
        duration(measured_ns),
        duration(longest_ns)
    )
}

/// The stop of the run by a rule. Running out of data is a regular end.
pub(crate) fn stopped_by_rule(summary: &Summary) -> Option<&Stopped> {
    stopped_by(summary, StopBy::Rule)
}

/// The stop of the run because of a bug in throng.
pub(crate) fn stopped_by_bug(summary: &Summary) -> Option<&Stopped> {
    stopped_by(summary, StopBy::Bug)
}

fn stopped_by(summary: &Summary, by: StopBy) -> Option<&Stopped> {
    summary.events.stopped.as_ref().filter(|stopped| stopped.by == by)
}

/// States that a bug ended the run.
pub(crate) fn bug_text(stopped: &Stopped) -> Said {
    say!("throng has a bug: {}", stopped.reason.clone().cleaned())
}

/// States that a rule stopped the run.
pub(crate) fn rule_text(stopped: &Stopped) -> Said {
    let at = duration(stopped.at_ns);
    match stopped.reason.clone().cleaned() {
        reason if reason.is_empty() => say!("a rule in the scenario stopped the run at {at}"),
        reason => say!("a rule in the scenario stopped the run at {at}: {reason}"),
    }
}

/// Whether there ever was a connection: a target that was never reached cannot be lost.
pub(crate) fn was_reached(summary: &Summary) -> bool {
    summary.connections.counts.opened > 0 || summary.connections.open_max > 0
}

/// No attempt succeeded, and no usable connection was opened.
pub(crate) fn is_unreachable(summary: &Summary) -> bool {
    let mut errors = summary.steps.errors.iter().filter(|row| row.is_attempt()).peekable();
    summary.steps.rows.iter().filter(|row| row.kind.is_attempt()).all(|row| row.ok == 0)
        && errors.peek().is_some()
        && errors.all(|row| is_connecting(row.cause))
}

/// Whether the cause means that no usable connection was opened.
pub fn is_connecting(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::ResolveFailed
            | Cause::ConnectRefused
            | Cause::ConnectTimeout
            | Cause::Unreachable
            | Cause::ProxyFailed
            | Cause::ProxyRefused
            | Cause::TlsFailed
            | Cause::CertificateRefused
            | Cause::ClientCertificate
            | Cause::WrongScheme
    )
}

pub(crate) fn record_trouble(summary: &Summary) -> Vec<Said> {
    let mut reasons = Vec::new();
    if summary.info.lines_lost > 0 {
        let lost = format_count(summary.info.lines_lost);
        reasons.push(say!("{lost} result lines could not be written"));
    }
    if summary.verdict.damage.unreadable > 0 {
        let unreadable = format_count(summary.verdict.damage.unreadable);
        reasons.push(say!("{unreadable} result lines could not be read"));
    }
    let damage = &summary.verdict.damage;
    if damage.missing > 0 {
        reasons.push(say!("{} result lines are missing", format_count(damage.missing)));
    }
    if damage.doubled > 0 {
        let doubled = format_count(damage.doubled);
        reasons.push(say!("{doubled} result lines appear twice; each is counted once"));
    }
    if damage.unequal > 0 {
        let unequal = format_count(damage.unequal);
        reasons.push(say!(
            "in {unequal} result lines, ok and failed do not add up to the number of attempts"
        ));
    }
    if let (Some(read), Some(run)) = (&damage.totals, &summary.info.end.totals) {
        reasons.push(match (run.count, run.ok) == (read.count, read.ok) {
            true => say!("the recorded totals do not match those of the run"),
            false => say!(
                "the run counted {} attempts ({} ok), but its recorded results contain {} ({} ok)",
                format_count(run.count),
                format_count(run.ok),
                format_count(read.count),
                format_count(read.ok)
            ),
        });
    }
    if let Some(first) = summary.verdict.unbalanced.first() {
        reasons.push(say!(
            "the counts of `{}` do not match: {} started, {} ended",
            clean(&first.name),
            format_count(first.begun),
            format_count(first.ended)
        ));
    }
    reasons
}

/// Whether a threshold applies to the share of generated load.
fn judges_generated(summary: &Summary) -> bool {
    summary.info.tables.thresholds.iter().any(|it| it.threshold.subject == Subject::Generated)
}

fn backed_off(summary: &Summary, reason: &InvalidReason) -> Diagnostic {
    let help = say!(
        "run again when the host is idle, use more machines, raise `--back-off`, or accept less \
         load with a threshold: `generated > 70%`"
    );
    Diagnostic::error("backed-off", reason.text()).note(summary.generated_text()).help(help)
}

impl Summary {
    /// The share of its load that the run generated, at most 1. It is lower if machines backed off
    /// or were lost.
    pub(crate) fn generated(&self) -> f64 {
        self.events.back_offs.generated(&self.info, self.lasted.as_nanos() as u64)
    }

    fn generated_text(&self) -> Said {
        let percent = format!("{:.0}", (self.generated() * 100.0).floor());
        say!("{percent} % of the load was generated; hosts were busy with other programs")
    }

    /// What a user must know before reading any result: why the result is invalid, and why the run
    /// was shorter than its load.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        if let Validity::Invalid { reasons } = &self.verdict.validity {
            if reasons.iter().any(InvalidReason::is_late) {
                diagnostics.push(self.late(reasons.iter().filter(|reason| reason.is_late())));
            }
            if reasons.iter().any(InvalidReason::is_held) {
                diagnostics.push(self.held_back(reasons));
            }
            diagnostics.extend(reasons.iter().filter_map(|reason| match reason {
                InvalidReason::StartsUnmet { .. }
                | InvalidReason::Late { .. }
                | InvalidReason::TimeLost { .. }
                | InvalidReason::GrowthGivenUp { .. }
                | InvalidReason::UsersHeld { .. }
                | InvalidReason::DeliveriesBlind { .. }
                | InvalidReason::DeliveriesUnwatched { .. }
                | InvalidReason::OfMachine { .. }
                | InvalidReason::DataEnded { .. }
                | InvalidReason::MessagesDropped { .. } => None,
                InvalidReason::MachineLost { .. } => {
                    let help = say!("its last results are missing: run the test again");
                    Some(Diagnostic::error("machine-lost", reason.text()).help(help))
                }
                InvalidReason::BackedOff { .. } => Some(backed_off(self, reason)),
                InvalidReason::PacketsLate { .. } => {
                    let help = say!(
                        "use fewer users with a `network`, or split the load over `--processes`"
                    );
                    Some(Diagnostic::error("packets-late", reason.text()).help(help))
                }
                InvalidReason::GeneratorErrors { .. } => Some(self.limited(reason)),
                InvalidReason::TooFewUsers { needed, .. } => Some(self.too_few(reason, *needed)),
                InvalidReason::NothingAnswered { .. } => Some(nothing_answered(reason)),
            }));
        }
        if judges_generated(self) && !self.events.back_offs.machines.is_empty() {
            diagnostics.push(Diagnostic::warning("backed-off", self.generated_text()));
        }
        if is_strained(self) && !generator_is_to_blame(self) {
            diagnostics.push(self.strained());
        }
        if nothing_succeeded(self).is_some() && !is_unreachable(self) {
            diagnostics.push(self.failed_throughout());
        }
        diagnostics.extend(named::events(self));
        diagnostics.extend(named::addresses(self));
        diagnostics.extend(ledger::diagnostics(self));
        diagnostics.extend((self.messages.counts.dropped > 0).then(|| self.dropped()));
        diagnostics
            .extend(self.connections.counts.streams_allowed().map(|max| self.few_streams(max)));
        diagnostics.extend(self.events.stopped.as_ref().map(stop));
        diagnostics.extend(once::diagnostics(self));
        let trouble = record_trouble(self);
        if !trouble.is_empty() {
            let start = Diagnostic::error(
                "record-incomplete",
                say!("some results of this run are missing"),
            );
            diagnostics.push(trouble.into_iter().fold(start, Diagnostic::note));
        }
        diagnostics
    }

    /// Every attempt failed.
    fn failed_throughout(&self) -> Diagnostic {
        let message = say!("no attempt in this run succeeded");
        let mut told =
            Diagnostic::error("nothing-succeeded", message).note(nothing_succeeded_text(self));
        for row in self.steps.errors.iter().filter(|row| row.is_attempt()).take(CAUSES_TOLD_MAX) {
            let count = format_count(row.count);
            let (text, word) = (row.cause.text(), row.cause.word());
            told = told.note(say!("cause: {count} × {text} ({word})"));
        }
        told.help(say!("run one user with `throng try` first"))
    }

    /// Growth was paused due to the generator's limits, so users were missing.
    fn held_back(&self, reasons: &[InvalidReason]) -> Diagnostic {
        let mut told =
            Diagnostic::error("generator-limited", say!("this host could not sustain the load"));
        for reason in reasons.iter().filter(|reason| reason.is_held()) {
            told = told.note(reason.text());
        }
        let growth = &self.growth;
        if let (Some(hold), None) = (&growth.held, &growth.given_up) {
            let (at, detail) = (duration(hold.at_ns), hold.detail.clone().cleaned());
            told = told.note(say!("cause: growth was paused at {at}: {detail}"));
        }
        let limit = growth.given_up.as_ref().or(growth.held.as_ref());
        told.help(match limit.map(|hold| hold.limit.as_str()) {
            Some(LIMIT_CPU) => say!(
                "lower the number of users, raise `--max-cpu`, or use a \
                                     faster host"
            ),
            Some(LIMIT_MEMORY) => {
                say!(
                    "lower the number of users, raise `--max-memory`, or use a host with more \
                      memory"
                )
            }
            Some(LIMIT_HOST_MEMORY) => say!(
                "lower the number of users, or use a host with more \
                                             memory"
            ),
            _ => say!("lower the load, or use a larger host"),
        })
    }

    /// The load was lower than `streams` specifies.
    fn few_streams(&self, max: u64) -> Diagnostic {
        let (limited, all) =
            (self.connections.counts.streams_limited, self.connections.counts.http2);
        let (limited, all) = (format_count(limited), format_count(all));
        let message = say!("the target allows fewer streams than `streams` requests");
        Diagnostic::warning("streams-limited", message)
            .note(say!(
                "the target allows {max} concurrent streams per connection on {limited} of {all} \
                 connections"
            ))
            .note(say!("excess requests waited in throng until a stream was free"))
            .help(say!("lower `streams` (--streams) to {max}, or use more users (--users)"))
    }

    /// An error if a threshold applies to messages.
    fn dropped(&self) -> Diagnostic {
        let message = say!("throng dropped incoming messages");
        let told = match has_threshold_on_messages(self) {
            true => Diagnostic::error("messages-dropped", message),
            false => Diagnostic::warning("messages-dropped", message),
        };
        told.note(dropped_text(self.messages.counts.dropped))
            .note(say!(
                "cause: messages arrived faster than an `expect` or a handler processed them"
            ))
            .help(DROPPED_HELP)
    }

    fn too_few(&self, reason: &InvalidReason, needed: Option<u64>) -> Diagnostic {
        let seconds = self.measured.as_secs_f64().max(1e-9);
        let done = self.users.population.iterations_started as f64 / seconds;
        let told = Diagnostic::error("too-few-users", say!("the requested load was not reached"))
            .note(reason.text());
        if done < 1.0 {
            return told
                .note(say!(
                    "cause: no user was free because users failed or left before they started an \
                     iteration"
                ))
                .help(say!("look at the first failures, for example a failed login in `before`"));
        }
        let help = match needed.map(format_count) {
            Some(needed) => say!(
                "allow about {needed} users (--users), or lower the rate to {done:.0}/s, which these \
                 users sustained"
            ),
            None => say!(
                "allow more users (--users), or lower the rate to {done:.0}/s, which these users \
                 sustained"
            ),
        };
        told.note(say!("cause: all users were busy or pausing when the next start was due"))
            .help(help)
    }

    fn limited(&self, reason: &InvalidReason) -> Diagnostic {
        let mut told =
            Diagnostic::error("generator-limited", say!("this host could not sustain the load"))
                .note(reason.text());
        let own = || self.steps.errors.iter().filter(|row| row.blame == Blame::Generator);
        for row in own() {
            let count = format_count(row.count);
            told = told.note(say!("cause: {count} × {} ({})", row.cause.text(), row.cause.word()));
        }
        told.help(match own().next().map(|row| row.cause) {
            Some(Cause::DescriptorsExhausted) => {
                say!("raise the limit of open files (`ulimit -n`)")
            }
            Some(Cause::PortsExhausted) => {
                say!(
                    "keep connections open, use more source addresses, or widen ip_local_port_range"
                )
            }
            Some(Cause::MemoryExhausted) => say!("lower the number of users, or raise tcp_mem"),
            Some(Cause::MemoryLimit) => {
                say!(
                    "raise `--max-memory`, lower the number of users, or use fewer checks on bodies"
                )
            }
            Some(Cause::MessagesDropped) => DROPPED_HELP,
            Some(Cause::Denied) => say!("check the firewall rules of this host"),
            _ => say!("lower the load, or use a larger host"),
        })
    }
}

fn packets_text(packets: &Packets) -> Said {
    say!(
        "throng could not carry the packets of users with a `network` in time: of {}, {} were \
         more than 10 ms late, and {} more were dropped",
        format_count(packets.carried),
        format_count(packets.late),
        format_count(packets.overflowed)
    )
}

const DROPPED_HELP: Said =
    say!("reduce the handler time per message, or spread the messages over more users");

/// Words of limits in [`crate::Event::Held`].
const LIMIT_CPU: &str = "cpu";
const LIMIT_MEMORY: &str = "memory";
const LIMIT_HOST_MEMORY: &str = "host-memory";
/// Maximum number of causes if nothing succeeded; the table of errors has all.
const CAUSES_TOLD_MAX: usize = 3;
/// Maximum length of a reason; the run directory has the full text.
const REASON_CHARS_MAX: usize = 300;

fn stop(stopped: &Stopped) -> Diagnostic {
    let at = duration(stopped.at_ns);
    let reason: Said = stopped.reason.clone().cleaned().shortened(REASON_CHARS_MAX);
    let told = match stopped.by {
        StopBy::Rule => {
            Diagnostic::error("stopped-by-rule", say!("a rule in the scenario stopped the run"))
        }
        StopBy::Data => {
            Diagnostic::warning("data-ended", say!("the run ended when its data ran out"))
        }
        StopBy::DataShort => {
            Diagnostic::error("data-ended", say!("the data ran out before the end of the load"))
        }
        StopBy::Bug => Diagnostic::error("bug", say!("a bug in throng ended the run")),
    };
    let told = match reason.is_empty() {
        true => told.note(say!("the run was stopped at {at}")),
        false => told.note(say!("the run was stopped at {at}: {reason}")),
    };
    match stopped.by {
        StopBy::Rule => told.note(say!("metrics and thresholds cover only the time until then")),
        StopBy::DataShort => told
            .note(say!("thresholds are not evaluated: most of the load may be missing"))
            .help(say!(
                "add rows, or define what happens when rows run out: `at_end: stop` or `at_end: \
                 wrap`"
            )),
        StopBy::Data => {
            told.help(say!("to run the whole load, add rows, or reuse rows (`at_end: wrap`)"))
        }
        StopBy::Bug => told.help(say!("please report this line with the command and the scenario")),
    }
}

fn nothing_answered(reason: &InvalidReason) -> Diagnostic {
    Diagnostic::error("nothing-answered", say!("this run received no response"))
        .note(reason.text())
        .help(say!(
            "make the last phase longer (`for:`, or --duration), or extend its graceful stop"
        ))
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

fn duration(nanos: u64) -> String {
    format_duration(Duration::from_nanos(nanos))
}
