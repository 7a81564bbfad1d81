//! Reads Rust just well enough to tell code from comments, strings and characters, so that a rule
//! does not trip over text that only talks about code.

/// A line with everything that is not code taken out.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) code: String,
    /// Part of the line is inside a string.
    pub(super) has_string: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Code,
    LineComment,
    /// How many are open: block comments nest.
    BlockComment(usize),
    Text,
    /// With the number of `#` that close it.
    RawText(usize),
}

/// Splits a source into lines of code.
pub(super) fn lines(source: &str) -> Vec<Line> {
    let mut state = State::Code;
    source.lines().map(|line| scan_line(line, &mut state)).collect()
}

fn scan_line(line: &str, state: &mut State) -> Line {
    let characters: Vec<char> = line.chars().collect();
    let mut scanned = Line { code: String::new(), has_string: is_text(*state) };
    let mut at = 0;
    while at < characters.len() {
        let rest = &characters[at..];
        at += match *state {
            State::Code => scan_code(rest, &mut scanned.code, state),
            State::LineComment => rest.len(),
            State::BlockComment(depth) => scan_comment(rest, depth, state),
            State::Text => scan_text(rest, state),
            State::RawText(hashes) => scan_raw(rest, hashes, state),
        };
        scanned.has_string |= is_text(*state);
    }
    if *state == State::LineComment {
        *state = State::Code;
    }
    scanned
}

fn is_text(state: State) -> bool {
    matches!(state, State::Text | State::RawText(_))
}

/// Each of these eats some characters, at least one, and may change the state.
fn scan_code(rest: &[char], code: &mut String, state: &mut State) -> usize {
    match rest {
        ['/', '/', ..] => {
            *state = State::LineComment;
            2
        }
        ['/', '*', ..] => {
            *state = State::BlockComment(1);
            2
        }
        ['"', ..] => {
            *state = State::Text;
            1
        }
        ['r', ..] if !ends_in_name(code) || code.ends_with('b') || code.ends_with('c') => {
            let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
            if rest.get(1 + hashes) == Some(&'"') {
                *state = State::RawText(hashes);
                return 2 + hashes;
            }
            code.push('r');
            1
        }
        ['\'', '\\', _, ..] => {
            rest[3..].iter().position(|c| *c == '\'').map_or(rest.len(), |n| n + 4)
        }
        ['\'', _, '\'', ..] => 3,
        [first, ..] => {
            code.push(*first);
            1
        }
        [] => 1,
    }
}

fn ends_in_name(code: &str) -> bool {
    code.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn scan_comment(rest: &[char], depth: usize, state: &mut State) -> usize {
    match rest {
        ['*', '/', ..] => {
            *state = if depth == 1 { State::Code } else { State::BlockComment(depth - 1) };
            2
        }
        ['/', '*', ..] => {
            *state = State::BlockComment(depth + 1);
            2
        }
        _ => 1,
    }
}

fn scan_text(rest: &[char], state: &mut State) -> usize {
    match rest {
        ['\\', ..] => 2,
        ['"', ..] => {
            *state = State::Code;
            1
        }
        _ => 1,
    }
}

fn scan_raw(rest: &[char], hashes: usize, state: &mut State) -> usize {
    let closing = rest.iter().skip(1).take_while(|c| **c == '#').count();
    if rest.first() == Some(&'"') && closing >= hashes {
        *state = State::Code;
        return 1 + hashes;
    }
    1
}
