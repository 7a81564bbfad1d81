//! What the figures were measured on and with: facts without which they mean nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Options;
use super::tool::{Places, Tool};
use crate::packages;

pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The opening of a section: the machine, the versions, and the command that reproduces it.
pub(super) fn facts(options: &Options, places: &Places) -> String {
    let (length, cores) = match options.is_scene() {
        true => (String::new(), "generator and target share all cores".to_string()),
        false => (
            format!(" ({} s per measurement)", options.seconds),
            format!("tools on core {}, servers on core {}", super::TOOL_CORE, super::SERVER_CORE),
        ),
    };
    format!(
        "Reproduce: `{}`{length}\n\n- {}\n- {cores}, over loopback; system load before: {}\n\
         - versions: {}\n\n",
        options.command,
        machine(),
        load_average(),
        versions(places).join("; ")
    )
}

/// The processor, the memory and the system.
pub(super) fn machine() -> String {
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

fn versions(places: &Places) -> Vec<String> {
    let told = |label: &str, program: &Path, arguments: &[&str]| {
        version(label, program, arguments, &places.root)
    };
    let at = |name: &str| packages::program(name).unwrap_or_else(|| name.into());
    [
        told("throng", &places.throng, &["--version"]),
        told("commit", &at("git"), &["describe", "--always", "--dirty"]),
        told("rustc", &at("rustc"), &["--version"]),
        told("wrk", &at("wrk"), &["-v"]),
        told("ab", &at("ab"), &["-V"]),
        told("h2load", &at("h2load"), &["--version"]),
        Tool::Hey.program(places).ok().map(|_| "hey (no version)".to_string()),
        told("k6", &at("k6"), &["version"]),
        packages::program("wrk2").map(|_| "wrk2 (no version)".to_string()),
        told("vegeta", &at("vegeta"), &["-version"]),
        told("nginx", &at("nginx"), &["-v"]),
        told("node", &at("node"), &["--version"]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The label with the version that the program prints when it is started in this folder.
pub(super) fn version(
    label: &str,
    program: &Path,
    arguments: &[&str],
    folder: &Path,
) -> Option<String> {
    let line = first_line(program, arguments, folder)?;
    Some(format!("{label} {}", version_in(&line, label)))
}

/// The version alone, of lines such as `This is ApacheBench, Version 2.3 <$Revision$>` and
/// `wrk debian/4.1.0-3+b2 [epoll] Copyright …`.
fn version_in<'a>(line: &'a str, label: &str) -> &'a str {
    let start = [" version: ", "Version: ", "Version ", " version "]
        .iter()
        .find_map(|word| line.split_once(word));
    let rest = start.map_or(line, |(_, rest)| rest).trim_start();
    let rest = rest.strip_prefix(label).filter(|rest| rest.starts_with(' ')).unwrap_or(rest);
    rest.split([' ', '(', '<', '[']).find(|word| !word.is_empty()).unwrap_or("unknown")
}

/// The first line that a program prints, wherever it prints it and however it ends.
fn first_line(program: &Path, arguments: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    said.lines().find(|line| !line.trim().is_empty()).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let cases = [
            ("This is ApacheBench, Version 2.3 <$Revision$>", "ab", "2.3"),
            ("wrk debian/4.1.0-3+b2 [epoll] Copyright (C)", "wrk", "debian/4.1.0-3+b2"),
            ("h2load nghttp2/1.52.0", "h2load", "nghttp2/1.52.0"),
            ("Tsung version 1.7.0", "tsung", "1.7.0"),
            ("Version: v12.12.0", "vegeta", "v12.12.0"),
            ("Version: ", "vegeta", "unknown"),
            ("k6 v1.8.1 (go1.26.8, linux/amd64)", "k6", "v1.8.1"),
            ("nginx version: nginx/1.22.1", "nginx", "nginx/1.22.1"),
            ("rustc 1.95.0 (59807616e 2026-04-14)", "rustc", "1.95.0"),
            ("f7b9326-dirty", "commit", "f7b9326-dirty"),
            ("", "x", "unknown"),
        ];
        for (line, label, version) in cases {
            assert_eq!(version_in(line, label), version);
        }
    }
}
