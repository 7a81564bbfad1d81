//! Lowers the parsed tree to the evaluated one: names become slots, constant parts become values,
//! and errors that can be found early are reported.

use throng_base::diagnostic::did_you_mean;
use throng_base::{Random, Said};

use crate::call::FunctionDoc;
use crate::error::CompileError;
use crate::evaluate::Evaluator;
use crate::functions::{self, FUNCTIONS, cipher};
use crate::names::{Names, Path};
use crate::node::{Each, Node};
use crate::numbers::Operator;
use crate::parser::{Call, Join, Loop, Shape, Tree};
use crate::scope::{Answer, EvaluationError, Scope};
use crate::text;
use crate::types::Types;
use crate::value::Value;

/// Maximum cost of computing the constant parts of one expression; more expensive ones are not
/// folded.
const FOLD_STEPS_MAX: u32 = 20_000;

/// The node, or the first error.
pub(crate) fn lower(tree: &Tree<'_>, names: &mut dyn Names) -> Result<Node, Box<CompileError>> {
    let mut lowering =
        Lowering { names, locals: Vec::new(), doubts: Vec::new(), steps_left: FOLD_STEPS_MAX };
    let part = lowering.lower(tree)?;
    match lowering.doubts.into_iter().next() {
        Some(doubt) => Err(Box::new(doubt)),
        None => Ok(part.node),
    }
}

/// A node and its properties.
struct SourcePart {
    node: Node,
    start: usize,
    end: usize,
    /// It depends on nothing but its own constants.
    is_constant: bool,
    /// The outermost loop whose variable it uses.
    outermost_loop: usize,
}

impl SourcePart {
    fn constant(value: Value, span: (usize, usize)) -> SourcePart {
        SourcePart::new(Node::Constant(value), span, true)
    }

    fn new(node: Node, span: (usize, usize), is_constant: bool) -> SourcePart {
        SourcePart { node, start: span.0, end: span.1, is_constant, outermost_loop: usize::MAX }
    }

    /// Adds the properties of a nested part.
    fn with(mut self, inner: &Facts) -> SourcePart {
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

type Lowered = Result<SourcePart, Box<CompileError>>;

struct Lowering<'a> {
    names: &'a mut dyn Names,
    /// The variables of the enclosing loops.
    locals: Vec<&'a str>,
    /// Parts that have no value if they are ever evaluated; a constant condition may drop them.
    doubts: Vec<CompileError>,
    steps_left: u32,
}

impl<'a> Lowering<'a> {
    fn lower(&mut self, tree: &'a Tree<'a>) -> Lowered {
        if let Some(part) = self.lower_path(tree) {
            return part;
        }
        let span = (tree.start, tree.end);
        match &tree.shape {
            Shape::Value(value) => Ok(SourcePart::constant(value.clone(), span)),
            Shape::Name(name) => Ok(self.lower_local(name, span)),
            Shape::Field { of, name, .. } => self.lower_field(of, name, span),
            Shape::Index(parts) => self.lower_index(parts, span),
            Shape::Has(field) => self.lower_has(field, span),
            Shape::List(elements) => self.lower_list(elements, span),
            Shape::Map(entries) => self.lower_map(entries, span),
            Shape::Not(operand) => self.lower_not(operand, span),
            Shape::Negate(operand) => self.lower_negate(operand, span),
            Shape::Join(Join::Or, parts) => self.lower_logic(true, parts),
            Shape::Join(Join::And, parts) => self.lower_logic(false, parts),
            Shape::Join(Join::In, parts) => self.lower_in(parts),
            Shape::Join(Join::Operator(operator), parts) => self.lower_binary(*operator, parts),
            Shape::Conditional(parts) => self.lower_conditional(parts),
            Shape::Call(call) => self.lower_call(call, tree.end),
            Shape::Each(each) => self.lower_each(each, span),
        }
    }

    fn doubt(&mut self, span: (usize, usize), error: EvaluationError) {
        let error = CompileError::new("wrong-arguments", span.0, span.1).message(error.0);
        self.doubts.push(*error);
    }

    /// Computes a constant part. One without a value is doubtful, unless a nested part already was.
    fn fold(&mut self, mut part: SourcePart, doubts_before: usize) -> SourcePart {
        let known = part.is_constant && part.outermost_loop >= self.locals.len();
        if !known || matches!(part.node, Node::Constant(_)) {
            return part;
        }
        match self.trial(&part.node) {
            Some(Ok(value)) => {
                self.doubts.truncate(doubts_before);
                part.node = Node::Constant(value);
            }
            Some(Err(error)) if self.doubts.len() == doubts_before => {
                self.doubt((part.start, part.end), error);
            }
            _ => {}
        }
        part
    }

    /// Evaluates the node in an empty scope; `None` if that takes too long.
    fn trial(&mut self, node: &Node) -> Option<Result<Value, EvaluationError>> {
        let mut nowhere = Nowhere { random: Random::new(0) };
        let evaluator = Evaluator::new(&mut nowhere, self.steps_left);
        let mut evaluator = evaluator.inside_loops(self.locals.len());
        let result = evaluator.evaluate(node);
        self.steps_left = evaluator.steps_left;
        (self.steps_left > 0).then_some(result)
    }

    fn lower_local(&mut self, name: &str, span: (usize, usize)) -> SourcePart {
        let depth = self.locals.iter().rposition(|local| *local == name).unwrap_or_default();
        let mut part = SourcePart::new(Node::Local(depth as u16), span, true);
        part.outermost_loop = depth;
        part
    }

    /// A path that starts with a name of the scenario; `None` if it is something else.
    fn lower_path(&mut self, tree: &'a Tree<'a>) -> Option<Lowered> {
        let (mut parts, mut spans) = (Vec::new(), Vec::new());
        path_of(tree, &mut parts, &mut spans)?;
        if self.locals.contains(&parts[0]) {
            return None;
        }
        let path = Path { parts: &parts, spans: &spans };
        let span = (path.start(), path.end());
        Some(path.node(self.names, &mut self.doubts).map(|node| {
            let is_constant = is_known(&node);
            SourcePart::new(node, span, is_constant)
        }))
    }

    fn lower_has(&mut self, field: &'a Tree<'a>, span: (usize, usize)) -> Lowered {
        let doubts_before = self.doubts.len();
        let part = self.lower(field)?;
        // A missing field is the result here, not an error.
        self.doubts.truncate(doubts_before);
        let facts = part.facts();
        let part = SourcePart::new(Node::Has(Box::new(part.node)), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn lower_field(&mut self, of: &'a Tree<'a>, name: &str, span: (usize, usize)) -> Lowered {
        let doubts_before = self.doubts.len();
        let operand = self.lower(of)?;
        let facts = operand.facts();
        let node = Node::Select { operand: Box::new(operand.node), field: name.into() };
        Ok(self.fold(SourcePart::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_list(&mut self, elements: &'a [Tree<'a>], span: (usize, usize)) -> Lowered {
        let doubts_before = self.doubts.len();
        let mut facts = Facts::NONE;
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            let item = self.lower(element)?;
            facts = facts.and(item.facts());
            items.push(item.node);
        }
        let part = SourcePart::new(Node::List(items.into()), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn lower_map(&mut self, written: &'a [(Tree<'a>, Tree<'a>)], span: (usize, usize)) -> Lowered {
        let doubts_before = self.doubts.len();
        let mut facts = Facts::NONE;
        let mut entries = Vec::with_capacity(written.len());
        for (key_tree, value) in written {
            let key = self.lower(key_tree).map_err(|error| match &key_tree.shape {
                Shape::Name(name) => error.label(say!("write `'{name}'` if it is text")),
                _ => error,
            })?;
            let value = self.lower(value)?;
            facts = facts.and(key.facts()).and(value.facts());
            entries.push((key.node, value.node));
        }
        let part = SourcePart::new(Node::Map(entries.into()), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn lower_call(&mut self, call: &'a Call<'a>, end: usize) -> Lowered {
        let Call { target, name, name_start, arguments } = call;
        let span = (*name_start, end);
        if let Some(target) = target {
            return self.lower_method(call, target, span);
        }
        if let ("dyn", [operand]) = (*name, &arguments[..]) {
            return self.lower(operand);
        }
        let function = functions::find(name).ok_or_else(|| unknown_function(name, span))?;
        self.lower_function(function, None, arguments, span)
    }

    /// `target.function(…)`: a function with a dot in its name, or a method of the target's value.
    fn lower_method(
        &mut self,
        call: &'a Call<'a>,
        target: &'a Tree<'a>,
        span: (usize, usize),
    ) -> Lowered {
        let name = call.name;
        if let Some(namespace) = self.namespace_of(target) {
            let full = format!("{namespace}.{name}");
            let mut is_name = || self.names.resolve(&[namespace]).is_ok();
            let function = functions::find(&full);
            if function.is_some() || !is_name() {
                let span = (target.start, span.1);
                let function = function.ok_or_else(|| unknown_function(&full, span))?;
                return self.lower_function(function, None, &call.arguments, span);
            }
        }
        let target = self.lower(target)?;
        let function = functions::find(name).ok_or_else(|| unknown_function(name, span))?;
        let span = (target.start, span.1);
        self.lower_function(function, Some(target), &call.arguments, span)
    }

    /// A group of functions such as `random` or `now`, unless a loop variable has this name.
    fn namespace_of(&self, target: &Tree<'a>) -> Option<&'a str> {
        let Shape::Name(name) = target.shape else { return None };
        let dotted = |function: &FunctionDoc| {
            function.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        };
        let is_namespace = FUNCTIONS.iter().any(dotted) && !self.locals.contains(&name);
        is_namespace.then_some(name)
    }

    fn lower_function(
        &mut self,
        function: &'static FunctionDoc,
        target: Option<SourcePart>,
        trees: &'a [Tree<'a>],
        span: (usize, usize),
    ) -> Lowered {
        let count = trees.len() + usize::from(target.is_some());
        if !function.takes(count) {
            return Err(wrong_count(function, count, span));
        }
        let doubts_before = self.doubts.len();
        let mut parts: Vec<SourcePart> = Vec::with_capacity(count);
        parts.extend(target);
        for tree in trees {
            parts.push(self.lower(tree)?);
        }
        let facts = parts.iter().fold(Facts::NONE, |facts, part| facts.and(part.facts()));
        self.expect_arguments(function, &parts);
        let mut part = match self.constant_pattern(function, &parts) {
            Some(pattern) => {
                let text = parts.remove(0);
                SourcePart::new(Node::Matches(Box::new((text.node, pattern))), span, true)
            }
            None => {
                let arguments = parts.into_iter().map(|part| part.node).collect();
                SourcePart::new(Node::Call(function, arguments), span, true)
            }
        }
        .with(&facts);
        if !function.is_pure() {
            // Random values and the time are unknown now, but calls that can never succeed are
            // found.
            let known = part.is_constant && part.outermost_loop >= self.locals.len();
            let trial = if known { self.trial(&part.node) } else { None };
            if let (Some(Err(error)), true) = (trial, self.doubts.len() == doubts_before) {
                self.doubt(span, error);
            }
            part.is_constant = false;
        }
        Ok(self.fold(part, doubts_before))
    }

    /// Reports arguments of wrong types, and constant ones of wrong lengths.
    fn expect_arguments(&mut self, function: &FunctionDoc, parts: &[SourcePart]) {
        for (index, part) in parts.iter().enumerate() {
            let (expected, found) = (function.parameter(index), part.node.types());
            if !found.may_be(expected) {
                let (name, expected, found) = (function.name, expected.name(), found.name());
                let message = say!("`{name}` takes {expected}, not {found}");
                self.doubt((part.start, part.end), EvaluationError(message));
            }
            if let Node::Constant(value) = &part.node
                && let Some(octets) = value.as_octets()
                && let Err(error) = cipher::check_length(function, index, octets.len())
            {
                self.doubt((part.start, part.end), error);
            }
        }
    }

    /// The compiled pattern of a `matches` with a constant pattern.
    fn constant_pattern(
        &mut self,
        function: &FunctionDoc,
        parts: &[SourcePart],
    ) -> Option<regex::Regex> {
        let pattern = parts.get(1).filter(|_| function.name == "matches")?;
        let Node::Constant(Value::Text(text)) = &pattern.node else { return None };
        let span = (pattern.start, pattern.end);
        text::pattern(text).map_err(|error| self.doubt(span, error)).ok()
    }

    fn lower_conditional(&mut self, [condition, yes, no]: &'a [Tree<'a>; 3]) -> Lowered {
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
        Ok(self.fold(SourcePart::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_logic(&mut self, deciding: bool, [left, right]: &'a [Tree<'a>; 2]) -> Lowered {
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
            return Ok(SourcePart::constant(Value::Bool(deciding), span));
        }
        let facts = left.facts().and(right.facts());
        let operands = Box::new([left.node, right.node]);
        let node = if deciding { Node::Or(operands) } else { Node::And(operands) };
        Ok(self.fold(SourcePart::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_not(&mut self, operand: &'a Tree<'a>, span: (usize, usize)) -> Lowered {
        let doubts_before = self.doubts.len();
        let operand = self.lower(operand)?;
        self.expect_bool(&operand, "!");
        let facts = operand.facts();
        let part = SourcePart::new(Node::Not(Box::new(operand.node)), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn lower_negate(&mut self, operand: &'a Tree<'a>, span: (usize, usize)) -> Lowered {
        let doubts_before = self.doubts.len();
        let operand = self.lower(operand)?;
        if !operand.node.types().may_be(Types::NUMBER) {
            let found = operand.node.types().name();
            let error = EvaluationError(say!("`-` takes a number, not {found}"));
            self.doubt((operand.start, operand.end), error);
        }
        let facts = operand.facts();
        let part = SourcePart::new(Node::Negate(Box::new(operand.node)), span, true).with(&facts);
        Ok(self.fold(part, doubts_before))
    }

    fn expect_bool(&mut self, part: &SourcePart, operator: &str) {
        let types = part.node.types();
        if !types.may_be(Types::BOOL) {
            let found = types.name();
            let error = EvaluationError(say!("`{operator}` takes true or false, not {found}"));
            self.doubt((part.start, part.end), error);
        }
    }

    fn lower_index(
        &mut self,
        [container, key]: &'a [Tree<'a>; 2],
        span: (usize, usize),
    ) -> Lowered {
        let doubts_before = self.doubts.len();
        let container = self.lower(container)?;
        let key = self.lower(key)?;
        let facts = container.facts().and(key.facts());
        let node = Node::Index(Box::new([container.node, key.node]));
        Ok(self.fold(SourcePart::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_in(&mut self, [item, container]: &'a [Tree<'a>; 2]) -> Lowered {
        let doubts_before = self.doubts.len();
        let item = self.lower(item)?;
        let container = self.lower(container)?;
        let (facts, span) = (item.facts().and(container.facts()), (item.start, container.end));
        let node = Node::In(Box::new([item.node, container.node]));
        Ok(self.fold(SourcePart::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_binary(&mut self, operator: Operator, [left, right]: &'a [Tree<'a>; 2]) -> Lowered {
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
        Ok(self.fold(SourcePart::new(node, span, true).with(&facts), doubts_before))
    }

    fn lower_each(&mut self, each: &'a Loop<'a>, span: (usize, usize)) -> Lowered {
        let doubts_before = self.doubts.len();
        let range = self.lower(&each.range)?;
        if !range.node.types().may_be(Types::LIST.union(Types::MAP)) {
            let found = range.node.types().name();
            let error = EvaluationError(say!("only lists and maps can be iterated, not {found}"));
            self.doubt((range.start, range.end), error);
        }
        let depth = self.locals.len();
        self.locals.push(each.variable);
        let inner = self.lower_body(each, depth);
        self.locals.truncate(depth);
        let (condition, result, facts) = inner?;
        let facts = facts.and(range.facts());
        let each = Each { kind: each.kind, range: range.node, condition, result };
        Ok(self.fold(
            SourcePart::new(Node::Each(Box::new(each)), span, true).with(&facts),
            doubts_before,
        ))
    }

    fn lower_body(
        &mut self,
        each: &'a Loop<'a>,
        depth: usize,
    ) -> Result<(Node, Node, Facts), Box<CompileError>> {
        let condition = match &each.condition {
            Some(tree) => self.lower(tree)?,
            None => SourcePart::constant(Value::Bool(true), (0, 0)),
        };
        self.expect_bool(&condition, "a loop");
        let result = match &each.result {
            Some(tree) => self.lower(tree)?,
            None => self.lower_local(each.variable, (0, 0)),
        };
        let mut facts = condition.facts().and(result.facts());
        if facts.outermost_loop >= depth {
            // The loop's own variable is not visible outside.
            facts.outermost_loop = usize::MAX;
        }
        Ok((condition.node, result.node, facts))
    }
}

/// The parts of a path, `a.b["c"]`, with their positions.
fn path_of<'a>(
    tree: &'a Tree<'a>,
    parts: &mut Vec<&'a str>,
    spans: &mut Vec<(usize, usize)>,
) -> Option<()> {
    let (part, span) = match &tree.shape {
        Shape::Name(name) => (*name, (tree.start, tree.end)),
        Shape::Field { of, name, span } => {
            path_of(of, parts, spans)?;
            (*name, *span)
        }
        Shape::Index(index) => {
            let [container, Tree { start, end, shape: Shape::Value(Value::Text(key)) }] = &**index
            else {
                return None;
            };
            path_of(container, parts, spans)?;
            (&**key, (*start, *end))
        }
        _ => return None,
    };
    parts.push(part);
    spans.push(span);
    Some(())
}

fn is_known(node: &Node) -> bool {
    match node {
        Node::Constant(_) => true,
        Node::Select { operand, .. } => is_known(operand),
        _ => false,
    }
}

/// Whether an operator can have a result for operands of these types.
fn operator_takes(operator: Operator, left: Types, right: Types) -> bool {
    let both = |types: Types| left.may_be(types) && right.may_be(types);
    match operator {
        // No value is text for one user and bytes for another, so this is always a mistake.
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

/// The scope of constants: it is empty, with fixed randomness and time.
struct Nowhere {
    random: Random,
}

impl Nowhere {
    fn nothing() -> EvaluationError {
        EvaluationError(say!("names cannot be used in this expression"))
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

    fn field(&mut self, _: u16, _: u16) -> Result<Value, EvaluationError> {
        Err(Nowhere::nothing())
    }

    fn row(&mut self, _: u16) -> Result<Value, EvaluationError> {
        Err(Nowhere::nothing())
    }

    fn answer(&mut self, _: Answer) -> Result<Value, EvaluationError> {
        Err(Nowhere::nothing())
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn unix_nanos(&self) -> u64 {
        0
    }
}
