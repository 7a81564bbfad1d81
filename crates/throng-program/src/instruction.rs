//! What every reader of instructions asks them: the row, the link, what follows a failure, what is
//! checked and kept, which expressions they have, and what stands inside of them.

use throng_base::StepId;
use throng_expression::Expression;

use crate::check::{Check, Pick, Save, Want};
use crate::flow::{
    Beat, Body, Composed, Content, DigestAuth, Every, Failing, Handler, Heartbeat, Instruction,
    Link, Message, Opened, Pause, Session,
};
use crate::text::{Segment, Text};

impl Instruction {
    /// The row of the report that it is in.
    pub fn step(&self) -> Option<StepId> {
        match self {
            Instruction::Connect(one) => Some(one.step),
            Instruction::Http(one) => Some(one.step),
            Instruction::Call(one) => Some(one.step),
            Instruction::Send(one) => Some(one.step),
            Instruction::Expect(one) => Some(one.step),
            Instruction::Request(one) => Some(one.step),
            Instruction::Rendezvous(one) => Some(one.step),
            Instruction::Stay(one) => Some(one.step),
            Instruction::TransactionBegin { step } | Instruction::TransactionEnd { step } => {
                Some(*step)
            }
            _ => None,
        }
    }

    /// The link of its session that it uses.
    pub fn link(&self) -> Option<u8> {
        match self {
            Instruction::Connect(one) => Some(one.link),
            Instruction::Http(one) => Some(one.link),
            Instruction::Call(one) => Some(one.link),
            Instruction::Send(one) => Some(one.link),
            Instruction::Expect(one) => Some(one.link),
            Instruction::Request(one) => Some(one.link),
            Instruction::Stay(one) => Some(one.link),
            Instruction::Disconnect { link, .. } | Instruction::Slow { link, .. } => Some(*link),
            _ => None,
        }
    }

    /// What the scenario says about its failures.
    pub fn failing(&self) -> Failing {
        match self {
            Instruction::Connect(one) => one.failing,
            Instruction::Http(one) => one.failing,
            Instruction::Call(one) => one.failing,
            Instruction::Send(one) => one.failing,
            Instruction::Expect(one) => one.failing,
            Instruction::Request(one) => one.failing,
            Instruction::Stay(one) => one.failing,
            _ => Failing::default(),
        }
    }

    /// What its answer has to be.
    pub fn checks(&self) -> &[Check] {
        match self {
            Instruction::Http(one) => &one.checks,
            Instruction::Call(one) => &one.checks,
            Instruction::Expect(one) => &one.checks,
            Instruction::Request(one) => &one.checks,
            _ => &[],
        }
    }

    /// What is saved of its answer.
    pub fn saves(&self) -> &[Save] {
        match self {
            Instruction::Http(one) => &one.saves,
            Instruction::Call(one) => &one.saves,
            Instruction::Expect(one) => &one.saves,
            Instruction::Request(one) => &one.saves,
            _ => &[],
        }
    }

    /// The slots that have a value behind it: what it saves, and what it sets.
    pub fn keeps(&self) -> impl Iterator<Item = u16> {
        let set = match self {
            Instruction::Set { slot, .. } => Some(*slot),
            _ => None,
        };
        self.saves().iter().map(|save| save.slot).chain(set)
    }

    /// Where the bodies begin that are done while it lasts; each ends with
    /// [`Instruction::Return`].
    pub fn children(&self) -> Vec<u32> {
        match self {
            Instruction::Stay(stay) => bodies(&stay.handlers, &stay.every),
            Instruction::Parallel(branches) => branches.to_vec(),
            _ => Vec::new(),
        }
    }

    /// All its expressions, those in its texts with them.
    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        match self {
            Instruction::Connect(one) => {
                in_text(&one.path, visit);
                in_pairs(&one.headers, visit);
                one.call.iter().for_each(|opened| in_opened(opened, visit));
            }
            Instruction::Call(one) => in_opened(&one.opened, visit),
            Instruction::Http(one) => {
                in_text(&one.path, visit);
                in_pairs(&one.headers, visit);
                in_pairs(&one.cookies, visit);
                if let Some(DigestAuth { user, password }) = one.digest.as_deref() {
                    in_text(user, visit);
                    in_text(password, visit);
                }
                if let Body::Text(text) = &one.body {
                    in_text(text, visit);
                }
            }
            Instruction::Send(one) => in_message(&one.message, visit),
            Instruction::Expect(one) => in_checks(&one.message.checks, visit),
            Instruction::Request(one) => {
                in_message(&one.message, visit);
                in_checks(&one.answer.checks, visit);
            }
            Instruction::Stay(one) => heard(one.heartbeat.as_ref(), &one.handlers, visit),
            Instruction::Think(Pause::Text(text)) => in_text(text, visit),
            Instruction::ForEachBegin { values, .. } => visit(values),
            Instruction::Unless { condition, .. } => visit(condition),
            Instruction::Set { value, .. } => in_text(value, visit),
            Instruction::Log(text) | Instruction::Stop(text) => in_text(text, visit),
            _ => {}
        }
        in_checks(self.checks(), visit);
        in_saves(self.saves(), visit);
    }

    /// Whether it is no step and has an expression, which may have no value.
    pub fn evaluates_for_itself(&self) -> bool {
        let varies = |text: &Text| text.as_literal().is_none();
        match self {
            Instruction::ForEachBegin { .. } | Instruction::Unless { .. } => true,
            Instruction::Think(Pause::Text(text))
            | Instruction::Set { value: text, .. }
            | Instruction::Log(text)
            | Instruction::Stop(text) => varies(text),
            _ => false,
        }
    }
}

impl Session {
    /// The sources whose rows it looks at, each once.
    pub fn sources(&self) -> Vec<u16> {
        let mut found = Vec::new();
        let mut visit = |expression: &Expression| found.extend(expression.sources());
        self.code.iter().for_each(|instruction| instruction.expressions(&mut visit));
        self.links.iter().for_each(|link| link.expressions(&mut visit));
        once(found)
    }
}

impl Link {
    /// Where the bodies begin that are done while it is open.
    pub fn children(&self) -> Vec<u32> {
        bodies(&self.handlers, &self.every)
    }

    /// All expressions of what goes on while it is open, but those of bodies.
    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        heard(self.heartbeat.as_ref(), &self.handlers, visit);
    }
}

/// The sources whose rows these instructions look at, each once.
pub fn sources(code: &[Instruction]) -> Vec<u16> {
    let mut found = Vec::new();
    let mut visit = |expression: &Expression| found.extend(expression.sources());
    code.iter().for_each(|instruction| instruction.expressions(&mut visit));
    once(found)
}

fn once(mut sources: Vec<u16>) -> Vec<u16> {
    sources.sort_unstable();
    sources.dedup();
    sources
}

fn bodies(handlers: &[Handler], every: &[Every]) -> Vec<u32> {
    let of_handlers = handlers.iter().filter_map(|handler| handler.body);
    of_handlers.chain(every.iter().map(|every| every.body)).collect()
}

type Visit<'v> = &'v mut dyn FnMut(&Expression);

fn heard(heartbeat: Option<&Heartbeat>, handlers: &[Handler], visit: Visit<'_>) {
    if let Some(heartbeat) = heartbeat {
        if let Beat::Message(message) = &heartbeat.beat {
            in_message(message, visit);
        }
        in_checks(&heartbeat.answer.checks, visit);
    }
    for handler in handlers {
        in_checks(&handler.message.checks, visit);
        in_checks(&handler.checks, visit);
        in_saves(&handler.saves, visit);
    }
}

fn in_message(message: &Message, visit: Visit<'_>) {
    match &message.content {
        Content::Plain { content, .. } => in_text(content, visit),
        Content::Declared(declared) => in_composed(declared, visit),
        Content::Proto(message) => in_composed(message, visit),
    }
}

fn in_opened(opened: &Opened, visit: Visit<'_>) {
    in_pairs(&opened.metadata, visit);
    opened.messages.iter().for_each(|message| in_composed(message, visit));
}

fn in_composed<T>(message: &Composed<T>, visit: Visit<'_>) {
    message.leaves.iter().for_each(|leaf| in_text(leaf, visit));
}

fn in_text(text: &Text, visit: Visit<'_>) {
    for segment in &text.segments {
        if let Segment::Value { value, .. } = segment {
            visit(value);
        }
    }
}

fn in_pairs(pairs: &[(String, Text)], visit: Visit<'_>) {
    pairs.iter().for_each(|(_, text)| in_text(text, visit));
}

fn in_checks(checks: &[Check], visit: Visit<'_>) {
    for check in checks {
        in_pick(&check.pick, visit);
        if let Want::Equals(text) | Want::Contains(text) = &check.want {
            in_text(text, visit);
        }
    }
}

fn in_saves(saves: &[Save], visit: Visit<'_>) {
    for save in saves {
        in_pick(&save.pick, visit);
        save.default.iter().for_each(|text| in_text(text, visit));
    }
}

fn in_pick(pick: &Pick, visit: Visit<'_>) {
    if let Pick::Expression(expression) = pick {
        visit(expression);
    }
}
