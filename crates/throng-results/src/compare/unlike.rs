//! Other differences between two runs, which may explain changed results.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use throng_base::Said;

use super::Sampled;
use crate::directory::RunInfo;
use crate::summary::{Damage, Validity};

/// Maximum number of characters quoted from a text.
const TEXT_CHARS_MAX: usize = 60;

pub(super) fn unlike(baseline: &Sampled, other: &Sampled) -> Vec<Said> {
    let mut all = Vec::new();
    for (run, is_baseline) in [(baseline, true), (other, false)] {
        all.extend(flaws(run).map(|flaw| match is_baseline {
            true => say!("the baseline {flaw}"),
            false => say!("the run {flaw}"),
        }));
    }
    all.extend(Facts::of(baseline).changed(&Facts::of(other)));
    let seeds = (baseline.summary.info.seed, other.summary.info.seed);
    if seeds.0 != seeds.1 {
        all.push(changed(&say!("seed"), &seeds.0.to_string(), &seeds.1.to_string()));
    }
    let only = |these: &Sampled, those: &Sampled| {
        let missing = these.steps().filter(|(_, it)| those.find(&it.name, it.kind).is_none());
        missing.count()
    };
    match (only(baseline, other), only(other, baseline)) {
        (0, 0) => {}
        (gone, new) => all.push(say!("steps in only one of the runs: {gone} removed, {new} added")),
    }
    all
}

/// The inputs of a run that may affect its results.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// A digest of the scenario.
    scenario: u64,
    facts: Vec<(Said, String)>,
}

impl Facts {
    pub(super) fn of(run: &Sampled) -> Facts {
        let info = &run.summary.info;
        let host = &info.generator.host;
        let fact = |fact: &Option<String>| fact.clone().unwrap_or_default();
        let mut digest = DefaultHasher::new();
        run.scenario.hash(&mut digest);
        let facts = [
            (say!("target"), info.targets.urls.join(", ")),
            (say!("users"), info.users_planned.to_string()),
            (say!("load"), changes(info)),
            (say!("version"), info.build.text()),
            (say!("host"), fact(&host.hostname)),
            (say!("processor"), fact(&host.cpu_model)),
            (say!("processors"), host.cores_usable.unwrap_or(0).to_string()),
            (say!("shards"), info.generator.shards.to_string()),
            (say!("kernel"), fact(&host.kernel)),
        ];
        Facts { scenario: digest.finish(), facts: facts.into() }
    }

    /// The differences to another run.
    pub(super) fn changed(&self, other: &Facts) -> Vec<Said> {
        let mut all = Vec::new();
        if self.scenario != other.scenario {
            all.push(say!("the scenarios differ"));
        }
        let pairs = self.facts.iter().zip(&other.facts).filter(|(one, two)| one.1 != two.1);
        all.extend(pairs.map(|(one, two)| changed(&one.0, &one.1, &two.1)));
        all
    }
}

fn changed(what: &Said, before: &str, after: &str) -> Said {
    say!("{what}: {before} → {after}").shortened(TEXT_CHARS_MAX)
}

fn changes(info: &RunInfo) -> String {
    let all: Vec<String> = info.changes.iter().map(Said::english).collect();
    if all.is_empty() { "–".into() } else { all.join(", ") }
}

/// Reasons to interpret the results of a run with care.
fn flaws(run: &Sampled) -> impl Iterator<Item = Said> {
    let summary = &run.summary;
    let invalid = match &summary.verdict.validity {
        Validity::Valid => None,
        Validity::Invalid { reasons } => {
            let words: Vec<&str> = reasons.iter().map(|reason| reason.word()).collect();
            Some(say!("is invalid ({})", words.join(", ")))
        }
    };
    let ended = summary.verdict.unended.then(|| say!("has not ended"));
    let interrupted = summary.info.interrupted.then(|| say!("was interrupted"));
    let is_whole = summary.verdict.damage == Damage::default() && summary.info.lines_lost == 0;
    let damaged = (!is_whole).then(|| say!("has incomplete data"));
    [invalid, ended, interrupted, damaged].into_iter().flatten()
}
