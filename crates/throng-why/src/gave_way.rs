//! Finds what limited the service at the border of a capacity search: the findings of the failed
//! levels, and the usage of the target's host.

use throng_base::Said;

use crate::finding::{Code, Finding, Span, percent};
use crate::record::{BUSY, FailedLevel, Record, Watched};

/// Levels above the border by up to this factor fail for the same reason.
const NEAR_MAX: f64 = 1.1;
/// CPU usage from which on processors are the limit.
const BUSY_MIN: f64 = 0.9;
/// One processor is this busy and the others are not: part of the program is single-threaded.
const ONE_MIN: f64 = 0.95;
const OTHERS_MAX: f64 = 0.7;

/// A symptom of a failed level.
#[derive(Clone, Debug, PartialEq)]
pub struct GaveWay {
    /// A finding of the run; `None` for a metric of the target's host.
    pub code: Option<Code>,
    pub text: Said,
}

/// Hosts first, then findings, the most certain first.
pub(crate) fn gave_way(record: &Record, findings: &[Finding]) -> Vec<GaveWay> {
    let Some(search) = &record.facts.search else { return Vec::new() };
    let lowest = search.failed.iter().map(|level| level.load).fold(f64::INFINITY, f64::min);
    let near: Vec<&FailedLevel> =
        search.failed.iter().filter(|level| level.load <= lowest * NEAR_MAX).collect();
    let share = search.border.filter(|border| *border > 0.0).map(|border| lowest / border);
    let hosts = record.watched(BUSY).filter_map(|row| host(record, row, &near, share));
    let is_near = |finding: &&Finding| near.iter().any(|level| level.span.overlaps(finding.when));
    let found = findings.iter().filter(is_near);
    let found = found.map(|it| GaveWay { code: Some(it.code), text: it.text.clone() });
    hosts.chain(found).collect()
}

/// The mean of a series during these levels.
fn mean(row: &Watched, levels: &[&FailedLevel]) -> Option<f64> {
    let spans: Vec<Span> = levels.iter().map(|level| level.span).collect();
    row.mean(&spans)
}

fn host(
    record: &Record,
    busy: &Watched,
    levels: &[&FailedLevel],
    share: Option<f64>,
) -> Option<GaveWay> {
    let all = mean(busy, levels)?;
    let mut own = record.watched("throng_cpu_busiest_share");
    let one = own.find(|row| row.source == busy.source).and_then(|row| mean(row, levels));
    let place = match share {
        Some(share) => say!("at {} times the capacity", format!("{share:.2}")),
        None => say!("at the lowest load that failed"),
    };
    let source = busy.source.clone();
    let text = match one {
        _ if all >= BUSY_MIN => {
            say!(
                "{source}: its processors were {} busy {}; they are the limit",
                percent(all),
                place
            )
        }
        Some(one) if one >= ONE_MIN && all <= OTHERS_MAX => say!(
            "{source}: one processor was {} busy {}, all processors together {}; a single thread \
             is the limit",
            percent(one),
            place,
            percent(all)
        ),
        _ => say!(
            "{source}: its processors were {} busy {}; the bottleneck is something else",
            percent(all),
            place
        ),
    };
    Some(GaveWay { code: None, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;
    use crate::record::{Facts, SearchFacts};
    use crate::timeline::Timeline;

    fn watched(name: &str, at_border: f64) -> Watched {
        let value = |at: u32| if (30..40).contains(&at) { at_border } else { 0.2 };
        let points = (0..60).map(|at| (f64::from(at), value(at))).collect();
        Watched { source: "shop".into(), name: name.into(), points }
    }

    fn told(busy: f64, one: f64, findings: &[Finding]) -> Vec<(Option<Code>, String)> {
        let failed = |load, from| FailedLevel { load, span: Span::new(from, from + 9.0) };
        let facts = Facts {
            watched: vec![watched(BUSY, busy), watched("throng_cpu_busiest_share", one)],
            search: Some(SearchFacts {
                failed: vec![failed(980.0, 30.0), failed(2_000.0, 50.0)],
                border: Some(1_000.0),
            }),
            ..Facts::default()
        };
        let timeline = Timeline::default();
        let record = Record::new(&facts, &timeline, Vec::new());
        let found = gave_way(&record, findings);
        found.into_iter().map(|it| (it.code, it.text.english())).collect()
    }

    #[test]
    fn busy_processors_at_the_border_are_named() {
        let found = told(0.97, 0.99, &[]);
        let text = "shop: its processors were 97 % busy at 0.98 times the capacity; they are \
             the limit";
        assert_eq!(found, [(None, text.to_string())]);
        assert!(told(0.4, 0.99, &[])[0].1.contains("a single thread is the limit"));
        assert!(told(0.4, 0.5, &[])[0].1.contains("the bottleneck is something else"));
    }

    #[test]
    fn findings_of_levels_near_the_border_are_named_and_others_are_not() {
        let at = |from| {
            let when = Span::new(from, from + 2.0);
            Finding::new(Code::AcceptQueueFull, Level::Certain, say!("certain"), when)
        };
        let codes = |from| told(0.4, 0.5, &[at(from)]).into_iter().filter_map(|it| it.0).count();
        assert_eq!((codes(32.0), codes(50.0), codes(5.0)), (1, 0, 0));
    }
}
