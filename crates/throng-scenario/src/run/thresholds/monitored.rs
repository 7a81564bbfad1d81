//! Figures of monitored sources: `host cpu < 80%`, `shop-1 memory max < 90%`, `shop-1 node_load1 <
//! 4`. `host` means every source with this figure.

use throng_metrics::{HostFigure, Measure, Monitored, Subject, Threshold};
use throng_program::Monitor;
use throng_program::monitor::Origin;

use super::{ThresholdsReader, generated};

/// Every source.
const HOST: &str = "host";
const MEASURES: [(&str, Measure); 3] =
    [("mean", Measure::Mean), ("min", Measure::Min), ("max", Measure::Max)];

impl ThresholdsReader<'_, '_, '_> {
    /// A figure of a source, if the left side names one; the inner `None` if it was refused.
    pub(super) fn monitored(&mut self, left: &str) -> Option<Option<(Subject, Measure)>> {
        let names = self.names.monitors.iter().map(|monitor| monitor.name.as_str());
        // If one name is a prefix of another, the longer one wins.
        let found = names.chain([HOST]).filter_map(|name| Some((name, rest(left, name)?)));
        let Some((name, rest)) = found.max_by_key(|(name, _)| name.len()) else {
            return unmonitored(self, left);
        };
        let (figure, word) = match rest.rsplit_once(char::is_whitespace) {
            Some((figure, word)) if MEASURES.iter().any(|(known, _)| *known == word) => {
                (figure.trim_end(), word)
            }
            _ => (rest, "mean"),
        };
        // A step may have this name.
        let subject = left.rsplit_once(char::is_whitespace).map_or(left, |(subject, _)| subject);
        if self.names.step(left).is_some() || self.names.step(subject.trim_end()).is_some() {
            return None;
        }
        if self.names.monitors.is_empty() {
            return Some(no_monitor(self, left));
        }
        Some(self.figure(name, figure, word))
    }

    fn figure(&mut self, name: &str, figure: &str, word: &str) -> Option<(Subject, Measure)> {
        let source = self.names.monitors.iter().find(|monitor| monitor.name == name);
        let measure = MEASURES.iter().find(|(known, _)| *known == word)?.1;
        let is_json = |monitor: &Monitor| matches!(monitor.origin, Origin::Json(..));
        let figure = match (figure, source.is_some_and(is_json)) {
            ("cpu", false) if measure != Measure::Mean => {
                let message = say!("for `cpu`, only the mean is available");
                let help = say!("write `host cpu < 80%`, or use `throng_cpu_busiest_share max`");
                return self.fail("bad-threshold", message, word, help);
            }
            ("cpu", false) => HostFigure::Cpu,
            ("memory", false) => HostFigure::Memory,
            (series, _) => HostFigure::Series(series.to_string()),
        };
        if let (Some(Monitor { origin: Origin::Json(_, values), .. }), HostFigure::Series(series)) =
            (source, &figure)
            && !values.iter().any(|value| value.name == *series)
        {
            let names = values.iter().map(|value| value.name.as_str());
            return self.unknown(say!("value"), series, names);
        }
        let source = source.map_or_else(String::new, |monitor| monitor.name.clone());
        Some((Subject::Monitored(Monitored { source, figure }), measure))
    }

    /// Refuses a place for figures that are known only for the whole run: those of sources, and the
    /// generated share.
    pub(super) fn whole_run(&mut self, threshold: &Threshold) -> Option<()> {
        let is_part = threshold.over_s > 0 || threshold.phase.is_some() || threshold.load.is_some();
        match threshold.subject {
            Subject::Monitored(_) if is_part => {
                let message = say!("a metric of a monitored host covers all measured phases");
                let help = say!("remove the text after the value: `host cpu < 80%`");
                self.fail("bad-threshold", message, &threshold.text, help)
            }
            Subject::Generated if is_part || threshold.around.is_some() => {
                generated::refuse_part(self, &threshold.text)
            }
            _ => Some(()),
        }
    }
}

/// Reports an unknown host, if a figure follows that only hosts have.
fn unmonitored(
    reader: &mut ThresholdsReader<'_, '_, '_>,
    left: &str,
) -> Option<Option<(Subject, Measure)>> {
    let mut words = left.split_whitespace();
    let (name, figure) = (words.next()?, words.next()?);
    let is_figure = ["cpu", "memory"].contains(&figure)
        && words.next().is_none_or(|word| MEASURES.iter().any(|(known, _)| *known == word));
    if !is_figure || words.next().is_some() || reader.names.step(left).is_some() {
        return None;
    }
    if reader.names.monitors.is_empty() {
        return Some(no_monitor(reader, left));
    }
    let names = reader.names.monitors.iter().map(|monitor| monitor.name.as_str());
    let names: Vec<&str> = names.chain([HOST]).collect();
    Some(reader.unknown(say!("monitored host"), name, names.into_iter()))
}

fn no_monitor<T>(reader: &mut ThresholdsReader<'_, '_, '_>, left: &str) -> Option<T> {
    let message = say!("the scenario does not monitor any host");
    let help = say!("add one with `monitor`: `monitor: [{{host: user@shop-1}}]`");
    reader.fail("unknown-name", message, left, help)
}

/// The text after this word.
fn rest<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(word)?;
    let figure = rest.trim_start();
    (rest.len() > figure.len() && !figure.is_empty()).then_some(figure)
}
