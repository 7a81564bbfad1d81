//! The text format of Prometheus, version 0.0.4, and the common subset of OpenMetrics 1.0.
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::borrow::Cow;
use std::collections::HashMap;

/// The maximum number of labels per sample; a line with more is unreadable.
const LABELS_MAX: usize = 64;

/// Names and values.
type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// A figure of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    pub name: &'a str,
    /// In their order in the text.
    pub labels: Labels<'a>,
    pub value: f64,
    /// A counter: its rate is meaningful, its value is not.
    pub is_counter: bool,
}

/// The content of a text. `unreadable` counts the lines that are neither samples nor comments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read<'a> {
    pub samples: Vec<Sample<'a>>,
    pub unreadable: u64,
}

/// Reads a text and keeps the samples that `wants` accepts by name and labels.
pub fn read<'a>(
    text: &'a str,
    mut wants: impl FnMut(&str, &[(&'a str, Cow<'a, str>)]) -> bool,
) -> Read<'a> {
    let mut types: HashMap<&str, &str> = HashMap::new();
    let mut read = Read::default();
    for line in text.lines() {
        let line = line.trim_matches([' ', '\t', '\r']);
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_ascii_whitespace();
            if words.next() == Some("TYPE")
                && let (Some(name), Some(kind)) = (words.next(), words.next())
            {
                types.insert(name, kind);
            }
        } else if !line.is_empty() {
            match sample(line) {
                Some((name, labels, value)) if wants(name, &labels) => {
                    let is_counter = is_counter(&types, name);
                    read.samples.push(Sample { name, labels, value, is_counter });
                }
                Some(_) => {}
                None => read.unreadable += 1,
            }
        }
    }
    read
}

/// `name{label="value",…} 12.5 1700000000 # exemplar`: name, labels, value.
type Parts<'a> = (&'a str, Labels<'a>, f64);

fn sample(line: &str) -> Option<Parts<'_>> {
    let end = line.find(['{', ' ', '\t'])?;
    let (name, rest) = line.split_at(end);
    if !is_name(name, ":") {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '\t']);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = rest.split_ascii_whitespace().next()?;
    Some((name, labels, number(value)?))
}

/// Up to the `}`, and the rest of the line.
fn labels(text: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t']);
    loop {
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, behind) = rest.split_once('=')?;
        let name = name.trim_matches([' ', '\t']);
        if !is_name(name, "") || labels.len() == LABELS_MAX {
            return None;
        }
        let (value, behind) = quoted(behind.trim_start_matches([' ', '\t']))?;
        labels.push((name, value));
        rest = behind.trim_start_matches([' ', '\t']);
        rest = match rest.strip_prefix(',') {
            Some(behind) => behind.trim_start_matches([' ', '\t']),
            None if rest.starts_with('}') => rest,
            None => return None,
        };
    }
}

/// A quoted text with the escapes `\\`, `\"` and `\n`.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let text = text.strip_prefix('"')?;
    let end = text.find(['"', '\\'])?;
    if text.as_bytes()[end] == b'"' {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = text[..end].to_string();
    let mut letters = text[end..].char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((Cow::Owned(value), &text[end + at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other @ ('\\' | '"') => value.push(other),
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
    None
}

/// Numbers as in Go, including `+Inf`, `-Inf` and `NaN`.
fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ if text.contains(['i', 'I', 'n', 'N']) => None,
        _ => text.parse().ok(),
    }
}

/// Letters, digits, `_`, and `others`; it does not start with a digit.
fn is_name(text: &str, others: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || others.contains(c);
    text.chars().next().is_some_and(is_letter)
        && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// Kernel counters that node_exporter exports without a type, or as gauges; and the gauges among
/// them.
const KERNEL_COUNTERS: [&str; 3] = ["node_netstat_", "node_vmstat_", "node_nf_conntrack_stat_"];
const KERNEL_GAUGES: [&str; 7] = [
    "node_netstat_Tcp_CurrEstab",
    "node_netstat_Tcp_MaxConn",
    "node_netstat_Tcp_RtoAlgorithm",
    "node_netstat_Tcp_RtoMax",
    "node_netstat_Tcp_RtoMin",
    "node_netstat_Ip_DefaultTTL",
    "node_netstat_Ip_Forwarding",
];

/// By its type, or else by the usual suffix of counter names.
fn is_counter(types: &HashMap<&str, &str>, name: &str) -> bool {
    const ENDINGS: [&str; 3] = ["_count", "_sum", "_bucket"];
    if KERNEL_COUNTERS.iter().any(|start| name.starts_with(start)) {
        // In `vmstat`, this prefix means a current amount.
        return !KERNEL_GAUGES.contains(&name) && !name.starts_with("node_vmstat_nr_");
    }
    if let Some(kind) = types.get(name) {
        return matches!(*kind, "counter" | "histogram");
    }
    // The parts of a histogram or summary; the counters of OpenMetrics, whose type line omits
    // `_total`.
    let of = |ending: &&str| name.strip_suffix(*ending).and_then(|name| types.get(name));
    if let Some(kind) = ENDINGS.iter().find_map(of) {
        return matches!(*kind, "histogram" | "summary");
    }
    name.ends_with("_total")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Read<'_> {
        read(text, |_, _| true)
    }

    #[test]
    fn samples_of_the_format_s_own_examples() {
        let text = concat!(
            "# HELP http_requests_total The total number of HTTP requests.\n",
            "# TYPE http_requests_total counter\n",
            "http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n",
            "http_requests_total{method=\"post\",code=\"400\",}    3 1395066363000\n\n",
            "# Escaping in label values:\n",
            "msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\FILE.TXT\",",
            "error=\"Cannot find file:\\n\\\"FILE.TXT\\\"\"} 1.458255915e9\n",
            "metric_without_timestamp_and_labels 12.47\n",
            "something_weird{problem=\"division by zero\"} +Inf -3982045\n",
            "# TYPE rpc summary\n",
            "rpc{quantile=\"0.5\"} 4773\nrpc_sum 1.7560473e+07\nrpc_count 2693\n",
            "# TYPE size histogram\nsize_bucket{le=\"+Inf\"} 144320\n",
            "foo_total 17.0 1520879607.789 # {trace_id=\"KOO5\"} 0.67\n# EOF\n",
        );
        let read = all(text);
        assert_eq!(read.unreadable, 0);
        let shown = |sample: &Sample<'_>| {
            let kind = if sample.is_counter { "counter" } else { "gauge" };
            format!("{} {:?} {} {kind}", sample.name, sample.labels, sample.value)
        };
        let shown: Vec<String> = read.samples.iter().map(shown).collect();
        assert_eq!(
            shown,
            [
                r#"http_requests_total [("method", "post"), ("code", "200")] 1027 counter"#,
                r#"http_requests_total [("method", "post"), ("code", "400")] 3 counter"#,
                r#"msdos_file_access_time_seconds [("path", "C:\\DIR\\FILE.TXT"), ("error", "Cannot find file:\n\"FILE.TXT\"")] 1458255915 gauge"#,
                "metric_without_timestamp_and_labels [] 12.47 gauge",
                r#"something_weird [("problem", "division by zero")] inf gauge"#,
                r#"rpc [("quantile", "0.5")] 4773 gauge"#,
                "rpc_sum [] 17560473 counter",
                "rpc_count [] 2693 counter",
                r#"size_bucket [("le", "+Inf")] 144320 counter"#,
                "foo_total [] 17 counter",
            ]
        );
    }

    #[test]
    fn kernel_counters_are_recognized_with_any_type() {
        let text = "# TYPE node_netstat_TcpExt_ListenDrops untyped\n\
                    node_netstat_TcpExt_ListenDrops 7\n\
                    # TYPE node_nf_conntrack_stat_drop gauge\nnode_nf_conntrack_stat_drop 1\n\
                    node_netstat_Tcp_CurrEstab 5\nnode_vmstat_nr_free_pages 9\n";
        let kinds: Vec<bool> = all(text).samples.iter().map(|it| it.is_counter).collect();
        assert_eq!(kinds, [true, true, false, false]);
    }

    #[test]
    fn invalid_lines_are_counted_and_skipped() {
        for line in [
            "up",
            "up{",
            "up{a=\"b\"",
            "up{a=b} 1",
            "up{a=\"b} 1",
            "up{a=\"b\" c=\"d\"} 1",
            "up{a=\"b\\",
            "9up 1",
            "up one",
            "up infinity",
            "<html>",
            "up{1=\"b\"} 1",
        ] {
            let text = format!("{line}\nup 1\n");
            let read = all(&text);
            assert_eq!((read.samples.len(), read.unreadable), (1, 1), "{line}");
        }
    }

    #[test]
    fn fuzz_any_text_is_read() {
        let corpus: [&[u8]; 3] = [
            b"# TYPE a counter\na{b=\"c\\n\\\\\",d=\"\"} 1e3 17\na NaN\n",
            b"up 1\r\n# HELP up x\n\n\nz_total{ a = \"b\" , } -Inf # {x=\"y\"} 1\n",
            b"h_bucket{le=\"0.1\"} 1\nh_sum 2.5\nh_count 7\n# EOF",
        ];
        throng_fuzz::mutations(&corpus, |bytes, _| {
            let text = String::from_utf8_lossy(bytes);
            let read = all(&text);
            let lines = text.lines().count() as u64;
            assert!(read.samples.len() as u64 + read.unreadable <= lines);
            for sample in &read.samples {
                assert!(is_name(sample.name, ":") && sample.labels.len() <= LABELS_MAX);
            }
        });
    }
}
