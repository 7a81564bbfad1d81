//! SQL steps in outlines.

use throng_program::Statement;

use crate::phrases::{Words, limits, shown};

pub(super) fn line(words: &Words<'_>, step: &Statement, notes: &mut Vec<String>) -> Option<String> {
    let Statement::Sql(one) = step else { return None };
    let text = shown(&one.text);
    words.name(one.step, &text, notes);
    if let Some(with) = one.with.as_ref().filter(|with| !with.is_empty()) {
        let values: Vec<String> = with.iter().map(shown).collect();
        notes.push(format!("with {}", values.join(", ")));
    }
    words.notes(&one.checks, &one.saves, notes);
    limits(Some(one.timeout), one.failing, notes);
    Some(format!("sql {text}"))
}
