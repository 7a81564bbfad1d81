//! YAML in a hand-written style: short maps and lists in braces on one line, long ones on separate
//! lines, comments before the entry they describe. No crate writes YAML with comments and chooses
//! between both styles.

use std::fmt::Write as _;

use throng_scenario::quote;

/// Braces are not used if the line would be longer.
const WIDTH: usize = 100;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// As written, including quotes.
    Scalar(String),
    Map(Vec<(String, Node)>),
    List(Vec<Node>),
    /// A map or a list that is never written in braces.
    Block(Box<Node>),
    /// With comments before it, each on one line.
    Commented(Vec<String>, Box<Node>),
}

impl Node {
    pub(crate) fn scalar(text: impl Into<String>) -> Node {
        Node::Scalar(text.into())
    }

    /// Quoted if it could be parsed as another type than a text.
    pub(crate) fn text(text: &str) -> Node {
        Node::Scalar(scalar(text))
    }

    pub(crate) fn one(key: &str, value: Node) -> Node {
        Node::Map(vec![(key.to_string(), value)])
    }

    pub(crate) fn block(node: Node) -> Node {
        Node::Block(Box::new(node))
    }

    fn is_empty(&self) -> bool {
        match self {
            Node::Map(entries) => entries.is_empty(),
            Node::List(items) => items.is_empty(),
            _ => false,
        }
    }

    /// In braces, unless it has comments or is a block.
    fn flow(&self, width: usize) -> Option<String> {
        let mut out = String::new();
        self.flow_into(&mut out, width).then_some(out)
    }

    fn flow_into(&self, out: &mut String, width: usize) -> bool {
        let is_short = |out: &String| out.len() <= width || out.chars().count() <= width;
        match self {
            Node::Scalar(text) => out.push_str(text),
            Node::Block(_) | Node::Commented(..) => return false,
            Node::Map(entries) => {
                out.push('{');
                for (number, (key, value)) in entries.iter().enumerate() {
                    let _ = write!(out, "{}{key}: ", if number > 0 { ", " } else { "" });
                    if !is_short(out) || !value.flow_into(out, width) {
                        return false;
                    }
                }
                out.push('}');
            }
            Node::List(items) => {
                out.push('[');
                for (number, item) in items.iter().enumerate() {
                    out.push_str(if number > 0 { ", " } else { "" });
                    if !is_short(out) || !item.flow_into(out, width) {
                        return false;
                    }
                }
                out.push(']');
            }
        }
        is_short(out)
    }
}

/// A text as a YAML scalar that is parsed as text, never as a number or a boolean.
pub(crate) fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphabetic() || c == '/' || c == '_';
    let is_other_type = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | ".inf" | ".nan"
    );
    match text.starts_with(is_word) && !is_other_type {
        true => quote::scalar(text),
        false => quote::quoted(text),
    }
}

/// The entries of a document, from the first column.
pub(crate) fn document(entries: &[(String, Node)]) -> String {
    let mut out = String::new();
    entries.iter().for_each(|(key, value)| entry(&mut out, key, value, 0));
    out
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn comments(out: &mut String, lines: &[String], indent: usize) {
    for line in lines {
        pad(out, indent);
        let clean: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(out, "# {}", clean.trim_end());
    }
}

/// `key: value`; the indentation is already written if `out` ends with a dash.
fn entry(out: &mut String, key: &str, value: &Node, indent: usize) {
    let value = match value {
        Node::Commented(lines, inner) => {
            comments(out, lines, indent);
            inner
        }
        other => other,
    };
    pad(out, indent);
    out.push_str(key);
    out.push(':');
    behind_key(out, key.chars().count(), value, indent);
}

fn behind_key(out: &mut String, key: usize, value: &Node, indent: usize) {
    let room = WIDTH.saturating_sub(indent + key + 2);
    match value {
        Node::Scalar(text) if text.is_empty() => out.push('\n'),
        Node::Scalar(text) => {
            let _ = writeln!(out, " {text}");
        }
        Node::Block(inner) if !inner.is_empty() => below(out, inner, indent + 2),
        Node::Commented(_, inner) | Node::Block(inner) => behind_key(out, key, inner, indent),
        other => match other.flow(room) {
            Some(flow) => {
                let _ = writeln!(out, " {flow}");
            }
            None => below(out, other, indent + 2),
        },
    }
}

/// On separate lines.
fn below(out: &mut String, node: &Node, indent: usize) {
    out.push('\n');
    match node {
        Node::Map(entries) => {
            entries.iter().for_each(|(key, value)| entry(out, key, value, indent));
        }
        Node::List(items) => items.iter().for_each(|one| item(out, one, indent)),
        Node::Scalar(text) => {
            pad(out, indent);
            let _ = writeln!(out, "{text}");
        }
        Node::Block(inner) | Node::Commented(_, inner) => below(out, inner, indent),
    }
}

fn item(out: &mut String, node: &Node, indent: usize) {
    let (node, is_block) = match node {
        Node::Commented(lines, inner) => {
            comments(out, lines, indent);
            return item(out, inner, indent);
        }
        Node::Block(inner) => (&**inner, true),
        other => (other, false),
    };
    let flow = match is_block {
        true => None,
        false => node.flow(WIDTH.saturating_sub(indent + 2)),
    };
    match (node, flow) {
        // A remark without a step: only its comments are written.
        (Node::Scalar(text), _) if text.is_empty() => {}
        (_, Some(flow)) => {
            pad(out, indent);
            let _ = writeln!(out, "- {flow}");
        }
        _ if node.is_empty() => {
            pad(out, indent);
            out.push_str(if matches!(node, Node::List(_)) { "- []\n" } else { "- {}\n" });
        }
        _ => {
            // The first line continues after the dash.
            let start = out.len();
            let mut inner = String::new();
            below(&mut inner, node, indent + 2);
            pad(out, indent);
            out.push_str("- ");
            out.push_str(inner.trim_start_matches(['\n', ' ']));
            debug_assert!(out.len() > start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, Node)]) -> Node {
        Node::Map(entries.iter().map(|(key, value)| (key.to_string(), value.clone())).collect())
    }

    #[test]
    fn short_values_are_inline_and_long_ones_below() {
        let long = Node::scalar("x".repeat(60));
        let step = Node::block(map(&[
            ("http", Node::scalar("GET /")),
            ("check", map(&[("status", Node::scalar("200"))])),
            ("json", map(&[("a", long.clone()), ("b", long)])),
        ]));
        let remark = Node::Commented(vec!["why\nnot".into()], Box::new(Node::scalar("")));
        let steps =
            Node::block(Node::List(vec![step, remark, map(&[("think", Node::scalar("1s"))])]));
        let x = "x".repeat(60);
        let want = format!(
            "steps:\n  - http: GET /\n    check: {{status: 200}}\n    json:\n      a: {x}\n      \
             b: {x}\n  # why not\n  - {{think: 1s}}\n"
        );
        assert_eq!(document(&[("steps".into(), steps)]), want);
    }
}
