//! A command that whoever starts the monitor has given: what it prints is a figure, or several.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use throng_base::{Clock, Said};
use throng_host::kill_group;

use super::ASK_MAX;
use super::figure::Figure;
use super::prometheus;
use super::socket::Deadline;
use crate::exposition;

/// Of what a command prints.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

/// A line for the shell.
pub(super) struct Shell {
    pub(super) line: String,
}

impl Shell {
    /// Runs it once. A command that does not end is killed, with all that it has started.
    pub(super) fn ask(&self, clock: &Clock) -> Result<Vec<Figure>, Said> {
        let deadline = Deadline::within(clock, ASK_MAX);
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&self.line).stdin(Stdio::null()).process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Said::of_error(&error))?;
        let output = read(child.stdout.take());
        let errors = read(child.stderr.take());
        let came = take(&output, &deadline).and_then(|text| Ok((text, take(&errors, &deadline)?)));
        // What it has left in the background would hold its pipes for ever.
        kill_group(child.id());
        let status = ended(&mut child)?;
        let (output, errors) = came?;
        if output.len() as u64 > OUTPUT_BYTES_MAX {
            return Err(say!("it prints more than 64 KiB"));
        }
        if !status.success() {
            let first = errors.lines().next().unwrap_or_default().trim().to_string();
            return Err(match status.code() {
                Some(code) if first.is_empty() => say!("it ended with exit code {code}"),
                Some(code) => say!("it ended with exit code {code}: {first}"),
                None => say!("it was killed by a signal"),
            });
        }
        figures(&output)
    }
}

fn ended(child: &mut Child) -> Result<ExitStatus, Said> {
    child.wait().map_err(|error| Said::of_error(&error))
}

/// All that a pipe brings, up to a byte more than is read.
fn read(pipe: Option<impl std::io::Read + Send + 'static>) -> Receiver<String> {
    let (tell, told) = channel();
    let work = move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What came before an error is what there is.
            let _ = pipe.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
        }
        let _ = tell.send(String::from_utf8_lossy(&bytes).into_owned());
    };
    drop(std::thread::Builder::new().name("command".into()).spawn(work));
    told
}

fn take(pipe: &Receiver<String>, deadline: &Deadline<'_>) -> Result<String, Said> {
    let late = || say!("it did not end within {} s", ASK_MAX.as_secs());
    match pipe.recv_timeout(deadline.left().unwrap_or_default()) {
        Ok(text) => Ok(text),
        Err(RecvTimeoutError::Timeout) => Err(late()),
        Err(RecvTimeoutError::Disconnected) => Err(say!("its output cannot be read")),
    }
}

/// What was printed: metrics, or else the first number.
fn figures(text: &str) -> Result<Vec<Figure>, Said> {
    let read = exposition::read(text, |_, _| true);
    if read.unreadable == 0 && !read.samples.is_empty() {
        return Ok(prometheus(text));
    }
    let number = |word: &str| word.parse().ok().filter(|it: &f64| it.is_finite());
    match text.split_whitespace().find_map(number) {
        Some(value) => Ok(vec![Figure::new("throng_command_value", false, value)]),
        None => Err(say!("it prints no number and no metrics")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Vec<Figure>, String> {
        Shell { line: line.to_string() }.ask(&Clock::start()).map_err(|why| why.english())
    }

    #[test]
    fn a_number_or_metrics() {
        let value = |line: &str| run(line).expect("a figure")[0].value;
        assert_eq!(value("echo 17"), 17.0);
        assert_eq!(value("printf 'in queue: 4.5 of 9'"), 4.5);
        let told = run("printf 'jobs{kind=\"mail\"} 7\\ndone_total 9\\n'").expect("metrics");
        assert_eq!((told[0].name.as_str(), told[0].value), ("jobs", 7.0));
        assert!(told[1].is_counter);
    }

    #[test]
    fn what_gives_no_figure_says_why_and_is_over() {
        let clock = Clock::start();
        let why = |line: &str| run(line).expect_err("no figure");
        assert_eq!(why("echo none"), "it prints no number and no metrics");
        assert_eq!(why("echo broken >&2; exit 3"), "it ended with exit code 3: broken");
        assert_eq!(why("exit 1"), "it ended with exit code 1");
        assert_eq!(why("kill -9 $$"), "it was killed by a signal");
        assert_eq!(why("yes"), "it prints more than 64 KiB");
        assert_eq!(why("sleep 600 & sleep 600"), "it did not end within 3 s");
        assert!(clock.now().second() < 60, "nothing of it is waited for");
    }
}
