//! Statements of SQL in the words in which a person writes them.

use throng_program::Sql;

use super::{Words, limits, shown};

impl Words<'_> {
    pub(super) fn sql(&self, one: &Sql, notes: &mut Vec<String>) -> String {
        let text = shown(&one.text);
        self.name(one.step, &text, notes);
        if let Some(with) = one.with.as_ref().filter(|with| !with.is_empty()) {
            let values: Vec<String> = with.iter().map(shown).collect();
            notes.push(format!("with {}", values.join(", ")));
        }
        self.notes(&one.checks, &one.saves, notes);
        limits(Some(one.timeout), one.failing, notes);
        format!("sql {text}")
    }
}
