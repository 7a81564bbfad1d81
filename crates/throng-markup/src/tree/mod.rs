//! HTML and XML as a tree in one list: nodes are in document order, and the descendants of a node
//! are a range.
//!
//! Both are parsed leniently: malformed input is repaired as in browsers, or skipped. The parser is
//! our own, because it must take linear time and limited memory for whatever a server sends (see
//! `docs/decisions/dependencies.md`).

mod build;
mod entity;
mod tag;
mod token;

#[cfg(test)]
mod tests;

pub(crate) use build::build;

/// How many nodes and attributes a document may have.
pub(crate) const NODES_MAX: usize = 1 << 18;

/// Maximum nesting of elements; deeper ones become siblings, as in browsers.
pub(crate) const DEPTH_MAX: u16 = 512;

/// A node; [`ROOT`] is the document.
pub(crate) type NodeId = u32;

pub(crate) const ROOT: NodeId = 0;

/// A part of the tree's text.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Root,
    Element,
    Text,
    Comment,
    Instruction,
}

#[derive(Clone, Debug)]
struct Node {
    kind: NodeKind,
    /// The name of an element, the text of all others.
    text: Span,
    parent: NodeId,
    /// [`ROOT`] if there is none, as in the two below.
    next: NodeId,
    previous: NodeId,
    last_child: NodeId,
    /// The first node after its descendants.
    end: NodeId,
    /// The range of its attributes.
    attributes: (u32, u32),
}

#[derive(Clone, Debug)]
struct Attribute {
    name: Span,
    value: Span,
}

/// A parsed document.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    text: String,
    nodes: Vec<Node>,
    attributes: Vec<Attribute>,
    html: bool,
}

impl Tree {
    /// Whether it was parsed as HTML: names are in lower case then.
    pub(crate) fn is_html(&self) -> bool {
        self.html
    }

    /// One more than the last node.
    pub(crate) fn end(&self) -> NodeId {
        self.nodes.len() as NodeId
    }

    pub(crate) fn kind(&self, node: NodeId) -> NodeKind {
        self.node(node).kind
    }

    pub(crate) fn is_element(&self, node: NodeId) -> bool {
        self.kind(node) == NodeKind::Element
    }

    /// The name of an element as written, the text of all others.
    pub(crate) fn text(&self, node: NodeId) -> &str {
        self.part(self.node(node).text)
    }

    /// The target of a processing instruction, and what follows it (XPath 1.0, 5.5).
    pub(crate) fn instruction(&self, node: NodeId) -> (&str, &str) {
        let text = self.text(node);
        let (target, data) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        (target, data.trim_start())
    }

    pub(crate) fn parent(&self, node: NodeId) -> Option<NodeId> {
        (node != ROOT).then(|| self.node(node).parent)
    }

    pub(crate) fn next(&self, node: NodeId) -> Option<NodeId> {
        Some(self.node(node).next).filter(|next| *next != ROOT)
    }

    pub(crate) fn previous(&self, node: NodeId) -> Option<NodeId> {
        Some(self.node(node).previous).filter(|previous| *previous != ROOT)
    }

    /// All descendants of a node, in document order.
    pub(crate) fn inside(&self, node: NodeId) -> std::ops::Range<NodeId> {
        node + 1..self.node(node).end
    }

    pub(crate) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let first = Some(node + 1).filter(|first| *first < self.node(node).end);
        std::iter::successors(first, |child| self.next(*child))
    }

    /// The indexes of a node's attributes.
    pub(crate) fn attributes(&self, node: NodeId) -> std::ops::Range<u32> {
        let (start, end) = self.node(node).attributes;
        start..end
    }

    pub(crate) fn attribute_name(&self, attribute: u32) -> &str {
        self.part(self.attributes[attribute as usize].name)
    }

    pub(crate) fn attribute_value(&self, attribute: u32) -> &str {
        self.part(self.attributes[attribute as usize].value)
    }

    /// The value of the attribute with exactly this name.
    pub(crate) fn attribute(&self, node: NodeId, name: &str) -> Option<&str> {
        let found = self.attributes(node).find(|at| self.attribute_name(*at) == name)?;
        Some(self.attribute_value(found))
    }

    /// All texts inside an element, joined.
    pub(crate) fn inner_text(&self, node: NodeId) -> String {
        let texts = self.inside(node).filter(|inner| self.kind(*inner) == NodeKind::Text);
        texts.map(|inner| self.text(inner)).collect()
    }

    fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node as usize]
    }

    fn part(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }
}

/// A name without its prefix.
pub(crate) fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}
