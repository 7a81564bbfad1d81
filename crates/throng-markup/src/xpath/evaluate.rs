//! Evaluates XPath expressions. Steps are counted; recursion is limited by the expression, never by
//! the document.

mod call;

use std::collections::HashSet;

use super::parse::{Axis, Expr, From, Operator, Step, Test};
use crate::fault::{Refusal, Work};
use crate::tree::{NodeId, NodeKind, ROOT, Tree, local};

/// Most nodes that one expression may visit: some tens of milliseconds.
const STEPS_MAX: u64 = 4_000_000;

/// A node or an attribute; the order is document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    node: NodeId,
    /// One more than the attribute's index; 0 is the node itself.
    attribute: u32,
}

impl Item {
    pub(super) fn of(node: NodeId) -> Item {
        Item { node, attribute: 0 }
    }

    pub(super) fn node(self) -> NodeId {
        self.node
    }

    pub(super) fn attribute(self) -> Option<u32> {
        self.attribute.checked_sub(1)
    }

    /// The string-value (XPath 1.0, 5).
    pub(super) fn text(self, tree: &Tree) -> String {
        match (self.attribute(), tree.kind(self.node)) {
            (Some(attribute), _) => tree.attribute_value(attribute).to_string(),
            (None, NodeKind::Element | NodeKind::Root) => tree.inner_text(self.node),
            (None, NodeKind::Text | NodeKind::Comment) => tree.text(self.node).to_string(),
            (None, NodeKind::Instruction) => tree.instruction(self.node).1.to_string(),
        }
    }

    /// The name as written, empty if it has none.
    pub(super) fn name(self, tree: &Tree) -> &str {
        match (self.attribute(), tree.kind(self.node)) {
            (Some(attribute), _) => tree.attribute_name(attribute),
            (None, NodeKind::Element) => tree.text(self.node),
            (None, NodeKind::Instruction) => tree.instruction(self.node).0,
            _ => "",
        }
    }
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// In document order, each once.
    Nodes(Vec<Item>),
    Text(String),
    Number(f64),
    Bool(bool),
}

/// The evaluation context (XPath 1.0, 1).
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) item: Item,
    pub(super) position: usize,
    pub(super) size: usize,
}

pub(super) fn find(expr: &Expr, tree: &Tree) -> Result<Found, Refusal> {
    let mut search = Search { tree, work: Work::new(STEPS_MAX) };
    search.expr(expr, Context { item: Item::of(ROOT), position: 1, size: 1 })
}

pub(super) struct Search<'t> {
    pub(super) tree: &'t Tree,
    pub(super) work: Work,
}

impl Search<'_> {
    pub(super) fn expr(&mut self, expr: &Expr, context: Context) -> Result<Found, Refusal> {
        self.work.spend(1)?;
        Ok(match expr {
            Expr::Binary(left, operator, right) => self.binary(left, *operator, right, context)?,
            Expr::Negate(inner) => {
                let value = self.expr(inner, context)?;
                Found::Number(-self.number(&value)?)
            }
            Expr::Union(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(self.nodes(part, context)?);
                }
                Found::Nodes(in_order(all))
            }
            Expr::Literal(text) => Found::Text(text.clone()),
            Expr::Number(number) => Found::Number(*number),
            Expr::Call(function, arguments) => call::call(self, *function, arguments, context)?,
            Expr::Path { from, steps } => {
                let mut items = match from {
                    From::Root => vec![Item::of(ROOT)],
                    From::Context => vec![context.item],
                    From::Expr(expr, predicates) => {
                        let mut items = self.nodes(expr, context)?;
                        for predicate in predicates {
                            items = self.filter(items, predicate)?;
                        }
                        items
                    }
                };
                for step in steps {
                    items = self.step(&items, step)?;
                }
                Found::Nodes(items)
            }
        })
    }

    /// The nodes of an expression; a value that is not a node set is an empty one.
    pub(super) fn nodes(&mut self, expr: &Expr, context: Context) -> Result<Vec<Item>, Refusal> {
        match self.expr(expr, context)? {
            Found::Nodes(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    fn step(&mut self, items: &[Item], step: &Step) -> Result<Vec<Item>, Refusal> {
        let mut all = Vec::new();
        let downward = matches!(step.axis, Axis::Descendant | Axis::DescendantOrSelf);
        // The descendants of a visited node have been found already.
        let mut covered = 0;
        for item in items {
            let inside = downward && step.predicates.is_empty() && item.attribute == 0;
            if inside {
                if item.node < covered {
                    continue;
                }
                covered = self.tree.inside(item.node).end;
            }
            let mut found = Vec::new();
            self.axis(*item, step, &mut found)?;
            for predicate in &step.predicates {
                found = self.filter(found, predicate)?;
            }
            all.extend(found);
        }
        // A step from one node has only one direction.
        if all.is_sorted_by(|one, other| one < other) { Ok(all) } else { Ok(in_order(all)) }
    }

    /// The nodes of a step from one node, in the direction of its axis.
    fn axis(&mut self, item: Item, step: &Step, out: &mut Vec<Item>) -> Result<(), Refusal> {
        let tree = self.tree;
        let node = item.node;
        if let Some(_attribute) = item.attribute() {
            return self.axis_of_attribute(item, step, out);
        }
        let up = |node: NodeId| std::iter::successors(tree.parent(node), |node| tree.parent(*node));
        match step.axis {
            Axis::Itself => self.put(std::iter::once(node), step, out),
            Axis::Child => self.put(tree.children(node), step, out),
            Axis::Parent => self.put(tree.parent(node).into_iter(), step, out),
            Axis::Ancestor => self.put(up(node), step, out),
            Axis::AncestorOrSelf => self.put(std::iter::once(node).chain(up(node)), step, out),
            Axis::Descendant => self.put(tree.inside(node), step, out),
            Axis::DescendantOrSelf => {
                self.put(std::iter::once(node).chain(tree.inside(node)), step, out)
            }
            Axis::Following => self.put(tree.inside(node).end..tree.end(), step, out),
            Axis::Preceding => {
                self.work.spend(node as usize)?;
                let before = (1..node).rev().filter(|other| tree.inside(*other).end <= node);
                self.put(before, step, out)
            }
            Axis::FollowingSibling => {
                let next = std::iter::successors(tree.next(node), |node| tree.next(*node));
                self.put(next, step, out)
            }
            Axis::PrecedingSibling => {
                let previous = |node: &NodeId| tree.previous(*node);
                self.put(std::iter::successors(tree.previous(node), previous), step, out)
            }
            Axis::Attribute => {
                for attribute in tree.attributes(node) {
                    self.work.spend(1)?;
                    let name = tree.attribute_name(attribute);
                    let is_declaration = name == "xmlns" || name.starts_with("xmlns:");
                    if !is_declaration && self.passes_attribute(name, &step.test) {
                        out.push(Item { node, attribute: attribute + 1 });
                    }
                }
                Ok(())
            }
        }
    }

    fn axis_of_attribute(
        &mut self,
        item: Item,
        step: &Step,
        out: &mut Vec<Item>,
    ) -> Result<(), Refusal> {
        let owner = |axis| Step { axis, test: step.test.clone(), predicates: Vec::new() };
        let of_self =
            matches!(step.axis, Axis::Itself | Axis::AncestorOrSelf | Axis::DescendantOrSelf);
        if of_self && matches!(step.test, Test::Node) {
            out.push(item);
        }
        match step.axis {
            Axis::Parent => self.axis(Item::of(item.node), &owner(Axis::Itself), out),
            Axis::Ancestor | Axis::AncestorOrSelf => {
                self.axis(Item::of(item.node), &owner(Axis::AncestorOrSelf), out)
            }
            Axis::Following => {
                self.axis(Item::of(item.node), &owner(Axis::Descendant), out)?;
                self.axis(Item::of(item.node), &owner(Axis::Following), out)
            }
            Axis::Preceding => self.axis(Item::of(item.node), &owner(Axis::Preceding), out),
            _ => Ok(()),
        }
    }

    fn put(
        &mut self,
        nodes: impl Iterator<Item = NodeId>,
        step: &Step,
        out: &mut Vec<Item>,
    ) -> Result<(), Refusal> {
        for node in nodes {
            self.work.spend(1)?;
            if self.passes(node, &step.test) {
                out.push(Item::of(node));
            }
        }
        Ok(())
    }

    fn passes(&self, node: NodeId, test: &Test) -> bool {
        let kind = self.tree.kind(node);
        match test {
            Test::Node => true,
            Test::Text => kind == NodeKind::Text,
            Test::Comment => kind == NodeKind::Comment,
            Test::Instruction(name) => {
                kind == NodeKind::Instruction
                    && name.as_ref().is_none_or(|name| name == self.tree.instruction(node).0)
            }
            Test::Name(prefix, name) => {
                kind == NodeKind::Element && self.is_named(self.tree.text(node), prefix, name)
            }
        }
    }

    fn passes_attribute(&self, written: &str, test: &Test) -> bool {
        match test {
            Test::Node => true,
            Test::Name(prefix, name) => self.is_named(written, prefix, name),
            _ => false,
        }
    }

    fn is_named(&self, written: &str, prefix: &Option<String>, name: &Option<String>) -> bool {
        let same = |one: &str, other: &str| {
            one == other || (self.tree.is_html() && one.eq_ignore_ascii_case(other))
        };
        let has_prefix = prefix.as_ref().is_none_or(|prefix| {
            written.split_once(':').is_some_and(|(written, _)| same(written, prefix))
        });
        has_prefix && name.as_ref().is_none_or(|name| same(local(written), name))
    }

    /// The items for which the predicate holds; a number is a position (XPath 1.0, 2.4).
    fn filter(&mut self, items: Vec<Item>, predicate: &Expr) -> Result<Vec<Item>, Refusal> {
        if let Expr::Number(number) = predicate {
            let at = (1..=items.len()).find(|at| *at as f64 == *number);
            return Ok(at.map(|at| items[at - 1]).into_iter().collect());
        }
        let size = items.len();
        let mut kept = Vec::new();
        for (i, item) in items.into_iter().enumerate() {
            let context = Context { item, position: i + 1, size };
            let holds = match self.expr(predicate, context)? {
                Found::Number(number) => number == (i + 1) as f64,
                other => truth(&other),
            };
            if holds {
                kept.push(item);
            }
        }
        Ok(kept)
    }

    fn binary(
        &mut self,
        left: &Expr,
        operator: Operator,
        right: &Expr,
        context: Context,
    ) -> Result<Found, Refusal> {
        let left = self.expr(left, context)?;
        match operator {
            Operator::Or if truth(&left) => return Ok(Found::Bool(true)),
            Operator::And if !truth(&left) => return Ok(Found::Bool(false)),
            _ => {}
        }
        let right = self.expr(right, context)?;
        let mut numbers = || Ok((self.number(&left)?, self.number(&right)?));
        Ok(match operator {
            Operator::Or | Operator::And => Found::Bool(truth(&right)),
            Operator::Add => numbers().map(|(left, right)| Found::Number(left + right))?,
            Operator::Subtract => numbers().map(|(left, right)| Found::Number(left - right))?,
            Operator::Multiply => numbers().map(|(left, right)| Found::Number(left * right))?,
            Operator::Divide => numbers().map(|(left, right)| Found::Number(left / right))?,
            Operator::Modulo => numbers().map(|(left, right)| Found::Number(left % right))?,
            Operator::Equal | Operator::NotEqual => {
                Found::Bool(self.equal(left, right, operator == Operator::Equal)?)
            }
            _ => Found::Bool(self.ordered(&left, &right, operator)?),
        })
    }

    /// Whether some pair is equal, or unequal (XPath 1.0, 3.4).
    fn equal(&mut self, left: Found, right: Found, wanted: bool) -> Result<bool, Refusal> {
        let (items, other) = match (left, right) {
            (Found::Nodes(left), Found::Nodes(right)) => {
                let left = self.texts(&left)?;
                let right = self.texts(&right)?;
                let one = left.iter().chain(&right).next();
                let alike = left.iter().chain(&right).all(|text| Some(text) == one);
                let known: HashSet<&String> = left.iter().collect();
                return Ok(match wanted {
                    true => right.iter().any(|text| known.contains(text)),
                    false => !left.is_empty() && !right.is_empty() && !alike,
                });
            }
            (Found::Nodes(items), other) | (other, Found::Nodes(items)) => (items, other),
            (left, right) => {
                let same = match (&left, &right) {
                    (Found::Bool(_), _) | (_, Found::Bool(_)) => truth(&left) == truth(&right),
                    (Found::Number(_), _) | (_, Found::Number(_)) => {
                        self.number(&left)? == self.number(&right)?
                    }
                    _ => self.string(&left)? == self.string(&right)?,
                };
                return Ok(same == wanted);
            }
        };
        if let Found::Bool(value) = other {
            return Ok((value != items.is_empty()) == wanted);
        }
        for text in self.texts(&items)? {
            let same = match &other {
                Found::Number(number) => call::to_number(&text) == *number,
                Found::Text(other) => text == *other,
                _ => false,
            };
            if same == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether some pair is in this order; of many numbers only the extremes matter.
    fn ordered(
        &mut self,
        left: &Found,
        right: &Found,
        operator: Operator,
    ) -> Result<bool, Refusal> {
        // Compared with a boolean, nodes are converted to one (XPath 1.0, 3.4).
        let is_truth = [left, right].iter().any(|value| matches!(value, Found::Bool(_)));
        let left = self.bounds(left, is_truth)?;
        let right = self.bounds(right, is_truth)?;
        let (Some((left_low, left_high)), Some((right_low, right_high))) = (left, right) else {
            return Ok(false);
        };
        Ok(match operator {
            Operator::Less => left_low < right_high,
            Operator::LessOrEqual => left_low <= right_high,
            Operator::Greater => left_high > right_low,
            _ => left_high >= right_low,
        })
    }

    /// The least and the greatest number of a value; `None` if it has no number.
    fn bounds(&mut self, value: &Found, is_truth: bool) -> Result<Option<(f64, f64)>, Refusal> {
        let numbers: Vec<f64> = match value {
            Found::Nodes(items) if is_truth => vec![f64::from(u8::from(!items.is_empty()))],
            Found::Nodes(items) => {
                self.texts(items)?.iter().map(|text| call::to_number(text)).collect()
            }
            other => vec![self.number(other)?],
        };
        let numbers = numbers.into_iter().filter(|number| !number.is_nan());
        Ok(numbers.fold(None, |bounds, number| {
            let (low, high) = bounds.unwrap_or((number, number));
            Some((number.min(low), number.max(high)))
        }))
    }

    pub(super) fn texts(&mut self, items: &[Item]) -> Result<Vec<String>, Refusal> {
        items.iter().map(|item| self.text(*item)).collect()
    }

    /// The string-value of a node; its cost is charged.
    pub(super) fn text(&mut self, item: Item) -> Result<String, Refusal> {
        if item.attribute().is_none() {
            self.work.spend(self.tree.inside(item.node).len())?;
        }
        let text = item.text(self.tree);
        self.work.spend(1 + text.len() / 16)?;
        Ok(text)
    }

    pub(super) fn string(&mut self, value: &Found) -> Result<String, Refusal> {
        let text = match value {
            Found::Nodes(items) => match items.first() {
                Some(item) => return self.text(*item),
                None => String::new(),
            },
            Found::Text(text) => text.clone(),
            Found::Number(number) => call::number_text(*number),
            Found::Bool(value) => value.to_string(),
        };
        self.work.spend(1 + text.len() / 16)?;
        Ok(text)
    }

    pub(super) fn number(&mut self, value: &Found) -> Result<f64, Refusal> {
        Ok(match value {
            Found::Number(number) => *number,
            Found::Bool(value) => f64::from(u8::from(*value)),
            other => call::to_number(&self.string(other)?),
        })
    }
}

pub(super) fn truth(value: &Found) -> bool {
    match value {
        Found::Nodes(items) => !items.is_empty(),
        Found::Text(text) => !text.is_empty(),
        Found::Number(number) => *number != 0.0 && !number.is_nan(),
        Found::Bool(value) => *value,
    }
}

fn in_order(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_unstable();
    items.dedup();
    items
}
