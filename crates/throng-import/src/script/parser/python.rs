//! Python statements that occur in locustfiles: blocks by indentation.

use super::Parser;
use super::lexer::{Language, Token, TokenKind, tokens};
use crate::script::{Class, Counted, DEPTH_MAX, Expr, Function, ScriptKind, Statement};

pub(crate) fn statements(text: &str) -> Vec<Statement> {
    let tokens = tokens(text, Language::Python);
    let lines = logical_lines(&tokens);
    let mut reader = PythonReader { lines: &lines, at: 0 };
    reader.block(0, 0)
}

/// Tokens of one logical line: brackets hold lines together.
struct Line<'t> {
    tokens: &'t [Token],
    indent: usize,
}

fn logical_lines(tokens: &[Token]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let (mut start, mut depth) = (0, 0_i64);
    for (number, token) in tokens.iter().enumerate() {
        if token.begins_line && depth <= 0 && number > start {
            lines.push(Line { tokens: &tokens[start..number], indent: tokens[start].indent });
            start = number;
        }
        match token.kind {
            TokenKind::Sign("(" | "[" | "{") => depth += 1,
            TokenKind::Sign(")" | "]" | "}") => depth = (depth - 1).max(0),
            _ => {}
        }
    }
    if start < tokens.len() {
        lines.push(Line { tokens: &tokens[start..], indent: tokens[start].indent });
    }
    lines
}

struct PythonReader<'t> {
    lines: &'t [Line<'t>],
    at: usize,
}

impl<'t> PythonReader<'t> {
    /// The lines with at least this indentation.
    fn block(&mut self, indent: usize, depth: usize) -> Vec<Statement> {
        let mut out = Vec::new();
        let mut decorators = Vec::new();
        while let Some(line) = self.lines.get(self.at).filter(|line| line.indent >= indent) {
            self.at += 1;
            if depth >= DEPTH_MAX {
                continue;
            }
            let number = line.tokens[0].line;
            let mut parser = Parser::new(line.tokens, Language::Python);
            if parser.take_sign("@") {
                decorators.push(parser.expression());
                continue;
            }
            let kind = self.kind(&mut parser, line.indent, depth, &mut out);
            let Some(mut kind) = kind else { continue };
            if let ScriptKind::Function(Function { decorators: own, .. })
            | ScriptKind::Class(Class { decorators: own, .. }) = &mut kind
            {
                *own = std::mem::take(&mut decorators);
            }
            out.push(Statement { line: number, kind });
        }
        out
    }

    /// The block after a colon: on the same line, or below.
    fn body(&mut self, parser: &mut Parser<'t>, indent: usize, depth: usize) -> Vec<Statement> {
        while parser.peek().is_some() && !parser.is_sign(":") {
            parser.skip();
        }
        parser.take_sign(":");
        if parser.peek().is_some() {
            let line = parser.line();
            let kind = self.kind(parser, indent, depth + 1, &mut Vec::new());
            return kind.map(|kind| Statement { line, kind }).into_iter().collect();
        }
        self.block(indent + 1, depth + 1)
    }

    fn kind(
        &mut self,
        parser: &mut Parser<'t>,
        indent: usize,
        depth: usize,
        before: &mut [Statement],
    ) -> Option<ScriptKind> {
        if depth >= DEPTH_MAX {
            return None;
        }
        parser.take_word("async");
        let Some(TokenKind::Word(word)) = parser.peek() else { return Some(simple(parser)) };
        match word.as_str() {
            "import" | "from" | "pass" | "global" | "nonlocal" => Some(ScriptKind::Nothing),
            "def" => {
                parser.at += 1;
                let name = parser.name().unwrap_or_default();
                let parameters = parser.parameters();
                let body = self.body(parser, indent, depth);
                let function = Function { name, parameters, body, ..Function::default() };
                Some(ScriptKind::Function(function))
            }
            "class" => {
                parser.at += 1;
                let (name, bases) = class_head(parser);
                let body = self.body(parser, indent, depth);
                Some(ScriptKind::Class(Class { name, bases, body, ..Class::default() }))
            }
            "if" | "while" => {
                let is_loop = word == "while";
                parser.at += 1;
                let condition = parser.expression();
                let body = self.body(parser, indent, depth);
                Some(match is_loop {
                    true => ScriptKind::While(condition, body),
                    false => ScriptKind::If(condition, body, Vec::new()),
                })
            }
            "elif" | "else" => self.otherwise(parser, indent, depth, before),
            "for" => {
                parser.at += 1;
                let times = times(parser);
                Some(ScriptKind::For(times, self.body(parser, indent, depth)))
            }
            "with" => {
                parser.at += 1;
                let value = parser.expression();
                let name = parser.take_word("as").then(|| parser.name()).flatten();
                Some(ScriptKind::With(value, name, self.body(parser, indent, depth)))
            }
            "try" | "finally" => {
                parser.at += 1;
                let body = self.body(parser, indent, depth);
                Some(ScriptKind::If(Expr::Bool(true), body, Vec::new()))
            }
            "except" => {
                parser.at += 1;
                self.body(parser, indent, depth);
                None
            }
            "return" => {
                parser.at += 1;
                let value = parser.peek().is_some().then(|| parser.expression());
                Some(ScriptKind::Return(value))
            }
            "raise" | "del" | "assert" | "break" | "continue" | "yield" => {
                Some(ScriptKind::Other(word.clone()))
            }
            _ => Some(simple(parser)),
        }
    }

    /// `elif` and `else` belong to the statement before them.
    fn otherwise(
        &mut self,
        parser: &mut Parser<'t>,
        indent: usize,
        depth: usize,
        before: &mut [Statement],
    ) -> Option<ScriptKind> {
        let line = parser.line();
        let is_elif = parser.is_word("elif");
        parser.at += 1;
        let condition = if is_elif { parser.expression() } else { Expr::Bool(true) };
        let body = self.body(parser, indent, depth);
        let mut open = before.last_mut();
        while let Some(Statement { kind: ScriptKind::If(_, _, otherwise), .. }) = open {
            let is_chain = matches!(
                otherwise.as_slice(),
                [Statement { kind: ScriptKind::If(condition, ..), .. }]
                    if *condition != Expr::Bool(true)
            );
            if !is_chain {
                match is_elif {
                    true => otherwise.push(Statement {
                        line,
                        kind: ScriptKind::If(condition, body, Vec::new()),
                    }),
                    false => *otherwise = body,
                }
                return None;
            }
            open = otherwise.last_mut();
        }
        Some(ScriptKind::If(condition, body, Vec::new()))
    }
}

/// The name and the bases of a class.
fn class_head(parser: &mut Parser<'_>) -> (String, Vec<Expr>) {
    let name = parser.name().unwrap_or_default();
    let mut bases = Vec::new();
    if parser.is_sign("(") {
        parser.each(")", |parser| bases.push(parser.expression()));
    }
    (name, bases)
}

/// An expression or an assignment.
fn simple(parser: &mut Parser<'_>) -> ScriptKind {
    let value = parser.expression();
    if parser.take_sign(":") {
        // A type annotation.
        parser.expression();
    }
    if !parser.take_sign("=") {
        return match value {
            // A standalone text is a docstring.
            Expr::Text(_) => ScriptKind::Nothing,
            value => ScriptKind::Expr(value),
        };
    }
    let right = parser.expression();
    match value {
        Expr::Name(name) => ScriptKind::Let(vec![name], right),
        Expr::List(names) => {
            let names = names.into_iter().filter_map(|name| name.path()).collect();
            ScriptKind::Let(names, right)
        }
        target => ScriptKind::Assign(target, right),
    }
}

/// `for i in range(5)`: five times.
fn times(parser: &mut Parser<'_>) -> Option<Counted> {
    let name = parser.name()?;
    if !parser.take_word("in") {
        return None;
    }
    let list = parser.expression();
    let (path, arguments) = list.call()?;
    let number = |at: usize| match &arguments.get(at)?.value {
        Expr::Number(number) => number.parse::<u64>().ok(),
        _ => None,
    };
    let (from, to) = match (path.as_str(), arguments.len()) {
        ("range", 1) => (0, number(0)?),
        ("range", 2) => (number(0)?, number(1)?),
        _ => return None,
    };
    let times = to.checked_sub(from).filter(|times| (1..=1_000_000).contains(times))?;
    Some(Counted { name, from, times })
}
