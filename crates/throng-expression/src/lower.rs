//! Lowers the parsed tree to the evaluated one: names become slots, constant parts become values,
//! and errors that can be found early are reported.

use throng_base::Said;
use throng_base::diagnostic::did_you_mean;

use crate::call::FunctionDoc;
use crate::error::CompileError;
use crate::evaluate::Evaluator;
use crate::functions::{self, FUNCTIONS, cipher};
use crate::names::{Names, Path};
use crate::node::{Each, Node};
use crate::numbers::Operator;
use crate::parser::{Call, Join, Loop, Shape, Tree};
use crate::scope::{EvaluationError, Nowhere};
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

/// Positions in the source: start and end.
type Span = (usize, usize);

struct SourcePart {
    node: Node,
    place: Span,
    facts: Facts,
}

/// Properties of a node.
#[derive(Clone, Copy)]
struct Facts {
    /// It depends on nothing but its own constants.
    is_constant: bool,
    /// The outermost loop whose variable it uses.
    outermost_loop: usize,
}

impl Facts {
    const CONSTANT: Facts = Facts { is_constant: true, outermost_loop: usize::MAX };

    fn and(self, other: Facts) -> Facts {
        Facts {
            is_constant: self.is_constant && other.is_constant,
            outermost_loop: self.outermost_loop.min(other.outermost_loop),
        }
    }

    fn of(parts: &[SourcePart]) -> Facts {
        parts.iter().fold(Facts::CONSTANT, |facts, part| facts.and(part.facts))
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
        let doubts_before = self.doubts.len();
        let part = self.lower_shape(tree)?;
        Ok(self.fold(part, doubts_before))
    }

    fn lower_shape(&mut self, tree: &'a Tree<'a>) -> Lowered {
        let place = (tree.start, tree.end);
        match &tree.shape {
            Shape::Value(value) => {
                let node = Node::Constant(value.clone());
                Ok(SourcePart { node, place, facts: Facts::CONSTANT })
            }
            Shape::Name(name) => Ok(self.lower_local(name, place)),
            Shape::Field { of, name, .. } => {
                let of = self.lower(of)?;
                let node = Node::Select { operand: Box::new(of.node), field: (*name).into() };
                Ok(SourcePart { node, place, facts: of.facts })
            }
            Shape::Index(parts) => Ok(SourcePart { place, ..self.lower_pair(parts, Node::Index)? }),
            Shape::Has(field) => {
                let doubts_before = self.doubts.len();
                let part = self.lower(field)?;
                // A missing field is the result here, not an error.
                self.doubts.truncate(doubts_before);
                Ok(SourcePart { node: Node::Has(Box::new(part.node)), place, facts: part.facts })
            }
            Shape::List(elements) => {
                let items = self.lower_all(elements)?;
                let facts = Facts::of(&items);
                let node = Node::List(items.into_iter().map(|item| item.node).collect());
                Ok(SourcePart { node, place, facts })
            }
            Shape::Map(entries) => self.lower_map(entries, place),
            Shape::Not(operand) => {
                let operand = self.lower(operand)?;
                self.expect_bool(&operand, "!");
                let node = Node::Not(Box::new(operand.node));
                Ok(SourcePart { node, place, facts: operand.facts })
            }
            Shape::Negate(operand) => {
                let operand = self.lower(operand)?;
                let told = |found| say!("`-` takes a number, not {found}");
                self.expect(&operand, Types::NUMBER, told);
                let node = Node::Negate(Box::new(operand.node));
                Ok(SourcePart { node, place, facts: operand.facts })
            }
            Shape::Join(Join::Or, parts) => self.lower_logic(true, parts),
            Shape::Join(Join::And, parts) => self.lower_logic(false, parts),
            Shape::Join(Join::In, parts) => self.lower_pair(parts, Node::In),
            Shape::Join(Join::Operator(operator), parts) => self.lower_binary(*operator, parts),
            Shape::Conditional(parts) => self.lower_conditional(parts),
            Shape::Call(call) => self.lower_call(call, tree.end),
            Shape::Each(each) => self.lower_each(each, place),
        }
    }

    fn lower_all(
        &mut self,
        trees: impl IntoIterator<Item = &'a Tree<'a>>,
    ) -> Result<Vec<SourcePart>, Box<CompileError>> {
        trees.into_iter().map(|tree| self.lower(tree)).collect()
    }

    fn lower_pair(
        &mut self,
        [left, right]: &'a [Tree<'a>; 2],
        node: fn(Box<[Node; 2]>) -> Node,
    ) -> Lowered {
        let (left, right) = (self.lower(left)?, self.lower(right)?);
        Ok(SourcePart {
            place: (left.place.0, right.place.1),
            facts: left.facts.and(right.facts),
            node: node(Box::new([left.node, right.node])),
        })
    }

    fn doubt(&mut self, place: Span, error: EvaluationError) {
        let error = CompileError::new("wrong-arguments", place.0, place.1).message(error.0);
        self.doubts.push(*error);
    }

    /// True if the value of a part can be computed here.
    fn is_known(&self, part: &SourcePart) -> bool {
        part.facts.is_constant && part.facts.outermost_loop >= self.locals.len()
    }

    /// Computes a constant part. One without a value is doubtful, unless a nested part already was.
    fn fold(&mut self, mut part: SourcePart, doubts_before: usize) -> SourcePart {
        if !self.is_known(&part) || matches!(part.node, Node::Constant(_)) {
            return part;
        }
        match self.trial(&part.node) {
            Some(Ok(value)) => {
                self.doubts.truncate(doubts_before);
                part.node = Node::Constant(value);
            }
            Some(Err(error)) if self.doubts.len() == doubts_before => {
                self.doubt(part.place, error);
            }
            _ => {}
        }
        part
    }

    /// Evaluates the node in an empty scope; `None` if that takes too long.
    fn trial(&mut self, node: &Node) -> Option<Result<Value, EvaluationError>> {
        let mut nowhere = Nowhere::default();
        let evaluator = Evaluator::new(&mut nowhere, self.steps_left);
        let mut evaluator = evaluator.inside_loops(self.locals.len());
        let result = evaluator.evaluate(node);
        self.steps_left = evaluator.steps_left;
        (self.steps_left > 0).then_some(result)
    }

    fn lower_local(&mut self, name: &str, place: Span) -> SourcePart {
        let depth = self.locals.iter().rposition(|local| *local == name).unwrap_or_default();
        let facts = Facts { is_constant: true, outermost_loop: depth };
        SourcePart { node: Node::Local(depth as u16), place, facts }
    }

    /// A path that starts with a name of the scenario; `None` if it is something else.
    fn lower_path(&mut self, tree: &'a Tree<'a>) -> Option<Lowered> {
        let (mut parts, mut spans) = (Vec::new(), Vec::new());
        path_of(tree, &mut parts, &mut spans)?;
        if self.locals.contains(&parts[0]) {
            return None;
        }
        let path = Path { parts: &parts, spans: &spans };
        let place = (path.start(), path.end());
        Some(path.node(self.names, &mut self.doubts).map(|node| {
            let facts = Facts { is_constant: is_known(&node), ..Facts::CONSTANT };
            SourcePart { node, place, facts }
        }))
    }

    fn lower_map(&mut self, written: &'a [(Tree<'a>, Tree<'a>)], place: Span) -> Lowered {
        let mut facts = Facts::CONSTANT;
        let mut entries = Vec::with_capacity(written.len());
        for (key_tree, value) in written {
            let key = self.lower(key_tree).map_err(|error| match &key_tree.shape {
                Shape::Name(name) => error.label(say!("write `'{name}'` if it is text")),
                _ => error,
            })?;
            let value = self.lower(value)?;
            facts = facts.and(key.facts).and(value.facts);
            entries.push((key.node, value.node));
        }
        Ok(SourcePart { node: Node::Map(entries.into()), place, facts })
    }

    fn lower_call(&mut self, call: &'a Call<'a>, end: usize) -> Lowered {
        let Call { target, name, name_start, arguments } = call;
        let place = (*name_start, end);
        if let Some(target) = target {
            return self.lower_method(call, target, place);
        }
        if let ("dyn", [operand]) = (*name, &arguments[..]) {
            return self.lower(operand);
        }
        let function = functions::find(name).ok_or_else(|| unknown_function(name, place))?;
        self.lower_function(function, None, arguments, place)
    }

    /// `target.function(…)`: a function with a dot in its name, or a method of the target's value.
    fn lower_method(&mut self, call: &'a Call<'a>, target: &'a Tree<'a>, place: Span) -> Lowered {
        let name = call.name;
        if let Some(namespace) = self.namespace_of(target) {
            let full = format!("{namespace}.{name}");
            let mut is_name = || self.names.resolve(&[namespace]).is_ok();
            let function = functions::find(&full);
            if function.is_some() || !is_name() {
                let place = (target.start, place.1);
                let function = function.ok_or_else(|| unknown_function(&full, place))?;
                return self.lower_function(function, None, &call.arguments, place);
            }
        }
        let target = self.lower(target)?;
        let function = functions::find(name).ok_or_else(|| unknown_function(name, place))?;
        let place = (target.place.0, place.1);
        self.lower_function(function, Some(target), &call.arguments, place)
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
        place: Span,
    ) -> Lowered {
        let count = trees.len() + usize::from(target.is_some());
        if !function.takes(count) {
            return Err(wrong_count(function, count, place));
        }
        let doubts_before = self.doubts.len();
        let mut parts = self.lower_all(trees)?;
        parts.splice(0..0, target);
        let facts = Facts::of(&parts);
        self.expect_arguments(function, &parts);
        let node = match self.constant_pattern(function, &parts) {
            Some(pattern) => Node::Matches(Box::new((parts.remove(0).node, pattern))),
            None => Node::Call(function, parts.into_iter().map(|part| part.node).collect()),
        };
        let mut part = SourcePart { node, place, facts };
        if !function.is_pure() {
            // Random values and the time are unknown now, but calls that can never succeed are
            // found.
            let trial = if self.is_known(&part) { self.trial(&part.node) } else { None };
            if let (Some(Err(error)), true) = (trial, self.doubts.len() == doubts_before) {
                self.doubt(place, error);
            }
            part.facts.is_constant = false;
        }
        Ok(part)
    }

    /// Reports arguments of wrong types, and constant ones of wrong lengths.
    fn expect_arguments(&mut self, function: &FunctionDoc, parts: &[SourcePart]) {
        for (index, part) in parts.iter().enumerate() {
            let (name, expected) = (function.name, function.parameter(index));
            let told = |found| say!("`{name}` takes {}, not {found}", expected.name());
            self.expect(part, expected, told);
            if let Node::Constant(value) = &part.node
                && let Some(octets) = value.as_octets()
                && let Err(error) = cipher::check_length(function, index, octets.len())
            {
                self.doubt(part.place, error);
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
        text::pattern(text).map_err(|error| self.doubt(pattern.place, error)).ok()
    }

    fn lower_conditional(&mut self, [condition, yes, no]: &'a [Tree<'a>; 3]) -> Lowered {
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
        let facts = condition.facts.and(yes.facts).and(no.facts);
        let place = (condition.place.0, no.place.1);
        let node = Node::Conditional(Box::new([condition.node, yes.node, no.node]));
        Ok(SourcePart { node, place, facts })
    }

    fn lower_logic(&mut self, deciding: bool, [left, right]: &'a [Tree<'a>; 2]) -> Lowered {
        let operator = if deciding { "||" } else { "&&" };
        let left = self.lower(left)?;
        self.expect_bool(&left, operator);
        let doubts_of_left = self.doubts.len();
        let right = self.lower(right)?;
        self.expect_bool(&right, operator);
        let place = (left.place.0, right.place.1);
        if matches!(left.node, Node::Constant(Value::Bool(value)) if value == deciding) {
            self.doubts.truncate(doubts_of_left);
            return Ok(SourcePart { place, ..left });
        }
        let facts = left.facts.and(right.facts);
        let operands = Box::new([left.node, right.node]);
        let node = if deciding { Node::Or(operands) } else { Node::And(operands) };
        Ok(SourcePart { node, place, facts })
    }

    fn expect(&mut self, part: &SourcePart, types: Types, told: impl FnOnce(Said) -> Said) {
        let found = part.node.types();
        if !found.may_be(types) {
            self.doubt(part.place, EvaluationError(told(found.name())));
        }
    }

    fn expect_bool(&mut self, part: &SourcePart, operator: &str) {
        let told = |found| say!("`{operator}` takes true or false, not {found}");
        self.expect(part, Types::BOOL, told);
    }

    fn lower_binary(&mut self, operator: Operator, [left, right]: &'a [Tree<'a>; 2]) -> Lowered {
        let (left, right) = (self.lower(left)?, self.lower(right)?);
        let (facts, place) = (left.facts.and(right.facts), (left.place.0, right.place.1));
        let types = (left.node.types(), right.node.types());
        if !operator_takes(operator, types.0, types.1) {
            let symbol = operator.symbol();
            let (a, b) = (types.0.name(), types.1.name());
            let error = CompileError::new("wrong-arguments", place.0, place.1)
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
        Ok(SourcePart { node, place, facts })
    }

    fn lower_each(&mut self, each: &'a Loop<'a>, place: Span) -> Lowered {
        let range = self.lower(&each.range)?;
        let told = |found| say!("only lists and maps can be iterated, not {found}");
        self.expect(&range, Types::LIST.union(Types::MAP), told);
        let depth = self.locals.len();
        self.locals.push(each.variable);
        let inner = self.lower_body(each, depth);
        self.locals.truncate(depth);
        let (condition, result, facts) = inner?;
        let facts = facts.and(range.facts);
        let each = Each { kind: each.kind, range: range.node, condition, result };
        Ok(SourcePart { node: Node::Each(Box::new(each)), place, facts })
    }

    fn lower_body(
        &mut self,
        each: &'a Loop<'a>,
        depth: usize,
    ) -> Result<(Node, Node, Facts), Box<CompileError>> {
        let (condition, facts) = match &each.condition {
            Some(tree) => {
                let condition = self.lower(tree)?;
                self.expect_bool(&condition, "a loop");
                (condition.node, condition.facts)
            }
            None => (Node::Constant(Value::Bool(true)), Facts::CONSTANT),
        };
        let result = match &each.result {
            Some(tree) => self.lower(tree)?,
            None => self.lower_local(each.variable, (0, 0)),
        };
        let mut facts = facts.and(result.facts);
        if facts.outermost_loop >= depth {
            // The loop's own variable is not visible outside.
            facts.outermost_loop = usize::MAX;
        }
        Ok((condition, result.node, facts))
    }
}

/// The parts of a path, `a.b["c"]`, with their positions.
fn path_of<'a>(tree: &'a Tree<'a>, parts: &mut Vec<&'a str>, spans: &mut Vec<Span>) -> Option<()> {
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

fn wrong_count(function: &FunctionDoc, count: usize, place: Span) -> Box<CompileError> {
    let signature = function.signature();
    let name = function.name;
    CompileError::new("wrong-arguments", place.0, place.1)
        .message(say!("wrong number of arguments for `{name}`: {count}"))
        .label(say!("write `{signature}`"))
        .help(say!("`{name}` returns {}", function.doc))
}

fn unknown_function(name: &str, place: Span) -> Box<CompileError> {
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
    CompileError::new("unknown-function", place.0, place.1)
        .message(say!("there is no function `{name}`"))
        .label(near.map_or_else(Said::default, |near| say!("did you mean `{near}`?")))
        .help(help)
}
