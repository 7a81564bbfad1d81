//! Whether the release files can be installed and run: the package and the image are unpacked into
//! empty roots, and the binary in them is used.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::elf::{is_movable, is_static};
use super::{BINARY_BYTES_MAX, Machine, Made, deb, finish, image};
use crate::programs::text_of;
use crate::say;

/// A released binary must also be static, small, and without a fixed address.
pub(super) fn check(made: &Made, machine: &Machine, handed_out: bool) -> Result<(), String> {
    let root = made.tree.with_file_name("installed");
    finish(Command::new("dpkg-deb").arg("-x").arg(&made.deb).arg(&root))?;
    let binary = root.join("usr/bin/throng");
    let found = deb::files(&root)?;
    let installed = deb::files(&made.tree.join("usr"))?.len();
    if found.len() != installed {
        return Err(format!("{} files were packed, {} came out", installed, found.len()));
    }
    let bytes = fs::metadata(&binary).map_err(|error| error.to_string())?.len();
    if handed_out {
        let wanted = [
            (is_static(&binary)?, "it is not static"),
            (is_movable(&binary)?, "it lies at the same address each time"),
            (bytes <= BINARY_BYTES_MAX, "that is too much"),
        ];
        if let Some((_, fault)) = wanted.iter().find(|(holds, _)| !holds) {
            return Err(format!("the binary has {bytes} bytes: {fault}"));
        }
    }
    let ran = match machine.running(&binary) {
        Some(_) => use_it(machine, &binary)?,
        None => format!("not run: {} is not there", machine.emulator),
    };
    let contained = contained(made, machine, &binary)?;
    let name = made.deb.file_name().unwrap_or_default().to_string_lossy();
    let bytes = bytes as f64 / 1e6;
    say(&format!("{name}: {} files, binary {bytes:.2} MB; {ran}", found.len()));
    let name = made.image.file_name().unwrap_or_default().to_string_lossy();
    say(&format!("{name}: {contained}"));
    Ok(())
}

/// The image holds the same binary. A static one runs in a root that has nothing else, where this
/// user may make one.
fn contained(made: &Made, machine: &Machine, binary: &Path) -> Result<String, String> {
    let root = image::unpack(&made.image, &made.tree.with_file_name("unpacked"))?;
    finish(Command::new("cmp").arg(binary).arg(root.join("usr/bin/throng")))?;
    let bytes = fs::metadata(&made.image).map_err(|error| error.to_string())?.len();
    let told = format!("{:.2} MB", bytes as f64 / 1e6);
    if !machine.is_this() || !is_static(binary)? {
        return Ok(told);
    }
    let chroot = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", program]);
        command
    };
    if let Err(refused) = finish(&mut chroot("true")) {
        return Ok(format!("{told}; not run in its own root: {refused}"));
    }
    let version = text_of(chroot("chroot").arg(&root).args(["/usr/bin/throng", "--version"]))?;
    Ok(format!("{told}; {} in its own root", version.lines().next().unwrap_or_default()))
}

/// The version, and a load of a second on the reference target.
fn use_it(machine: &Machine, binary: &Path) -> Result<String, String> {
    let run = |words: &[&str]| {
        let mut command = machine.running(binary).ok_or("it does not run here")?;
        let output = command.args(words).env("LC_ALL", "C").output();
        let output = output.map_err(|error| format!("{}: {error}", binary.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.success() {
            true => Ok(text),
            // An emulated generator is late, which is not an error of the package.
            false if output.status.code() == Some(5) && !machine.is_this() => Ok(text),
            false => Err(format!(
                "throng {}: {}\n{text}{}",
                words.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    };
    let version = run(&["--version"])?;
    let summary = run(&["demo", "-d", "1s", "--no-record", "--quiet", "--json"])?;
    let summary: serde_json::Value =
        serde_json::from_str(&summary).map_err(|error| format!("demo --json: {error}"))?;
    let ok = summary["total"]["ok"].as_u64().unwrap_or_default();
    if ok == 0 {
        return Err("a load of a second had no answer".to_string());
    }
    Ok(format!("{}, {ok} requests in a second", version.lines().next().unwrap_or_default()))
}
