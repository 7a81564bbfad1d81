//! An expression: compiled once, evaluated for every user.

use std::sync::Arc;

use crate::error::CompileError;
use crate::evaluate::{Evaluator, STEPS_MAX, no_value_yet};
use crate::lower;
use crate::names::Names;
use crate::node::Node;
use crate::numbers::Operator;
use crate::parser;
use crate::scope::{Fault, Scope};
use crate::tokens::Tokens;
use crate::types::Types;
use crate::value::{Value, write_u64};

/// A compiled expression; clones share the tree.
#[derive(Clone, Debug)]
pub struct Expression {
    tree: Arc<Tree>,
}

const _: () = assert!(size_of::<Expression>() <= 24);

#[derive(Debug)]
struct Tree {
    node: Node,
    text: Box<str>,
    uses_answer: bool,
}

/// The saved values that an expression uses; one may occur several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Without these it has no value.
    pub needed: Vec<u16>,
    /// It tests whether these are present: `has(saved.x)`, `saved.x == null`.
    pub tested: Vec<u16>,
}

impl Expression {
    /// Compiles the text between `${` and `}`. Everything that is certainly wrong without
    /// evaluation is an error, with its position in the text.
    pub fn compile(text: &str, names: &mut dyn Names) -> Result<Expression, Box<CompileError>> {
        let tokens = Tokens::new(text)?;
        if tokens.all.is_empty() {
            return Err(CompileError::new("bad-expression", 0, text.len())
                .message(say!("the expression is empty"))
                .help(say!(
                    "write a name or an expression, such as `${{user.id}}` or `${{1 + 2}}`"
                )));
        }
        let tree = parser::parse(&tokens)?;
        lower::lower(&tree, names).map(|node| Expression::from_node(node, text))
    }

    /// An expression that always has this value.
    pub fn constant(value: Value) -> Expression {
        Expression::from_node(Node::Constant(value), "")
    }

    fn from_node(node: Node, text: &str) -> Expression {
        let mut uses_answer = false;
        node.visit(&mut |node| uses_answer |= matches!(node, Node::Answer(_)));
        Expression { tree: Arc::new(Tree { node, text: text.trim().into(), uses_answer }) }
    }

    /// The source text between `${` and `}`; empty for [`Expression::constant`].
    pub fn text(&self) -> &str {
        &self.tree.text
    }

    /// The data sources whose rows it uses; one may occur several times.
    pub fn sources(&self) -> Vec<u16> {
        let mut sources = Vec::new();
        self.tree.node.visit(&mut |node| {
            if let Node::Field { source, .. } | Node::Row(source) = node {
                sources.push(*source);
            }
        });
        sources
    }

    /// The saved values that it uses.
    pub fn slots(&self) -> Slots {
        let mut slots = Slots::default();
        self.tree.node.visit(&mut |node| match node {
            Node::Slot { slot, .. } => slots.needed.push(*slot),
            Node::Has(path) => path.visit(&mut |node| slots.tested.extend(node.as_slot())),
            Node::Binary(Operator::Equal | Operator::NotEqual, both) => {
                let null = |node: &Node| matches!(node, Node::Constant(Value::Null));
                if both.iter().any(null) {
                    slots.tested.extend(both.iter().filter_map(Node::as_slot));
                }
            }
            _ => {}
        });
        slots.needed.retain(|slot| !slots.tested.contains(slot));
        slots
    }

    /// The value, if it is the same for all users at any time.
    pub fn as_constant(&self) -> Option<&Value> {
        match &self.tree.node {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it uses a part of the response.
    pub fn uses_answer(&self) -> bool {
        self.tree.uses_answer
    }

    /// Whether it is only a constant, the user's ID, the iteration or a saved value: nothing is
    /// computed, and nothing is cloned to write it.
    pub fn is_simple(&self) -> bool {
        let node = &self.tree.node;
        matches!(
            node,
            Node::Constant(_)
                | Node::UserId
                | Node::Iteration
                | Node::Slot { .. }
                | Node::Setup { .. }
        )
    }

    /// Whether it can be a boolean, as far as that is known without evaluation.
    pub fn may_be_condition(&self) -> bool {
        self.tree.node.types().may_be(Types::BOOL)
    }

    pub fn evaluate(&self, scope: &mut dyn Scope) -> Result<Value, Fault> {
        Evaluator::new(scope, STEPS_MAX).evaluate(&self.tree.node)
    }

    /// Appends the value as text. A saved value that is missing is an error.
    pub fn write_text(&self, scope: &mut dyn Scope, out: &mut Vec<u8>) -> Result<(), Fault> {
        match &self.tree.node {
            Node::Constant(value) => value.write_text(out),
            Node::UserId => write_u64(scope.user_id(), out),
            Node::Iteration => write_u64(scope.iteration(), out),
            Node::Slot { slot, name } => match scope.slot(*slot) {
                Value::Null => return Err(no_value_yet(name)),
                value => value.write_text(out),
            },
            Node::Setup { value, name } => match scope.setup(*value) {
                Value::Null => return Err(no_value_yet(name)),
                value => value.write_text(out),
            },
            _ => self.evaluate(scope)?.write_text(out),
        }
        Ok(())
    }

    /// The value as a condition; anything but a boolean is an error.
    pub fn test(&self, scope: &mut dyn Scope) -> Result<bool, Fault> {
        match self.evaluate(scope)? {
            Value::Bool(value) => Ok(value),
            Value::Null => match &self.tree.node {
                Node::Slot { name, .. } | Node::Setup { name, .. } => Err(no_value_yet(name)),
                _ => Err(Fault(say!("a condition must be true or false, not null"))),
            },
            other => {
                let found = other.type_name();
                Err(Fault(say!("a condition must be true or false, not {found}")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
