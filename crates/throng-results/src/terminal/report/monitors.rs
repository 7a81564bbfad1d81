//! The readings of monitors.

use super::super::Style;
use super::super::columns::{Columns, NOTHING};
use super::super::text::{clean, compact, width};
use crate::monitors::{MonitorRow, SeriesRow};
use crate::summary::Summary;

use throng_base::units::{format_bytes, format_count};
use throng_metrics::host::is_bytes;

/// Width of a value.
const FIGURE: usize = 9;
/// Width of a series name next to four values.
const NAME: usize = 32;

pub(super) fn monitors(summary: &Summary, style: &Style) -> String {
    let tables = summary.monitors.iter().map(|row| monitor(row, style));
    tables.collect::<Vec<_>>().join("\n")
}

fn monitor(row: &MonitorRow, style: &Style) -> String {
    let name = clean(&row.name);
    let of: String = match &row.machine {
        Some(machine) => style.say(say!("{name}, read by {machine}")),
        None => name,
    };
    let title = throng_base::Said::of_others(of.clone());
    let figure = |of: fn(&SeriesRow) -> f64| {
        move |series: &SeriesRow| match series.count {
            0 => NOTHING.to_string(),
            _ => figure_text(series, of(series)),
        }
    };
    let table = Columns::of(title, |series: &SeriesRow| short(&clean(&series.name)))
        .cell(say!("mean"), figure(|series| series.mean))
        .cell(say!("min"), figure(|series| series.min))
        .cell(say!("max"), figure(|series| series.max))
        .cell(say!("last"), figure(|series| series.last))
        .table(&row.series);
    let mut text = match row.series.is_empty() {
        true => String::new(),
        false => table.render(style),
    };
    let all = row.read + row.failed;
    if row.failed > 0 {
        let (failed, all) = (format_count(row.failed), format_count(all));
        let detail = row.trouble.clone().unwrap_or_default();
        let told = say!("{of}: {failed} of {all} reads failed; last error: {detail}");
        text.push_str(&style.say(told));
        text.push('\n');
    } else if all == 0 {
        text.push_str(&style.say(say!("{of}: not read during the run")));
        text.push('\n');
    }
    text
}

/// Truncates the labels of a series, so that its name stays complete.
fn short(series: &str) -> String {
    let Some((name, labels)) = series.split_once('{').filter(|_| width(series) > NAME) else {
        return series.to_string();
    };
    let room = NAME.saturating_sub(width(name) + 2);
    let end: String = labels.chars().rev().take(room).collect();
    format!("{name}{{…{}", end.chars().rev().collect::<String>())
}

/// The value of a counter is per second.
fn figure_text(series: &SeriesRow, figure: f64) -> String {
    let text = match figure.abs() {
        _ if is_bytes(&series.name) && figure >= 0.0 => format_bytes(figure),
        size if size >= 99_999.5 => {
            let sign = if figure < 0.0 { "-" } else { "" };
            format!("{sign}{}", compact(size.round() as u64, FIGURE - 4))
        }
        0.0 => "0".into(),
        size if size < 0.001 => format!("{figure:.1e}"),
        size => {
            let decimals = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            let text = format!("{figure:.decimals$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                false => text,
            }
        }
    };
    if series.counter { format!("{text}/s") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_name_is_not_truncated() {
        assert_eq!(short("up{job=\"shop\"}"), "up{job=\"shop\"}");
        let queue = "throng_listen_queue_max{address=\"127.0.0.1\",port=\"42001\"}";
        assert_eq!(short(queue), "throng_listen_queue_max{…42001\"}");
        let long = "node_netstat_TcpExt_TCPReqQFullDoCookies{a=\"1\"}";
        assert_eq!(short(long), "node_netstat_TcpExt_TCPReqQFullDoCookies{…");
    }

    #[test]
    fn values_are_short() {
        let told = |name: &str, counter, figure| {
            let name = name.to_string();
            figure_text(&SeriesRow { name, counter, ..SeriesRow::default() }, figure)
        };
        assert_eq!(told("load", false, 0.0), "0");
        assert_eq!(told("load", false, 12.3456), "12.35");
        assert_eq!(told("load", false, 2.0), "2");
        assert_eq!(told("load", false, -0.25), "-0.25");
        assert_eq!(told("load", false, 0.000_012), "1.2e-5");
        assert_eq!(told("files", false, 1_234_567.0), "1.23M");
        assert_eq!(told("files", false, 98_765.0), "98765");
        assert_eq!(told("idle{cpu=\"0\"}", true, 0.9876), "0.9876/s");
        assert_eq!(told("rx_bytes_total{device=\"eth0\"}", true, 2048.0), "2.05 KB/s");
        assert_eq!(told("huge", false, 1e300), "18.4E");
    }
}
