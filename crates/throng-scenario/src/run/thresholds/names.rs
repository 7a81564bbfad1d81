//! Names that thresholds can use, and their meaning.

use throng_base::StepId;
use throng_metrics::{Counter, DeliveryCounter, Measure, Stage, Subject};
use throng_program::{Audit, Load, Monitor, StepInfo, StepKind, TimedEvent};

use super::chosen::Chosen;
use super::{Unmeasured, is_word};

/// Names that thresholds can use.
pub(crate) struct Names<'p> {
    pub(crate) steps: &'p [StepInfo],
    pub(crate) loads: &'p [Load],
    pub(crate) monitors: &'p [Monitor],
    pub(crate) audits: &'p [Audit],
    /// No user has a long-lived connection.
    pub(crate) is_http: bool,
    /// The events that thresholds can refer to.
    pub(crate) events: &'p [TimedEvent],
    pub(crate) unmeasured: &'p Unmeasured,
    /// False if an earlier mistake hides steps, loads or phases.
    pub(crate) complete: bool,
}

impl<'p> Names<'p> {
    pub(super) fn subject(&self, name: &str) -> Option<Subject> {
        if name.is_empty() {
            return Some(Subject::Steps(self.ids(&|step| step.kind.is_attempt())));
        }
        let stage = || self.stages().find(|stage| is_word(name, stage.word()));
        if let Some(trend) = self.trend(name) {
            return Some(trend);
        }
        let found = self.step(name).or_else(|| stage().map(Subject::Stage));
        found.or_else(|| self.chosen(name))
    }

    /// The trend with this name.
    fn trend(&self, name: &str) -> Option<Subject> {
        let words: Vec<&str> = name.split_whitespace().collect();
        let name = words.join(" ");
        let is = |step: &StepInfo| step.kind == StepKind::Trend && step.name == name;
        let step = *self.ids(&is).first()?;
        let unit = self.steps[step.index()].unit?;
        Some(Subject::Trend { step, unit })
    }

    pub(super) fn ids(&self, keep: &dyn Fn(&StepInfo) -> bool) -> Vec<StepId> {
        let steps = self.steps.iter().enumerate();
        steps.filter(|(_, step)| keep(step)).map(|(i, _)| StepId(i as u16)).collect()
    }

    /// `heartbeats.lost`, or `heartbeats lost` unless a step has that name.
    pub(super) fn counter(&self, name: &str) -> Option<Counter> {
        let found = Counter::ALL.iter().copied().find(|counter| is_word(name, counter.word()));
        found.filter(|_| self.step(name).is_none())
    }

    /// The stages of the scenario's connections; those of HTTP end with opening.
    pub(super) fn stages(&self) -> impl Iterator<Item = Stage> + Clone {
        let is_http = self.is_http;
        Stage::ALL.into_iter().filter(move |stage| stage.opens() || !is_http)
    }

    /// The steps with this name.
    pub(super) fn step(&self, name: &str) -> Option<Subject> {
        let words: Vec<&str> = name.split_whitespace().collect();
        let name = words.join(" ");
        // A kind means all steps of the kind, even if a step has the same name; the name of a
        // transaction means the transaction and not a step of the same name.
        let found = [
            self.ids(&|step| step.kind.word() == name),
            self.ids(&|step| step.kind == StepKind::Transaction && step.name == name),
            self.ids(&|step| step.name == name),
        ];
        found.into_iter().find(|ids| !ids.is_empty()).map(Subject::Steps)
    }

    /// The number of the load with this name. A single load has none.
    pub(super) fn is_load(&self, name: &str) -> Option<u16> {
        let found = self.loads.iter().position(|load| load.name == name);
        found.filter(|_| !name.is_empty()).and_then(|found| u16::try_from(found).ok())
    }

    /// The phases with this name, `PHASE` or `LOAD / PHASE`: their load, and their number through
    /// all loads.
    pub(super) fn phases_called(&self, name: &str) -> Vec<(&'p Load, u16)> {
        let loads = self.loads.iter();
        let all = loads.flat_map(|load| load.phases.iter().map(move |phase| (load, phase)));
        let is_called = |load: &Load, phase: &str| {
            let within = name.strip_prefix(load.name.as_str()).map(str::trim_start);
            let within = within.and_then(|rest| rest.strip_prefix('/')).map(str::trim_start);
            phase == name || !load.name.is_empty() && within == Some(phase)
        };
        let called = (0..).zip(all).filter(|(_, (load, phase))| is_called(load, &phase.name));
        called.map(|(number, (load, _))| (load, number)).collect()
    }

    /// `room talk lost`, and `room talk lost rate`: a figure of a delivery.
    pub(super) fn delivery(&self, left: &str) -> Option<(StepId, DeliveryCounter, Measure)> {
        let (left, measure) = match left.rsplit_once(char::is_whitespace) {
            Some((before, "rate")) => (before.trim_end(), Measure::Rate),
            Some((before, "count")) => (before.trim_end(), Measure::Count),
            _ => (left, Measure::Count),
        };
        let (name, word) = left.rsplit_once(char::is_whitespace)?;
        let counter = DeliveryCounter::ALL.iter().find(|counter| counter.word() == word)?;
        let words: Vec<&str> = name.split_whitespace().collect();
        let name = words.join(" ");
        let is_row = |step: &&StepId| {
            let step = &self.steps[step.index()];
            step.kind == StepKind::Delivery && step.name == name
        };
        let rows = self.ids(&|_| true);
        rows.iter().find(is_row).map(|step| (*step, *counter, measure))
    }

    /// True if it includes HTTP requests.
    pub(super) fn asks(&self, subject: &Subject) -> bool {
        let asks = |id: &StepId| self.steps[id.index()].kind.is_http();
        matches!(subject, Subject::Steps(ids) if ids.is_empty() || ids.iter().any(asks))
    }

    pub(super) fn connects(&self, subject: &Subject) -> bool {
        let connects = |id: &StepId| self.steps[id.index()].kind == StepKind::Connect;
        matches!(subject, Subject::Steps(ids) if !ids.is_empty() && ids.iter().all(connects))
    }

    /// The steps with this name and these labels.
    fn chosen(&self, subject: &str) -> Option<Subject> {
        let chosen = Chosen::of(subject)?;
        let Subject::Steps(mut ids) = self.subject(chosen.name)? else { return None };
        let has_all = |step: usize| {
            let labels = &self.steps[step].labels;
            chosen
                .labels
                .iter()
                .all(|(name, value)| labels.get(*name).is_some_and(|it| it == value))
        };
        ids.retain(|id| has_all(id.index()));
        (!ids.is_empty()).then_some(Subject::Steps(ids))
    }
}
