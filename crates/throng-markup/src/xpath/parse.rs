//! Parses XPath 1.0 expressions to trees.

use throng_base::Said;

use super::function::Function;
use super::lex::{HELP, Placed, Token, lex};
use crate::fault::PathError;

/// Maximum nesting of parentheses, predicates and functions.
const NEST_MAX: usize = 32;

/// Most consecutive operators of one kind: each increases the depth of the tree.
const CHAIN_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Binary(Box<Expr>, Operator, Box<Expr>),
    Negate(Box<Expr>),
    Union(Vec<Expr>),
    Literal(String),
    Number(f64),
    Call(Function, Vec<Expr>),
    Path { from: From, steps: Vec<Step> },
}

impl Expr {
    /// The number of steps and predicates of its paths.
    pub(super) fn pieces(&self) -> usize {
        match self {
            Expr::Binary(left, _, right) => left.pieces() + right.pieces(),
            Expr::Negate(inner) => inner.pieces(),
            Expr::Union(parts) => parts.iter().map(Expr::pieces).sum(),
            Expr::Literal(_) | Expr::Number(_) | Expr::Call(..) => 1,
            Expr::Path { from, steps } => {
                let before = match from {
                    From::Root | From::Context => 0,
                    From::Expr(expr, predicates) => expr.pieces() + predicates.len(),
                };
                before + steps.iter().map(|step| 1 + step.predicates.len()).sum::<usize>()
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum From {
    Root,
    Context,
    Expr(Box<Expr>, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) axis: Axis,
    pub(super) test: Test,
    pub(super) predicates: Vec<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    Parent,
    Preceding,
    PrecedingSibling,
    Itself,
}

#[derive(Clone, Debug)]
pub(super) enum Test {
    /// `None` as name is any.
    Name(Option<String>, Option<String>),
    Node,
    Text,
    Comment,
    Instruction(Option<String>),
}

/// From the lowest to the highest precedence.
const LEVELS: [&[(&str, Operator)]; 6] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[("=", Operator::Equal), ("!=", Operator::NotEqual)],
    &[
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("times", Operator::Multiply), ("div", Operator::Divide), ("mod", Operator::Modulo)],
];

pub(super) fn parse(text: &str) -> Result<Expr, PathError> {
    let mut parser = Parser { tokens: lex(text)?, at: 0, depth: 0, end: text.len() };
    if parser.tokens.is_empty() {
        return Err(PathError::new((0, text.len()), say!("the path is empty"), HELP));
    }
    let expr = parser.expr()?;
    match parser.peek() {
        None => Ok(expr),
        Some(_) => Err(parser.wrong(say!("the path must end here"))),
    }
}

struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    depth: usize,
    end: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Option<&Token> {
        self.tokens.get(self.at + by).map(|placed| &placed.token)
    }

    fn is_mark(&self, by: usize, wanted: &str) -> bool {
        matches!(self.ahead(by), Some(Token::Mark(mark)) if *mark == wanted)
    }

    fn eat(&mut self, mark: &str) -> bool {
        let found = self.is_mark(0, mark);
        self.at += usize::from(found);
        found
    }

    fn place(&self) -> (usize, usize) {
        self.tokens.get(self.at).map_or((self.end, self.end), |placed| placed.place)
    }

    fn wrong(&self, message: Said) -> PathError {
        PathError::new(self.place(), message, HELP)
    }

    fn expect(&mut self, mark: &str) -> Result<(), PathError> {
        match self.eat(mark) {
            true => Ok(()),
            false => Err(self.wrong(say!("`{mark}` is missing here"))),
        }
    }

    fn expr(&mut self) -> Result<Expr, PathError> {
        self.depth += 1;
        if self.depth > NEST_MAX {
            return Err(self.wrong(say!("the path is nested too deeply")));
        }
        let expr = self.binary(0)?;
        self.depth -= 1;
        Ok(expr)
    }

    fn binary(&mut self, level: usize) -> Result<Expr, PathError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        for _ in 0..CHAIN_MAX {
            let found = operators.iter().find(|(mark, _)| self.is_mark(0, mark));
            let Some((_, operator)) = found else { return Ok(left) };
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = Expr::Binary(Box::new(left), *operator, Box::new(right));
        }
        Err(self.wrong(say!("too many operators in a row")))
    }

    fn unary(&mut self) -> Result<Expr, PathError> {
        let mut negative = false;
        while self.eat("-") {
            negative = !negative;
        }
        let expr = self.union()?;
        Ok(if negative { Expr::Negate(Box::new(expr)) } else { expr })
    }

    fn union(&mut self) -> Result<Expr, PathError> {
        let first = self.path()?;
        if !self.is_mark(0, "|") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat("|") {
            parts.push(self.path()?);
        }
        Ok(Expr::Union(parts))
    }

    fn path(&mut self) -> Result<Expr, PathError> {
        let mut steps = Vec::new();
        let from = if self.eat("//") {
            steps.push(anything_inside());
            self.steps(&mut steps)?;
            From::Root
        } else if self.eat("/") {
            if self.begins_step() {
                self.steps(&mut steps)?;
            }
            From::Root
        } else if self.begins_step() {
            self.steps(&mut steps)?;
            From::Context
        } else {
            let primary = self.primary()?;
            let predicates = self.predicates()?;
            if self.eat("//") {
                steps.push(anything_inside());
                self.steps(&mut steps)?;
            } else if self.eat("/") {
                self.steps(&mut steps)?;
            }
            if predicates.is_empty() && steps.is_empty() {
                return Ok(primary);
            }
            From::Expr(Box::new(primary), predicates)
        };
        Ok(Expr::Path { from, steps })
    }

    /// Whether a step is next, and not a function, a literal, a number or a parenthesis.
    fn begins_step(&self) -> bool {
        match self.peek() {
            Some(Token::Mark(mark)) => matches!(*mark, "." | ".." | "@"),
            Some(Token::Name(_, Some(name))) => !self.is_mark(1, "(") || is_node_type(name),
            Some(Token::Name(..)) => true,
            _ => false,
        }
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> Result<(), PathError> {
        loop {
            steps.push(self.step()?);
            if self.eat("//") {
                steps.push(anything_inside());
            } else if !self.eat("/") {
                return Ok(());
            }
        }
    }

    fn step(&mut self) -> Result<Step, PathError> {
        for (mark, axis) in [("..", Axis::Parent), (".", Axis::Itself)] {
            if self.eat(mark) {
                let predicates = self.predicates()?;
                return Ok(Step { axis, test: Test::Node, predicates });
            }
        }
        let axis = match (self.peek().cloned(), self.is_mark(1, "::")) {
            (Some(Token::Name(None, Some(name))), true) => {
                let Some(axis) = axis_of(&name) else {
                    let message = say!("`{name}` is not an XPath axis");
                    return Err(self.wrong(message));
                };
                self.at += 2;
                axis
            }
            _ if self.eat("@") => Axis::Attribute,
            _ => Axis::Child,
        };
        let test = self.test()?;
        let predicates = self.predicates()?;
        Ok(Step { axis, test, predicates })
    }

    fn test(&mut self) -> Result<Test, PathError> {
        let Some(Token::Name(prefix, name)) = self.peek().cloned() else {
            return Err(self.wrong(say!("a name, `*` or `@` is missing here")));
        };
        if !self.is_mark(1, "(") {
            self.at += 1;
            return Ok(Test::Name(prefix, name));
        }
        let test = match name.as_deref() {
            Some("node") => Test::Node,
            Some("text") => Test::Text,
            Some("comment") => Test::Comment,
            Some("processing-instruction") => match self.ahead(2) {
                Some(Token::Literal(name)) => {
                    let test = Test::Instruction(Some(name.clone()));
                    self.at += 1;
                    test
                }
                _ => Test::Instruction(None),
            },
            _ => return Err(self.wrong(say!("a function is not allowed after `/`"))),
        };
        self.at += 2;
        self.expect(")")?;
        Ok(test)
    }

    fn predicates(&mut self) -> Result<Vec<Expr>, PathError> {
        let mut predicates = Vec::new();
        while self.eat("[") {
            predicates.push(self.expr()?);
            self.expect("]")?;
        }
        Ok(predicates)
    }

    fn primary(&mut self) -> Result<Expr, PathError> {
        let expr = match self.peek().cloned() {
            Some(Token::Mark("(")) => {
                self.at += 1;
                let expr = self.expr()?;
                self.expect(")")?;
                return Ok(expr);
            }
            Some(Token::Literal(text)) => Expr::Literal(text),
            Some(Token::Number(number)) => Expr::Number(number),
            Some(Token::Name(_, Some(name))) => return self.call(&name),
            Some(_) => {
                return Err(self.wrong(say!("a path, a value or a function is missing here")));
            }
            None => return Err(self.wrong(say!("the path is incomplete"))),
        };
        self.at += 1;
        Ok(expr)
    }

    fn call(&mut self, name: &str) -> Result<Expr, PathError> {
        let Some(function) = Function::of(name) else {
            let message = say!("`{name}` is not an XPath 1.0 function");
            return Err(self.wrong(message));
        };
        let start = self.at;
        self.at += 2;
        let mut arguments = Vec::new();
        if !self.eat(")") {
            loop {
                arguments.push(self.expr()?);
                if self.eat(")") {
                    break;
                }
                if !self.eat(",") {
                    return Err(self.wrong(say!("`)` or `,` is missing here")));
                }
            }
        }
        let (least, most) = function.arguments();
        if arguments.len() < least || arguments.len() > most {
            self.at = start;
            let message = say!("`{name}` does not take {} arguments", arguments.len());
            return Err(self.wrong(message));
        }
        Ok(Expr::Call(function, arguments))
    }
}

fn anything_inside() -> Step {
    Step { axis: Axis::DescendantOrSelf, test: Test::Node, predicates: Vec::new() }
}

fn is_node_type(name: &str) -> bool {
    matches!(name, "node" | "text" | "comment" | "processing-instruction")
}

fn axis_of(name: &str) -> Option<Axis> {
    Some(match name {
        "ancestor" => Axis::Ancestor,
        "ancestor-or-self" => Axis::AncestorOrSelf,
        "attribute" => Axis::Attribute,
        "child" => Axis::Child,
        "descendant" => Axis::Descendant,
        "descendant-or-self" => Axis::DescendantOrSelf,
        "following" => Axis::Following,
        "following-sibling" => Axis::FollowingSibling,
        "parent" => Axis::Parent,
        "preceding" => Axis::Preceding,
        "preceding-sibling" => Axis::PrecedingSibling,
        "self" => Axis::Itself,
        _ => return None,
    })
}
