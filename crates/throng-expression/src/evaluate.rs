//! Evaluates a tree. No name is looked up, nothing is compiled except computed patterns, and every
//! evaluation ends after [`STEPS_MAX`] steps.

use std::sync::Arc;

use crate::call::{Call, FunctionDoc, charge, too_much, unsuited};
use crate::node::{Each, EachKind, Node};
use crate::numbers;
use crate::numbers::Operator;
use crate::scope::{EvaluationError, Scope};
use crate::value::Value;

/// Maximum cost of an evaluation: one step per node of the tree, and per 64 bytes of text.
pub const STEPS_MAX: u32 = 1_000_000;

/// Maximum nesting of lists and maps, so that writing one cannot overflow the stack.
pub const VALUE_DEPTH_MAX: usize = 128;

pub(crate) struct Evaluator<'a> {
    pub scope: &'a mut dyn Scope,
    pub steps_left: u32,
    /// The variables of the enclosing loops, outermost first.
    locals: Vec<Value>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(scope: &'a mut dyn Scope, steps: u32) -> Evaluator<'a> {
        Evaluator { scope, steps_left: steps, locals: Vec::new() }
    }

    /// For a node that is inside this many loops and does not use their variables.
    pub(crate) fn inside_loops(mut self, loops: usize) -> Evaluator<'a> {
        self.locals.resize(loops, Value::Null);
        self
    }

    pub(crate) fn evaluate(&mut self, node: &Node) -> Result<Value, EvaluationError> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or_else(too_much)?;
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::UserId => Ok(Value::from(self.scope.user_id())),
            Node::Iteration => Ok(Value::from(self.scope.iteration())),
            Node::Slot { slot, .. } => Ok(self.scope.slot(*slot).clone()),
            Node::Setup { value, .. } => Ok(self.scope.setup(*value).clone()),
            Node::Field { source, column } => self.scope.field(*source, *column),
            Node::Row(source) => self.scope.row(*source),
            Node::Answer(part) => self.scope.answer(*part),
            Node::Local(depth) => {
                Ok(self.locals.get(usize::from(*depth)).cloned().unwrap_or_default())
            }
            Node::Select { operand, field } => {
                let operand = self.operand(operand)?;
                select(&operand, field)
            }
            Node::Has(path) => Ok(Value::Bool(self.find(path)?.is_some_and(|it| !it.is_null()))),
            Node::Index(operands) => {
                let [container, key] = self.operands(operands)?;
                index(&container, &key)
            }
            Node::In(operands) => {
                let [item, container] = self.operands(operands)?;
                self.is_in(&item, &container).map(Value::Bool)
            }
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Not(operand) => Ok(Value::Bool(!self.condition(operand, "!")?)),
            Node::Negate(operand) => {
                let value = self.operand(operand)?;
                numbers::negate(&value).unwrap_or_else(|| Err(not_for("-", &value)))
            }
            Node::And(operands) => self.decide(operands, false),
            Node::Or(operands) => self.decide(operands, true),
            Node::Conditional(parts) => match self.condition(&parts[0], "?")? {
                true => self.evaluate(&parts[1]),
                false => self.evaluate(&parts[2]),
            },
            Node::Binary(operator, operands) => self.binary(*operator, operands),
            Node::Call(function, arguments) => self.call(function, arguments),
            Node::Matches(parts) => {
                let value = self.operand(&parts.0)?;
                let text = value.as_text().ok_or_else(|| not_for("matches", &value))?;
                charge(&mut self.steps_left, text.len())?;
                Ok(Value::Bool(parts.1.is_match(text)))
            }
            Node::Each(each) => self.each(each),
        }
    }

    /// A value that an operation uses: a slot without a value is named.
    fn operand(&mut self, node: &Node) -> Result<Value, EvaluationError> {
        let value = self.evaluate(node)?;
        match node {
            Node::Slot { name, .. } | Node::Setup { name, .. } if value.is_null() => {
                Err(no_value_yet(name))
            }
            _ => Ok(value),
        }
    }

    fn operands(&mut self, nodes: &[Node; 2]) -> Result<[Value; 2], EvaluationError> {
        Ok([self.operand(&nodes[0])?, self.operand(&nodes[1])?])
    }

    fn condition(&mut self, node: &Node, operator: &str) -> Result<bool, EvaluationError> {
        let value = self.operand(node)?;
        value.as_bool().ok_or_else(|| {
            let found = value.type_name();
            EvaluationError(say!("`{operator}` takes true or false, not {found}"))
        })
    }

    /// `&&` and `||` as in CEL: if one side alone decides, the result is known even if the other
    /// side has no value.
    fn decide(&mut self, nodes: &[Node; 2], deciding: bool) -> Result<Value, EvaluationError> {
        let operator = if deciding { "||" } else { "&&" };
        let left = self.condition(&nodes[0], operator);
        if left == Ok(deciding) {
            return Ok(Value::Bool(deciding));
        }
        match self.condition(&nodes[1], operator) {
            Ok(right) if right == deciding => Ok(Value::Bool(deciding)),
            right => left.and(right).map(Value::Bool),
        }
    }

    /// The value of a path, or `None` if a part of it is missing.
    fn find(&mut self, path: &Node) -> Result<Option<Value>, EvaluationError> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or_else(too_much)?;
        match path {
            Node::Select { operand, field } => {
                Ok(self.find(operand)?.and_then(|value| value.get(field).cloned()))
            }
            Node::Index(parts) => {
                let Some(container) = self.find(&parts[0])? else { return Ok(None) };
                let key = self.evaluate(&parts[1])?;
                Ok(index(&container, &key).ok())
            }
            other => self.evaluate(other).map(Some),
        }
    }

    fn list(&mut self, nodes: &[Node]) -> Result<Value, EvaluationError> {
        let mut items = Vec::with_capacity(nodes.len());
        for node in nodes {
            let item = self.evaluate(node)?;
            self.check_depth(&item)?;
            items.push(item);
        }
        Ok(Value::from(items))
    }

    fn map(&mut self, nodes: &[(Node, Node)]) -> Result<Value, EvaluationError> {
        let mut entries: Vec<(Arc<str>, Value)> = Vec::with_capacity(nodes.len());
        for (key, value) in nodes {
            let key = self.operand(key)?;
            if !matches!(key, Value::Text(_) | Value::Int(_) | Value::UInt(_) | Value::Bool(_)) {
                let found = key.type_name();
                return Err(EvaluationError(say!("the keys of a map must be text, not {found}")));
            }
            let key = key.to_text();
            if entries.iter().any(|(other, _)| *other == key) {
                return Err(EvaluationError(say!("the key `{key}` occurs twice in a map")));
            }
            let value = self.evaluate(value)?;
            self.check_depth(&value)?;
            entries.push((key, value));
        }
        Ok(Value::from(entries))
    }

    /// A value is about to be nested in a list or map: saved values could grow deeper with every
    /// iteration.
    fn check_depth(&mut self, value: &Value) -> Result<(), EvaluationError> {
        match fits(value, VALUE_DEPTH_MAX - 1, &mut self.steps_left)? {
            true => Ok(()),
            false => Err(EvaluationError(say!(
                "lists and maps cannot be nested more than {VALUE_DEPTH_MAX} levels deep"
            ))),
        }
    }

    fn is_in(&mut self, item: &Value, container: &Value) -> Result<bool, EvaluationError> {
        match container {
            Value::List(items) => {
                charge(&mut self.steps_left, items.len() * 8)?;
                Ok(items.iter().any(|other| other.equals(item)))
            }
            Value::Map(_) => Ok(container.get(&item.to_text()).is_some()),
            Value::Text(_) => Err(EvaluationError(say!(
                "`in` supports only lists and maps: for text, write `text.contains(part)`"
            ))),
            other => Err(not_for("in", other)),
        }
    }

    fn binary(&mut self, operator: Operator, nodes: &[Node; 2]) -> Result<Value, EvaluationError> {
        match operator {
            // Whether something was saved may be tested, so null is a value here.
            Operator::Equal | Operator::NotEqual => {
                let (left, right) = (self.evaluate(&nodes[0])?, self.evaluate(&nodes[1])?);
                charge(&mut self.steps_left, weight(&left).min(weight(&right)))?;
                Ok(Value::Bool(left.equals(&right) == (operator == Operator::Equal)))
            }
            Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual => {
                let [left, right] = self.operands(nodes)?;
                compare(operator, &left, &right).map(Value::Bool)
            }
            _ => {
                let [left, right] = self.operands(nodes)?;
                if operator == Operator::Add {
                    let bytes = weight(&left).saturating_add(weight(&right));
                    charge(&mut self.steps_left, bytes)?;
                }
                combine(operator, &left, &right)
            }
        }
    }

    fn call(
        &mut self,
        function: &'static FunctionDoc,
        nodes: &[Node],
    ) -> Result<Value, EvaluationError> {
        const FEW: usize = 4;
        // Nearly every call has few arguments, which then need no heap memory.
        let mut few = [const { Value::Null }; FEW];
        let mut many = Vec::new();
        let arguments = match nodes.len() {
            0..=FEW => &mut few[..nodes.len()],
            count => {
                many.resize(count, Value::Null);
                &mut many[..]
            }
        };
        for (index, (argument, node)) in arguments.iter_mut().zip(nodes).enumerate() {
            *argument = self.operand(node)?;
            if !argument.types().may_be(function.parameter(index)) {
                return Err(unsuited(function, index, argument));
            }
        }
        let scope = &mut *self.scope;
        let steps_left = &mut self.steps_left;
        (function.body)(&mut Call { function, arguments, scope, steps_left })
    }

    fn each(&mut self, each: &Each) -> Result<Value, EvaluationError> {
        let range = self.operand(&each.range)?;
        let count = match &range {
            Value::List(items) => items.len(),
            Value::Map(entries) => entries.len(),
            other => {
                let found = other.type_name();
                return Err(EvaluationError(say!(
                    "only lists and maps can be iterated, not {found}"
                )));
            }
        };
        let depth = self.locals.len();
        let mut gathered = Gathered::default();
        for position in 0..count {
            let item = match &range {
                Value::Map(entries) => {
                    entries.get(position).map(|(key, _)| Value::from(key.clone()))
                }
                list => list.index(position).cloned(),
            };
            self.locals.push(item.unwrap_or_default());
            let outcome = self.visit(each, &mut gathered);
            self.locals.truncate(depth);
            if outcome? {
                break;
            }
        }
        gathered.finish(each.kind)
    }

    /// One item of a loop; true if the loop can stop.
    fn visit(&mut self, each: &Each, gathered: &mut Gathered) -> Result<bool, EvaluationError> {
        let condition = self.condition(&each.condition, "a loop");
        match (each.kind, condition) {
            (EachKind::All, Ok(false)) | (EachKind::Exists, Ok(true)) => {
                gathered.decided = true;
                return Ok(true);
            }
            (EachKind::All | EachKind::Exists, Err(error)) => {
                // As with `&&` and `||`: a later item may decide alone.
                gathered.error.get_or_insert(error);
                return Ok(self.steps_left == 0);
            }
            (EachKind::ExistsOne, Ok(true)) => gathered.count += 1,
            (EachKind::Map, Ok(true)) => {
                let item = self.evaluate(&each.result)?;
                self.check_depth(&item)?;
                gathered.items.push(item);
            }
            (_, condition) => drop(condition?),
        }
        Ok(false)
    }
}

/// The results of a loop so far.
#[derive(Default)]
struct Gathered {
    decided: bool,
    error: Option<EvaluationError>,
    count: usize,
    items: Vec<Value>,
}

impl Gathered {
    fn finish(self, kind: EachKind) -> Result<Value, EvaluationError> {
        match (kind, self.decided, self.error) {
            (EachKind::All, true, _) => Ok(Value::Bool(false)),
            (EachKind::Exists, true, _) => Ok(Value::Bool(true)),
            (EachKind::All | EachKind::Exists, false, Some(error)) => Err(error),
            (EachKind::All, ..) => Ok(Value::Bool(true)),
            (EachKind::Exists, ..) => Ok(Value::Bool(false)),
            (EachKind::ExistsOne, ..) => Ok(Value::Bool(self.count == 1)),
            (EachKind::Map, ..) => Ok(Value::from(self.items)),
        }
    }
}

pub(crate) fn no_value_yet(name: &str) -> EvaluationError {
    EvaluationError(say!("`{name}` has no value yet"))
}

fn not_for(operator: &str, value: &Value) -> EvaluationError {
    let found = value.type_name();
    EvaluationError(say!("`{operator}` does not take {found}"))
}

/// Most names of a map's entries that a message lists.
const SHOWN_NAMES_MAX: usize = 8;

pub(crate) fn select(value: &Value, field: &str) -> Result<Value, EvaluationError> {
    if let Some(found) = value.get(field) {
        return Ok(found.clone());
    }
    Err(EvaluationError(match value {
        Value::Map(entries) if entries.is_empty() => say!("there is no field `{field}`"),
        Value::Map(entries) => {
            let names: Vec<&str> =
                entries.iter().take(SHOWN_NAMES_MAX).map(|(name, _)| &**name).collect();
            say!("there is no field `{field}`; available: {}", names.join(", "))
        }
        other => say!("there is no field `{field}` in {}", other.type_name()),
    }))
}

fn index(container: &Value, key: &Value) -> Result<Value, EvaluationError> {
    match (container, key) {
        (Value::List(items), key) => {
            let position = key.as_i64().ok_or_else(|| {
                let found = key.type_name();
                EvaluationError(say!("a list index must be a whole number, not {found}"))
            })?;
            let item = usize::try_from(position).ok().and_then(|position| items.get(position));
            item.cloned().ok_or_else(|| {
                let count = items.len();
                EvaluationError(say!(
                    "index {position} is out of range: the list has {count} items, counted from 0"
                ))
            })
        }
        (Value::Map(_), Value::Text(field)) => select(container, field),
        (Value::Map(_), key) => select(container, &key.to_text()),
        (other, _) => {
            let found = other.type_name();
            Err(EvaluationError(say!("only lists and maps can be indexed, not {found}")))
        }
    }
}

fn compare(operator: Operator, left: &Value, right: &Value) -> Result<bool, EvaluationError> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = left.compare(right);
    let is_nan = |value: &Value| value.as_f64().is_some_and(f64::is_nan);
    match (operator, order) {
        // NaN is neither less nor greater than any number.
        (_, None) if is_nan(left) || is_nan(right) => Ok(false),
        (_, None) => {
            let (symbol, a, b) = (operator.symbol(), left.type_name(), right.type_name());
            Err(EvaluationError(say!("`{symbol}` cannot compare {a} with {b}")))
        }
        (Operator::Less, Some(order)) => Ok(order == Less),
        (Operator::LessEqual, Some(order)) => Ok(order != Greater),
        (Operator::Greater, Some(order)) => Ok(order == Greater),
        (_, Some(order)) => Ok(matches!(order, Greater | Equal)),
    }
}

/// Combines two values: numbers by arithmetic, texts, bytes and lists by concatenation.
fn combine(operator: Operator, left: &Value, right: &Value) -> Result<Value, EvaluationError> {
    match (operator, left, right) {
        (Operator::Add, Value::Text(a), Value::Text(b)) => {
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Ok(Value::from(text))
        }
        (Operator::Add, Value::Bytes(a), Value::Bytes(b)) => {
            Ok(Value::from([&a[..], &b[..]].concat()))
        }
        (Operator::Add, Value::List(a), Value::List(b)) => {
            Ok(Value::List(a.iter().chain(b.iter()).cloned().collect()))
        }
        _ => numbers::arithmetic(operator, left, right).unwrap_or_else(|| {
            let (symbol, a, b) = (operator.symbol(), left.type_name(), right.type_name());
            Err(EvaluationError(say!("`{symbol}` cannot combine {a} and {b}")))
        }),
    }
}

/// About how many bytes must be read to copy or compare the value.
fn weight(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len() * 8,
        Value::Map(entries) => entries.len() * 16,
        _ => 0,
    }
}

/// Whether lists and maps are nested at most `depth` deep.
fn fits(value: &Value, depth: usize, steps_left: &mut u32) -> Result<bool, EvaluationError> {
    if !matches!(value, Value::List(_) | Value::Map(_)) {
        return Ok(true);
    }
    let Some(depth) = depth.checked_sub(1) else { return Ok(false) };
    charge(steps_left, weight(value).max(64))?;
    match value {
        Value::List(items) => {
            for item in items.iter() {
                if !fits(item, depth, steps_left)? {
                    return Ok(false);
                }
            }
        }
        Value::Map(entries) => {
            for (_, item) in entries.iter() {
                if !fits(item, depth, steps_left)? {
                    return Ok(false);
                }
            }
        }
        _ => {}
    }
    Ok(true)
}
