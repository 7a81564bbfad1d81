//! A tool call is a child process of this program, so its output cannot corrupt the messages of the
//! protocol, and its failure does not affect the server. It is interrupted as by Ctrl-C.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::clock::wall_now;
use throng_base::system::in_own_group;
use throng_base::{Clock, Diagnostic, Exit, Said, Time, language};
use throng_host::{SIGINT, end_with_parent, signal_group};
use throng_plan::budget::{self, Budget};
use throng_results::create_directory;
use throng_results::directory::RECORDS;
use throng_run::guard::{self, MCP_LIST, MCP_VARIABLE};

use super::tools::{Tool, Words};

/// How often a child is checked.
const LOOK: Duration = Duration::from_millis(50);
/// Additional time for setup, teardown and a graceful stop.
const BESIDE_LOAD: Duration = Duration::from_secs(180);
/// The pause between requests to stop.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum output of a command: kept for programs, and shown as text.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
const TEXT_BYTES_MAX: usize = 100_000;
/// Units that `format_bytes` writes after a number.
const SIZE_UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
/// Minimum interval of progress notifications.
const PROGRESS_MIN: Duration = Duration::from_millis(200);

/// Common to all calls: the program, the allowed targets, and the limits.
pub struct Site {
    program: PathBuf,
    /// The allowed targets; empty for none.
    allowed: String,
    budget: Budget,
    /// A call sends requests; only one at a time may.
    sends: AtomicBool,
}

/// A call in progress, as seen by the server.
#[derive(Default)]
pub(super) struct Running {
    /// It sends requests; other calls are short.
    sends: bool,
    /// 1: as by Ctrl-C; 2: as by Ctrl-C twice; 3: kill.
    stops: AtomicU8,
    is_cancelled: AtomicBool,
}

impl Running {
    pub(super) fn of(tool: &Tool) -> Running {
        Running { sends: tool.sends, ..Running::default() }
    }

    /// The client is gone: calls that send requests stop, others may finish first.
    pub(super) fn leave(&self, strength: u8) {
        self.stop(if self.sends { strength } else { strength.saturating_sub(1) });
    }

    /// Requests a stop with at least this strength.
    pub(super) fn stop(&self, strength: u8) {
        self.stops.fetch_max(strength, Ordering::Relaxed);
    }

    /// The client no longer wants a reply.
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.stop(1);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

/// While it exists, no other call sends requests.
struct Sending<'a>(&'a AtomicBool);

impl Sending<'_> {
    fn begin(sends: &AtomicBool) -> Option<Sending<'_>> {
        (!sends.swap(true, Ordering::Relaxed)).then_some(Sending(sends))
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The result of a command.
struct Ended {
    /// None if it was terminated by a signal.
    code: Option<i32>,
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// Receives the progress of a call: seconds since its start, and a text.
type Tell<'a> = &'a (dyn Fn(f64, &str) + Sync);

impl Site {
    /// Allows runs against these targets, with the syntax of `THRONG_TARGETS`, within a budget.
    ///
    /// # Errors A target is not a name, an address or a network; or the path of this program is
    /// unknown.
    pub fn new(targets: &[String], budget: Budget) -> Result<Site, Box<Diagnostic>> {
        let allowed = targets.join("\n");
        guard::list(MCP_LIST, &allowed)?;
        let program = std::env::current_exe().map_err(|error| Box::new(not_started(&error)))?;
        Ok(Site { program, allowed, budget, sends: AtomicBool::new(false) })
    }

    /// The result of a call, as `tools/call` returns it.
    pub(super) fn call(
        &self,
        tool: &Tool,
        words: &Words,
        (running, tell): (&Running, Tell<'_>),
    ) -> Value {
        if !tool.sends {
            return self.done(tool, words, None, (running, tell));
        }
        if self.allowed.is_empty() {
            let message =
                say!("`{}` sends requests, but this server does not allow any target", tool.name);
            let help = say!(
                "start it with the targets that it may load-test: `throng mcp --allow TARGET`"
            );
            return refused(&Diagnostic::error("target-not-allowed", message).help(help));
        }
        let Some(_sending) = Sending::begin(&self.sends) else {
            let message = say!("a run is in progress or still ending");
            let help = say!("wait for its result, or cancel it; then call `{}` again", tool.name);
            return refused(&Diagnostic::error("run-in-progress", message).help(help));
        };
        match tool.json {
            true => self.recorded(tool, words, (running, tell)),
            false => self.done(tool, words, None, (running, tell)),
        }
    }

    /// A run, in a directory that the client is informed of.
    fn recorded(&self, tool: &Tool, words: &Words, (running, tell): (&Running, Tell<'_>)) -> Value {
        let name = match &words.input {
            Some(_) => Path::new("mcp"),
            None => words.operands.first().map_or(Path::new("mcp"), |file| Path::new(file)),
        };
        let name = name.file_stem().unwrap_or_default().to_string_lossy();
        let directory = match create_directory(Path::new(RECORDS), wall_now(), &name) {
            Ok(directory) => directory,
            Err(error) => {
                let error = Said::of_error(&error);
                let message = say!("cannot create a directory in ./{RECORDS}: {error}");
                let help = say!("give the server a writable directory: `throng mcp --dir DIR`");
                return refused(&Diagnostic::error("record-impossible", message).help(help));
            }
        };
        tell(0.0, &say!("run directory: {}", directory.display()).spoken());
        let result = self.done(tool, words, Some(&directory), (running, tell));
        // A run that did not start leaves nothing.
        let _ = std::fs::remove_dir(&directory);
        result
    }

    fn done(
        &self,
        tool: &Tool,
        words: &Words,
        record: Option<&Path>,
        (running, tell): (&Running, Tell<'_>),
    ) -> Value {
        let mut command = self.command(tool, words, tool.json);
        if let Some(record) = record {
            command.arg("--out").arg(record);
        }
        command.arg("--").args(&words.operands);
        let time_max = tool.sends.then_some(self.budget.time).flatten();
        let ended = match run(command, words, time_max, (running, tell)) {
            Ok(ended) => ended,
            Err(error) => return failed(&error),
        };
        let told = tool.json.then(|| serde_json::from_slice::<Value>(&ended.output).ok()).flatten();
        let Some(told) = told else { return ended.result() };
        // The same result for people.
        let mut command = match record {
            Some(_) => self.base("report"),
            None => self.command(tool, words, false),
        };
        command.arg("--");
        match record {
            Some(record) => command.arg(record),
            None => command.args(&words.operands),
        };
        let text = run(command, &Words::default(), None, (&Running::default(), &|_, _| {}));
        let text = text.map_or_else(|_| String::new(), |ended| shown(&ended.output));
        result(&text, Some(told), false)
    }

    /// The command of a tool, without its operands.
    fn command(&self, tool: &Tool, words: &Words, json: bool) -> Command {
        let mut command = self.base(tool.name);
        command.args(json.then_some("--json")).args(&words.options);
        if tool.sends {
            command.env(MCP_VARIABLE, &self.allowed);
            command.env(budget::VARIABLE, self.budget.to_string());
        }
        command
    }

    fn base(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--lang", language::spoken().word(), name]).env("NO_COLOR", "1");
        command
    }
}

/// Runs a command until it ends.
fn run(
    mut command: Command,
    words: &Words,
    time_max: Option<Duration>,
    (running, tell): (&Running, Tell<'_>),
) -> io::Result<Ended> {
    // Ctrl-C is for the server, which stops its calls.
    in_own_group(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    end_with_parent(&mut command);
    let mut child = command.spawn()?;
    let clock = Clock::start();
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A child that stops reading has reported why.
            let given = words.input.as_deref().unwrap_or_default();
            input.map(|mut input| input.write_all(given.as_bytes()))
        });
        let output = scope.spawn(|| output.map_or_else(Vec::new, whole));
        let errors = scope.spawn(|| errors.map_or_else(Vec::new, |it| lines(it, &clock, tell)));
        let code = wait(&mut child, &clock, (time_max, running))?;
        let (output, errors) = (output.join(), errors.join());
        Ok(Ended { code, output: output.unwrap_or_default(), errors: errors.unwrap_or_default() })
    })
}

/// Waits for the end, and forwards requests to stop.
fn wait(
    child: &mut Child,
    clock: &Clock,
    (time_max, running): (Option<Duration>, &Running),
) -> io::Result<Option<i32>> {
    let time_max = time_max.map(|time| time.saturating_add(BESIDE_LOAD));
    let mut passed_on = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        let passed = clock.now() - Time::ZERO;
        for (strength, later) in [(1, 0), (2, 1), (3, 2)] {
            if time_max.is_some_and(|max| passed > max.saturating_add(PATIENCE * later)) {
                running.stop(strength);
            }
        }
        if passed_on < running.stops.load(Ordering::Relaxed) {
            passed_on += 1;
            match passed_on {
                1 | 2 => signal_group(child.id(), SIGINT),
                _ => drop(child.kill()),
            }
        }
        std::thread::park_timeout(LOOK);
    }
}

fn whole(output: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut output = output.take(OUTPUT_BYTES_MAX);
    let _ = output.read_to_end(&mut bytes);
    // Excess output is read and discarded, so that the child never blocks on the pipe.
    let _ = io::copy(&mut output.into_inner(), &mut io::sink());
    bytes
}

/// Output for people: kept up to a limit, and each line is reported as progress.
fn lines(errors: impl Read, clock: &Clock, tell: Tell<'_>) -> Vec<u8> {
    let mut errors = BufReader::new(errors);
    let (mut kept, mut columns, mut last) = (Vec::new(), Columns::default(), Time::ZERO);
    loop {
        let mut line = Vec::new();
        let read = errors.by_ref().take(TEXT_BYTES_MAX as u64).read_until(b'\n', &mut line);
        if !read.is_ok_and(|count| count > 0) {
            return kept;
        }
        let now = clock.now();
        let text = columns.named(String::from_utf8_lossy(&line).trim_end());
        if let Some(text) = text.filter(|_| now.since(last) >= PROGRESS_MIN) {
            last = now;
            tell(now.as_secs_f64(), &text);
        }
        if kept.len() < TEXT_BYTES_MAX {
            kept.extend(line);
        }
    }
}

/// The progress lines of a run are rows of a table: each is reported with the names of its columns.
#[derive(Default)]
struct Columns(Vec<String>);

impl Columns {
    fn named(&mut self, line: &str) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            // A size is two words in one column.
            match words.last_mut().filter(|_| SIZE_UNITS.contains(&word)) {
                Some(last) => *last += &format!(" {word}"),
                None => words.push(word.to_string()),
            }
        }
        let first = words.first()?;
        if *first == say!("time").spoken() {
            self.0 = words;
            return None;
        }
        // The last column can have any number of words.
        let names = self.0.len().saturating_sub(1);
        let is_row = first.starts_with(|letter: char| letter.is_ascii_digit());
        if names == 0 || !is_row || words.len() < names {
            return Some(line.trim().to_string());
        }
        let pairs = self.0.iter().zip(&words).take(names);
        let pairs = pairs.map(|(name, word)| format!("{name} {word}"));
        let rest = words[names..].iter().cloned();
        Some(pairs.chain(rest).collect::<Vec<_>>().join(" · "))
    }
}

impl Ended {
    /// The result of a command whose output is only for people.
    fn result(&self) -> Value {
        let text = [shown(&self.output), shown(&self.errors)];
        let mut text =
            text.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        if self.code.is_none() {
            text += &say!("the command was ended by a signal").spoken();
        }
        let done = [Exit::Success, Exit::ThresholdsNotMet, Exit::TargetUnreachable];
        let is_done =
            self.code.is_some_and(|code| done.iter().any(|it| i32::from(it.code()) == code));
        result(&text, Some(json!({"exit_code": self.code})), !is_done)
    }
}

/// The text, shortened for the context of a model.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end();
    let kept = text.floor_char_boundary(TEXT_BYTES_MAX.min(text.len()));
    match text.len() - kept {
        0 => text.to_string(),
        more => format!("{}\n{}", &text[..kept], say!("… and {more} more bytes").spoken()),
    }
}

pub(super) fn result(text: &str, structured: Option<Value>, is_error: bool) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    if let Some(structured) = structured {
        result["structuredContent"] = structured;
    }
    result
}

/// The result of an invalid call, which the client can correct.
pub(super) fn refused(diagnostic: &Diagnostic) -> Value {
    result(diagnostic.render(false).trim_end(), None, true)
}

fn not_started(error: &io::Error) -> Diagnostic {
    let message = say!("the command cannot be started: {}", Said::of_error(error));
    Diagnostic::error("host-unfit", message)
}

fn failed(error: &io::Error) -> Value {
    let help = say!("free processes or memory on this host, and call the tool again");
    refused(&not_started(error).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_the_names_of_its_columns() {
        let mut columns = Columns::default();
        assert_eq!(columns.named("warning: something").as_deref(), Some("warning: something"));
        assert_eq!(columns.named("  time  users  bytes/s codes"), None);
        let row = columns.named("  1.0s     10 23.6 KB 200:240 503:10");
        let wanted = "time 1.0s · users 10 · bytes/s 23.6 KB · 200:240 · 503:10";
        assert_eq!(row.as_deref(), Some(wanted));
        assert_eq!(columns.named("[2s] steady").as_deref(), Some("[2s] steady"));
        assert_eq!(columns.named(""), None);
    }

    #[test]
    fn long_texts_are_truncated_at_a_character() {
        let text = "ä".repeat(TEXT_BYTES_MAX);
        let cut = shown(text.as_bytes());
        assert!(cut.len() < TEXT_BYTES_MAX + 100 && cut.contains("more bytes"), "{}", cut.len());
        assert_eq!(shown(b"a\n"), "a");
    }
}
