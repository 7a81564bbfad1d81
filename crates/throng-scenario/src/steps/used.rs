//! Which rows of data the steps of a session look at.

use throng_data::Take;
use throng_expression::Expression;
use throng_program::{
    Beat, Body, Check, Content, Instruction, Message, Pause, Pick, Save, Segment, Session, Text,
    Want,
};

use crate::read::{Context, shorten};
use crate::syntax::Place;

/// Warns where `before` and the steps look at rows of one source: every iteration takes the next
/// row, so that of `before` is another one.
pub(crate) fn warn_other_rows(cx: &mut Context<'_>, session: &Session, before: Place) {
    let begin = session.begin as usize;
    let steps = &session.code[begin..session.end as usize];
    let in_steps = sources(steps);
    for source in sources(&session.code[..begin]) {
        let Some(found) = cx.data.sources.get(usize::from(source)) else { continue };
        if found.take == Take::PerUser || !in_steps.contains(&source) {
            continue;
        }
        let name = shorten(&found.name);
        let message = format!("the row of `{name}` in `before` is not that of the steps");
        let warning = cx.warning("row-changes", message, before);
        let help = format!(
            "write `take: per user`, or keep what is needed: \
             `- set: {{name: \"${{data.{name}.COLUMN}}\"}}`"
        );
        cx.note(warning.label("every iteration takes another row").help(help));
    }
}

fn sources(code: &[Instruction]) -> Vec<u16> {
    let mut found = Vec::new();
    let mut visit = |expression: &Expression| found.extend(expression.sources());
    code.iter().for_each(|instruction| in_instruction(instruction, &mut visit));
    found.sort_unstable();
    found.dedup();
    found
}

type Visit<'v> = &'v mut dyn FnMut(&Expression);

fn in_instruction(instruction: &Instruction, visit: Visit<'_>) {
    match instruction {
        Instruction::Connect(one) => {
            in_text(&one.path, visit);
            in_pairs(&one.headers, visit);
        }
        Instruction::Http(one) => {
            in_text(&one.path, visit);
            in_pairs(&one.headers, visit);
            in_pairs(&one.cookies, visit);
            if let Body::Text(text) = &one.body {
                in_text(text, visit);
            }
            in_answer(&one.checks, &one.saves, visit);
        }
        Instruction::Send(one) => in_message(&one.message, visit),
        Instruction::Expect(one) => {
            in_answer(&one.message.checks, &[], visit);
            in_answer(&one.checks, &one.saves, visit);
        }
        Instruction::Request(one) => {
            in_message(&one.message, visit);
            in_answer(&one.answer.checks, &[], visit);
            in_answer(&one.checks, &one.saves, visit);
        }
        Instruction::Stay(one) => {
            if let Some(heartbeat) = &one.heartbeat {
                if let Beat::Message(message) = &heartbeat.beat {
                    in_message(message, visit);
                }
                in_answer(&heartbeat.answer.checks, &[], visit);
            }
            for handler in &one.handlers {
                in_answer(&handler.message.checks, &[], visit);
                in_answer(&handler.checks, &handler.saves, visit);
            }
        }
        Instruction::Think(Pause::Text(text)) => in_text(text, visit),
        Instruction::ForEachBegin { values, .. } => visit(values),
        Instruction::Unless { condition, .. } => visit(condition),
        Instruction::Set { value, .. } => in_text(value, visit),
        Instruction::Log(text) | Instruction::Stop(text) => in_text(text, visit),
        _ => {}
    }
}

fn in_message(message: &Message, visit: Visit<'_>) {
    match &message.content {
        Content::Plain { content, .. } => in_text(content, visit),
        Content::Declared(declared) => declared.leaves.iter().for_each(|leaf| in_text(leaf, visit)),
    }
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

fn in_answer(checks: &[Check], saves: &[Save], visit: Visit<'_>) {
    let picks = checks.iter().map(|check| &check.pick).chain(saves.iter().map(|save| &save.pick));
    for pick in picks {
        if let Pick::Expression(expression) = pick {
            visit(expression);
        }
    }
    for check in checks {
        if let Want::Equals(text) | Want::Contains(text) = &check.want {
            in_text(text, visit);
        }
    }
    saves.iter().filter_map(|save| save.default.as_ref()).for_each(|text| in_text(text, visit));
}
