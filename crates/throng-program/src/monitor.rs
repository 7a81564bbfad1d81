//! Sources of series in parallel to the run, and the metrics of an exporter that are kept.

use std::time::Duration;

use regex::Regex;
use throng_base::{Said, say};
use throng_extract::JsonPath;
use throng_metrics::host::{ALL, Kept, MODES, Series};

/// A source that is read during the run.
#[derive(Clone, Debug)]
pub struct Monitor {
    pub name: String,
    pub origin: Origin,
    pub every: Duration,
    /// The metrics that are kept.
    pub metrics: Vec<Metric>,
}

/// The origin of a source's series.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Metrics in the text format of Prometheus.
    Page(Page),
    /// Fields of a JSON document.
    Json(Page, Vec<JsonValue>),
    /// `throng monitor --stdio`, started over ssh.
    Host(SshHost),
    /// `throng monitor --join` with the token of this name, over the bus of the fleet that
    /// generates the load.
    Joined(String),
}

/// An HTTP request for a document.
#[derive(Clone, Debug)]
pub struct Page {
    /// `http://` or `https://`; may contain credentials.
    pub url: String,
    pub headers: Vec<(String, String)>,
}

/// A number in a document, which becomes a series.
#[derive(Clone, Debug)]
pub struct JsonValue {
    pub name: String,
    /// As written.
    pub text: String,
    pub path: JsonPath,
    /// It only increases, and restarts at 0.
    pub is_counter: bool,
}

/// A host that ssh reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshHost {
    /// `user@shop-1`; does not start with `-`.
    pub login: String,
    pub port: Option<u16>,
    /// Command-line options for `throng monitor` there.
    pub options: Vec<String>,
}

impl Monitor {
    /// The source's URL in record files.
    pub fn url(&self) -> String {
        match &self.origin {
            Origin::Page(page) | Origin::Json(page, _) => page.url.clone(),
            Origin::Joined(name) => format!("fleet://{name}"),
            Origin::Host(SshHost { login, port: None, .. }) => format!("ssh://{login}"),
            Origin::Host(SshHost { login, port: Some(port), .. }) => {
                format!("ssh://{login}:{port}")
            }
        }
    }
}

/// A metric of an exporter that is kept.
#[derive(Clone, Debug)]
pub struct Metric {
    /// The name to use instead of the metric's own.
    pub name: Option<String>,
    pub selector: Selector,
    /// All matching series are summed to one.
    pub is_sum: bool,
    /// It only increases, whatever type the source declares.
    pub is_counter: bool,
    /// Not named by the scenario: its absence is not reported.
    pub is_optional: bool,
}

/// The port of Prometheus's node_exporter.
pub const NODE_EXPORTER_PORT: u16 = 9100;

/// The default metrics of a host: the series that show what limits a service. node_exporter and
/// `throng monitor` use the same names.
pub fn host_metrics() -> Vec<Metric> {
    let metric = |(name, text, is_sum): (Option<String>, String, bool)| {
        let selector = Selector::parse(&text).ok()?;
        Some(Metric { name, selector, is_sum, is_counter: false, is_optional: true })
    };
    let of = |series: &Series| -> Vec<(Option<String>, String, bool)> {
        let name = series.name.to_string();
        match series.kept {
            Kept::Nothing => Vec::new(),
            Kept::Each => vec![(None, name, false)],
            Kept::Sum => vec![(Some(name.clone()), name, true)],
            Kept::SumOutside => {
                vec![(Some(name.clone()), format!("{name}{{device!=\"lo\"}}"), true)]
            }
            Kept::SumByMode => {
                let modes = MODES.map(|(mode, _)| format!("{name}{{mode=\"{mode}\"}}"));
                modes.map(|text| (Some(text.clone()), text, true)).into()
            }
        }
    };
    let services = (None, SERVICES.to_string(), false);
    ALL.iter().flat_map(of).chain([services]).filter_map(metric).collect()
}

/// All series of the host's services, without histogram buckets.
const SERVICES: &str = "{source!=\"\",le=\"\"}";

/// A selector in Prometheus syntax: `node_load1`, `up{job="shop",code!~"5.."}`.
#[derive(Clone, Debug)]
pub struct Selector {
    /// As written.
    pub text: String,
    name: Option<String>,
    matchers: Vec<Matcher>,
}

#[derive(Clone, Debug)]
struct Matcher {
    label: String,
    is_not: bool,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
enum Pattern {
    Text(String),
    /// Matches the whole value.
    Regex(Regex),
}

/// The label that contains a metric's name.
const NAME: &str = "__name__";
/// Maximum size of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

impl Selector {
    pub fn parse(text: &str) -> Result<Selector, Said> {
        let text = text.trim();
        let (name, rest) = text.split_at(text.find('{').unwrap_or(text.len()));
        let name = name.trim_end();
        let is_letter = |c: char| c.is_ascii_alphabetic() || "_:".contains(c);
        let is_name =
            name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
        if !name.is_empty() && !is_name {
            return Err(say!("`{name}` is not a metric name"));
        }
        let mut matchers = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            let mut rest = inside.trim_start();
            while !rest.starts_with('}') {
                let (matcher, behind) = Matcher::parse(rest)?;
                matchers.push(matcher);
                rest = behind.trim_start();
                match rest.strip_prefix(',') {
                    Some(behind) => rest = behind.trim_start(),
                    None if rest.starts_with('}') => {}
                    None => return Err(say!("the `}}` is missing")),
                }
            }
            if rest != "}" {
                return Err(say!("unexpected text after the `}}`"));
            }
        }
        if name.is_empty() && matchers.is_empty() {
            return Err(say!("the metric name is missing"));
        }
        let name = (!name.is_empty()).then(|| name.to_string());
        Ok(Selector { text: text.to_string(), name, matchers })
    }

    /// Whether a series matches; a missing label is empty.
    pub fn matches<L: AsRef<str>>(&self, name: &str, labels: &[(&str, L)]) -> bool {
        let value = |label: &str| match label {
            NAME => name,
            _ => labels.iter().find(|(it, _)| *it == label).map_or("", |(_, value)| value.as_ref()),
        };
        self.name.as_deref().is_none_or(|wanted| wanted == name)
            && self.matchers.iter().all(|it| it.pattern.is(value(&it.label)) != it.is_not)
    }

    /// Whether all matching series have the same value of this label.
    pub fn is_fixed(&self, label: &str) -> bool {
        let fixes = |it: &Matcher| !it.is_not && matches!(it.pattern, Pattern::Text(_));
        self.matchers.iter().any(|it| it.label == label && fixes(it))
    }
}

impl Matcher {
    /// `label="value"`, `!=`, `=~`, `!~`, and the rest of the text.
    fn parse(text: &str) -> Result<(Matcher, &str), Said> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (label, rest) = text.split_at(text.find(|c| !is_letter(c)).unwrap_or(text.len()));
        if label.is_empty() || label.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(say!("the label name is missing"));
        }
        let rest = rest.trim_start();
        let signs = [("=~", false, true), ("!~", true, true), ("!=", true, false)];
        let signs = signs.into_iter().chain([("=", false, false)]);
        let found = signs.filter_map(|(sign, is_not, is_regex)| {
            rest.strip_prefix(sign).map(|rest| (rest, is_not, is_regex))
        });
        let Some((rest, is_not, is_regex)) = found.into_iter().next() else {
            return Err(say!("`=`, `!=`, `=~` or `!~` is missing after `{label}`"));
        };
        let (value, rest) = quoted(rest.trim_start())
            .ok_or_else(|| say!("the value of `{label}` is not in quotes"))?;
        let pattern = match is_regex {
            false => Pattern::Text(value),
            true => {
                let regex = regex::RegexBuilder::new(&format!("^(?s:{value})$"));
                let regex = { regex }.size_limit(REGEX_BYTES_MAX).build();
                let invalid = |_| say!("the value of `{label}` is not a valid regular expression");
                Pattern::Regex(regex.map_err(invalid)?)
            }
        };
        Ok((Matcher { label: label.to_string(), is_not, pattern }, rest))
    }
}

impl Pattern {
    fn is(&self, value: &str) -> bool {
        match self {
            Pattern::Text(text) => text == value,
            Pattern::Regex(regex) => regex.is_match(value),
        }
    }
}

/// A text in double or single quotes, and the rest of the text.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| ['"', '\''].contains(c))?;
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other if other == quote || other == '\\' => value.push(other),
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_like_those_of_prometheus() {
        let labels = [("mode", "idle"), ("cpu", "12")];
        let matches = |text: &str| {
            Selector::parse(text).expect(text).matches("node_cpu_seconds_total", &labels)
        };
        for text in [
            "node_cpu_seconds_total",
            "node_cpu_seconds_total{}",
            " node_cpu_seconds_total { mode = \"idle\" , } ",
            "node_cpu_seconds_total{mode='idle',cpu!=\"1\"}",
            "{__name__=~\"node_cpu.*\",cpu=~\"1.\"}",
            "node_cpu_seconds_total{host=\"\",mode!~\"user|system\"}",
        ] {
            assert!(matches(text), "{text}");
        }
        for text in [
            "node_cpu",
            "node_cpu_seconds_total{mode=\"user\"}",
            "node_cpu_seconds_total{cpu=~\"1\"}",
            "node_cpu_seconds_total{host!=\"\"}",
            "node_cpu_seconds_total{mode!~\"idle|user\"}",
        ] {
            assert!(!matches(text), "{text}");
        }
    }

    #[test]
    fn every_host_selector_is_valid() {
        let metrics = host_metrics();
        let kept = ALL.iter().filter(|series| series.kept != Kept::Nothing).count();
        assert_eq!(metrics.len(), kept - 1 + MODES.len() + 1);
        let received = "node_network_receive_bytes_total";
        let lo = [("device", "lo")];
        let own = metrics.iter().find(|it| it.name.as_deref() == Some(received));
        assert!(!own.expect("there").selector.matches(received, &lo));
    }

    #[test]
    fn invalid_selectors_are_explained() {
        for (text, why) in [
            ("", "the metric name is missing"),
            ("{}", "the metric name is missing"),
            ("rate(up[5m])", "`rate(up[5m])` is not a metric name"),
            ("up{a}", "`=`, `!=`, `=~` or `!~` is missing after `a`"),
            ("up{a=b}", "the value of `a` is not in quotes"),
            ("up{a=\"b}", "the value of `a` is not in quotes"),
            ("up{a=\"b\"", "the `}` is missing"),
            ("up{a=\"b\"} 5", "unexpected text after the `}`"),
            ("up{=\"b\"}", "the label name is missing"),
            ("up{a=~\"(\"}", "the value of `a` is not a valid regular expression"),
        ] {
            assert_eq!(Selector::parse(text).expect_err(text).english(), why, "{text}");
        }
    }
}
