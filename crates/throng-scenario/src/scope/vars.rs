//! Variables and their values.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use throng_expression::Value;

use crate::syntax::{Kind, Node, Place};

#[derive(Default)]
pub(crate) struct Vars {
    pub(crate) values: BTreeMap<String, Variable>,
    /// The variables of the parts on the current path (`use: … with: …`), the innermost last.
    pub(crate) given: Vec<Vec<(String, Value)>>,
    /// Declared, but the mistake in their value is already reported.
    pub(crate) broken: HashSet<String>,
}

pub(crate) struct Variable {
    pub(crate) value: Value,
    pub(crate) place: Place,
    pub(crate) used: Cell<bool>,
}

impl Vars {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let given = self.given.iter().rev().flatten().find(|(given, _)| given == name);
        if let Some((_, value)) = given {
            return Some(value);
        }
        let variable = self.values.get(name)?;
        variable.used.set(true);
        Some(&variable.value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(crate) fn is_broken(&self, name: &str) -> bool {
        self.broken.contains(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.values.keys().map(String::as_str)
    }

    /// Adds the variables of a part (`use: … with: …`) until [`Vars::leave`]. Callers must also
    /// call `SessionNames::forget_expressions`.
    pub(crate) fn enter(&mut self, given: Vec<(String, Value)>) {
        self.given.push(given);
    }

    pub(crate) fn leave(&mut self) {
        self.given.pop();
    }

    /// All variables, as the expression `vars`.
    pub(crate) fn all(&self) -> Value {
        let entries = self.values.iter().map(|(name, variable)| {
            variable.used.set(true);
            (Arc::from(name.as_str()), variable.value.clone())
        });
        Value::Map(entries.collect())
    }

    /// The name of the variable, if the scalar is `${vars.name}`.
    pub(crate) fn single_name<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let Kind::Scalar { text, .. } = &node.kind else { return None };
        text.trim().strip_prefix("${")?.strip_suffix('}')?.trim().strip_prefix("vars.")
    }
}

/// The names after `vars.` in the expressions of a value.
pub(crate) fn names_in<'n>(node: &'n Node, out: &mut Vec<&'n str>) {
    match &node.kind {
        Kind::Scalar { text, .. } if text.contains("${") => names_in_text(text, out),
        Kind::Scalar { .. } => {}
        Kind::List(items) => items.iter().for_each(|item| names_in(item, out)),
        Kind::Map(entries) => entries.iter().for_each(|(_, value)| names_in(value, out)),
    }
}

pub(crate) fn names_in_text<'n>(text: &'n str, out: &mut Vec<&'n str>) {
    for (at, found) in text.match_indices("vars") {
        let rest = text[at + found.len()..].trim_start();
        let rest = rest.trim_start_matches(['.', '[', '\'', '"', ' ', '?']);
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        out.push(&rest[..end.unwrap_or(rest.len())]);
    }
}
