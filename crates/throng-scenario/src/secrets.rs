//! The secrets of a scenario: what stands under the names of secrets, in the tree as it was read;
//! and the scenario as it is recorded, without them.

use std::collections::BTreeMap;
use std::ops::Range;

use throng_base::secret::{MASK, is_plain_word};
use throng_base::{Secrets, Source};
use throng_expression::Value;

use crate::read::Context;
use crate::syntax::{self, Key, Kind, Node, Place};

/// Maps that hold what is looked for, files, or thresholds: nothing in them is sent, and their
/// names are not those of values.
const NOT_SENT: [&str; 12] = [
    "save",
    "check",
    "expect",
    "match",
    "tls",
    "thresholds",
    "abort_when",
    "load",
    "deliveries",
    "extract",
    "capture",
    "assert",
];
/// How selectors and the placeholders of other tools begin: what a secret is taken from.
const SELECTORS: [&str; 5] = ["json.", "$.", "header.", "{{", "<%"];
/// Maps whose names are given by the person to steps, which may be called `get_token`.
const NAMED_STEPS: [&str; 2] = ["sessions", "parts"];
/// The key of a variable that says where its value comes from.
const ENV: &str = "env";

/// What a walk through a tree finds.
#[derive(Default)]
struct Found {
    secrets: Secrets,
    /// Scalars that are secrets as a whole, and by what name they go.
    whole: Vec<(Place, String)>,
    /// The other scalars of what is sent, in which there may be some.
    others: Vec<Place>,
    keys: Vec<Place>,
    /// Secrets that are masked in this file already.
    masked: Vec<(Place, String)>,
}

impl Found {
    /// `under` is the name of the secret that this is a part of.
    fn walk(&mut self, node: &Node, under: Option<&str>) {
        match &node.kind {
            Kind::List(items) => items.iter().for_each(|item| self.walk(item, under)),
            Kind::Map(entries) => self.walk_map(entries, under),
            Kind::Scalar { text, .. } => match under {
                _ if is_plain_word(text) && text != MASK => {}
                _ if SELECTORS.iter().any(|begin| text.starts_with(begin)) => {}
                Some(_) if text.contains("${") => self.made_of(node, text),
                Some(name) if text == MASK => self.masked.push((node.place, name.to_string())),
                Some(name) => {
                    self.secrets.add_header(text);
                    self.whole.push((node.place, name.to_string()));
                }
                None => {
                    for range in self.secrets.ranges(text.as_bytes()) {
                        self.secrets.add(text.get(range).unwrap_or_default());
                    }
                    self.others.push(node.place);
                }
            },
        }
    }

    /// What is put into a secret is one itself: variables, and texts in expressions.
    fn made_of(&mut self, node: &Node, text: &str) {
        let mut names = Vec::new();
        crate::scope::names_in(node, &mut names);
        names.into_iter().for_each(|name| self.secrets.add_name(name));
        for expression in text.split("${").skip(1) {
            let mut parts = expression.split('\'');
            let mut before = parts.next().unwrap_or_default();
            while let (Some(literal), Some(behind)) = (parts.next(), parts.next()) {
                // `['name']` looks something up.
                if !before.ends_with('[') {
                    self.secrets.add(literal);
                    // Of basic authentication: `user:password`.
                    self.secrets.add(literal.split_once(':').map_or("", |(_, password)| password));
                }
                before = behind;
            }
        }
    }

    fn walk_map(&mut self, entries: &[(Key, Node)], under: Option<&str>) {
        let is_declared = entries.iter().any(|(key, value)| {
            key.text == "secret"
                && matches!(&value.kind, Kind::Scalar { text, .. } if text == "true")
        });
        for (key, value) in entries {
            self.keys.push(key.place);
            let name = key.text.as_str();
            if NOT_SENT.contains(&name) || name == ENV {
                self.skip(value);
            } else if NAMED_STEPS.contains(&name)
                && let Kind::Map(named) = &value.kind
            {
                named.iter().for_each(|(key, value)| {
                    self.keys.push(key.place);
                    self.walk(value, None);
                });
            } else {
                let own = (is_declared || self.secrets.is_name(name)).then_some(name);
                self.walk(value, under.or(own));
            }
        }
    }

    /// Notes the keys: nothing in them is masked.
    fn skip(&mut self, node: &Node) {
        match &node.kind {
            Kind::Scalar { .. } => {}
            Kind::List(items) => items.iter().for_each(|item| self.skip(item)),
            Kind::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.keys.push(key.place);
                self.skip(value);
            }),
        }
    }
}

/// The variables that are secret, because they say so or are called so, or come from one of the
/// environment that is.
fn declared_names(root: &Node, secrets: &mut Secrets) {
    let Kind::Map(entries) = &root.kind else { return };
    let vars = entries.iter().filter(|(key, _)| key.text == "vars");
    for (_, vars) in vars {
        let Kind::Map(vars) = &vars.kind else { continue };
        for (key, value) in vars {
            let Kind::Map(fields) = &value.kind else { continue };
            let is_secret = fields.iter().any(|(field, value)| {
                let Kind::Scalar { text, .. } = &value.kind else { return false };
                match field.text.as_str() {
                    "secret" => text == "true",
                    ENV => secrets.is_name(text),
                    _ => false,
                }
            });
            if is_secret {
                secrets.add_name(&key.text);
            }
        }
    }
}

/// Learns the secrets of a scenario with all that it includes. One that is masked, as in a
/// record, has to be given.
pub(crate) fn collect(cx: &mut Context<'_>, root: &Node, set: &[(String, String)]) {
    let mut found = Found::default();
    declared_names(root, &mut found.secrets);
    found.walk(root, None);
    for (name, value) in set {
        if found.secrets.is_name(name) {
            found.secrets.add_header(value);
        }
    }
    for (place, name) in found.masked {
        if set.iter().any(|(given, _)| *given == name) {
            continue;
        }
        let message = say!("the secret `{name}` is masked in this file");
        let error = cx.error("masked-secret", message, place).label(say!("not the secret itself"));
        let help =
            say!("a record has no secrets: give it with `--set name=value`, or write it here");
        cx.note(error.help(help));
    }
    for (place, _) in found.whole {
        cx.hide(place);
    }
    cx.secrets = found.secrets;
}

/// All texts and numbers of the value of a secret variable.
pub(crate) fn add_value(secrets: &mut Secrets, value: &Value) {
    match value {
        Value::Text(text) => secrets.add_header(text),
        Value::Int(number) => secrets.add(&number.to_string()),
        Value::UInt(number) => secrets.add(&number.to_string()),
        Value::List(items) => items.iter().for_each(|item| add_value(secrets, item)),
        Value::Map(entries) => entries.iter().for_each(|(_, value)| add_value(secrets, value)),
        Value::Null | Value::Bool(_) | Value::Float(_) | Value::Bytes(_) => {}
    }
}

/// The text of a scenario or of a file it includes, as it is recorded: without secrets, and with
/// words at its top on how to run it again.
pub fn masked_scenario(text: &str, secrets: &Secrets) -> String {
    let source = Source::new("", text);
    let Ok(Some(root)) = syntax::parse(&source, 0) else {
        return secrets.mask(text).into_owned();
    };
    let mut found = Found { secrets: secrets.clone(), ..Found::default() };
    declared_names(&root, &mut found.secrets);
    found.walk(&root, None);
    let mut changes: BTreeMap<usize, (Range<usize>, String)> = BTreeMap::new();
    for (place, _) in &found.whole {
        let written = text[place.start()..place.end()].trim_end();
        let mask = mask_written(written, &text[..place.start()]);
        changes.insert(place.start(), (place.start()..place.start() + written.len(), mask));
    }
    for place in &found.others {
        let written = &text[place.start()..place.end()];
        for range in found.secrets.ranges(written.as_bytes()) {
            let is_plain_start = range.start == 0;
            let mask = if is_plain_start { format!("\"{MASK}\"") } else { MASK.to_string() };
            let range = place.start() + range.start..place.start() + range.end;
            changes.insert(range.start, (range, mask));
        }
    }
    let scalars: Vec<usize> = changes.keys().copied().collect();
    // Comments; the names of things stay.
    let is_key = |range: &Range<usize>| {
        found.keys.iter().any(|key| range.start < key.end() && key.start() < range.end)
    };
    for range in found.secrets.value_ranges(text.as_bytes()) {
        let is_done =
            |(done, _): &(Range<usize>, String)| range.start < done.end && done.start < range.end;
        if !is_key(&range) && !changes.values().any(is_done) {
            changes.insert(range.start, (range, MASK.to_string()));
        }
    }
    if changes.is_empty() {
        return text.to_string();
    }
    let mut out = head(&root, &source, scalars.into_iter());
    let mut at = 0;
    for (range, mask) in changes.into_values().filter(|(range, _)| !range.is_empty()) {
        if range.start < at {
            continue;
        }
        out += &text[at..range.start];
        out += &mask;
        at = range.end;
    }
    out + &text[at..]
}

/// What is masked in a recorded scenario.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Masked {
    /// Variables, which can be given.
    pub names: Vec<String>,
    /// Where else.
    pub lines: Vec<usize>,
}

pub fn masked_in(text: &str) -> Masked {
    let source = Source::new("", text);
    let Ok(Some(root)) = syntax::parse(&source, 0) else { return Masked::default() };
    let mut found = Found::default();
    declared_names(&root, &mut found.secrets);
    found.walk(&root, None);
    let vars = variables(&root);
    let is_in = |node: &Node, place: &Place| {
        (node.place.start()..node.place.end()).contains(&place.start())
    };
    let others = found.others.into_iter().filter(|it| text[it.start()..it.end()].contains(MASK));
    let mut masked = Masked::default();
    for place in found.masked.into_iter().map(|(place, _)| place).chain(others) {
        match vars.iter().find(|(_, node)| is_in(node, &place)) {
            Some((key, _)) => masked.names.push(key.text.clone()),
            None => masked.lines.push(source.line_column(place.start()).0),
        }
    }
    masked
}

fn variables(root: &Node) -> Vec<&(Key, Node)> {
    let Kind::Map(entries) = &root.kind else { return Vec::new() };
    let vars = entries.iter().filter(|(key, _)| key.text == "vars");
    let vars = vars.filter_map(|(_, node)| match &node.kind {
        Kind::Map(vars) => Some(vars),
        _ => None,
    });
    vars.flatten().collect()
}

/// The comment at the top: which variables to give, and which lines to complete.
fn head(root: &Node, source: &Source, changes: impl Iterator<Item = usize>) -> String {
    let vars = variables(root);
    let variable_of = |at: usize| {
        vars.iter().find(|(_, node)| (node.place.start()..node.place.end()).contains(&at))
    };
    let (mut names, mut lines) = (Vec::new(), Vec::new());
    for at in changes {
        match variable_of(at) {
            Some((key, _)) if !names.contains(&key.text) => names.push(key.text.clone()),
            Some(_) => {}
            None => lines.push(source.line_column(at).0),
        }
    }
    lines.dedup();
    let mut out =
        format!("# Secrets are masked in this record: `{MASK}` stands for each of them.\n");
    if !names.is_empty() {
        let given: Vec<String> = names.iter().map(|name| format!("--set {name}=…")).collect();
        out += &format!("# To run it again, give them: {}\n", given.join(" "));
    }
    if !lines.is_empty() {
        // Behind the lines of this comment.
        let above = 2 + usize::from(!names.is_empty());
        let lines: Vec<String> = lines.iter().map(|line| (line + above).to_string()).collect();
        let which = if lines.len() == 1 { "line" } else { "lines" };
        out += &format!("# To run it again, write them into {which} {}\n", lines.join(", "));
    }
    out
}

/// A scalar as it is written, masked: it stays a scalar. `before` is all that stands before it.
fn mask_written(written: &str, before: &str) -> String {
    let last = before.trim_end().lines().next_back().unwrap_or_default();
    let header = last.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+'));
    let is_block = before.trim_end_matches(' ').ends_with('\n') && header.ends_with(['|', '>']);
    if !is_block {
        return format!("\"{MASK}\"");
    }
    // The lines of a block keep their indentation.
    let lines = written.lines().map(|line| {
        let indent = &line[..line.len() - line.trim_start().len()];
        format!("{indent}{}", if line.trim().is_empty() { "" } else { MASK })
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
