//! What the figures were measured on and with: facts without which they mean nothing.

use std::fs;

use super::tool::{self, version};
use super::{Options, Places};
use crate::packages;

pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The opening of a section: the machine, the versions, and the command that reproduces it.
pub(super) fn facts(options: &Options, places: &Places) -> String {
    let (length, cores) = match options.bench.is_pinned {
        true => (
            format!(" ({} s per measurement)", options.seconds),
            format!("tools on core {}, servers on core {}", super::TOOL_CORE, super::SERVER_CORE),
        ),
        false => (String::new(), "generator and target share all cores".to_string()),
    };
    format!(
        "Reproduce: `{}`{length}\n\n- {}\n- {cores}, over loopback; system load before: {}\n\
         - versions: {}\n\n",
        options.command,
        machine(),
        load_average(),
        versions(options, places).join("; ")
    )
}

/// The processor, the memory and the system.
fn machine() -> String {
    let system = value_of("/etc/os-release", "PRETTY_NAME=", '"').unwrap_or("unknown".into());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processor = value_of("/proc/cpuinfo", "model name", ':').unwrap_or("unknown".into());
    let memory = value_of("/proc/meminfo", "MemTotal", ':').unwrap_or_default();
    let kibibytes: f64 = memory.trim_end_matches(" kB").parse().unwrap_or(0.0);
    format!(
        "machine: {processor}, {} cores, {:.1} GiB, {system}, Linux {}",
        cores(),
        kibibytes / (1024.0 * 1024.0),
        kernel.trim()
    )
}

pub(super) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_string()
}

/// The value of the first line that starts with `key`, after `separator`.
fn value_of(file: &str, key: &str, separator: char) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let (_, value) = line.split_once(separator)?;
    Some(value.trim().trim_matches('"').to_string())
}

fn versions(options: &Options, places: &Places) -> Vec<String> {
    let other = |(name, flags): (&str, &[&str])| {
        let program = packages::program(name)?;
        let label = if name == "git" { "commit" } else { name };
        version(label, &program, flags, &places.root)
    };
    let others: [(&str, &[&str]); 4] = [
        ("git", &["describe", "--always", "--dirty"]),
        ("rustc", &["--version"]),
        ("nginx", &["-v"]),
        ("node", &["--version"]),
    ];
    let others = others.into_iter().filter_map(other);
    tool::versions(&["throng"], places)
        .chain(others)
        .chain(tool::versions(&options.others(), places))
        .collect()
}
