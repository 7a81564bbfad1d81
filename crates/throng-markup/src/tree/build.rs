//! Builds a tree from tags and texts, and repairs it as the HTML standard does (13.2.6), in short:
//! omitted end tags, implied `html`, `head`, `body` and `tbody`, overlapping elements. Elements
//! that browsers move out of tables stay in place. `tests/html5lib.rs` lists the cases in which a
//! tree differs from theirs, and why.

use std::borrow::Cow;

use super::entity::decode;
use super::tag::Tag;
use super::token::{Token, Tokens};
use super::{Attribute, DEPTH_MAX, NODES_MAX, Node, NodeId, NodeKind, ROOT, Span, Tree};
use crate::fault::Refusal;

/// How far up an end tag searches for its start, so that no page takes quadratic time.
const LOOK_UP_MAX: usize = 256;

/// Parses a document; its start shows whether it is HTML or XML.
pub(crate) fn build(text: &str) -> Result<Tree, Refusal> {
    read(text, looks_like_html(text))
}

pub(super) fn read(text: &str, html: bool) -> Result<Tree, Refusal> {
    let text = &with_line_feeds(text);
    let mut builder = Builder::new(text, html);
    let mut tokens = Tokens::new(text, html);
    while let Some(token) = tokens.next() {
        builder.take(token, &mut tokens);
        tokens.has_sections = !html || builder.count(Tag::Svg) + builder.count(Tag::Math) > 0;
        if builder.tree.nodes.len() + builder.tree.attributes.len() > NODES_MAX {
            return Err(Refusal::TooManyNodes);
        }
    }
    Ok(builder.finish())
}

/// A document is XML if its start says so, or if it starts with an element that HTML does not have.
fn looks_like_html(text: &str) -> bool {
    let text = text.trim_start();
    let mut says_xml = false;
    let mut tokens = Tokens::new(text, false);
    while let Some(token) = tokens.next() {
        match token {
            Token::Instruction(name) => says_xml |= name.starts_with("xml"),
            Token::Doctype(name) => return name.eq_ignore_ascii_case("html"),
            Token::Start { name, .. } => {
                let tag = Tag::of(&name.to_ascii_lowercase());
                let other = matches!(tag, Tag::Other | Tag::Svg | Tag::Math);
                return tag == Tag::Html || !(says_xml || other);
            }
            Token::Text(text) if text.trim().is_empty() => {}
            Token::Comment(_) => {}
            Token::Text(_) | Token::Plain(_) | Token::End(_) => return true,
        }
    }
    true
}

/// An element that is still open.
#[derive(Clone, Copy)]
struct Open {
    tag: Tag,
    name: Span,
    /// The parent of its children: itself, or the deepest element that may have children.
    node: NodeId,
    depth: u16,
}

struct Builder {
    tree: Tree,
    open: Vec<Open>,
    /// How many of each are open, to see quickly whether a search is needed.
    counts: [u32; Tag::COUNT],
    has_body: bool,
    /// The next text loses a leading line feed.
    skip_line: bool,
    /// The name of the current tag in lower case.
    lower: String,
}

impl Builder {
    fn new(text: &str, html: bool) -> Builder {
        let root = Node {
            kind: NodeKind::Root,
            text: Span::default(),
            parent: ROOT,
            next: ROOT,
            previous: ROOT,
            last_child: ROOT,
            end: 1,
            attributes: (0, 0),
        };
        let tree = Tree {
            text: String::with_capacity(text.len() + 32),
            nodes: vec![root],
            attributes: Vec::new(),
            html,
        };
        let counts = [0; Tag::COUNT];
        let lower = String::new();
        Builder { tree, open: Vec::new(), counts, has_body: false, skip_line: false, lower }
    }

    /// Nodes are in document order, so the end of an element is that of its last descendant.
    fn finish(mut self) -> Tree {
        if self.tree.html && !self.has_body && self.tree.nodes.len() > 1 {
            self.begin_body();
        }
        for node in (1..self.tree.nodes.len()).rev() {
            let Node { end, parent, .. } = self.tree.nodes[node];
            let parent = &mut self.tree.nodes[parent as usize];
            parent.end = parent.end.max(end);
        }
        self.tree
    }

    fn take(&mut self, token: Token<'_>, tokens: &mut Tokens<'_>) {
        match token {
            Token::Start { name, closed } if self.tree.html => {
                let mut lower = std::mem::take(&mut self.lower);
                lower.clear();
                lower.push_str(name);
                lower.make_ascii_lowercase();
                self.start(&lower, closed, tokens);
                self.lower = lower;
            }
            Token::Start { name, closed } => {
                self.insert(Tag::Other, name, !closed, &tokens.attributes);
            }
            Token::End(name) if self.tree.html => {
                let lower = name.to_ascii_lowercase();
                self.end(&lower);
            }
            Token::End(name) => {
                let at = self.find_name(name, |_| false);
                self.close_found(at);
            }
            Token::Text(text) => self.text(text, true),
            Token::Plain(text) => self.text(text, false),
            Token::Comment(text) => drop(self.add(NodeKind::Comment, text)),
            Token::Instruction(text) if !self.tree.html => {
                let text = text.strip_suffix('?').unwrap_or(text);
                if text.split(char::is_whitespace).next() != Some("xml") {
                    self.add(NodeKind::Instruction, text);
                }
            }
            Token::Instruction(_) | Token::Doctype(_) => {}
        }
    }

    fn text(&mut self, text: &str, decoded: bool) {
        let skip = std::mem::take(&mut self.skip_line);
        let text = if skip { without_line(text) } else { text };
        let blank = text.trim_matches(|c: char| c.is_ascii_whitespace()).is_empty();
        if self.tree.html && !self.has_body && self.count(Tag::Template) == 0 {
            if blank && self.top_tag() != Some(Tag::Head) {
                return;
            }
            if !blank {
                self.begin_body();
            }
        }
        if text.is_empty() || (blank && self.open.is_empty()) {
            return;
        }
        self.add_text(text, decoded);
    }

    fn add_text(&mut self, text: &str, decoded: bool) {
        let parent = self.place().0;
        let last = self.tree.nodes[parent as usize].last_child;
        let end = self.tree.text.len() as u32;
        let joins = last != ROOT && {
            let node = &self.tree.nodes[last as usize];
            node.kind == NodeKind::Text && node.text.end == end
        };
        let node = if joins { last } else { self.add(NodeKind::Text, "") };
        match decoded {
            true => decode(text, false, &mut self.tree.text),
            false => self.tree.text.push_str(text),
        }
        self.tree.nodes[node as usize].text.end = self.tree.text.len() as u32;
    }

    fn start(&mut self, name: &str, closed: bool, tokens: &mut Tokens<'_>) {
        self.skip_line = false;
        let tag = Tag::of(name);
        if self.in_foreign(tag) {
            self.insert(tag, name, !closed && !tag.is_void(), &tokens.attributes);
            return;
        }
        if !self.prepare(tag, &tokens.attributes) {
            return;
        }
        if !self.mend(tag) {
            return;
        }
        let open = !(tag.is_void() || tag.is_raw() || (closed && tag.is_foreign()));
        let node = self.insert(tag, name, open, &tokens.attributes);
        self.skip_line = matches!(tag, Tag::Pre | Tag::Listing);
        if tag.is_raw() {
            self.raw(tag, node, tokens);
        }
    }

    /// Whether the element is inside SVG or MathML. Block elements end those that were left open.
    fn in_foreign(&mut self, tag: Tag) -> bool {
        let found = self.find(Tag::Svg, |_| false).max(self.find(Tag::Math, |_| false));
        let Some(at) = found else { return false };
        let inner = self.find_name("foreignobject", Tag::is_foreign).is_some();
        if !inner && (tag.ends_paragraph() || tag == Tag::Body) {
            self.close(at);
            return false;
        }
        !inner
    }

    /// The content of an element that is only text.
    fn raw(&mut self, tag: Tag, node: NodeId, tokens: &mut Tokens<'_>) {
        let name = if tag == Tag::Plaintext { "\0" } else { tag.name() };
        let text = tokens.raw(name);
        let text = if tag == Tag::Textarea { without_line(text) } else { text };
        if text.is_empty() {
            return;
        }
        let depth = self.place().1;
        self.open.push(Open { tag: Tag::Other, name: Span::default(), node, depth });
        self.add_text(text, matches!(tag, Tag::Textarea | Tag::Title));
        self.open.pop();
    }

    /// Opens implied `html`, `head` and `body` elements. Returns whether to add the element.
    fn prepare(&mut self, tag: Tag, attributes: &[(&str, &str)]) -> bool {
        match tag {
            Tag::Html | Tag::Head | Tag::Body if self.has_body => false,
            Tag::Html => {
                if self.open.is_empty() {
                    self.insert(Tag::Html, "html", true, attributes);
                }
                false
            }
            Tag::Head => {
                self.begin_html();
                if self.top_tag() == Some(Tag::Html) {
                    self.insert(Tag::Head, "head", true, attributes);
                }
                false
            }
            Tag::Body | Tag::Frameset => {
                self.begin_head();
                self.close(1);
                self.insert(tag, tag.name(), true, attributes);
                self.has_body = true;
                false
            }
            _ if self.has_body || self.count(Tag::Template) > 0 => true,
            _ if tag.is_of_head() => {
                self.begin_head();
                true
            }
            _ => {
                self.begin_body();
                true
            }
        }
    }

    fn begin_html(&mut self) {
        if self.open.is_empty() {
            self.insert(Tag::Html, "html", true, &[]);
        }
    }

    fn begin_head(&mut self) {
        self.begin_html();
        if self.open.len() == 1 {
            self.insert(Tag::Head, "head", true, &[]);
        }
    }

    fn begin_body(&mut self) {
        self.begin_head();
        self.close(1);
        self.insert(Tag::Body, "body", true, &[]);
        self.has_body = true;
    }

    /// Closes the elements that end where this one starts. Returns whether to add the element.
    fn mend(&mut self, tag: Tag) -> bool {
        if tag.ends_paragraph() {
            let at = self.find(Tag::P, |tag| tag.bounds_scope() || tag == Tag::Button);
            self.close_found(at);
        }
        let bounds_list =
            |tag: Tag| tag.is_special() && !matches!(tag, Tag::Address | Tag::Div | Tag::P);
        let in_scope = Tag::bounds_scope;
        let closed = match tag {
            Tag::Li => self.find(Tag::Li, bounds_list),
            Tag::Dd | Tag::Dt => {
                let dd = self.find(Tag::Dd, bounds_list);
                dd.max(self.find(Tag::Dt, bounds_list))
            }
            Tag::Button | Tag::A => self.find(tag, in_scope),
            Tag::Option | Tag::Optgroup => self.top_like(tag),
            Tag::Rb | Tag::Rtc | Tag::Rt | Tag::Rp => self.unended(tag),
            _ if tag.is_heading() => self.top_like(tag),
            _ => None,
        };
        self.close_found(closed);
        match tag {
            Tag::Optgroup => self.close_found(self.top_like(tag)),
            Tag::Form => return self.count(Tag::Form) == 0 || self.count(Tag::Template) > 0,
            Tag::Select => {
                if let Some(at) = self.find(Tag::Select, in_scope) {
                    self.close(at);
                    return false;
                }
            }
            _ => self.mend_table(tag),
        }
        true
    }

    /// The index of the innermost element, if `tag` cannot be nested in it.
    fn top_like(&self, tag: Tag) -> Option<usize> {
        let top = self.top_tag()?;
        let closes = match tag {
            Tag::Option => top == Tag::Option,
            Tag::Optgroup => matches!(top, Tag::Option | Tag::Optgroup),
            _ => top.is_heading(),
        };
        closes.then(|| self.open.len() - 1)
    }

    /// The index of the elements that end where a part of a `ruby` starts. `rt` and `rp` may be
    /// nested in `rtc`.
    fn unended(&self, tag: Tag) -> Option<usize> {
        self.find(Tag::Ruby, Tag::bounds_scope)?;
        let ends = |open: &Open| match open.tag {
            Tag::Rtc => !matches!(tag, Tag::Rt | Tag::Rp),
            Tag::P | Tag::Li | Tag::Dd | Tag::Dt | Tag::Option | Tag::Optgroup => true,
            other => matches!(other, Tag::Rb | Tag::Rp | Tag::Rt),
        };
        let count = self.open.iter().rev().take_while(|open| ends(open)).count();
        Some(self.open.len() - count)
    }

    fn mend_table(&mut self, tag: Tag) {
        let is_row = |tag: Tag| tag == Tag::Tr;
        if !matches!(tag, Tag::Tr | Tag::Td | Tag::Th | Tag::Caption | Tag::Col | Tag::Colgroup)
            && !tag.is_table_part()
        {
            return;
        }
        if self.find(Tag::Table, |tag| tag == Tag::Template).is_none() {
            // A part of a table on its own, as pages load them: it only ends its own kind.
            let at = match tag {
                Tag::Td | Tag::Th => self.find(Tag::Td, is_row).max(self.find(Tag::Th, is_row)),
                _ => self.find(tag, Tag::bounds_scope),
            };
            return self.close_found(at);
        }
        match tag {
            Tag::Td | Tag::Th => {
                self.clear_to(|tag| is_row(tag) || tag.is_table_part());
                self.imply(Tag::Table, Tag::Tbody);
                if self.top_tag().is_some_and(Tag::is_table_part) {
                    self.insert(Tag::Tr, "tr", true, &[]);
                }
            }
            Tag::Tr => {
                self.clear_to(Tag::is_table_part);
                self.imply(Tag::Table, Tag::Tbody);
            }
            Tag::Col => {
                self.clear_to(|tag| tag == Tag::Colgroup);
                self.imply(Tag::Table, Tag::Colgroup);
            }
            _ => self.clear_to(|_| false),
        }
    }

    fn imply(&mut self, inside: Tag, missing: Tag) {
        if self.top_tag() == Some(inside) {
            self.insert(missing, missing.name(), true, &[]);
        }
    }

    /// Closes everything up to a table, or to the wanted element inside it.
    fn clear_to(&mut self, wanted: impl Fn(Tag) -> bool) {
        let bound = |tag| wanted(tag) || matches!(tag, Tag::Table | Tag::Template | Tag::Html);
        let kept = self.open.iter().rposition(|open| bound(open.tag));
        self.close(kept.map_or(0, |at| at + 1));
    }

    fn end(&mut self, name: &str) {
        self.skip_line = false;
        let tag = Tag::of(name);
        let in_scope = Tag::bounds_scope;
        let at = match tag {
            Tag::Html | Tag::Head | Tag::Body => None,
            Tag::P => {
                let found = self.find(Tag::P, |tag| in_scope(tag) || tag == Tag::Button);
                found.or_else(|| self.start_unwritten(Tag::P))
            }
            Tag::Br => {
                self.start_unwritten(Tag::Br);
                None
            }
            Tag::Li => self.find(Tag::Li, |tag| in_scope(tag) || matches!(tag, Tag::Ol | Tag::Ul)),
            Tag::Form => {
                if let Some(at) = self.find(Tag::Form, |tag| tag == Tag::Template) {
                    self.remove(at);
                }
                None
            }
            Tag::Table
            | Tag::Caption
            | Tag::Td
            | Tag::Th
            | Tag::Tr
            | Tag::Tbody
            | Tag::Tfoot
            | Tag::Thead => self.find(tag, |tag| matches!(tag, Tag::Table | Tag::Template)),
            _ if tag.is_heading() => {
                let levels = [Tag::H1, Tag::H2, Tag::H3, Tag::H4, Tag::H5, Tag::H6];
                levels.into_iter().filter_map(|level| self.find(level, in_scope)).max()
            }
            _ if tag.is_formatting() => {
                if let Some(at) = self.find(tag, in_scope) {
                    self.remove(at);
                }
                None
            }
            _ if tag.is_block() || tag.bounds_scope() || tag == Tag::Button => {
                self.find(tag, in_scope)
            }
            Tag::Other => self.find_name(name, Tag::is_special),
            _ => self.find(tag, Tag::is_special),
        };
        self.close_found(at);
    }

    /// An end tag that counts as a whole element, in a body; returns the index of what it opened.
    fn start_unwritten(&mut self, tag: Tag) -> Option<usize> {
        if !self.has_body && (tag == Tag::P || self.count(Tag::Template) > 0) {
            return None;
        }
        if !self.has_body {
            self.begin_body();
        }
        self.mend(tag);
        self.insert(tag, tag.name(), tag == Tag::P, &[]);
        (tag == Tag::P).then(|| self.open.len() - 1)
    }

    /// The index of the innermost open element of a kind; the search stops at elements that match
    /// `bounds`.
    fn find(&self, wanted: Tag, bounds: impl Fn(Tag) -> bool) -> Option<usize> {
        self.search(wanted, |open| open.tag == wanted, bounds)
    }

    fn find_name(&self, name: &str, bounds: impl Fn(Tag) -> bool) -> Option<usize> {
        let is_it = |open: &Open| open.tag == Tag::Other && self.tree.part(open.name) == name;
        self.search(Tag::Other, is_it, bounds)
    }

    fn search(
        &self,
        wanted: Tag,
        is_it: impl Fn(&Open) -> bool,
        bounds: impl Fn(Tag) -> bool,
    ) -> Option<usize> {
        if self.count(wanted) == 0 {
            return None;
        }
        let inner = self.open.iter().enumerate().rev().take(LOOK_UP_MAX);
        let mut ends = inner.filter(|(_, open)| is_it(open) || bounds(open.tag));
        ends.next().filter(|(_, open)| is_it(open)).map(|(at, _)| at)
    }

    fn count(&self, tag: Tag) -> u32 {
        self.counts[tag as usize]
    }

    fn top_tag(&self) -> Option<Tag> {
        self.open.last().map(|open| open.tag)
    }

    /// Closes the element at this index and everything inside it.
    fn close(&mut self, at: usize) {
        for open in self.open.drain(at.min(self.open.len())..) {
            self.counts[open.tag as usize] -= 1;
        }
    }

    fn close_found(&mut self, at: Option<usize>) {
        at.into_iter().for_each(|at| self.close(at));
    }

    /// Closes only the element at this index.
    fn remove(&mut self, at: usize) {
        let open = self.open.remove(at);
        self.counts[open.tag as usize] -= 1;
    }

    /// The parent of the next node, and its depth.
    fn place(&self) -> (NodeId, u16) {
        self.open.last().map_or((ROOT, 0), |open| (open.node, open.depth))
    }

    fn insert(&mut self, tag: Tag, name: &str, open: bool, given: &[(&str, &str)]) -> NodeId {
        let (parent, depth) = self.place();
        let node = self.add(NodeKind::Element, name);
        let start = self.tree.attributes.len() as u32;
        for (name, value) in given {
            let name = self.tree.push(name, self.tree.html);
            let from = self.tree.text.len() as u32;
            decode(value, true, &mut self.tree.text);
            let value = Span { start: from, end: self.tree.text.len() as u32 };
            self.tree.attributes.push(Attribute { name, value });
        }
        let end = self.tree.attributes.len() as u32;
        let added = &mut self.tree.nodes[node as usize];
        added.attributes = (start, end);
        let name = added.text;
        if open {
            let (node, depth) = if depth < DEPTH_MAX { (node, depth + 1) } else { (parent, depth) };
            self.open.push(Open { tag, name, node, depth });
            self.counts[tag as usize] += 1;
        }
        node
    }

    fn add(&mut self, kind: NodeKind, text: &str) -> NodeId {
        let parent = self.place().0;
        let node = self.tree.nodes.len() as NodeId;
        let text = self.tree.push(text, false);
        let above = &mut self.tree.nodes[parent as usize];
        let previous = std::mem::replace(&mut above.last_child, node);
        if previous != ROOT {
            self.tree.nodes[previous as usize].next = node;
        }
        self.tree.nodes.push(Node {
            kind,
            text,
            parent,
            next: ROOT,
            previous,
            last_child: ROOT,
            end: node + 1,
            attributes: (0, 0),
        });
        node
    }
}

impl Tree {
    fn push(&mut self, text: &str, lower: bool) -> Span {
        let start = self.text.len();
        self.text.push_str(text);
        if lower {
            self.text[start..].make_ascii_lowercase();
        }
        Span { start: start as u32, end: self.text.len() as u32 }
    }
}

fn without_line(text: &str) -> &str {
    text.strip_prefix('\n').unwrap_or(text)
}

/// Normalizes line ends to line feeds (13.2.3.5; XML 1.0, 2.11).
fn with_line_feeds(text: &str) -> Cow<'_, str> {
    match text.contains('\r') {
        true => text.replace("\r\n", "\n").replace('\r', "\n").into(),
        false => text.into(),
    }
}
