//! The findings of a run: short in its summary, complete for `throng why`.

use std::collections::BTreeMap;

use throng_base::Said;
use throng_why::{Code, Finding, Judged, Level, Needs, Span, Trend, Unknown};

use super::text::{clean, second, wrap};
use super::{Ink, Style};
use crate::summary::Summary;

/// Indentation of the text below a finding.
const INDENT: &str = "  ";

/// All findings of a run, with evidence and alternative causes, and the rules that lacked data.
pub fn findings_text(summary: &Summary, judged: &Judged, style: &Style) -> String {
    let mut out = head(summary, judged, style);
    for finding in &judged.findings {
        out.push('\n');
        out += &full(finding, style);
    }
    out += &stability(judged, style);
    out += &gave_way(judged, style);
    out += &not_judged(judged, style);
    if style.ascii { super::text::ascii(&out) } else { out }
}

/// The findings as a section of the report.
pub(super) fn section(summary: &Summary, style: &Style) -> String {
    let all: Vec<String> = beside_verdict(summary).map(|it| full(it, style)).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!("{}\n{}", style.bold(&style.say(say!("findings"))), all.join("\n")),
    }
}

/// Findings that the verdict and its warnings do not contain. Those concern throng itself.
pub(super) fn beside_verdict(summary: &Summary) -> impl Iterator<Item = &Finding> {
    summary.verdict.why.findings.iter().filter(|it| it.code != Code::GeneratorBound)
}

fn head(summary: &Summary, judged: &Judged, style: &Style) -> String {
    let found = match judged.findings.len() {
        0 if !judged.doubts.is_empty() => say!("no findings: the results are inconsistent"),
        0 => say!("nothing found"),
        1 => say!("1 finding"),
        more => say!("{} findings", more),
    };
    let name = style.bold(&clean(&summary.info.name));
    let mut out = format!("{name} · {}\n", style.say(found));
    for doubt in &judged.doubts {
        out += &paragraph(&style.say(doubt.clone()), INDENT, style);
    }
    if let Some(until) = judged.until_s {
        let text = style.say(say!(
            "the end of the run was not recorded; the findings cover it \
             up to {}",
            second(until)
        ));
        out += &paragraph(&text, INDENT, style);
    }
    out
}

pub(super) fn ink(level: Level) -> Ink {
    match level {
        Level::Certain => Ink::Bad,
        Level::Likely => Ink::Warn,
        Level::Hint => Ink::Dim,
    }
}

/// The time span of a finding.
pub(super) fn span(finding: &Finding, style: &Style) -> String {
    part(finding.when, style)
}

fn part(span: Span, style: &Style) -> String {
    let (from, to) = (second(span.from_s), second(span.to_s));
    style.say(say!("{from} to {to}"))
}

fn full(finding: &Finding, style: &Style) -> String {
    let level = style.paint(ink(finding.level), &style.say(finding.level.text()));
    let code = style.bold(finding.code.word());
    let mut out = format!("{code} · {level} · {}\n", span(finding, style));
    out += &paragraph(&style.say(finding.text.clone()), INDENT, style);
    for figure in &finding.evidence {
        let text = style.say(figure.text.clone());
        let when = match figure.when == finding.when {
            true => String::new(),
            false => {
                format!(" ({})", part(figure.when, style))
            }
        };
        out += &item("·", &format!("{text}{when}"), style);
    }
    for rival in &finding.excluded {
        let (cause, how) = (style.say(rival.cause.clone()), style.say(rival.how.clone()));
        let text = style.say(say!("ruled out: {} ({})", cause, how));
        out += &item("✗", &text, style);
    }
    out + &item("→", &style.say(finding.next.clone()), style)
}

fn item(sign: &str, text: &str, style: &Style) -> String {
    let room = style.columns() - INDENT.len() - 2;
    let lines = wrap(&clean(text), room);
    let line = |(at, line): (usize, &String)| {
        let lead = if at == 0 { sign } else { " " };
        format!("{INDENT}{lead} {line}\n")
    };
    lines.iter().enumerate().map(line).collect()
}

fn paragraph(text: &str, indent: &str, style: &Style) -> String {
    let lines = wrap(&clean(text), style.columns() - indent.len());
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

/// The trend of each metric of a long load.
fn stability(judged: &Judged, style: &Style) -> String {
    let Some(found) = &judged.stability else { return String::new() };
    let title = style.bold(&style.say(say!("stability")));
    let (from, to) = (second(found.when.from_s), second(found.when.to_s));
    let mut out = format!("\n{title} · {} · {from} – {to}\n", style.say(found.text()));
    for measure in &found.measures {
        let sign = if measure.trend == Trend::Grows { "✗" } else { "·" };
        let apart = say!("{:.1} standard errors apart", (measure.apart.abs()));
        let text = format!("{} · {}", style.say(measure.text()), style.say(apart));
        out += &item(sign, &text, style);
    }
    out
}

/// What limited the service at the border of a capacity search.
fn gave_way(judged: &Judged, style: &Style) -> String {
    if judged.gave_way.is_empty() {
        return String::new();
    }
    let title = style.bold(&style.say(say!("bottlenecks")));
    let rows = judged.gave_way.iter().map(|it| item("·", &style.say(it.text.clone()), style));
    format!("\n{title}\n{}", rows.collect::<String>())
}

/// Why other rules could not be evaluated.
fn not_judged(judged: &Judged, style: &Style) -> String {
    if !judged.doubts.is_empty() {
        return String::new();
    }
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (code, why) in &judged.unknown {
        groups.entry(style.say(reason(why))).or_default().push(code.word());
    }
    if groups.is_empty() {
        return String::new();
    }
    let title = style.bold(&style.say(say!("not judged")));
    let mut out = format!("\n{title}\n");
    for (reason, codes) in groups {
        out += &paragraph(&format!("{reason}: {}", codes.join(", ")), INDENT, style);
    }
    out
}

fn reason(why: &Unknown) -> Said {
    match why {
        Unknown::TooShort { needs_s } => {
            let needs = second(*needs_s as f64);
            say!("too short: at least {} of constant load are required", needs)
        }
        Unknown::ExplainedBy { code } => say!("explained by {}", code.word()),
        Unknown::TooCoarse { point_s } => {
            say!(
                "the run is too long: its results have a resolution of only {}",
                second(*point_s as f64)
            )
        }
        Unknown::NotRecorded { needs: Needs::Monitor } => {
            say!("requires a monitor of the target's host (docs/monitor.md)")
        }
        Unknown::NotRecorded { needs: Needs::Format(format) } => {
            say!("not recorded before format {} of the run directory", *format)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::summary_text;
    use crate::tests::sample;

    #[test]
    fn findings_are_shown_with_evidence_and_alternatives() {
        let summary = sample::summary();
        let judged = sample::judged();
        let text = findings_text(&summary, &judged, &Style::plain());
        for part in [
            "quick check · 2 findings\n",
            "plateau-residence · likely · 2s to 12s\n  open connections settle at 2,400\n",
            "  · before: none (0s to 2s)\n",
            "  ✗ ruled out: a limit (new ones still open)\n",
            "  → look for a timeout of 8.00s\n",
            "explained by saturated: warm-up\n",
            "too short: at least 5m00s of constant load are required: drift\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let doubtful = Judged { doubts: vec![say!("unknown")], ..Judged::default() };
        let text = findings_text(&summary, &doubtful, &Style::plain());
        assert!(text.contains("are inconsistent\n  unknown\n"), "{text}");
        let killed = Judged { until_s: Some(61.0), ..Judged::default() };
        let text = findings_text(&summary, &killed, &Style::plain());
        assert!(
            text.contains(
                "nothing found\n  the end of the run was not recorded; the findings \
                 cover it up to 1m01s"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_summary_has_two_lines_per_finding() {
        let mut summary = sample::summary();
        summary.verdict.why = Judged::default();
        let without = summary_text(&summary, &Style::plain());
        assert!(!without.contains("findings"), "{without}");
        summary.verdict.why = sample::judged();
        let with = summary_text(&summary, &Style::plain());
        let lines = "findings     open connections settle at 2,400\n             likely · 2s to 12s · \
                     throng explain plateau-residence\n";
        assert!(with.contains(lines) && with.lines().count() <= 23, "{with}");
        let details = summary_text(&summary, &Style { details: true, ..Style::plain() });
        assert!(details.contains("ruled out: a limit"), "{details}");
    }
}
