//! A figure of a service, and the text format of all of them.

use std::fmt::Write as _;

use throng_host::probe::Format;
use throng_host::probe::series::labels_text;
use throng_metrics::host::place;

/// The label that names the service of a series.
const SOURCE: &str = "source";

/// A sample of a service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    /// A counter: it only grows, and restarts at 0.
    pub(crate) is_counter: bool,
    /// Finite.
    pub(crate) value: f64,
}

impl Figure {
    pub(crate) fn new(name: &str, is_counter: bool, value: f64) -> Figure {
        Figure { name: name.to_string(), labels: Vec::new(), is_counter, value }
    }

    pub(crate) fn with(mut self, label: &str, value: &str) -> Figure {
        self.labels.push((label.to_string(), value.to_string()));
        self
    }

    /// With the label of its service. An existing label with that name is renamed, like in
    /// Prometheus.
    fn labels(&self, source: &str) -> String {
        let own = self.labels.iter().map(|(name, value)| match name.as_str() {
            SOURCE => ("exported_source", value.as_str()),
            name => (name, value.as_str()),
        });
        labels_text(&std::iter::once((SOURCE, source)).chain(own).collect::<Vec<_>>())
    }
}

/// The lines of these figures, by name. Names that the monitor uses for its host are left out: a
/// name has one meaning in a text.
pub(super) fn text(figures: &[(&str, &Figure)], format: Format) -> String {
    let mut figures: Vec<_> = figures.iter().filter(|(_, it)| place(&it.name).is_none()).collect();
    figures.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    let (mut text, mut before) = (String::new(), "");
    for (source, figure) in figures {
        let name = figure.name.as_str();
        if std::mem::replace(&mut before, name) != name {
            let (family, kind) = match (format, figure.is_counter, name.strip_suffix("_total")) {
                (Format::Text, true, _) => (name, "counter"),
                (Format::OpenMetrics, true, Some(family)) => (family, "counter"),
                // OpenMetrics has no counters without that suffix.
                (Format::OpenMetrics, true, None) => (name, "unknown"),
                (_, false, _) => (name, "gauge"),
            };
            let _ = writeln!(text, "# TYPE {family} {kind}");
        }
        let _ = writeln!(text, "{name}{{{}}} {}", figure.labels(source), figure.value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_grouped_by_name_and_host_names_are_reserved() {
        let requests = Figure::new("shop_requests_total", true, 7.0).with("source", "a\"b");
        let accepted = Figure::new("nginx_connections_accepted", true, 3.0);
        let load = Figure::new("node_load1", false, 9.0);
        let all = [("a", &requests), ("b", &accepted), ("c", &load), ("d", &requests)];
        assert_eq!(
            text(&all, Format::Text),
            "# TYPE nginx_connections_accepted counter\n\
             nginx_connections_accepted{source=\"b\"} 3\n\
             # TYPE shop_requests_total counter\n\
             shop_requests_total{source=\"a\",exported_source=\"a\\\"b\"} 7\n\
             shop_requests_total{source=\"d\",exported_source=\"a\\\"b\"} 7\n"
        );
        let text = text(&all, Format::OpenMetrics);
        assert!(text.contains("# TYPE nginx_connections_accepted unknown\n"), "{text}");
        assert!(text.contains("# TYPE shop_requests counter\n"), "{text}");
    }
}
