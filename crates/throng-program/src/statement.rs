//! Properties of statements that every reader of the tree needs: the row, the link, the reaction to
//! failures, checks and saves, expressions, and nested blocks.

use std::slice;
use std::sync::Arc;

use throng_base::StepId;
use throng_expression::Expression;

use crate::check::{Check, Pick, Save, Want};
use crate::failing::Failing;
use crate::flow::{
    Beat, Block, Body, Connect, DigestAuth, Every, Expect, Handler, Heartbeat, Http, Link, Pause,
    Request, Secure, Send, Session, Statement, Stay,
};
use crate::text::{Text, in_pairs};

impl Statement {
    /// Its row in the report.
    pub fn step(&self) -> Option<StepId> {
        let other = || match self {
            Statement::Rendezvous(one) => Some(one.step),
            Statement::Transaction { step, .. } => Some(*step),
            _ => None,
        };
        of_act!(self, one => Some(one.step), other())
    }

    /// The link of its session that it uses.
    pub fn link(&self) -> Option<u8> {
        let other = || match self {
            Statement::Disconnect { link, .. } | Statement::Slow { link, .. } => Some(*link),
            _ => None,
        };
        of_act!(self, one => Some(one.link), other())
    }

    /// Its reaction to failures.
    pub fn failing(&self) -> Failing {
        of_act!(self, one => one.failing, Failing::default())
    }

    /// The checks of its reply.
    pub fn checks(&self) -> &[Check] {
        of_answered!(self, one => &one.checks, &[])
    }

    /// The saves of its reply.
    pub fn saves(&self) -> &[Save] {
        of_answered!(self, one => &one.saves, &[])
    }

    /// The slots that have a value after it: what it saves, and what it sets.
    pub fn keeps(&self) -> impl Iterator<Item = u16> {
        let set = match self {
            Statement::Set { slot, .. } => Some(*slot),
            _ => None,
        };
        self.saves().iter().map(|save| save.slot).chain(set)
    }

    /// The nested blocks of the same task.
    pub fn inner(&self) -> Vec<&[Statement]> {
        match self {
            Statement::Repeat { steps, .. }
            | Statement::Forever(steps)
            | Statement::During { steps, .. }
            | Statement::ForEach { steps, .. }
            | Statement::While { steps, .. }
            | Statement::Transaction { steps, .. } => vec![steps],
            Statement::If { then, otherwise, .. } => vec![then, otherwise],
            Statement::Choose(ways) => ways.iter().map(|way| &*way.steps).collect(),
            _ => Vec::new(),
        }
    }

    /// The nested blocks of other tasks: branches, and background tasks while it lasts.
    pub fn beside(&self) -> Vec<&[Statement]> {
        match self {
            Statement::Stay(stay) => bodies(&stay.handlers, &stay.every).collect(),
            Statement::Parallel(branches) => branches.iter().map(|steps| &**steps).collect(),
            _ => Vec::new(),
        }
    }

    /// All nested blocks, for changes.
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Statement::Repeat { steps, .. }
            | Statement::Forever(steps)
            | Statement::During { steps, .. }
            | Statement::ForEach { steps, .. }
            | Statement::While { steps, .. }
            | Statement::Transaction { steps, .. } => vec![steps],
            Statement::If { then, otherwise, .. } => vec![then, otherwise],
            Statement::Choose(ways) => ways.iter_mut().map(|way| &mut way.steps).collect(),
            Statement::Parallel(branches) => branches.iter_mut().collect(),
            Statement::Stay(stay) => {
                let Stay { handlers, every, .. } = Arc::make_mut(stay);
                let handled = handlers.iter_mut().filter_map(|one| one.body.as_mut());
                let bodies = handled.chain(every.iter_mut().map(|one| &mut one.body));
                bodies.map(|body| &mut body.steps).collect()
            }
            _ => Vec::new(),
        }
    }

    /// All its own expressions, including those in its texts, but not those of nested blocks.
    pub fn expressions(&self, visit: Visit<'_>) {
        match self {
            Statement::Think(Pause::Text(text)) => text.expressions(visit),
            Statement::ForEach { values, .. } => visit(values),
            Statement::While { condition, .. } | Statement::If { condition, .. } => {
                visit(condition);
            }
            Statement::Set { value, .. } | Statement::Tally { value, .. } => {
                value.expressions(visit);
            }
            Statement::Log(text) | Statement::Stop(text) => text.expressions(visit),
            _ => of_act!(self, one => one.expressions(visit), ()),
        }
        in_checks(self.checks(), visit);
        in_saves(self.saves(), visit);
    }

    /// Whether it is not a step but has an expression, which may have no value.
    pub fn evaluates_for_itself(&self) -> bool {
        let varies = |text: &Text| text.as_literal().is_none();
        match self {
            Statement::ForEach { .. } | Statement::While { .. } | Statement::If { .. } => true,
            Statement::Think(Pause::Text(text))
            | Statement::Set { value: text, .. }
            | Statement::Tally { value: text, .. }
            | Statement::Log(text)
            | Statement::Stop(text) => varies(text),
            _ => false,
        }
    }
}

impl Connect {
    fn expressions(&self, visit: Visit<'_>) {
        self.path.expressions(visit);
        in_pairs(&self.headers, visit);
        self.options.iter().for_each(|options| options.expressions(visit));
    }
}

impl Http {
    fn expressions(&self, visit: Visit<'_>) {
        self.path.expressions(visit);
        in_pairs(&self.headers, visit);
        in_pairs(&self.cookies, visit);
        if let Some(DigestAuth { user, password }) = self.digest.as_deref() {
            user.expressions(visit);
            password.expressions(visit);
        }
        if let Body::Text(text) = &self.body {
            text.expressions(visit);
        }
    }
}

impl Secure {
    fn expressions(&self, _: Visit<'_>) {}
}

impl Send {
    fn expressions(&self, visit: Visit<'_>) {
        self.message.content.expressions(visit);
    }
}

impl Expect {
    fn expressions(&self, visit: Visit<'_>) {
        in_checks(&self.message.checks, visit);
    }
}

impl Request {
    fn expressions(&self, visit: Visit<'_>) {
        self.message.content.expressions(visit);
        in_checks(&self.answer.checks, visit);
    }
}

impl Stay {
    fn expressions(&self, visit: Visit<'_>) {
        heard(self.heartbeat.as_ref(), &self.handlers, visit);
    }
}

/// The statements of blocks, each before its nested ones.
pub struct Statements<'p> {
    open: Vec<slice::Iter<'p, Statement>>,
    /// Including those of other tasks.
    is_all: bool,
}

impl<'p> Iterator for Statements<'p> {
    type Item = &'p Statement;

    fn next(&mut self) -> Option<&'p Statement> {
        loop {
            let Some(statement) = self.open.last_mut()?.next() else {
                self.open.pop();
                continue;
            };
            if self.is_all {
                self.open.extend(statement.beside().into_iter().rev().map(<[_]>::iter));
            }
            self.open.extend(statement.inner().into_iter().rev().map(<[_]>::iter));
            return Some(statement);
        }
    }
}

/// The statements of one task.
pub fn own(steps: &[Statement]) -> Statements<'_> {
    Statements { open: vec![steps.iter()], is_all: false }
}

/// All statements, including those of other tasks.
pub fn all(steps: &[Statement]) -> Statements<'_> {
    Statements { open: vec![steps.iter()], is_all: true }
}

/// Changes all statements, nested ones after their parents.
pub fn change(steps: &mut Block, with: &mut dyn FnMut(&mut Statement)) {
    for statement in steps {
        with(statement);
        statement.blocks_mut().into_iter().for_each(|steps| change(steps, with));
    }
}

impl Session {
    /// The statements of the session itself.
    pub fn own(&self) -> Statements<'_> {
        let blocks = [&self.after, &self.steps, &self.before];
        Statements { open: blocks.map(|steps| steps.iter()).into(), is_all: false }
    }

    /// All statements of its users.
    pub fn all(&self) -> Statements<'_> {
        let of_links = self.links.iter().flat_map(Link::beside).map(<[_]>::iter);
        let mut open: Vec<_> = of_links.collect();
        open.reverse();
        open.extend(self.own().open);
        Statements { open, is_all: true }
    }

    /// Changes all statements of its users.
    pub fn change(&mut self, with: &mut dyn FnMut(&mut Statement)) {
        for steps in [&mut self.before, &mut self.steps, &mut self.after] {
            change(steps, with);
        }
        for link in &mut self.links {
            let handled = link.handlers.iter_mut().filter_map(|one| one.body.as_mut());
            let bodies = handled.chain(link.every.iter_mut().map(|one| &mut one.body));
            bodies.for_each(|body| change(&mut body.steps, with));
        }
    }

    /// The sources whose rows it uses, each once.
    pub fn sources(&self) -> Vec<u16> {
        let mut found = Vec::new();
        let mut visit = |expression: &Expression| found.extend(expression.sources());
        self.all().for_each(|statement| statement.expressions(&mut visit));
        self.links.iter().for_each(|link| link.expressions(&mut visit));
        once(found)
    }
}

impl Session {
    /// Whether TLS starts on a connection of this link after it is open.
    pub fn secures(&self, link: u8) -> bool {
        let is_this = |one: &Statement| matches!(one, Statement::Secure(one) if one.link == link);
        self.own().any(is_this)
    }
}

impl Link {
    /// The blocks that run while it is open.
    pub fn beside(&self) -> Vec<&[Statement]> {
        bodies(&self.handlers, &self.every).collect()
    }

    /// All expressions of its background tasks, except those in bodies.
    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        heard(self.heartbeat.as_ref(), &self.handlers, visit);
    }
}

/// The sources whose rows these steps use, each once.
pub fn sources(steps: &[Statement]) -> Vec<u16> {
    let mut found = Vec::new();
    let mut visit = |expression: &Expression| found.extend(expression.sources());
    all(steps).for_each(|statement| statement.expressions(&mut visit));
    once(found)
}

fn once(mut sources: Vec<u16>) -> Vec<u16> {
    sources.sort_unstable();
    sources.dedup();
    sources
}

fn bodies<'p>(
    handlers: &'p [Handler],
    every: &'p [Every],
) -> impl Iterator<Item = &'p [Statement]> {
    let of_handlers = handlers.iter().filter_map(|handler| handler.body.as_ref());
    let all = of_handlers.chain(every.iter().map(|every| &every.body));
    all.map(|body| &*body.steps)
}

type Visit<'v> = &'v mut dyn FnMut(&Expression);

fn heard(heartbeat: Option<&Heartbeat>, handlers: &[Handler], visit: Visit<'_>) {
    if let Some(heartbeat) = heartbeat {
        if let Beat::Message(message) = &heartbeat.beat {
            message.content.expressions(visit);
        }
        in_checks(&heartbeat.answer.checks, visit);
    }
    for handler in handlers {
        in_checks(&handler.message.checks, visit);
        in_checks(&handler.checks, visit);
        in_saves(&handler.saves, visit);
    }
}

fn in_checks(checks: &[Check], visit: Visit<'_>) {
    for check in checks {
        in_pick(&check.pick, visit);
        if let Want::Equals(text) | Want::Contains(text) | Want::Topic(text) = &check.want {
            text.expressions(visit);
        }
    }
}

fn in_saves(saves: &[Save], visit: Visit<'_>) {
    for save in saves {
        in_pick(&save.pick, visit);
        save.default.iter().for_each(|text| text.expressions(visit));
    }
}

fn in_pick(pick: &Pick, visit: Visit<'_>) {
    if let Pick::Expression(expression) = pick {
        visit(expression);
    }
}
