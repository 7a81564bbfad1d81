//! Commands as redis-cli reads them.

use throng_base::Said;
use throng_program::{Segment, Text};

/// Splits a text into commands, one per line, and each command into words, as redis-cli does
/// (`sdssplitargs`). An expression never splits a word, whatever its value contains.
pub(super) fn split(text: Text) -> Result<Vec<Vec<Text>>, Said> {
    let mut splitter = Splitter::default();
    for segment in text.segments {
        match segment {
            Segment::Literal(bytes) => splitter.literal(&bytes)?,
            value => splitter.value(value)?,
        }
    }
    if splitter.quote.is_some() {
        return Err(say!("a quote in the command is not closed"));
    }
    splitter.command_ends();
    Ok(splitter.commands)
}

#[derive(Default)]
struct Splitter {
    commands: Vec<Vec<Text>>,
    words: Vec<Text>,
    /// The current word.
    word: Option<Vec<Segment>>,
    /// The current literal at its end.
    bytes: Vec<u8>,
    quote: Option<u8>,
    /// A quote has just been closed.
    closed: bool,
}

impl Splitter {
    fn literal(&mut self, bytes: &[u8]) -> Result<(), Said> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match (self.quote, byte) {
                (Some(b'"'), b'\\') => at += self.escaped(&bytes[at..]),
                (Some(b'\''), b'\\') if bytes.get(at) == Some(&b'\'') => {
                    self.bytes.push(b'\'');
                    at += 1;
                }
                (Some(quote), byte) if quote == *byte => (self.quote, self.closed) = (None, true),
                (Some(_), byte) => self.bytes.push(*byte),
                (None, b'\n') => self.command_ends(),
                (None, byte) if byte.is_ascii_whitespace() => self.word_ends(),
                (None, _) if self.closed => return Err(BEHIND_QUOTE),
                (None, quote @ (b'"' | b'\'')) => {
                    self.quote = Some(*quote);
                    self.word.get_or_insert_default();
                }
                (None, byte) => {
                    self.word.get_or_insert_default();
                    self.bytes.push(*byte);
                }
            }
        }
        Ok(())
    }

    /// Reads an escape in double quotes. Returns how many bytes follow the backslash.
    fn escaped(&mut self, rest: &[u8]) -> usize {
        let digits = rest.get(1..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let hex = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, used) = match (rest.first(), hex) {
            (Some(b'x'), Some(byte)) => (byte, 3),
            (Some(b'n'), _) => (b'\n', 1),
            (Some(b'r'), _) => (b'\r', 1),
            (Some(b't'), _) => (b'\t', 1),
            (Some(b'b'), _) => (8, 1),
            (Some(b'a'), _) => (7, 1),
            (Some(other), _) => (*other, 1),
            (None, _) => (b'\\', 0),
        };
        self.bytes.push(byte);
        used
    }

    fn value(&mut self, value: Segment) -> Result<(), Said> {
        if self.closed {
            return Err(BEHIND_QUOTE);
        }
        self.flush();
        self.word.get_or_insert_default().push(value);
        Ok(())
    }

    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            let bytes = std::mem::take(&mut self.bytes).into();
            self.word.get_or_insert_default().push(Segment::Literal(bytes));
        }
    }

    fn word_ends(&mut self) {
        self.flush();
        self.closed = false;
        self.words.extend(self.word.take().map(|segments| Text { segments }));
    }

    fn command_ends(&mut self) {
        self.word_ends();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

const BEHIND_QUOTE: Said = say!("a space is missing after a quote in the command");

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<Vec<String>>, String> {
        let shown = |text: &Text| String::from_utf8_lossy(text.as_literal().unwrap()).into_owned();
        let commands = split(Text::literal(text)).map_err(|said| said.english())?;
        Ok(commands.iter().map(|words| words.iter().map(shown).collect()).collect())
    }

    #[test]
    fn commands_are_split_like_redis_cli() {
        for (text, wanted) in [
            ("GET  k\t", vec![vec!["GET", "k"]]),
            ("SET k \"a b\\n\\x41\\\"\\q\"", vec![vec!["SET", "k", "a b\nA\"q"]]),
            ("SET k 'it\\'s \\n'", vec![vec!["SET", "k", "it's \\n"]]),
            ("SET k \"\" ''", vec![vec!["SET", "k", "", ""]]),
            ("SET a\"b c\" d", vec![vec!["SET", "ab c", "d"]]),
            ("GET a\n\n  GET \"b\nc\"\r\n", vec![vec!["GET", "a"], vec!["GET", "b\nc"]]),
            ("\n ", vec![]),
        ] {
            assert_eq!(words(text).unwrap(), wanted, "{text:?}");
        }
        for wrong in ["SET k \"a", "SET k 'a\\'", "SET \"a\"b", "SET 'a''b'"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }
}
