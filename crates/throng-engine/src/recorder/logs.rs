//! The lines of the verb `log`: a few per second, short, without control characters.

use throng_base::{Time, UserId, clean};

/// Lines per shard and second; further ones are only counted.
pub const LOGS_PER_SECOND_MAX: u32 = 20;
const LINE_CHARS_MAX: usize = 500;

/// One line of the verb `log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub at: Time,
    /// `None` for a line about omitted lines.
    pub user: Option<UserId>,
    pub text: String,
}

/// The lines of a shard since the last hand-over.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    second: u64,
    /// Lines of the current second.
    written: u32,
    left_out: u64,
    lines: Vec<Line>,
}

impl Logs {
    pub(crate) fn write(&mut self, at: Time, user: UserId, text: &[u8]) {
        if at.second() != self.second {
            self.close(at);
        }
        if self.written == LOGS_PER_SECOND_MAX {
            self.left_out += 1;
            return;
        }
        self.written += 1;
        self.lines.push(Line { at, user: Some(user), text: line_of(text) });
    }

    /// The lines so far; the count of the current second continues.
    pub(crate) fn take(&mut self, now: Time) -> Vec<Line> {
        if now.second() != self.second {
            self.close(now);
        }
        std::mem::take(&mut self.lines)
    }

    /// All remaining lines.
    pub(crate) fn take_last(&mut self, now: Time) -> Vec<Line> {
        self.close(now);
        std::mem::take(&mut self.lines)
    }

    fn close(&mut self, at: Time) {
        self.second = at.second();
        self.written = 0;
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            let text = say!("{left_out} more lines in this second are omitted");
            self.lines.push(Line { at, user: None, text: text.english() });
        }
    }
}

/// In a form that is safe for files and terminals.
fn line_of(text: &[u8]) -> String {
    // A character has at most four bytes.
    let cut = &text[..text.len().min(4 * LINE_CHARS_MAX)];
    let text = String::from_utf8_lossy(cut);
    let short: String = text.chars().take(LINE_CHARS_MAX).collect();
    let mut line = clean(&short);
    if text.chars().nth(LINE_CHARS_MAX).is_some() || cut.len() == 4 * LINE_CHARS_MAX {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_becomes_a_few_and_a_count() {
        let mut logs = Logs::default();
        let at = |milli: u64| Time(milli * 1_000_000);
        for milli in 0..500 {
            logs.write(at(milli), UserId(1), b"flood");
        }
        assert_eq!(logs.take(at(500)).len(), LOGS_PER_SECOND_MAX as usize);
        logs.write(at(600), UserId(1), b"still too much");
        assert_eq!(logs.take(at(700)), []);
        logs.write(at(1200), UserId(2), b"one more");
        let lines = logs.take_last(at(1300));
        let want = format!("{} more lines in this second are omitted", 501 - LOGS_PER_SECOND_MAX);
        assert_eq!((lines[0].user, lines[0].text.as_str()), (None, want.as_str()));
        assert_eq!((lines[1].user, lines[1].text.as_str()), (Some(UserId(2)), "one more"));
        assert_eq!(logs.take_last(at(1400)), []);
    }

    #[test]
    fn lines_are_short_and_free_of_control_characters() {
        assert_eq!(line_of(b"a\x1b[31m\r\nb\tc"), "a\\u{1b}[31m\\r\\nb\\tc");
        assert_eq!(line_of(&[0xff, b'x']), "\u{fffd}x");
        let long = line_of("ü".repeat(10_000).as_bytes());
        assert_eq!(long.chars().count(), LINE_CHARS_MAX + 1);
        assert!(long.ends_with('…'));
    }
}
