//! What else differs between two runs, and so may be why their figures do.

use throng_base::Said;

use super::Sampled;
use crate::directory::RunInfo;
use crate::summary::{Damage, Validity};

/// Texts are told up to this many characters.
const TEXT_CHARS_MAX: usize = 60;

// sentences
pub(super) fn unlike(baseline: &Sampled, other: &Sampled) -> Vec<Said> {
    let (one, two) = (&baseline.summary.info, &other.summary.info);
    let mut all = Vec::new();
    for (run, is_baseline) in [(baseline, true), (other, false)] {
        all.extend(flaws(run).map(|flaw| match is_baseline {
            true => say!("the baseline {flaw}"),
            false => say!("the run {flaw}"),
        }));
    }
    if baseline.scenario != other.scenario {
        all.push(say!("the scenario is another one"));
    }
    let texts = |texts: &[String]| texts.join(", ");
    let fact = |fact: Option<&String>| fact.cloned().unwrap_or_default();
    let (host, other_host) = (&one.host, &two.host);
    let cores = |info: &RunInfo| info.host.cores_usable.unwrap_or(0).to_string();
    let facts = [
        (say!("target"), texts(&one.targets), texts(&two.targets)),
        (say!("users"), one.users_planned.to_string(), two.users_planned.to_string()),
        (say!("load"), changes(one), changes(two)),
        (say!("seed"), one.seed.to_string(), two.seed.to_string()),
        (say!("version"), one.throng_version.clone(), two.throng_version.clone()),
        (say!("host"), fact(host.hostname.as_ref()), fact(other_host.hostname.as_ref())),
        (say!("processor"), fact(host.cpu_model.as_ref()), fact(other_host.cpu_model.as_ref())),
        (say!("processors"), cores(one), cores(two)),
        (say!("shards"), one.shards.to_string(), two.shards.to_string()),
        (say!("kernel"), fact(host.kernel.as_ref()), fact(other_host.kernel.as_ref())),
    ];
    for (what, before, after) in facts {
        if before != after {
            let told = say!("{what}: {before} → {after}");
            all.push(told.shortened(TEXT_CHARS_MAX));
        }
    }
    let only = |these: &Sampled, those: &Sampled| {
        let missing = these.steps().filter(|(_, it)| those.find(&it.name, &it.kind).is_none());
        missing.count()
    };
    match (only(baseline, other), only(other, baseline)) {
        (0, 0) => {}
        (gone, new) => all.push(say!("steps that only one has: {gone} gone, {new} new")),
    }
    all
}

fn changes(info: &RunInfo) -> String {
    let all: Vec<String> = info.changes.iter().map(Said::english).collect();
    if all.is_empty() { "–".into() } else { all.join(", ") }
}

/// Why the figures of a run are to be taken with care.
// sentences
fn flaws(run: &Sampled) -> impl Iterator<Item = Said> {
    let summary = &run.summary;
    let invalid = match &summary.validity {
        Validity::Valid => None,
        Validity::Invalid { reasons } => {
            let words: Vec<&str> = reasons.iter().map(|reason| reason.word()).collect();
            Some(say!("is invalid ({})", words.join(", ")))
        }
    };
    let ended = summary.unended.then(|| say!("has not ended"));
    let interrupted = summary.info.interrupted.then(|| say!("was interrupted"));
    let is_whole = summary.damage == Damage::default() && summary.info.lines_lost == 0;
    let damaged = (!is_whole).then(|| say!("has a record that is not complete"));
    [invalid, ended, interrupted, damaged].into_iter().flatten()
}
