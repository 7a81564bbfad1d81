//! Findings of a run.

use throng_base::Said;
use throng_why::{
    Code, Figure, Finding, GaveWay, Judged, Level, Measured, Rival, Span, Stability, Trend, Unknown,
};

/// Two findings, and two rules that lacked data.
pub(crate) fn judged() -> Judged {
    let told = |text: &str| Said::of_others(text);
    let when = Span::new(2.0, 12.0);
    let plateau = Finding {
        code: Code::PlateauResidence,
        level: Level::Likely,
        text: told("open connections settle at 2,400"),
        when,
        series: &["connections_open", "opened"],
        evidence: vec![
            Figure { text: told("lifetimes within 2 % of 8.00s: 99 %"), when },
            Figure { text: told("before: none"), when: Span::new(0.0, 2.0) },
        ],
        excluded: vec![Rival { cause: told("a limit"), how: told("new ones still open") }],
        next: told("look for a timeout of 8.00s"),
    };
    let hint = Finding { code: Code::TwoPeaks, level: Level::Hint, ..plateau.clone() };
    Judged {
        findings: vec![plateau, hint],
        unknown: vec![
            (Code::Drift, Unknown::TooShort { needs_s: 300 }),
            (Code::WarmUp, Unknown::ExplainedBy { code: Code::Saturated }),
        ],
        doubts: Vec::new(),
        until_s: None,
        gave_way: vec![GaveWay { code: Some(Code::PlateauResidence), text: say!("certain") }],
        stability: Some(Stability {
            when: Span::new(0.0, 12.0),
            measures: vec![Measured {
                name: say!("response time (median)"),
                key: "response_time".into(),
                unit: "ns",
                first: 2e6,
                last: 4e6,
                change: 0.7,
                apart: 9.0,
                trend: Trend::Grows,
            }],
        }),
    }
}
