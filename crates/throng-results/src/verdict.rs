//! Whether the result stands, and what the shell is told. The generator accuses itself first.

use std::time::Duration;

use throng_base::units::{format_count, format_duration};
use throng_base::{Diagnostic, Exit};
use throng_metrics::{Blame, Cause};

use crate::directory::VerdictInfo;
use crate::summary::Summary;

/// Share of due starts that may never happen while the generator is late.
pub const UNMET_SHARE_MAX: f64 = 0.01;
/// Lateness (p99) above which missing starts are the generator's fault, and above which a second
/// counts as late.
pub const LATENESS_NS_MAX: u64 = 10_000_000;
/// Lateness (p99) above which no latency of the run means anything.
pub const LATENESS_INVALID_NS_MAX: u64 = 100_000_000;
/// Share of attempts that may fail because of this host.
pub const GENERATOR_ERRORS_SHARE_MAX: f64 = 0.01;
/// Share of the host's processors above which there is nothing left to be had.
pub const HOST_CPU_BUSY: f64 = 0.95;

/// Whether the figures are about the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Validity {
    Valid,
    Invalid { reasons: Vec<InvalidReason> },
}

#[derive(Clone, Debug, PartialEq)]
pub enum InvalidReason {
    /// Starts that were due never happened, and the generator was late.
    StartsUnmet { unmet: u64, due: u64 },
    /// The generator did what was due much too late.
    Late { p99_ns: u64, max_ns: u64 },
    /// Attempts failed because this host had no descriptors, ports or memory left.
    GeneratorErrors { failed: u64, attempts: u64 },
}

impl InvalidReason {
    /// The word that records and JSON carry.
    pub fn word(&self) -> &'static str {
        match self {
            InvalidReason::StartsUnmet { .. } => "starts-unmet",
            InvalidReason::Late { .. } => "late",
            InvalidReason::GeneratorErrors { .. } => "generator-errors",
        }
    }

    /// The reason as a sentence.
    pub fn text(&self) -> String {
        match self {
            InvalidReason::StartsUnmet { unmet, due } => format!(
                "{} of {} starts ({:.1} %) never happened, while the generator was late",
                format_count(*unmet),
                format_count(*due),
                percent(*unmet, *due)
            ),
            InvalidReason::Late { p99_ns, max_ns } => format!(
                "one start in a hundred came {} or more after it was due (worst {})",
                duration(*p99_ns),
                duration(*max_ns)
            ),
            InvalidReason::GeneratorErrors { failed, attempts } => format!(
                "{} of {} attempts ({:.1} %) failed because of this host",
                format_count(*failed),
                format_count(*attempts),
                percent(*failed, *attempts)
            ),
        }
    }
}

/// The rule by which a run is marked invalid.
pub(crate) fn validity(summary: &Summary) -> Validity {
    let mut reasons = Vec::new();
    let lateness = &summary.generator.lateness;
    let population = &summary.population;
    let unmet = population.unmet;
    let due = population.iterations_started.max(population.started) + unmet;
    if unmet as f64 > due as f64 * UNMET_SHARE_MAX && lateness.p99_ns > LATENESS_NS_MAX {
        reasons.push(InvalidReason::StartsUnmet { unmet, due });
    }
    if lateness.p99_ns > LATENESS_INVALID_NS_MAX {
        reasons.push(InvalidReason::Late { p99_ns: lateness.p99_ns, max_ns: lateness.max_ns });
    }
    let own = summary.errors.iter().filter(|row| row.blame == Blame::Generator);
    let failed: u64 = own.map(|row| row.count).sum();
    let attempts = summary.total.count;
    if failed as f64 > attempts as f64 * GENERATOR_ERRORS_SHARE_MAX {
        reasons.push(InvalidReason::GeneratorErrors { failed, attempts });
    }
    match reasons.is_empty() {
        true => Validity::Valid,
        false => Validity::Invalid { reasons },
    }
}

/// What the shell is told about a run.
pub fn exit_code(summary: &Summary) -> Exit {
    judge(summary).0
}

/// The exit code and why it is not 0.
pub(crate) fn judge(summary: &Summary) -> (Exit, Vec<String>) {
    if summary.info.interrupted || summary.unended {
        let reason = match summary.info.interrupted {
            true => "the run was interrupted",
            false => "the run has no end: it was killed, or it still goes on",
        };
        return (Exit::Interrupted, vec![reason.into()]);
    }
    if is_unreachable(summary) {
        let cause = summary.errors.first().map_or("", |row| row.cause.text());
        return (Exit::TargetUnreachable, vec![cause.to_string()]);
    }
    let mut reasons = Vec::new();
    if let Validity::Invalid { reasons: invalid } = &summary.validity {
        reasons.extend(invalid.iter().map(InvalidReason::text));
    }
    reasons.extend(record_trouble(summary));
    if !reasons.is_empty() {
        return (Exit::ResultInvalid, reasons);
    }
    let missed =
        summary.goals.iter().filter(|goal| !matches!(goal.verdict, VerdictInfo::Met { .. }));
    let reasons: Vec<String> = missed.map(|goal| format!("not met: {}", goal.text)).collect();
    match reasons.is_empty() {
        true => (Exit::GoalsMet, reasons),
        false => (Exit::GoalsNotMet, reasons),
    }
}

/// No answer was good, and nothing got as far as a connection that could be used.
fn is_unreachable(summary: &Summary) -> bool {
    let is_connecting = |cause: Cause| {
        matches!(
            cause,
            Cause::ResolveFailed
                | Cause::ConnectRefused
                | Cause::ConnectTimeout
                | Cause::Unreachable
                | Cause::TlsFailed
                | Cause::CertificateRefused
        )
    };
    summary.total.ok == 0
        && !summary.errors.is_empty()
        && summary.errors.iter().all(|row| is_connecting(row.cause))
}

fn record_trouble(summary: &Summary) -> Vec<String> {
    let mut reasons = Vec::new();
    if summary.info.lines_lost > 0 {
        let lost = format_count(summary.info.lines_lost);
        reasons.push(format!("{lost} lines of the record could not be written"));
    }
    if summary.damage.unreadable > 0 {
        let unreadable = format_count(summary.damage.unreadable);
        reasons.push(format!("{unreadable} lines of the record could not be read"));
    }
    reasons
}

impl Summary {
    /// What a person must know before looking at any figure: why the result does not stand.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        if let Validity::Invalid { reasons } = &self.validity {
            let limited =
                |reason: &InvalidReason| matches!(reason, InvalidReason::GeneratorErrors { .. });
            if reasons.iter().any(|reason| !limited(reason)) {
                diagnostics.push(self.late(reasons.iter().filter(|reason| !limited(reason))));
            }
            if let Some(reason) = reasons.iter().find(|reason| limited(reason)) {
                diagnostics.push(self.limited(reason));
            }
        }
        let trouble = record_trouble(self);
        if !trouble.is_empty() {
            let start = Diagnostic::error("record-incomplete", "parts of this run are missing");
            diagnostics.push(trouble.into_iter().fold(start, Diagnostic::note));
        }
        diagnostics
    }

    fn late<'a>(&self, reasons: impl Iterator<Item = &'a InvalidReason>) -> Diagnostic {
        let generator = &self.generator;
        let message = "this run does not measure the target";
        let mut told = Diagnostic::error("generator-late", message).note(format!(
            "throng was more than {} ms behind schedule in {} of {} seconds (worst {})",
            LATENESS_NS_MAX / 1_000_000,
            format_count(generator.late_seconds),
            format_count(generator.seconds),
            duration(generator.lateness.max_ns)
        ));
        for reason in reasons {
            told = told.note(reason.text());
        }
        if let Some(second) = generator.host_busy_from {
            told = told.note(format!(
                "cause: the CPU of this host was {:.0} % busy from {} on",
                generator.host_cpu_max * 100.0,
                clock(second)
            ));
        }
        match generator.sustained_per_s {
            0 => told.help("lower the load, or use a faster host"),
            sustained => told.help(format!(
                "lower the rate to {}/s, which this host sustained, or use a faster host",
                format_count(sustained)
            )),
        }
    }

    fn limited(&self, reason: &InvalidReason) -> Diagnostic {
        let mut told = Diagnostic::error("generator-limited", "this host could not carry the load")
            .note(reason.text());
        let own = || self.errors.iter().filter(|row| row.blame == Blame::Generator);
        for row in own() {
            let count = format_count(row.count);
            told =
                told.note(format!("cause: {count} × {} ({})", row.cause.text(), row.cause.word()));
        }
        told.help(match own().next().map(|row| row.cause) {
            Some(Cause::DescriptorsExhausted) => "raise the limit of open files (`ulimit -n`)",
            Some(Cause::PortsExhausted) => {
                "keep connections open, use more source addresses, or widen ip_local_port_range"
            }
            Some(Cause::MemoryExhausted) => "lower the number of users, or raise tcp_mem",
            Some(Cause::Denied) => "look at the firewall rules of this host",
            _ => "lower the load, or use a larger host",
        })
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

fn duration(nanos: u64) -> String {
    format_duration(Duration::from_nanos(nanos))
}

/// A second of the run as a clock shows it: `00:19`, `1:02:03`.
fn clock(second: u64) -> String {
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    match hours {
        0 => format!("{minutes:02}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
