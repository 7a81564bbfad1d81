//! Words, texts and signs of JavaScript and Python. It never fails: an unknown character is a sign.

use crate::script::{DEPTH_MAX, TextPart};

/// The languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    JavaScript,
    Python,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) line: usize,
    /// Columns before the first token of a line.
    pub(super) indent: usize,
    pub(super) begins_line: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Word(String),
    Number(String),
    Text(Vec<TextPart>),
    Sign(&'static str),
    /// A regular expression; it is not evaluated.
    Regex,
}

/// Signs with several characters, the longest first.
const SIGNS: [&str; 62] = [
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "//=", "=>",
    "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=",
    "|=", "^=", "**", "<<", ">>", "->", ":=", "{", "}", "(", ")", "[", "]", ";", ",", "<", ">",
    "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", "?", ":", "=", ".", "@", "#",
];

pub(super) fn tokens(text: &str, language: Language) -> Vec<Token> {
    tokens_at(text, language, 1, 0)
}

fn tokens_at(text: &str, language: Language, line: usize, depth: usize) -> Vec<Token> {
    let characters: Vec<char> = text.chars().collect();
    let mut lexer = Lexer {
        text: &characters,
        at: 0,
        line,
        language,
        tokens: Vec::new(),
        depth,
        line_start: 0,
        fresh: true,
    };
    lexer.read();
    lexer.tokens
}

struct Lexer<'t> {
    text: &'t [char],
    at: usize,
    line: usize,
    language: Language,
    tokens: Vec<Token>,
    depth: usize,
    line_start: usize,
    /// No token on this line so far.
    fresh: bool,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.text.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn starts(&self, word: &str) -> bool {
        word.chars().enumerate().all(|(number, c)| self.peek(number) == c)
    }

    fn advance(&mut self) -> char {
        let c = self.peek(0);
        self.at += 1;
        if c == '\n' {
            self.line += 1;
            self.line_start = self.at;
            self.fresh = true;
        }
        c
    }

    fn read(&mut self) {
        while self.at < self.text.len() {
            let (line, begins_line) = (self.line, self.fresh);
            let indent = self.at.saturating_sub(self.line_start);
            if let Some(kind) = self.token() {
                self.fresh = false;
                self.tokens.push(Token { kind, line, indent, begins_line });
            }
        }
    }

    /// `None`: a space, a comment, or an unknown character.
    fn token(&mut self) -> Option<TokenKind> {
        let c = self.peek(0);
        let is_js = self.language == Language::JavaScript;
        match c {
            _ if c.is_whitespace() || c == '\\' => drop(self.advance()),
            '#' if !is_js => self.skip_line(),
            '/' if is_js && self.peek(1) == '/' => self.skip_line(),
            '/' if is_js && self.peek(1) == '*' => self.skip_comment(),
            '/' if is_js && self.is_regex_place() => return Some(self.regex()),
            '"' | '\'' => return Some(TokenKind::Text(self.quoted(c, ""))),
            '`' if is_js => return Some(TokenKind::Text(self.template())),
            _ if c.is_ascii_digit() || c == '.' && self.peek(1).is_ascii_digit() => {
                return Some(self.number());
            }
            _ if c.is_alphabetic() || matches!(c, '_' | '$') => return Some(self.word()),
            _ => match SIGNS.iter().find(|sign| self.starts(sign)) {
                Some(sign) => {
                    self.at += sign.len();
                    return Some(TokenKind::Sign(sign));
                }
                None => self.at += 1,
            },
        }
        None
    }

    fn skip_line(&mut self) {
        while self.at < self.text.len() && self.peek(0) != '\n' {
            self.at += 1;
        }
    }

    fn skip_comment(&mut self) {
        let fresh = self.fresh;
        while self.at < self.text.len() && !self.starts("*/") {
            self.advance();
        }
        self.at = (self.at + 2).min(self.text.len());
        self.fresh = fresh || self.fresh;
    }

    /// True if a slash starts a regular expression, not a division.
    fn is_regex_place(&self) -> bool {
        match self.tokens.last().map(|token| &token.kind) {
            None => true,
            Some(TokenKind::Sign(sign)) => !matches!(*sign, ")" | "]" | "}"),
            Some(TokenKind::Word(word)) => matches!(word.as_str(), "return" | "typeof" | "case"),
            Some(_) => false,
        }
    }

    fn regex(&mut self) -> TokenKind {
        self.at += 1;
        let mut in_class = false;
        while self.at < self.text.len() && self.peek(0) != '\n' {
            match self.peek(0) {
                '\\' => self.at += 1,
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        while self.peek(0).is_ascii_alphabetic() {
            self.at += 1;
        }
        TokenKind::Regex
    }

    fn number(&mut self) -> TokenKind {
        let mut text = String::new();
        while self.peek(0).is_ascii_alphanumeric() || matches!(self.peek(0), '.' | '_') {
            let c = self.peek(0);
            // `1.toString()` is not one, and neither is `range(1)..`.
            if c == '.' && !self.peek(1).is_ascii_digit() {
                break;
            }
            text.extend(Some(c).filter(|c| *c != '_'));
            self.at += 1;
        }
        let plain = text.parse::<f64>().is_ok();
        let hex = text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        TokenKind::Number(match (plain, hex) {
            (true, _) => text,
            (false, Some(number)) => number.to_string(),
            (false, None) => "0".into(),
        })
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        while self.peek(0).is_alphanumeric() || matches!(self.peek(0), '_' | '$') {
            self.at += 1;
        }
        let word: String = self.text[start..self.at.min(self.text.len())].iter().collect();
        let is_prefix = self.language == Language::Python
            && word.len() <= 2
            && word.chars().all(|c| "rbfuRBFU".contains(c))
            && matches!(self.peek(0), '"' | '\'');
        match is_prefix {
            true => TokenKind::Text(self.quoted(self.peek(0), &word.to_ascii_lowercase())),
            false => TokenKind::Word(word),
        }
    }

    /// A quoted text; `prefix` is Python's.
    fn quoted(&mut self, quote: char, prefix: &str) -> Vec<TextPart> {
        let triple =
            self.language == Language::Python && self.peek(1) == quote && self.peek(2) == quote;
        self.at += if triple { 3 } else { 1 };
        let mut raw = String::new();
        while self.at < self.text.len() {
            let c = self.peek(0);
            if c == quote && (!triple || self.peek(1) == quote && self.peek(2) == quote) {
                break;
            }
            if c == '\n' && !triple {
                break;
            }
            match c {
                '\\' if !prefix.contains('r') => raw.push_str(&self.escape()),
                _ => raw.push(self.advance()),
            }
        }
        self.at = (self.at + if triple { 3 } else { 1 }).min(self.text.len().max(self.at));
        match prefix.contains('f') {
            true => self.formatted(&raw),
            false => vec![TextPart::Literal(raw)],
        }
    }

    fn escape(&mut self) -> String {
        self.at += 1;
        let c = self.advance();
        let mut code = |length: usize| {
            let digits: String =
                self.text[self.at.min(self.text.len())..].iter().take(length).collect();
            let found = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
            if found.is_some() {
                self.at += length;
            }
            found.map(String::from).unwrap_or_default()
        };
        match c {
            'n' => "\n".into(),
            't' => "\t".into(),
            'r' => "\r".into(),
            '0' => "\0".into(),
            '\n' => String::new(),
            'x' => code(2),
            'u' => code(4),
            other => other.into(),
        }
    }

    /// Python: `f"/users/{id}"`.
    fn formatted(&self, raw: &str) -> Vec<TextPart> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = raw;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let doubled = rest[at..].starts_with("{{") || rest[at..].starts_with("}}");
            let end = rest[at..].find('}').map(|end| at + end);
            match (doubled, end) {
                (true, _) => {
                    literal.push_str(&rest[at..=at]);
                    rest = &rest[at + 2..];
                }
                (false, Some(end)) if end > at => {
                    parts.push(TextPart::Literal(std::mem::take(&mut literal)));
                    let inner = &rest[at + 1..end];
                    let inner = inner.split(['!', ':']).next().unwrap_or(inner);
                    parts.push(TextPart::Value(Box::new(self.inside(inner))));
                    rest = &rest[end + 1..];
                }
                _ => break,
            }
        }
        literal.push_str(rest);
        parts.push(TextPart::Literal(literal));
        parts
    }

    /// JavaScript: `` `/users/${id}` ``.
    fn template(&mut self) -> Vec<TextPart> {
        self.at += 1;
        let (mut parts, mut literal) = (Vec::new(), String::new());
        while self.at < self.text.len() && self.peek(0) != '`' {
            match self.peek(0) {
                '\\' => literal.push_str(&self.escape()),
                '$' if self.peek(1) == '{' => {
                    parts.push(TextPart::Literal(std::mem::take(&mut literal)));
                    self.at += 2;
                    let start = self.at;
                    let mut depth = 0;
                    while self.at < self.text.len() && !(depth == 0 && self.peek(0) == '}') {
                        match self.advance() {
                            '{' => depth += 1,
                            '}' => depth -= 1,
                            _ => {}
                        }
                    }
                    let inner: String = self.text[start..self.at].iter().collect();
                    self.at = (self.at + 1).min(self.text.len());
                    parts.push(TextPart::Value(Box::new(self.inside(&inner))));
                }
                _ => literal.push(self.advance()),
            }
        }
        self.at = (self.at + 1).min(self.text.len());
        parts.push(TextPart::Literal(literal));
        parts
    }

    fn inside(&self, text: &str) -> crate::script::Expr {
        if self.depth >= DEPTH_MAX / 10 {
            return crate::script::Expr::Other;
        }
        let tokens = tokens_at(text, self.language, self.line, self.depth + 1);
        super::Parser::new(&tokens, self.language).expression()
    }
}
