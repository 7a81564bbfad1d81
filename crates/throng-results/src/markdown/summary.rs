//! A run as a pull request shows it.

use std::collections::BTreeMap;

use throng_base::Said;
use throng_metrics::{Histogram, Interval, Unit, Verdict, is_attempt};

use super::escape;
use crate::read::Run;
use crate::summary::{Latency, Percentile, Row, Summary, per_second};
use crate::terminal::curve::curve;
use crate::terminal::figure_text;
use crate::verdict::{headline, judge};

const ROWS_MAX: usize = 20;
const ERRORS_MAX: usize = 5;
const EXAMPLE_CHARS_MAX: usize = 200;
const CURVE_COLUMNS_MAX: u64 = 40;

/// The measured seconds of a run, for small curves.
#[derive(Debug, Default)]
pub struct Curves {
    rate: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    users: Vec<Option<f64>>,
}

#[derive(Default)]
struct Piece {
    in_time: u64,
    latency: Histogram,
    users: u64,
}

impl Curves {
    /// None where the record cannot be read: the figures are there without it.
    pub fn read(run: &Run, summary: &Summary) -> Option<Curves> {
        let width = (summary.lasted.as_secs() + 1).div_ceil(CURVE_COLUMNS_MAX).max(1);
        let mut pieces: BTreeMap<u64, Piece> = BTreeMap::new();
        let info = &run.info;
        let take = |interval: Interval| {
            if !info.phases.get(usize::from(interval.phase)).is_none_or(|phase| phase.measured) {
                return;
            }
            let piece = pieces.entry(interval.second / width).or_default();
            for row in &interval.steps {
                let kind = info.steps.get(usize::from(row.step)).map(|step| step.kind.as_str());
                if kind.is_some_and(is_attempt) {
                    piece.in_time += row.ok_in_time();
                    piece.latency.merge(&row.latency);
                }
            }
            piece.users = piece.users.max(interval.gauges.users_online);
        };
        run.summed(1, take).ok()?;
        let mut curves = Curves::default();
        let time = std::time::Duration::from_secs(width);
        for piece in pieces.values() {
            let p99 = Latency::of(&piece.latency).percentile(Percentile::P99);
            curves.rate.push(Some(per_second(piece.in_time, time)));
            curves.p99.push(p99.map(|ns| ns as f64));
            curves.users.push(Some(piece.users as f64));
        }
        // The last is a part of its time only.
        if curves.rate.len() > 2 {
            for values in [&mut curves.rate, &mut curves.p99, &mut curves.users] {
                values.pop();
            }
        }
        Some(curves)
    }

    fn text(&self) -> String {
        let all = [
            ("rate", &self.rate, Unit::PerSecond),
            ("p99", &self.p99, Unit::Nanoseconds),
            ("users", &self.users, Unit::Number),
        ];
        let lines = all.into_iter().filter_map(|(name, values, unit)| {
            let known = || values.iter().flatten().copied();
            let (least, most) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
            let drawn = curve(values, CURVE_COLUMNS_MAX as usize);
            let (least, most) = (figure_text(unit, least), figure_text(unit, most));
            Some(format!("{name:<5}  {drawn}  {least} to {most}\n"))
        });
        lines.collect()
    }
}

/// The summary of a run, with its curves where there is a record.
pub fn summary_markdown(summary: &Summary, curves: Option<&Curves>) -> String {
    let info = &summary.info;
    let headline = headline(summary).text.english();
    let mut out = format!("### {}: {headline}\n\n", escape(&info.name));
    let (exit, reasons) = judge(summary);
    let targets = escape(&info.targets.join(", "));
    let (users, lasted) = (info.users_planned, summary.lasted.as_secs());
    let started = escape(&info.started);
    let code = exit.code();
    out += &format!("{targets}, {users} users, {lasted} s, {started}, exit code {code}\n\n");
    out += "| | attempts | rate | failed | p50 | p90 | p95 | p99 | p99.9 | max |\n";
    out += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    out += &line("all attempts", &summary.total);
    let rows = summary.steps.iter().chain(&summary.transactions).filter(|row| row.count > 0);
    let rows: Vec<&Row> = rows.collect();
    // One that is alone is the row of all attempts.
    let told = if rows.len() > 1 { &rows[..] } else { &[] };
    told.iter().take(ROWS_MAX).for_each(|row| out += &line(&row.name, row));
    if let Some(more) = told.len().checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        out += &format!("\nand {more} more steps\n");
    }
    let drawn = curves.map(Curves::text).unwrap_or_default();
    if !drawn.is_empty() {
        out += &format!("\n```text\n{drawn}```\n");
    }
    let notes = reasons.iter().map(|reason| escape(reason));
    let notes = notes.chain(summary.goals.iter().map(|goal| {
        let (word, figure) = match goal.verdict {
            Verdict::Met(figure) => ("met", Some(figure)),
            Verdict::NotMet(figure) => ("**not met**", Some(figure)),
            Verdict::Indeterminate(figure) => ("**indeterminate**", Some(figure)),
            Verdict::Unknown => ("**not measured**", None),
        };
        let figure = figure.map(|figure| format!(" ({})", figure_text(goal.unit, figure)));
        format!("{word}: {}{}", escape(&goal.text), figure.unwrap_or_default())
    }));
    let notes: Vec<String> = notes.chain(errors(summary)).collect();
    for (at, note) in notes.iter().enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        out += &format!("{gap}- {note}\n");
    }
    out
}

fn line(name: &str, row: &Row) -> String {
    let latency = &row.latency;
    let time =
        |ns: Option<u64>| ns.map_or("–".into(), |ns| figure_text(Unit::Nanoseconds, ns as f64));
    let of = |percentile| time(latency.percentile(percentile));
    let share = if row.count > 0 { row.failed as f64 / row.count as f64 } else { 0.0 };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        escape(name),
        figure_text(Unit::Number, row.count as f64),
        figure_text(Unit::PerSecond, row.ok_per_s),
        figure_text(Unit::Share, share),
        of(Percentile::P50),
        of(Percentile::P90),
        of(Percentile::P95),
        of(Percentile::P99),
        of(Percentile::P999),
        time((!latency.is_empty()).then_some(latency.max_ns)),
    )
}

fn errors(summary: &Summary) -> impl Iterator<Item = String> {
    summary.errors.iter().take(ERRORS_MAX).map(|error| {
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
    use crate::sample;

    #[test]
    fn a_run_as_a_pull_request_shows_it() {
        let summary = sample::summary();
        let curves = Curves {
            rate: vec![Some(10.0), Some(20.0)],
            p99: vec![None, Some(1e6)],
            users: vec![Some(3.0); 2],
        };
        let text = summary_markdown(&summary, Some(&curves));
        for part in [
            "### quick check: goals met",
            "| all attempts | 101,000 |",
            "| GET / | 100,000 |",
            "rate   ▁█  10.0/s to 20.0/s",
            "p99     █  1.00ms to 1.00ms",
            "- met: http p99 &lt; 50ms (",
            " × status-unexpected in GET / (HTTP/1.1 503 Service Unavailable\\\\r\\\\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn what_a_target_says_is_no_markup() {
        let mut summary = sample::summary();
        summary.info.name = "<script>alert(1)</script>\n# x".into();
        summary.info.targets = vec!["http://a|b`".into()];
        summary.steps[0].name = "| a\n| b @all <img src=x>".into();
        let text = summary_markdown(&summary, None);
        for part in ["<script", "<img", "@all", "\n# x", "\n| b", "http://"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
    }
}
