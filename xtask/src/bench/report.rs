//! The figures as Markdown: tables, goals met and not met, and sections that replace each other.

use std::fmt::Write as _;

use super::contest::{self, Row, Spread};

const OPENING: &str = "\
# Benchmarks

This page compares throng with other load generators, and the times that throng reports with
the times that the target measured. Each section starts with the command that reproduces it.
`cargo xtask bench` writes the text between the `begin` and `end` markers; do not edit it.

In each round, the tools run one after another. Each number is the median of several rounds, with
the lowest and highest in brackets. CPU per request is the user and system time of the whole
process, divided by the number of successful requests. Ratios compare CPU time within a round.
Other work on the machine distorts a benchmark, so each section states the system load before it.
";

/// Something the project must reach.
pub(super) struct Gate {
    pub(super) threshold: String,
    pub(super) measured: Option<f64>,
    pub(super) max: f64,
    pub(super) unit: &'static str,
}

/// A line of a table of goals and what was measured.
pub(super) struct Line {
    pub(super) what: &'static str,
    pub(super) asked: String,
    pub(super) seen: String,
    pub(super) met: Option<bool>,
}

impl Line {
    pub(super) fn new(what: &'static str, asked: impl Into<String>, seen: Option<String>) -> Line {
        let seen = seen.unwrap_or_else(|| "not measured".to_string());
        Line { what, asked: asked.into(), seen, met: None }
    }

    pub(super) fn met(self, met: Option<bool>) -> Line {
        Line { met, ..self }
    }
}

/// The rows of a table with the columns what, goal, measured and whether it was met.
pub(super) fn lines(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let met = match line.met {
            Some(true) => "met",
            Some(false) => "**not met**",
            None => "",
        };
        let _ = writeln!(text, "| {} | {} | {} | {met} |", line.what, line.asked, line.seen);
    }
    text
}

/// A number with a blank between its thousands.
pub(super) fn spaced(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b' ')).into_owned()
}

pub(super) fn in_bytes(bytes: f64) -> String {
    format!("{} B", spaced(bytes.round() as u64))
}

/// The median with the lowest and the highest.
pub(super) fn spread(spread: Option<Spread>, digits: usize, unit: &str) -> String {
    spread.map_or_else(String::new, |s| {
        format!("{:.digits$}{unit} ({:.digits$}–{:.digits$})", s.median, s.min, s.max)
    })
}

/// A table of one contest, with ratios to `base`.
pub(super) fn table(title: &str, unit: &str, rows: &[Row], base: &str) -> String {
    let mut text = format!(
        "## {title}\n\n| tool | {unit}s/s | CPU per {unit} | ratio to {base} | failed |\n\
         | --- | ---: | ---: | ---: | ---: |\n"
    );
    for row in rows {
        text.push_str(&line(row, || {
            [
                spread(row.rate(), 0, ""),
                spread(row.cpu_us(), 2, " µs"),
                spread(contest::ratio(rows, &row.name, base), 2, ""),
                row.failed().to_string(),
            ]
        }));
    }
    text.push('\n');
    text
}

/// The goals and whether they are met; nothing when none was measured for.
pub(super) fn thresholds(gates: &[Gate]) -> String {
    if gates.is_empty() {
        return String::new();
    }
    let mut text = String::from("## Goals\n\n");
    for gate in gates {
        let verdict = match gate.measured {
            Some(figure) if figure <= gate.max => format!("met: {figure:.2} {}", gate.unit),
            Some(figure) => format!("**not met**: {figure:.2} {}", gate.unit),
            None => "not measured".to_string(),
        };
        let _ = writeln!(text, "- {} — {verdict}", gate.threshold);
    }
    text.push('\n');
    text
}

/// The document with the section `name` replaced, or added at its end.
pub(super) fn with_section(document: &str, name: &str, section: &str) -> String {
    let (begin, end) = (format!("<!-- begin {name} -->"), format!("<!-- end {name} -->"));
    let block = format!("{begin}\n{}\n{end}", section.trim());
    let document = if document.trim().is_empty() { OPENING } else { document };
    let found = document.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{block}{after}"))
    });
    found.unwrap_or_else(|| format!("{}\n\n{block}\n", document.trim_end()))
}

/// A line of a table: what was measured, or why nothing was.
pub(super) fn line<const CELLS: usize>(row: &Row, cells: impl Fn() -> [String; CELLS]) -> String {
    let cells = match &row.trouble {
        Some(trouble) => {
            let trouble = trouble.trim().replace('|', "/");
            format!("not measured: {trouble}{}", " |".repeat(CELLS - 1))
        }
        None => cells().join(" | "),
    };
    format!("| {} | {cells} |\n", row.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contest::Sample;
    use std::time::Duration;

    fn row(name: &str, cpu_ms: u64) -> Row {
        let cpu = Duration::from_millis(cpu_ms);
        let sample = Sample { ok: 1000, cpu, seconds: 2.0, ..Sample::default() };
        Row { name: name.to_string(), samples: vec![sample; 3], trouble: None }
    }

    #[test]
    fn a_table_shows_medians_and_errors() {
        let trouble = Some("missing | gone".to_string());
        let broken = Row { name: "ab".to_string(), samples: Vec::new(), trouble };
        let text = table("Case", "request", &[row("x", 5), row("wrk", 10), broken], "wrk");
        assert!(
            text.contains("| x | 500 (500–500) | 5.00 µs (5.00–5.00) | 0.50 (0.50–0.50) | 0 |")
        );
        assert!(text.contains("| ab | not measured: missing / gone | | | |"));
    }

    #[test]
    fn thresholds_are_honest() {
        let gate = |measured| Gate { threshold: "g".to_string(), measured, max: 1.0, unit: "x" };
        let text = thresholds(&[gate(Some(0.9)), gate(Some(1.1)), gate(None)]);
        let expected = "g — met: 0.90 x\n- g — **not met**: 1.10 x\n- g — not measured\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn sections_replace_only_themselves() {
        let first = with_section("", "http", "one\n");
        let both = with_section(&first, "truth", "two");
        let again = with_section(&both, "http", "three");
        assert!(again.starts_with("# Benchmarks"));
        assert!(again.contains("three") && again.contains("two") && !again.contains("one\n<!--"));
        assert_eq!(with_section(&again, "http", "three"), again);
    }
}
