//! A duel.

use throng_metrics::duel::{Compared, Duel, DuelChange, DuelCondition, DuelEnd, Fails};

use crate::Summary;
use crate::event::Event;

/// B is 3 % slower, and its CPU time is not known.
pub(crate) fn duel() -> Duel {
    let change = DuelChange { by: -0.03, low: -0.04, high: -0.02, named: true };
    let compared = |figure: &str, a: f64, b: Option<f64>, change: Option<DuelChange>| Compared {
        figure: figure.into(),
        a: Some(a),
        b,
        change,
    };
    let same = DuelChange { by: 0.002, low: -0.01, high: 0.014, named: false };
    Duel {
        sides: ["http://a".into(), "http://b".into()],
        slice_s: 5.0,
        pairs: 12,
        within: 0.01,
        budget_s: 300.0,
        ended_by: DuelEnd::Within,
        figures: vec![
            compared("rate", 10_000.0, Some(9_700.0), Some(change)),
            compared("p99", 2e6, Some(2.004e6), Some(same)),
            compared("target_cpu_per_attempt", 20_000.0, None, None),
        ],
        conditions: vec![DuelCondition { text: "rate < -2%".into(), fails: Fails::Yes }],
    }
}

pub(crate) fn dueled(duel: Duel) -> Summary {
    let mut info = super::info();
    info.tables.thresholds.clear();
    let mut events = super::events();
    events.insert(5, Event::Duel { at_ns: 11 * super::SECOND_NS, duel: Box::new(duel) });
    super::summary_of(info, &super::intervals(), &events)
}
