//! The tokens of an expression: their positions, matching brackets, and nesting, all before the
//! parser runs. The parser and the compiler are recursive; these checks keep them from overflowing
//! the stack.

use crate::error::CompileError;
use crate::lexer::{self, TokenKind};

/// The longest expression.
pub const EXPRESSION_BYTES_MAX: usize = 4096;
/// Most nested brackets.
pub const NESTING_MAX: usize = 64;
/// Maximum depth of the tree: brackets, and the operators and dots in one row.
pub const TREE_DEPTH_MAX: usize = 200;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
    /// The token that closes this bracket; the token itself for all others.
    pub closed_by: usize,
}

#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    pub text: &'a str,
    pub all: Vec<Token>,
}

/// An open bracket, and the depth of its subtree so far.
struct Open {
    token: usize,
    /// Empty for the outermost level.
    closing: &'static str,
    /// Operators and dots since the last comma; each may make the tree one deeper.
    operators: usize,
    /// The deepest bracket since the last comma.
    inner: usize,
    /// The deepest part before the last comma.
    deepest: usize,
}

impl Open {
    fn new(token: usize, closing: &'static str) -> Open {
        Open { token, closing, operators: 0, inner: 0, deepest: 0 }
    }

    fn depth(&self) -> usize {
        self.deepest.max(self.operators + self.inner) + 1
    }
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Tokens<'a>, Box<CompileError>> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(CompileError::new("bad-expression", 0, text.len())
                .message(say!("an expression can have at most {EXPRESSION_BYTES_MAX} bytes"))
                .help(say!(
                    "compute part of the expression in a `set` step, and use the result here"
                )));
        }
        let mut tokens = Tokens { text, all: Vec::new() };
        let mut start = lexer::gap(text);
        while start < text.len() {
            let (kind, length) = lexer::token(&text[start..])
                .map_err(|length| bad_token(text, start, start + length))?;
            let (end, closed_by) = (start + length, tokens.all.len());
            tokens.all.push(Token { kind, start, end, closed_by });
            start = end + lexer::gap(&text[end..]);
        }
        tokens.check_brackets()?;
        tokens.check_words()?;
        Ok(tokens)
    }

    pub(crate) fn text_of(&self, index: usize) -> &'a str {
        self.all.get(index).and_then(|token| self.text.get(token.start..token.end)).unwrap_or("")
    }

    pub(crate) fn kind(&self, index: usize) -> Option<TokenKind> {
        self.all.get(index).map(|token| token.kind)
    }

    fn check_brackets(&mut self) -> Result<(), Box<CompileError>> {
        let mut open = vec![Open::new(0, "")];
        for index in 0..self.all.len() {
            let Token { kind, start, end, .. } = self.all[index];
            let Some(innermost) = open.last_mut() else { break };
            match kind {
                TokenKind::Sign("(") => open.push(Open::new(index, ")")),
                TokenKind::Sign("[") => {
                    innermost.operators += 1;
                    open.push(Open::new(index, "]"));
                }
                TokenKind::Sign("{") => open.push(Open::new(index, "}")),
                TokenKind::Sign(sign @ (")" | "]" | "}")) => {
                    let closed = open.pop().filter(|closed| closed.closing == sign);
                    let (Some(closed), Some(outer)) = (closed, open.last_mut()) else {
                        return Err(self.closes_nothing(start, end));
                    };
                    self.all[closed.token].closed_by = index;
                    outer.inner = outer.inner.max(closed.depth());
                }
                TokenKind::Sign(",") => {
                    innermost.deepest =
                        innermost.deepest.max(innermost.operators + innermost.inner);
                    (innermost.operators, innermost.inner) = (0, 0);
                }
                TokenKind::Sign(_) => innermost.operators += 1,
                _ => {}
            }
            let depth: usize = open.last().map_or(0, Open::depth);
            if open.len() > NESTING_MAX + 1 || depth > TREE_DEPTH_MAX {
                return Err(CompileError::new("bad-expression", start, end)
                    .message(say!("the expression is nested too deeply"))
                    .help(say!(
                        "compute part of the expression in a `set` step, and use the result here"
                    )));
            }
        }
        match open.pop() {
            Some(unclosed) if !unclosed.closing.is_empty() => {
                let Token { start, end, .. } = self.all[unclosed.token];
                let bracket = self.text_of(unclosed.token);
                Err(CompileError::new("bad-expression", start, end)
                    .message(say!("`{bracket}` is never closed"))
                    .label(say!("opened here")))
            }
            _ => Ok(()),
        }
    }

    fn closes_nothing(&self, start: usize, end: usize) -> Box<CompileError> {
        let bracket = self.text.get(start..end).unwrap_or("");
        CompileError::new("bad-expression", start, end)
            .message(say!("`{bracket}` has no opening bracket"))
            .help(say!("every opening bracket needs a closing one"))
    }

    /// Words and signs of other languages, which the parser would only call unexpected.
    fn check_words(&self) -> Result<(), Box<CompileError>> {
        for (index, token) in self.all.iter().enumerate() {
            let text = self.text_of(index);
            let follows_value = index > 0 && ends_value(self.all[index - 1].kind);
            let instead = match (token.kind, text) {
                (TokenKind::Sign("="), _) => "==",
                (TokenKind::Name, "and") if follows_value => "&&",
                (TokenKind::Name, "or") if follows_value => "||",
                (TokenKind::Name, "not") if self.begins_value(index + 1) => "!",
                _ => continue,
            };
            return Err(CompileError::new("bad-expression", token.start, token.end)
                .message(say!("`{text}` is not an operator"))
                .label(say!("write `{instead}`")));
        }
        Ok(())
    }

    fn begins_value(&self, index: usize) -> bool {
        matches!(self.kind(index), Some(TokenKind::Name | TokenKind::Constant))
    }
}

fn ends_value(kind: TokenKind) -> bool {
    !matches!(kind, TokenKind::Sign("." | "," | "(" | "{" | "[" | "&&" | "||" | "!" | "?" | ":"))
}

/// Input that the lexer could not read.
fn bad_token(text: &str, start: usize, end: usize) -> Box<CompileError> {
    let start = text.floor_char_boundary(start);
    let end = text.ceil_char_boundary(end.max(start + 1));
    let found = &text[start..end];
    let error = CompileError::new("bad-expression", start, end);
    let first = found.chars().next().unwrap_or(' ');
    if found.contains(['"', '\'']) {
        return error
            .message(say!("the text has no closing quote"))
            .label(say!("the opening quote is here"));
    }
    match first {
        '&' | '|' => error
            .message(say!("`{first}` is not an operator"))
            .label(say!("write `{first}{first}`")),
        '`' => error
            .message(say!("the name has no closing backtick"))
            .label(say!("the opening backtick is here")),
        '‘' | '’' | '“' | '”' | '「' | '」' => error
            .message(say!("text cannot be quoted with `{first}` here"))
            .help(say!("put text in single or double quotes")),
        _ if first.is_ascii_digit() || first == '.' => error
            .message(say!("`{found}` is not a number"))
            .help(say!("write `5`, `1.5` or `0x1f`")),
        '@' | '#' | '$' | '~' | '^' | ';' | '\\' => {
            error.message(say!("`{first}` is not allowed in an expression"))
        }
        _ => error.message(say!("`{first}` is not allowed in an expression")).help(say!(
            "a name consists of the letters a to z, digits and _; put text in single quotes"
        )),
    }
}
