//! A call of a tool is a child process of this very program. Whatever it prints cannot get between
//! the messages of the protocol, and whatever becomes of it, the server goes on. It is interrupted
//! as by Ctrl-C.

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

/// How often a child is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// A setup, a teardown and a graceful stop take so long beside the load, if all goes well.
const BESIDE_LOAD: Duration = Duration::from_secs(180);
/// Behind one request to stop, the next follows so much later.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of what a command prints: what is kept for programs, and what is shown as text.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
const TEXT_BYTES_MAX: usize = 100_000;
/// What `format_bytes` writes behind a number.
const SIZE_UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
/// Progress is told no more often.
const PROGRESS_MIN: Duration = Duration::from_millis(200);

/// What all calls share: this program, the targets that it may load, and how much.
pub struct Site {
    program: PathBuf,
    /// What may be loaded; empty: nothing.
    allowed: String,
    budget: Budget,
    /// A call sends requests: no other one may.
    sends: AtomicBool,
}

/// A call that goes on, as the server sees it.
#[derive(Default)]
pub(super) struct Running {
    /// It sends requests; what does not is over soon.
    sends: bool,
    /// 1: as by Ctrl-C; 2: as by Ctrl-C twice; 3: at once.
    stops: AtomicU8,
    is_cancelled: AtomicBool,
}

impl Running {
    pub(super) fn of(tool: &Tool) -> Running {
        Running { sends: tool.sends, ..Running::default() }
    }

    /// Its client is gone: what sends requests stops, and what does not may end by itself first.
    pub(super) fn leave(&self, strength: u8) {
        self.stop(if self.sends { strength } else { strength.saturating_sub(1) });
    }

    /// Asks it to stop, at least so strongly.
    pub(super) fn stop(&self, strength: u8) {
        self.stops.fetch_max(strength, Ordering::Relaxed);
    }

    /// Its client wants no answer.
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.stop(1);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

/// While it is there, no other call sends requests.
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

/// What a command came to.
struct Ended {
    /// None if a signal ended it.
    code: Option<i32>,
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// Who is told how far a call is: seconds since its start, and a text.
type Tell<'a> = &'a (dyn Fn(f64, &str) + Sync);

impl Site {
    /// Runs may load these targets, as the list of `THRONG_TARGETS` names them, within a budget.
    ///
    /// # Errors
    /// A target is not a name, an address or a network; or this program cannot be found.
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

    /// A run, in a directory that its client is told of.
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
        // A run that never began leaves nothing.
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
        // What a person reads of the same.
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

/// Runs a command to its end.
fn run(
    mut command: Command,
    words: &Words,
    time_max: Option<Duration>,
    (running, tell): (&Running, Tell<'_>),
) -> io::Result<Ended> {
    // A key that interrupts is for the server: it stops its calls.
    in_own_group(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    end_with_parent(&mut command);
    let mut child = command.spawn()?;
    let clock = Clock::start();
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // One that reads no more has told why.
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

/// Waits for the end, and passes on each request to stop.
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
    // What is too much is read all the same: nobody waits for room in a pipe.
    let _ = io::copy(&mut output.into_inner(), &mut io::sink());
    bytes
}

/// What is said for people: all of it is kept up to a bound, and each line is progress.
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

/// The lines of a run are rows of a table: each alone is told with the names of its columns.
#[derive(Default)]
struct Columns(Vec<String>);

impl Columns {
    fn named(&mut self, line: &str) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            // A size is two words of one column.
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
        // The last column holds any number of words.
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
    /// Of a command that speaks to people only.
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

/// The text without what a model has no room for.
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

/// A call that cannot be done as it is asked for: its client can change that.
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
    fn long_texts_are_cut_at_a_character() {
        let text = "ä".repeat(TEXT_BYTES_MAX);
        let cut = shown(text.as_bytes());
        assert!(cut.len() < TEXT_BYTES_MAX + 100 && cut.contains("more bytes"), "{}", cut.len());
        assert_eq!(shown(b"a\n"), "a");
    }
}
