//! One search on one virtual target.

use throng_metrics::Capacity;
use throng_metrics::capacity::{Level, LevelVerdict, LoadUnit};

use super::law::law;
use super::target::{Model, VirtualTarget};
use crate::capacity::hold::{Ended, Held, Hold, Order, Outcome, Wait, Waited};
use crate::capacity::search::{BASE_PART, Search, Settings, refined_s};

/// A finished search, and the expected result.
#[derive(Clone, Debug)]
pub struct Searched {
    pub answer: Capacity,
    /// The law at the middle of the refinement.
    pub law: f64,
    /// Number of times that the target collapsed.
    pub collapses: u32,
    /// Number of second consecutive loads above one that had failed.
    pub rises: usize,
}

/// The default settings of the command line: the first level is a twentieth of the target's rate,
/// the budget is 20 minutes, with a minute of confirmation and an overload.
pub fn settings(model: Model, rate: f64, seed: u64) -> Settings {
    Settings {
        goals: model.goals(rate),
        unit: LoadUnit::PerS,
        base: rate / BASE_PART,
        max: None,
        budget_s: 1200.0,
        confirm_s: 60,
        overload: true,
        seed,
    }
}

/// Runs a search to its end.
pub fn search(model: Model, rate: f64, settings: Settings) -> Searched {
    let mut target = VirtualTarget::new(model, rate, settings.seed);
    let mut search = Search::new(settings);
    loop {
        let outcome = match search.order() {
            Order::Hold(order) => Outcome::Held(hold(&search, &mut target, &order)),
            Order::Wait(order) => Outcome::Waited(wait(&search, &mut target, &order)),
            Order::Finish => break,
        };
        search.handle(outcome);
    }
    let answer = search.answer();
    Searched {
        law: law(model, rate, refined_s(answer.levels.iter()).unwrap_or(0.0)),
        collapses: target.collapses(),
        rises: rises(&answer.levels),
        answer,
    }
}

fn hold(search: &Search, target: &mut VirtualTarget, order: &Hold) -> Held {
    let mut judge = search.judge();
    target.percentiles();
    let (mut settled_s, mut seconds, mut ended) = (0.0, Vec::new(), Ended::Full);
    for passed in 0..order.settle_s + order.seconds {
        let second = target.second(order.load);
        let gave_up = judge.as_mut().and_then(|judge| judge.second(&second));
        if passed < order.settle_s && gave_up.is_none() {
            settled_s += 1.0;
            continue;
        }
        seconds.push(second);
        if let Some(why) = gave_up {
            ended = Ended::GaveUp(why);
            break;
        }
    }
    let percentiles = target.percentiles();
    Held { settled_s, seconds, ended, unmet: None, percentiles, online: None }
}

fn wait(search: &Search, target: &mut VirtualTarget, order: &Wait) -> Waited {
    let mut watch = search.watch();
    for passed in 1..=order.seconds_max {
        let second = target.second(order.load);
        if watch.as_mut().is_some_and(|watch| watch.second(&second, None)) {
            return Waited { delayed_s: 0.0, seconds: f64::from(passed), reached: true };
        }
    }
    Waited { delayed_s: 0.0, seconds: f64::from(order.seconds_max), reached: false }
}

fn rises(levels: &[Level]) -> usize {
    let (mut failed, mut above, mut rises) = (f64::INFINITY, 0, 0);
    for level in levels {
        if level.load > failed {
            above += 1;
            rises += usize::from(above > 1);
        }
        match level.verdict {
            LevelVerdict::Met if level.load < failed => (failed, above) = (f64::INFINITY, 0),
            LevelVerdict::NotMet(_) if level.load < failed => (failed, above) = (level.load, 0),
            _ => {}
        }
    }
    rises
}
