//! The variables of a scenario: declared in the file, overridden by `--set`, the same for all
//! users. A variable can use other variables and the environment, and can be a list or a map.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use throng_base::diagnostic::did_you_mean;
use throng_base::{Diagnostic, Secrets, Source, Span};
use throng_expression::Value;

use crate::ast;
use crate::file::secrets;
use crate::keys;
use crate::read::Context;
use crate::read::template::constant;
use crate::scope::{Variable, names_in};
use crate::synonyms::near_label;
use crate::syntax;
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::{self, is_name, shorten};

/// A variable that is being read.
struct Declared<'n> {
    key: &'n Key,
    node: &'n Node,
    state: VarState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VarState {
    New,
    /// Being evaluated: a reference to it now is a cycle.
    Open,
    Done,
}

/// Reads the `vars` of all files, those of the scenario first because they win, and the values of
/// the command line.
pub(crate) fn read(cx: &mut Context<'_>, nodes: &[&Node], set: &[(String, String)]) {
    let want = say!("a map of names and values");
    let help = say!("write `vars: {{users: 100}}`");
    let mut declared: Vec<Declared<'_>> = Vec::new();
    let mut seen = HashSet::new();
    let entries = nodes
        .iter()
        .flat_map(|node| cx.entries(node, want.clone(), help.clone()).unwrap_or_default());
    for (key, node) in entries.collect::<Vec<_>>() {
        if !seen.insert(key.text.as_str()) {
            continue;
        }
        if is_name(&key.text) {
            declared.push(Declared { key, node, state: VarState::New });
        } else {
            let message = say!("`{}` is not a valid variable name", shorten(&key.text));
            let help = say!("a name consists of letters, digits and `_`: `user_count`");
            cx.report("bad-value", key.place, message, say!("not a valid name"), help);
        }
    }
    for (name, text) in set {
        match declared.iter_mut().find(|one| one.key.text == *name) {
            Some(one) => {
                one.state = VarState::Done;
                insert(cx, one.key, Some(Value::parse_plain(text)));
            }
            None => unknown_set(cx, name, &declared),
        }
    }
    let numbers = declared.iter().enumerate().map(|(i, one)| (one.key.text.as_str(), i)).collect();
    for index in 0..declared.len() {
        make(cx, &mut declared, &numbers, index);
    }
}

fn insert(cx: &mut Context<'_>, key: &Key, value: Option<Value>) {
    match value {
        Some(value) => {
            if cx.secrets.is_variable(&key.text) {
                secrets::add_value(&mut cx.secrets, &key.text, &value);
            }
            let variable = Variable { value, place: key.place, used: Cell::new(false) };
            cx.vars.values.insert(key.text.clone(), variable);
        }
        None => drop(cx.vars.broken.insert(key.text.clone())),
    }
}

/// Evaluates a variable, after the variables that it uses.
fn make(
    cx: &mut Context<'_>,
    declared: &mut [Declared<'_>],
    numbers: &HashMap<&str, usize>,
    index: usize,
) {
    let mut stack = vec![index];
    while let Some(index) = stack.last().copied() {
        if declared[index].state == VarState::Done {
            stack.pop();
            continue;
        }
        let first = declared[index].state == VarState::New;
        declared[index].state = VarState::Open;
        let mut named = Vec::new();
        names_in(declared[index].node, &mut named);
        let needed: Vec<usize> = named
            .into_iter()
            .filter_map(|name| numbers.get(name).copied())
            .filter(|other| declared[*other].state != VarState::Done)
            .collect();
        let circle = needed.iter().find(|other| declared[**other].state == VarState::Open).copied();
        match circle {
            Some(other) => {
                report_circle(cx, declared[index].key, &declared[other]);
                insert(cx, declared[index].key, None);
                declared[index].state = VarState::Done;
            }
            None if first && !needed.is_empty() => stack.extend(needed),
            None => {
                let value = read_variable(cx, declared[index].node);
                insert(cx, declared[index].key, value);
                declared[index].state = VarState::Done;
            }
        }
    }
}

fn report_circle(cx: &mut Context<'_>, key: &Key, other: &Declared<'_>) {
    let message = say!("the variable `{}` depends on itself", shorten(&key.text));
    let label = match key.text == other.key.text {
        true => say!("its value refers to itself"),
        false => say!("this variable and `{}` depend on each other", shorten(&other.key.text)),
    };
    let help = say!("give one of them a value that does not use the other");
    cx.report("variable-circle", key.place, message, label, help);
}

/// A variable that `--set` can set, for callers that ask before a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub name: String,
    /// As written, if it is a scalar and not a secret.
    pub default: Option<String>,
    pub secret: bool,
}

/// The variables that a scenario itself declares, in order; none if it is not YAML.
pub fn inputs(source: &Arc<Source>) -> Vec<Input> {
    let root = syntax::parse(source, 0).ok().flatten();
    let vars = root.as_ref().and_then(|root| root.get("vars"));
    let secrets = Secrets::default();
    let input = |(key, node): &(Key, Node)| {
        let said = node.get("default").or(node.get("value")).unwrap_or(node);
        let says_so = node.get("secret").and_then(Node::text) == Some("true");
        let secret = says_so || secrets.is_name(&key.text);
        let default = said.text().filter(|_| !secret).map(str::to_string);
        Input { name: key.text.clone(), default, secret }
    };
    vars.map_or(&[][..], Node::entries).iter().map(input).collect()
}

/// A value, `{env: NAME, default: value}`, or `{value: x, secret: true}`.
fn read_variable(cx: &mut Context<'_>, node: &Node) -> Option<Value> {
    let is_described = |entries: &[(Key, Node)]| {
        let has = |name: &str| entries.iter().any(|(key, _)| key.text == name);
        (has("env") || has("value") && has("secret"))
            && entries.iter().all(|(key, _)| keys::VARIABLE.find(&key.text).is_some())
    };
    if !matches!(&node.kind, Kind::Map(entries) if is_described(entries)) {
        return constant(cx, node);
    }
    let fields = ast::Variable::read(cx, node)?;
    if let Some(node) = fields.secret.node() {
        cx.bool(node);
    }
    let Some(name_node) = fields.env.node() else {
        return constant(cx, fields.value.node()?);
    };
    if let (Some(_), Some(key)) = (fields.value.node(), fields.value.key()) {
        let message = say!("a variable takes either `value` or `env`, not both");
        let help =
            say!("keep one of them; `default` applies if the environment variable is not set");
        return cx.refuse("conflicting-keys", key.place, message, say!("the second one"), help);
    }
    let name = cx.text(name_node, say!("the name of an environment variable"))?;
    match ((cx.env)(&name), fields.default.node()) {
        (Some(value), _) => Some(Value::parse_plain(&value)),
        (None, Some(default)) => constant(cx, default),
        (None, None) => {
            let message = say!("the environment variable `{}` is not set", shorten(&name));
            let help = say!("run `{name}=value throng …`, or add a `default:`");
            cx.refuse("unset-variable", name_node.place, message, say!("not set"), help)
        }
    }
}

fn unknown_set(cx: &mut Context<'_>, name: &str, declared: &[Declared<'_>]) {
    // The name may be mistyped, so the value may be a secret.
    let typed = format!("--set {name}=…");
    let span = Span { start: 6, end: 6 + name.len(), source: Source::new("command line", typed) };
    let message = say!("the scenario has no variable `{}`", shorten(name));
    let names = declared.iter().map(|one| one.key.text.as_str());
    let label = near_label(did_you_mean(name, names.clone()), say!("here"));
    let error = Diagnostic::error("unknown-variable", message).at(span).label(label);
    cx.note(error.help(match declared.is_empty() {
        true => say!("declare it in the file: `vars: {{name: value}}`"),
        false => say!("`vars` in the file contains {}", words::names(names)),
    }));
}

/// Warns of unused variables, except in included files, which may offer more than each scenario
/// needs.
pub(crate) fn warn_unused(cx: &mut Context<'_>) {
    let unused: Vec<(String, Place)> = cx
        .vars
        .values
        .iter()
        .filter(|(_, variable)| !variable.used.get() && variable.place.file == 0)
        .map(|(name, variable)| (name.clone(), variable.place))
        .collect();
    for (name, place) in unused {
        let warning = cx
            .warning("unused-variable", say!("the variable `{name}` is never used"), place)
            .label(say!("never used"))
            .help(say!("use the variable as `${{vars.{name}}}`, or remove it"));
        cx.note(warning);
    }
}
