//! Files that other programs read line by line: CSV (RFC 4180) and JSON lines. A row for each
//! metric of each second.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde_json::{Map, json};
use throng_base::Said;
use throng_metrics::Percentile;

use crate::metrics::{Metric, Value, metrics};
use crate::{Export, Second};

/// The columns: names of labels, then what a value may be; times are in seconds.
const LABELS: [&str; 9] =
    ["step", "kind", "result", "cause", "code", "state", "stage", "direction", "metric"];

pub(crate) struct Csv {
    out: BufWriter<File>,
}

impl Csv {
    pub(crate) fn create(path: &str) -> io::Result<Csv> {
        let mut out = BufWriter::new(File::create(path)?);
        let labels = LABELS[..LABELS.len() - 1].join(",");
        let quantiles: Vec<&str> = Percentile::MAIN.iter().map(|it| it.plain()).collect();
        let quantiles = quantiles.join(",");
        writeln!(out, "time,second,metric,{labels},value,count,mean,{quantiles},max")?;
        out.flush()?;
        Ok(Csv { out })
    }

    fn row(&mut self, second: &Second<'_>, metric: &Metric<'_>) -> io::Result<()> {
        let time = second.end_unix_ns() as f64 / 1e9;
        write!(self.out, "{time:.3},{},{}", second.figures.second, metric.name)?;
        for column in &LABELS[..LABELS.len() - 1] {
            let label = metric.labels.iter().find(|(name, _)| name == column);
            write!(self.out, ",{}", cell(label.map_or("", |(_, value)| value)))?;
        }
        match metric.value {
            Value::Counter(value) | Value::Gauge(value) => {
                writeln!(self.out, ",{value},,,,,,,,")
            }
            Value::Times(times) => {
                write!(self.out, ",,{},{}", times.count(), times.mean() / 1e9)?;
                for at in Percentile::MAIN.iter().map(|it| it.quantile()) {
                    write!(self.out, ",{}", times.value_at(at) as f64 / 1e9)?;
                }
                writeln!(self.out, ",{}", times.max() as f64 / 1e9)
            }
        }
    }
}

impl Export for Csv {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        let all = metrics(second);
        let mut rows = all.iter().map(|metric| self.row(second, metric));
        rows.by_ref().collect::<io::Result<()>>().map_err(|error| Said::of_error(&error))?;
        drop(rows);
        self.out.flush().map_err(|error| Said::of_error(&error))
    }
}

/// In quotes where it must be; what a spreadsheet would take for a formula begins with `'`.
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

pub(crate) struct JsonLines {
    out: BufWriter<File>,
}

impl JsonLines {
    pub(crate) fn create(path: &str) -> io::Result<JsonLines> {
        Ok(JsonLines { out: BufWriter::new(File::create(path)?) })
    }

    fn row(&mut self, second: &Second<'_>, metric: &Metric<'_>) -> io::Result<()> {
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
                for (word, at) in Percentile::MAIN.iter().map(|it| (it.plain(), it.quantile())) {
                    row.insert(word.into(), json!(times.value_at(at) as f64 / 1e9));
                }
                row.insert("max".into(), json!(times.max() as f64 / 1e9));
            }
        }
        serde_json::to_writer(&mut self.out, &row)?;
        self.out.write_all(b"\n")
    }
}

impl Export for JsonLines {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        let all = metrics(second);
        let mut rows = all.iter().map(|metric| self.row(second, metric));
        rows.by_ref().collect::<io::Result<()>>().map_err(|error| Said::of_error(&error))?;
        drop(rows);
        self.out.flush().map_err(|error| Said::of_error(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_hold_whatever_a_target_says() {
        assert_eq!(cell("GET /a,b"), "\"GET /a,b\"");
        assert_eq!(cell("a\"b\nc"), "\"a\"\"b\nc\"");
        assert_eq!(cell("=HYPERLINK(1)"), "'=HYPERLINK(1)");
    }
}
