//! An expression: compiled once, evaluated for every user.

use std::sync::Arc;

use cel::parser::PrattParser;
use cel::parser::pratt_parser::TokenKind;

use crate::error::CompileError;
use crate::evaluate::{Evaluator, STEPS_MAX, no_value_yet};
use crate::lower;
use crate::names::{Names, Path};
use crate::node::Node;
use crate::numbers::Operator;
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

/// The saved values that an expression looks at; one may be there several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Without these it has no value.
    pub needed: Vec<u16>,
    /// It asks whether these are there: `has(saved.x)`, `saved.x == null`.
    pub tested: Vec<u16>,
}

impl Expression {
    /// Compiles the text between `${` and `}`. Everything that can be known to be wrong without
    /// evaluating it is an error, with its place in the text.
    pub fn compile(text: &str, names: &mut dyn Names) -> Result<Expression, Box<CompileError>> {
        if let Some(result) = compile_path(text, names) {
            return result.map(|node| Expression::from_node(node, text));
        }
        let tokens = Tokens::new(text)?;
        if tokens.all.is_empty() {
            return Err(CompileError::new("bad-expression", 0, text.len())
                .message(say!("the expression is empty"))
                .help(say!(
                    "write a name or an expression, such as `${{user.id}}` or `${{1 + 2}}`"
                )));
        }
        let parser = PrattParser::new().enable_ident_escape_syntax(true);
        let tree = parser.parse(text).map_err(|errors| syntax_error(&tokens, &errors))?;
        lower::lower(&tokens, &tree, names).map(|node| Expression::from_node(node, text))
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

    /// What the person wrote between `${` and `}`; empty for [`Expression::constant`].
    pub fn text(&self) -> &str {
        &self.tree.text
    }

    /// The sources of data whose rows it looks at; one may be there several times.
    pub fn sources(&self) -> Vec<u16> {
        let mut sources = Vec::new();
        self.tree.node.visit(&mut |node| {
            if let Node::Field { source, .. } | Node::Row(source) = node {
                sources.push(*source);
            }
        });
        sources
    }

    /// The saved values that it looks at.
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

    /// The value, when it is the same for everybody at any time.
    pub fn as_constant(&self) -> Option<&Value> {
        match &self.tree.node {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it looks at a part of the answer.
    pub fn uses_answer(&self) -> bool {
        self.tree.uses_answer
    }

    /// Whether it is only a constant, the user's id, the iteration or a saved value: nothing is
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

    /// Whether it can be true or false, as far as that is known without evaluating it.
    pub fn may_be_condition(&self) -> bool {
        self.tree.node.types().may_be(Types::BOOL)
    }

    pub fn evaluate(&self, scope: &mut dyn Scope) -> Result<Value, Fault> {
        Evaluator::new(scope, STEPS_MAX).evaluate(&self.tree.node)
    }

    /// Appends the value as text. A saved value that is not there yet is a fault.
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

    /// The value as a condition; anything but true and false is a fault.
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

/// The parts of a path that is compiled without the parser.
const PATH_PARTS_MAX: usize = 8;

/// Most expressions are a name with dots; the parser would take a hundred times as long for them.
/// `None` for everything else.
fn compile_path(text: &str, names: &mut dyn Names) -> Option<Result<Node, Box<CompileError>>> {
    let mut parts = [""; PATH_PARTS_MAX];
    let mut spans = [(0, 0); PATH_PARTS_MAX];
    let mut count = 0;
    let trimmed = text.trim_ascii();
    let mut start = text.len() - text.trim_ascii_start().len();
    for part in trimmed.split('.') {
        let bytes = part.as_bytes();
        let begins = bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
        let is_name =
            begins && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        if !is_name || is_reserved(part) {
            return None;
        }
        *parts.get_mut(count)? = part;
        spans[count] = (start, start + part.len());
        start += part.len() + 1;
        count += 1;
    }
    let path = Path { parts: &parts[..count], spans: &spans[..count] };
    let mut doubts = Vec::new();
    let node = path.node(names, &mut doubts);
    match doubts.pop() {
        Some(doubt) => Some(Err(Box::new(doubt))),
        None => Some(node),
    }
}

/// Words of CEL that are no names.
fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "true"
            | "false"
            | "null"
            | "in"
            | "as"
            | "break"
            | "const"
            | "continue"
            | "else"
            | "for"
            | "function"
            | "if"
            | "import"
            | "let"
            | "loop"
            | "package"
            | "namespace"
            | "return"
            | "var"
            | "void"
            | "while"
    )
}

/// The parser's first complaint, said at its token.
fn syntax_error(tokens: &Tokens<'_>, errors: &cel::ParseErrors) -> Box<CompileError> {
    let text = tokens.text;
    let first = errors.errors.iter().find(|error| error.pos.0 > 0);
    let message = first.map_or("", |error| error.msg.as_str());
    let position = first.map_or(0, |error| byte_of(text, error.pos));
    let index = tokens.all.iter().position(|token| position < token.end);
    let Some(index) = index else {
        let start = tokens.all.last().map_or(0, |token| token.start);
        return CompileError::new("bad-expression", start, tokens.all.last().map_or(0, |t| t.end))
            .message(say!("the expression is incomplete"))
            .label(say!("the expression must continue here"));
    };
    let token = tokens.all[index];
    let found = tokens.text_of(index);
    let error = CompileError::new("bad-expression", token.start, token.end);
    if message.starts_with("reserved identifier") {
        return error.message(say!("`{found}` is a reserved word, not a name"));
    }
    if message.contains("literal") && !message.contains("unterminated") {
        return error.message(say!("`{found}` does not fit into 64 bits"));
    }
    if message.contains("unescape") || message.contains("unicode") {
        return error
            .message(say!("{found} has an invalid escape sequence"))
            .help(say!("write \\\\ for a backslash, or use raw text r'…'"));
    }
    if message.contains("has() macro") {
        return error
            .message(say!("the argument of `has` must be a field"))
            .help(say!("for example: has(saved.token)"));
    }
    if message.contains("simple name") {
        return error
            .message(say!("the first argument of a loop must be a name for its item"))
            .help(say!("for example: [1, 2].map(x, x * 2)"));
    }
    if token.kind == TokenKind::TokIdent && message.contains("mismatched") {
        return error.message(say!("`{found}` is not expected here")).help(say!(
            "put an operator between two values, and enclose text in single quotes (')"
        ));
    }
    error.message(say!("`{found}` is not expected here"))
}

/// The byte of a line and column, both from 1.
fn byte_of(text: &str, (line, column): (isize, isize)) -> usize {
    let before = usize::try_from(line - 1).unwrap_or(0);
    let start: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
    (start + usize::try_from(column - 1).unwrap_or(0)).min(text.len())
}

#[cfg(test)]
mod tests;
