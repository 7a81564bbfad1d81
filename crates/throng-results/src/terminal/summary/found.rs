//! The first findings, two lines each.

use throng_base::Said;

use super::super::findings::{ink, span};
use super::super::text::clean;
use super::super::{Ink, Style};
use super::{labelled, line};
use crate::summary::Summary;

/// The surest of them; nothing where there is nothing.
pub(super) fn findings(summary: &Summary, most: usize, style: &Style) -> String {
    let Some(judged) = &summary.verdict.why else { return String::new() };
    let mut out = String::new();
    for (at, finding) in judged.findings.iter().take(most).enumerate() {
        let label = if at == 0 { say!("findings") } else { Said::default() };
        out += &labelled(label, &clean(&style.say(finding.text.clone())), style);
        let level = style.say(finding.level.text());
        let code = finding.code.word();
        let second = format!("{level} · {} · throng explain {code}", span(finding, style));
        let second = labelled(Said::default(), &second, style);
        out += &line(ink(finding.level), second.trim_end(), style);
    }
    let more = judged.findings.len().saturating_sub(most);
    if more > 0 && most > 0 {
        let text = style.say(say!("… more findings with `throng why`: {}", more));
        out += &line(Ink::Dim, labelled(Said::default(), &text, style).trim_end(), style);
    }
    out
}
