//! The compiled tree of an expression: names are slots, patterns are compiled, macros are loops.

use std::sync::Arc;

use regex::Regex;

use crate::call::FunctionDoc;
use crate::numbers::Operator;
use crate::scope::Answer;
use crate::types::Types;
use crate::value::Value;

#[derive(Debug)]
pub(crate) enum Node {
    Constant(Value),
    UserId,
    Iteration,
    Slot {
        slot: u16,
        /// The source text, for messages.
        name: Box<str>,
    },
    /// A value that was created before the load.
    Setup {
        value: u16,
        name: Box<str>,
    },
    Field {
        source: u16,
        column: u16,
    },
    Row(u16),
    Answer(Answer),
    /// The variable of an enclosing loop; loops count from the outermost, 0.
    Local(u16),
    Select {
        operand: Box<Node>,
        field: Arc<str>,
    },
    /// `has(…)`: whether every part of a path is present and its value is not null.
    Has(Box<Node>),
    Index(Box<[Node; 2]>),
    In(Box<[Node; 2]>),
    List(Box<[Node]>),
    Map(Box<[(Node, Node)]>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    /// Condition, value if true, value if false.
    Conditional(Box<[Node; 3]>),
    Binary(Operator, Box<[Node; 2]>),
    Call(&'static FunctionDoc, Box<[Node]>),
    /// `matches` with a constant pattern.
    Matches(Box<(Node, Regex)>),
    Each(Box<Each>),
}

const _: () = assert!(size_of::<Node>() <= 32);

/// A loop over a list, or over the keys of a map.
#[derive(Debug)]
pub(crate) struct Each {
    pub kind: EachKind,
    pub range: Node,
    /// The condition per item; constant `true` without one.
    pub condition: Node,
    /// The result for an item that is kept; only for [`EachKind::Map`].
    pub result: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EachKind {
    All,
    Exists,
    ExistsOne,
    Map,
}

impl Node {
    /// The possible types of the node's value, as far as they are known without evaluation.
    pub(crate) fn types(&self) -> Types {
        match self {
            Node::Constant(value) => value.types(),
            Node::UserId | Node::Iteration => Types::INT,
            Node::List(_) => Types::LIST,
            Node::Map(_) => Types::MAP,
            Node::Has(_) | Node::In(_) | Node::Not(_) | Node::And(_) | Node::Or(_) => Types::BOOL,
            Node::Matches(_) => Types::BOOL,
            Node::Negate(operand) if operand.types() == Types::INT => Types::INT,
            Node::Negate(_) => Types::NUMBER,
            Node::Conditional(parts) => parts[1].types().union(parts[2].types()),
            Node::Binary(operator, operands) => binary_types(*operator, operands),
            Node::Call(function, _) => function.result,
            Node::Each(each) if each.kind == EachKind::Map => Types::LIST,
            Node::Each(_) => Types::BOOL,
            _ => Types::ANY,
        }
    }
}

fn binary_types(operator: Operator, operands: &[Node; 2]) -> Types {
    let (left, right) = (operands[0].types(), operands[1].types());
    match operator {
        Operator::Add if left == right && left != Types::ANY => left,
        Operator::Add if !left.may_be(Types::NUMBER) => left,
        Operator::Add => Types::ANY,
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            match left == Types::INT && right == Types::INT {
                true => Types::INT,
                false => Types::NUMBER,
            }
        }
        _ => Types::BOOL,
    }
}

impl Node {
    pub(crate) fn as_slot(&self) -> Option<u16> {
        match self {
            Node::Slot { slot, .. } => Some(*slot),
            _ => None,
        }
    }

    /// Calls `look` with this node and every nested node.
    pub(crate) fn visit(&self, look: &mut dyn FnMut(&Node)) {
        look(self);
        let mut all = |nodes: &[Node]| nodes.iter().for_each(|node| node.visit(look));
        match self {
            Node::Select { operand, .. }
            | Node::Has(operand)
            | Node::Not(operand)
            | Node::Negate(operand) => operand.visit(look),
            Node::Index(nodes) | Node::In(nodes) | Node::And(nodes) | Node::Or(nodes) => {
                all(&nodes[..]);
            }
            Node::Binary(_, nodes) => all(&nodes[..]),
            Node::Conditional(nodes) => all(&nodes[..]),
            Node::List(nodes) | Node::Call(_, nodes) => all(nodes),
            Node::Matches(parts) => parts.0.visit(look),
            Node::Map(entries) => {
                for (key, value) in entries.iter() {
                    key.visit(look);
                    value.visit(look);
                }
            }
            Node::Each(each) => {
                each.range.visit(look);
                each.condition.visit(look);
                each.result.visit(look);
            }
            Node::Constant(_)
            | Node::UserId
            | Node::Iteration
            | Node::Slot { .. }
            | Node::Setup { .. }
            | Node::Field { .. }
            | Node::Row(_)
            | Node::Answer(_)
            | Node::Local(_) => {}
        }
    }
}
