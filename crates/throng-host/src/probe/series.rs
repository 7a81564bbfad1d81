//! The figures of a reading, and their text formats.
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>

use std::fmt::Write as _;

use throng_metrics::host::{ALL, Series, SeriesKind, place};

/// The text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// Chosen by the client's `Accept` header.
    pub fn accepted(accept: &str) -> Format {
        match accept.contains("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Text,
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Samples of one reading, by series.
#[derive(Clone, Debug, Default)]
pub struct Figures(Vec<Sample>);

#[derive(Clone, Debug)]
struct Sample {
    /// The index in [`ALL`].
    series: usize,
    /// As in the text, without braces.
    labels: String,
    value: f64,
}

impl Figures {
    /// Adds a sample. A value that is not finite is left out.
    pub fn add(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let series = place(name);
        debug_assert!(series.is_some(), "{name} is not in the table");
        let Some(series) = series.filter(|_| value.is_finite()) else { return };
        self.0.push(Sample { series, labels: labels_text(labels), value });
    }

    /// Like [`Figures::add`], if there is a value.
    pub fn maybe(&mut self, name: &str, labels: &[(&str, &str)], value: Option<u64>) {
        if let Some(value) = value {
            self.add(name, labels, value as f64);
        }
    }

    /// The value of one series.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let (series, labels) = (place(name)?, labels_text(labels));
        let is_it = |sample: &&Sample| sample.series == series && sample.labels == labels;
        self.0.iter().find(is_it).map(|sample| sample.value)
    }

    /// The complete text, one line per sample, series by series, followed by the lines of `others`;
    /// it ends with `# EOF`.
    pub fn text(&self, format: Format, others: &str) -> String {
        let mut samples: Vec<&Sample> = self.0.iter().collect();
        samples.sort_by_key(|sample| sample.series);
        let mut text = String::new();
        let mut before = None;
        for sample in samples {
            let series = &ALL[sample.series];
            if before.replace(sample.series) != Some(sample.series) {
                head(&mut text, series, format);
            }
            text.push_str(series.name);
            if !sample.labels.is_empty() {
                let _ = write!(text, "{{{}}}", sample.labels);
            }
            let _ = writeln!(text, " {}", sample.value);
        }
        text.push_str(others);
        text.push_str("# EOF\n");
        text
    }
}

fn head(text: &mut String, series: &Series, format: Format) {
    let (name, kind) = match (series.kind, format) {
        // OpenMetrics names a counter without the ending of its samples.
        (SeriesKind::Counter, Format::OpenMetrics) => {
            (series.name.strip_suffix("_total").unwrap_or(series.name), "counter")
        }
        (SeriesKind::Counter, Format::Text) => (series.name, "counter"),
        (SeriesKind::Gauge, _) => (series.name, "gauge"),
        (SeriesKind::Untyped, Format::OpenMetrics) => (series.name, "unknown"),
        (SeriesKind::Untyped, Format::Text) => (series.name, "untyped"),
    };
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", series.help);
}

/// Labels as in the braces of a sample.
pub fn labels_text(labels: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        if !text.is_empty() {
            text.push(',');
        }
        let _ = write!(text, "{name}=\"");
        for letter in value.chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_each_series_once_and_escapes_labels() {
        let mut figures = Figures::default();
        figures.add("node_load1", &[], 0.5);
        figures.add("node_cpu_seconds_total", &[("cpu", "0"), ("mode", "user")], 2.25);
        figures.add("node_load1", &[], f64::NAN);
        figures.add("node_cpu_seconds_total", &[("cpu", "a\"b\\c\nd"), ("mode", "user")], 1e12);
        figures.add("node_netstat_TcpExt_ListenDrops", &[], 7.0);
        let text = figures.text(Format::OpenMetrics, "");
        let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            plain,
            [
                "# TYPE node_cpu_seconds counter",
                "node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 2.25",
                "node_cpu_seconds_total{cpu=\"a\\\"b\\\\c\\nd\",mode=\"user\"} 1000000000000",
                "# TYPE node_load1 gauge",
                "node_load1 0.5",
                "# TYPE node_netstat_TcpExt_ListenDrops unknown",
                "node_netstat_TcpExt_ListenDrops 7",
                "# EOF",
            ]
        );
        let text = figures.text(Format::Text, "");
        assert!(text.contains("# TYPE node_cpu_seconds_total counter\n"));
        assert!(text.contains("# TYPE node_netstat_TcpExt_ListenDrops untyped\n"));
    }

    /// Series of node_exporter are listed by the prefix of their name, the others in a table.
    #[test]
    fn the_page_lists_every_series() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitor.md");
        let page = std::fs::read_to_string(page).unwrap();
        let words: Vec<&str> = page.split('`').collect();
        let is_named = |name: &str| {
            let starts = |word: &str| word.strip_suffix('*').is_some_and(|it| name.starts_with(it));
            words.iter().any(|word| *word == name || (word.starts_with("node_") && starts(word)))
        };
        for Series { name, kind, help, .. } in ALL {
            let kind = if *kind == SeriesKind::Gauge { "gauge" } else { "counter" };
            let row = format!("| `{name}` | {kind} | {help} |");
            let is_there =
                if name.starts_with("node_") { is_named(name) } else { page.contains(&row) };
            assert!(is_there, "docs/monitor.md lacks {row}");
        }
    }
}
