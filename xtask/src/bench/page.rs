//! `bench page`: the report of a day of 200 steps: how long it takes, how large it is, how soon a
//! browser shows it, and how smoothly it zooms; and what the live page of such a run costs with ten
//! viewers.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use throng_base::{Clock, Time};

use super::child::{self, Ended, Running};
use super::contest::Spread;
use super::report::{self, Gate};
use super::tool::{Places, Tool};
use super::{Folder, Options, machine, server};
use crate::{packages, programs};

const STEPS: usize = 200;
const VIEWERS: usize = 10;
const REPORT_SECONDS_MAX: f64 = 5.0;
const REPORT_BYTES_MAX: f64 = 6e6;
const FIRST_CHART_SECONDS_MAX: f64 = 3.0;
/// Thirty frames a second.
const FRAME_MS_MAX: f64 = 1000.0 / 30.0;
const LIVE_CORE_PERCENT_MAX: f64 = 2.0;
/// The run whose page is watched: until it is under way, and then for so long.
const WARM_UP: Duration = Duration::from_secs(5);
const WATCHED: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(300);
/// The record is built and written before anything is measured, which takes minutes on a busy
/// machine.
const PREPARATION_MAX: Duration = Duration::from_secs(1_800);

pub(super) fn run(options: &Options, places: &Places) -> Result<String, String> {
    let mut text = machine::facts(options, places);
    let mut gates = Vec::new();
    let folder = Folder::new(&places.folder, "page")?;
    if options.wants("report") {
        report(options, places, &folder.0, (&mut text, &mut gates))?;
    }
    if options.wants("live") {
        live(options, places, &folder.0, (&mut text, &mut gates))?;
    }
    text.push_str(&report::thresholds(&gates));
    Ok(text)
}

type PageParts<'a> = (&'a mut String, &'a mut Vec<Gate>);

fn report(
    options: &Options,
    places: &Places,
    folder: &Path,
    (text, gates): PageParts<'_>,
) -> Result<(), String> {
    let record = day(places, folder)?;
    let page = folder.join("report.html");
    let program = Tool::Throng.program(places)?;
    let mut seconds = Vec::new();
    for _ in 0..options.rounds {
        let mut command = Command::new(&program);
        command.arg("report").arg(&record).arg("--html").arg(&page);
        let begun = Clock::start();
        done(child::start(command, None, folder, "report")?, "throng report")?;
        seconds.push((begun.now() - Time::ZERO).as_secs_f64());
    }
    let bytes = fs::metadata(&page).map_err(|error| format!("{}: {error}", page.display()))?.len();
    let seen = browsed(places, folder, &page)?;
    let number = |place: &str| seen.pointer(place).and_then(Value::as_f64);
    let first = seen["first_ms"].as_array().into_iter().flatten();
    let first = Spread::of(first.filter_map(Value::as_f64).map(|ms| ms / 1e3));
    let (written, of) =
        (Spread::of(seconds.into_iter()), "the report of a one-day run with 200 steps");
    let frame = |name: &str| number(&format!("/{name}/per_s")).map(|per_s| 1000.0 / per_s);
    let frames = ["clicked", "dragged"].map(frame);
    let longest = ["clicked", "dragged"].map(|name| number(&format!("/{name}/longest_ms")));
    let told = |at: usize| match frames[at].zip(longest[at]) {
        Some((mean, longest)) => format!("{mean:.1} ms, the longest {longest:.1} ms"),
        None => "not measured".to_string(),
    };
    let _ = writeln!(
        text,
        "## The report of a one-day run with {STEPS} steps\n\n| figure | |\n| --- | ---: |\n\
         | time to write | {} |\n| size | {:.2} MB |\n| first chart in Chromium | {} |\n\
         | frame time, zoom by buttons | {} |\n| frame time, zoom by dragging | {} |\n",
        report::spread(written, 2, " s"),
        bytes as f64 / 1e6,
        report::spread(first, 2, " s"),
        told(0),
        told(1),
    );
    let mut gate = |threshold: String, measured, max, unit| {
        gates.push(Gate { threshold, measured, max, unit });
    };
    let median = |spread: Option<Spread>| spread.map(|spread| spread.median);
    gate(format!("{of}: written in at most 5 s"), median(written), REPORT_SECONDS_MAX, "s");
    gate(format!("{of}: at most 6 MB"), Some(bytes as f64), REPORT_BYTES_MAX, "bytes");
    gate(
        format!("{of}: first chart in Chromium within 3 s"),
        median(first),
        FIRST_CHART_SECONDS_MAX,
        "s",
    );
    for (way, ms) in ["the buttons", "dragging"].into_iter().zip(frames) {
        gate(
            format!("{of}: at least 30 frames/s while zooming by {way}"),
            ms,
            FRAME_MS_MAX,
            "ms a frame",
        );
    }
    Ok(())
}

/// The record of a day, built by the example of `throng-results`.
fn day(places: &Places, folder: &Path) -> Result<PathBuf, String> {
    let record = folder.join("day");
    let words = ["run", "--release", "-q", "-p", "throng-results", "--example", "day", "--"];
    let mut command = programs::cargo(&places.root, &words);
    command.arg(&record);
    done_within(
        PREPARATION_MAX,
        child::start(command, None, &places.folder, "day")?,
        "the example `day`",
    )?;
    Ok(record)
}

/// The results of `benches/browser.js`.
fn browsed(places: &Places, folder: &Path, page: &Path) -> Result<Value, String> {
    let modules = packages::ensure_node(&places.target)?;
    let chromium = packages::program("chromium");
    let chromium = chromium.ok_or("chromium is missing: apt-get install chromium")?;
    let mut command = Command::new("node");
    command.arg(places.root.join("benches/browser.js"));
    command.arg(format!("file://{}", page.display())).arg(chromium).env("NODE_PATH", modules);
    let ended = done(child::start(command, None, folder, "browser")?, "benches/browser.js")?;
    serde_json::from_str(&ended.output).map_err(|error| format!("benches/browser.js: {error}"))
}

fn done(running: Running, what: &str) -> Result<Ended, String> {
    done_within(GRACE, running, what)
}

fn done_within(limit: Duration, running: Running, what: &str) -> Result<Ended, String> {
    let ended = running.wait(limit).map_err(|error| format!("{what}: {error}"))?;
    match ended.status.success() {
        true => Ok(ended),
        false => Err(format!("{what}: {}", ended.complaint())),
    }
}

/// The CPU usage of the live page's thread, as a share of a core.
fn live(
    options: &Options,
    places: &Places,
    folder: &Path,
    (text, gates): PageParts<'_>,
) -> Result<(), String> {
    let program = Tool::Throng.program(places)?;
    let target = server::throng_target(&program, folder, &["http"])?;
    let scenario = folder.join("steps.yaml");
    fs::write(&scenario, steps(&target.url("http", 1)))
        .map_err(|error| format!("{}: {error}", scenario.display()))?;
    let mut shares = Vec::new();
    for _ in 0..options.rounds {
        let mut command = Command::new(&program);
        command.arg("run").arg(&scenario).args(["--live", "--no-record", "--quiet"]);
        let run = child::start(command, None, folder, "live")?;
        shares.push(watched(&run)?);
    }
    let percent = Spread::of(shares.iter().map(|(share, _)| share * 100.0));
    let viewers: Vec<String> =
        shares.iter().map(|(_, bytes)| format!("{:.1}", *bytes as f64 / 1e6)).collect();
    let _ = writeln!(
        text,
        "## The live page of a run with {STEPS} steps, with {VIEWERS} viewers\n\n| figure | |\n\
         | --- | ---: |\n| CPU of its thread, of a core | {} |\n\
         | received by all viewers, per round | {} MB |\n",
        report::spread(percent, 2, " %"),
        viewers.join(", "),
    );
    let threshold = format!("{VIEWERS} viewers of {STEPS} steps: at most 2 % of a core");
    let measured = percent.map(|spread| spread.median);
    gates.push(Gate { threshold, measured, max: LIVE_CORE_PERCENT_MAX, unit: "%" });
    Ok(())
}

/// Each step about once per second.
fn steps(target: &str) -> String {
    let target = target.trim_end_matches('/');
    let mut text = format!("name: steps\ntarget: {target}\nsessions:\n  all:\n    steps:\n");
    for step in 0..STEPS {
        let _ = writeln!(text, "      - {{http: GET /, name: step {step}}}");
    }
    let seconds = (WARM_UP + WATCHED).as_secs() + 20;
    let _ = writeln!(text, "load:\n  - {{users: 20, iterations: 10/s, for: {seconds}s}}");
    text
}

/// The CPU usage with this many viewers, and the bytes that all of them received.
fn watched(run: &Running) -> Result<(f64, u64), String> {
    let link = || {
        let said = run.errors();
        let (_, rest) = said.split_once("http://")?;
        let (address, query) = rest.split_whitespace().next()?.split_once('/')?;
        Some((address.to_string(), query.trim_start_matches('?').to_string()))
    };
    child::holds_within(GRACE, || link().is_some());
    let (address, token) = link().ok_or("no link to the live page")?;
    let viewers: Vec<_> = (0..VIEWERS)
        .map(|_| {
            let (address, token) = (address.clone(), token.clone());
            thread::spawn(move || heard(&address, &token))
        })
        .collect();
    run.stay(WARM_UP)?;
    let (before, begun) = (live_cpu_s(run.pid())?, Clock::start());
    run.stay(WATCHED)?;
    let used = live_cpu_s(run.pid())? - before;
    let share = used / (begun.now() - Time::ZERO).as_secs_f64();
    // SAFETY: the process is a child that has not been waited for.
    unsafe { libc::kill(run.pid(), libc::SIGINT) };
    let bytes = viewers.into_iter().filter_map(|viewer| viewer.join().ok()).sum();
    Ok((share, bytes))
}

/// Receives everything until the run is over.
fn heard(address: &str, token: &str) -> u64 {
    let Ok(mut stream) = TcpStream::connect(address) else { return 0 };
    let request = format!("GET /events?{token} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    if stream.write_all(request.as_bytes()).is_err() {
        return 0;
    }
    let (mut buffer, mut bytes) = (vec![0; 64 * 1024], 0);
    while let Ok(count) = stream.read(&mut buffer)
        && count > 0
    {
        bytes += count as u64;
    }
    bytes
}

/// The run time of the thread `live` (`/proc/PID/task/TID/schedstat`).
fn live_cpu_s(pid: i32) -> Result<f64, String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| error.to_string())?;
    let ran = tasks.flatten().find_map(|task| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        (name.trim() == "live").then(|| fs::read_to_string(task.path().join("schedstat")).ok())?
    });
    let ran = ran.as_deref().and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    ran.map(|ns| ns / 1e9).ok_or_else(|| "no thread of a live page".to_string())
}
