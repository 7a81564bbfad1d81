//! From the parser's tree to ours: names become slots, macros loops, constant parts values, and
//! what can be known to be wrong is said now.
//!
//! The parser gives no positions, but tokens come in the order of the tree's leaves, so a cursor
//! that moves on with every leaf knows where each part stands.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, SelectExpr,
    operators,
};
use cel::parser::pratt_parser::TokenKind;
use throng_base::diagnostic::did_you_mean;
use throng_base::{Random, Said};

use crate::call::FunctionDoc;
use crate::error::CompileError;
use crate::evaluate::Evaluator;
use crate::functions::{self, FUNCTIONS};
use crate::names::{Names, Path};
use crate::node::{Each, EachKind, Node};
use crate::numbers::Operator;
use crate::scope::{Answer, Fault, Scope};
use crate::text;
use crate::tokens::Tokens;
use crate::types::Types;
use crate::value::Value;

/// What computing the constant parts of one expression may cost; what costs more stays as it is.
const FOLD_STEPS_MAX: u32 = 20_000;

/// The node, or the first thing that is wrong.
pub(crate) fn lower(
    tokens: &Tokens<'_>,
    tree: &IdedExpr,
    names: &mut dyn Names,
) -> Result<Node, Box<CompileError>> {
    let mut lowering = Lowering {
        tokens,
        names,
        cursor: 0,
        locals: Vec::new(),
        doubts: Vec::new(),
        steps_left: FOLD_STEPS_MAX,
    };
    let part = lowering.lower(tree)?;
    match lowering.doubts.into_iter().next() {
        Some(doubt) => Err(Box::new(doubt)),
        None => Ok(part.node),
    }
}

/// A node with what its surroundings need to know of it.
struct Part {
    node: Node,
    start: usize,
    end: usize,
    /// It looks at nothing but its own constants.
    is_constant: bool,
    /// The outermost loop whose variable it uses.
    outermost_loop: usize,
}

impl Part {
    fn constant(value: Value, span: (usize, usize)) -> Part {
        Part::new(Node::Constant(value), span, true)
    }

    fn new(node: Node, span: (usize, usize), is_constant: bool) -> Part {
        Part { node, start: span.0, end: span.1, is_constant, outermost_loop: usize::MAX }
    }

    /// Takes over what a part inside this one means for it.
    fn with(mut self, inner: &Facts) -> Part {
        self.is_constant &= inner.is_constant;
        self.outermost_loop = self.outermost_loop.min(inner.outermost_loop);
        self
    }

    fn facts(&self) -> Facts {
        Facts { is_constant: self.is_constant, outermost_loop: self.outermost_loop }
    }
}

#[derive(Clone, Copy)]
struct Facts {
    is_constant: bool,
    outermost_loop: usize,
}

impl Facts {
    const NONE: Facts = Facts { is_constant: true, outermost_loop: usize::MAX };

    fn and(self, other: Facts) -> Facts {
        Facts {
            is_constant: self.is_constant && other.is_constant,
            outermost_loop: self.outermost_loop.min(other.outermost_loop),
        }
    }
}

type Lowered = Result<Part, Box<CompileError>>;

struct Lowering<'a> {
    tokens: &'a Tokens<'a>,
    names: &'a mut dyn Names,
    /// The first token that no leaf has claimed.
    cursor: usize,
    /// The variables of the loops around the current part.
    locals: Vec<&'a str>,
    /// Parts that have no value if they are ever evaluated; a condition known now may drop them.
    doubts: Vec<CompileError>,
    steps_left: u32,
}

impl<'a> Lowering<'a> {
    fn lower(&mut self, tree: &'a IdedExpr) -> Lowered {
        if let Some(part) = self.lower_path(tree, None) {
            return part;
        }
        match &tree.expr {
            Expr::Literal(literal) => Ok(self.lower_literal(literal)),
            Expr::Ident(name) => Ok(self.lower_local(name)),
            Expr::Select(select) if select.test => self.lower_has(select),
            Expr::Select(select) => self.lower_select(select),
            Expr::Call(call) => self.lower_call(call),
            Expr::List(list) => self.lower_list(&list.elements),
            Expr::Map(map) => self.lower_map(map),
            Expr::Comprehension(each) => self.lower_each(each),
            Expr::Struct(message) => {
                let name = &message.type_name;
                let (start, end) = self.whole();
                Err(CompileError::new("bad-expression", start, end)
                    .message(say!("`{name}{{…}}` is not supported: there are no named types"))
                    .help(say!("write a map: {{'key': value}}")))
            }
            Expr::Unspecified => {
                let (start, end) = self.whole();
                Err(CompileError::new("bad-expression", start, end)
                    .message(say!("the expression is not valid")))
            }
        }
    }

    fn whole(&self) -> (usize, usize) {
        (0, self.tokens.text.len())
    }

    /// Moves to the next token that is wanted; the cursor stays where there is none.
    fn advance(&mut self, wanted: impl Fn(TokenKind, &str) -> bool) -> Option<usize> {
        let found = (self.cursor..self.tokens.all.len())
            .find(|index| wanted(self.tokens.all[*index].kind, self.tokens.text_of(*index)))?;
        self.cursor = found + 1;
        Some(found)
    }

    fn advance_to_name(&mut self, name: &str) -> Option<usize> {
        self.advance(|kind, text| {
            matches!(kind, TokenKind::TokIdent | TokenKind::TokReservedWord)
                && text.trim_matches('`') == name
        })
    }

    /// The name of a call, from there to its closing bracket.
    fn advance_to_call(&mut self, name: &str) -> (usize, usize) {
        let Some(index) = self.advance_to_name(name) else { return self.whole() };
        let end = self.tokens.all.get(index + 1).map_or(index, |bracket| bracket.closed_by);
        (self.tokens.all[index].start, self.tokens.all[end].end)
    }

    fn span(&self, index: Option<usize>) -> (usize, usize) {
        index.map_or(self.whole(), |index| {
            let token = self.tokens.all[index];
            (token.start, token.end)
        })
    }

    fn doubt(&mut self, span: (usize, usize), fault: Fault) {
        let error = CompileError::new("wrong-arguments", span.0, span.1).message(fault.0);
        self.doubts.push(*error);
    }

    /// Computes a part that looks at nothing else. One that has no value is doubtful, unless
    /// something inside of it already was.
    fn fold(&mut self, mut part: Part, doubts_before: usize) -> Part {
        let known = part.is_constant && part.outermost_loop >= self.locals.len();
        if !known || matches!(part.node, Node::Constant(_)) {
            return part;
        }
        match self.trial(&part.node) {
            Some(Ok(value)) => {
                self.doubts.truncate(doubts_before);
                part.node = Node::Constant(value);
            }
            Some(Err(fault)) if self.doubts.len() == doubts_before => {
                self.doubt((part.start, part.end), fault);
            }
            _ => {}
        }
        part
    }

    /// Evaluates the node where nothing is; `None` when that takes too long.
    fn trial(&mut self, node: &Node) -> Option<Result<Value, Fault>> {
        let mut nowhere = Nowhere { random: Random::new(0) };
        let evaluator = Evaluator::new(&mut nowhere, self.steps_left);
        let mut evaluator = evaluator.inside_loops(self.locals.len());
        let result = evaluator.evaluate(node);
        self.steps_left = evaluator.steps_left;
        (self.steps_left > 0).then_some(result)
    }

    fn lower_literal(&mut self, literal: &LiteralValue) -> Part {
        let value = match literal {
            LiteralValue::Null => Value::Null,
            LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
            LiteralValue::Int(int) => Value::Int(*int.inner()),
            LiteralValue::UInt(uint) => Value::UInt(*uint.inner()),
            LiteralValue::Double(float) => Value::Float(*float.inner()),
            LiteralValue::String(text) => Value::from(text.inner()),
            LiteralValue::Bytes(bytes) => Value::from(bytes.inner()),
        };
        let index = self.advance(|kind, _| {
            matches!(
                kind,
                TokenKind::TokNull
                    | TokenKind::TokTrue
                    | TokenKind::TokFalse
                    | TokenKind::TokInt
                    | TokenKind::TokUint
                    | TokenKind::TokFloat
                    | TokenKind::TokString
                    | TokenKind::TokBytes
            )
        });
        let mut span = self.span(index);
        let before = index.and_then(|index| index.checked_sub(1));
        let is_negative = value.as_f64().is_some_and(|number| number < 0.0);
        if is_negative && before.and_then(|it| self.tokens.kind(it)) == Some(TokenKind::TokMinus) {
            span.0 = self.span(before).0;
        }
        Part::constant(value, span)
    }

    fn lower_local(&mut self, name: &str) -> Part {
        let index = self.advance_to_name(name);
        let depth = self.locals.iter().rposition(|local| *local == name).unwrap_or_default();
        let mut part = Part::new(Node::Local(depth as u16), self.span(index), true);
        part.outermost_loop = depth;
        part
    }

    /// A path that starts with a name of the scenario, with one more field for `has`; `None` if it
    /// is something else.
    fn lower_path(&mut self, tree: &'a IdedExpr, last: Option<&'a str>) -> Option<Lowered> {
        let mut parts = Vec::new();
        path_of(tree, &mut parts).filter(|root| !self.locals.contains(root))?;
        parts.extend(last);
        let mut spans = Vec::with_capacity(parts.len());
        for (position, part) in parts.iter().enumerate() {
            let index = self.advance(|kind, text| match kind {
                TokenKind::TokIdent | TokenKind::TokReservedWord => text.trim_matches('`') == *part,
                TokenKind::TokString => position > 0,
                _ => false,
            });
            spans.push(self.span(index));
        }
        let path = Path { parts: &parts, spans: &spans };
        let span = (path.start().min(path.end()), path.end());
        Some(path.node(self.names, &mut self.doubts).map(|node| {
            let is_constant = is_known(&node);
            Part::new(node, span, is_constant)
        }))
    }

    fn lower_has(&mut self, select: &'a SelectExpr) -> Lowered {
        let doubts_before = self.doubts.len();
        let span = self.advance_to_call("has");
        let part = match self.lower_path(&select.operand, Some(&select.field)) {
            Some(part) => part?,
            None => self.lower_select(select)?,
        };
        // What is missing is the answer here, not a mistake.
        self.doubts.truncate(doubts_before);
        let facts = part.facts();
        let part = Part::new(Node::Has(Box::new(part.node)), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn lower_select(&mut self, select: &'a SelectExpr) -> Lowered {
        let doubts_before = self.doubts.len();
        let operand = self.lower(&select.operand)?;
        let index = self.advance_to_name(&select.field);
        let span = (operand.start, self.span(index).1.max(operand.end));
        let facts = operand.facts();
        let field = select.field.as_str().into();
        let node = Node::Select { operand: Box::new(operand.node), field };
        let part = Part::new(node, span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn lower_list(&mut self, elements: &'a [IdedExpr]) -> Lowered {
        let doubts_before = self.doubts.len();
        let span = self.advance_to_bracket(TokenKind::TokLeftBracket);
        let mut facts = Facts::NONE;
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            let item = self.lower(element)?;
            facts = facts.and(item.facts());
            items.push(item.node);
        }
        let part = Part::new(Node::List(items.into()), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn lower_map(&mut self, map: &'a MapExpr) -> Lowered {
        let doubts_before = self.doubts.len();
        let span = self.advance_to_bracket(TokenKind::TokLeftBrace);
        let mut facts = Facts::NONE;
        let mut entries = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.lower(&entry.key).map_err(|error| match &entry.key.expr {
                Expr::Ident(name) => error.label(say!("write `'{name}'` if it is text")),
                _ => error,
            })?;
            let value = self.lower(&entry.value)?;
            facts = facts.and(key.facts()).and(value.facts());
            entries.push((key.node, value.node));
        }
        let part = Part::new(Node::Map(entries.into()), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn advance_to_bracket(&mut self, bracket: TokenKind) -> (usize, usize) {
        let Some(index) = self.advance(|kind, _| kind == bracket) else { return self.whole() };
        let open = self.tokens.all[index];
        (open.start, self.tokens.all[open.closed_by].end)
    }

    fn lower_call(&mut self, call: &'a CallExpr) -> Lowered {
        if let Some(target) = &call.target {
            return self.lower_method(call, target);
        }
        let name = call.func_name.trim_start_matches('.');
        match (name, &call.args[..]) {
            (operators::CONDITIONAL, [condition, yes, no]) => {
                self.lower_conditional(condition, yes, no)
            }
            (operators::LOGICAL_AND, [left, right]) => self.lower_logic(false, left, right),
            (operators::LOGICAL_OR, [left, right]) => self.lower_logic(true, left, right),
            (operators::LOGICAL_NOT, [operand]) => self.lower_not(operand),
            (operators::NEGATE, [operand]) => self.lower_negate(operand),
            (operators::INDEX, [container, key]) => self.lower_index(container, key),
            (operators::IN, [item, container]) => self.lower_in(item, container),
            ("dyn", [operand]) => self.lower(operand),
            (name, [left, right]) if operator_of(name).is_some() => {
                self.lower_binary(operator_of(name).unwrap_or(Operator::Equal), left, right)
            }
            _ => {
                let span = self.advance_to_call(name);
                let function = functions::find(name).ok_or_else(|| unknown_function(name, span))?;
                self.lower_function(function, None, &call.args, span)
            }
        }
    }

    /// `target.function(…)`: a function with a dot in its name, or one of the target's value.
    fn lower_method(&mut self, call: &'a CallExpr, target: &'a IdedExpr) -> Lowered {
        let name = call.func_name.as_str();
        if let Some(namespace) = self.namespace_of(target) {
            let full = format!("{namespace}.{name}");
            let mut is_name = || self.names.resolve(&[namespace]).is_ok();
            let function = functions::find(&full);
            if function.is_some() || !is_name() {
                let index = self.advance_to_name(namespace);
                let span = (self.span(index).0, self.advance_to_call(name).1);
                let function = function.ok_or_else(|| unknown_function(&full, span))?;
                return self.lower_function(function, None, &call.args, span);
            }
        }
        let target = self.lower(target)?;
        let (name_start, end) = self.advance_to_call(name);
        let function =
            functions::find(name).ok_or_else(|| unknown_function(name, (name_start, end)))?;
        let span = (target.start, end);
        self.lower_function(function, Some(target), &call.args, span)
    }

    /// `random`, `now` and the like, unless a loop's variable is called so.
    fn namespace_of(&self, target: &'a IdedExpr) -> Option<&'a str> {
        let Expr::Ident(name) = &target.expr else { return None };
        let dotted = |function: &FunctionDoc| {
            function.name.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'))
        };
        let is_namespace = FUNCTIONS.iter().any(dotted) && !self.locals.contains(&name.as_str());
        is_namespace.then_some(name.as_str())
    }

    fn lower_function(
        &mut self,
        function: &'static FunctionDoc,
        target: Option<Part>,
        trees: &'a [IdedExpr],
        span: (usize, usize),
    ) -> Lowered {
        let count = trees.len() + usize::from(target.is_some());
        if !function.takes(count) {
            return Err(wrong_count(function, count, span));
        }
        let doubts_before = self.doubts.len();
        let mut parts: Vec<Part> = Vec::with_capacity(count);
        parts.extend(target);
        for tree in trees {
            parts.push(self.lower(tree)?);
        }
        let facts = parts.iter().fold(Facts::NONE, |facts, part| facts.and(part.facts()));
        for (index, part) in parts.iter().enumerate() {
            let (expected, found) = (function.parameter(index), part.node.types());
            if !found.may_be(expected) {
                let (name, expected, found) = (function.name, expected.name(), found.name());
                let message = say!("`{name}` takes {expected}, not {found}");
                self.doubt((part.start, part.end), Fault(message));
            }
        }
        let mut part = match self.constant_pattern(function, &parts) {
            Some(pattern) => {
                let text = parts.remove(0);
                Part::new(Node::Matches(Box::new((text.node, pattern))), span, true)
            }
            None => {
                let arguments = parts.into_iter().map(|part| part.node).collect();
                Part::new(Node::Call(function, arguments), span, true)
            }
        }
        .with(&facts);
        if !function.is_pure() {
            // Chance and time have no value now, but what can never have one is found.
            let known = part.is_constant && part.outermost_loop >= self.locals.len();
            let trial = if known { self.trial(&part.node) } else { None };
            if let (Some(Err(fault)), true) = (trial, self.doubts.len() == doubts_before) {
                self.doubt(span, fault);
            }
            part.is_constant = false;
        }
        Ok(self.fold(part, doubts_before))
    }

    /// The compiled pattern of a `matches` whose pattern is known now.
    fn constant_pattern(&mut self, function: &FunctionDoc, parts: &[Part]) -> Option<regex::Regex> {
        let pattern = parts.get(1).filter(|_| function.name == "matches")?;
        let Node::Constant(Value::Text(text)) = &pattern.node else { return None };
        let span = (pattern.start, pattern.end);
        text::pattern(text).map_err(|fault| self.doubt(span, fault)).ok()
    }

    fn lower_conditional(
        &mut self,
        condition: &'a IdedExpr,
        yes: &'a IdedExpr,
        no: &'a IdedExpr,
    ) -> Lowered {
        let doubts_before = self.doubts.len();
        let condition = self.lower(condition)?;
        self.expect_bool(&condition, "?");
        let doubts_of_yes = self.doubts.len();
        let yes = self.lower(yes)?;
        let doubts_of_no = self.doubts.len();
        let no = self.lower(no)?;
        // Only the branch that is taken counts, with its doubts.
        match &condition.node {
            Node::Constant(Value::Bool(true)) => {
                self.doubts.truncate(doubts_of_no);
                return Ok(yes);
            }
            Node::Constant(Value::Bool(false)) => {
                self.doubts.drain(doubts_of_yes..doubts_of_no);
                return Ok(no);
            }
            _ => {}
        }
        let facts = condition.facts().and(yes.facts()).and(no.facts());
        let span = (condition.start, no.end);
        let node = Node::Conditional(Box::new([condition.node, yes.node, no.node]));
        Ok(self.fold(Part::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_logic(&mut self, deciding: bool, left: &'a IdedExpr, right: &'a IdedExpr) -> Lowered {
        let doubts_before = self.doubts.len();
        let operator = if deciding { "||" } else { "&&" };
        let left = self.lower(left)?;
        self.expect_bool(&left, operator);
        let doubts_of_left = self.doubts.len();
        let right = self.lower(right)?;
        self.expect_bool(&right, operator);
        let span = (left.start, right.end);
        if matches!(left.node, Node::Constant(Value::Bool(value)) if value == deciding) {
            self.doubts.truncate(doubts_of_left);
            return Ok(Part::constant(Value::Bool(deciding), span));
        }
        let facts = left.facts().and(right.facts());
        let operands = Box::new([left.node, right.node]);
        let node = if deciding { Node::Or(operands) } else { Node::And(operands) };
        Ok(self.fold(Part::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_not(&mut self, operand: &'a IdedExpr) -> Lowered {
        let doubts_before = self.doubts.len();
        let sign = self.advance(|kind, _| kind == TokenKind::TokExclamation);
        let operand = self.lower(operand)?;
        self.expect_bool(&operand, "!");
        let (facts, span) = (operand.facts(), (self.span(sign).0, operand.end));
        let part = Part::new(Node::Not(Box::new(operand.node)), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn lower_negate(&mut self, operand: &'a IdedExpr) -> Lowered {
        let doubts_before = self.doubts.len();
        let sign = self.advance(|kind, _| kind == TokenKind::TokMinus);
        let operand = self.lower(operand)?;
        if !operand.node.types().may_be(Types::NUMBER) {
            let found = operand.node.types().name();
            let fault = Fault(say!("`-` takes a number, not {found}"));
            self.doubt((operand.start, operand.end), fault);
        }
        let (facts, span) = (operand.facts(), (self.span(sign).0, operand.end));
        let part = Part::new(Node::Negate(Box::new(operand.node)), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn expect_bool(&mut self, part: &Part, operator: &str) {
        let types = part.node.types();
        if !types.may_be(Types::BOOL) {
            let found = types.name();
            let fault = Fault(say!("`{operator}` takes true or false, not {found}"));
            self.doubt((part.start, part.end), fault);
        }
    }

    fn lower_index(&mut self, container: &'a IdedExpr, key: &'a IdedExpr) -> Lowered {
        let doubts_before = self.doubts.len();
        let container = self.lower(container)?;
        let end = self.advance_to_bracket(TokenKind::TokLeftBracket).1;
        let key = self.lower(key)?;
        let (facts, span) = (container.facts().and(key.facts()), (container.start, end));
        let node = Node::Index(Box::new([container.node, key.node]));
        Ok(self.fold(Part::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_in(&mut self, item: &'a IdedExpr, container: &'a IdedExpr) -> Lowered {
        let doubts_before = self.doubts.len();
        let item = self.lower(item)?;
        let container = self.lower(container)?;
        let (facts, span) = (item.facts().and(container.facts()), (item.start, container.end));
        let node = Node::In(Box::new([item.node, container.node]));
        Ok(self.fold(Part::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_binary(
        &mut self,
        operator: Operator,
        left: &'a IdedExpr,
        right: &'a IdedExpr,
    ) -> Lowered {
        let doubts_before = self.doubts.len();
        let left = self.lower(left)?;
        let right = self.lower(right)?;
        let (facts, span) = (left.facts().and(right.facts()), (left.start, right.end));
        let types = (left.node.types(), right.node.types());
        if !operator_takes(operator, types.0, types.1) {
            let symbol = operator.symbol();
            let (a, b) = (types.0.name(), types.1.name());
            let error = CompileError::new("wrong-arguments", span.0, span.1)
                .message(say!("`{symbol}` cannot be used with {a} and {b}"));
            let joins =
                operator == Operator::Add && (types.0 == Types::TEXT || types.1 == Types::TEXT);
            let is_equality = matches!(operator, Operator::Equal | Operator::NotEqual);
            self.doubts.push(*error.help(match (joins, is_equality) {
                (true, _) => say!("to join a number with text, convert the number with string(…)"),
                (_, true) => {
                    say!("text and bytes are never equal: convert the bytes with string(…)")
                }
                _ => Said::default(),
            }));
        }
        let node = Node::Binary(operator, Box::new([left.node, right.node]));
        Ok(self.fold(Part::new(node, span, true).with(&facts), doubts_before))
    }

    /// One of the macros, which the parser has written out as a loop with an accumulator.
    fn lower_each(&mut self, each: &'a ComprehensionExpr) -> Lowered {
        let doubts_before = self.doubts.len();
        let range = self.lower(&each.iter_range)?;
        if !range.node.types().may_be(Types::LIST.union(Types::MAP)) {
            let found = range.node.types().name();
            let fault = Fault(say!("only lists and maps can be iterated, not {found}"));
            self.doubt((range.start, range.end), fault);
        }
        let is_macro = |text: &str| {
            matches!(text, "all" | "exists" | "exists_one" | "existsOne" | "map" | "filter")
        };
        let call = self.advance(|kind, text| kind == TokenKind::TokIdent && is_macro(text));
        let end = call.and_then(|call| self.tokens.all.get(call + 1)).map(|it| it.closed_by);
        let span = (range.start, end.map_or(self.whole().1, |end| self.tokens.all[end].end));
        self.advance_to_name(&each.iter_var);
        let Some((kind, condition, result)) = macro_of(each) else {
            return Err(CompileError::new("bad-expression", span.0, span.1)
                .message(say!("this loop is not valid")));
        };
        let depth = self.locals.len();
        self.locals.push(&each.iter_var);
        let inner = self.lower_body(condition, result, depth);
        self.locals.truncate(depth);
        let (condition, result, facts) = inner?;
        let facts = facts.and(range.facts());
        let node = Node::Each(Box::new(Each { kind, range: range.node, condition, result }));
        Ok(self.fold(Part::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_body(
        &mut self,
        condition: Option<&'a IdedExpr>,
        result: Option<&'a IdedExpr>,
        depth: usize,
    ) -> Result<(Node, Node, Facts), Box<CompileError>> {
        let yes = (0, 0);
        let condition = match condition {
            Some(tree) => self.lower(tree)?,
            None => Part::constant(Value::Bool(true), yes),
        };
        self.expect_bool(&condition, "a loop");
        let variable = self.locals[depth];
        let is_item = |tree: &IdedExpr| matches!(&tree.expr, Expr::Ident(name) if name == variable);
        let result = match result.filter(|tree| !is_item(tree)) {
            Some(tree) => self.lower(tree)?,
            None => Part::new(Node::Local(depth as u16), yes, true),
        };
        let mut facts = condition.facts().and(result.facts());
        if facts.outermost_loop >= depth {
            // Only this loop's own variable, which nothing outside can see.
            facts.outermost_loop = usize::MAX;
        }
        Ok((condition.node, result.node, facts))
    }
}

/// The parts of a path and its first name: `a.b["c"]`.
fn path_of<'a>(tree: &'a IdedExpr, parts: &mut Vec<&'a str>) -> Option<&'a str> {
    let root = match &tree.expr {
        Expr::Ident(name) => {
            let name = name.trim_start_matches('.');
            parts.push(name);
            return Some(name);
        }
        Expr::Select(select) if !select.test => {
            let root = path_of(&select.operand, parts)?;
            parts.push(&select.field);
            root
        }
        Expr::Call(call) if call.func_name == operators::INDEX && call.target.is_none() => {
            let [container, IdedExpr { expr: Expr::Literal(LiteralValue::String(key)), .. }] =
                &call.args[..]
            else {
                return None;
            };
            let root = path_of(container, parts)?;
            parts.push(key.inner());
            root
        }
        _ => return None,
    };
    Some(root)
}

fn is_known(node: &Node) -> bool {
    match node {
        Node::Constant(_) => true,
        Node::Select { operand, .. } => is_known(operand),
        _ => false,
    }
}

/// What a macro tests and gives per item, found again in what the parser made of it.
type Macro<'a> = (EachKind, Option<&'a IdedExpr>, Option<&'a IdedExpr>);

fn macro_of(each: &ComprehensionExpr) -> Option<Macro<'_>> {
    let Expr::Call(step) = &each.loop_step.expr else { return None };
    match &each.accu_init.expr {
        Expr::Literal(LiteralValue::Boolean(start)) => {
            let kind = if *start.inner() { EachKind::All } else { EachKind::Exists };
            Some((kind, Some(step.args.get(1)?), None))
        }
        Expr::Literal(LiteralValue::Int(_)) => {
            Some((EachKind::ExistsOne, Some(step.args.first()?), None))
        }
        Expr::List(_) => {
            let (condition, added) = match step.func_name.as_str() {
                operators::CONDITIONAL => (Some(step.args.first()?), &step.args.get(1)?.expr),
                _ => (None, &each.loop_step.expr),
            };
            let Expr::Call(added) = added else { return None };
            let Expr::List(items) = &added.args.get(1)?.expr else { return None };
            Some((EachKind::Map, condition, Some(items.elements.first()?)))
        }
        _ => None,
    }
}

fn operator_of(name: &str) -> Option<Operator> {
    Some(match name {
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Remainder,
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::NotEqual,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterEqual,
        _ => return None,
    })
}

/// Whether an operator can have a result for operands of these types.
fn operator_takes(operator: Operator, left: Types, right: Types) -> bool {
    let both = |types: Types| left.may_be(types) && right.may_be(types);
    match operator {
        // Nothing is text for one user and bytes for another, so this is never meant.
        Operator::Equal | Operator::NotEqual => {
            !matches!((left, right), (Types::TEXT, Types::BYTES) | (Types::BYTES, Types::TEXT))
        }
        Operator::Add => {
            both(Types::NUMBER) || both(Types::TEXT) || both(Types::BYTES) || both(Types::LIST)
        }
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            both(Types::NUMBER)
        }
        _ => both(Types::NUMBER) || both(Types::TEXT) || both(Types::BYTES) || both(Types::BOOL),
    }
}

fn wrong_count(function: &FunctionDoc, count: usize, span: (usize, usize)) -> Box<CompileError> {
    let signature = function.signature();
    let name = function.name;
    CompileError::new("wrong-arguments", span.0, span.1)
        .message(say!("wrong number of arguments for `{name}`: {count}"))
        .label(say!("write `{signature}`"))
        .help(say!("`{name}` returns {}", function.doc))
}

fn unknown_function(name: &str, span: (usize, usize)) -> Box<CompileError> {
    let last = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
    let wanted = name.rsplit('.').next().unwrap_or(name);
    let macros = ["all", "exists", "exists_one", "filter", "map", "has"];
    let names = || FUNCTIONS.iter().map(|function| function.name);
    // `uuid()` means `random.uuid()`, and `uid()` nearly does.
    let near = names()
        .find(|function| last(function) == wanted)
        .or_else(|| did_you_mean(name, names().chain(macros)))
        .or_else(|| {
            let near = did_you_mean(wanted, names().map(last))?;
            names().find(|function| last(function) == near)
        });
    // `random(1, 10)` names a group of functions.
    let group =
        names().find_map(|function| Some(function.split_once('.')?.0).filter(|it| *it == name));
    let help = match name.split_once('.').map(|(namespace, _)| namespace).or(group) {
        Some(namespace) => {
            let all: Vec<String> = FUNCTIONS
                .iter()
                .filter(|function| function.name.split('.').next() == Some(namespace))
                .map(|function| format!("`{}`", function.signature()))
                .collect();
            say!("available: {}", all.join(", "))
        }
        None if name.starts_with("__") => {
            say!("JMeter functions are not supported: use a variable such as `${{vars.users}}`")
        }
        None => Said::default(),
    };
    CompileError::new("unknown-function", span.0, span.1)
        .message(say!("there is no function `{name}`"))
        .label(near.map_or_else(Said::default, |near| say!("did you mean `{near}`?")))
        .help(help)
}

/// The scope of constants: nothing is there, chance and time are fixed.
struct Nowhere {
    random: Random,
}

impl Nowhere {
    fn nothing() -> Fault {
        Fault(say!("names cannot be used in this expression"))
    }
}

impl Scope for Nowhere {
    fn user_id(&self) -> u64 {
        0
    }

    fn iteration(&self) -> u64 {
        0
    }

    fn slot(&self, _: u16) -> &Value {
        &Value::Null
    }

    fn field(&mut self, _: u16, _: u16) -> Result<Value, Fault> {
        Err(Nowhere::nothing())
    }

    fn row(&mut self, _: u16) -> Result<Value, Fault> {
        Err(Nowhere::nothing())
    }

    fn answer(&mut self, _: Answer) -> Result<Value, Fault> {
        Err(Nowhere::nothing())
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn unix_nanos(&self) -> u64 {
        0
    }
}
