//! The first findings, two lines each.

use throng_base::Said;

use super::super::findings::{beside_verdict, ink, span};
use super::super::text::clean;
use super::super::{Ink, Style};
use super::{labelled, line};
use crate::summary::Summary;
use throng_why::Trend;

/// The most certain findings; empty if there are none.
pub(super) fn findings(summary: &Summary, most: usize, style: &Style) -> String {
    let mut out = String::new();
    for (at, finding) in beside_verdict(summary).take(most).enumerate() {
        let label = if at == 0 { say!("findings") } else { Said::default() };
        out += &labelled(label, &clean(&style.say(finding.text.clone())), style);
        let level = style.say(finding.level.text());
        let code = finding.code.word();
        let second = format!("{level} · {} · throng explain {code}", span(finding, style));
        let second = labelled(Said::default(), &second, style);
        out += &line(ink(finding.level), second.trim_end(), style);
    }
    let more = beside_verdict(summary).count().saturating_sub(most);
    if more > 0 && most > 0 {
        let text = style.say(say!("… more findings with `throng why`: {}", more));
        out += &line(Ink::Dim, labelled(Said::default(), &text, style).trim_end(), style);
    }
    out
}

/// Whether a long load was stable, and what was not; empty for other loads.
pub(super) fn stability(summary: &Summary, style: &Style) -> String {
    let Some(found) = &summary.verdict.why.stability else { return String::new() };
    let word = style.say(found.text());
    let told = match found.measures.iter().find(|it| it.trend == Trend::Grows) {
        Some(grows) => format!("{word} · {}", style.say(grows.text())),
        None => word,
    };
    let ink = match found.is_stable() {
        Some(true) => Ink::Good,
        Some(false) => Ink::Bad,
        None => Ink::Warn,
    };
    line(ink, labelled(say!("stability"), &clean(&told), style).trim_end(), style)
}

/// What limited the service at the border of a search.
pub(super) fn gave_way(summary: &Summary, most: usize, style: &Style) -> String {
    let all = summary.verdict.why.gave_way.iter().take(most);
    let rows = all.enumerate().map(|(at, it)| {
        let label = if at == 0 { say!("bottlenecks") } else { Said::default() };
        labelled(label, &clean(&style.say(it.text.clone())), style)
    });
    rows.collect()
}
