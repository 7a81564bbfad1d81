//! What a search found, as it is recorded.

use throng_load::capacity as search;
use throng_results::capacity::{
    Basis, Capacity, Collapse, EndedBy, FailedBy, GeneratorLimit, Knee, Level, LevelVerdict,
    LoadUnit, Purpose,
};

use super::Wanted;

pub(crate) fn of(found: &search::Answer, wanted: &Wanted) -> Capacity {
    let thresholds = wanted.shares.iter().chain(&wanted.plain);
    let by = |by: search::FailedBy| failed_by(by, wanted);
    Capacity {
        unit: match found.unit {
            search::Unit::PerSecond => LoadUnit::PerS,
            search::Unit::Users => LoadUnit::Users,
        },
        varied: wanted.varied.clone(),
        thresholds: thresholds.map(|one| one.text.clone()).collect(),
        carries: found.carries,
        low: found.low,
        high: found.high,
        basis: match found.basis {
            search::Basis::Interval => Basis::Interval,
            search::Basis::Bracket => Basis::Bracket,
            search::Basis::AtLeast => Basis::AtLeast,
            search::Basis::Nothing => Basis::Nothing,
        },
        confirmed_s: found.confirmed_s,
        fails_at: found.fails_at,
        fails_by: found.fails_by.map(by),
        overloaded_at: found.overloaded_at,
        recovered_s: found.recovered_s,
        collapse: found.collapse.map(|it| Collapse {
            at: it.at,
            served: it.served,
            recovers_at: it.recovers_at,
            stays: it.stays,
        }),
        trend: found.trend,
        knee: Knee {
            optimal: found.knee.optimal,
            maximum: found.knee.maximum,
            collapse: found.knee.collapse,
        },
        levels: found.levels.iter().map(|one| level(one, wanted)).collect(),
        ended_by: match found.ended_by {
            search::EndedBy::Found => EndedBy::Found,
            search::EndedBy::BaseFails(cause) => EndedBy::BaseFails(by(cause)),
            search::EndedBy::Max => EndedBy::Max,
            search::EndedBy::Generator(limit) => EndedBy::Generator(generator(limit)),
            search::EndedBy::Budget => EndedBy::Budget,
            search::EndedBy::NotConfirmed => EndedBy::NotConfirmed,
            search::EndedBy::NotRecovered => EndedBy::NotRecovered,
            search::EndedBy::CollapsedAgain => EndedBy::CollapsedAgain,
            search::EndedBy::Asked => EndedBy::Asked,
        },
        spent_s: found.spent_s,
        budget_s: wanted.settings.budget_s,
        at_least: wanted.at_least,
        peak: wanted.peak,
    }
}

fn failed_by(by: search::FailedBy, wanted: &Wanted) -> FailedBy {
    let threshold = |list: &[throng_metrics::Threshold], index: usize| {
        FailedBy::Threshold(list.get(index).map_or(String::new(), |one| one.text.clone()))
    };
    match by {
        search::FailedBy::Share(index)
        | search::FailedBy::GaveUp(search::GaveUp::Strain(index)) => {
            threshold(&wanted.shares, index)
        }
        search::FailedBy::Plain(index) => threshold(&wanted.plain, index),
        search::FailedBy::GaveUp(search::GaveUp::Backlog) => FailedBy::Backlog,
        search::FailedBy::GaveUp(search::GaveUp::Failing) => FailedBy::Failing,
        search::FailedBy::GaveUp(search::GaveUp::Silence) => FailedBy::Silence,
        search::FailedBy::GaveUp(search::GaveUp::Gone) => FailedBy::Gone,
    }
}

fn generator(limit: search::Limit) -> GeneratorLimit {
    match limit {
        search::Limit::Lateness => GeneratorLimit::Lateness,
        search::Limit::Cpu => GeneratorLimit::Cpu,
        search::Limit::Ports => GeneratorLimit::Ports,
        search::Limit::Memory => GeneratorLimit::Memory,
        search::Limit::Users => GeneratorLimit::Users,
    }
}

fn level(one: &search::Level, wanted: &Wanted) -> Level {
    let ended = one.attempts / one.seconds.max(1e-9);
    Level {
        load: one.load,
        purpose: match one.purpose {
            search::Purpose::Climb => Purpose::Climb,
            search::Purpose::Bracket => Purpose::Bracket,
            search::Purpose::Refine => Purpose::Refine,
            search::Purpose::Confirm => Purpose::Confirm,
            search::Purpose::Beyond => Purpose::Beyond,
        },
        at_s: one.at_s,
        seconds: one.seconds,
        offered: one.offered,
        served: one.served,
        attempts: one.attempts.round() as u64,
        strain: one.strain.map(|(_, strain)| strain),
        mean_s: one.response_s,
        p50_s: one.percentiles.map(|it| it.p50_s),
        p90_s: one.percentiles.map(|it| it.p90_s),
        p99_s: one.percentiles.map(|it| it.p99_s),
        in_flight: one.in_flight,
        in_flight_expected: ended * one.response_s,
        online: one.online,
        verdict: match one.verdict {
            search::LevelVerdict::Met => LevelVerdict::Met,
            search::LevelVerdict::NotMet(by) => LevelVerdict::NotMet(failed_by(by, wanted)),
            search::LevelVerdict::GeneratorBound(limit) => {
                LevelVerdict::GeneratorBound(generator(limit))
            }
        },
    }
}
