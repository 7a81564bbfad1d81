//! Prepares the input of findings: the seconds of a run and the sums of its phases.

use std::ops::Range;
use std::time::Duration;

use throng_base::Said;
use throng_base::units::format_duration;
use throng_metrics::capacity::{LevelVerdict, Purpose};
use throng_metrics::{
    Capacity, Comparison, Counts as _, Interval, Measure, Retries, StepKind, Subject, Verdict,
};
use throng_why::{
    Facts, FailedLevel, Judged, MissedRate, PhaseFacts, Record, SearchFacts, Span, Watched, around,
    judge,
};

use super::figures::Figures;
use crate::directory::ThresholdInfo;
use crate::summary::{Damage, Summary, Validity};
use crate::verdict::record_trouble;

/// Maximum difference of the starts of merged runs. Rules ignore two seconds at each end of a
/// phase.
const APART_NS_MAX: i64 = 2_000_000_000;

impl Figures {
    pub(super) fn why(
        &mut self,
        summary: &Summary,
        watched: Vec<Watched>,
        spans: &[Range<u64>],
    ) -> Judged {
        self.timeline.finish();
        let facts = Facts { phases: phases(self, spans), watched, ..facts(summary) };
        let sums: Vec<&Interval> = self.phases.iter().map(|phase| &phase.sum).collect();
        judge(&Record::new(&facts, &self.timeline, sums))
    }
}

impl Figures {
    /// Both sides of Little's law, for each level.
    pub(super) fn fill_levels(&self, summary: &mut Summary) {
        // The activity of staying users between requests is unknown.
        let is_known =
            |kind: StepKind| kind != StepKind::Connect && (kind.is_asked() || !kind.is_attempt());
        let is_known = summary.info.tables.steps.iter().all(|step| is_known(step.kind));
        let of_one = is_known && summary.info.tables.loads.is_empty();
        for level in summary.parts.levels.iter_mut().filter(|_| of_one) {
            let from_s = level.at_ns as f64 / 1e9;
            let users = self.timeline.users(from_s, from_s + level.lasted.as_secs_f64());
            (level.users_mean, level.users_explained) = users.unzip();
        }
    }

    /// Computes what the events of the run changed.
    pub(super) fn effects(&self, summary: &mut Summary, spans: &[Range<u64>]) {
        let facts = Facts { phases: phases(self, spans), ..facts(summary) };
        let begun = facts.phases.iter().filter(|it| it.span.to_s > it.span.from_s);
        let bounds = begun.flat_map(|it| [it.span.from_s, it.span.to_s]);
        let changes_s: Vec<f64> = bounds.chain(facts.changes_s.iter().copied()).collect();
        for row in &mut summary.events.actions {
            let happened = row.happened(&changes_s, facts.lasted_s);
            row.effect = happened.map(|it| around(&self.timeline, &it));
        }
    }
}

fn phases(figures: &Figures, spans: &[Range<u64>]) -> Vec<PhaseFacts> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let phases = figures.phases.iter().zip(spans);
    let phase = phases.map(|(phase, span)| PhaseFacts {
        name: phase.info.name.clone(),
        measured: phase.info.measured && phase.is_begun(),
        span: Span::new(seconds(span.start), seconds(span.end)),
    });
    phase.collect()
}

fn facts(summary: &Summary) -> Facts {
    let info = &summary.info;
    let changes = summary.events.changes.first.iter().filter(|change| change.is_of_load());
    Facts {
        steps: info.tables.steps.iter().map(|step| (step.name.clone(), step.kind)).collect(),
        phases: Vec::new(),
        lasted_s: summary.lasted.as_secs_f64(),
        ended: !summary.verdict.unended,
        no_retries: info.format.0 < Retries::since(),
        same_host: info.targets.same_host,
        targets: info.targets.urls.clone(),
        services: info.targets.services.clone(),
        zero_unix_ns: info.time.zero_unix_ns,
        port_range: info.generator.host.port_range,
        generator: generator(&summary.verdict.validity),
        doubts: doubts(summary),
        soak: info.mode.soak,
        no_keep_alive: info.mode.no_keep_alive,
        search: summary.capacity.as_deref().map(search),
        watched: Vec::new(),
        missed_rates: info.tables.thresholds.iter().filter_map(missed_rate).collect(),
        changes_s: changes.map(|change| change.at_ns as f64 / 1e9).collect(),
    }
}

fn search(capacity: &Capacity) -> SearchFacts {
    let failed = capacity.levels.iter().filter(|level| {
        let is_beyond = level.purpose == Purpose::Beyond;
        matches!(level.verdict, LevelVerdict::NotMet(_)) && !is_beyond
    });
    let failed = failed.map(|level| FailedLevel {
        load: level.load,
        span: Span::new(level.at_s, level.at_s + level.seconds),
    });
    let between = capacity.low.zip(capacity.high).map(|(low, high)| (low * high).sqrt());
    SearchFacts { failed: failed.collect(), border: between.or(capacity.carries) }
}

fn generator(validity: &Validity) -> Vec<Said> {
    match validity {
        Validity::Valid => Vec::new(),
        Validity::Invalid { reasons } => {
            reasons.iter().filter(|it| it.is_of_generator()).map(|it| it.text()).collect()
        }
    }
}

/// Reasons to draw no findings. Duplicate lines count once, and a torn last line only means that
/// the run was killed.
fn doubts(summary: &Summary) -> Vec<Said> {
    let damage = Damage { doubled: 0, torn: false, ..summary.verdict.damage.clone() };
    let adds_up = damage == Damage::default()
        && summary.info.lines_lost == 0
        && summary.verdict.unbalanced.is_empty();
    let mut doubts = if adds_up { Vec::new() } else { record_trouble(summary) };
    let apart_ns = summary.info.generator.machines.iter().map(|it| it.offset_ns).max().unwrap_or(0);
    if apart_ns > APART_NS_MAX {
        let apart = format_duration(Duration::from_nanos(apart_ns.unsigned_abs()));
        doubts.push(say!("the merged runs started {} apart, or their clocks disagree", apart));
    }
    doubts
}

fn missed_rate(info: &ThresholdInfo) -> Option<MissedRate> {
    let threshold = &info.threshold;
    let is_lower = matches!(threshold.comparison, Comparison::Greater | Comparison::GreaterOrEqual);
    let is_rate =
        matches!(threshold.subject, Subject::Steps(_)) && threshold.measure == Measure::Rate;
    match info.verdict {
        Some(Verdict::NotMet(figure)) if is_lower && is_rate => {
            Some(MissedRate { text: threshold.text.clone(), figure, wanted: threshold.value })
        }
        _ => None,
    }
}
