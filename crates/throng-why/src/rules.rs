//! The rules in the order of judging, and which finding explains which others.

mod accept_queue_full;
mod amplified;
mod closes_first;
mod conntrack_full;
mod descriptor_limit;
mod disk_bound;
mod drift;
mod generator_bound;
mod head_of_line;
mod memory_short;
mod one_bad_address;
mod own_duplicates;
mod periodic_stall;
mod plateau_residence;
mod ports_exhausted;
mod rate_limited;
mod reconnect_storm;
mod rising_errors;
mod saturated;
mod slow_step;
mod stalled;
mod syn_lost;
mod target_restarted;
mod think_bound;
mod time_unaccounted;
mod tls_bound;
mod tls_hidden;
mod too_good;
mod two_peaks;
mod unbalanced;
mod warm_up;

use throng_base::Said;

use crate::finding::{Code, Finding, Judgement, Level, Unknown};
use crate::gave_way::{GaveWay, gave_way};
use crate::record::Record;
use crate::stability::{Stability, stability};

/// What all rules say of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// The surest first, then in the order of judging.
    pub findings: Vec<Finding>,
    /// Rules that gave no answer, and why.
    pub unknown: Vec<(Code, Unknown)>,
    /// Why no finding is drawn at all: the figures do not add up.
    pub doubts: Vec<Said>,
    /// The record ends in the middle of the run, here in seconds.
    pub until_s: Option<f64>,
    /// What gave way at the border of a search for the highest load.
    pub gave_way: Vec<GaveWay>,
    /// Whether a long load stayed as it was; None of a load that is not long.
    pub stability: Option<Stability>,
}

/// A rule.
type Rule = fn(&Record) -> Judgement;

const RULES: [(Code, Rule); 30] = [
    (Code::GeneratorBound, generator_bound::judge),
    (Code::PortsExhausted, ports_exhausted::judge),
    (Code::DescriptorLimit, descriptor_limit::judge),
    (Code::ConntrackFull, conntrack_full::judge),
    (Code::AcceptQueueFull, accept_queue_full::judge),
    (Code::SynLost, syn_lost::judge),
    (Code::MemoryShort, memory_short::judge),
    (Code::TargetRestarted, target_restarted::judge),
    (Code::OneBadAddress, one_bad_address::judge),
    (Code::Unbalanced, unbalanced::judge),
    (Code::PlateauResidence, plateau_residence::judge),
    (Code::ClosesFirst, closes_first::judge),
    (Code::ReconnectStorm, reconnect_storm::judge),
    (Code::RateLimited, rate_limited::judge),
    (Code::TlsBound, tls_bound::judge),
    (Code::DiskBound, disk_bound::judge),
    (Code::Saturated, saturated::judge),
    (Code::TlsHidden, tls_hidden::judge),
    (Code::ThinkBound, think_bound::judge),
    (Code::TooGood, too_good::judge),
    (Code::Amplified, amplified::judge),
    (Code::OwnDuplicates, own_duplicates::judge),
    (Code::HeadOfLine, head_of_line::judge),
    (Code::PeriodicStall, periodic_stall::judge),
    (Code::TwoPeaks, two_peaks::judge),
    (Code::WarmUp, warm_up::judge),
    (Code::Drift, drift::judge),
    (Code::RisingErrors, rising_errors::judge),
    (Code::TimeUnaccounted, time_unaccounted::judge),
    (Code::SlowStep, slow_step::judge),
];

/// What a finding that is likely or certain explains: a finding of these at the same time is none.
const EXPLAINS: [(Code, &[Code]); 17] = [
    (
        // A generator that is late makes times longer and rates lower.
        Code::GeneratorBound,
        &[
            Code::SynLost,
            Code::TlsBound,
            Code::Saturated,
            Code::ThinkBound,
            Code::PeriodicStall,
            Code::TwoPeaks,
            Code::WarmUp,
            Code::Drift,
            Code::SlowStep,
            Code::TimeUnaccounted,
        ],
    ),
    (
        Code::ConntrackFull,
        &[Code::SynLost, Code::AcceptQueueFull, Code::RisingErrors, Code::Saturated],
    ),
    (Code::OwnDuplicates, &[Code::RisingErrors]),
    (Code::HeadOfLine, &[Code::TwoPeaks, Code::SlowStep]),
    (Code::PortsExhausted, &[Code::RisingErrors, Code::Saturated, Code::ReconnectStorm]),
    (
        Code::DescriptorLimit,
        &[Code::RisingErrors, Code::Saturated, Code::ReconnectStorm, Code::ClosesFirst],
    ),
    (
        Code::AcceptQueueFull,
        &[Code::SynLost, Code::TwoPeaks, Code::RisingErrors, Code::Saturated, Code::SlowStep],
    ),
    (Code::SynLost, &[Code::TwoPeaks, Code::SlowStep]),
    (
        Code::MemoryShort,
        &[
            Code::TargetRestarted,
            Code::DiskBound,
            Code::Saturated,
            Code::PeriodicStall,
            Code::TwoPeaks,
            Code::Drift,
            Code::RisingErrors,
            Code::SlowStep,
        ],
    ),
    (
        Code::DiskBound,
        &[Code::Saturated, Code::PeriodicStall, Code::TwoPeaks, Code::Drift, Code::SlowStep],
    ),
    (
        Code::TargetRestarted,
        &[
            Code::RisingErrors,
            Code::ClosesFirst,
            Code::WarmUp,
            Code::Saturated,
            Code::Drift,
            Code::SlowStep,
            Code::TwoPeaks,
        ],
    ),
    (Code::OneBadAddress, &[Code::TwoPeaks, Code::RisingErrors, Code::Unbalanced, Code::SlowStep]),
    (Code::PlateauResidence, &[Code::ClosesFirst, Code::RisingErrors]),
    (Code::RateLimited, &[Code::Saturated, Code::RisingErrors, Code::Amplified]),
    (Code::TlsBound, &[Code::Saturated, Code::SlowStep, Code::TwoPeaks]),
    (Code::PeriodicStall, &[Code::TwoPeaks]),
    (
        Code::Saturated,
        &[Code::TwoPeaks, Code::WarmUp, Code::Drift, Code::PeriodicStall, Code::ThinkBound],
    ),
];

/// Judges a record by all rules.
pub fn judge(record: &Record) -> Judged {
    let until_s = (!record.facts.ended).then_some(record.facts.lasted_s);
    if !record.facts.doubts.is_empty() {
        let doubts = record.facts.doubts.clone();
        return Judged { doubts, until_s, ..Judged::default() };
    }
    let mut judged = Judged { until_s, ..Judged::default() };
    for (code, rule) in RULES {
        match rule(record) {
            Ok(findings) => findings.into_iter().for_each(|finding| judged.take(finding)),
            Err(unknown) => judged.unknown.push((code, unknown)),
        }
    }
    judged.findings.sort_by_key(|finding| finding.level);
    judged.gave_way = gave_way(record, &judged.findings);
    judged.stability = stability(record);
    judged
}

impl Judged {
    /// Keeps a finding, unless another one explains it.
    fn take(&mut self, finding: Finding) {
        let explains = |known: &&Finding| {
            let explained = EXPLAINS.iter().find(|(code, _)| *code == known.code);
            known.level < Level::Hint
                && explained.is_some_and(|(_, codes)| codes.contains(&finding.code))
                && (known.when.overlaps(finding.when) || known.code == Code::GeneratorBound)
        };
        match self.findings.iter().find(explains) {
            Some(known) => {
                let unknown = Unknown::ExplainedBy { code: known.code };
                self.unknown.push((finding.code, unknown));
            }
            None => self.findings.push(finding),
        }
    }
}
