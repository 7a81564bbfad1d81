//! What throng's ledger says about deliveries, beside what the target counted itself. A target that
//! is told to lose some of them must find the same number in the ledger.

use serde_json::Value;

use super::report::spaced;

/// A row of `deliveries` in the summary; see docs/json.md.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ledger {
    pub(super) sent: u64,
    pub(super) expected: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) excused: u64,
    pub(super) twice: u64,
    pub(super) stray: u64,
    pub(super) foreign: u64,
    pub(super) unwatched: u64,
    pub(super) late: u64,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
}

/// `deliveries` in the statistics of `throng target chat` and `push`; see docs/target.md.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Served {
    pub(super) owed: u64,
    pub(super) written: u64,
    pub(super) lost: u64,
    pub(super) dropped: u64,
    pub(super) twice: u64,
}

impl Ledger {
    /// The row of this name in a summary.
    pub(super) fn of(summary: &Value, name: &str) -> Result<Ledger, String> {
        let rows = summary.get("deliveries").and_then(Value::as_array);
        let named = |row: &&Value| row.get("name").and_then(Value::as_str) == Some(name);
        let row = rows.into_iter().flatten().find(named);
        let row = row.ok_or_else(|| format!("the summary has no deliveries `{name}`"))?;
        let count = |field: &str| row.get(field).and_then(Value::as_u64).unwrap_or(0);
        let time = |field: &str| row.pointer(&format!("/latency/{field}")).and_then(Value::as_u64);
        Ok(Ledger {
            sent: count("sent"),
            expected: count("expected"),
            delivered: count("delivered"),
            lost: count("lost"),
            excused: count("excused"),
            twice: count("twice"),
            stray: count("stray"),
            foreign: count("foreign"),
            unwatched: count("unwatched"),
            late: count("late"),
            p50_ns: time("p50_ns"),
            p99_ns: time("p99_ns"),
            max_ns: time("max_ns"),
        })
    }

    pub(super) fn times(&self) -> Option<String> {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (p50, p99, max) = (self.p50_ns?, self.p99_ns?, self.max_ns?);
        Some(format!("{:.1} / {:.1} / {:.1} ms", ms(p50), ms(p99), ms(max)))
    }
}

impl Served {
    pub(super) fn of(stats: &Value) -> Served {
        let count = |field: &str| {
            stats.pointer(&format!("/deliveries/{field}")).and_then(Value::as_u64).unwrap_or(0)
        };
        Served {
            owed: count("owed"),
            written: count("written"),
            lost: count("lost"),
            dropped: count("dropped"),
            twice: count("twice"),
        }
    }
}

/// In what the two do not agree; nothing when every delivery is accounted for. They can only agree
/// where nobody came or left while a message was on its way.
pub(super) fn disagreements(ledger: &Ledger, served: &Served) -> Vec<String> {
    let pairs = [
        ("expected", ledger.expected, "owed", served.owed),
        (
            "delivered",
            ledger.delivered,
            "written once",
            served.written.saturating_sub(served.twice),
        ),
        ("lost", ledger.lost, "lost", served.lost + served.dropped),
        ("twice", ledger.twice, "twice", served.twice),
    ];
    let none = [
        ("excused", ledger.excused),
        ("stray", ledger.stray),
        ("foreign", ledger.foreign),
        ("unwatched", ledger.unwatched),
    ];
    let differ = pairs.iter().filter(|(_, ours, _, theirs)| ours != theirs).map(
        |(what, ours, other, theirs)| {
            format!("{what} {}, but the target {other} {}", spaced(*ours), spaced(*theirs))
        },
    );
    let more = none.iter().filter(|(_, count)| *count > 0);
    let mut said: Vec<String> =
        differ.chain(more.map(|(what, count)| format!("{what} {}", spaced(*count)))).collect();
    if ledger.expected == 0 {
        said.push("no message had a receiver".to_string());
    }
    said
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row of the ledger as the summary has it.
    pub(in crate::bench) fn summary(name: &str, delivered: u64, lost: u64) -> Value {
        serde_json::json!({"deliveries": [{
            "name": name, "sent": 2, "expected": delivered + lost, "delivered": delivered,
            "lost": lost, "latency": {"p50_ns": 1_500_000, "p99_ns": 2_000_000, "max_ns": 9_000_000},
        }]})
    }

    /// Statistics of a target that lost so many.
    pub(in crate::bench) fn stats(written: u64, lost: u64) -> Value {
        serde_json::json!({"deliveries": {"owed": written + lost, "written": written, "lost": lost}})
    }

    #[test]
    fn both_views_are_read_and_compared() {
        let ledger = Ledger::of(&summary("talk", 1_999, 1), "talk").unwrap();
        assert_eq!(ledger.times().as_deref(), Some("1.5 / 2.0 / 9.0 ms"));
        assert!(disagreements(&ledger, &Served::of(&stats(1_999, 1))).is_empty());
        let other = disagreements(&ledger, &Served::of(&stats(2_000, 0)));
        assert_eq!(
            other,
            ["delivered 1 999, but the target written once 2 000", "lost 1, but the target lost 0",]
        );
        let strange = Ledger { unwatched: 3, ..ledger };
        assert_eq!(disagreements(&strange, &Served::of(&stats(1_999, 1))), ["unwatched 3"]);
    }

    #[test]
    fn an_empty_ledger_agrees_with_nobody() {
        assert!(Ledger::of(&summary("talk", 1, 1), "other").is_err());
        assert!(Ledger::of(&Value::Null, "talk").is_err());
        let said = disagreements(&Ledger::default(), &Served::of(&Value::Null));
        assert_eq!(said, ["no message had a receiver"]);
    }
}
