//! The secrets of a scenario: values under names that mean secrets, found in the syntax tree; and
//! the recorded text of the scenario, in which they are masked.

use std::collections::BTreeMap;
use std::ops::Range;

use throng_base::secret::{MASK, Use, is_plain_word, is_scheme};
use throng_base::{Secrets, Source};
use throng_expression::Value;

use crate::read::Context;
use crate::scope::names_in_text;
use crate::syntax::{self, Key, Kind, Node, Place};

/// Maps with matchers, files or thresholds: nothing in them is sent, and their keys do not name
/// values.
const NOT_SENT: [&str; 13] = [
    "save",
    "check",
    "expect",
    "match",
    "tls",
    "thresholds",
    "abort_when",
    "hold_when",
    "load",
    "deliveries",
    "extract",
    "capture",
    "assert",
];
/// How selectors and the placeholders of other tools begin: references, not literals.
const SELECTORS: [&str; 6] = ["json.", "$.", "header.", "cookie.", "{{", "<%"];
/// Maps whose keys are names of steps, such as `get_token`.
const NAMED_STEPS: [&str; 2] = ["sessions", "parts"];
/// Maps of variables: those of the scenario, and the arguments of a part.
const VARIABLES: [&str; 2] = ["vars", "with"];
/// A shorter literal is part of a text and not a secret: `'u' + user.id`.
const LITERAL_BYTES_MIN: usize = 4;
/// How many levels of variables are followed to find secrets.
const DEPTH_MAX: usize = 8;
/// The key of a variable that names its environment variable.
const ENV: &str = "env";

/// The result of walking a tree.
#[derive(Default)]
struct FoundSecrets<'n> {
    secrets: Secrets,
    /// Scalars that are entirely secret, and the name that makes them secret.
    whole: Vec<(Place, &'n str, String)>,
    /// Scalars under the name of a secret that are built from other values.
    made: Vec<(Place, &'n str)>,
    /// The other scalars that are sent, with their keys; they may contain secrets.
    others: Vec<(Place, &'n str, Option<&'n str>)>,
    /// Scalars that are never sent.
    skipped: Vec<(Place, &'n str)>,
    keys: Vec<&'n Key>,
    /// Variables that are built from others.
    defined: Vec<(&'n str, &'n str)>,
    /// Secrets that are already masked in this file.
    masked: Vec<(Place, String)>,
}

impl<'n> FoundSecrets<'n> {
    fn of(root: &'n Node, secrets: Secrets) -> FoundSecrets<'n> {
        let mut found = FoundSecrets { secrets, ..FoundSecrets::default() };
        found.walk(root, None, None);
        found
    }

    /// `under` is the name of the secret that contains the node.
    fn walk(&mut self, node: &'n Node, under: Option<&str>, key: Option<&'n str>) {
        match &node.kind {
            Kind::List(items) => items.iter().for_each(|item| self.walk(item, under, key)),
            Kind::Map(entries) => self.walk_map(entries, under),
            Kind::Scalar { text, .. } => match under {
                _ if is_plain_word(text) && text != MASK => {}
                _ if SELECTORS.iter().any(|begin| text.starts_with(begin)) => {}
                Some(_) if text.contains("${") => self.made.push((node.place, text)),
                Some(name) if text == MASK => self.masked.push((node.place, name.to_string())),
                Some(name) => self.whole.push((node.place, text, name.to_string())),
                None => self.others.push((node.place, text, key)),
            },
        }
    }

    fn walk_map(&mut self, entries: &'n [(Key, Node)], under: Option<&str>) {
        let is_declared =
            entries.iter().any(|(key, value)| key.text == "secret" && value.text() == Some("true"));
        for (key, value) in entries {
            self.keys.push(key);
            let name = key.text.as_str();
            if NOT_SENT.contains(&name) || name == ENV {
                self.skip(value);
            } else if NAMED_STEPS.contains(&name)
                && let Kind::Map(named) = &value.kind
            {
                for (key, value) in named {
                    self.keys.push(key);
                    self.walk(value, None, Some(&key.text));
                }
            } else if VARIABLES.contains(&name)
                && let Kind::Map(variables) = &value.kind
            {
                for (key, value) in variables {
                    self.keys.push(key);
                    let text = value.text().filter(|text| text.contains("${"));
                    self.defined.extend(text.map(|text| (key.text.as_str(), text)));
                    let own = self.secrets.is_variable(&key.text).then_some(key.text.as_str());
                    self.walk(value, own, Some(&key.text));
                }
            } else {
                let own = (is_declared || self.secrets.is_name(name)).then_some(name);
                self.walk(value, under.or(own), Some(name));
            }
        }
    }

    /// Notes the keys and the scalars below them as not sent.
    fn skip(&mut self, node: &'n Node) {
        match &node.kind {
            Kind::Scalar { text, .. } => self.skipped.push((node.place, text)),
            Kind::List(items) => items.iter().for_each(|item| self.skip(item)),
            Kind::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.keys.push(key);
                self.skip(value);
            }),
        }
    }

    /// Marks variables as secret: those that are built from secrets, and those that a secret is
    /// built from unless one of them is known to be secret. True if any was added.
    fn learn_variables(&mut self) -> bool {
        let before = self.secrets.clone();
        let names_of = |text: &'n str| {
            let mut names = Vec::new();
            names_in_text(text, &mut names);
            names
        };
        for (_, text) in &self.made {
            let names = names_of(without_user(text));
            if !names.iter().any(|name| self.secrets.is_variable(name)) {
                names.into_iter().for_each(|name| self.secrets.add_variable(name));
            }
        }
        for (name, text) in &self.defined {
            if names_of(text).into_iter().any(|name| self.secrets.is_variable(name)) {
                self.secrets.add_variable(name);
            }
        }
        self.secrets != before
    }

    /// Learns which values occur elsewhere in the scenario, where secrets are used, and their
    /// values. `set` contains the variables from the command line.
    fn learn_values(&mut self, set: &[(String, String)]) {
        // A text under the name of a secret does not count as an occurrence elsewhere.
        let others: Vec<String> =
            self.others.iter().map(|(_, text, _)| self.secrets.mask(text).into_owned()).collect();
        let others = others.iter().map(String::as_str);
        let skipped = self.skipped.iter().map(|(_, text)| *text);
        let keys = self.keys.iter().map(|key| key.text.as_str());
        let mut said = set.to_vec();
        said.retain(|(name, _)| !self.secrets.is_variable(name));
        let given = said.iter().map(|(_, value)| value.as_str());
        self.secrets.set_words(others.chain(skipped).chain(keys).chain(given));
        let made_of = self.others.iter().filter(|(_, text, _)| text.contains("${"));
        let uses: Vec<Use> = made_of.flat_map(|it| uses_in(it.1, it.2, &self.secrets)).collect();
        self.secrets.set_uses(uses);
        let mut values: Vec<&str> = self.whole.iter().map(|(_, text, _)| *text).collect();
        for (_, text, _) in &self.others {
            let ranges = self.secrets.ranges(text.as_bytes()).into_iter();
            values.extend(ranges.filter_map(|range| text.get(range)));
        }
        for (_, text) in &self.made {
            for literal in literals_in(text).into_iter().filter_map(|range| text.get(range)) {
                // For basic authentication: `user:password`.
                values.extend(literal.split_once(':').map(|(_, password)| password));
                values.push(literal);
            }
        }
        values.into_iter().for_each(|value| self.secrets.learn("", value));
    }
}

/// The expressions in a text, without braces.
fn expressions_in(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find("${").map(|start| at + start + 2) {
        let mut quote = None;
        let end = text[start..].bytes().position(|byte| match (quote, byte) {
            (None, b'}') => true,
            (None, b'\'' | b'"') => {
                quote = Some(byte);
                false
            }
            (Some(open), byte) if open == byte => {
                quote = None;
                false
            }
            _ => false,
        });
        let end = end.map_or(text.len(), |length| start + length);
        found.push(start..end);
        at = end;
    }
    found
}

/// The string literals in the expressions of a scalar, except those that index, as in `['name']`.
/// The scalar may be in its written form, with YAML quotes.
fn literals_in(text: &str) -> Vec<Range<usize>> {
    let quote: &[&str] = match text.as_bytes().first() {
        Some(b'\'') => &["''", "\""],
        Some(b'"') => &["'", "\\\""],
        _ => &["'", "\""],
    };
    let mut found = Vec::new();
    for expression in expressions_in(text) {
        let mut at = expression.start;
        let mut outside = String::new();
        let first = |at: usize| {
            let found = quote.iter().filter_map(|quote| {
                let start = text[at..expression.end].find(quote)?;
                Some((at + start, *quote))
            });
            found.min()
        };
        while let Some((start, quote)) = first(at) {
            let inside = start + quote.len();
            let Some(length) = text[inside..expression.end].find(quote) else { break };
            let literal = text[inside..inside + length].trim();
            outside += &text[at..start];
            let is_secret = literal.len() >= LITERAL_BYTES_MIN
                && literal.chars().any(char::is_alphanumeric)
                && !is_scheme(literal.as_bytes())
                && !is_signed(&outside)
                && !text[..start].ends_with('[');
            if is_secret {
                found.push(inside..inside + length);
            }
            at = inside + length + quote.len();
        }
    }
    found
}

/// True if the next argument is the data of an HMAC, which follows the key: usually method and path
/// of a request, not a secret. Literals are already removed from the part.
fn is_signed(before: &str) -> bool {
    let mut open: Vec<(bool, usize)> = Vec::new();
    for (at, c) in before.char_indices() {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_');
        let name = before[..at].rsplit(|c| !is_name(c)).next().unwrap_or_default();
        match (c, open.last_mut()) {
            ('(', _) => open.push((name.starts_with("hmac."), 0)),
            (',', Some((_, commas))) => *commas += 1,
            (')', Some(_)) => drop(open.pop()),
            _ => {}
        }
    }
    open.iter().any(|(is_hmac, commas)| *is_hmac && *commas > 0)
}

/// Credentials without the user name, which is not secret.
fn without_user(text: &str) -> &str {
    let is_basic = text.contains("base64.encode");
    let colons = ["':'", "\":\"", "}:${"].iter().filter_map(|colon| text.find(colon));
    colons.min().filter(|_| is_basic).map_or(text, |colon| &text[colon..])
}

/// Where a text uses secret variables and columns of data.
fn uses_in(text: &str, key: Option<&str>, secrets: &Secrets) -> Vec<Use> {
    let expressions = expressions_in(text);
    let mut uses = Vec::new();
    for (index, range) in expressions.iter().enumerate() {
        let of = text[range.clone()].trim();
        let is_secret = match of.split_once('.') {
            Some(("vars", name)) => secrets.is_variable(name),
            Some(("data", name)) => {
                name.split_once('.').is_some_and(|(_, column)| secrets.is_name(column))
            }
            _ => false,
        };
        if !is_secret {
            continue;
        }
        let begin = index.checked_sub(1).map_or(0, |before| expressions[before].end + 1);
        let end = expressions.get(index + 1).map_or(text.len(), |after| after.start - 2);
        let part = |start: usize, end: usize| text.get(start..end).unwrap_or_default().to_string();
        uses.push(Use {
            of: of.to_string(),
            before: part(begin, range.start - 2),
            after: part(range.end + 1, end),
            is_open: (index > 0, index + 1 < expressions.len()),
            key: key.map(str::to_string),
        });
    }
    uses
}

/// Secret variables: declared as secret, named like a secret, or read from an environment variable
/// that is. Also the environment variables that secret variables read.
fn declared_names(root: &Node, secrets: &mut Secrets) {
    for (key, value) in variables(root) {
        let of = |name: &str| value.get(name).and_then(Node::text);
        let env = of(ENV);
        if of("secret") == Some("true") || env.is_some_and(|name| secrets.is_name(name)) {
            secrets.add_name(&key.text);
        }
        if let Some(env) = env.filter(|_| secrets.is_variable(&key.text)) {
            secrets.add_variable(env);
        }
    }
}

/// Learns which names are secret, following variables that are built from others.
fn learned<'n>(root: &'n Node, mut secrets: Secrets) -> FoundSecrets<'n> {
    declared_names(root, &mut secrets);
    for _ in 0..DEPTH_MAX {
        let mut found = FoundSecrets::of(root, secrets);
        if !found.learn_variables() {
            return found;
        }
        secrets = found.secrets;
        declared_names(root, &mut secrets);
    }
    FoundSecrets::of(root, secrets)
}

/// Learns the secrets of a scenario and its includes. A masked one, as in a recorded scenario, must
/// be given.
pub(crate) fn collect(cx: &mut Context<'_>, root: &Node, set: &[(String, String)]) {
    let mut found = learned(root, Secrets::default());
    found.learn_values(set);
    for (name, value) in set {
        if found.secrets.is_variable(name) {
            found.secrets.learn(&format!("vars.{name}"), value);
        }
    }
    for (place, name) in &found.masked {
        if set.iter().any(|(given, _)| given == name) {
            continue;
        }
        let message = say!("the secret `{name}` is masked in this file");
        let help = say!(
            "run directories do not contain secrets: pass the secret with `--set name=value`, or \
             write it here"
        );
        cx.report("masked-secret", *place, message, say!("this is the mask, not the secret"), help);
    }
    found.whole.iter().for_each(|(place, ..)| cx.hide(*place));
    let others = found.others.iter().map(|(place, ..)| (*place, false));
    for (place, is_made) in others.chain(found.made.iter().map(|(place, _)| (*place, true))) {
        let written = cx.written(place);
        let mut ranges = found.secrets.ranges(written.as_bytes());
        if is_made {
            ranges.extend(literals_in(written));
        }
        ranges.into_iter().for_each(|range| cx.hide(place.part(range.start, range.len())));
    }
    cx.secrets = found.secrets;
}

/// Adds all texts and numbers in the value of a secret variable.
pub(crate) fn add_value(secrets: &mut Secrets, name: &str, value: &Value) {
    match value {
        Value::Text(text) => secrets.learn(&format!("vars.{name}"), text),
        Value::Int(number) => secrets.learn(&format!("vars.{name}"), &number.to_string()),
        Value::UInt(number) => secrets.learn(&format!("vars.{name}"), &number.to_string()),
        Value::List(items) => items.iter().for_each(|item| add_value(secrets, name, item)),
        Value::Map(entries) => {
            for (key, value) in entries.iter() {
                add_value(secrets, &format!("{name}.{key}"), value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Float(_) | Value::Bytes(_) => {}
    }
}

/// The text of a scenario or an included file as it is recorded: with secrets masked, and a comment
/// at the top that says how to run it again.
pub fn masked_scenario(text: &str, secrets: &Secrets) -> String {
    let source = Source::new("", text);
    let Ok(Some(root)) = syntax::parse(&source, 0) else {
        return secrets.mask(text).into_owned();
    };
    let found = learned(&root, secrets.clone());
    let mut changes = Changes::default();
    changes.of_scalars(text, &found, false);
    let mut out = changes.made(text, &found, (&root, &*source));
    // If a part of a scalar cannot be masked alone, all of it is masked.
    if !matches!(syntax::parse(&Source::new("", out.as_str()), 0), Ok(Some(_))) {
        changes = Changes::default();
        changes.of_scalars(text, &found, true);
        out = changes.made(text, &found, (&root, &*source));
    }
    out
}

/// The replacements for secrets, by their start.
#[derive(Default)]
struct Changes(BTreeMap<usize, (Range<usize>, String)>);

impl Changes {
    /// `is_whole` masks each scalar that contains a secret completely.
    fn of_scalars(&mut self, text: &str, found: &FoundSecrets<'_>, is_whole: bool) {
        for (place, ..) in &found.whole {
            self.whole(text, *place);
        }
        let others = found.others.iter().map(|(place, ..)| (*place, true, false));
        let skipped = found.skipped.iter().map(|(place, _)| (*place, false, false));
        let made = found.made.iter().map(|(place, _)| (*place, true, true));
        for (place, is_sent, is_made) in others.chain(skipped).chain(made) {
            let written = text[place.start()..place.end()].trim_end();
            let mut ranges = match is_sent {
                true => found.secrets.ranges(written.as_bytes()),
                false => found.secrets.value_ranges(written.as_bytes()),
            };
            if is_made {
                ranges.extend(literals_in(written));
                ranges.sort_by_key(|range| range.start);
            }
            match ranges.is_empty() {
                true => {}
                false if is_whole => self.whole(text, place),
                false => self.parts(text, place.start()..place.start() + written.len(), &ranges),
            }
        }
    }

    fn whole(&mut self, text: &str, place: Place) {
        let written = text[place.start()..place.end()].trim_end();
        let mask = mask_written(written, &text[..place.start()]);
        self.0.insert(place.start(), (place.start()..place.start() + written.len(), mask));
    }

    /// Masks parts of a scalar. A plain scalar that would start with the mask is quoted, because
    /// `*` starts an alias.
    fn parts(&mut self, text: &str, place: Range<usize>, ranges: &[Range<usize>]) {
        let is_plain_start = ranges[0].start == 0 && !is_block(&text[..place.start]);
        if !is_plain_start {
            for range in ranges {
                let range = place.start + range.start..place.start + range.end;
                self.0.insert(range.start, (range, MASK.to_string()));
            }
            return;
        }
        let (mut quoted, mut at) = (String::from("'"), 0);
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            if range.start >= at {
                quoted += &text[place.start + at..place.start + range.start].replace('\'', "''");
                quoted += MASK;
                at = range.end;
            }
        }
        quoted += &text[place.start + at..place.end].replace('\'', "''");
        self.0.insert(place.start, (place, quoted + "'"));
    }

    /// The masked text, including its comments; names are kept.
    fn made(
        &mut self,
        text: &str,
        found: &FoundSecrets<'_>,
        (root, source): (&Node, &Source),
    ) -> String {
        let scalars: Vec<usize> = self.0.keys().copied().collect();
        let own = found.others.iter().map(|(place, ..)| *place);
        let own = own.chain(found.skipped.iter().chain(&found.made).map(|(place, _)| *place));
        let own = own.chain(found.keys.iter().map(|key| key.place));
        let own: BTreeMap<usize, usize> = own.map(|it| (it.start(), it.end())).collect();
        let is_own = |range: &Range<usize>| {
            let last = own.range(..range.end).next_back();
            last.is_some_and(|(_, end)| range.start < *end)
        };
        let words = found.secrets.word_ranges(text.as_bytes()).into_iter();
        let words = words.filter(|range| is_in_comment(&text[..range.start]));
        for range in found.secrets.value_ranges(text.as_bytes()).into_iter().chain(words) {
            let is_done = |(done, _): &(Range<usize>, String)| {
                range.start < done.end && done.start < range.end
            };
            if !is_own(&range) && !self.0.values().any(is_done) {
                self.0.insert(range.start, (range, MASK.to_string()));
            }
        }
        if self.0.is_empty() {
            return text.to_string();
        }
        let mut out = head(root, source, scalars.into_iter());
        let mut at = 0;
        for (range, mask) in self.0.values().filter(|(range, _)| !range.is_empty()) {
            if range.start < at {
                continue;
            }
            out += &text[at..range.start];
            out += mask;
            at = range.end;
        }
        out + &text[at..]
    }
}

/// What is masked in a recorded scenario.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Masked {
    /// Variables that can be given.
    pub names: Vec<String>,
    /// Lines with other secrets.
    pub lines: Vec<usize>,
}

pub fn masked_in(text: &str) -> Masked {
    let source = Source::new("", text);
    let Ok(Some(root)) = syntax::parse(&source, 0) else { return Masked::default() };
    let found = learned(&root, Secrets::default());
    let vars = variables(&root);
    let is_in = |node: &Node, place: &Place| {
        (node.place.start()..node.place.end()).contains(&place.start())
    };
    let parts = found.others.iter().map(|(place, text, _)| (*place, *text));
    let parts = parts.chain(found.skipped.iter().copied()).chain(found.made.iter().copied());
    let parts = parts.filter(|(_, text)| text.contains(MASK)).map(|(place, _)| place);
    let mut masked = Masked::default();
    for place in found.masked.iter().map(|(place, _)| *place).chain(parts) {
        match vars.clone().find(|(_, node)| is_in(node, &place)) {
            Some((key, _)) => masked.names.push(key.text.clone()),
            None => masked.lines.push(source.line_column(place.start()).0),
        }
    }
    masked
}

fn variables(root: &Node) -> impl Iterator<Item = &(Key, Node)> + Clone {
    let vars = root.entries().iter().filter(|(key, _)| key.text == "vars");
    vars.flat_map(|(_, node)| node.entries())
}

/// The comment at the top: which variables to set and which lines to complete.
fn head(root: &Node, source: &Source, changes: impl Iterator<Item = usize>) -> String {
    let vars = variables(root);
    let variable_of = |at: usize| {
        vars.clone().find(|(_, node)| (node.place.start()..node.place.end()).contains(&at))
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
    let mut out = format!("# Secrets are masked in this file: `{MASK}` replaces each of them.\n");
    if !names.is_empty() {
        let given: Vec<String> = names.iter().map(|name| format!("--set {name}=…")).collect();
        out += &format!("# To rerun it, set them: {}\n", given.join(" "));
    }
    if !lines.is_empty() {
        // The lines below move down by those of this comment.
        let above = 2 + usize::from(!names.is_empty());
        let lines: Vec<String> = lines.iter().map(|line| (line + above).to_string()).collect();
        let which = if lines.len() == 1 { "line" } else { "lines" };
        out += &format!("# To rerun it, write them into {which} {}\n", lines.join(", "));
    }
    out
}

/// True if a comment is open at the end of this text, assuming that it does not end in a scalar.
fn is_in_comment(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.starts_with('#') || line.contains(" #") || line.contains("\t#")
}

/// Masks a scalar in its written form, which stays a scalar. `before` is all text before it.
fn mask_written(written: &str, before: &str) -> String {
    if !is_block(before) {
        return format!("\"{MASK}\"");
    }
    // Lines of a block scalar keep their indentation.
    let lines = written.lines().map(|line| {
        let indent = &line[..line.len() - line.trim_start().len()];
        format!("{indent}{}", if line.trim().is_empty() { "" } else { MASK })
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// True if a block scalar starts after this text (YAML 1.2, 8.1).
fn is_block(before: &str) -> bool {
    let last = before.trim_end().lines().next_back().unwrap_or_default();
    let header = last.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+'));
    before.trim_end_matches(' ').ends_with('\n') && header.ends_with(['|', '>'])
}

#[cfg(test)]
mod tests;
