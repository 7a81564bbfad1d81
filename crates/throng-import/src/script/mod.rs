//! Scripts of k6 (JavaScript) and Locust (Python), as far as plain requests go: a tolerant lexer
//! and parser, and an evaluator that knows constants, requests and responses. It never runs code;
//! what it does not understand comes back as such, with its line.

mod parser;
pub(crate) mod walk;
pub(crate) mod world;

pub(crate) use parser::{javascript, python};

/// How deep expressions and blocks may stand in each other.
const DEPTH_MAX: usize = 60;

/// A statement and the line on which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// `const {a, b} = …` has several names; `x = …` is one, too.
    Let(Vec<String>, Expr),
    /// To something that is not a name, such as `self.token`.
    Assign(Expr, Expr),
    Expr(Expr),
    If(Expr, Vec<Statement>, Vec<Statement>),
    /// How often, if it is plain.
    For(Option<Counted>, Vec<Statement>),
    While(Expr, Vec<Statement>),
    Return(Option<Expr>),
    Function(Function),
    Class(Class),
    /// `with … as name:`
    With(Expr, Option<String>, Vec<Statement>),
    /// Nothing that matters: imports, `pass`, texts that document.
    Nothing,
    /// As it is written, shortened.
    Other(String),
}

/// A loop over whole numbers.
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
    /// A text with expressions inside.
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

/// Of a call; Python names some.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: Option<String>,
    pub(crate) value: Expr,
}

impl Statement {
    pub(crate) fn is_function(&self, name: &str) -> bool {
        matches!(&self.kind, Kind::Function(function) if function.name == name)
    }
}

impl Expr {
    pub(crate) fn text(text: &str) -> Expr {
        Expr::Text(vec![TextPart::Literal(text.into())])
    }

    /// `http.get` of a name and members.
    pub(crate) fn path(&self) -> Option<String> {
        match self {
            Expr::Name(name) => Some(name.clone()),
            Expr::Member(inner, name) => Some(format!("{}.{name}", inner.path()?)),
            _ => None,
        }
    }

    /// What is called, and with what.
    pub(crate) fn call(&self) -> Option<(String, &[Argument])> {
        match self {
            Expr::Call(callee, arguments) => Some((callee.path()?, arguments)),
            _ => None,
        }
    }
}

/// The argument of that name, or at that place.
pub(crate) fn argument<'a>(arguments: &'a [Argument], name: &str, at: usize) -> Option<&'a Expr> {
    let named = arguments.iter().find(|one| one.name.as_deref() == Some(name));
    named
        .or_else(|| arguments.iter().filter(|one| one.name.is_none()).nth(at))
        .map(|one| &one.value)
}
