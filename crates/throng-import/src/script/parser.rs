//! Expressions of both languages, by precedence. Unsupported ones become `Expr::Other`, and the
//! parser continues after them.

mod javascript;
mod lexer;
mod python;

use lexer::{Language, Token, TokenKind};

pub(crate) use javascript::statements as javascript;
pub(crate) use python::statements as python;

use super::{Argument, DEPTH_MAX, Expr, Function, ScriptKind, Statement, TextPart};

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    language: Language,
    depth: usize,
}

/// Binary operators, and their precedence.
fn strength(sign: &str) -> Option<u8> {
    Some(match sign {
        "??" | "||" | "or" => 1,
        "&&" | "and" => 2,
        "==" | "===" | "!=" | "!==" | "<" | ">" | "<=" | ">=" | "in" | "is" | "instanceof" => 4,
        "|" | "^" | "&" | "<<" | ">>" | ">>>" => 5,
        "+" | "-" => 6,
        "*" | "/" | "%" | "//" => 7,
        "**" => 8,
        _ => return None,
    })
}

impl<'t> Parser<'t> {
    fn new(tokens: &'t [Token], language: Language) -> Parser<'t> {
        Parser { tokens, at: 0, language, depth: 0 }
    }

    fn peek(&self) -> Option<&'t TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn line(&self) -> usize {
        let token = self.tokens.get(self.at).or_else(|| self.tokens.last());
        token.map_or(1, |token| token.line)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(TokenKind::Sign(found)) if *found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(TokenKind::Word(found)) if found == word)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is_there = self.is_sign(sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        self.at += usize::from(is_there);
        is_there
    }

    fn name(&mut self) -> Option<String> {
        match self.peek() {
            Some(TokenKind::Word(word)) => {
                self.at += 1;
                Some(word.clone())
            }
            _ => None,
        }
    }

    /// Reads something nested. Beyond the limit, the rest is skipped.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= DEPTH_MAX {
            self.at = self.tokens.len();
            return None;
        }
        self.depth += 1;
        let out = read(self);
        self.depth -= 1;
        Some(out)
    }

    fn is_opening(&self) -> bool {
        matches!(self.peek(), Some(TokenKind::Sign("(" | "[" | "{")))
    }

    /// Skips a token, or all in brackets.
    fn skip(&mut self) {
        match self.is_opening() {
            true => self.skip_bracket(),
            false => self.at += 1,
        }
    }

    /// Skips to after the matching closing bracket.
    fn skip_bracket(&mut self) {
        let mut depth = 0;
        while let Some(kind) = self.peek() {
            self.at += 1;
            match kind {
                TokenKind::Sign("(" | "[" | "{") => depth += 1,
                TokenKind::Sign(")" | "]" | "}") => {
                    depth -= 1;
                    if depth <= 0 {
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    fn expression(&mut self) -> Expr {
        let expression = self.nested(|parser| {
            let first = parser.binary(1);
            parser.choice(first)
        });
        expression.unwrap_or(Expr::Other)
    }

    fn choice(&mut self, first: Expr) -> Expr {
        if self.language == Language::JavaScript && self.take_sign("?") {
            let one = self.expression();
            self.take_sign(":");
            let other = self.expression();
            return Expr::Choice(Box::new(first), Box::new(one), Box::new(other));
        }
        if self.language == Language::Python && self.is_word("if") && !self.begins_line() {
            self.at += 1;
            let condition = self.binary(1);
            if self.take_word("else") {
                let other = self.expression();
                return Expr::Choice(Box::new(condition), Box::new(first), Box::new(other));
            }
        }
        first
    }

    fn begins_line(&self) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.begins_line)
    }

    fn binary(&mut self, least: u8) -> Expr {
        let mut left = self.unary();
        loop {
            let sign = match self.peek() {
                Some(TokenKind::Sign(sign)) => (*sign).to_string(),
                Some(TokenKind::Word(word)) => match word.as_str() {
                    "in" | "instanceof" => word.clone(),
                    "and" | "or" | "is" if self.language == Language::Python => word.clone(),
                    "not" if self.language == Language::Python => "in".into(),
                    _ => break,
                },
                _ => break,
            };
            let Some(strong) = strength(&sign).filter(|strong| *strong >= least) else { break };
            let negated = self.is_word("not");
            self.at += 1;
            let negated =
                (negated && self.take_word("in")) || (sign == "is" && self.take_word("not"));
            let right = self.binary(strong + 1);
            left = Expr::Binary(sign, Box::new(left), Box::new(right));
            if negated {
                left = Expr::Not(Box::new(left));
            }
        }
        left
    }

    fn unary(&mut self) -> Expr {
        self.nested(Parser::signed).unwrap_or(Expr::Other)
    }

    fn signed(&mut self) -> Expr {
        let is_python = self.language == Language::Python;
        if self.take_sign("!") || is_python && self.take_word("not") {
            Expr::Not(Box::new(self.unary()))
        } else if self.take_sign("-") {
            Expr::Minus(Box::new(self.unary()))
        } else if self.take_sign("+")
            || self.take_word("await")
            || self.take_word("new")
            || self.take_sign("...")
            || self.take_sign("*")
            || self.take_sign("**")
        {
            self.unary()
        } else if !is_python && self.take_word("typeof") {
            self.unary();
            Expr::Other
        } else {
            let first = self.primary();
            self.postfix(first)
        }
    }

    fn postfix(&mut self, first: Expr) -> Expr {
        let mut out = first;
        loop {
            if self.take_sign(".") || self.take_sign("?.") {
                if self.is_sign("(") || self.is_sign("[") {
                    continue;
                }
                let Some(name) = self.name() else { break };
                out = Expr::Member(Box::new(out), name);
            } else if self.is_sign("(") {
                out = Expr::Call(Box::new(out), self.arguments());
            } else if self.is_sign("[") {
                self.at += 1;
                let index = self.expression();
                while !self.is_sign("]") && self.peek().is_some() {
                    self.at += 1;
                }
                self.take_sign("]");
                out = Expr::Index(Box::new(out), Box::new(index));
            } else if let Some(TokenKind::Text(more)) = self.peek()
                && let Expr::Text(parts) = &mut out
                && self.language == Language::Python
            {
                // Adjacent texts are concatenated.
                parts.extend(more.iter().cloned());
                self.at += 1;
            } else if self.take_sign("++") || self.take_sign("--") {
                out = Expr::Other;
            } else {
                break;
            }
        }
        out
    }

    fn arguments(&mut self) -> Vec<Argument> {
        let mut arguments = Vec::new();
        self.each(")", |parser| {
            let mut name = None;
            if parser.language == Language::Python
                && let Some(TokenKind::Word(word)) = parser.peek()
                && matches!(
                    parser.tokens.get(parser.at + 1).map(|one| &one.kind),
                    Some(TokenKind::Sign("="))
                )
            {
                name = Some(word.clone());
                parser.at += 2;
            }
            let value = parser.expression();
            arguments.push(Argument { name, value });
        });
        arguments
    }

    /// Reads what stands between commas, from an opening bracket to the closing one.
    fn each(&mut self, close: &str, mut read: impl FnMut(&mut Self)) {
        self.at += 1;
        while self.peek().is_some() && !self.is_sign(close) {
            let before = self.at;
            read(self);
            // What is left of it, such as a comprehension, is not understood.
            self.skip_to_separator(close);
            self.take_sign(",");
            if self.at == before {
                self.at += 1;
            }
        }
        self.take_sign(close);
    }

    fn skip_to_separator(&mut self, close: &str) {
        while self.peek().is_some() && !self.is_sign(close) && !self.is_sign(",") {
            self.skip();
        }
    }

    fn primary(&mut self) -> Expr {
        let Some(kind) = self.peek() else { return Expr::Other };
        match kind {
            TokenKind::Word(word) => self.word(word),
            TokenKind::Sign("(") => self.parenthesis(),
            TokenKind::Sign("[") => Expr::List(self.list()),
            TokenKind::Sign("{") => self.map(),
            TokenKind::Sign(")" | "]" | "}" | "," | ";") => Expr::Other,
            kind => {
                self.at += 1;
                match kind {
                    TokenKind::Number(number) => Expr::Number(number.clone()),
                    TokenKind::Text(parts) => Expr::Text(parts.clone()),
                    _ => Expr::Other,
                }
            }
        }
    }

    fn word(&mut self, word: &str) -> Expr {
        let is_arrow = matches!(
            self.tokens.get(self.at + 1).map(|one| &one.kind),
            Some(TokenKind::Sign("=>"))
        );
        if is_arrow {
            self.at += 2;
            return self.arrow(vec![word.to_string()]);
        }
        self.at += 1;
        match word {
            "true" | "True" => Expr::Bool(true),
            "false" | "False" => Expr::Bool(false),
            "null" | "None" | "undefined" => Expr::Null,
            "async" if self.language == Language::JavaScript && !self.is_sign(".") => {
                self.primary()
            }
            "function" if self.language == Language::JavaScript => {
                Expr::Function(Box::new(javascript::function(self, false)))
            }
            "lambda" if self.language == Language::Python => {
                let mut parameters = Vec::new();
                while self.peek().is_some() && !self.is_sign(":") {
                    parameters.extend(self.name());
                    self.at += usize::from(
                        !matches!(self.peek(), Some(TokenKind::Word(_))) && !self.is_sign(":"),
                    );
                }
                self.take_sign(":");
                self.arrow_body(parameters)
            }
            _ => Expr::Name(word.to_string()),
        }
    }

    /// An expression in parentheses, or the parameters of an arrow function.
    fn parenthesis(&mut self) -> Expr {
        let start = self.at;
        let mut probe = Parser { at: start, ..*self };
        probe.skip_bracket();
        if probe.is_sign("=>") {
            let parameters = self.parameters();
            self.take_sign("=>");
            return self.arrow(parameters);
        }
        let end = probe.at;
        self.at += 1;
        let inner = self.expression();
        let is_list = self.is_sign(",") && self.language == Language::Python;
        if is_list {
            let mut items = vec![inner];
            while self.take_sign(",") && self.peek().is_some() && !self.is_sign(")") {
                items.push(self.expression());
            }
            self.at = end;
            return Expr::List(items);
        }
        // `(a, b)` in JavaScript has the value of its last part; it is not used in practice.
        self.at = end.max(self.at);
        inner
    }

    fn parameters(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        if !self.is_sign("(") {
            return names;
        }
        let mut end = Parser { at: self.at, ..*self };
        end.skip_bracket();
        let mut depth = 0;
        while self.at < end.at {
            match self.peek() {
                Some(TokenKind::Sign("(" | "{" | "[")) => depth += 1,
                Some(TokenKind::Sign(")" | "}" | "]")) => depth -= 1,
                Some(TokenKind::Word(word)) if depth == 1 => {
                    let before = self.tokens.get(self.at.wrapping_sub(1)).map(|one| &one.kind);
                    if matches!(before, Some(TokenKind::Sign("(" | "," | "*" | "**" | "..."))) {
                        names.push(word.clone());
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        names
    }

    fn arrow(&mut self, parameters: Vec<String>) -> Expr {
        match self.is_sign("{") {
            true => function(parameters, javascript::block(self)),
            false => self.arrow_body(parameters),
        }
    }

    fn arrow_body(&mut self, parameters: Vec<String>) -> Expr {
        let line = self.line();
        let kind = ScriptKind::Return(Some(self.expression()));
        function(parameters, vec![Statement { line, kind }])
    }

    fn list(&mut self) -> Vec<Expr> {
        let mut items = Vec::new();
        self.each("]", |parser| {
            let item = parser.expression();
            let is_whole = parser.is_sign(",") || parser.is_sign("]");
            items.push(if is_whole { item } else { Expr::Other });
        });
        items
    }

    fn map(&mut self) -> Expr {
        let mut entries = Vec::new();
        self.each("}", |parser| parser.entry(&mut entries));
        Expr::Map(entries)
    }

    fn entry(&mut self, entries: &mut Vec<(Expr, Expr)>) {
        let is_js = self.language == Language::JavaScript;
        if self.take_sign("...") || self.take_sign("**") {
            let inner = self.expression();
            return entries.push((Expr::Null, inner));
        }
        let key = match self.peek() {
            Some(TokenKind::Word(word)) if is_js => {
                self.at += 1;
                Expr::text(word)
            }
            Some(TokenKind::Sign("[")) if is_js => {
                self.at += 1;
                let key = self.expression();
                self.take_sign("]");
                key
            }
            Some(TokenKind::Number(number)) => {
                self.at += 1;
                Expr::text(number)
            }
            _ => self.binary(1),
        };
        if self.take_sign(":") {
            let value = self.expression();
            return entries.push((key, value));
        }
        match &key {
            // `{ headers }` is the variable of that name.
            Expr::Text(parts) if is_js && !self.is_sign("(") => {
                if let [TextPart::Literal(name)] = parts.as_slice() {
                    let value = Expr::Name(name.clone());
                    entries.push((key, value));
                }
            }
            _ if is_js && self.is_sign("(") => {
                let parameters = self.parameters();
                entries.push((key, function(parameters, javascript::block(self))));
            }
            _ => entries.push((key, Expr::Other)),
        }
    }
}

fn function(parameters: Vec<String>, body: Vec<Statement>) -> Expr {
    Expr::Function(Box::new(Function { parameters, body, ..Function::default() }))
}
