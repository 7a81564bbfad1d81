//! The rules in the order of evaluation, and which finding explains which others.

mod amplified;
mod closes_first;
mod drift;
mod head_of_line;
mod limits;
mod one_bad_address;
mod own_duplicates;
mod periodic_stall;
mod plateau_residence;
mod rate_limited;
mod reconnect_storm;
mod rising_errors;
mod saturated;
mod slow_step;
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

use crate::finding::Code::{
    self, AcceptQueueFull, Amplified, ClosesFirst, ConntrackFull, DescriptorLimit, DiskBound,
    Drift, GeneratorBound, HeadOfLine, MemoryShort, OneBadAddress, OwnDuplicates, PeriodicStall,
    PlateauResidence, PortsExhausted, RateLimited, ReconnectStorm, RisingErrors, Saturated,
    SlowStep, SynLost, TargetRestarted, ThinkBound, TimeUnaccounted, TlsBound, TlsHidden, TooGood,
    TwoPeaks, Unbalanced, WarmUp,
};
use crate::finding::{Finding, Judgement, Level, Unknown};
use crate::gave_way::{GaveWay, gave_way};
use crate::record::Record;
use crate::stability::{Stability, stability};

/// The results of all rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// The most certain first, then in the order of evaluation.
    pub findings: Vec<Finding>,
    /// Rules that were not evaluated, and why.
    pub unknown: Vec<(Code, Unknown)>,
    /// Why no rule was evaluated: the results are inconsistent.
    pub doubts: Vec<Said>,
    /// The run directory ends in the middle of the run, at this second.
    pub until_s: Option<f64>,
    /// What limited the service at the border of a capacity search.
    pub gave_way: Vec<GaveWay>,
    /// Whether a long load was stable; `None` for other loads.
    pub stability: Option<Stability>,
}

type Rule = fn(&Record) -> Judgement;

const RULES: [(Code, Rule); 30] = [
    (GeneratorBound, limits::generator_bound::judge),
    (PortsExhausted, limits::ports_exhausted::judge),
    (DescriptorLimit, limits::descriptor_limit::judge),
    (ConntrackFull, limits::conntrack_full::judge),
    (AcceptQueueFull, limits::accept_queue_full::judge),
    (SynLost, limits::syn_lost::judge),
    (MemoryShort, limits::memory_short::judge),
    (TargetRestarted, target_restarted::judge),
    (OneBadAddress, one_bad_address::judge),
    (Unbalanced, unbalanced::judge),
    (PlateauResidence, plateau_residence::judge),
    (ClosesFirst, closes_first::judge),
    (ReconnectStorm, reconnect_storm::judge),
    (RateLimited, rate_limited::judge),
    (TlsBound, tls_bound::judge),
    (DiskBound, limits::disk_bound::judge),
    (Saturated, saturated::judge),
    (TlsHidden, tls_hidden::judge),
    (ThinkBound, think_bound::judge),
    (TooGood, too_good::judge),
    (Amplified, amplified::judge),
    (OwnDuplicates, own_duplicates::judge),
    (HeadOfLine, head_of_line::judge),
    (PeriodicStall, periodic_stall::judge),
    (TwoPeaks, two_peaks::judge),
    (WarmUp, warm_up::judge),
    (Drift, drift::judge),
    (RisingErrors, rising_errors::judge),
    (TimeUnaccounted, time_unaccounted::judge),
    (SlowStep, slow_step::judge),
];

/// Findings explained by a likely or certain finding at the same time; they are dropped.
const EXPLAINS: [(Code, &[Code]); 17] = [
    (
        // A late generator increases times and decreases rates.
        GeneratorBound,
        &[
            SynLost,
            TlsBound,
            Saturated,
            ThinkBound,
            PeriodicStall,
            TwoPeaks,
            WarmUp,
            Drift,
            SlowStep,
            TimeUnaccounted,
        ],
    ),
    (ConntrackFull, &[SynLost, AcceptQueueFull, RisingErrors, Saturated]),
    (OwnDuplicates, &[RisingErrors]),
    (HeadOfLine, &[TwoPeaks, SlowStep]),
    (PortsExhausted, &[RisingErrors, Saturated, ReconnectStorm]),
    (DescriptorLimit, &[RisingErrors, Saturated, ReconnectStorm, ClosesFirst]),
    (AcceptQueueFull, &[SynLost, TwoPeaks, RisingErrors, Saturated, SlowStep]),
    (SynLost, &[TwoPeaks, SlowStep]),
    (
        MemoryShort,
        &[
            TargetRestarted,
            DiskBound,
            Saturated,
            PeriodicStall,
            TwoPeaks,
            Drift,
            RisingErrors,
            SlowStep,
        ],
    ),
    (DiskBound, &[Saturated, PeriodicStall, TwoPeaks, Drift, SlowStep]),
    (TargetRestarted, &[RisingErrors, ClosesFirst, WarmUp, Saturated, Drift, SlowStep, TwoPeaks]),
    (OneBadAddress, &[TwoPeaks, RisingErrors, Unbalanced, SlowStep]),
    (PlateauResidence, &[ClosesFirst, RisingErrors]),
    (RateLimited, &[Saturated, RisingErrors, Amplified]),
    (TlsBound, &[Saturated, SlowStep, TwoPeaks]),
    (PeriodicStall, &[TwoPeaks]),
    (Saturated, &[TwoPeaks, WarmUp, Drift, PeriodicStall, ThinkBound]),
];

/// Evaluates all rules.
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
    /// Keeps a finding unless another one explains it.
    fn take(&mut self, finding: Finding) {
        let explains = |known: &&Finding| {
            let explained = EXPLAINS.iter().find(|(code, _)| *code == known.code);
            known.level < Level::Hint
                && explained.is_some_and(|(_, codes)| codes.contains(&finding.code))
                && (known.when.overlaps(finding.when) || known.code == GeneratorBound)
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
