//! The first findings, two lines each.

use throng_base::Said;

use super::super::findings::{beside_verdict, ink, span};
use super::super::text::clean;
use super::super::{Ink, Style};
use super::{labelled, line};
use crate::summary::Summary;

/// The surest of them; nothing where there is nothing.
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
