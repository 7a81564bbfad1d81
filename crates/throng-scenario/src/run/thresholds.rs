//! Thresholds: `SUBJECT [with pauses] FIGURE COMPARISON VALUE [in PLACE]`, such as `http p99 < 50ms
//! in hold [over 10s]`. A place is a phase, or one of several loads; with a time, each window of
//! that length must meet the threshold. A subject is a step, a transaction, all steps of a kind, a
//! stage or a counter; labels can select steps: `http{region:east} p99 < 50ms`.
//!
//! - [`audits`]: figures of audits.
//! - [`chosen`]: steps selected by labels.
//! - [`generated`]: the share of the load that was generated.
//! - [`monitored`]: figures of monitored sources.
//! - [`names`]: the meaning of a name.
//! - [`unmeasured`]: steps that run only in unmeasured phases.

mod audits;
mod chosen;
mod generated;
mod monitored;
mod names;
mod unmeasured;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use throng_base::units::{self, UnitError};
use throng_base::{Said, Source, StepId};
use throng_metrics::DeliveryCounter;
use throng_metrics::{
    AbortRule, Around, Comparison, Counter, Interval, Measure, Stage, Subject, Threshold, Unit,
};
use throng_program::StepKind;

use chosen::Chosen;
pub(crate) use names::Names;
pub(crate) use unmeasured::Unmeasured;

use crate::labels;
use crate::message::matchers::parse_comparison;
use crate::read::Context;
use crate::steps::parse_byte_rate;
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::shorten;

const HELP: Said = say!(
    "write `http p99 < 50ms`, `errors < 0.1%`, `NAME p95 <= 1s in PHASE`, \
                    `http rate > 500/s` or `unmet = 0`"
);

/// Maximum number of thresholds in a scenario.
const THRESHOLDS_MAX: usize = 1_000;
/// The longest window, and the longest time that a condition must hold.
const TIME_S_MAX: u64 = 3600;

/// The scenario with the thresholds from the command line after its own.
pub(crate) fn with_given(cx: &mut Context<'_>, mut root: Node, given: &[String]) -> Node {
    let Kind::Map(entries) = &mut root.kind else { return root };
    if given.is_empty() {
        return root;
    }
    let source = Source::new("--threshold", given.join("\n"));
    let file = cx.add_source(source, PathBuf::new());
    let mut at = 0;
    let nodes = given.iter().map(|text| {
        let place = Place::new(file, at, at + text.len());
        at += text.len() + 1;
        Node { place, kind: Kind::Scalar { text: text.clone(), plain: false } }
    });
    let nodes: Vec<Node> = nodes.collect();
    let place = Place::new(file, 0, 0);
    match entries.iter_mut().find(|(key, _)| key.text == "thresholds") {
        Some((_, Node { kind: Kind::List(own), .. })) => own.extend(nodes),
        // Null, or refused below.
        Some((_, node)) if node.is_null() => *node = Node { place, kind: Kind::List(nodes) },
        Some(_) => {}
        None => {
            let key = Key { text: "thresholds".into(), place };
            entries.push((key, Node { place, kind: Kind::List(nodes) }));
        }
    }
    root
}

/// `thresholds`.
pub(crate) fn read_thresholds(
    cx: &mut Context<'_>,
    node: &Node,
    names: &Names<'_>,
) -> Vec<Threshold> {
    let help = say!("write `thresholds: [\"http p99 < 50ms\"]`");
    read_each(cx, node, (say!("a list of thresholds"), help), |cx, item| {
        let text = cx.text(item, say!("a threshold"))?;
        ThresholdsReader { cx, node: item, names }.read(&text)
    })
}

/// `abort_when`, `hold_when`: a condition, its window, and how long it must hold.
pub(crate) fn read_abort_rules(
    cx: &mut Context<'_>,
    node: &Node,
    names: &Names<'_>,
) -> Vec<AbortRule> {
    let help = say!("write `abort_when: [\"errors > 10% over 10s for 20s\"]`");
    read_each(cx, node, (say!("a list of conditions"), help), |cx, item| {
        let text = cx.text(item, say!("a condition"))?;
        ThresholdsReader { cx, node: item, names }.read_rule(&text)
    })
}

/// The condition of an event, with the syntax of `abort_when`.
pub(crate) fn read_condition(
    cx: &mut Context<'_>,
    node: &Node,
    names: &Names<'_>,
) -> Option<AbortRule> {
    let text = cx.text(node, say!("a condition"))?;
    ThresholdsReader { cx, node, names }.read_rule(&text)
}

/// The number of the phase with this name, `PHASE` or `LOAD / PHASE`, through all loads.
pub(crate) fn phase_called(
    cx: &mut Context<'_>,
    node: &Node,
    names: &Names<'_>,
    name: &str,
) -> Option<u16> {
    let mut reader = ThresholdsReader { cx, node, names };
    match reader.one_phase(name)? {
        Some(phase) => Some(phase),
        None => {
            let phases = names.loads.iter().flat_map(|load| &load.phases);
            reader.unknown(say!("phase"), name, phases.map(|phase| phase.name.as_str()))
        }
    }
}

fn read_each<T>(
    cx: &mut Context<'_>,
    node: &Node,
    (what, help): (Said, Said),
    mut read: impl FnMut(&mut Context<'_>, &Node) -> Option<T>,
) -> Vec<T> {
    let items = cx.items(node, what, help).unwrap_or_default();
    if let Some(item) = items.get(THRESHOLDS_MAX) {
        let help = say!("write one threshold for all steps of a kind: `http p99 < 50ms`");
        cx.too_many(item.place, say!("there are more than {THRESHOLDS_MAX} thresholds"), help);
    }
    items.iter().take(THRESHOLDS_MAX).filter_map(|item| read(cx, item)).collect()
}

/// The written form, on one line.
fn written(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct ThresholdsReader<'r, 'a, 'p> {
    cx: &'r mut Context<'a>,
    node: &'r Node,
    names: &'r Names<'p>,
}

/// A figure outside of the intervals, if the left side names one; the inner `None` if it was
/// refused.
fn beside(
    reader: &mut ThresholdsReader<'_, '_, '_>,
    left: &str,
    value: &str,
    is_share: bool,
) -> Option<Option<(Subject, Measure)>> {
    if let Some(monitored) = reader.monitored(left) {
        return Some(monitored);
    }
    if left == generated::WORD {
        return Some(generated::read(reader, value, is_share));
    }
    let audit = left.strip_prefix("audit ")?;
    Some(reader.audit(audit.trim(), is_share))
}

impl ThresholdsReader<'_, '_, '_> {
    fn read(&mut self, text: &str) -> Option<Threshold> {
        let (rest, around) = self.split_around(text)?;
        let (threshold, over_s) = self.split_time(rest, " over ")?;
        if over_s > 0 && around.is_some() {
            let message = say!("`over` and `within` cannot be used together");
            let help = say!("write `errors < 1% within 30s of \"EVENT\"`");
            return self.fail("bad-threshold", message, " over ", help);
        }
        let condition = self.condition(threshold)?;
        let threshold = Threshold { text: written(text), over_s, around, ..condition };
        self.certain(&threshold)?;
        self.whole_run(&threshold)?;
        unmeasured::warn(self, &threshold);
        Some(threshold)
    }

    fn read_rule(&mut self, text: &str) -> Option<AbortRule> {
        let (rest, after_s) = self.split_time(text, " for ")?;
        let (condition, over_s) = self.split_time(rest, " over ")?;
        let condition = Threshold { text: written(text), over_s, ..self.condition(condition)? };
        if condition.subject == Subject::Generated {
            return generated::refuse_rule(self, text);
        }
        self.whole_run(&Threshold { over_s: 0, ..condition.clone() })?;
        let message = match (condition.can_be_met(), condition.can_fail()) {
            (true, true) => {
                return Some(AbortRule { condition, after: Duration::from_secs(after_s) });
            }
            (false, _) => say!("this condition is never true"),
            (true, false) => say!("this condition is always true"),
        };
        let label = say!("the result is the same for every value");
        let help = say!("write a condition such as `errors > 10%`");
        self.cx.refuse("bad-threshold", self.node.place, message, label, help)
    }

    /// Splits off `within 30s of "EVENT"`, if present.
    fn split_around<'t>(&mut self, text: &'t str) -> Option<(&'t str, Option<Around>)> {
        let Some((rest, place)) = text.rsplit_once(" within ") else { return Some((text, None)) };
        let Some((time, mark)) = place.split_once(" of ") else { return Some((text, None)) };
        let time = time.trim();
        // The name of a phase can look like anything.
        if units::parse_duration(time).is_err() {
            return Some((text, None));
        }
        let seconds = self.whole_seconds(time)?;
        let mark = mark.trim();
        let quoted = mark.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        let mark = quoted.unwrap_or(mark).trim();
        let events = self.names.events;
        if self.names.complete && events.iter().all(|event| event.name != mark) {
            let near = did_you_mean(mark, events.iter().map(|it| it.name.as_str()));
            let message = say!("there is no event `{}`", shorten(mark));
            let label = near_label(near, say!("not one of `events`"));
            let help =
                say!("the threshold is not met unless a mark with this name is set during the run");
            let place = self.place(mark);
            self.cx.warn("unknown-mark", place, message, label, help);
        }
        Some((rest, Some(Around { seconds, mark: mark.to_string() })))
    }

    /// Splits off a time after this word, if present; in whole seconds.
    fn split_time<'t>(&mut self, text: &'t str, word: &str) -> Option<(&'t str, u64)> {
        let Some((rest, time)) = text.rsplit_once(word) else { return Some((text, 0)) };
        let time = time.trim();
        // The name of a phase can look like anything.
        if units::parse_duration(time).is_err() {
            return Some((text, 0));
        }
        Some((rest, self.whole_seconds(time)?))
    }

    fn whole_seconds(&mut self, time: &str) -> Option<u64> {
        let duration = units::parse_duration(time).unwrap_or_default();
        let is_whole = duration.subsec_nanos() == 0;
        if !is_whole || !(1..=TIME_S_MAX).contains(&duration.as_secs()) {
            let message = say!("`{time}` is not a whole number of seconds up to one hour");
            return self.fail("bad-threshold", message, time, say!("write `10s` or `5m`"));
        }
        Some(duration.as_secs())
    }

    /// A threshold without the time at its end.
    fn condition(&mut self, text: &str) -> Option<Threshold> {
        let (threshold, place) = self.split_place(text);
        let Some((left, comparison, value)) = split_comparison(threshold) else {
            return self.fail("bad-threshold", say!("the threshold has no comparison"), text, HELP);
        };
        if left.ends_with('=')
            && let Some(sign) = threshold.get(left.len() - 1..=left.len())
        {
            let right = if sign == "=<" { "<=" } else { ">=" };
            let message = say!("`{sign}` is not a comparison");
            return self.fail("bad-threshold", message, sign, say!("write `{right}`"));
        }
        let (load, phase) = match place {
            Some(name) => self.load_or_phase(name)?,
            None => (None, None),
        };
        let value = value.trim();
        let (subject, measure, timed) = self.left_side(left.trim(), value)?;
        let value = self.value(measure, &subject, value)?;
        Some(Threshold {
            text: String::new(),
            subject,
            measure,
            comparison,
            value,
            load,
            phase,
            with_pauses: timed == Timed::WithPauses,
            first_byte: matches!(timed, Timed::FirstByte | Timed::FirstEvent),
            over_s: 0,
            around: None,
        })
    }

    /// Splits off `in PLACE`; the name of a phase can look like anything.
    fn split_place<'t>(&self, text: &'t str) -> (&'t str, Option<&'t str>) {
        let known = text.match_indices(" in ").map(|(at, word)| {
            let name = text[at + word.len()..].trim();
            (
                at,
                name,
                self.names.is_load(name).is_some() || !self.names.phases_called(name).is_empty(),
            )
        });
        let known: Vec<(usize, &str, bool)> = known.collect();
        let found = known.iter().find(|(_, _, is_place)| *is_place).or(known.last());
        match found {
            Some((at, name, is_place)) if *is_place || split_comparison(&text[..*at]).is_some() => {
                (&text[..*at], Some(name))
            }
            _ => (text, None),
        }
    }

    /// Reports a threshold that is impossible to meet, and warns of one that is always met.
    fn certain(&mut self, threshold: &Threshold) -> Option<()> {
        let (code, message, label) = if !threshold.can_fail() {
            (
                "never-fails",
                say!("this threshold is always met"),
                say!("every value meets this threshold"),
            )
        } else if !threshold.can_be_met() {
            (
                "never-met",
                say!("this threshold is never met"),
                say!("no value meets this threshold"),
            )
        } else {
            return Some(());
        };
        let help = match threshold.unit() {
            Unit::Share => {
                say!("a share ranges from `0%` to `100%`: write `errors < 1%` or `errors = 0%`")
            }
            _ => say!("metrics are never negative: compare with a larger value"),
        };
        if code == "never-met" {
            return self.cx.refuse(code, self.node.place, message, label, help);
        }
        self.cx.warn(code, self.node.place, message, label, help);
        Some(())
    }

    fn fail<T>(&mut self, code: &'static str, message: Said, part: &str, help: Said) -> Option<T> {
        let place = self.place(part);
        self.cx.refuse(code, place, message, say!("not valid"), help)
    }

    fn place(&self, part: &str) -> Place {
        self.cx.place_of(self.node, part)
    }

    fn load_or_phase(&mut self, name: &str) -> Option<(Option<u16>, Option<u16>)> {
        if let Some(load) = self.names.is_load(name) {
            return Some((Some(load), None));
        }
        let Some(number) = self.one_phase(name)? else {
            let loads = self.names.loads;
            let named = loads.iter().map(|load| load.name.as_str()).filter(|name| !name.is_empty());
            let phases = loads.iter().flat_map(|load| &load.phases);
            let what = if loads.len() > 1 { say!("load or phase") } else { say!("phase") };
            return self.unknown(what, name, named.chain(phases.map(|phase| phase.name.as_str())));
        };
        Some((None, Some(number)))
    }

    /// The number of the only phase with this name, if there is one.
    fn one_phase(&mut self, name: &str) -> Option<Option<u16>> {
        let found = self.names.phases_called(name);
        if let [(one, _), (other, _), ..] = found.as_slice() {
            let (first, second) = (shorten(&one.name), shorten(&other.name));
            let message = say!("several loads have a phase `{}`", shorten(name));
            let label = say!("both `{first}` and `{second}` have this phase");
            let help = say!("add the load's name: `in {first} / {}`", shorten(name));
            let place = self.place(name);
            return self.cx.refuse("bad-threshold", place, message, label, help);
        }
        Some(found.first().map(|(_, number)| *number))
    }

    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    fn unknown<'n, T>(
        &mut self,
        what: Said,
        name: &str,
        all: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<T> {
        if !self.names.complete && what != "figure" && what != "label" {
            return None;
        }
        let place = self.place(name);
        let message = say!("there is no {what} `{}`", shorten(name));
        let none = say!("the scenario has no {what}");
        self.cx.unknown("unknown-name", place, message, (name, all), say!("here"), none)
    }

    /// `http p99`, `GET / errors`, `errors`, `users.online`, `iterations rate`, `checkout with
    /// pauses p95`; without a subject all steps are selected.
    fn left_side(&mut self, left: &str, value: &str) -> Option<(Subject, Measure, Timed)> {
        if let Some((_, gauge)) = GAUGES.iter().find(|(word, _)| is_word(left, word)) {
            return Some((gauge.clone(), Measure::Count, Timed::Whole));
        }
        let is_share = value.ends_with('%');
        if let Some(found) = beside(self, left, value, is_share) {
            let (subject, measure) = found?;
            return Some((subject, measure, Timed::Whole));
        }
        if let Some((step, counter, measure)) = self.names.delivery(left) {
            let subject = Subject::Delivery { step, counter };
            return match (measure, is_share) {
                (Measure::Count, true) if counter.has_whole() => {
                    Some((subject, Measure::ShareOfWhole, Timed::Whole))
                }
                (_, true) => {
                    let all = DeliveryCounter::ALL.iter().filter(|one| one.has_whole());
                    let all: Vec<&str> = all.map(|one| one.word()).collect();
                    self.no_whole(left, value, &all)
                }
                (measure, false) => Some((subject, measure, Timed::Whole)),
            };
        }
        if let Some(counter) = self.names.counter(left) {
            let measure = if is_share { Measure::ShareOfWhole } else { Measure::Count };
            return match !is_share || counter.whole(&Interval::default()).is_some() {
                true => Some((Subject::Counter(counter), measure, Timed::Whole)),
                false => {
                    let has = |one: &&Counter| one.whole(&Interval::default()).is_some();
                    let all: Vec<&str> =
                        Counter::ALL.iter().filter(has).map(|one| one.word()).collect();
                    self.no_whole(left, value, &all)
                }
            };
        }
        let (subject, word) = match left.rsplit_once(char::is_whitespace) {
            Some((subject, word)) => (subject.trim(), word),
            None => ("", left),
        };
        let Some(measure) = measure(word, is_share) else {
            return self.no_figure(left, word);
        };
        if let Some(counter) = self.names.counter(subject) {
            let help = say!("a counter has only the metrics `count` and `rate`");
            return match measure {
                Measure::Count | Measure::Rate => {
                    Some((Subject::Counter(counter), measure, Timed::Whole))
                }
                _ => self.fail(
                    "bad-threshold",
                    say!("a counter does not have this metric"),
                    word,
                    help,
                ),
            };
        }
        if let Some((gauge, _)) = GAUGES.iter().find(|(gauge, _)| is_word(subject, gauge))
            && self.names.step(subject).is_none()
        {
            let message = say!("`{gauge}` is a single number, so no metric can follow it");
            let help = say!("compare it directly: `{gauge} >= 100`");
            return self.fail("bad-threshold", message, word, help);
        }
        self.of_rows(subject, (measure, word))
    }

    /// A figure of steps, a transaction, a stage or a trend; `word` is its name.
    fn of_rows(
        &mut self,
        subject: &str,
        (measure, word): (Measure, &str),
    ) -> Option<(Subject, Measure, Timed)> {
        let (subject, timed) = match self.names.step(subject) {
            Some(_) => (subject, Timed::Whole),
            None => timed_in(subject),
        };
        let subject_of = || match (timed, subject) {
            (Timed::FirstEvent, "") => {
                let ids = self.names.ids(&|step| step.kind == StepKind::Connect);
                Some(Subject::Steps(ids)).filter(|found| self.names.connects(found))
            }
            _ => self.names.subject(subject),
        };
        let found = match subject_of() {
            Some(subject) => subject,
            None => return self.unknown_subject(subject),
        };
        if matches!(measure, Measure::Resent | Measure::ResentShare) && !self.names.asks(&found) {
            let help = say!("write `http resent = 0`, or use the name of an `http` step");
            let message = say!("only HTTP requests and gRPC calls can be resent");
            return self.fail("bad-threshold", message, word, help);
        }
        self.check_own(&found, measure, word)?;
        self.check_timed(timed, subject, (&found, measure), word)?;
        Some((found, measure, timed))
    }

    /// Refuses a share of a number without a total; only `words` have one.
    fn no_whole<T>(&mut self, left: &str, value: &str, words: &[&str]) -> Option<T> {
        let all: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let message = say!("`{}` cannot be compared with a share", shorten(left));
        let help =
            say!("compare it with a number; only {} can be compared with a share", all.join(", "));
        self.fail("bad-threshold", message, value, help)
    }

    /// Counters and trends never fail, and a counter has no values.
    fn check_own(&mut self, subject: &Subject, measure: Measure, word: &str) -> Option<()> {
        let steps = self.names.steps;
        let counters = |ids: &[StepId]| {
            !ids.is_empty() && ids.iter().all(|id| steps[id.index()].kind == StepKind::Counter)
        };
        let is_count = matches!(measure, Measure::Count | Measure::Rate);
        let is_value =
            matches!(measure, Measure::Quantile(_) | Measure::Mean | Measure::Min | Measure::Max);
        let (good, help) = match subject {
            Subject::Steps(ids) if counters(ids) => {
                (is_count, say!("a counter has only the metrics `count` and `rate`"))
            }
            Subject::Trend { .. } => (
                is_count || is_value,
                say!("a trend has `p95`, `mean`, `min`, `max`, `count` and `rate`"),
            ),
            _ => return Some(()),
        };
        match good {
            true => Some(()),
            false => {
                self.fail("bad-threshold", say!("this metric is not available here"), word, help)
            }
        }
    }

    /// Only a transaction has pauses in it, only a request a first byte, only a stream a first
    /// event; and only times differ by them.
    fn check_timed(
        &mut self,
        timed: Timed,
        name: &str,
        (subject, measure): (&Subject, Measure),
        word: &str,
    ) -> Option<()> {
        let (has_it, missing, help, unaffected, shorter) = match timed {
            Timed::Whole => return Some(()),
            Timed::WithPauses => {
                let help = say!("write `NAME with pauses p95 < 10s`, where NAME is a transaction");
                let is_one =
                    |id: &StepId| self.names.steps[id.index()].kind == StepKind::Transaction;
                (
                    matches!(subject, Subject::Steps(ids) if !ids.is_empty()
                        && ids.iter().all(is_one)),
                    say!("only a transaction has pauses"),
                    help.clone(),
                    say!("pauses do not affect this metric"),
                    help,
                )
            }
            Timed::FirstByte => (
                self.names.asks(subject),
                say!("only HTTP requests and gRPC calls have a first byte"),
                say!(
                    "write `http first byte p95 < 200ms`, or replace `http` with the name of an \
                     `http` step"
                ),
                say!("`first byte` does not apply to this metric"),
                say!("write `http first byte p95 < 200ms`"),
            ),
            Timed::FirstEvent => {
                let help = say!(
                    "write `first event p95 < 1s`, or put the name of a `connect` step before it"
                );
                (
                    self.names.connects(subject),
                    say!("only a `connect` step has a first event"),
                    help.clone(),
                    say!("`first event` does not apply to this metric"),
                    help,
                )
            }
        };
        if !has_it {
            let part = if name.is_empty() { timed.words() } else { name };
            return self.fail("bad-threshold", missing, part, help);
        }
        match Unit::of(subject, measure) {
            Unit::Nanoseconds => Some(()),
            _ => self.fail("bad-threshold", unaffected, word, shorter),
        }
    }

    fn no_figure<T>(&mut self, left: &str, word: &str) -> Option<T> {
        if MEASURES_LATER.contains(&word) {
            let place = self.place(word);
            self.cx.not_yet(say!("the metric `{word}`"), place, HELP);
            return None;
        }
        if DeliveryCounter::ALL.iter().any(|counter| counter.word() == word)
            && let Some(name) = left.strip_suffix(word).map(str::trim).filter(|it| !it.is_empty())
            && counter_like(left).is_none()
        {
            return self.unknown_delivery(name);
        }
        if counter_like(left).is_some() && left.contains(' ') {
            let name = left.split_whitespace().collect::<Vec<_>>().join(".");
            return self.unknown_figure(&name);
        }
        if self.names.subject(left).is_some() {
            let help = say!("name a metric: `p99`, `mean`, `max`, `rate`, `count` or `errors`");
            return self.fail(
                "bad-threshold",
                say!("the threshold does not name a metric"),
                left,
                help,
            );
        }
        if let Some(figure) = word.strip_suffix('*').filter(|word| measure(word, false).is_some()) {
            let name = left.strip_suffix(word).unwrap_or("").trim();
            let name = if name.is_empty() { "NAME" } else { name };
            let help = say!("write `{} with pauses {figure}`", shorten(name));
            return self.fail("bad-threshold", say!("`*` is only used in reports"), word, help);
        }
        if is_quantile(word) {
            let help = say!("percentiles range from p0 to p100: `p99`, `p99.9`");
            return self.fail("bad-threshold", say!("this percentile does not exist"), word, help);
        }
        self.unknown_figure(word)
    }

    fn unknown_delivery<T>(&mut self, name: &str) -> Option<T> {
        let steps = self.names.steps;
        let rows = steps.iter().filter(|step| step.kind == StepKind::Delivery);
        self.unknown(say!("delivery"), name, rows.map(|step| step.name.as_str()))
    }

    fn unknown_figure<T>(&mut self, word: &str) -> Option<T> {
        // A name that starts like a counter is a misspelled counter.
        let group = word.split_once('.').map(|(group, _)| group);
        let is_of_group =
            |name: &&str| group.is_some() && name.split_once('.').map(|it| it.0) == group;
        let of_group: Vec<&str> = counters().filter(is_of_group).collect();
        if !of_group.is_empty() {
            return self.unknown(say!("metric"), word, of_group.into_iter());
        }
        let words = MEASURES.iter().map(|(word, _)| *word).chain(["p50", "p90", "p95", "p99"]);
        self.unknown(say!("metric"), word, words.chain(counters()))
    }

    fn unknown_subject<T>(&mut self, subject: &str) -> Option<T> {
        if let Some(chosen) = Chosen::of(subject) {
            return self.unknown_choice(&chosen);
        }
        self.unknown_step(subject)
    }

    /// Reports the part of a selector that no step has.
    fn unknown_choice<T>(&mut self, chosen: &Chosen<'_>) -> Option<T> {
        match self.names.subject(chosen.name) {
            Some(Subject::Steps(_)) => {}
            Some(_) => {
                let help = say!("use labels only with steps, as in `http{{tier:gold}} p99 < 50ms`");
                return self.fail(
                    "bad-threshold",
                    say!("only steps have labels"),
                    chosen.name,
                    help,
                );
            }
            None => return self.unknown_step(chosen.name),
        }
        let steps = self.names.steps;
        let mut all: Vec<String> =
            steps.iter().flat_map(|it| it.labels.iter().map(labels::written)).collect();
        all.sort_unstable();
        all.dedup();
        let asked = chosen.labels.iter().map(|(name, value)| match name.is_empty() {
            true => (*value).to_string(),
            false => format!("{name}:{value}"),
        });
        let asked: Vec<String> = asked.collect();
        if let Some(unknown) = asked.iter().find(|label| !all.contains(label)) {
            return self.unknown(say!("label"), unknown, all.iter().map(String::as_str));
        }
        let help = say!("each label exists, but on different steps");
        let labels = asked.join(",");
        self.fail("bad-threshold", say!("no step has all of these labels"), &labels, help)
    }

    fn unknown_step<T>(&mut self, subject: &str) -> Option<T> {
        let steps = self.names.steps;
        let mut all: Vec<&str> = steps.iter().map(|step| step.kind.word()).collect();
        all.sort_unstable();
        all.dedup();
        let mut seen: HashSet<&str> = all.iter().copied().collect();
        let names = steps.iter().map(|step| step.name.as_str());
        let stages: Vec<&str> = self.names.stages().map(Stage::word).collect();
        for name in names.chain(stages) {
            if seen.insert(name) {
                all.push(name);
            }
        }
        self.unknown(say!("step"), subject, all.into_iter())
    }

    fn value(&mut self, measure: Measure, subject: &Subject, text: &str) -> Option<f64> {
        let parsed: Result<f64, UnitError> = match Unit::of(subject, measure) {
            Unit::Number => units::parse_count(text).map(|count| count as f64),
            Unit::PerSecond => units::parse_rate(text),
            Unit::Share => units::parse_share(text).and_then(|share| match share <= 1.0 {
                true => Ok(share),
                false => Err(UnitError {
                    message: say!("more than 100%"),
                    help: say!("write at most `100%`"),
                }),
            }),
            Unit::Decimal => text.replace('_', "").parse().map_err(|_| UnitError {
                message: say!("not a number"),
                help: say!("compare it with a number: `NAME p95 < 3.5`"),
            }),
            Unit::Bytes => units::parse_size(text).map(|size| size as f64),
            Unit::BytesPerSecond => parse_byte_rate(text),
            Unit::Nanoseconds => units::parse_duration(text).map(|time| time.as_nanos() as f64),
        };
        let reason = match parsed {
            Ok(value) => return Some(value),
            Err(reason) => reason,
        };
        let message = say!("`{}` is not a valid value for this metric", shorten(text));
        let place = self.place(text);
        let error = self.cx.error("bad-threshold", message, place).label(reason.message);
        let is_share = matches!(measure, Measure::Failed | Measure::FailedShare | Measure::OkShare);
        self.cx.fail(match text.parse::<f64>() {
            Ok(share) if is_share && (0.0..=1.0).contains(&share) => {
                let percent = (share * 1e8).round() / 1e6;
                error.help(say!("write the share as a percentage: `{percent}%`"))
            }
            _ => error.help(reason.help),
        })
    }
}

/// The names of counters that stand for a single number.
fn counters() -> impl Iterator<Item = &'static str> + Clone {
    let gauges = GAUGES.iter().map(|(word, _)| *word);
    gauges.chain(Counter::ALL.iter().map(|counter| counter.word()))
}

/// `heartbeat lost` is similar to a counter.
fn counter_like(left: &str) -> Option<&'static str> {
    let name = left.split_whitespace().collect::<Vec<_>>().join(".");
    did_you_mean(&name, counters())
}

/// Which times of a row are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    Whole,
    WithPauses,
    FirstByte,
    /// For the `connect` that opens a stream.
    FirstEvent,
}

impl Timed {
    fn words(self) -> &'static str {
        match self {
            Timed::Whole => "",
            Timed::WithPauses => "with pauses",
            Timed::FirstByte => "first byte",
            Timed::FirstEvent => "first event",
        }
    }
}

/// Splits off the words that select which times.
fn timed_in(subject: &str) -> (&str, Timed) {
    let cut = |words: &str| {
        let (rest, last) = subject.rsplit_once(char::is_whitespace).unwrap_or(("", subject));
        let (first, second) = words.split_once(' ')?;
        let rest = rest.trim_end();
        (last == second).then(|| rest.strip_suffix(first)).flatten().map(str::trim)
    };
    let all = [Timed::WithPauses, Timed::FirstByte, Timed::FirstEvent];
    let found = all.into_iter().find_map(|timed| Some((cut(timed.words())?, timed)));
    found.unwrap_or((subject, Timed::Whole))
}

/// True for this word, also with spaces for its dots and hyphens, or without them.
fn is_word(name: &str, word: &str) -> bool {
    name == word || (name.contains(' ') && name.split_whitespace().eq(word.split(['.', '-'])))
}

/// States at the end of a run; their only figure is a number.
const GAUGES: &[(&str, Subject)] = &[
    ("users.online", Subject::UsersOnline),
    ("users.present", Subject::UsersPresent),
    ("connections", Subject::Connections),
];

/// Splits at the last comparison: a path on its left may contain a `=`.
fn split_comparison(text: &str) -> Option<(&str, Comparison, &str)> {
    let last = text.rfind(['<', '>', '=', '≤', '≥'])?;
    let begin = match text[..last].ends_with(['<', '>', '=']) && text[last..].starts_with('=') {
        true => last - 1,
        false => last,
    };
    let (comparison, right) = parse_comparison(&text[begin..])?;
    Some((&text[..begin], comparison, right))
}

const MEASURES: &[(&str, Measure)] = &[
    ("mean", Measure::Mean),
    ("avg", Measure::Mean),
    ("min", Measure::Min),
    ("max", Measure::Max),
    ("rate", Measure::Rate),
    ("count", Measure::Count),
    ("errors", Measure::Failed),
    ("resent", Measure::Resent),
    ("checks", Measure::OkShare),
    ("ok", Measure::OkShare),
];

/// Planned figures, for audits.
const MEASURES_LATER: &[&str] = &["false_online", "false_offline"];

fn measure(word: &str, share: bool) -> Option<Measure> {
    if let Some((_, measure)) = MEASURES.iter().find(|(name, _)| *name == word) {
        return Some(match measure {
            Measure::Failed if share => Measure::FailedShare,
            Measure::Resent if share => Measure::ResentShare,
            measure => *measure,
        });
    }
    let percent: f64 = word.strip_prefix('p').filter(|_| is_quantile(word))?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(Measure::Quantile(percent / 100.0))
}

fn is_quantile(word: &str) -> bool {
    let number = word.strip_prefix('p').unwrap_or("");
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_and_figures_are_parsed() {
        assert_eq!(split_comparison("a <= 1"), Some(("a ", Comparison::LessOrEqual, " 1")));
        assert_eq!(split_comparison("a≥1"), Some(("a", Comparison::GreaterOrEqual, "1")));
        assert_eq!(split_comparison("a 1"), None);
        assert_eq!(split_comparison("GET /?x=1 < 2"), Some(("GET /?x=1 ", Comparison::Less, " 2")));
        assert_eq!(split_comparison("=1"), Some(("", Comparison::Equal, "1")));
        assert_eq!(measure("p50", false), Some(Measure::Quantile(0.5)));
        assert_eq!(measure("p101", false), None);
        assert_eq!(measure("pole", false), None);
        assert_eq!(measure("errors", true), Some(Measure::FailedShare));
    }
}
