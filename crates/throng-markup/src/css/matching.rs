//! Whether an element matches a selector. Steps are counted; recursion is limited by the selector.

use std::collections::HashMap;

use super::parse::{AttributeTest, Combinator, Complex, Compound, Test};
use crate::fault::{Refusal, Work};
use crate::tree::{NodeId, NodeKind, ROOT, Tree, local};

/// Most elements and texts that one selector may visit: some tens of milliseconds.
const STEPS_MAX: u64 = 4_000_000;

/// The HTML attributes whose values are compared without regard to case (HTML, 4.16.2).
const IGNORING_CASE: [&str; 46] = [
    "accept",
    "accept-charset",
    "align",
    "alink",
    "axis",
    "bgcolor",
    "charset",
    "checked",
    "clear",
    "codetype",
    "color",
    "compact",
    "declare",
    "defer",
    "dir",
    "direction",
    "disabled",
    "enctype",
    "face",
    "frame",
    "hreflang",
    "http-equiv",
    "lang",
    "language",
    "link",
    "media",
    "method",
    "multiple",
    "nohref",
    "noresize",
    "noshade",
    "nowrap",
    "readonly",
    "rel",
    "rev",
    "rules",
    "scope",
    "scrolling",
    "selected",
    "shape",
    "target",
    "text",
    "type",
    "valign",
    "valuetype",
    "vlink",
];

pub(super) struct Search<'t> {
    tree: &'t Tree,
    work: Work,
    /// Positions among all siblings and among those of the same name, computed on demand.
    places: [Option<Vec<ElementPlace>>; 2],
}

/// The position of an element among its siblings, from 1.
#[derive(Clone, Copy, Default)]
struct ElementPlace {
    from_start: i32,
    from_end: i32,
}

impl<'t> Search<'t> {
    pub(super) fn new(tree: &'t Tree) -> Search<'t> {
        Search { tree, work: Work::new(STEPS_MAX), places: [None, None] }
    }

    pub(super) fn matches_any(
        &mut self,
        node: NodeId,
        selectors: &[Complex],
    ) -> Result<bool, Refusal> {
        for selector in selectors {
            if self.matches(node, &selector.parts)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn attribute(&self, node: NodeId, name: &str) -> Option<&'t str> {
        let tree = self.tree;
        let found = tree.attributes(node).find(|at| {
            let written = tree.attribute_name(*at);
            written == name || (tree.is_html() && written.eq_ignore_ascii_case(name))
        })?;
        Some(tree.attribute_value(found))
    }

    pub(super) fn text(&mut self, node: NodeId) -> Result<String, Refusal> {
        self.work.spend(self.tree.inside(node).len())?;
        let text = self.tree.inner_text(node);
        self.work.spend(text.len() / 16)?;
        Ok(text)
    }

    /// From right to left; `parts` ends with the compound of the element itself.
    fn matches(&mut self, node: NodeId, parts: &[(Combinator, Compound)]) -> Result<bool, Refusal> {
        let Some(((combinator, compound), before)) = parts.split_last() else { return Ok(true) };
        if !self.is(node, compound)? {
            return Ok(false);
        }
        if before.is_empty() {
            return Ok(true);
        }
        let mut other = node;
        loop {
            let next = match combinator {
                Combinator::Child | Combinator::Descendant => self.parent_element(other),
                Combinator::Next | Combinator::Later => self.previous_element(other)?,
            };
            let Some(next) = next else { return Ok(false) };
            if self.matches(next, before)? {
                return Ok(true);
            }
            if matches!(combinator, Combinator::Child | Combinator::Next) {
                return Ok(false);
            }
            other = next;
        }
    }

    fn parent_element(&self, node: NodeId) -> Option<NodeId> {
        self.tree.parent(node).filter(|parent| *parent != ROOT)
    }

    fn previous_element(&mut self, node: NodeId) -> Result<Option<NodeId>, Refusal> {
        let mut previous = self.tree.previous(node);
        while let Some(node) = previous
            && !self.tree.is_element(node)
        {
            self.work.spend(1)?;
            previous = self.tree.previous(node);
        }
        Ok(previous)
    }

    fn is(&mut self, node: NodeId, compound: &Compound) -> Result<bool, Refusal> {
        self.work.spend(1)?;
        if let Some(name) = &compound.name
            && !self.is_named(node, name)
        {
            return Ok(false);
        }
        for test in &compound.tests {
            if !self.passes(node, test)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_named(&self, node: NodeId, name: &str) -> bool {
        let written = self.tree.text(node);
        let same = |written: &str| {
            written == name || (self.tree.is_html() && written.eq_ignore_ascii_case(name))
        };
        same(written) || same(local(written))
    }

    fn passes(&mut self, node: NodeId, test: &Test) -> Result<bool, Refusal> {
        let tree = self.tree;
        Ok(match test {
            Test::Id(id) => self.attribute(node, "id") == Some(id),
            Test::Class(class) => self.attribute(node, "class").is_some_and(|classes| {
                classes.split_ascii_whitespace().any(|other| other == class)
            }),
            Test::Attribute { name, want, ignore_case } => {
                let Some(value) = self.attribute(node, name) else { return Ok(false) };
                self.work.spend(value.len() / 64)?;
                let is_loose =
                    || self.tree.is_html() && IGNORING_CASE.contains(&&*name.to_ascii_lowercase());
                match ignore_case.unwrap_or_else(is_loose) {
                    true => wanted(&value.to_ascii_lowercase(), want, str::to_ascii_lowercase),
                    false => wanted(value, want, str::to_string),
                }
            }
            Test::Nth { step, offset, from_end, of_type } => {
                let place = self.place(node, *of_type)?;
                let at = if *from_end { place.from_end } else { place.from_start };
                let away = at - offset;
                match step {
                    0 => away == 0,
                    step => away % step == 0 && away / step >= 0,
                }
            }
            Test::Only { of_type } => {
                let place = self.place(node, *of_type)?;
                place.from_start == 1 && place.from_end == 1
            }
            Test::Empty => tree.children(node).all(|child| tree.kind(child) == NodeKind::Comment),
            Test::Root => tree.parent(node) == Some(ROOT),
            Test::Checked => {
                let name = if tree.text(node) == "option" { "selected" } else { "checked" };
                self.attribute(node, name).is_some()
            }
            Test::Disabled => is_control(tree.text(node)) && self.is_disabled(node),
            Test::Enabled => is_control(tree.text(node)) && !self.is_disabled(node),
            Test::Contains(text) => self.text(node)?.contains(text.as_str()),
            Test::Not(list) => !self.matches_any(node, list)?,
            Test::Is(list) => self.matches_any(node, list)?,
            Test::Has(list) => {
                for selector in list {
                    if self.has(node, &selector.parts)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }

    fn is_disabled(&self, node: NodeId) -> bool {
        self.attribute(node, "disabled").is_some()
    }

    /// From left to right: whether an element relative to this one matches `parts`.
    fn has(&mut self, node: NodeId, parts: &[(Combinator, Compound)]) -> Result<bool, Refusal> {
        let Some(((combinator, compound), behind)) = parts.split_first() else { return Ok(true) };
        let tree = self.tree;
        let later = || std::iter::successors(tree.next(node), |next| tree.next(*next));
        let candidates: Box<dyn Iterator<Item = NodeId>> = match combinator {
            Combinator::Descendant => Box::new(tree.inside(node)),
            Combinator::Child => Box::new(tree.children(node)),
            Combinator::Later => Box::new(later()),
            Combinator::Next => Box::new(later().filter(|next| tree.is_element(*next)).take(1)),
        };
        for candidate in candidates {
            self.work.spend(1)?;
            if tree.is_element(candidate)
                && self.is(candidate, compound)?
                && self.has(candidate, behind)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn place(&mut self, node: NodeId, of_type: bool) -> Result<ElementPlace, Refusal> {
        let known = &mut self.places[usize::from(of_type)];
        if known.is_none() {
            self.work.spend(self.tree.end() as usize * 4)?;
            *known = Some(places(self.tree, of_type));
        }
        Ok(known.as_ref().map_or(ElementPlace::default(), |places| places[node as usize]))
    }
}

fn is_control(name: &str) -> bool {
    matches!(name, "button" | "fieldset" | "input" | "optgroup" | "option" | "select" | "textarea")
}

fn wanted(value: &str, want: &AttributeTest, fold: fn(&str) -> String) -> bool {
    match want {
        AttributeTest::Present => true,
        AttributeTest::Equals(text) => value == fold(text),
        AttributeTest::Word(text) => value.split_ascii_whitespace().any(|word| word == fold(text)),
        AttributeTest::Begins(text) => !text.is_empty() && value.starts_with(&fold(text)),
        AttributeTest::Ends(text) => !text.is_empty() && value.ends_with(&fold(text)),
        AttributeTest::Contains(text) => !text.is_empty() && value.contains(&fold(text)),
        AttributeTest::Dash(text) => value
            .strip_prefix(&fold(text))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
    }
}

/// The positions of all elements, in one pass over each list of siblings and back.
fn places(tree: &Tree, of_type: bool) -> Vec<ElementPlace> {
    let mut places = vec![ElementPlace::default(); tree.end() as usize];
    let mut siblings: Vec<NodeId> = Vec::new();
    let mut counts: HashMap<&str, i32> = HashMap::new();
    for parent in 0..tree.end() {
        siblings.clear();
        siblings.extend(tree.children(parent).filter(|child| tree.is_element(*child)));
        let name = |node: NodeId| if of_type { tree.text(node) } else { "" };
        counts.clear();
        for node in &siblings {
            let count = counts.entry(name(*node)).or_default();
            *count += 1;
            places[*node as usize].from_start = *count;
        }
        counts.clear();
        for node in siblings.iter().rev() {
            let count = counts.entry(name(*node)).or_default();
            *count += 1;
            places[*node as usize].from_end = *count;
        }
    }
    places
}
