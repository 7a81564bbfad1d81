//! What a program will do, for a person who looks before anything is sent: its sessions as trees
//! of short lines, how long an iteration takes by its pauses alone, how many requests it makes.
//!
//! Everything is computed from the instructions, so scenarios of the command line have an outline
//! like those of files.

mod expected;
mod words;

use std::collections::HashMap;

use throng_base::units::write_duration;
use throng_program::{Every, Handler, Heartbeat, Instruction, Link, Program, Session, Way};

pub use expected::Expected;

use words::Words;

/// What a program will do.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    pub sessions: Vec<SessionOutline>,
    pub data: Vec<DataOutline>,
    /// The rows of the ledger.
    pub deliveries: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SessionOutline {
    pub name: String,
    pub weight: u32,
    /// Of all users, 0 to 1.
    pub share: f64,
    /// Where its connections lead, if it has several.
    pub connections: Vec<Line>,
    pub before: Vec<Line>,
    pub steps: Vec<Line>,
    pub after: Vec<Line>,
    /// What is done beside the steps while the user is online: heartbeat, `on`, `every`.
    pub beside: Vec<Line>,
    /// What is done once when a user comes.
    pub expected_before: Expected,
    /// One iteration of the steps.
    pub expected: Expected,
    pub expected_after: Expected,
}

/// A step as the person would write it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// `http GET /`, `repeat 3..10`
    pub text: String,
    /// What belongs to the step: `check status 200`, `save token`, `timeout 2h`.
    pub notes: Vec<String>,
    /// The steps inside.
    pub steps: Vec<Line>,
}

/// A source of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataOutline {
    pub name: String,
    /// `csv accounts.csv`, `list of 3`
    pub origin: String,
    /// `unique`, `per user`
    pub take: &'static str,
    /// The columns that steps look at.
    pub columns: Vec<String>,
}

pub fn outline(program: &Program) -> Outline {
    let sessions = program.sessions.iter().zip(program.session_shares());
    Outline {
        sessions: sessions.map(|(session, share)| of_session(program, session, share)).collect(),
        data: program.data.iter().map(words::of_source).collect(),
        deliveries: program.deliveries.iter().map(|one| words::of_delivery(program, one)).collect(),
    }
}

fn of_session(program: &Program, session: &Session, share: f64) -> SessionOutline {
    let reader = Reader::new(&session.code, Words { program, session });
    let (begin, end) = (session.begin as usize, session.end as usize);
    let (before, expected_before) = reader.block(0, begin);
    let (steps, expected) = reader.block(begin, end);
    let (after, expected_after) = reader.block(end, session.last as usize);
    let beside = reader.beside();
    let expected = expected.and_again(reader.per_second_of_links());
    SessionOutline {
        name: session.name.clone(),
        weight: session.weight,
        share,
        connections: reader.words.connections(),
        before,
        steps,
        after,
        beside,
        expected_before,
        expected,
        expected_after,
    }
}

/// Heartbeats per second while the connection is open.
fn beats(link: &Link) -> f64 {
    link.heartbeat.as_ref().map_or(0.0, beats_of)
}

fn beats_of(heartbeat: &Heartbeat) -> f64 {
    match heartbeat.fault.stop_after {
        // Who stops after a few sends none in the long run.
        Some(_) => 0.0,
        None => f64::from(heartbeat.fault.times) / heartbeat.every.as_secs_f64(),
    }
}

/// Finds the tree again that the flat code was made of.
struct Reader<'p> {
    code: &'p [Instruction],
    words: Words<'p>,
    /// Where jumps back to an instruction stand, in their order.
    back: HashMap<usize, Vec<usize>>,
}

impl<'p> Reader<'p> {
    fn new(code: &'p [Instruction], words: Words<'p>) -> Reader<'p> {
        let mut back: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, instruction) in code.iter().enumerate() {
            if let Instruction::Jump(to) = instruction
                && *to as usize <= at
            {
                back.entry(*to as usize).or_default().push(at);
            }
        }
        Reader { code, words, back }
    }

    /// What is done beside the steps of the session.
    fn beside(&self) -> Vec<Line> {
        let links = (0..).zip(&self.words.session.links);
        links.flat_map(|(number, link)| self.beside_of(number, link)).collect()
    }

    fn beside_of(&self, number: u8, link: &Link) -> Vec<Line> {
        let heartbeat = link.heartbeat.as_ref().map(|one| self.words.heartbeat(number, one));
        let mut lines: Vec<Line> = heartbeat.into_iter().collect();
        lines.extend(link.handlers.iter().map(|handler| self.handler(number, handler)));
        lines.extend(link.every.iter().map(|every| self.every(every)));
        lines
    }

    fn handler(&self, link: u8, handler: &Handler) -> Line {
        let mut line = self.words.handler(link, handler);
        line.steps = handler.body.map_or_else(Vec::new, |body| self.body(body).0);
        line
    }

    fn every(&self, every: &Every) -> Line {
        let text = format!("every {}", write_duration(every.time));
        Line { text, steps: self.body(every.body).0, ..Line::default() }
    }

    /// The lines of a body, up to its end.
    fn body(&self, begin: u32) -> (Vec<Line>, Expected) {
        let begin = begin as usize;
        let behind = self.code.get(begin..).unwrap_or(&[]);
        let length = behind.iter().position(|one| matches!(one, Instruction::Return));
        self.block(begin, begin + length.unwrap_or(behind.len()))
    }

    /// Requests and heartbeats per second of what goes on on all connections.
    fn per_second_of_links(&self) -> f64 {
        let links = self.words.session.links.iter();
        links.map(|link| self.per_second(&link.every) + beats(link)).sum()
    }

    /// Requests per second of what is done again and again.
    fn per_second(&self, every: &[Every]) -> f64 {
        let of = |one: &Every| {
            let requests = self.body(one.body).1.requests;
            // A body without end is done once.
            if requests.is_finite() { requests / one.time.as_secs_f64() } else { 0.0 }
        };
        every.iter().map(of).sum()
    }

    /// The lines of the instructions from `at` up to `end`, and what they take together.
    fn block(&self, mut at: usize, end: usize) -> (Vec<Line>, Expected) {
        let mut lines = Vec::new();
        let mut expected = Expected::default();
        let end = end.min(self.code.len());
        while at < end {
            let (next, takes) = self.one(at, end, &mut lines);
            expected = expected.then(takes);
            // Code that is not laid out as the compiler does it still comes to its end.
            at = next.max(at + 1);
        }
        (lines, expected)
    }

    /// One step with all that is inside of it; gives where the next one begins.
    fn one(&self, at: usize, end: usize, lines: &mut Vec<Line>) -> (usize, Expected) {
        if let Some(jump) = self.forever(at, end) {
            let (steps, expected) = self.block(at, jump);
            lines.push(Line { text: "repeat forever".into(), steps, ..Line::default() });
            return (jump + 1, expected.forever());
        }
        self.step(at, end, lines)
    }

    /// Where the jump is that closes an endless loop beginning here.
    fn forever(&self, at: usize, end: usize) -> Option<usize> {
        // The jump of a `while` is its own: it stands right before where its condition leads.
        let of_while = match &self.code[at] {
            Instruction::Unless { to, .. } => (*to as usize).checked_sub(1),
            _ => None,
        };
        let found = *self.back.get(&at)?.iter().rev().find(|jump| **jump < end)?;
        (Some(found) != of_while).then_some(found)
    }

    fn step(&self, at: usize, end: usize, lines: &mut Vec<Line>) -> (usize, Expected) {
        let instruction = &self.code[at];
        let mut line = self.words.line(instruction);
        let takes = match instruction {
            Instruction::RepeatBegin { low, high, end: last, .. } => {
                let last = (*last as usize).min(end);
                let (steps, body) = self.block(at + 1, last);
                line.steps = steps;
                (last + 1, body.times(f64::from(*low), f64::from(*high)))
            }
            Instruction::DuringBegin { time, .. } => {
                let last = self.closing(at, end);
                let (steps, body) = self.block(at + 1, last);
                line.steps = steps;
                (last + 1, body.during(time.as_secs_f64()))
            }
            Instruction::ForEachBegin { end: last, values, .. } => {
                let last = (*last as usize).min(end);
                let (steps, body) = self.block(at + 1, last);
                line.steps = steps;
                let list = values.as_constant().and_then(|value| value.len());
                let times = list.map(|items| body.times(items as f64, items as f64));
                (last + 1, times.unwrap_or_else(|| body.guessed()))
            }
            Instruction::TransactionBegin { .. } => {
                let last = self.closing(at, end);
                let (steps, body) = self.block(at + 1, last);
                line.steps = steps;
                (last + 1, body)
            }
            Instruction::Choose(ways) => {
                let (next, steps, expected) = self.choose(end, ways);
                line.steps = steps;
                (next, expected)
            }
            Instruction::Unless { to, .. } => {
                let to = (*to as usize).min(end);
                return self.branch(at, to, end, line, lines);
            }
            Instruction::Stay(stay) => {
                let with_body = |handler: &&Handler| handler.body.is_some();
                let handlers = stay.handlers.iter().filter(with_body);
                line.steps = handlers.map(|handler| self.handler(stay.link, handler)).collect();
                line.steps.extend(stay.every.iter().map(|every| self.every(every)));
                let own = stay.heartbeat.as_ref().map(beats_of);
                // Its own heartbeat is there instead of that of the link.
                let link = self.words.session.links.get(usize::from(stay.link));
                let usual = own.map_or(0.0, |own| own - link.map_or(0.0, beats));
                let takes = Expected::of(instruction);
                (at + 1, takes.and_again(self.per_second(&stay.every) + usual))
            }
            Instruction::Parallel(branches) => {
                let mut takes = Expected::default();
                for begin in branches {
                    let (steps, expected) = self.body(*begin);
                    line.steps.push(Line { text: "branch".into(), steps, ..Line::default() });
                    takes = takes.beside(expected);
                }
                (at + 1, takes)
            }
            // The ends of what was begun elsewhere.
            Instruction::RepeatEnd { .. }
            | Instruction::DuringEnd { .. }
            | Instruction::ForEachEnd { .. }
            | Instruction::TransactionEnd { .. }
            | Instruction::Return
            | Instruction::Jump(_) => return (at + 1, Expected::default()),
            simple => (at + 1, Expected::of(simple)),
        };
        lines.push(line);
        takes
    }

    /// The end of a loop or transaction that begins at `at`.
    fn closing(&self, at: usize, end: usize) -> usize {
        let mut depth = 0;
        for index in at..end {
            match (&self.code[at], &self.code[index]) {
                (Instruction::DuringBegin { .. }, Instruction::DuringEnd { begin, .. })
                    if *begin as usize == at =>
                {
                    return index;
                }
                (Instruction::TransactionBegin { .. }, Instruction::TransactionBegin { .. }) => {
                    depth += 1;
                }
                (Instruction::TransactionBegin { .. }, Instruction::TransactionEnd { .. }) => {
                    depth -= 1;
                    if depth == 0 {
                        return index;
                    }
                }
                _ => {}
            }
        }
        end
    }

    /// `while`, or `if` with its `else`.
    fn branch(
        &self,
        at: usize,
        to: usize,
        end: usize,
        mut line: Line,
        lines: &mut Vec<Line>,
    ) -> (usize, Expected) {
        let last = match to.checked_sub(1).filter(|last| *last > at).map(|last| &self.code[last]) {
            Some(Instruction::Jump(target)) => Some(*target as usize),
            _ => None,
        };
        if last == Some(at) {
            let (steps, body) = self.block(at + 1, to - 1);
            let condition = line.text;
            line = Line { text: format!("while {condition}"), steps, ..Line::default() };
            lines.push(line);
            return (to, body.guessed());
        }
        line.text = format!("if {}", line.text);
        let Some(after) = last.filter(|target| *target > to && *target <= end) else {
            let (steps, body) = self.block(at + 1, to);
            line.steps = steps;
            lines.push(line);
            return (to, body.either(Expected::default()));
        };
        let (steps, then) = self.block(at + 1, to - 1);
        line.steps = steps;
        let (steps, other) = self.block(to, after);
        lines.push(line);
        lines.push(Line { text: "else".into(), steps, ..Line::default() });
        (after, then.either(other))
    }

    fn choose(&self, end: usize, ways: &[Way]) -> (usize, Vec<Line>, Expected) {
        // Every way but the last ends with a jump behind the choice.
        let jump = |way: &Way| match self.code.get((way.to as usize).wrapping_sub(1)) {
            Some(Instruction::Jump(target)) => Some(*target as usize),
            _ => None,
        };
        let behind = ways.iter().skip(1).find_map(jump);
        let behind = behind.unwrap_or(end).min(end);
        let sum: f64 = ways.iter().map(|way| f64::from(way.weight)).sum();
        let mut steps = Vec::with_capacity(ways.len());
        let mut parts = Vec::with_capacity(ways.len());
        for (i, way) in ways.iter().enumerate() {
            let last = match ways.get(i + 1) {
                Some(next) => (next.to as usize).saturating_sub(1),
                None => behind,
            };
            let (inner, expected) = self.block(way.to as usize, last.min(end));
            let share = if sum > 0.0 { f64::from(way.weight) / sum } else { 0.0 };
            let text = words::percent(share);
            steps.push(Line { text, steps: inner, ..Line::default() });
            parts.push((share, expected));
        }
        (behind, steps, Expected::by_chance(&parts))
    }
}

#[cfg(test)]
mod tests;
