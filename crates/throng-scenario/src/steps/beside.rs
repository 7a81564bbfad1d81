//! Bodies: steps that are done beside the user's own. They are compiled by themselves and put
//! behind the code of the session, each with an end of its own.

use std::time::Duration;

use throng_program::{Every, Handler, Instruction};

use crate::read::{Context, Fields};
use crate::steps::slow::Body;
use crate::steps::{Coder, Section};
use crate::syntax::Node;

/// What a body belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    On,
    Every,
}

impl Inside {
    fn word(self) -> &'static str {
        match self {
            Inside::On => "on",
            Inside::Every => "every",
        }
    }
}

/// Steps that change what the user itself does.
const FORBIDDEN: &[&str] = &["connect", "disconnect", "stay", "rendezvous", "transaction", "next"];

impl<'n> Coder<'_, 'n> {
    /// Compiles a body; gives where it begins among all bodies.
    pub(super) fn body(
        &mut self,
        cx: &mut Context<'_>,
        steps: Option<&'n Node>,
        first: Vec<Instruction>,
        inside: Inside,
    ) -> u32 {
        let code = std::mem::replace(&mut self.code, first);
        let (loops, registers) = (self.loops, self.registers);
        (self.loops, self.registers) = (0, 0);
        let outer = self.inside.replace(inside);
        let section = std::mem::replace(&mut self.section, Section::Steps);
        let begin = self.bodies.len() as u32;
        if let Some(steps) = steps {
            let flow = self.steps(cx, steps);
            let (session, place) = (self.rows.session, steps.place);
            // Where it ends in the midst, nothing comes to it any more.
            let pause = if flow.ends.is_some() { Duration::ZERO } else { flow.pause };
            self.known.push(Body { session, begin, pause, place });
        }
        self.code.push(Instruction::Return);
        let mut body = std::mem::replace(&mut self.code, code);
        move_by(&mut body, begin, self.body_registers);
        self.bodies.extend(body);
        self.body_registers = self.body_registers.saturating_add(self.registers);
        (self.loops, self.registers) = (loops, registers);
        (self.inside, self.section) = (outer, section);
        begin
    }

    /// Whether the verb can stand in the body that is being compiled.
    pub(super) fn fits_inside(
        &mut self,
        cx: &mut Context<'_>,
        verb: &str,
        fields: &Fields<'_>,
    ) -> bool {
        let Some(inside) = self.inside.filter(|_| FORBIDDEN.contains(&verb)) else { return true };
        let place = fields.key(verb).map_or(fields.place, |key| key.place);
        let message = format!("`{verb}` cannot stand in `{}`", inside.word());
        let error = cx.error("wrong-place", message, place);
        let error = error.label("this is done beside the user's own steps");
        let help = "write it in `steps`; here a user sends, requests, expects, thinks, sets values \
                    and leaves";
        cx.note(error.help(help));
        false
    }
}

/// Puts the bodies behind the code; their registers are behind those of the code. Gives where
/// they begin.
pub(super) fn append(code: &mut Vec<Instruction>, mut bodies: Vec<Instruction>, registers: u16) {
    let last = code.len() as u32;
    for instruction in code.iter_mut() {
        if let Instruction::Stay(stay) = instruction {
            place(&mut stay.handlers, &mut stay.every, last);
        }
    }
    move_by(&mut bodies, last, registers);
    code.extend(bodies);
}

/// Handlers and the like know where their bodies are among all bodies; these begin at `last`.
pub(super) fn place(handlers: &mut [Handler], every: &mut [Every], last: u32) {
    for body in handlers.iter_mut().filter_map(|handler| handler.body.as_mut()) {
        *body += last;
    }
    every.iter_mut().for_each(|one| one.body += last);
}

fn move_by(code: &mut [Instruction], by: u32, registers: u16) {
    for instruction in code {
        match instruction {
            Instruction::RepeatBegin { register, end, .. }
            | Instruction::ForEachBegin { register, end, .. } => {
                *end += by;
                *register = register.saturating_add(registers);
            }
            Instruction::RepeatEnd { register, begin }
            | Instruction::DuringEnd { register, begin }
            | Instruction::ForEachEnd { register, begin, .. } => {
                *begin += by;
                *register = register.saturating_add(registers);
            }
            Instruction::DuringBegin { register, .. } => {
                *register = register.saturating_add(registers);
            }
            Instruction::Unless { to, .. } | Instruction::Jump(to) => *to += by,
            Instruction::Choose(ways) => ways.iter_mut().for_each(|way| way.to += by),
            _ => {}
        }
    }
}
