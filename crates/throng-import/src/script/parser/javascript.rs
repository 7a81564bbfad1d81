//! JavaScript statements that occur in k6 scripts.

use super::Parser;
use super::lexer::{Language, TokenKind, tokens};
use crate::script::{Counted, Expr, Function, ScriptKind, Statement};

pub(crate) fn statements(text: &str) -> Vec<Statement> {
    let tokens = tokens(text, Language::JavaScript);
    until(&mut Parser::new(&tokens, Language::JavaScript), |_| false)
}

fn until(parser: &mut Parser<'_>, is_end: fn(&Parser<'_>) -> bool) -> Vec<Statement> {
    let mut out = Vec::new();
    while parser.peek().is_some() && !is_end(parser) {
        let before = parser.at;
        out.extend(statement(parser));
        parser.at += usize::from(parser.at == before);
    }
    out
}

/// The statements between braces.
pub(super) fn block(parser: &mut Parser<'_>) -> Vec<Statement> {
    if !parser.take_sign("{") {
        return statement(parser).into_iter().collect();
    }
    let body = parser.nested(|parser| until(parser, |parser| parser.is_sign("}")));
    parser.take_sign("}");
    body.unwrap_or_default()
}

fn statement(parser: &mut Parser<'_>) -> Option<Statement> {
    let line = parser.line();
    let kind = parser.nested(kind).flatten()?;
    Some(Statement { line, kind })
}

fn kind(parser: &mut Parser<'_>) -> Option<ScriptKind> {
    if parser.take_sign(";") {
        return None;
    }
    if parser.is_sign("{") {
        let body = block(parser);
        return Some(ScriptKind::If(Expr::Bool(true), body, Vec::new()));
    }
    let Some(TokenKind::Word(word)) = parser.peek() else { return expression(parser) };
    match word.as_str() {
        "import" => {
            skip_statement(parser);
            Some(ScriptKind::Nothing)
        }
        "export" => {
            parser.at += 1;
            let is_default = parser.take_word("default");
            export(parser, is_default)
        }
        "const" | "let" | "var" => {
            parser.at += 1;
            Some(declaration(parser))
        }
        "async" | "function" => {
            parser.take_word("async");
            match parser.take_word("function") {
                true => Some(ScriptKind::Function(function(parser, false))),
                false => expression(parser),
            }
        }
        "if" => Some(condition(parser)),
        "for" => Some(loop_of(parser)),
        "while" => {
            parser.at += 1;
            let condition = parser.expression();
            Some(ScriptKind::While(condition, block(parser)))
        }
        "return" => {
            parser.at += 1;
            let is_empty = parser.is_sign(";") || parser.is_sign("}") || parser.begins_line();
            let value = if is_empty { None } else { Some(parser.expression()) };
            end_statement(parser);
            Some(ScriptKind::Return(value))
        }
        "try" => {
            parser.at += 1;
            let body = block(parser);
            if parser.take_word("catch") {
                parser.parameters();
                block(parser);
            }
            if parser.take_word("finally") {
                block(parser);
            }
            Some(ScriptKind::If(Expr::Bool(true), body, Vec::new()))
        }
        "class" | "switch" | "do" | "throw" | "break" | "continue" => {
            let text = word.clone();
            skip_statement(parser);
            Some(ScriptKind::Other(text))
        }
        _ => expression(parser),
    }
}

fn export(parser: &mut Parser<'_>, is_default: bool) -> Option<ScriptKind> {
    parser.take_word("async");
    if parser.take_word("function") {
        return Some(ScriptKind::Function(function(parser, is_default)));
    }
    if !is_default {
        return kind(parser);
    }
    let value = parser.expression();
    end_statement(parser);
    match value {
        Expr::Function(function) => {
            Some(ScriptKind::Function(Function { is_default: true, ..*function }))
        }
        _ => Some(ScriptKind::Other("export default".into())),
    }
}

pub(super) fn function(parser: &mut Parser<'_>, is_default: bool) -> Function {
    parser.take_sign("*");
    let name = if parser.is_sign("(") { String::new() } else { parser.name().unwrap_or_default() };
    let parameters = parser.parameters();
    let body = block(parser);
    Function { name, parameters, body, is_default, ..Function::default() }
}

fn declaration(parser: &mut Parser<'_>) -> ScriptKind {
    let mut names = Vec::new();
    if parser.is_sign("{") || parser.is_sign("[") {
        let mut inside = Parser { at: parser.at, ..*parser };
        inside.skip_bracket();
        while parser.at < inside.at {
            names.extend(parser.name());
            parser.at += usize::from(!matches!(parser.peek(), Some(TokenKind::Word(_))));
        }
    } else {
        names.extend(parser.name());
    }
    let value = match parser.take_sign("=") {
        true => parser.expression(),
        false => Expr::Null,
    };
    // `let a = 1, b = 2` is rare: the other names are ignored.
    end_statement(parser);
    ScriptKind::Let(names, value)
}

fn expression(parser: &mut Parser<'_>) -> Option<ScriptKind> {
    let value = parser.expression();
    let kind = if parser.take_sign("=") {
        let right = parser.expression();
        match value {
            Expr::Name(name) => ScriptKind::Let(vec![name], right),
            target => ScriptKind::Assign(target, right),
        }
    } else {
        ScriptKind::Expr(value)
    };
    end_statement(parser);
    Some(kind)
}

/// The rest of a statement is not supported.
fn end_statement(parser: &mut Parser<'_>) {
    while parser.peek().is_some()
        && !parser.is_sign(";")
        && !parser.is_sign("}")
        && !parser.begins_line()
    {
        parser.skip();
    }
    parser.take_sign(";");
}

fn skip_statement(parser: &mut Parser<'_>) {
    parser.at += 1;
    while parser.peek().is_some() && !parser.is_sign(";") && !parser.is_sign("}") {
        // `import x from 'y'` without a semicolon.
        let is_last = matches!(parser.peek(), Some(TokenKind::Sign("{") | TokenKind::Text(_)));
        parser.skip();
        if is_last && parser.begins_line() {
            break;
        }
    }
    parser.take_sign(";");
}

fn condition(parser: &mut Parser<'_>) -> ScriptKind {
    parser.at += 1;
    let condition = parser.expression();
    let then = block(parser);
    let otherwise = match parser.take_word("else") {
        true => block(parser),
        false => Vec::new(),
    };
    ScriptKind::If(condition, then, otherwise)
}

/// `for (let i = 0; i < 5; i++)`: five times.
fn loop_of(parser: &mut Parser<'_>) -> ScriptKind {
    parser.at += 1;
    parser.take_word("await");
    let start = parser.at;
    parser.skip_bracket();
    let head: Vec<&TokenKind> =
        parser.tokens[start..parser.at].iter().map(|token| &token.kind).collect();
    let number = |at: usize| match head.get(at) {
        Some(TokenKind::Number(number)) => number.parse::<u64>().ok(),
        _ => None,
    };
    let less = head.iter().position(|kind| matches!(kind, TokenKind::Sign("<" | "<=")));
    let equals = head.iter().position(|kind| matches!(kind, TokenKind::Sign("=")));
    let steps_by_one = head.iter().any(|kind| matches!(kind, TokenKind::Sign("++")));
    let counted = less.zip(equals).filter(|_| steps_by_one).and_then(|(less, equals)| {
        let (to, from) = (number(less + 1)?, number(equals + 1)?);
        let inclusive = u64::from(matches!(head[less], TokenKind::Sign("<=")));
        let name = match head.get(equals.checked_sub(1)?) {
            Some(TokenKind::Word(name)) => name.clone(),
            _ => return None,
        };
        Some(Counted { name, from, times: to.checked_sub(from)? + inclusive })
    });
    ScriptKind::For(counted.filter(|it| (1..=1_000_000).contains(&it.times)), block(parser))
}
