//! Parses tokens to the tree of an expression, by precedence climbing. Each part knows its position
//! in the text. The macros of CEL are loops in the tree, not calls.

use crate::error::CompileError;
use crate::lexer::TokenKind;
use crate::node::EachKind;
use crate::numbers::Operator;
use crate::tokens::Tokens;
use crate::value::Value;

/// A part of an expression, as written.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub start: usize,
    pub end: usize,
    pub shape: Shape<'a>,
}

#[derive(Debug)]
pub(crate) enum Shape<'a> {
    Value(Value),
    Name(&'a str),
    /// `of.name`; `span` is that of the name.
    Field {
        of: Box<Tree<'a>>,
        name: &'a str,
        span: (usize, usize),
    },
    Index(Box<[Tree<'a>; 2]>),
    /// `has(…)`, and the field in it.
    Has(Box<Tree<'a>>),
    List(Vec<Tree<'a>>),
    Map(Vec<(Tree<'a>, Tree<'a>)>),
    Not(Box<Tree<'a>>),
    Negate(Box<Tree<'a>>),
    Join(Join, Box<[Tree<'a>; 2]>),
    /// Condition, value if true, value if false.
    Conditional(Box<[Tree<'a>; 3]>),
    Call(Call<'a>),
    Each(Box<Loop<'a>>),
}

/// `name(…)` or `target.name(…)`.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub target: Option<Box<Tree<'a>>>,
    pub name: &'a str,
    pub name_start: usize,
    pub arguments: Vec<Tree<'a>>,
}

/// `range.map(variable, condition, result)` and the other macros.
#[derive(Debug)]
pub(crate) struct Loop<'a> {
    pub kind: EachKind,
    pub range: Tree<'a>,
    pub variable: &'a str,
    pub condition: Option<Tree<'a>>,
    /// The item itself if there is none.
    pub result: Option<Tree<'a>>,
}

/// The operator between two operands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Join {
    Or,
    And,
    In,
    Operator(Operator),
}

/// The operator of a sign, and its precedence.
fn join_of(sign: &str) -> Option<(Join, u8)> {
    Some(match sign {
        "||" => (Join::Or, 1),
        "&&" => (Join::And, 2),
        "in" => (Join::In, 3),
        "==" => (Join::Operator(Operator::Equal), 3),
        "!=" => (Join::Operator(Operator::NotEqual), 3),
        "<" => (Join::Operator(Operator::Less), 3),
        "<=" => (Join::Operator(Operator::LessEqual), 3),
        ">" => (Join::Operator(Operator::Greater), 3),
        ">=" => (Join::Operator(Operator::GreaterEqual), 3),
        "+" => (Join::Operator(Operator::Add), 4),
        "-" => (Join::Operator(Operator::Subtract), 4),
        "*" => (Join::Operator(Operator::Multiply), 5),
        "/" => (Join::Operator(Operator::Divide), 5),
        "%" => (Join::Operator(Operator::Remainder), 5),
        _ => return None,
    })
}

type Parsed<T> = Result<T, Box<CompileError>>;

/// The tree of the whole text, or the first error.
pub(crate) fn parse<'a>(tokens: &'a Tokens<'a>) -> Parsed<Tree<'a>> {
    let mut parser = Parser { tokens, next: 0 };
    let tree = parser.expression()?;
    match tokens.all.len() > parser.next {
        true => Err(parser.unexpected(parser.next)),
        false => Ok(tree),
    }
}

struct Parser<'a> {
    tokens: &'a Tokens<'a>,
    /// The next token.
    next: usize,
}

impl<'a> Parser<'a> {
    fn is(&self, sign: &'static str) -> bool {
        self.tokens.kind(self.next) == Some(TokenKind::Sign(sign))
    }

    fn takes(&mut self, sign: &'static str) -> bool {
        let found = self.is(sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &'static str) -> Parsed<()> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(self.unexpected(self.next)),
        }
    }

    fn span(&self, index: usize) -> (usize, usize) {
        self.tokens.all.get(index).map_or((0, 0), |token| (token.start, token.end))
    }

    /// The end of the part whose last token was just read.
    fn end(&self) -> usize {
        self.span(self.next - 1).1
    }

    fn expression(&mut self) -> Parsed<Tree<'a>> {
        let condition = self.joined(1)?;
        if !self.takes("?") {
            return Ok(condition);
        }
        let yes = self.joined(1)?;
        self.expect(":")?;
        let no = self.expression()?;
        let (start, end) = (condition.start, no.end);
        Ok(Tree { start, end, shape: Shape::Conditional(Box::new([condition, yes, no])) })
    }

    /// Operands and the operators between them with at least this precedence.
    fn joined(&mut self, weakest: u8) -> Parsed<Tree<'a>> {
        let mut left = self.operand()?;
        while let Some(TokenKind::Sign(sign)) = self.tokens.kind(self.next)
            && let Some((join, strength)) = join_of(sign)
            && strength >= weakest
        {
            self.next += 1;
            let right = self.joined(strength + 1)?;
            let (start, end) = (left.start, right.end);
            left = Tree { start, end, shape: Shape::Join(join, Box::new([left, right])) };
        }
        Ok(left)
    }

    fn operand(&mut self) -> Parsed<Tree<'a>> {
        let start = self.span(self.next).0;
        if self.takes("!") {
            let operand = Box::new(self.operand()?);
            return Ok(Tree { start, end: operand.end, shape: Shape::Not(operand) });
        }
        let is_number =
            matches!(self.tokens.kind(self.next + 1), Some(TokenKind::Int | TokenKind::Float));
        if !is_number && self.takes("-") {
            let operand = Box::new(self.operand()?);
            return Ok(Tree { start, end: operand.end, shape: Shape::Negate(operand) });
        }
        let value = self.primary()?;
        self.continued(value)
    }

    fn primary(&mut self) -> Parsed<Tree<'a>> {
        let index = self.next;
        let start = self.span(index).0;
        if matches!(
            self.tokens.kind(index),
            Some(TokenKind::Sign(".") | TokenKind::Name | TokenKind::Reserved)
        ) {
            return self.name();
        }
        self.next += 1;
        let shape = match self.tokens.kind(index) {
            Some(TokenKind::Sign("(")) => {
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Some(TokenKind::Sign("[")) => Shape::List(self.items("]", Parser::expression)?),
            Some(TokenKind::Sign("{")) => Shape::Map(self.items("}", |parser| {
                let key = parser.expression()?;
                parser.expect(":")?;
                Ok((key, parser.expression()?))
            })?),
            // Before a number; `operand` handles all others.
            Some(TokenKind::Sign("-")) => {
                self.next += 1;
                Shape::Value(self.literal(index + 1, true)?)
            }
            Some(TokenKind::Sign(_)) | None => return Err(self.unexpected(index)),
            Some(_) => Shape::Value(self.literal(index, false)?),
        };
        Ok(Tree { start, end: self.end(), shape })
    }

    /// A name, or a call without a target. CEL allows a leading dot, which has no effect.
    fn name(&mut self) -> Parsed<Tree<'a>> {
        self.takes(".");
        let index = self.next;
        let ((start, _), name) = (self.span(index), self.tokens.text_of(index));
        match self.tokens.kind(index) {
            Some(TokenKind::Name) if !name.starts_with('`') => self.next += 1,
            Some(TokenKind::Reserved) => {
                return Err(self
                    .error(index)
                    .message(say!("`{name}` is a reserved word, not a name")));
            }
            _ => return Err(self.unexpected(index)),
        }
        let shape = match self.takes("(") {
            true => called(Call {
                target: None,
                name,
                name_start: start,
                arguments: self.arguments()?,
            })?,
            false => Shape::Name(name),
        };
        Ok(Tree { start, end: self.end(), shape })
    }

    /// A value with the fields, calls and indexes that follow it.
    fn continued(&mut self, mut tree: Tree<'a>) -> Parsed<Tree<'a>> {
        loop {
            let start = tree.start;
            let shape = if self.takes(".") {
                self.member(tree)?
            } else if self.takes("[") {
                let key = self.expression()?;
                self.expect("]")?;
                Shape::Index(Box::new([tree, key]))
            } else if self.is("{") && is_path(&tree) {
                return Err(self.named_type(&tree));
            } else {
                return Ok(tree);
            };
            tree = Tree { start, end: self.end(), shape };
        }
    }

    /// The field or the call after a dot.
    fn member(&mut self, of: Tree<'a>) -> Parsed<Shape<'a>> {
        let (index, name) = (self.next, self.field()?);
        let (span, of) = (self.span(index), Box::new(of));
        if !self.is("(") {
            return Ok(Shape::Field { of, name, span });
        }
        if self.tokens.text_of(index).starts_with('`') {
            return Err(self.unexpected(index));
        }
        self.next += 1;
        let arguments = self.arguments()?;
        called(Call { target: Some(of), name, name_start: span.0, arguments })
    }

    /// The name after a dot, which may be a reserved word or in backticks.
    fn field(&mut self) -> Parsed<&'a str> {
        let index = self.next;
        let written = self.tokens.text_of(index);
        let name = written.trim_matches('`');
        let is_odd =
            |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '-' | '/' | ' ');
        match self.tokens.kind(index) {
            Some(TokenKind::Name | TokenKind::Reserved)
                if !name.is_empty() && !name.contains(is_odd) =>
            {
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(index)),
        }
    }

    fn arguments(&mut self) -> Parsed<Vec<Tree<'a>>> {
        let arguments = self.items(")", Parser::expression)?;
        match self.tokens.kind(self.next - 2) {
            Some(TokenKind::Sign(",")) => Err(self.unexpected(self.next - 1)),
            _ => Ok(arguments),
        }
    }

    /// Everything up to the closing bracket; a trailing comma is allowed.
    fn items<T>(
        &mut self,
        closing: &'static str,
        item: impl Fn(&mut Parser<'a>) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.takes(closing) {
            items.push(item(self)?);
            if !self.takes(",") {
                self.expect(closing)?;
                break;
            }
        }
        Ok(items)
    }

    fn literal(&self, index: usize, is_negative: bool) -> Parsed<Value> {
        let text = self.tokens.text_of(index);
        let value = match self.tokens.kind(index) {
            Some(TokenKind::Constant) => Some(match text {
                "null" => Value::Null,
                _ => Value::Bool(text == "true"),
            }),
            Some(TokenKind::Int) => whole(text)
                .map(|number| if is_negative { -number } else { number })
                .and_then(|number| i64::try_from(number).ok())
                .map(Value::Int),
            Some(TokenKind::UInt) => whole(text.trim_end_matches(['u', 'U']))
                .and_then(|number| u64::try_from(number).ok())
                .map(Value::UInt),
            Some(TokenKind::Float) => {
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                number.map(|number| Value::Float(if is_negative { -number } else { number }))
            }
            kind => {
                let bytes = unescaped(text).ok_or_else(|| {
                    let error = self.error(index);
                    error
                        .message(say!("{text} has an invalid escape sequence"))
                        .help(say!("write \\\\ for a backslash, or use raw text r'…'"))
                })?;
                return Ok(match kind {
                    Some(TokenKind::Bytes) => Value::from(bytes),
                    _ => Value::from(String::from_utf8_lossy(&bytes).as_ref()),
                });
            }
        };
        value.ok_or_else(|| self.error(index).message(say!("`{text}` does not fit into 64 bits")))
    }

    fn error(&self, index: usize) -> Box<CompileError> {
        let (start, end) = self.span(index);
        CompileError::new("bad-expression", start, end)
    }

    /// This token is not allowed here, or a required token is missing.
    fn unexpected(&self, index: usize) -> Box<CompileError> {
        let found = self.tokens.text_of(index);
        match self.tokens.kind(index) {
            None => self
                .error(self.tokens.all.len().saturating_sub(1))
                .message(say!("the expression is incomplete"))
                .label(say!("the expression must continue here")),
            Some(TokenKind::Name) => {
                self.error(index).message(say!("`{found}` is not expected here")).help(say!(
                    "put an operator between two values, and enclose text in single quotes (')"
                ))
            }
            Some(_) => self.error(index).message(say!("`{found}` is not expected here")),
        }
    }

    /// `Name{field: value}`, before its bracket is read.
    fn named_type(&self, name: &Tree<'a>) -> Box<CompileError> {
        let end = self.tokens.all.get(self.next).map_or(name.end, |open| open.closed_by);
        let end = self.span(end).1;
        let text = self.tokens.text.get(name.start..name.end).unwrap_or("");
        CompileError::new("bad-expression", name.start, end)
            .message(say!("`{text}{{…}}` is not supported: there are no named types"))
            .help(say!("write a map: {{'key': value}}"))
    }
}

fn is_path(tree: &Tree<'_>) -> bool {
    match &tree.shape {
        Shape::Name(_) => true,
        Shape::Field { of, .. } => is_path(of),
        _ => false,
    }
}

/// A call, unless it matches a macro of CEL by name and number of arguments.
fn called<'a>(mut call: Call<'a>) -> Parsed<Shape<'a>> {
    let error = |tree: &Tree<'_>| CompileError::new("bad-expression", tree.start, tree.end);
    let Some(range) = call.target.take() else {
        return match &call.arguments[..] {
            [Tree { shape: Shape::Field { .. }, .. }] if call.name == "has" => {
                Ok(Shape::Has(Box::new(call.arguments.remove(0))))
            }
            [other] if call.name == "has" => Err(error(other)
                .message(say!("the argument of `has` must be a field"))
                .help(say!("for example: has(saved.token)"))),
            _ => Ok(Shape::Call(call)),
        };
    };
    let kind = match (call.name, call.arguments.len()) {
        ("all", 2) => EachKind::All,
        ("exists", 2) => EachKind::Exists,
        ("exists_one" | "existsOne", 2) => EachKind::ExistsOne,
        ("filter", 2) | ("map", 2 | 3) => EachKind::Map,
        _ => {
            call.target = Some(range);
            return Ok(Shape::Call(call));
        }
    };
    let Shape::Name(variable) = call.arguments[0].shape else {
        return Err(error(&call.arguments[0])
            .message(say!("the first argument of a loop must be a name for its item"))
            .help(say!("for example: [1, 2].map(x, x * 2)")));
    };
    let result = if call.name == "map" { call.arguments.pop() } else { None };
    let condition = if call.arguments.len() > 1 { call.arguments.pop() } else { None };
    Ok(Shape::Each(Box::new(Loop { kind, range: *range, variable, condition, result })))
}

fn whole(text: &str) -> Option<i128> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The bytes of a quoted text; `None` if an escape sequence is invalid.
fn unescaped(quoted: &str) -> Option<Vec<u8>> {
    let prefix = quoted.find(['"', '\''])?;
    let (is_raw, is_bytes) =
        (quoted[..prefix].contains(['r', 'R']), quoted[..prefix].contains(['b', 'B']));
    let text = &quoted[prefix..];
    let quotes = if text.starts_with("'''") || text.starts_with("\"\"\"") { 3 } else { 1 };
    let text = text.get(quotes..text.len() - quotes)?.replace("\r\n", "\n").replace('\r', "\n");
    if is_raw {
        return Some(text.into_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let escaped = chars.next()?;
        let mut digits = |count: u32, radix: u32| {
            (0..count).try_fold(0, |sum, _| Some(sum * radix + chars.next()?.to_digit(radix)?))
        };
        let code = match escaped {
            'a' => 0x07,
            'b' => 0x08,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            '\\' | '\'' | '"' | '`' | '?' => u32::from(escaped),
            'x' | 'X' => digits(2, 16)?,
            'u' if !is_bytes => digits(4, 16)?,
            'U' if !is_bytes => digits(8, 16)?,
            '0'..='3' => escaped.to_digit(8)? * 64 + digits(2, 8)?,
            _ => return None,
        };
        match is_bytes {
            true => out.push(u8::try_from(code).ok()?),
            false => {
                out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    Some(out)
}
