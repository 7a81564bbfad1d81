//! What findings are drawn from: the facts of a run, with its seconds and the sums of its phases.

use std::ops::Range;

use throng_base::Said;
use throng_metrics::capacity::{LevelVerdict, Purpose};
use throng_metrics::{Capacity, Comparison, Interval, Measure, StepKind, Subject, Verdict};
use throng_why::{
    Facts, FailedLevel, Judged, MissedRate, PhaseFacts, Record, SearchFacts, Span, TargetFacts,
    Watched, around, judge,
};

use super::figures::Figures;
use crate::directory::ThresholdInfo;
use crate::monitors::{MonitorRow, SeriesRow};
use crate::summary::{Damage, Summary, Validity};
use crate::verdict::record_trouble;

/// Drops of a listening socket; those of the whole host may be of other services.
const DROPS: &str = "throng_listen_drops_total{";
/// Requests that HAProxy has sent to a server again.
const SENT_AGAIN: &str = "haproxy_backend_retry_warnings_total{";

impl Figures {
    /// None where the seconds of the first lines are not known.
    pub(super) fn why(
        &mut self,
        summary: &Summary,
        watched: Vec<Watched>,
        spans: &[Range<u64>],
    ) -> Option<Judged> {
        let timeline = self.timeline.as_mut()?;
        timeline.finish();
        let facts = Facts { phases: phases(self, spans), watched, ..facts(summary) };
        let sums: Vec<&Interval> = self.phases.iter().map(|phase| &phase.sum).collect();
        let timeline = self.timeline.as_ref()?;
        Some(judge(&Record::new(&facts, timeline, sums)))
    }
}

impl Figures {
    /// Both sides of Little's law, for each level.
    pub(super) fn fill_levels(&self, summary: &mut Summary) {
        // Of users who stay online it is not known what they do meanwhile.
        let is_known =
            |kind: StepKind| kind != StepKind::Connect && (kind.is_asked() || !kind.is_attempt());
        let is_known = summary.info.steps.iter().all(|step| is_known(step.kind));
        let of_one = is_known && summary.info.loads.is_empty();
        let Some(timeline) = self.timeline.as_ref().filter(|_| of_one) else { return };
        for level in &mut summary.parts.levels {
            let from_s = level.at_ns as f64 / 1e9;
            let users = timeline.users(from_s, from_s + level.lasted.as_secs_f64());
            (level.users_mean, level.users_explained) = users.unzip();
        }
    }

    /// Fills in what the events of the run changed.
    pub(super) fn effects(&self, summary: &mut Summary, spans: &[Range<u64>]) {
        let Some(timeline) = &self.timeline else { return };
        let facts = Facts { phases: phases(self, spans), ..facts(summary) };
        let begun = facts.phases.iter().filter(|it| it.span.to_s > it.span.from_s);
        let bounds = begun.flat_map(|it| [it.span.from_s, it.span.to_s]);
        let changes_s: Vec<f64> = bounds.chain(facts.changes_s.iter().copied()).collect();
        for row in &mut summary.events.actions {
            let happened = row.happened(&changes_s, facts.lasted_s);
            row.effect = happened.map(|it| around(timeline, &it));
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
        steps: info.steps.iter().map(|step| (step.name.clone(), step.kind)).collect(),
        phases: Vec::new(),
        lasted_s: summary.lasted.as_secs_f64(),
        ended: !summary.verdict.unended,
        same_host: info.same_host,
        targets: info.targets.clone(),
        services: info.services.clone(),
        zero_unix_ns: info.zero_unix_ns,
        port_range: info.host.port_range,
        generator: generator(&summary.verdict.validity),
        doubts: doubts(summary),
        soak: info.soak,
        no_keep_alive: info.no_keep_alive,
        search: summary.capacity.as_deref().map(search),
        watched: Vec::new(),
        missed_rates: info.thresholds.iter().filter_map(missed_rate).collect(),
        changes_s: changes.map(|change| change.at_ns as f64 / 1e9).collect(),
        target: target(&summary.monitors, summary.measured.as_secs_f64()),
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

/// What the sources say of the target's hosts.
fn target(rows: &[MonitorRow], measured_s: f64) -> TargetFacts {
    let mut facts = TargetFacts::default();
    for row in rows {
        let told = |series: &&SeriesRow| series.count > 0;
        let all = |start: &'static str| {
            let own = row.series.iter().filter(told);
            own.filter_map(move |it| Some((it.name.strip_prefix(start)?, it)))
        };
        let dropped: f64 = all(DROPS).map(|(_, series)| series.mean * measured_s).sum();
        facts.listen_dropped += dropped;
        facts.cpu = [facts.cpu, row.cpu()].into_iter().flatten().reduce(f64::max);
        for (labels, open) in all("throng_process_descriptors{") {
            let limit = all("throng_process_descriptors_limit{").find(|(own, _)| *own == labels);
            let Some((_, limit)) = limit else { continue };
            let share = |(_, open, limit): &(String, f64, f64)| open / limit.max(1.0);
            let own = (program(labels), open.max, limit.last);
            if facts.descriptors.as_ref().is_none_or(|known| share(known) < share(&own)) {
                facts.descriptors = Some(own);
            }
        }
        for (labels, rate) in all(SENT_AGAIN) {
            let count = rate.mean * measured_s;
            if facts.sent_again.as_ref().is_none_or(|(_, known)| *known < count) {
                facts.sent_again = Some((label(labels, "proxy"), count));
            }
        }
        for (labels, started) in all("throng_process_started_total{") {
            let ended = all("throng_process_ended_total{").find(|(own, _)| *own == labels);
            if started.max > 0.0 && ended.is_some_and(|(_, ended)| ended.max > 0.0) {
                facts.restarted.push(program(labels));
            }
        }
    }
    facts
}

/// Of `name="nginx"}`.
fn program(labels: &str) -> String {
    labels.split('"').nth(1).unwrap_or_default().to_string()
}

/// The value of a label, as `proxy` of `source="/run/admin.sock",proxy="shop"}`.
fn label(labels: &str, name: &str) -> String {
    let value = labels.split_once(&format!("{name}=\"")).map(|(_, rest)| rest);
    value.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_string()
}

fn generator(validity: &Validity) -> Vec<Said> {
    match validity {
        Validity::Valid => Vec::new(),
        Validity::Invalid { reasons } => {
            reasons.iter().filter(|it| it.is_of_generator()).map(|it| it.text()).collect()
        }
    }
}

/// Why no finding may be drawn. Lines that appear twice count once, and a torn last line is that of
/// a run that was killed.
fn doubts(summary: &Summary) -> Vec<Said> {
    let damage = Damage { doubled: 0, torn: false, ..summary.verdict.damage.clone() };
    let adds_up = damage == Damage::default()
        && summary.info.lines_lost == 0
        && summary.verdict.unbalanced.is_empty();
    if adds_up { Vec::new() } else { record_trouble(summary) }
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
