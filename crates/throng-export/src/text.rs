//! Line-based files for other programs: CSV (RFC 4180) and JSON lines. A row for each metric of
//! each second.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde_json::{Map, json};
use throng_base::Said;
use throng_metrics::Percentile;

use crate::metrics::{Metric, Value, figures, metrics};
use crate::{Export, Second};

/// The columns: names of labels, then the kinds of values; times are in seconds.
const LABELS: [&str; 9] =
    ["step", "kind", "result", "cause", "code", "state", "stage", "direction", "metric"];

type Row = fn(&mut BufWriter<File>, &Second<'_>, &Metric<'_>) -> io::Result<()>;

/// A file with a line for each metric.
pub(crate) struct Lines {
    out: BufWriter<File>,
    row: Row,
}

impl Lines {
    pub(crate) fn csv(path: &str) -> io::Result<Lines> {
        let mut out = BufWriter::new(File::create(path)?);
        let labels = LABELS[..LABELS.len() - 1].join(",");
        let quantiles: Vec<&str> = Percentile::MAIN.iter().map(|it| it.plain()).collect();
        let quantiles = quantiles.join(",");
        writeln!(out, "time,second,metric,{labels},value,count,mean,{quantiles},max")?;
        out.flush()?;
        Ok(Lines { out, row: csv_row })
    }

    pub(crate) fn json(path: &str) -> io::Result<Lines> {
        Ok(Lines { out: BufWriter::new(File::create(path)?), row: json_row })
    }

    fn rows(&mut self, second: &Second<'_>) -> io::Result<()> {
        metrics(second).iter().try_for_each(|one| (self.row)(&mut self.out, second, one))?;
        self.out.flush()
    }
}

impl Export for Lines {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        self.rows(second).map_err(|error| Said::of_error(&error))
    }
}

fn csv_row(out: &mut BufWriter<File>, second: &Second<'_>, metric: &Metric<'_>) -> io::Result<()> {
    let time = second.end_unix_ns() as f64 / 1e9;
    write!(out, "{time:.3},{},{}", second.figures.second, metric.name)?;
    for column in &LABELS[..LABELS.len() - 1] {
        let label = metric.labels.iter().find(|(name, _)| name == column);
        write!(out, ",{}", cell(label.map_or("", |(_, value)| value)))?;
    }
    match metric.value {
        Value::Counter(value) | Value::Gauge(value) => writeln!(out, ",{value},,,,,,,,"),
        Value::Times(times) => {
            write!(out, ",,{},{}", times.count(), times.mean() / 1e9)?;
            for (_, ns) in figures(times) {
                write!(out, ",{}", ns as f64 / 1e9)?;
            }
            writeln!(out)
        }
    }
}

/// Quoted if necessary; text that a spreadsheet would read as a formula starts with `'`.
fn cell(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_string(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

fn json_row(out: &mut BufWriter<File>, second: &Second<'_>, metric: &Metric<'_>) -> io::Result<()> {
    let mut row = Map::new();
    row.insert("time".into(), json!(second.end_unix_ns() as f64 / 1e9));
    row.insert("second".into(), json!(second.figures.second));
    row.insert("metric".into(), json!(metric.name));
    for (name, value) in &metric.labels {
        row.insert((*name).into(), json!(value));
    }
    match metric.value {
        Value::Counter(value) | Value::Gauge(value) => {
            row.insert("value".into(), json!(value));
        }
        Value::Times(times) => {
            row.insert("count".into(), json!(times.count()));
            row.insert("mean".into(), json!(times.mean() / 1e9));
            for (word, ns) in figures(times) {
                row.insert(word.into(), json!(ns as f64 / 1e9));
            }
        }
    }
    serde_json::to_writer(&mut *out, &row)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_safe_for_any_text_of_a_target() {
        assert_eq!(cell("GET /a,b"), "\"GET /a,b\"");
        assert_eq!(cell("a\"b\nc"), "\"a\"\"b\nc\"");
        assert_eq!(cell("=HYPERLINK(1)"), "'=HYPERLINK(1)");
    }
}
