//! Replays the visits of an access log (`throng run --replay LOG URL`): when each visitor arrived,
//! its requests, and the pauses between them.
//!
//! A log becomes a scenario and two files: a row per visit, in the order of their start, and the
//! rate of starts. User number `n` makes visit number `n`. For a log of any length, only visits in
//! progress are in memory: complete ones are sorted in pieces on disk.

mod sorter;
mod visits;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_base::units::write_duration;
use throng_base::{Diagnostic, Said};
use throng_data::access_log;
use throng_scenario::Url;

use visits::{ROWS, Visits};

const VISITS: &str = "visits.jsonl";
const STARTS: &str = "starts.csv";
/// Points of the curve of starts; in a longer log, their distance is larger.
const STARTS_MAX: f64 = 10_000.0;
/// The time for the last users after the log's last request.
const GRACE: Duration = Duration::from_secs(3);

/// The result for a log.
pub struct Replay {
    pub scenario: String,
    /// A summary of the log, and what could not be replayed.
    pub remarks: Vec<Said>,
    /// The files that it reads; deleted after the run.
    folder: Folder,
}

impl Replay {
    /// The folder of the scenario's files, while this exists.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }
}

/// Reads a log and builds its scenario: requests go to this URL, `speed` times as fast.
///
/// # Errors
/// The URL is not an HTTP URL or has a path, the log cannot be read, or the disk is full.
pub fn replay(log: &Path, url: &str, speed: f64) -> Result<Replay, Box<Diagnostic>> {
    let origin = target(url)?;
    let folder = Folder::new().map_err(|error| unwritable(&error))?;
    let mut visits = Visits::new(&folder.0);
    let passed = access_log::requests(log, &mut |request| {
        visits.add(request);
        Ok(())
    });
    let passed = passed.map_err(|error| Box::new(error.diagnostic()))?;
    let found = visits.finish(&folder.0.join(VISITS)).map_err(|error| unwritable(&error))?;
    let starts = starts(&found.starts, speed);
    std::fs::write(folder.0.join(STARTS), starts).map_err(|error| unwritable(&error))?;
    let (requests, count) = (found.requests, found.visits);
    let mut remarks = vec![say!("{requests} requests of {count} visits")];
    if passed > 0 {
        remarks.push(say!("{passed} lines of the log have no request and were skipped"));
    }
    if found.split > 0 {
        let split = found.split;
        remarks.push(say!("{split} visits were too long and were split"));
    }
    if found.has_bodies {
        remarks.push(say!("the log has no bodies: requests such as POST are sent without one"));
    }
    let name = log.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let after = Duration::from_secs_f64(found.tail_s / speed).saturating_add(GRACE);
    let scenario = scenario(&name, &origin, &found.rows, (speed, after));
    Ok(Replay { scenario, remarks, folder })
}

/// A folder that is deleted on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let name =
            format!("throng-replay-{}-{:x}", std::process::id(), throng_base::random::fresh());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

fn mistake(message: Said, help: Said) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("replay-impossible", message).help(help))
}

fn unwritable(error: &std::io::Error) -> Box<Diagnostic> {
    let error = Said::of_error(error);
    let message = say!("the log's visits cannot be written to disk: {error}");
    mistake(message, say!("free some space, or set TMPDIR to a folder with more space"))
}

/// The target of the requests; the log contains the paths.
fn target(url: &str) -> Result<String, Box<Diagnostic>> {
    let help = say!("write `throng run --replay access.log http://127.0.0.1:8080`");
    match Url::parse(url) {
        Ok(parsed) if !matches!(parsed.scheme.word(), "http" | "https") => {
            Err(mistake(say!("an access log can only be replayed over HTTP"), help))
        }
        Ok(parsed) if matches!(parsed.path.as_str(), "" | "/") => Ok(parsed.origin()),
        Ok(_) => Err(mistake(say!("`{url}` has a path; paths come from the log"), help)),
        Err(_) => Err(mistake(say!("`{url}` is not a valid URL"), help)),
    }
}

/// The number of visits that start per second, as a step curve.
fn starts(seconds: &[(u64, u64)], speed: f64) -> String {
    let last = seconds.last().map_or(0, |(second, _)| *second) as f64 + 1.0;
    let width = (last / STARTS_MAX).ceil().max(1.0) as u64;
    let mut text = String::from("time,rate\n");
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (second, count) in seconds {
        match bins.last_mut().filter(|(bin, _)| *bin == second / width) {
            Some((_, sum)) => *sum += count,
            None => bins.push((second / width, *count)),
        }
    }
    let at = |bin: u64| (bin * width) as f64 / speed;
    let mut over = 0;
    for (bin, count) in bins {
        if bin > over {
            let _ = writeln!(text, "{},0\n{},0", at(over), at(bin));
        }
        let rate = count as f64 * speed / width as f64;
        let _ = writeln!(text, "{},{rate}\n{},{rate}", at(bin), at(bin + 1));
        over = bin + 1;
    }
    text
}

/// One session, whose users take a row each; one report row per frequent page.
fn scenario(
    name: &str,
    origin: &str,
    rows: &[(String, String)],
    (speed, after): (f64, Duration),
) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!("name: {}\n", quoted(&format!("replay of {name}")));
    let _ = writeln!(text, "target: {origin}");
    let _ =
        writeln!(text, "data:\n  visits: {{json_lines: {VISITS}, take: per user, at_end: wrap}}");
    text += "sessions:\n  visitor:\n    steps:\n      - for_each: \"${data.visits.requests}\"\n";
    text += "        as: request\n        steps:\n";
    let _ = writeln!(text, "          - think: \"${{request.wait / {speed:?}}}s\"");
    for (number, (method, page)) in rows.iter().enumerate() {
        let _ = writeln!(text, "          - if: \"${{request.row == {number}}}\"");
        let _ = writeln!(text, "            then:");
        let _ = writeln!(text, "              - http: {method} ${{request.path}}");
        let row = format!("{method} {page}").replace("${", "$${");
        let _ = writeln!(text, "                name: {}", quoted(&row));
    }
    let after = write_duration(Duration::from_millis(after.as_millis() as u64));
    let _ = writeln!(text, "load:\n  - {{name: replay, arrivals: {{points: {STARTS}}}}}");
    let _ = writeln!(text, "  - {{name: last visits, for: {after}}}");
    debug_assert!(rows.len() <= ROWS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_contains_all_starts() {
        let text = starts(&[(0, 3), (1, 1), (5, 2)], 2.0);
        assert_eq!(text, "time,rate\n0,6\n0.5,6\n0.5,2\n1,2\n1,0\n2.5,0\n2.5,4\n3,4\n");
        let long: Vec<(u64, u64)> = (0..50_000).map(|second| (second, 1)).collect();
        let text = starts(&long, 1.0);
        assert_eq!(text.lines().count(), 1 + 2 * 10_000, "five seconds each");
        assert!(text.lines().nth(1).is_some_and(|line| line == "0,1"), "{}", &text[..40]);
    }

    #[test]
    fn a_target_has_no_path() {
        assert_eq!(target("http://127.0.0.1:8080/").ok().as_deref(), Some("http://127.0.0.1:8080"));
        for url in ["http://127.0.0.1/a", "ws://127.0.0.1", "shop.yaml"] {
            assert!(target(url).is_err(), "{url}");
        }
    }
}
