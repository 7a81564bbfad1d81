//! Splits a command into words, as bash or cmd.exe does, with the place of each word. Nothing is
//! expanded: a shell variable in a word is reported as a mistake.

use std::sync::Arc;

use throng_base::{Diagnostic, Said, Source};

use crate::syntax::Place;

/// A word of the command: its bytes without quotes and escapes, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) bytes: Vec<u8>,
    pub(super) place: Place,
}

impl Word {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

type Wrong = Box<Diagnostic>;

/// The words of every command, one list each; a line end or an operator ends a command.
pub(super) fn split(source: &Arc<Source>) -> Result<Vec<Vec<Word>>, Wrong> {
    let cmd = is_cmd(&source.text);
    let mut reader = WordReader { source, text: source.text.as_bytes(), at: 0 };
    let mut commands: Vec<Vec<Word>> = vec![Vec::new()];
    loop {
        let ended = reader.space(cmd);
        let Some(byte) = reader.peek(0) else { break };
        let mut ends = ended;
        let mut word = None;
        match byte {
            b'#' if !cmd => reader.line_end(),
            b';' if !cmd => {
                reader.at += 1;
                ends = true;
            }
            b'&' | b'|' | b'>' | b'<' => {
                ends |= matches!(reader.operator(cmd)?, Operator::End);
            }
            _ => word = Some(if cmd { reader.cmd_word()? } else { reader.bash_word()? }),
        }
        if ends && commands.last().is_some_and(|words| !words.is_empty()) {
            commands.push(Vec::new());
        }
        if let Some(words) = commands.last_mut() {
            words.extend(word);
        }
    }
    commands.retain(|words| !words.is_empty());
    Ok(commands)
}

/// True if the text is for cmd.exe, which uses carets where bash uses backslashes.
fn is_cmd(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end);
    text.contains("^\"http")
        || lines.any(|line| line.ends_with('^') && !line.ends_with("\\^"))
            && !text.lines().any(|line| line.trim_end().ends_with('\\'))
}

enum Operator {
    End,
    Nothing,
}

struct WordReader<'s> {
    source: &'s Arc<Source>,
    text: &'s [u8],
    at: usize,
}

impl WordReader<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn wrong(&self, code: &'static str, message: Said, start: usize, help: Said) -> Wrong {
        let end = self.at.max(start + 1).min(self.text.len().max(start));
        let place = Place::new(0, start, end);
        Box::new(
            Diagnostic::error(code, message)
                .at(place.span(self.source))
                .label(say!("here"))
                .help(help),
        )
    }

    /// The length of a line end at `at + ahead`.
    fn newline(&self, ahead: usize) -> usize {
        match (self.peek(ahead), self.peek(ahead + 1)) {
            (Some(b'\r'), Some(b'\n')) => 2,
            (Some(b'\n'), _) => 1,
            _ => 0,
        }
    }

    /// Skips spaces and continued lines. True if a line ended in between.
    fn space(&mut self, cmd: bool) -> bool {
        let escape = if cmd { b'^' } else { b'\\' };
        let mut ended = false;
        loop {
            let newline = self.newline(0);
            match self.peek(0) {
                _ if newline > 0 => {
                    self.at += newline;
                    ended = true;
                }
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(byte) if byte == escape && self.newline(1) > 0 => {
                    self.at += 1 + self.newline(1);
                }
                // A space after the backslash is a common copying mistake and is accepted.
                Some(byte) if byte == escape && self.blank_line_end() > 0 => {
                    self.at += self.blank_line_end();
                }
                Some(byte) if byte == escape && self.at + 1 == self.text.len() => self.at += 1,
                _ => return ended,
            }
        }
    }

    /// The length of an escape, blanks and a line end.
    fn blank_line_end(&self) -> usize {
        let blanks = self.text[self.at + 1..].iter().take_while(|b| **b == b' ' || **b == b'\t');
        let blanks = blanks.count();
        match self.newline(1 + blanks) {
            0 => 0,
            newline => 1 + blanks + newline,
        }
    }

    fn line_end(&mut self) {
        while self.peek(0).is_some() && self.newline(0) == 0 {
            self.at += 1;
        }
    }

    /// Skips redirections of output, which have no effect here; rejects pipes and input.
    fn operator(&mut self, cmd: bool) -> Result<Operator, Wrong> {
        let start = self.at;
        match (self.peek(0), self.peek(1)) {
            (Some(b'&'), Some(b'>')) | (Some(b'>'), Some(b'>' | b'&')) => self.at += 2,
            (Some(b'>'), _) => self.at += 1,
            (Some(b'&'), Some(b'&')) => {
                self.at += 2;
                return Ok(Operator::End);
            }
            (Some(b'&'), _) => {
                self.at += 1;
                return Ok(Operator::End);
            }
            _ => {
                self.line_end();
                let help = say!("keep only the `curl` command; its output is not used here");
                let message = say!("a cURL file cannot contain pipes or redirected input");
                return Err(self.wrong("curl-shell", message, start, help));
            }
        }
        self.space(cmd);
        if cmd {
            self.cmd_word()?
        } else {
            self.bash_word()?
        };
        Ok(Operator::Nothing)
    }

    fn bash_word(&mut self) -> Result<Word, Wrong> {
        let start = self.at;
        let mut bytes = Vec::new();
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b';' | b'&' | b'|' | b'<' | b'>' => break,
                b'\'' => self.single_quoted(&mut bytes)?,
                b'"' => self.double_quoted(&mut bytes)?,
                b'$' if self.peek(1) == Some(b'\'') => self.ansi_quoted(&mut bytes)?,
                // A string for translation: only its quotes matter.
                b'$' if self.peek(1) == Some(b'"') => self.at += 1,
                b'\\' if self.newline(1) > 0 => self.at += 1 + self.newline(1),
                b'\\' => {
                    bytes.extend(self.peek(1));
                    self.at += 2;
                }
                b'$' | b'`' => {
                    self.refuse_variable()?;
                    self.take(&mut bytes);
                }
                _ => self.take(&mut bytes),
            }
        }
        self.at = self.at.min(self.text.len());
        // `2>` redirects standard error; the number is not a word of the command.
        if self.peek(0) == Some(b'>') && bytes.len() == 1 && bytes[0].is_ascii_digit() {
            self.operator(false)?;
            self.space(false);
            return match self.peek(0) {
                None | Some(b';' | b'&' | b'|' | b'>' | b'<' | b'#') => {
                    // An option without effect replaces it.
                    Ok(Word { bytes: b"-s".to_vec(), place: Place::new(0, start, self.at) })
                }
                Some(_) => self.bash_word(),
            };
        }
        Ok(Word { bytes, place: Place::new(0, start, self.at) })
    }

    fn take(&mut self, bytes: &mut Vec<u8>) {
        bytes.extend(self.peek(0));
        self.at += 1;
    }

    /// A single `$` is literal; `$NAME`, `${NAME}`, `$(command)` and backquotes would be expanded
    /// by a shell.
    fn refuse_variable(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        let filled = match (self.peek(0), self.peek(1)) {
            (Some(b'`'), _) => true,
            (_, Some(next)) => next.is_ascii_alphanumeric() || b"_{(".contains(&next),
            _ => false,
        };
        if !filled {
            return Ok(());
        }
        let name = self.text[start + 1..].iter();
        let length = name.take_while(|b| b.is_ascii_alphanumeric() || b"_{".contains(b)).count();
        self.at = start + 1 + length;
        let help = say!("write the value itself, or put the text into single quotes");
        Err(self.wrong(
            "curl-shell",
            say!("shell variables and commands are not expanded"),
            start,
            help,
        ))
    }

    fn unclosed<T>(&mut self, start: usize, quote: &str) -> Result<T, Wrong> {
        self.at = self.text.len().min(start + 1);
        let help = say!("add the closing `{quote}`, and check that you copied the whole command");
        Err(self.wrong("curl-quote", say!("this quote has no closing quote"), start, help))
    }

    fn single_quoted(&mut self, bytes: &mut Vec<u8>) -> Result<(), Wrong> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek(0) {
                None => return self.unclosed(start, "'"),
                Some(b'\'') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => self.take(bytes),
            }
        }
    }

    fn double_quoted(&mut self, bytes: &mut Vec<u8>) -> Result<(), Wrong> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek(0) {
                None => return self.unclosed(start, "\""),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') if self.newline(1) > 0 => self.at += 1 + self.newline(1),
                Some(b'\\') if self.peek(1).is_some_and(|b| b"\"\\$`".contains(&b)) => {
                    self.at += 1;
                    self.take(bytes);
                }
                Some(b'$' | b'`') => {
                    self.refuse_variable()?;
                    self.take(bytes);
                }
                Some(_) => self.take(bytes),
            }
        }
    }

    /// `$'…'` with the escapes of C (bash manual, 3.1.2.4).
    fn ansi_quoted(&mut self, bytes: &mut Vec<u8>) -> Result<(), Wrong> {
        let start = self.at;
        self.at += 2;
        loop {
            match self.peek(0) {
                None => return self.unclosed(start, "'"),
                Some(b'\'') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.ansi_escape(bytes);
                }
                Some(_) => self.take(bytes),
            }
        }
    }

    fn ansi_escape(&mut self, bytes: &mut Vec<u8>) {
        let Some(byte) = self.peek(0) else { return };
        self.at += 1;
        let simple = match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'e' | b'E' => 0x1b,
            b'f' => 0x0c,
            b'v' => 0x0b,
            b'\\' | b'\'' | b'"' | b'?' => byte,
            b'x' => return self.coded(bytes, b"\\x", 16, 2, false),
            b'u' => return self.coded(bytes, b"\\u", 16, 4, true),
            b'U' => return self.coded(bytes, b"\\U", 16, 8, true),
            b'0'..=b'7' => {
                self.at -= 1;
                return self.coded(bytes, b"\\", 8, 3, false);
            }
            _ => {
                bytes.push(b'\\');
                byte
            }
        };
        bytes.push(simple);
    }

    /// A character or byte given by its number; without digits the escape is literal.
    fn coded(&mut self, out: &mut Vec<u8>, written: &[u8], radix: u32, most: usize, wide: bool) {
        let mut code: u32 = 0;
        let mut digits = 0;
        while digits < most
            && let Some(digit) = self.peek(0).and_then(|b| (b as char).to_digit(radix))
        {
            code = code.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
            digits += 1;
        }
        match (digits, wide) {
            (0, _) => out.extend_from_slice(written),
            (_, false) => out.push(code as u8),
            (_, true) => {
                let first = char::from_u32(code).or_else(|| self.surrogates(code));
                let c = first.unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    /// Browsers write characters above U+FFFF as two escapes.
    fn surrogates(&mut self, high: u32) -> Option<char> {
        let rest = self.text.get(self.at..self.at + 6)?.strip_prefix(b"\\u")?;
        let low = u32::from_str_radix(std::str::from_utf8(rest).ok()?, 16).ok()?;
        let pair = (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low);
        let c = char::from_u32(
            0x10000 + ((high.wrapping_sub(0xd800)) << 10) + (low.wrapping_sub(0xdc00)),
        );
        self.at += if pair { 6 } else { 0 };
        c.filter(|_| pair)
    }

    /// A word as browsers write it for cmd.exe: carets escape, both kinds of quotes group, `\"` and
    /// `""` mean a quote, `\\` means a backslash.
    fn cmd_word(&mut self) -> Result<Word, Wrong> {
        let start = self.at;
        let mut bytes = Vec::new();
        let mut quote: Option<usize> = None;
        let mut careted = false;
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'&' | b'|' | b'<' | b'>' if quote.is_none() => {
                    break;
                }
                b'^' if self.newline(1) > 0 => {
                    // The caret escapes the first line end; the second one is literal.
                    self.at += 1 + self.newline(1);
                    if quote.is_some() && self.newline(0) > 0 {
                        self.at += self.newline(0);
                        bytes.push(b'\n');
                    }
                }
                b'^' if self.peek(1) == Some(b'"') => {
                    self.at += 2;
                    careted = quote.is_none() || careted;
                    quote = if quote.is_none() { Some(start) } else { None };
                }
                b'^' if careted || quote.is_none() || self.caret_escapes() => self.at += 1,
                b'\\' => self.cmd_backslash(&mut bytes),
                b'"' if quote.is_some() && self.peek(1) == Some(b'"') => {
                    bytes.push(b'"');
                    self.at += 2;
                }
                b'"' => {
                    self.at += 1;
                    quote = if quote.is_none() { Some(start) } else { None };
                    careted = false;
                }
                _ => self.take(&mut bytes),
            }
            // A caret was skipped: the next character is literal.
            if byte == b'^' && self.text.get(self.at - 1) == Some(&b'^') {
                match self.peek(0) {
                    Some(b'\\') => self.cmd_backslash(&mut bytes),
                    Some(_) => self.take(&mut bytes),
                    None => {}
                }
            }
        }
        match quote {
            Some(open) => self.unclosed(open, "\""),
            None => Ok(Word { bytes, place: Place::new(0, start, self.at) }),
        }
    }

    /// In plain quotes a caret escapes only what browsers escape, and is literal otherwise.
    fn caret_escapes(&self) -> bool {
        let keep = |b: u8| b.is_ascii_alphanumeric() || b.is_ascii_whitespace();
        let after_percent = self.at > 0 && self.text[self.at - 1] == b'%';
        after_percent || self.peek(1).is_some_and(|next| next.is_ascii() && !keep(next))
    }

    /// `\\`, `\"` and their forms with carets; any other backslash is literal.
    fn cmd_backslash(&mut self, bytes: &mut Vec<u8>) {
        let (length, byte) = match (self.peek(1), self.peek(2)) {
            (Some(b'\\'), _) => (2, b'\\'),
            (Some(b'"'), _) => (2, b'"'),
            (Some(b'^'), Some(b'\\')) => (3, b'\\'),
            (Some(b'^'), Some(b'"')) => (3, b'"'),
            _ => (1, b'\\'),
        };
        bytes.push(byte);
        self.at += length;
    }
}
