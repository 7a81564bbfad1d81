//! The tools beside each other: how each is told the same load, and where each says what it did.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::child::Ended;
use super::throng;
use crate::packages;

/// A way to make load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tool {
    /// `throng bench`.
    Throng,
    /// `throng run` with a check of the status.
    Scenario,
    Wrk,
    Ab,
    H2load,
    Hey,
    K6,
}

/// What every tool is told.
pub(super) struct Load {
    pub(super) url: String,
    pub(super) connections: u32,
    pub(super) seconds: u32,
    pub(super) keep_alive: bool,
}

/// What a tool says it did.
#[derive(Debug, PartialEq)]
pub(super) struct Done {
    pub(super) ok: u64,
    pub(super) failed: u64,
}

/// Where the bench's files and throng's binary are.
pub(super) struct Places {
    pub(super) folder: PathBuf,
    pub(super) throng: PathBuf,
}

impl Tool {
    pub(super) const ALL: [Tool; 7] =
        [Tool::Throng, Tool::Scenario, Tool::Wrk, Tool::Ab, Tool::H2load, Tool::Hey, Tool::K6];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Throng => "throng bench",
            Tool::Scenario => "throng run, checked",
            Tool::Wrk => "wrk",
            Tool::Ab => "ab",
            Tool::H2load => "h2load",
            Tool::Hey => "hey",
            Tool::K6 => "k6",
        }
    }

    /// The word for it on the command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Tool::Throng => "throng",
            Tool::Scenario => "scenario",
            other => other.name(),
        }
    }

    /// The program, or how to get it.
    pub(super) fn program(self, places: &Places) -> Result<PathBuf, String> {
        let install = match self {
            Tool::Throng | Tool::Scenario if places.throng.is_file() => {
                return Ok(places.throng.clone());
            }
            Tool::Throng | Tool::Scenario => "cargo build --release -p throng",
            Tool::Wrk => "apt-get install wrk",
            Tool::Ab => "apt-get install apache2-utils",
            Tool::H2load => "apt-get install nghttp2-client",
            Tool::Hey => "go install github.com/rakyll/hey@latest",
            Tool::K6 => "go install go.k6.io/k6@latest",
        };
        let missing = || format!("missing; to get it: {install}");
        packages::program(self.name()).ok_or_else(missing)
    }

    /// Whether the tool can make this load at all; if not, why.
    pub(super) fn can(self, load: &Load) -> Result<(), &'static str> {
        match self {
            // Seen with 1.52: it opens connections for ever and does not end.
            Tool::H2load if !load.keep_alive => Err("never ends when the server closes"),
            _ => Ok(()),
        }
    }

    /// The command that makes the load.
    pub(super) fn command(self, load: &Load, places: &Places) -> Result<Command, String> {
        let connections = load.connections.to_string();
        let seconds = load.seconds.to_string();
        let mut command = Command::new(self.program(places)?);
        match self {
            Tool::Throng => {
                let more: &[&str] = if load.keep_alive { &[] } else { &["--no-keepalive"] };
                let throng = &places.throng;
                return Ok(throng::bench(throng, &load.url, load.connections, load.seconds, more));
            }
            Tool::Scenario => {
                let text = throng::checked_scenario(&load.url, load.connections, load.seconds);
                let file = write(&places.folder, "checked.yaml", &text)?;
                return Ok(throng::run(&places.throng, &file));
            }
            Tool::Wrk => {
                command.args(["-t1", "-c", &connections, "-d", &format!("{seconds}s")]);
                if !load.keep_alive {
                    command.args(["-H", "Connection: close"]);
                }
            }
            Tool::Ab => {
                if load.keep_alive {
                    command.arg("-k");
                }
                // `-t` implies a small `-n`, so `-n` comes after it.
                command.args(["-q", "-r", "-c", &connections, "-t", &seconds, "-n", "10000000"]);
            }
            Tool::H2load => {
                command.args(["--h1", "-t1", "-c", &connections, "-D", &seconds]);
            }
            Tool::Hey => {
                command.args(["-z", &format!("{seconds}s"), "-c", &connections]);
                if !load.keep_alive {
                    command.arg("-disable-keepalive");
                }
            }
            Tool::K6 => {
                let file = write(&places.folder, "k6.js", &k6_script(load))?;
                command.args(["run", "--quiet", "--no-usage-report"]).arg(file);
                return Ok(command);
            }
        }
        command.arg(&load.url);
        Ok(command)
    }

    /// Reads what the tool did from what it printed.
    pub(super) fn done(self, ended: &Ended) -> Result<Done, String> {
        let done = match self {
            Tool::Throng | Tool::Scenario => {
                throng::counts(&ended.output).ok().map(|(ok, failed)| Done { ok, failed })
            }
            Tool::Wrk => wrk_done(&ended.output),
            Tool::Ab => ab_done(&ended.output),
            Tool::H2load => h2load_done(&ended.output),
            Tool::Hey => Some(hey_done(&ended.output)),
            Tool::K6 => k6_done(&ended.output),
        };
        let succeeded = match self {
            Tool::Throng | Tool::Scenario => throng::has_figures(ended.status),
            _ => ended.status.success(),
        };
        match done {
            Some(done) if done.ok > 0 && succeeded => Ok(done),
            _ => Err(ended.complaint()),
        }
    }
}

pub(super) fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let file = folder.join(name);
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}

fn k6_script(load: &Load) -> String {
    format!(
        "import http from 'k6/http';\n\
         export const options = {{ vus: {}, duration: '{}s', noConnectionReuse: {} }};\n\
         export default function () {{ http.get('{}'); }}\n\
         export function handleSummary(data) {{ return {{ stdout: JSON.stringify(data) }}; }}\n",
        load.connections, load.seconds, !load.keep_alive, load.url
    )
}

/// The number directly before `after`, on the first line that contains it.
fn number_before(output: &str, after: &str) -> Option<u64> {
    let (before, _) = output.split_once(after)?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The number that follows `before` after blanks.
fn number_after(output: &str, before: &str) -> Option<u64> {
    let (_, after) = output.split_once(before)?;
    after.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

pub(super) fn wrk_done(output: &str) -> Option<Done> {
    let all = number_before(output, " requests in ")?;
    let bad = number_after(output, "Non-2xx or 3xx responses:").unwrap_or(0);
    let errors = output.lines().find_map(|line| line.trim().strip_prefix("Socket errors:"));
    let lost: u64 = errors
        .into_iter()
        .flat_map(|line| line.split(|c: char| !c.is_ascii_digit()))
        .filter_map(|number| number.parse::<u64>().ok())
        .sum();
    Some(Done { ok: all.saturating_sub(bad), failed: bad + lost })
}

fn ab_done(output: &str) -> Option<Done> {
    let all = number_after(output, "Complete requests:")?;
    let failed = number_after(output, "Failed requests:")?
        + number_after(output, "Non-2xx responses:").unwrap_or(0);
    Some(Done { ok: all.saturating_sub(failed), failed })
}

pub(super) fn h2load_done(output: &str) -> Option<Done> {
    let requests = output.lines().find_map(|line| line.strip_prefix("requests: "))?;
    let failed = number_before(requests, " failed")? + number_before(requests, " errored")?;
    let good = output.lines().find_map(|line| line.strip_prefix("status codes: "))?;
    Some(Done { ok: number_before(good, " 2xx")?, failed })
}

/// hey prints `  [200]\t64894 responses` per status and `  [12]\tGet …` per error.
fn hey_done(output: &str) -> Done {
    let mut done = Done { ok: 0, failed: 0 };
    for line in output.lines() {
        let Some((label, rest)) =
            line.trim().strip_prefix('[').and_then(|line| line.split_once("]\t"))
        else {
            continue;
        };
        match rest.strip_suffix(" responses").map(str::parse::<u64>) {
            Some(Ok(count)) if label.starts_with('2') => done.ok += count,
            Some(Ok(count)) => done.failed += count,
            _ => done.failed += label.parse().unwrap_or(0),
        }
    }
    done
}

fn k6_done(output: &str) -> Option<Done> {
    let summary: Value = serde_json::from_str(output.trim()).ok()?;
    let metrics = &summary["metrics"];
    let all = metrics["http_reqs"]["values"]["count"].as_u64()?;
    let failed = metrics["http_req_failed"]["values"]["passes"].as_u64()?;
    Some(Done { ok: all.saturating_sub(failed), failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_read() {
        let wrk = "  204766 requests in 2.00s, 166.57MB read\n  Socket errors: connect 1, read 2, \
                   write 0, timeout 3\n  Non-2xx or 3xx responses: 66\n";
        assert_eq!(wrk_done(wrk), Some(Done { ok: 204_700, failed: 72 }));
        let ab = "Complete requests:      179671\nFailed requests:        1\n";
        assert_eq!(ab_done(ab), Some(Done { ok: 179_670, failed: 1 }));
        let h2load = "requests: 206760 total, 206824 started, 206760 done, 206760 succeeded, \
                      2 failed, 1 errored, 0 timeout\n\
                      status codes: 206757 2xx, 0 3xx, 0 4xx, 0 5xx\n";
        assert_eq!(h2load_done(h2load), Some(Done { ok: 206_757, failed: 3 }));
        let hey = "  0.000 [1]\t|\nStatus code distribution:\n  [200]\t64894 responses\n  \
                   [503]\t2 responses\n\nError distribution:\n  [7]\tGet \"x\": EOF\n";
        assert_eq!(hey_done(hey), Done { ok: 64_894, failed: 9 });
        let k6 = r#"{"metrics":{"http_reqs":{"values":{"count":26226}},
                     "http_req_failed":{"values":{"passes":6,"fails":26220}}}}"#;
        assert_eq!(k6_done(k6), Some(Done { ok: 26_220, failed: 6 }));
    }

    #[test]
    fn nonsense_is_not_read() {
        for tool in [wrk_done, ab_done, h2load_done, k6_done] {
            assert_eq!(tool("command not found"), None);
        }
    }
}
