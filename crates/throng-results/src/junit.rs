//! The thresholds of a run as JUnit test cases for build servers, in the form that Jenkins and
//! GitLab read (<https://github.com/windyroad/JUnit-Schema>,
//! <https://docs.gitlab.com/ci/testing/unit_test_reports>).
//!
//! A test case fails if and only if the exit code is not 0.

use std::fmt::Write as _;

use throng_base::{Exit, Said};
use throng_metrics::Verdict;

use crate::summary::{InvalidReason, Summary, ThresholdRow, Validity};
use crate::terminal::figure_text;
use crate::verdict::{
    NOTHING_SUCCEEDED, failed_setup, headline, judge, record_trouble, rule_text, stopped_by_rule,
};
use throng_metrics::Percentile;
use throng_metrics::capacity::Capacity;

const CARRIED: &str = "the result is valid";
const OWN_LATENESS: &str = "undetermined: the generator's own lateness can explain the figure";
const SUCCEEDED: &str = "at least one attempt succeeded";
const SEARCHED: &str = "the search found the capacity";
const ENDED: &str = "the run completed";

/// The run as a test suite: a test case for each threshold, for the validity of the result, and for
/// the end of the run.
pub fn junit(summary: &Summary) -> String {
    let mut cases: Vec<Case> = summary.verdict.thresholds.iter().map(threshold_case).collect();
    cases.extend(summary.capacity.as_deref().map(capacity_case));
    number_equal_names(&mut cases);
    cases.push(carried_case(summary));
    cases.push(ended_case(summary));
    cases.extend(nothing_succeeded_case(summary));
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let failures = count(|outcome| matches!(outcome, Outcome::Failed { .. }));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped { .. }));
    let time = format!("{:.3}", summary.lasted.as_secs_f64());
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{time}\"",
        cases.len()
    );
    let info = &summary.info;
    let name = escape(&info.name);
    let host = escape(info.generator.host.hostname.as_deref().unwrap_or("localhost"));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str(&format!("<testsuites name=\"throng\" {counts}>\n"));
    out.push_str(&format!(
        "  <testsuite id=\"0\" name=\"{name}\" timestamp=\"{}\" hostname=\"{host}\" {counts}>\n",
        escape(without_zone(&info.time.started))
    ));
    out.push_str("    <properties>\n");
    for (property, value) in properties(summary) {
        let (property, value) = (escape(&property), escape(&value));
        out.push_str(&format!("      <property name=\"{property}\" value=\"{value}\"/>\n"));
    }
    out.push_str("    </properties>\n");
    cases.iter().for_each(|case| case.write(&mut out, &name, &time));
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

struct Case {
    name: String,
    /// The measured value of a case that passed.
    measured: Option<String>,
    outcome: Outcome,
}

enum Outcome {
    Passed,
    /// GitLab shows the text; Jenkins shows the message and the text.
    Failed {
        kind: &'static str,
        message: String,
        text: String,
    },
    Skipped {
        message: String,
    },
}

impl Case {
    fn write(&self, out: &mut String, class: &str, time: &str) {
        let name = escape(&self.name);
        let head = format!("    <testcase name=\"{name}\" classname=\"{class}\" time=\"{time}\"");
        out.push_str(&head);
        match &self.outcome {
            Outcome::Passed => match &self.measured {
                None => out.push_str("/>\n"),
                Some(measured) => {
                    let measured = escape(measured);
                    out.push_str(&format!(">\n      <system-out>{measured}</system-out>\n"));
                    out.push_str("    </testcase>\n");
                }
            },
            Outcome::Failed { kind, message, text } => {
                let (message, text) = (escape(message), escape(text));
                out.push_str(">\n");
                out.push_str(&format!(
                    "      <failure message=\"{message}\" type=\"{kind}\">{text}</failure>\n"
                ));
                out.push_str("    </testcase>\n");
            }
            Outcome::Skipped { message } => {
                let message = escape(message);
                out.push_str(&format!(">\n      <skipped message=\"{message}\"/>\n"));
                out.push_str("    </testcase>\n");
            }
        }
    }
}

fn threshold_case(threshold: &ThresholdRow) -> Case {
    let outcome = match threshold.verdict {
        Verdict::Met(_) => Outcome::Passed,
        Verdict::NotMet(figure) => {
            let message = format!("measured: {}", figure_text(threshold.unit, figure));
            let text = format!("{}\n{message}", threshold.text);
            Outcome::Failed { kind: "threshold-not-met", message, text }
        }
        Verdict::Indeterminate(figure) => {
            let message =
                format!("measured: {}; {OWN_LATENESS}", figure_text(threshold.unit, figure));
            let text = format!("{}\n{message}", threshold.text);
            Outcome::Failed { kind: "threshold-indeterminate", message, text }
        }
        Verdict::Unknown => Outcome::Skipped { message: threshold.unknown().english() },
    };
    let measured = match threshold.verdict {
        Verdict::Met(figure) => Some(format!("measured: {}", figure_text(threshold.unit, figure))),
        _ => None,
    };
    Case { name: threshold.text.clone(), measured, outcome }
}

/// Whether the service sustains the required load or, without one, whether its capacity is known.
fn capacity_case(found: &Capacity) -> Case {
    let name = match found.at_least {
        Some(load) => format!("carries at least {}", found.load(load).english()),
        None => SEARCHED.to_string(),
    };
    let (kind, reasons) = match found.judge() {
        (Exit::ResultInvalid, reasons) => ("capacity-undecided", reasons),
        (_, reasons) => ("capacity-too-low", reasons),
    };
    let measured = reasons.is_empty().then(|| found.sentence().english());
    Case { name, measured, outcome: failed_by(kind, &reasons) }
}

/// GitLab reads only the first of several cases with the same name.
fn number_equal_names(cases: &mut [Case]) {
    for index in 1..cases.len() {
        let (before, rest) = cases.split_at_mut(index);
        while before.iter().any(|case| case.name == rest[0].name) {
            rest[0].name.push_str(&format!(" ({})", index + 1));
        }
    }
}

/// Whether the result is valid.
fn carried_case(summary: &Summary) -> Case {
    let mut reasons = record_trouble(summary);
    if let Validity::Invalid { reasons: invalid } = &summary.verdict.validity {
        reasons.splice(0..0, invalid.iter().map(InvalidReason::text));
    }
    let outcome = failed_by("result-invalid", &reasons);
    Case { name: CARRIED.into(), measured: None, outcome }
}

/// Fails if no attempt of the run succeeded, whatever its thresholds say.
fn nothing_succeeded_case(summary: &Summary) -> Option<Case> {
    let failed = headline(summary).text == NOTHING_SUCCEEDED;
    failed.then(|| Case {
        name: SUCCEEDED.into(),
        measured: None,
        outcome: failed_by("nothing-succeeded", &judge(summary).1),
    })
}

/// Whether the run ended early: by a rule, by the user, or because the target is unreachable.
fn ended_case(summary: &Summary) -> Case {
    let (kind, reasons) = match judge(summary) {
        (Exit::Interrupted, reasons) => ("interrupted", reasons),
        (Exit::Bug, reasons) => ("bug", reasons),
        (Exit::TargetUnreachable, reasons) if failed_setup(summary).is_some() => {
            ("setup-failed", reasons)
        }
        (Exit::TargetUnreachable, reasons) => match stopped_by_rule(summary) {
            Some(_) => ("stopped-by-rule", reasons),
            None => ("target-unreachable", reasons),
        },
        // An invalid result hides that a rule stopped the run.
        _ => ("stopped-by-rule", stopped_by_rule(summary).map(rule_text).into_iter().collect()),
    };
    Case { name: ENDED.into(), measured: None, outcome: failed_by(kind, &reasons) }
}

fn failed_by(kind: &'static str, reasons: &[Said]) -> Outcome {
    let reasons: Vec<String> = reasons.iter().map(Said::english).collect();
    match reasons.first() {
        None => Outcome::Passed,
        Some(first) => Outcome::Failed { kind, message: first.clone(), text: reasons.join("\n") },
    }
}

/// What identifies the run and its main figures.
fn properties(summary: &Summary) -> Vec<(String, String)> {
    let info = &summary.info;
    let mut properties = vec![
        ("id", info.id.clone()),
        ("throng_version", info.build.text()),
        ("seed", info.seed.to_string()),
        ("targets", info.targets.urls.join(" ")),
        ("exit_code", judge(summary).0.code().to_string()),
    ];
    properties.extend(measured(summary));
    if let Some(directory) = &summary.directory {
        properties.push(("directory", directory.display().to_string()));
    }
    let labels = info.labels.iter().map(|(name, value)| (format!("label.{name}"), value.clone()));
    properties.into_iter().map(|(name, value)| (name.to_string(), value)).chain(labels).collect()
}

/// The figures of all attempts, by their names in `docs/json.md`.
fn measured(summary: &Summary) -> Vec<(&'static str, String)> {
    let (total, latency) = (&summary.steps.total, &summary.steps.total.latency);
    let percentiles = Percentile::MAIN.iter();
    let percentiles = percentiles.map(|it| (it.word_ns(), latency.percentile(*it)));
    let known = percentiles
        .chain([("max_ns", latency.max())])
        .filter_map(|(name, ns)| Some((name, ns?.to_string())));
    let mut figures = vec![
        ("count", total.count.to_string()),
        ("failed", total.failed.to_string()),
        ("ok_per_s", total.ok_per_s.to_string()),
    ];
    figures.extend(known);
    figures
}

/// The schema has times without a time zone; these are UTC.
fn without_zone(started: &str) -> &str {
    let whole = started.split('.').next().unwrap_or_default();
    whole.trim_end_matches('Z')
}

/// Escapes text for an attribute or an element. Characters that XML 1.0 does not allow (section
/// 2.2) become readable escapes; whitespace that an attribute would normalize is preserved.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\t' | '\n' | '\r' | '\u{7f}'..='\u{9f}' | '\u{2028}' => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.extend(c.escape_unicode()),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
