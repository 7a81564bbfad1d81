//! A command from the monitor's command line: its output is one figure, or several.

use throng_base::{Clock, Said};

use super::ASK_MAX;
use super::figure::Figure;
use super::prometheus;
use crate::command::{Limits, printed};
use crate::exposition;

/// The maximum size of the output.
const OUTPUT_BYTES_MAX: u64 = 64_000;

/// A shell command.
pub(super) struct Shell {
    pub(super) line: String,
}

impl Shell {
    /// Runs it once.
    pub(super) fn ask(&self, clock: &Clock) -> Result<Vec<Figure>, Said> {
        let limits = Limits { bytes: OUTPUT_BYTES_MAX, time: ASK_MAX };
        figures(&printed(&["/bin/sh", "-c", &self.line], limits, clock)?)
    }
}

/// The output: metrics, or else the first number.
fn figures(text: &str) -> Result<Vec<Figure>, Said> {
    let read = exposition::read(text, |_, _| true);
    if read.unreadable == 0 && !read.samples.is_empty() {
        return Ok(prometheus(text));
    }
    let number = |word: &str| word.parse().ok().filter(|it: &f64| it.is_finite());
    match text.split_whitespace().find_map(number) {
        Some(value) => Ok(vec![Figure::new("throng_command_value", false, value)]),
        None => Err(say!("its output contains neither a number nor metrics")),
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
    fn a_command_without_a_figure_reports_the_reason() {
        let clock = Clock::start();
        let why = |line: &str| run(line).expect_err("no figure");
        assert_eq!(why("echo none"), "its output contains neither a number nor metrics");
        assert_eq!(why("echo broken >&2; exit 3"), "it exited with code 3: broken");
        assert_eq!(why("exit 1"), "it exited with code 1");
        assert_eq!(why("kill -9 $$"), "it was killed by a signal");
        assert_eq!(why("yes"), "it prints more than 64.0 KB");
        assert_eq!(why("sleep 600 & sleep 600"), "it did not end within 3s");
        assert!(clock.now().second() < 60, "nothing of it is waited for");
    }
}
