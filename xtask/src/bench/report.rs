//! The figures as Markdown: tables, goals met and not met, and sections that replace each other.

use std::fmt::Write as _;

use super::contest::{self, Row, Sample, Spread};

const OPENING: &str = "\
# Benchmarks

`cargo xtask bench` writes the text between the `begin` and `end` markers; do not edit it.
";

/// A goal of the project, and what was measured.
pub(super) struct Goal {
    pub(super) what: String,
    pub(super) measured: Option<f64>,
    pub(super) max: f64,
    pub(super) unit: &'static str,
}

impl Goal {
    /// CPU per `unit` as a multiple of that of `base`.
    pub(super) fn of_ratio(
        (title, unit): (&str, &str),
        (name, base): (&str, &str),
        ratio: Option<Spread>,
        max: f64,
    ) -> Goal {
        let what = format!("{title}: {name}, CPU per {unit} at most {max} x {base}");
        Goal { what, measured: ratio.map(|ratio| ratio.median), max, unit: "x" }
    }
}

/// The goals and whether they are met.
pub(super) fn goals(goals: &[Goal]) -> String {
    if goals.is_empty() {
        return String::new();
    }
    let mut text = String::from("## Goals\n\n");
    for Goal { what, measured, max, unit } in goals {
        let verdict = match measured {
            Some(figure) if figure <= max => format!("met: {figure:.2} {unit}"),
            Some(figure) => format!("**not met**: {figure:.2} {unit}"),
            None => "not measured".to_string(),
        };
        let _ = writeln!(text, "- {what} — {verdict}");
    }
    text + "\n"
}

/// The head of a table of goals and what was measured.
pub(super) const LINES: &str = "| | goal | measured | |\n| --- | ---: | ---: | --- |\n";

/// A row of such a table.
pub(super) fn line(
    what: &str,
    goal: &str,
    measured: Option<String>,
    is_met: Option<bool>,
) -> String {
    let measured = measured.unwrap_or_else(|| "not measured".to_string());
    let verdict = match is_met {
        Some(true) => "met",
        Some(false) => "**not met**",
        None => "",
    };
    format!("| {what} | {goal} | {measured} | {verdict} |\n")
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
        text += &cells(row, || {
            [
                spread(row.spread(|sample| Some(sample.rate())), 0, ""),
                cpu(row),
                spread(contest::ratio(rows, &row.name, base), 2, ""),
                row.failed().to_string(),
            ]
        });
    }
    text + "\n"
}

pub(super) fn cpu(row: &Row) -> String {
    spread(row.spread(|sample: &Sample| Some(sample.cpu_us())), 2, " µs")
}

/// A row of a table: what was measured, or why nothing was.
pub(super) fn cells<const CELLS: usize>(row: &Row, cells: impl Fn() -> [String; CELLS]) -> String {
    let cells = match &row.trouble {
        Some(trouble) => not_measured(trouble, CELLS),
        None => cells().join(" | "),
    };
    format!("| {} | {cells} |\n", row.name)
}

/// The text of so many cells.
pub(super) fn not_measured(trouble: &str, cells: usize) -> String {
    format!("not measured: {}{}", trouble.trim().replace('|', "/"), " |".repeat(cells - 1))
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

#[cfg(test)]
mod tests {
    use super::*;
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
    fn goals_are_honest() {
        let goal = |measured| Goal { what: "g".to_string(), measured, max: 1.0, unit: "x" };
        let text = goals(&[goal(Some(0.9)), goal(Some(1.1)), goal(None)]);
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
