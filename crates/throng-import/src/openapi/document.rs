//! The description as a tree, from JSON or YAML, and the resolution of its references (`$ref`).

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle};
use throng_base::{Diagnostic, Source, Span};

use crate::Refusal;
use crate::form::decoded;
use crate::json::Json;
use crate::text::Text;

/// Nodes of a description: a YAML alias counts with all nodes it expands to.
const NODES_MAX: usize = 2_000_000;
const DEPTH_MAX: usize = 100;
/// The maximum length of a chain of references.
const HOPS_MAX: usize = 50;

pub(super) struct Document {
    pub(super) root: Json,
}

const NOTHING: &Json = &Json::Null;

impl Document {
    /// A node after its reference is resolved; null if it is in another file or circular.
    pub(super) fn resolved<'d>(&'d self, node: &'d Json) -> &'d Json {
        let mut node = node;
        for _ in 0..HOPS_MAX {
            let Some(reference) = node.str("$ref") else { return node };
            node = self.find(reference).unwrap_or(NOTHING);
        }
        NOTHING
    }

    /// A JSON pointer in this file (RFC 6901).
    fn find(&self, reference: &str) -> Option<&Json> {
        let pointer = reference.strip_prefix("#/")?;
        pointer.split('/').take(DEPTH_MAX).try_fold(&self.root, |node, step| {
            let step = decoded(step, false).replace("~1", "/").replace("~0", "~");
            match node {
                Json::List(items) => items.get(step.parse::<usize>().ok()?),
                node => node.get(&step),
            }
        })
    }
}

pub(super) fn read(source: &Arc<Source>) -> Result<Document, Box<Diagnostic>> {
    let is_json = source.text.trim_start().starts_with('{');
    let root = match is_json {
        true => match Json::parse(&source.text) {
            Ok(root) => root,
            // The braces may be YAML, too.
            Err(error) => yaml(source)
                .map_err(|_| Refusal::of_json(&source.name, &error).of_format("openapi"))?,
        },
        false => yaml(source)?,
    };
    Ok(Document { root })
}

/// An incomplete map or list.
enum Open {
    List(Vec<Json>, usize),
    Map(Vec<(String, Json)>, Option<String>, usize),
}

struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Json>,
    root: Option<Json>,
    nodes: usize,
}

fn yaml(source: &Arc<Source>) -> Result<Json, Box<Diagnostic>> {
    let refuse = |reason, at: usize| {
        let span = Span { source: source.clone(), start: at, end: at };
        Refusal::new(&source.name, reason).at(span).of_format("openapi")
    };
    let mut builder = Builder { open: Vec::new(), anchors: HashMap::new(), root: None, nodes: 0 };
    let mut parser = Parser::new_from_str(&source.text);
    while let Some(next) = parser.next_event() {
        let (event, span) = match next {
            Ok(next) => next,
            Err(error) => {
                let at = byte_of(&source.text, error.marker().index());
                let info = error.info().to_string();
                return Err(refuse(say!("it is not valid YAML: {info}"), at));
            }
        };
        if let Err(reason) = builder.event(event) {
            return Err(refuse(reason, byte_of(&source.text, span.start.index())));
        }
        if builder.root.is_some() && builder.open.is_empty() {
            break;
        }
    }
    builder.root.ok_or_else(|| refuse(say!("it is empty"), 0))
}

/// The parser counts characters.
fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

impl Builder {
    fn event(&mut self, event: Event<'_>) -> Result<(), throng_base::Said> {
        match event {
            Event::SequenceStart(anchor, _) => self.begin(Open::List(Vec::new(), anchor))?,
            Event::MappingStart(anchor, _) => self.begin(Open::Map(Vec::new(), None, anchor))?,
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items, anchor)) => self.add(Json::List(items), anchor)?,
                Some(Open::Map(entries, _, anchor)) => self.add(Json::Map(entries), anchor)?,
                None => {}
            },
            Event::Scalar(text, style, anchor, _) => {
                self.add(scalar(&text, style == ScalarStyle::Plain), anchor)?;
            }
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned().unwrap_or_default();
                self.nodes += size(&node);
                self.add(node, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, open: Open) -> Result<(), throng_base::Said> {
        if self.open.len() >= DEPTH_MAX {
            return Err(say!("it is nested more than {DEPTH_MAX} levels deep"));
        }
        self.open.push(open);
        Ok(())
    }

    fn add(&mut self, node: Json, anchor: usize) -> Result<(), throng_base::Said> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(say!("it has more than {NODES_MAX} values"));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(items, _)) => items.push(node),
            Some(Open::Map(entries, key, _)) => match key.take() {
                None => *key = Some(node.as_str().unwrap_or_default().to_string()),
                // Merged keys (`<<`) do not override existing ones.
                Some(name) if name == "<<" => {
                    for (name, value) in node.entries() {
                        if !entries.iter().any(|(known, _)| known == name) {
                            entries.push((name.clone(), value.clone()));
                        }
                    }
                }
                Some(name) => entries.push((name, node)),
            },
        }
        Ok(())
    }
}

fn size(node: &Json) -> usize {
    match node {
        Json::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Json::Map(entries) => 1 + entries.iter().map(|(_, value)| size(value)).sum::<usize>(),
        _ => 1,
    }
}

/// A scalar of the core schema of YAML 1.2.
fn scalar(text: &str, is_plain: bool) -> Json {
    let is_number = || {
        let digits = text.strip_prefix('-').unwrap_or(text);
        digits.starts_with(|c: char| c.is_ascii_digit())
            && serde_json::from_str::<serde_json::Number>(text).is_ok()
    };
    match text {
        _ if !is_plain => Json::Text(Text::literal(text)),
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "true" | "True" | "TRUE" => Json::Bool(true),
        "false" | "False" | "FALSE" => Json::Bool(false),
        _ if is_number() => Json::Number(text.into()),
        _ => Json::Text(Text::literal(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_a_tree_with_anchors() {
        let text = "a: &x {b: [1, 'two', ~, yes]}\nc: *x\nd: {<<: *x, e: 2}\n200: ok\n";
        let document = read(&Source::new("a.yaml", text)).ok().unwrap();
        let want = r#"{"a":{"b":[1,"two",null,"yes"]},"c":{"b":[1,"two",null,"yes"]},"#.to_string()
            + r#""d":{"b":[1,"two",null,"yes"],"e":2},"200":"ok"}"#;
        assert_eq!(document.root.compact().to_string(), want);
    }

    #[test]
    fn exponential_aliases_are_refused() {
        let mut text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_string();
        for n in 1..9 {
            let list = vec![format!("*a{}", n - 1); 10].join(",");
            text.push_str(&format!("a{n}: &a{n} [{list}]\n"));
        }
        let error = read(&Source::new("a.yaml", text)).err().unwrap();
        assert!(error.message.english().contains("more than 2000000 values"));
    }

    #[test]
    fn references_are_resolved_and_cycles_end() {
        let text = "a: {$ref: '#/b~1c/0'}\nb/c: [{x: 1}]\nd: {$ref: '#/d'}\ne: {$ref: 'o.yaml#/a'}";
        let document = read(&Source::new("a.yaml", text)).ok().unwrap();
        let of = |key: &str| document.resolved(document.root.get(key).unwrap()).clone();
        assert_eq!(of("a").str("x"), Some("1"));
        assert_eq!(of("d"), Json::Null);
        assert_eq!(of("e"), Json::Null);
    }
}
