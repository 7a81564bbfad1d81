//! The summary of a run as Markdown.

use std::time::Duration;

use throng_base::Said;
use throng_metrics::{Unit, Verdict};

use super::capacity::capacity_markdown;
use super::{escape, list, more, word};
use crate::actions::ActionRow;
use crate::summary::curves::Named;
use crate::summary::{ChangeOf, POINTS_MAX, Row, Summary};
use crate::terminal::columns::{Columns, TIMES};
use crate::terminal::curve::{BLOCKS, spark};
use crate::terminal::report::{duel, events, levels};
use crate::terminal::{Style, figure_text};
use crate::verdict::{headline, judge};
use throng_metrics::Duel;

const ROWS_MAX: usize = 20;
const LEVEL_ROWS_MAX: usize = 60;
const ERRORS_MAX: usize = 5;
const FINDINGS_MAX: usize = 5;
const EXAMPLE_CHARS_MAX: usize = 200;

pub fn summary_markdown(summary: &Summary) -> String {
    let info = &summary.info;
    let headline = headline(summary).text.english();
    let mut out = format!("### {}: {headline}\n\n", escape(&info.name));
    let (exit, reasons) = judge(summary);
    let targets = escape(&info.targets.urls.join(", "));
    let users = figure_text(Unit::Number, summary.users_most() as f64);
    let time = |time: Duration| figure_text(Unit::Nanoseconds, time.as_nanos() as f64);
    let length = match summary.is_measured_throughout() {
        true => time(summary.measured),
        false => format!("{} of {} measured", time(summary.measured), time(summary.lasted)),
    };
    let here = if info.targets.same_host { " (same host)" } else { "" };
    let started = escape(&info.time.started);
    let code = exit.code();
    out += &format!("{targets}{here}, {users} users, {length}, {started}, exit code {code}\n\n");
    out += &summary.capacity.as_deref().map(capacity_markdown).unwrap_or_default();
    out += &summary.duel.as_deref().map(dueled).unwrap_or_default();
    let attempts = summary.attempts_word().english();
    let total = (format!("all {attempts}"), &summary.steps.total);
    let rows =
        summary.steps.rows.iter().chain(&summary.steps.transactions).filter(|row| row.count > 0);
    let rows: Vec<&Row> = rows.collect();
    // The row of a single step would equal that of all attempts.
    let told = if rows.len() > 1 { &rows[..] } else { &[] };
    let shown = told.iter().take(ROWS_MAX).map(|row| (row.name.clone(), *row));
    out += &steps(attempts, &std::iter::once(total).chain(shown).collect::<Vec<_>>());
    out += &more(told.len(), ROWS_MAX, " steps");
    out += &levels_of_load(summary);
    out += &audits(summary);
    out += &events_of_run(summary);
    let drawn = curves_text(summary);
    if !drawn.is_empty() {
        out += &format!("\n```text\n{drawn}```\n");
    }
    // Thresholds that were not met have their own line.
    let is_threshold = |reason: &&Said| {
        let reason = reason.english();
        summary.verdict.thresholds.iter().any(|it| reason.ends_with(&format!(": {}", it.text)))
    };
    let notes = reasons.iter().filter(|reason| !is_threshold(reason));
    let notes = notes.map(|reason| escape(&reason.english()));
    let notes = notes.chain(summary.verdict.thresholds.iter().map(|threshold| {
        let word = match threshold.verdict {
            Verdict::Met(_) => "met",
            Verdict::NotMet(_) => "**not met**",
            Verdict::Indeterminate(_) => "**undetermined**",
            Verdict::Unknown => "**not measured**",
        };
        let largest =
            threshold.largest_of.map(|values| format!(", the largest of {values} values"));
        let largest = largest.unwrap_or_default();
        let figure = threshold
            .figure()
            .map(|figure| format!(" ({}{largest})", figure_text(threshold.unit, figure)));
        format!("{word}: {}{}", escape(&threshold.text), figure.unwrap_or_default())
    }));
    let notes = notes
        .chain(findings(summary))
        .chain(after(summary))
        .chain(deliveries(summary))
        .chain(changes(summary));
    out + &list(notes.chain(errors(summary)))
}

/// The sentence and the figures of a duel.
fn dueled(found: &Duel) -> String {
    let [a, b] = found.sides.each_ref().map(|side| escape(side));
    let (verdict, pairs) = (escape(&found.verdict().english()), found.pairs);
    let mut out = format!("**{verdict}**: {pairs} pairs of slices, A is {a}, B is {b}\n\n");
    out += &duel::table(found, &Style::plain()).markdown(escape);
    let conditions = found.conditions.iter().map(|one| escape(&one.text().english()));
    out + &list(conditions) + "\n"
}

/// The steps at each level; empty if the load never changed.
fn levels_of_load(summary: &Summary) -> String {
    if !summary.has_levels() {
        return String::new();
    }
    let lines = levels::all_lines(summary, &Style::plain());
    let table = levels::all_columns().table(lines.iter().take(LEVEL_ROWS_MAX));
    format!("\n{}{}", table.markdown(escape), more(lines.len(), LEVEL_ROWS_MAX, " rows"))
}

fn audits(summary: &Summary) -> String {
    let told: Vec<Said> = summary.audits.iter().flat_map(|row| row.sentences()).collect();
    let lines = told.iter().take(ROWS_MAX);
    let lines = lines.map(|text| format!("audit {}", escape(&text.english())));
    list(lines) + &more(told.len(), ROWS_MAX, "")
}

/// The results around each event, and its sentence.
fn events_of_run(summary: &Summary) -> String {
    let all = &summary.events.actions;
    if all.is_empty() {
        return String::new();
    }
    let shown = &all[..all.len().min(ROWS_MAX)];
    let sentences: String = shown.iter().map(event).collect();
    let parts = events::parts(shown, &Style::plain());
    let around = match parts.is_empty() {
        true => String::new(),
        false => format!("\n{}", events::around_columns().table(&parts).markdown(escape)),
    };
    format!("{around}\n{sentences}{}", more(all.len(), ROWS_MAX, " events"))
}

/// Its time, its result and its effect.
fn event(row: &ActionRow) -> String {
    let name = escape(&row.name);
    let at = row.at_ns.map(|at| figure_text(Unit::Nanoseconds, at as f64));
    let at = at.map_or_else(String::new, |at| format!(" at {at}"));
    let detail = row.detail.english();
    let detail = if detail.is_empty() { String::new() } else { format!(" ({})", escape(&detail)) };
    let status = row.status.text().english();
    let changed = row.paragraph().map(|it| format!(": {}", escape(&it.english())));
    format!("- **{name}**{at}, {}, {status}{detail}{}\n", row.action, changed.unwrap_or_default())
}

fn curves_text(summary: &Summary) -> String {
    let line = |curve: Named<'_>| {
        let drawn = spark(curve.values, POINTS_MAX, &BLOCKS);
        let [least, most] = [curve.least, curve.most].map(|it| figure_text(curve.unit, it));
        let range = if least == most { least } else { format!("{least} to {most}") };
        format!("{:<5}  {drawn}  {range}\n", curve.name.english())
    };
    summary.curves.named().map(line).collect()
}

/// Rows with their names.
fn steps(attempts: String, rows: &[(String, &Row)]) -> String {
    let failed = |row: &Row| row.failed as f64 / row.count.max(1) as f64;
    Columns::of(word(""), |(name, _): &(String, &Row)| name.clone())
        .cell(word(attempts), |(_, row)| figure_text(Unit::Number, row.count as f64))
        .cell(word("ok/s"), |(_, row)| figure_text(Unit::PerSecond, row.ok_per_s))
        .cell(word("failed"), |(_, row)| figure_text(Unit::Share, failed(row)))
        .times(&TIMES, |(_, row)| row.latency)
        .table(rows)
        .markdown(escape)
}

/// Why the rate and the failures do not add up to all attempts.
fn after(summary: &Summary) -> Option<String> {
    let after = figure_text(Unit::Number, summary.ok_after_told()? as f64);
    let attempts = summary.attempts_word().english();
    Some(format!("{after} {attempts} succeeded after the load ended; no rate includes them"))
}

/// The most certain findings: what happened, when, and what to do next.
fn findings(summary: &Summary) -> impl Iterator<Item = String> {
    let found = summary.verdict.why.findings.iter();
    found.take(FINDINGS_MAX).map(|it| {
        let at = |seconds: f64| figure_text(Unit::Nanoseconds, seconds * 1e9);
        let (code, level) = (it.code.word(), it.level.word());
        let (text, next) = (escape(&it.text.english()), escape(&it.next.english()));
        let when = format!("{} to {}", at(it.when.from_s), at(it.when.to_s));
        format!("**{code}** ({level}, {when}): {text}; next: {next}")
    })
}

fn deliveries(summary: &Summary) -> impl Iterator<Item = String> {
    let rows = summary.messages.deliveries.iter().filter(|row| row.counts.expected > 0);
    rows.take(ROWS_MAX).map(|row| {
        let c = &row.counts;
        let number = |count: u64| figure_text(Unit::Number, count as f64);
        let [delivered, expected] = [c.delivered, c.expected].map(number);
        let [lost, undetermined] = [c.lost, c.excused].map(number);
        let name = escape(&row.name);
        format!(
            "{name}: {delivered} of {expected} delivered, {lost} lost, {undetermined} undetermined"
        )
    })
}

/// What the operator changed during the run.
fn changes(summary: &Summary) -> impl Iterator<Item = String> {
    summary.events.changes.first.iter().take(ROWS_MAX).map(|change| {
        let at = figure_text(Unit::Nanoseconds, change.at_ns as f64);
        let what = escape(&change.what);
        match &change.of {
            ChangeOf::Phase(phase) => format!("at {at}, {}: {what}", escape(phase)),
            ChangeOf::Mark => format!("at {at}: marked {what}"),
            ChangeOf::Addresses => format!("at {at}: {what}"),
        }
    })
}

fn errors(summary: &Summary) -> impl Iterator<Item = String> {
    summary.steps.errors.iter().take(ERRORS_MAX).map(|error| {
        let example = error.example.as_ref().map(|example| {
            let detail: String =
                Said::english(&example.detail).chars().take(EXAMPLE_CHARS_MAX).collect();
            format!(" ({})", escape(&detail))
        });
        let (step, cause) = (escape(&error.step), error.cause.word());
        format!("{} × {cause} in {step}{}", error.count, example.unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Curves;
    use crate::tests::sample;

    #[test]
    fn a_run_as_a_pull_request_comment() {
        let mut summary = sample::summary();
        summary.curves = Curves {
            rate: vec![Some(10.0), Some(20.0)],
            p99: vec![None, Some(1e6)],
            users: vec![Some(3.0); 2],
        };
        let text = summary_markdown(&summary);
        for part in [
            "### quick check: thresholds met",
            "| all requests | 101,000 |",
            "| GET / | 100,000 |",
            "rate   ▁█  10.0/s to 20.0/s",
            "p99     █  1.00ms\n",
            "64 users, 10.0s of 12.0s measured, 2026",
            "| | requests | ok/s | failed |",
            "- met: http p99 &lt; 50ms (",
            " × status-unexpected in GET / (HTTP/1.1 503 Service Unavailable\\\\r\\\\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn an_unmet_threshold_is_shown_once() {
        let mut summary = sample::summary();
        summary.verdict.thresholds[0].verdict = Verdict::NotMet(1e9);
        let text = summary_markdown(&summary);
        assert_eq!(text.matches("http p99 &lt; 50ms").count(), 1, "{text}");
    }

    #[test]
    fn deliveries_add_up() {
        let text = summary_markdown(&sample::chat());
        let line = "- room talk: 19,999,928 of 20,000,000 delivered, 2 lost, 70 undetermined\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_target_s_text_is_never_markup() {
        let mut summary = sample::summary();
        summary.info.name = "<script>alert(1)</script>\n# x".into();
        summary.info.targets.urls = vec!["http://a|b`".into()];
        summary.steps.rows[0].name = "| a\n| b @all <img src=x>".into();
        let text = summary_markdown(&summary);
        for part in ["<script", "<img", "@all", "\n# x", "\n| b", "http://"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn both_sides_and_their_differences_are_shown() {
        let text = dueled(&sample::duel::duel());
        for part in [
            "**A is faster by 3.1 % \\(2.0 to 4.2\\)**: 12 pairs of slices, A is http:&#47;/a, B is",
            "| rate | 10,000/s | 9,700/s | −3.0 % | −4.0 % … −2.0 % | worse |\n",
            "| target CPU/attempt | 20.0µs | – | – | – |  |\n",
            "- triggered: rate &lt; -2%\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
