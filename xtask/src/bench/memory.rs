//! The memory of an idle WebSocket user: the resident memory of throng with many of them, minus
//! that with one.

use std::fs;
use std::time::Duration;

use super::report::Gate;
use super::server::{self, Server};
use super::tool::Places;
use super::{TOOL_CORE, child, throng};

const USERS: u32 = 10_000;
const HOLD_SECONDS: u32 = 10;
/// The memory is read this long before the end.
const BEFORE_END: Duration = Duration::from_millis(1500);
const GRACE: Duration = Duration::from_secs(30);
const BYTES_PER_USER_MAX: f64 = 1200.0;

/// Returns the text of the report and the threshold; errors are part of the text.
pub(super) fn run(places: &Places) -> (String, Gate) {
    let title = "## Memory of an idle WebSocket user\n\n";
    let measured = measure(places);
    let text = match &measured {
        Ok((one, many)) => format!(
            "{title}throng's resident memory: {:.1} MiB with 1 user, {:.1} MiB with {USERS} users. \
             That is {:.0} bytes per user.\n\n",
            mebibytes(*one),
            mebibytes(*many),
            per_user(*one, *many)
        ),
        Err(trouble) => format!("{title}Not measured: {trouble}\n\n"),
    };
    crate::say(text.trim_end());
    let gate = Gate {
        threshold: format!(
            "{USERS} idle WebSocket users: at most {BYTES_PER_USER_MAX} bytes each (RSS)"
        ),
        measured: measured.ok().map(|(one, many)| per_user(one, many)),
        max: BYTES_PER_USER_MAX,
        unit: "bytes",
    };
    (text, gate)
}

fn measure(places: &Places) -> Result<(u64, u64), String> {
    if !places.throng.is_file() {
        return Err("throng is not built: cargo build --release -p throng".to_string());
    }
    let target = server::throng_target(&places.throng, &places.folder, &["echo"])?;
    Ok((resident(places, &target, 1)?, resident(places, &target, USERS)?))
}

/// The memory of a run that holds `users` connections, near its end.
fn resident(places: &Places, target: &Server, users: u32) -> Result<u64, String> {
    let command = throng::bench(&places.throng, &target.url("ws", 1), users, HOLD_SECONDS, &[]);
    let running = child::start(command, TOOL_CORE, &places.folder, "idle")?;
    running.stay(Duration::from_secs(u64::from(HOLD_SECONDS)) - BEFORE_END)?;
    let bytes = running.resident_bytes()?;
    let established = established_to(target.port)?;
    let ended = running.wait(BEFORE_END + GRACE)?;
    if established < users as usize {
        return Err(format!("only {established} of {users} connected: {}", ended.complaint()));
    }
    Ok(bytes)
}

/// The number of connections to `port` of this machine that the kernel reports as established.
fn established_to(port: u16) -> Result<usize, String> {
    let table = fs::read_to_string("/proc/net/tcp").map_err(|error| error.to_string())?;
    let peer = format!(":{port:04X}");
    let lines = table.lines().skip(1).filter(|line| {
        let columns: Vec<&str> = line.split_whitespace().take(4).collect();
        matches!(columns[..], [_, _, remote, "01"] if remote.ends_with(&peer))
    });
    Ok(lines.count())
}

fn per_user(one: u64, many: u64) -> f64 {
    many.saturating_sub(one) as f64 / f64::from(USERS - 1)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
