//! What a program will do, for a user who checks it before anything is sent: sessions as trees of
//! short lines. Outlines are made from the program, so scenarios from the command line have them
//! too.

mod words;

use std::time::Duration;

use throng_base::units::write_duration;
use throng_program::{
    Block, Every, Handler, Link, OncePart, Program, Session, Statement, UserNetwork, Way,
};

use crate::phrases::Words;

/// What a program will do.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// Setup and teardown, which run once, before and after the load.
    pub once: Vec<OnceOutline>,
    pub sessions: Vec<SessionOutline>,
    pub data: Vec<DataOutline>,
    /// The rows of deliveries.
    pub deliveries: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SessionOutline {
    pub name: String,
    pub weight: u32,
    /// The share of all users, 0 to 1.
    pub share: f64,
    /// The targets of its connections, if it has several.
    pub connections: Vec<Line>,
    /// The simulated network between its users and their targets.
    pub network: Vec<Line>,
    pub before: Vec<Line>,
    pub steps: Vec<Line>,
    pub after: Vec<Line>,
    /// Background tasks while the user is online: heartbeat, `on`, `every`.
    pub beside: Vec<Line>,
}

/// The setup or the teardown.
#[derive(Clone, Debug, PartialEq)]
pub struct OnceOutline {
    pub part: OncePart,
    pub time_max: Duration,
    pub connections: Vec<Line>,
    pub steps: Vec<Line>,
}

/// A step as written in a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// `http GET /`, `repeat 3..10`
    pub text: String,
    /// Modifiers of the step: `check status 200`, `save token`, `timeout 2h`.
    pub notes: Vec<String>,
    /// Nested steps.
    pub steps: Vec<Line>,
}

/// A source of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataOutline {
    pub name: String,
    /// `csv accounts.csv`, `list`
    pub origin: String,
    /// `unique`, `per user`
    pub take: &'static str,
    /// The columns that steps use.
    pub columns: Vec<String>,
}

/// The outline, with at most `sessions_max` sessions.
pub fn outline(program: &Program, sessions_max: usize) -> Outline {
    let sessions = program.sessions.iter().zip(program.session_shares()).take(sessions_max);
    let once = [OncePart::Setup, OncePart::Teardown].into_iter();
    Outline {
        once: once.filter_map(|part| of_once(program, part)).collect(),
        sessions: sessions.map(|(session, share)| of_session(program, session, share)).collect(),
        data: program.data.iter().map(words::of_source).collect(),
        deliveries: program.deliveries.iter().map(|one| words::of_delivery(program, one)).collect(),
    }
}

fn of_once(program: &Program, part: OncePart) -> Option<OnceOutline> {
    let once = program.once(part)?;
    let program = program.of_once(once);
    let words = Words { program: &program, session: &once.session };
    let (connections, steps) = (words.connections(), words.block(&once.session.steps));
    Some(OnceOutline { part, time_max: once.time_max, connections, steps })
}

fn of_session(program: &Program, session: &Session, share: f64) -> SessionOutline {
    let words = Words { program, session };
    let links = || (0..).zip(&session.links);
    SessionOutline {
        name: session.name.clone(),
        weight: session.weight,
        share,
        connections: words.connections(),
        network: session.network.iter().map(network_line).collect(),
        before: words.block(&session.before),
        steps: words.block(&session.steps),
        after: words.block(&session.after),
        beside: links().flat_map(|(number, link)| words.beside(number, link)).collect(),
    }
}

fn network_line(network: &UserNetwork) -> Line {
    Line { text: network.to_string(), ..Line::default() }
}

impl Words<'_> {
    /// Background tasks while a link is open.
    fn beside(&self, number: u8, link: &Link) -> Vec<Line> {
        let heartbeat = link.heartbeat.as_ref().map(|one| self.heartbeat(number, one));
        let mut lines: Vec<Line> = heartbeat.into_iter().collect();
        lines.extend(link.handlers.iter().map(|handler| self.handled(number, handler)));
        lines.extend(link.every.iter().map(|every| self.every(every)));
        lines
    }

    fn handled(&self, link: u8, handler: &Handler) -> Line {
        let steps = handler.body.as_ref().map(|body| self.block(&body.steps));
        Line { steps: steps.unwrap_or_default(), ..self.handler(link, handler) }
    }

    fn every(&self, every: &Every) -> Line {
        let text = format!("every {}", write_duration(every.time));
        Line { text, steps: self.block(&every.body.steps), ..Line::default() }
    }

    fn block(&self, steps: &[Statement]) -> Vec<Line> {
        let mut lines = Vec::with_capacity(steps.len());
        for statement in steps {
            lines.push(Line { steps: self.inside(statement), ..self.line(statement) });
            if let Statement::If { otherwise, .. } = statement
                && !otherwise.is_empty()
            {
                let steps = self.block(otherwise);
                lines.push(Line { text: "else".into(), steps, ..Line::default() });
            }
        }
        lines
    }

    /// The lines of nested steps.
    fn inside(&self, statement: &Statement) -> Vec<Line> {
        match statement {
            Statement::If { then, .. } => self.block(then),
            Statement::Choose(ways) => {
                let sum: f64 = ways.iter().map(|way| f64::from(way.weight)).sum();
                let share = |way: &Way| f64::from(way.weight) / sum.max(1.0);
                let line = |way: &Way| Line {
                    text: words::percent(share(way)),
                    steps: self.block(&way.steps),
                    ..Line::default()
                };
                ways.iter().map(line).collect()
            }
            Statement::Parallel(branches) => {
                let line = |steps: &Block| Line {
                    text: "branch".into(),
                    steps: self.block(steps),
                    ..Line::default()
                };
                branches.iter().map(line).collect()
            }
            Statement::Stay(stay) => {
                let with_body = stay.handlers.iter().filter(|handler| handler.body.is_some());
                let handled = with_body.map(|handler| self.handled(stay.link, handler));
                handled.chain(stay.every.iter().map(|every| self.every(every))).collect()
            }
            other => other.inner().into_iter().flat_map(|steps| self.block(steps)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
