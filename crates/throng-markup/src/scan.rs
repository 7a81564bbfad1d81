//! The text of a selector or a query, read from left to right.

use throng_base::Said;

use crate::fault::PathError;

/// A text, and how far it was read.
pub struct PathText<'t> {
    pub text: &'t str,
    pub at: usize,
    /// The characters that may separate two parts.
    pub spaces: &'static [char],
    /// Of every error.
    pub help: Said,
}

impl<'t> PathText<'t> {
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Reads the meaning of the first of these tokens that is next.
    pub fn eat_any<T>(&mut self, tokens: impl IntoIterator<Item = (&'static str, T)>) -> Option<T> {
        tokens.into_iter().find_map(|(token, meaning)| self.eat(token).then_some(meaning))
    }

    /// Reads the longest text of such characters.
    pub fn eat_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let found = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        self.at += found.len();
        found
    }

    /// Returns whether there was space.
    pub fn skip_space(&mut self) -> bool {
        let spaces = self.spaces;
        !self.eat_while(|c| spaces.contains(&c)).is_empty()
    }

    /// An error at the next character.
    pub fn wrong(&self, message: Said) -> PathError {
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        PathError::new((self.at, end), message, self.help.clone())
    }

    /// Reads a token that must be next, maybe after space.
    pub fn expect(&mut self, token: &str) -> Result<(), PathError> {
        self.skip_space();
        match self.eat(token) {
            true => Ok(()),
            false => Err(self.wrong(say!("`{token}` is missing here"))),
        }
    }
}
