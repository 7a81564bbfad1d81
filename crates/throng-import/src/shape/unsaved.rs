//! Values that are used but not saved by a step: their save was disabled, was left out, or is in
//! another session. Values of the setup are available to all; the others become variables.

use std::collections::HashSet;

use crate::model::{Exchange, Item, Recording, Variable, exchanges_mut};
use crate::text::Text;

pub(super) fn replace(recording: &mut Recording) {
    let in_setup = saved(&mut recording.setup);
    let mut unknown: Vec<String> = Vec::new();
    for session in &mut recording.sessions {
        let mut own = saved(&mut session.before);
        own.extend(saved(&mut session.steps));
        own.extend(saved(&mut session.after));
        let mut change = |text: &mut Text| rename(text, &own, &in_setup, &mut unknown);
        for items in [&mut session.before, &mut session.steps, &mut session.after] {
            exchanges_mut(items, &mut |exchange| exchange.each_text(&mut change));
        }
    }
    let none = HashSet::new();
    for (items, own, setup) in
        [(&mut recording.setup, &in_setup, &none), (&mut recording.teardown, &none, &in_setup)]
    {
        let mut own = own.clone();
        own.extend(saved(items));
        let mut change = |text: &mut Text| rename(text, &own, setup, &mut unknown);
        exchanges_mut(items, &mut |exchange| exchange.each_text(&mut change));
    }
    for name in unknown {
        recording.declare(Variable::unknown(name));
    }
}

fn saved(items: &mut [Item]) -> HashSet<String> {
    let mut names = HashSet::new();
    exchanges_mut(items, &mut |exchange: &mut Exchange| {
        names.extend(exchange.saves.iter().map(|(name, _)| name.clone()));
    });
    names
}

fn rename(
    text: &mut Text,
    own: &HashSet<String>,
    setup: &HashSet<String>,
    unknown: &mut Vec<String>,
) {
    text.change_values(|value| renamed(value, own, setup, unknown));
}

/// The expression with the right scope before each saved name.
fn renamed(
    value: &str,
    own: &HashSet<String>,
    setup: &HashSet<String>,
    unknown: &mut Vec<String>,
) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once("saved.") {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = behind.find(|c: char| !is_word(c)).unwrap_or(behind.len());
        let name = &behind[..end];
        out.push_str(before);
        out.push_str(if own.contains(name) {
            "saved."
        } else if setup.contains(name) {
            "setup."
        } else {
            unknown.push(name.to_string());
            "vars."
        });
        out.push_str(name);
        rest = &behind[end..];
    }
    out + rest
}
