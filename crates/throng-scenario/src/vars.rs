//! The variables of a scenario: declared in the file, overridden by `--set`, filled in when the
//! scenario is compiled.

use std::cell::Cell;
use std::collections::BTreeMap;

use throng_base::diagnostic::did_you_mean;
use throng_base::{Diagnostic, Source, Span};

use crate::read::{Context, shorten};
use crate::syntax::{Kind, Node, Place};
use crate::template::is_name;

#[derive(Default)]
pub(crate) struct Vars {
    values: BTreeMap<String, Value>,
}

pub(crate) struct Value {
    pub(crate) text: String,
    place: Place,
    used: Cell<bool>,
}

impl Vars {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let value = self.values.get(name)?;
        value.used.set(true);
        Some(value)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The name of the variable when the scalar is nothing but `${vars.name}`.
    pub(crate) fn single_name<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let Kind::Scalar { text, .. } = &node.kind else { return None };
        text.trim().strip_prefix("${")?.strip_suffix('}')?.trim().strip_prefix("vars.")
    }
}

/// Reads `vars` and what the command line sets.
pub(crate) fn read(cx: &mut Context<'_>, node: Option<&Node>, set: &[(String, String)]) {
    let want = "a map of names and values";
    let help = "write `vars: {users: 100}`";
    for (key, value) in node.and_then(|node| cx.entries(node, want, help)).unwrap_or_default() {
        if !is_name(&key.text) {
            let message = format!("`{}` cannot be the name of a variable", shorten(&key.text));
            let error = cx.error("bad-value", message, key.place).label("not a name");
            cx.note(error.help("a name has letters, digits, `_` and `-`: `user_count`"));
        } else if let Some(text) = literal(cx, value) {
            let value = Value { text, place: key.place, used: Cell::new(false) };
            cx.vars.values.insert(key.text.clone(), value);
        }
    }
    for (name, text) in set {
        override_value(cx, name, text);
    }
}

fn literal(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Scalar { text, .. } if text.contains("${") => {
            cx.not_yet("an expression in `vars`", node.place, "write the value itself");
            None
        }
        Kind::Scalar { text, .. } => Some(text.clone()),
        _ => cx.wrong_type(node, "a text or number", "a variable has one value"),
    }
}

fn override_value(cx: &mut Context<'_>, name: &str, text: &str) {
    if let Some(value) = cx.vars.values.get_mut(name) {
        text.clone_into(&mut value.text);
        value.used.set(false);
        return;
    }
    let line = format!("--set {name}={text}");
    let span = Span { start: 6, end: 6 + name.len(), source: Source::new("command line", line) };
    let message = format!("the scenario has no variable `{}`", shorten(name));
    let mut error = Diagnostic::error("unknown-variable", message).at(span);
    if let Some(word) = did_you_mean(name, cx.vars.names()) {
        error = error.label(format!("did you mean `{word}`?"));
    }
    let names: Vec<String> = cx.vars.names().map(|name| format!("`{name}`")).collect();
    cx.note(error.help(match names.is_empty() {
        true => "declare it in the file: `vars: {name: value}`".to_string(),
        false => format!("`vars` of the file has {}", names.join(", ")),
    }));
}

/// Warns of variables that stand nowhere.
pub(crate) fn warn_unused(cx: &mut Context<'_>) {
    let unused: Vec<(String, Place)> = cx
        .vars
        .values
        .iter()
        .filter(|(_, value)| !value.used.get())
        .map(|(name, value)| (name.clone(), value.place))
        .collect();
    for (name, place) in unused {
        let warning = cx
            .warning("unused-variable", format!("the variable `{name}` is used nowhere"), place)
            .label("never used")
            .help(format!("write `${{vars.{name}}}` where it is meant, or remove it"));
        cx.note(warning);
    }
}
