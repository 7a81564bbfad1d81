//! Scripts of k6 (JavaScript) and Locust (Python), limited to plain requests: a tolerant lexer and
//! parser, and an evaluator for constants, requests and responses. It never runs code; unsupported
//! code is returned with its line.

mod parser;
pub(crate) mod walk;
pub(crate) mod world;

pub(crate) use parser::{javascript, python};

/// The maximum nesting of expressions and blocks.
const DEPTH_MAX: usize = 60;

/// A statement and the line on which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) line: usize,
    pub(crate) kind: ScriptKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ScriptKind {
    /// `const {a, b} = …` has several names; `x = …` is one, too.
    Let(Vec<String>, Expr),
    /// To a member such as `self.token`.
    Assign(Expr, Expr),
    Expr(Expr),
    If(Expr, Vec<Statement>, Vec<Statement>),
    /// The number of iterations, if it is constant.
    For(Option<Counted>, Vec<Statement>),
    While(Expr, Vec<Statement>),
    Return(Option<Expr>),
    Function(Function),
    Class(Class),
    /// `with … as name:`
    With(Expr, Option<String>, Vec<Statement>),
    /// Without effect: imports, `pass`, docstrings.
    Nothing,
    /// As written, shortened.
    Other(String),
}

/// A loop over integers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counted {
    pub(crate) name: String,
    pub(crate) from: u64,
    pub(crate) times: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) parameters: Vec<String>,
    pub(crate) body: Vec<Statement>,
    pub(crate) decorators: Vec<Expr>,
    pub(crate) is_default: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) bases: Vec<Expr>,
    pub(crate) body: Vec<Statement>,
    pub(crate) decorators: Vec<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    /// A text with embedded expressions.
    Text(Vec<TextPart>),
    Number(String),
    Bool(bool),
    Null,
    Name(String),
    Member(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Call(Box<Expr>, Vec<Argument>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Binary(String, Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Minus(Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    Function(Box<Function>),
    Other,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TextPart {
    Literal(String),
    Value(Box<Expr>),
}

/// An argument of a call; Python has named ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: Option<String>,
    pub(crate) value: Expr,
}

impl Statement {
    pub(crate) fn is_function(&self, name: &str) -> bool {
        matches!(&self.kind, ScriptKind::Function(function) if function.name == name)
    }
}

impl Expr {
    pub(crate) fn text(text: &str) -> Expr {
        Expr::Text(vec![TextPart::Literal(text.into())])
    }

    /// `http.get` for a name and its members.
    pub(crate) fn path(&self) -> Option<String> {
        match self {
            Expr::Name(name) => Some(name.clone()),
            Expr::Member(inner, name) => Some(format!("{}.{name}", inner.path()?)),
            _ => None,
        }
    }

    /// The called function, and its arguments.
    pub(crate) fn call(&self) -> Option<(String, &[Argument])> {
        match self {
            Expr::Call(callee, arguments) => Some((callee.path()?, arguments)),
            _ => None,
        }
    }
}

/// The argument with that name, or at that position.
pub(crate) fn argument<'a>(arguments: &'a [Argument], name: &str, at: usize) -> Option<&'a Expr> {
    let named = arguments.iter().find(|one| one.name.as_deref() == Some(name));
    named
        .or_else(|| arguments.iter().filter(|one| one.name.is_none()).nth(at))
        .map(|one| &one.value)
}
