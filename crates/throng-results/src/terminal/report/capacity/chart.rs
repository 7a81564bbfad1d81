//! A chart of throughput and p99 over the load; the axis shows the promise, the interval and the
//! lowest level that failed.

use throng_base::Said;
use throng_metrics::Unit;

use super::super::super::text::{rate, width};
use super::super::super::{Ink, Style};
use super::super::{figure_text, wrap_items};
use throng_metrics::capacity::{Basis, Capacity, Level, LevelVerdict, LoadUnit};

const COLUMNS_MAX: usize = 64;
const LABEL_COLUMNS: usize = 9;
const SERVED_ROWS: usize = 6;
const TIME_ROWS: usize = 4;

const MET: (char, Ink) = ('●', Ink::Good);
const NOT_MET: (char, Ink) = ('×', Ink::Bad);
const BOUND: (char, Ink) = ('○', Ink::Warn);
const AXIS: (char, Ink) = ('─', Ink::Plain);
const RANGE: (char, Ink) = ('═', Ink::Bold);
const PROMISE: (char, Ink) = ('▲', Ink::Good);

type Line = Vec<(char, Ink)>;

/// Empty with fewer than two levels.
pub(in crate::terminal) fn picture(found: &Capacity, style: &Style) -> String {
    if found.levels.len() < 2 {
        return String::new();
    }
    let columns = COLUMNS_MAX.min(style.columns() - LABEL_COLUMNS - 3);
    let scale = Scale::of(found, columns);
    let served = |level: &Level| Some(level.served);
    let p99 = |level: &Level| level.p99_s.filter(|seconds| *seconds > 0.0).map(f64::ln);
    let per_second = |value: f64| rate(value);
    let time = |value: f64| figure_text(Unit::Nanoseconds, value.exp() * 1e9);
    let served = Panel {
        name: say!("served/s"),
        rows: SERVED_ROWS,
        least: Some(0.0),
        figure: &served,
        text: &per_second,
    };
    let p99 = Panel { name: say!("p99"), rows: TIME_ROWS, least: None, figure: &p99, text: &time };
    let mut out = served.draw(found, &scale, style) + &p99.draw(found, &scale, style);
    out += &format!("{}{}\n", " ".repeat(LABEL_COLUMNS + 1), painted(&axis(found, &scale), style));
    let most = style.say(found.load(scale.most));
    let pad = columns.saturating_sub(1 + width(&most));
    out += &format!("{}0{}{most}\n", " ".repeat(LABEL_COLUMNS + 2), " ".repeat(pad));
    out + &legend(found, style)
}

/// Maps loads to columns.
struct Scale {
    most: f64,
    columns: usize,
}

impl Scale {
    fn of(found: &Capacity, columns: usize) -> Scale {
        let marks = [found.carries, found.low, found.high, found.fails_at];
        let loads = found.levels.iter().map(|level| load(found, level));
        let most = loads.chain(marks.into_iter().flatten()).fold(1.0, f64::max);
        Scale { most, columns }
    }

    fn column(&self, load: f64) -> usize {
        let last = self.columns - 1;
        ((load.max(0.0) / self.most * last as f64).round() as usize).min(last)
    }
}

/// The offered rate, or the requested number of users.
fn load(found: &Capacity, level: &Level) -> f64 {
    match found.unit {
        LoadUnit::PerS => level.offered,
        LoadUnit::Users => level.load,
    }
}

/// The values of all levels over their load, with labels for the minimum and maximum.
struct Panel<'a> {
    name: Said,
    rows: usize,
    /// By default, the minimum of all levels.
    least: Option<f64>,
    figure: &'a dyn Fn(&Level) -> Option<f64>,
    text: &'a dyn Fn(f64) -> String,
}

impl Panel<'_> {
    fn draw(&self, found: &Capacity, scale: &Scale, style: &Style) -> String {
        let figure = |level: &Level| (self.figure)(level).filter(|value| value.is_finite());
        let known = || found.levels.iter().filter_map(figure);
        let most = known().fold(f64::NEG_INFINITY, f64::max);
        let least = self.least.unwrap_or_else(|| known().fold(f64::INFINITY, f64::min));
        if !most.is_finite() {
            return String::new();
        }
        let last = self.rows - 1;
        let mut lines = vec![vec![(' ', Ink::Plain); scale.columns]; self.rows];
        for level in &found.levels {
            let Some(value) = figure(level) else { continue };
            let part = if most > least { (value - least) / (most - least) } else { 0.0 };
            let row = last - (part.clamp(0.0, 1.0) * last as f64).round() as usize;
            let point = &mut lines[row][scale.column(load(found, level))];
            // A failed level is visible even if others passed.
            if *point != NOT_MET {
                *point = mark(level);
            }
        }
        let label = |row: usize| match row {
            0 => (self.text)(most),
            1 => style.say(self.name.clone()),
            row if row == last => (self.text)(least),
            _ => String::new(),
        };
        let line = |(row, line): (usize, &Line)| {
            let label = label(row);
            let pad = " ".repeat(LABEL_COLUMNS.saturating_sub(width(&label)));
            let text = format!("{pad}{label} │ {}", painted(line, style));
            text.trim_end().to_string() + "\n"
        };
        lines.iter().enumerate().map(line).collect()
    }
}

fn mark(level: &Level) -> (char, Ink) {
    match level.verdict {
        LevelVerdict::Met => MET,
        LevelVerdict::NotMet(_) => NOT_MET,
        LevelVerdict::GeneratorBound(_) => BOUND,
    }
}

fn axis(found: &Capacity, scale: &Scale) -> Line {
    let mut line = vec![AXIS; scale.columns];
    if let (Some(low), Some(high)) = (found.low, found.high) {
        let (from, to) = (scale.column(low.min(high)), scale.column(low.max(high)));
        line[from..=to].fill(RANGE);
    }
    if let Some(load) = found.fails_at {
        line[scale.column(load)] = NOT_MET;
    }
    if let Some(load) = found.carries {
        line[scale.column(load)] = PROMISE;
    }
    [vec![('└', Ink::Plain), AXIS], line].concat()
}

fn legend(found: &Capacity, style: &Style) -> String {
    let has_range = found.low.is_some() && found.high.is_some();
    let range =
        if found.basis == Basis::Interval { say!("95 % interval") } else { say!("met to not met") };
    let has = |of: (char, Ink)| found.levels.iter().any(|level| mark(level) == of);
    let names: [(bool, (char, Ink), Said); 5] = [
        (has(MET), MET, say!("met")),
        (has(NOT_MET) || found.fails_at.is_some(), NOT_MET, say!("not met")),
        (has(BOUND), BOUND, say!("generator bound")),
        (found.carries.is_some(), PROMISE, say!("confirmed load")),
        (has_range, RANGE, range),
    ];
    let shown = names.into_iter().filter(|(is_shown, ..)| *is_shown);
    let items: Vec<String> =
        shown.map(|(_, (sign, _), name)| format!("{sign} {}", style.say(name))).collect();
    let lines = wrap_items(&items, style.columns()).into_iter();
    lines.map(|line| style.paint(Ink::Dim, &line) + "\n").collect()
}

fn painted(line: &Line, style: &Style) -> String {
    let runs = line.chunk_by(|one, two| one.1 == two.1);
    runs.map(|run| style.paint(run[0].1, &run.iter().map(|(c, _)| *c).collect::<String>()))
        .collect()
}
