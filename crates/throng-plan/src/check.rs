//! `throng check`: what a scenario will do, without sending anything: sessions as trees, the load
//! over time, and estimates of requests, rows and user IDs.

mod audits;
mod drawing;
mod estimate;
mod events;
mod monitors;
mod rows;

use std::fmt::Write as _;
use std::sync::Arc;

use throng_base::columns::{left, right};
use throng_base::units::{format_count, format_duration, write_duration};
use throng_base::{Diagnostic, Said, Share, clean};
use throng_data::{AtEnd, DataError, Source, Table, Take};
use throng_engine::last_user_with;
use throng_load::{Assumed, Expected, Forecast, Planned};
use throng_metrics::AbortRule;
use throng_program::{
    Amount, Arrivals, Churn, Coming, Drive, Lookup, Phase, Program, Rate, SourceBlock, Spacing,
};
use throng_results::terminal::Style;
use throng_scenario::keys::VERBS;
use throng_scenario::outline::{Line, Outline, SessionOutline, outline};
use unicode_width::UnicodeWidthStr as _;

use estimate::Estimate;

/// Lines of a session and lines of a list that are shown; more are counted.
const STEPS_SHOWN_MAX: usize = 200;
const ROWS_SHOWN_MAX: usize = 20;

/// What a program will do, in readable form, and the errors in its sources of rows.
pub struct Checked {
    pub warnings: Vec<Diagnostic>,
    pub text: String,
}

/// Reads the sources of rows, and sends nothing.
///
/// # Errors
/// A source cannot be read, or has too few rows.
pub fn check(program: &Program, style: &Style) -> Result<Checked, DataError> {
    let outline = outline(program, ROWS_SHOWN_MAX);
    let forecast = Forecast::new(program);
    let planned: Vec<Planned> = forecast.planned().cloned().collect();
    let tables = open_tables(program)?;
    let warnings = rows::warnings(program, &forecast, &tables);
    let report =
        Report { program, outline: &outline, planned: &planned, forecast: &forecast, style };
    let sections = [
        report.head(),
        report.sessions(),
        report.data(&tables),
        report.load(),
        report.events(),
        report.audits(),
        report.monitors(),
        report.expectation(&tables),
    ];
    let shown =
        sections.into_iter().chain(report.conditions()).filter(|section| !section.is_empty());
    let text = shown.flat_map(|section| [section, "\n".into()]).collect();
    Ok(Checked { warnings, text })
}

/// The sources of rows, opened as a run would open them.
fn open_tables(program: &Program) -> Result<Vec<Arc<Table>>, DataError> {
    let open = |(number, source)| {
        let table = Table::open(source, program.seed, Share::WHOLE)?;
        table.suffices(last_user_with(program, number))?;
        Ok(table)
    };
    (0..).zip(&program.data).map(open).collect()
}

/// The sources whose rows are used once and end the run when they are exhausted, and their rows.
fn ending(program: &Program, tables: &[Arc<Table>]) -> Vec<(u16, u64)> {
    let ends = |source: &Source| {
        source.take == Take::Unique && matches!(source.at_end, AtEnd::Unsaid | AtEnd::Stop)
    };
    let sources = (0..).zip(&program.data).zip(tables);
    let sources = sources.filter(|((_, source), _)| ends(source));
    sources.filter_map(|((number, _), table)| Some((number, table.rows()?))).collect()
}

struct Report<'p> {
    program: &'p Program,
    outline: &'p Outline,
    planned: &'p [Planned],
    forecast: &'p Forecast<'p>,
    style: &'p Style,
}

fn by_chance(spacing: Spacing) -> Option<Said> {
    (spacing == Spacing::Poisson).then(|| say!("at random (Poisson)"))
}

/// `500/s`, `10/s to 900/s`, and descriptions of other shapes.
fn rate_words(rate: &Rate) -> Said {
    let of = |rate: f64| format!("{}/s", (rate * 1000.0).round() / 1000.0);
    match rate {
        Rate::Ramp { from, to } if from == to => Said::of_others(of(*from)),
        Rate::Ramp { from, to } => Said::of_others(format!("{} … {}", of(*from), of(*to))),
        Rate::Sine(sine) => {
            let (low, high) = (of(sine.mean - sine.amplitude), of(rate.peak()));
            say!("sine from {} to {}, period {}", low, high, write_duration(sine.period))
        }
        Rate::Points(_) => say!("up to {}", of(rate.peak())),
    }
}

impl Report<'_> {
    fn head(&self) -> String {
        let mut out = format!("{}\n", self.style.bold(&clean(&self.program.name)));
        for target in self.program.targets.iter().take(ROWS_SHOWN_MAX) {
            let weight = match target.weight {
                1 => String::new(),
                weight => tell!(" (weight {weight})"),
            };
            let lookup = match target.lookup {
                Lookup::Once => String::new(),
                Lookup::OnFailure => tell!(" (looked up again on failure)"),
                Lookup::Every(time) => {
                    tell!(" (looked up every {}, and on failure)", write_duration(time))
                }
            };
            let written = self.style.dim(&target.written());
            let _ = writeln!(out, "{written}{weight}{lookup}");
        }
        self.more(&mut out, self.program.targets.len());
        let blocks = &self.program.connection.sources.blocks;
        for block in blocks.iter().take(ROWS_SHOWN_MAX) {
            let text = match block {
                SourceBlock::Range { first, last } if first == last => say!("from {first}"),
                SourceBlock::Range { first, last } => say!("from {first} to {last}"),
                SourceBlock::Interface(name) => say!("from the addresses of {name}"),
            };
            let _ = writeln!(out, "{}", self.style.dim(&text.spoken()));
        }
        self.more(&mut out, blocks.len());
        out
    }

    /// Steps that run once, before and after the load.
    fn once(&self, out: &mut String) {
        for once in &self.outline.once {
            let (word, time) = (once.part.word(), write_duration(once.time_max));
            let title = say!("{word} · once per run, timeout {time}");
            let _ = writeln!(out, "{}", self.style.bold(&title.spoken()));
            let mut room = STEPS_SHOWN_MAX;
            self.tree(out, &once.connections, 1, &[], &mut room);
            self.tree(out, &once.steps, 1, &[], &mut room);
            out.push('\n');
        }
    }

    fn sessions(&self) -> String {
        let mut out = String::new();
        self.once(&mut out);
        for (session, expected) in self.outline.sessions.iter().zip(&self.forecast.sessions) {
            let share = format!("{:.3}", session.share * 100.0);
            let share = share.trim_end_matches('0').trim_end_matches('.');
            let title = clean(&tell!("session {} · {share} % of the users", session.name));
            let _ = writeln!(out, "{}", self.style.bold(&title));
            let usual = usual_notes(session);
            let mut room = STEPS_SHOWN_MAX;
            let parts = [
                (say!("connections"), &session.connections),
                (say!("network"), &session.network),
                (say!("before"), &session.before),
                (say!("steps"), &session.steps),
                (say!("after"), &session.after),
                (say!("in the background"), &session.beside),
            ];
            for (name, lines) in parts {
                if lines.is_empty() {
                    continue;
                }
                let _ = writeln!(out, "  {}", self.style.dim(&name.spoken()));
                self.tree(&mut out, lines, 2, &usual, &mut room);
            }
            if !usual.is_empty() {
                let text = tell!("every step: {}", usual.join(" · "));
                let _ = writeln!(out, "  {}", self.style.dim(&self.told(&text)));
            }
            let _ = writeln!(out, "  {}", self.style.dim(&expected_text(expected.steps)));
            out.push('\n');
        }
        self.more(&mut out, self.program.sessions.len());
        if !self.outline.deliveries.is_empty() {
            let _ = writeln!(out, "{}", self.style.bold(&tell!("deliveries")));
            let mut room = STEPS_SHOWN_MAX;
            self.tree(&mut out, &self.outline.deliveries, 1, &[], &mut room);
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        out
    }

    /// A text of the scenario, without secrets and control characters.
    fn told(&self, text: &str) -> String {
        clean(&self.program.secrets.mask(text))
    }

    /// The content of a request has names that show what is secret; other notes are prose.
    fn note(&self, note: &str) -> String {
        let secrets = &self.program.secrets;
        let carried = ["header ", "cookie ", "metadata "];
        clean(&match carried.iter().any(|begin| note.starts_with(begin)) {
            true => secrets.mask(note),
            false => secrets.mask_sentence(note),
        })
    }

    fn tree(
        &self,
        out: &mut String,
        lines: &[Line],
        depth: usize,
        usual: &[&str],
        room: &mut usize,
    ) {
        for line in lines {
            if *room == 0 {
                return;
            }
            *room -= 1;
            let indent = "  ".repeat(depth);
            let _ = writeln!(out, "{indent}{}", self.told(&line.text));
            let notes = line.notes.iter().map(String::as_str);
            let notes = notes.filter(|note| !usual.contains(note));
            let notes: Vec<String> = notes.map(|note| self.note(note)).collect();
            let notes: Vec<&str> = notes.iter().map(String::as_str).collect();
            for row in rows_of(&notes, self.style.width.saturating_sub(depth * 2 + 6)) {
                let _ = writeln!(out, "{indent}    {}", self.style.dim(&row));
            }
            if *room == 0 {
                let _ = writeln!(out, "{indent}{}", tell!("… and more steps"));
                return;
            }
            self.tree(out, &line.steps, depth + 1, usual, room);
        }
    }

    /// The sources of rows with their available and required numbers.
    fn data(&self, tables: &[Arc<Table>]) -> String {
        let mut out = String::new();
        let most = self.forecast.course(Assumed::most());
        let sources = self.program.data.iter().zip(&self.outline.data);
        for (number, ((source, outline), table)) in (0..).zip(sources.zip(tables)) {
            let rows = match table.rows() {
                Some(rows) => tell!("{} rows", format_count(rows)),
                None => tell!("unlimited rows"),
            };
            let name = self.style.bold(&clean(&source.name));
            let _ = write!(out, "{} {name}: {}, {rows}", tell!("data"), outline.origin);
            let _ = write!(out, ", {}", tell!("take {}", outline.take));
            if let Some(needed) = self.forecast.rows(number, &most) {
                let about = format_count(needed);
                let _ = write!(out, "; {}", tell!("up to {about} are needed"));
                if table.rows().is_some_and(|rows| rows < needed) && source.take.can_end() {
                    let short = match source.at_end {
                        AtEnd::Unsaid => say!("too few: the run may end early and be invalid"),
                        AtEnd::Stop => say!("too few: the run may end early"),
                        AtEnd::Wrap => say!("too few: rows may be reused"),
                        AtEnd::Error => say!("too few: steps may fail"),
                    };
                    let _ =
                        write!(out, " {}", self.style.ink("33", &format!("({})", short.spoken())));
                }
            }
            out.push('\n');
        }
        out
    }

    fn load(&self) -> String {
        let mut out = format!("{}\n", self.style.bold(&tell!("load")));
        for change in &self.program.changes {
            let _ = writeln!(out, "  {}", self.style.dim(&change.spoken()));
        }
        let phases: Vec<&Phase> = self.program.phases().collect();
        let width = phases.iter().map(|phase| phase.name.width()).max().unwrap_or(0);
        for (phase, planned) in phases.iter().zip(self.planned).take(ROWS_SHOWN_MAX) {
            let length = match planned.length {
                Some(length) => format_duration(length),
                None => tell!("until done"),
            };
            let mut what = self.drive_text(&phase.drive, planned);
            if let Some(churn) = &phase.churn {
                what.push_str(&churning(churn));
            }
            if !phase.measured {
                what.push_str(&tell!(", not measured"));
            }
            let begin = match planned.begin_is_known {
                true => format_duration(planned.begin),
                false => say!("unknown").render(self.style.language),
            };
            let (name, length) = (left(&phase.name, width), right(&length, 8));
            let _ = writeln!(out, "  {begin:>8}  {name}  {length}  {what}");
        }
        self.more(&mut out, phases.len());
        if let Some(drawing) = drawing::drawing(&self.program.loads, self.planned, self.style.width)
        {
            let _ = write!(out, "\n{drawing}");
        }
        out
    }

    fn drive_text(&self, drive: &Drive, planned: &Planned) -> String {
        let text = match drive {
            Drive::Hold => say!("keeps the current users"),
            Drive::Users(_) if planned.users.0 == planned.users.1 => {
                say!("{} users", format_count(planned.users.1))
            }
            Drive::Users(_) if planned.ramp.is_zero() => {
                say!("{} users, all started at the same time", format_count(planned.users.1))
            }
            Drive::Users(users) => {
                let (from, to) = (format_count(planned.users.0), format_count(planned.users.1));
                match users.coming {
                    Coming::Steps { size, every } => {
                        let (size, every) = (format_count(size), write_duration(every));
                        say!("from {from} to {to} users, in steps of {size} every {every}")
                    }
                    _ => {
                        let rate = users.rate().unwrap_or_default();
                        say!("from {from} to {to} users, {rate}/s")
                    }
                }
            }
            Drive::Arrivals(Arrivals { rate, spacing, max }) => {
                let max = max.map(|max| say!("at most {} at the same time", format_count(max)));
                let what = say!("arrivals: {}, one session per user", rate_words(rate));
                return self.joined([Some(what), None, by_chance(*spacing), max]);
            }
            Drive::Iterations(iterations) => {
                let users = format_count(iterations.users);
                let (spacing, drops) = (iterations.spacing, iterations.drops);
                let what = match iterations.total.map(format_count) {
                    Some(total) => say!("{total} iterations by {users} users"),
                    None => say!("iterations by {users} users"),
                };
                let rate = iterations.rate.as_ref().map(rate_words);
                let drops = drops.then(|| say!("starts are dropped if no user is free"));
                return self.joined([Some(what), rate, by_chance(spacing), drops]);
            }
        };
        text.spoken()
    }

    fn joined(&self, parts: [Option<Said>; 4]) -> String {
        let parts = parts.into_iter().flatten().map(|part| part.render(self.style.language));
        parts.collect::<Vec<String>>().join(", ")
    }

    /// The estimated totals.
    fn expectation(&self, tables: &[Arc<Table>]) -> String {
        let mut out = format!("{}\n", self.style.bold(&tell!("expected")));
        let ending = ending(self.program, tables);
        for line in Estimate::new(self.program, self.forecast, &ending).lines() {
            let _ = writeln!(out, "  {line}");
        }
        out
    }

    /// The thresholds of the run, and what ends it early or pauses its growth.
    fn conditions(&self) -> [String; 3] {
        let of_rules =
            |rules: &'_ [AbortRule]| rules.iter().map(|rule| rule.condition.text.clone()).collect();
        let thresholds = self.program.thresholds.iter().map(|one| one.text.clone()).collect();
        let lists: [(Said, Vec<String>); 3] = [
            (say!("thresholds"), thresholds),
            (say!("abort when"), of_rules(&self.program.abort_when)),
            (say!("hold when"), of_rules(&self.program.hold_when)),
        ];
        lists.map(|(title, texts)| {
            if texts.is_empty() {
                return String::new();
            }
            let mut out = format!("{}\n", self.style.bold(&title.spoken()));
            for text in texts.iter().take(ROWS_SHOWN_MAX) {
                let _ = writeln!(out, "  {text}");
            }
            self.more(&mut out, texts.len());
            out
        })
    }

    fn more(&self, out: &mut String, count: usize) {
        if count > ROWS_SHOWN_MAX {
            let _ = writeln!(out, "  {}", tell!("… and {} more", count - ROWS_SHOWN_MAX));
        }
    }
}

/// Which users disconnect and reconnect, and how.
fn churning(churn: &Churn) -> String {
    let ways: Vec<&str> = churn.ways.iter().map(|way| way.word()).collect();
    let ways = ways.join(", ");
    let text = match churn.amount {
        Amount::Rate(rate) => say!("; {rate} users/s disconnect ({ways}) and reconnect"),
        Amount::Share { share, every } => {
            let (share, every) = (share * 100.0, write_duration(every));
            say!("; {share} % of the users disconnect every {every} ({ways}) and reconnect")
        }
    };
    text.spoken()
}

/// Notes, other than checks and saves, that every step of a session has if it can, mostly because
/// of `defaults`: shown once, they do not hide differences.
fn usual_notes(session: &SessionOutline) -> Vec<&str> {
    fn flat<'o>(lines: &'o [Line], into: &mut Vec<&'o Line>) {
        for line in lines {
            into.push(line);
            flat(&line.steps, into);
        }
    }
    let mut lines = Vec::new();
    for part in [&session.before, &session.steps, &session.after, &session.beside] {
        flat(part, &mut lines);
    }
    let mut usual: Vec<&str> = Vec::new();
    for note in lines.iter().flat_map(|line| &line.notes) {
        let mut able = lines.iter().filter(|line| can_say(&line.text, note));
        let all_say_it = able.clone().all(|line| line.notes.contains(note));
        if all_say_it && able.nth(1).is_some() && !usual.contains(&&**note) {
            usual.push(note);
        }
    }
    usual
}

/// True if a note is one that `defaults` may give to the step of this line.
fn can_say(line: &str, note: &str) -> bool {
    let verb = first_word(line);
    match first_word(note) {
        "header" | "cookie" => matches!(verb, "http" | "connect"),
        // Those of these have other defaults.
        "timeout" if matches!(verb, "connect" | "rendezvous") => false,
        key @ ("timeout" | "on_error" | "retry") => {
            let verb = VERBS.iter().find(|(word, _)| *word == verb);
            verb.is_some_and(|(_, map)| map.find(key).is_some())
        }
        _ => false,
    }
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// Notes side by side, as many as fit.
fn rows_of(notes: &[&str], width: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for note in notes {
        match rows.last_mut() {
            Some(row) if row.width() + note.width() + 3 <= width => {
                row.push_str(" · ");
                row.push_str(note);
            }
            _ => rows.push((*note).to_string()),
        }
    }
    rows
}

/// The estimated duration of an iteration, and its number of requests.
fn expected_text(expected: Expected) -> String {
    let Expected { low_seconds, mean_seconds, high_seconds, requests, guessed, .. } = expected;
    let about = if guessed { "~" } else { "" };
    let figure = format!("{about}{}", estimate::figure(requests));
    let requests = match requests {
        1.0 => tell!("{figure} request"),
        _ => tell!("{figure} requests"),
    };
    let seconds = estimate::seconds;
    let text = match (low_seconds == high_seconds, mean_seconds) {
        (_, mean) if mean.is_infinite() => {
            say!("per iteration: {requests}, then the user stays")
        }
        (true, 0.0) => say!("per iteration: {requests}, no pauses"),
        (true, mean) => {
            say!("per iteration: {requests}, {} in pauses", seconds(mean))
        }
        (false, mean) => say!(
            "per iteration: {requests}, {about}{} in pauses ({} to {})",
            seconds(mean),
            seconds(low_seconds),
            seconds(high_seconds)
        ),
    };
    text.spoken()
}

#[cfg(test)]
mod tests;
