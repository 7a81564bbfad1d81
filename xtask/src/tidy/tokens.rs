//! Reads Rust just well enough to tell code from comments, strings and characters: as a row of
//! tokens with what strings and comments say, and as lines of code for rules about those.

/// A token and its line, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A name, a keyword, a number.
    Word(String),
    Mark(char),
    /// A string as the program has it, its escapes undone.
    Text(String),
    /// A line `///`, without the space before it.
    Doc(String),
}

impl Token {
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, TokenKind::Word(own) if own == word)
    }

    pub(super) fn is_mark(&self, mark: char) -> bool {
        self.kind == TokenKind::Mark(mark)
    }

    pub(super) fn word(&self) -> Option<&str> {
        match &self.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// A line without its comments, strings and characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) code: String,
    /// Part of the line is inside a string.
    pub(super) has_string: bool,
}

/// The tokens and the lines of a source.
pub(super) fn read(source: &str) -> (Vec<Token>, Vec<Line>) {
    let mut lines = vec![Line::default(); source.lines().count()];
    let characters: Vec<char> = source.chars().collect();
    let mut reader = TokenReader { characters: &characters, at: 0, line: 1, tokens: Vec::new() };
    while reader.at < characters.len() {
        let (begin, first, before) = (reader.at, reader.line - 1, reader.tokens.len());
        reader.next();
        match reader.tokens.get(before).map(|token| &token.kind) {
            Some(TokenKind::Text(_)) => {
                let end = reader.line.min(lines.len());
                lines[first..end].iter_mut().for_each(|line| line.has_string = true);
            }
            Some(TokenKind::Word(_) | TokenKind::Mark(_)) => {
                lines[first].code.extend(&characters[begin..reader.at]);
            }
            None if [' ', '\t', '\r'].contains(&characters[begin]) => {
                lines[first].code.push(characters[begin]);
            }
            _ => {}
        }
    }
    (reader.tokens, lines)
}

struct TokenReader<'s> {
    characters: &'s [char],
    at: usize,
    line: usize,
    tokens: Vec<Token>,
}

impl TokenReader<'_> {
    fn push(&mut self, line: usize, kind: TokenKind) {
        self.tokens.push(Token { line, kind });
    }

    /// Takes characters, and counts the lines among them.
    fn take(&mut self, count: usize) -> String {
        let end = (self.at + count).min(self.characters.len());
        let taken: String = self.characters[self.at..end].iter().collect();
        self.line += taken.matches('\n').count();
        self.at = end;
        taken
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let count = self.characters[self.at..].iter().take_while(|c| fits(**c)).count();
        self.take(count)
    }

    fn next(&mut self) {
        let line = self.line;
        match &self.characters[self.at..] {
            ['/', '/', ..] => self.comment(),
            ['/', '*', ..] => self.block_comment(),
            ['"', ..] | ['b', '"', ..] => self.text(),
            ['r', '"' | '#', ..] if self.raw_hashes(1).is_some() => self.raw(1),
            ['b', 'r', '"' | '#', ..] if self.raw_hashes(2).is_some() => self.raw(2),
            ['\'', '\\', _, ..] => {
                self.take(3);
                self.take_while(|c| c != '\'');
                self.take(1);
            }
            ['\'', _, '\'', ..] => drop(self.take(3)),
            [c, ..] if c.is_whitespace() => drop(self.take(1)),
            [c, ..] if c.is_alphanumeric() || *c == '_' => {
                let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
                self.push(line, TokenKind::Word(word));
            }
            _ => {
                let mark = self.take(1).chars().next().unwrap_or_default();
                self.push(line, TokenKind::Mark(mark));
            }
        }
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.characters.len() {
            let length = match &self.characters[self.at..] {
                ['/', '*', ..] => {
                    depth += 1;
                    2
                }
                ['*', '/', ..] => {
                    depth -= 1;
                    2
                }
                _ => 1,
            };
            self.take(length);
            if depth == 0 {
                return;
            }
        }
    }

    fn comment(&mut self) {
        let line = self.line;
        let text = self.take_while(|c| c != '\n');
        if let Some(doc) = text.strip_prefix("///") {
            self.push(line, TokenKind::Doc(doc.trim().to_string()));
        }
    }

    fn text(&mut self) {
        let line = self.line;
        self.take_while(|c| c != '"');
        self.take(1);
        let mut text = String::new();
        loop {
            text.push_str(&self.take_while(|c| c != '"' && c != '\\'));
            let escape = self.take(2);
            match escape.strip_prefix('\\') {
                Some("\n") => drop(self.take_while(char::is_whitespace)),
                Some("n") => text.push('\n'),
                Some("t") => text.push('\t'),
                Some("r") => text.push('\r'),
                Some("x") => text.extend(self.byte()),
                Some("u") => text.extend(self.unicode()),
                Some(other) => text.push_str(other),
                None => {
                    // The closing quote, and one character too many.
                    self.at -= escape.chars().count().saturating_sub(1);
                    self.line -= escape.matches('\n').count();
                    return self.push(line, TokenKind::Text(text));
                }
            }
        }
    }

    /// `20` of `\x20`.
    fn byte(&mut self) -> Option<char> {
        let hex = self.take(2);
        u8::from_str_radix(&hex, 16).ok().map(char::from)
    }

    /// `{1f}` of `\u{1f}`.
    fn unicode(&mut self) -> Option<char> {
        let hex = self.take_while(|c| c != '}');
        self.take(1);
        u32::from_str_radix(hex.trim_start_matches('{'), 16).ok().and_then(char::from_u32)
    }

    /// How many `#` a raw string has that begins after its letters; None if it is none.
    fn raw_hashes(&self, letters: usize) -> Option<usize> {
        let rest = self.characters.get(self.at + letters..)?;
        let hashes = rest.iter().take_while(|c| **c == '#').count();
        (rest.get(hashes) == Some(&'"')).then_some(hashes)
    }

    fn raw(&mut self, letters: usize) {
        let line = self.line;
        let hashes = self.raw_hashes(letters).unwrap_or_default();
        self.take(letters + hashes + 1);
        let end: Vec<char> = std::iter::once('"').chain(vec!['#'; hashes]).collect();
        let rest = self.characters[self.at..].windows(end.len());
        let length = rest.take_while(|window| *window != end).count();
        let text = self.take(length);
        self.take(end.len());
        self.push(line, TokenKind::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<(usize, String)> {
        let text = |token: Token| match token.kind {
            TokenKind::Text(text) => Some((token.line, text)),
            _ => None,
        };
        read(source).0.into_iter().filter_map(text).collect()
    }

    #[test]
    fn strings_are_read_as_the_program_has_them() {
        let source =
            "a(\"one \\\n    two\\n\\\"x\\\"\", '\"', '\\'', 'b')\n r#\"a\"b\"# \"\\u{2013}\"";
        let want = [(1, "one two\n\"x\""), (3, "a\"b"), (3, "–")];
        let want: Vec<_> = want.map(|(line, text)| (line, text.to_string())).to_vec();
        assert_eq!(texts(source), want);
        assert_eq!(texts("\"open"), [(1, "open".to_string())]);
        assert!(texts("// \"a\"\n/* \"b\" \n*/ <'a, 'b>").is_empty());
    }

    #[test]
    fn comments_are_not_tokens_unless_they_are_docs() {
        let tokens = read("/// a doc\n// no doc\nx").0;
        let kinds: Vec<TokenKind> = tokens.into_iter().map(|token| token.kind).collect();
        assert_eq!(kinds, [TokenKind::Doc("a doc".into()), TokenKind::Word("x".into())]);
    }
}
