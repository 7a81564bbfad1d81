//! Programs that this one starts and waits for.

use std::path::Path;
use std::process::Command;

/// A cargo command for this workspace.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root);
    // `cargo run` sets these variables for xtask; if inherited, they make build scripts run again.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program to its end; its output is visible.
pub(crate) fn finish(command: &mut Command) -> Result<(), String> {
    let status =
        command.status().map_err(|error| format!("{command:?} does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}

/// Runs a program to its end and returns its output.
pub(crate) fn output_of(command: &mut Command) -> Result<Vec<u8>, String> {
    let output =
        command.output().map_err(|error| format!("{command:?} does not start: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("{command:?}: {}: {}", output.status, said.trim())),
    }
}

/// The same as text, without the last line break.
pub(crate) fn text_of(command: &mut Command) -> Result<String, String> {
    let output = output_of(command)?;
    Ok(String::from_utf8_lossy(&output).trim_end().to_string())
}
