//! Formats what users do. The output of each step is buffered until the step ends, so that the
//! steps of several users do not mix.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::time::Duration;

use throng_base::units::format_duration;
use throng_base::{Said, Secrets, StepId, UserId, clean};
use throng_engine::{Figures, Shown, Trace, What};
use throng_metrics::{Cause, Stage, status_text};
use throng_program::{OncePart, Program, StepKind};

use super::{Attempt, Page, Tally, form};

/// Lines per message, unless `full` is set.
const LINES_MAX: usize = 24;
const COLUMNS_MAX: usize = 200;
const HEX_BYTES_MAX: usize = 128;
/// Characters per saved value.
const VALUE_CHARS_MAX: usize = 120;
/// How often a step in a loop is shown with its data, unless `full` is set.
const VISITS_SHOWN_MAX: u32 = 2;

pub(super) struct Telling<'p, 'o> {
    program: &'p Program,
    /// Set for a setup or teardown.
    once: Option<OncePart>,
    full: bool,
    several: bool,
    page: &'p Page<'o>,
    /// `None` if secrets are to be printed.
    secrets: Option<&'p Secrets>,
    blocks: HashMap<UserId, Block>,
    /// Users whose heading was printed, and whether it was that of an iteration.
    headed: HashMap<UserId, bool>,
    /// How often each user executed each instruction.
    visits: HashMap<(UserId, u32), u32>,
    /// Steps in which a try failed and the next has not ended.
    retrying: HashSet<(UserId, StepId)>,
    /// Whether the data of repeated steps was omitted.
    leaves_out: bool,
    pub(super) tally: Tally,
}

/// The buffered output of a step that has not ended.
#[derive(Default)]
struct Block {
    head: String,
    lines: Vec<String>,
    /// The head of the response so far, until it is complete.
    head_so_far: Vec<u8>,
    /// Elements similar to what a selector without a match describes; printed after the failure.
    near: Vec<String>,
    begun: bool,
    /// Print only the head, unless the step fails.
    is_brief: bool,
}

impl<'p, 'o> Telling<'p, 'o> {
    pub(super) fn new(
        program: &'p Program,
        once: Option<OncePart>,
        wanted: &Attempt,
        page: &'p Page<'o>,
    ) -> Self {
        Telling {
            program,
            once,
            full: wanted.full,
            several: wanted.users > 1,
            page,
            secrets: (!wanted.show_secrets).then_some(&program.secrets),
            blocks: HashMap::new(),
            headed: HashMap::new(),
            visits: HashMap::new(),
            retrying: HashSet::new(),
            leaves_out: false,
            tally: Tally::default(),
        }
    }

    /// Prints a message of throng.
    pub(super) fn say(&self, mut line: Said) {
        // A text of the scenario may contain a saved token.
        line.change_texts(&|text| self.masked(text).into_owned());
        self.page.say(&line);
    }

    /// Prints what is still buffered.
    pub(super) fn end(&mut self) {
        let users: Vec<UserId> = self.blocks.keys().copied().collect();
        users.into_iter().for_each(|user| self.flush(user));
        // The session was interrupted before the next try, so these steps were not counted yet.
        self.tally.steps += self.retrying.len() as u64;
        self.tally.failed += self.retrying.len() as u64;
        if self.leaves_out {
            self.say(say!(
                "only the first {VISITS_SHOWN_MAX} loop iterations are shown with their data; \
                 --full shows all"
            ));
        }
    }

    pub(super) fn tell(&mut self, trace: &Trace) {
        let user = trace.user;
        self.head(trace);
        match &trace.what {
            What::IterationBegins => {}
            What::IterationEnds { finished } => {
                self.flush(user);
                if !finished {
                    self.say(say!("the iteration ended early"));
                }
            }
            What::StepBegins { step, verb, pc, retry } => {
                self.step_begins(user, *step, verb, *retry);
                self.visited(user, *pc, *retry);
            }
            What::Connected { target, stages } => self.connected(user, target, stages),
            What::Sent(shown) => self.sent(user, shown),
            What::Received(shown) => {
                self.blocks.entry(user).or_default().head_so_far.clear();
                self.message(user, "←", &shown.bytes, shown);
            }
            What::PartOfHead(shown) => {
                self.blocks.entry(user).or_default().head_so_far.extend(&*shown.bytes);
            }
            What::CookieRefused { name, why } => self.cookie_refused(user, name, why),
            What::Note(words) => {
                let line = self.page.style.ink("33", &self.in_words(words));
                self.add(user, line);
            }
            What::Near(words) => self.near(user, words),
            What::StepEnds { step, failure, figures } => {
                self.retrying.remove(&(user, *step));
                if self.program.step(*step).kind != StepKind::Transaction {
                    self.tally.steps += 1;
                    self.tally.failed += u64::from(failure.is_some());
                }
                let mark = if failure.is_none() { ("32", "✓") } else { ("31", "✗") };
                self.ended(user, *step, figures, mark, failure.as_ref());
            }
            What::TryFails { step, failure, figures } => {
                self.retrying.insert((user, *step));
                self.ended(user, *step, figures, ("33", "↻"), Some(failure));
            }
            What::Saved { name, value } => {
                let value = self.shortened(name, value);
                self.add(user, tell!("saved {name} = {value}"));
            }
            What::Set { name, value } => {
                self.flush(user);
                let value = self.shortened(name, value);
                let line = tell!("set {name} = {value}");
                self.page.line(&format!("{}  {line}", self.who(user)));
            }
            What::Paused(time) => self.paused(user, *time),
            What::Condition { holds } => self.condition(user, *holds),
            What::Log(text) => self.logged(user, text),
            What::Anew => {
                self.headed.remove(&user);
                self.between(user, say!("the session starts again"));
            }
            What::GivenUp => self.between(
                user,
                say!("the session is abandoned: a restart would fail at the same point"),
            ),
            What::Gone => self.flush(user),
            What::LeftOut(count) => {
                self.say(say!("{count} events are not shown: too many happened at the same time"));
            }
        }
    }

    /// Prints a heading before a user's first step, in `before` or in an iteration, and before each
    /// further iteration.
    fn head(&mut self, trace: &Trace) {
        if matches!(trace.what, What::IterationEnds { .. } | What::Gone | What::LeftOut(_)) {
            return;
        }
        let begins = trace.what == What::IterationBegins;
        let known = self.headed.get(&trace.user).copied();
        self.headed.insert(trace.user, begins || known == Some(true));
        if known.is_some_and(|has_iteration| !(begins && has_iteration)) {
            return;
        }
        self.flush(trace.user);
        let name = &self.program.sessions[usize::from(trace.session)].name;
        let title = match self.once {
            Some(part) => part.word().to_string(),
            None => tell!("session {}, user {}", clean(name), trace.user),
        };
        self.page.line("");
        self.page.line(&self.page.style.bold(&title));
    }

    /// Prints the incomplete head of a response.
    fn unfinished_head(&mut self, user: UserId) {
        let bytes = self.blocks.get_mut(&user).map(|block| std::mem::take(&mut block.head_so_far));
        if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
            self.message(user, "←", &bytes, &Shown::of(&bytes));
        }
    }

    fn condition(&mut self, user: UserId, holds: bool) {
        self.flush(user);
        let line = match holds {
            true => say!("the condition is true"),
            false => say!("the condition is false"),
        };
        let line = self.page.style.dim(&line.spoken());
        self.page.line(&format!("{}  {line}", self.who(user)));
    }

    fn logged(&self, user: UserId, text: &str) {
        let masked = self.secrets.map(|secrets| secrets.mask_message(text));
        let text = clean(masked.as_deref().unwrap_or(text));
        self.page.line(&format!("{}  {}: {text}", self.who(user), tell!("log")));
    }

    /// Prints a message of throng between two steps of a user.
    fn between(&mut self, user: UserId, line: Said) {
        self.flush(user);
        self.say(line);
    }

    fn connected(&mut self, user: UserId, target: &str, stages: &[(Stage, Duration)]) {
        let stage = |(stage, time): &(Stage, Duration)| {
            format!("{} {}", stage.text().spoken(), format_duration(*time))
        };
        let stages: Vec<String> = stages.iter().map(stage).collect();
        let text = tell!("connected to {target}: {}", stages.join(", "));
        self.add(user, self.page.style.dim(&text));
    }

    fn step_begins(&mut self, user: UserId, step: Option<StepId>, verb: &str, retry: u32) {
        self.flush(user);
        let name = step.map(|step| self.program.step(step).name.as_str());
        let mut head = match name {
            // The step has its default name, such as `publish rooms/1`.
            Some(name) if name.split(' ').next() == Some(verb) => name.to_string(),
            Some(name) => format!("{verb} {name}"),
            None => verb.to_string(),
        };
        if retry > 0 {
            let _ = write!(head, " · {}", tell!("try {}", retry + 1));
        }
        let block = Block { head, begun: true, ..Block::default() };
        self.blocks.insert(user, block);
        if verb == "parallel" {
            // The branches print their own steps.
            self.flush(user);
        }
    }

    /// A step that a loop repeats often is shown without its data. All tries of an attempt
    /// are one visit.
    fn visited(&mut self, user: UserId, pc: u32, retry: u32) {
        let visits = self.visits.entry((user, pc)).or_default();
        *visits += u32::from(retry == 0);
        let is_brief = !self.full && *visits > VISITS_SHOWN_MAX;
        if let Some(block) = self.blocks.get_mut(&user) {
            block.is_brief = is_brief;
        }
    }

    fn ended(
        &mut self,
        user: UserId,
        step: StepId,
        figures: &Figures,
        (ink, mark): (&str, &str),
        failure: Option<&(Cause, Said)>,
    ) {
        self.unfinished_head(user);
        let row = self.program.step(step);
        if row.kind == StepKind::Transaction {
            self.flush(user);
        }
        let code = (figures.code > 0).then(|| status_text(figures.code));
        let facts: Vec<String> =
            code.into_iter().chain(figures.latency.map(format_duration)).collect();
        let facts = facts.join("  ");
        let block = self.blocks.entry(user).or_default();
        if !block.begun {
            block.head = format!("{} {}", row.kind.word(), row.name);
            block.begun = true;
        }
        let mark = self.page.style.ink(ink, mark);
        block.head = format!("{mark} {}  {facts}", clean(&block.head)).trim_end().to_string();
        match failure {
            Some((cause, detail)) => {
                let text = format!("{}: {}", cause.word(), self.in_words(detail));
                let line = self.page.style.ink(ink, &text);
                self.add(user, line);
            }
            None if block.is_brief => {
                self.leaves_out |= !block.lines.is_empty();
                block.lines.clear();
            }
            None => {}
        }
        let block = self.blocks.entry(user).or_default();
        block.lines.append(&mut block.near);
        self.flush(user);
    }

    fn paused(&mut self, user: UserId, time: Duration) {
        let text = tell!("paused {}", format_duration(time));
        match self.blocks.get_mut(&user) {
            Some(block) if block.begun => block.head = format!("· {}  {text}", block.head),
            _ => self.add(user, text),
        }
        self.flush(user);
    }

    fn cookie_refused(&mut self, user: UserId, name: &str, why: &Said) {
        let (name, why) = (clean(&self.masked(name)), self.in_words(why));
        let line = tell!("the cookie `{name}` was rejected: {why}");
        self.add(user, self.page.style.ink("33", &line));
    }

    /// What stands behind the failure that follows.
    fn near(&mut self, user: UserId, words: &Said) {
        let line = cut(&self.in_words(words), COLUMNS_MAX);
        self.blocks.entry(user).or_default().near.push(line);
    }

    /// A request, its form spelled out.
    fn sent(&mut self, user: UserId, shown: &Shown) {
        let form = form::spelled_out(&shown.bytes, |name, value| {
            self.masked_value(name, value).into_owned()
        });
        let bytes = form.as_ref().map_or(&*shown.bytes, String::as_bytes);
        self.message(user, "→", bytes, shown);
    }

    /// Prints a sent or received message line by line. `bytes` is the exact data.
    fn message(&mut self, user: UserId, arrow: &str, bytes: &[u8], shown: &Shown) {
        let bytes = match self.secrets {
            Some(secrets) => secrets.mask_bytes(bytes),
            None => Cow::Borrowed(bytes),
        };
        let mut lines = match std::str::from_utf8(&bytes) {
            Ok(text) if is_readable(text) => self.text_lines(text),
            _ => hex_lines(&bytes, self.full),
        };
        let told = shown.bytes.len() as u64;
        if shown.length > told {
            let more = shown.length - told;
            lines.push(tell!("… and {more} more bytes"));
        }
        for (index, line) in lines.into_iter().enumerate() {
            let lead = if index == 0 { arrow } else { " " };
            self.add(user, format!("{} {line}", self.page.style.ink("36", lead)));
        }
    }

    fn text_lines(&self, text: &str) -> Vec<String> {
        let all: Vec<&str> = text.trim_end_matches(['\r', '\n']).lines().collect();
        let most = if self.full { usize::MAX } else { LINES_MAX };
        let mut lines: Vec<String> = all
            .iter()
            .take(most)
            .map(|line| match self.full {
                true => clean(line),
                false => cut(&clean(line), COLUMNS_MAX),
            })
            .collect();
        if all.len() > most {
            let more = all.len() - most;
            lines.push(tell!("… and {more} more lines; --full shows them"));
        }
        lines
    }

    fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.secrets.map_or(Cow::Borrowed(text), |secrets| secrets.mask(text))
    }

    /// Renders a message in the user's language and masks secrets.
    pub(super) fn in_words(&self, said: &Said) -> String {
        let mut said = said.clone().cleaned();
        said.change_texts(&|text| self.masked(text).into_owned());
        said.spoken()
    }

    /// A named value on one line.
    fn shortened(&self, name: &str, value: &str) -> String {
        cut(&clean(&self.masked_value(name, value)), VALUE_CHARS_MAX)
    }

    fn masked_value<'t>(&self, name: &str, value: &'t str) -> Cow<'t, str> {
        match self.secrets {
            Some(secrets) => secrets.mask_value(name, value),
            None => Cow::Borrowed(value),
        }
    }

    fn add(&mut self, user: UserId, line: String) {
        self.blocks.entry(user).or_default().lines.push(line);
    }

    /// Prints a user's buffered block.
    fn flush(&mut self, user: UserId) {
        let Some(block) = self.blocks.remove(&user) else { return };
        let who = self.who(user);
        if block.begun {
            self.page.line(&format!("{who}{}", block.head));
        }
        for line in &block.lines {
            self.page.line(&format!("{who}    {line}"));
        }
    }

    fn who(&self, user: UserId) -> String {
        match self.several {
            true => self.page.style.dim(&format!("[{user}] ")),
            false => String::new(),
        }
    }
}

fn is_readable(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

fn hex_lines(bytes: &[u8], full: bool) -> Vec<String> {
    let most = if full { bytes.len() } else { bytes.len().min(HEX_BYTES_MAX) };
    let mut lines: Vec<String> = bytes[..most]
        .chunks(16)
        .map(|chunk| {
            let hex: String = chunk.iter().map(|byte| format!("{byte:02x} ")).collect();
            let text: String = chunk
                .iter()
                .map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' })
                .collect();
            format!("{hex:48} {text}")
        })
        .collect();
    if most < bytes.len() {
        let more = bytes.len() - most;
        lines.push(tell!("… and {more} more bytes; --full shows them"));
    }
    lines
}

fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_hex() {
        let lines = hex_lines(&[0, 65, 255], false);
        assert_eq!(lines, ["00 41 ff                                         .A."]);
        assert_eq!(hex_lines(&[7; 200], false).len(), 9);
        assert_eq!(hex_lines(&[7; 200], true).len(), 13);
    }

    #[test]
    fn control_characters_are_not_shown_as_text() {
        assert!(is_readable("a\r\nb\t"));
        assert!(!is_readable("a\x1b[2J"));
    }
}
