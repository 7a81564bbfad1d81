//! `cargo xtask dist`: the release files. A static binary, stripped, for each processor; manual
//! pages, completions and licences; a `.deb`, an archive and an image for containers of these; and
//! the check that they can be installed and run.

mod check;
mod deb;
mod elf;
mod image;
mod licences;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{copy, listed, set_mode, text, write};
use crate::programs::{self, cargo, output_of, text_of};
use crate::say;
use crate::workspace::{self, Workspace};

/// The maximum size of a released binary.
const BINARY_BYTES_MAX: u64 = 20_000_000;

/// A processor, as cargo, Debian and GNU name it.
#[derive(Debug, PartialEq)]
struct Machine {
    target: &'static str,
    debian: &'static str,
    /// Of `uname -m`.
    name: &'static str,
    /// Debian's linker for it on another processor.
    linker: &'static str,
    /// Runs its programs on another processor (Debian: `qemu-user`).
    emulator: &'static str,
}

const MACHINES: [Machine; 2] = [
    Machine {
        target: "x86_64-unknown-linux-gnu",
        debian: "amd64",
        name: "x86_64",
        linker: "x86_64-linux-gnu-gcc",
        emulator: "qemu-x86_64",
    },
    Machine {
        target: "aarch64-unknown-linux-gnu",
        debian: "arm64",
        name: "aarch64",
        linker: "aarch64-linux-gnu-gcc",
        emulator: "qemu-aarch64",
    },
];

impl Machine {
    fn is_this(&self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// A command that runs a program for this machine here; `None` if that is not possible.
    fn running(&self, program: &Path) -> Option<Command> {
        if self.is_this() {
            return Some(Command::new(program));
        }
        let there = Command::new(self.emulator).arg("--version").output().is_ok();
        there.then(|| {
            let mut command = Command::new(self.emulator);
            command.arg(program);
            command
        })
    }
}

const USAGE: &str = "usage: cargo xtask dist [--target TRIPLE]…";

/// The machines of the command line; without any, this one.
fn wanted(arguments: &[&str]) -> Result<Vec<&'static Machine>, String> {
    static ALL: &[Machine] = &MACHINES;
    if arguments.is_empty() {
        return Ok(ALL.iter().filter(|machine| machine.is_this()).collect());
    }
    let machine = |words: &[&str]| {
        let ["--target", target] = words else { return Err(USAGE.to_string()) };
        let known = MACHINES.map(|machine| machine.target).join(", ");
        let machine = ALL.iter().find(|machine| machine.target == *target);
        machine.ok_or_else(|| format!("{target}: expected one of {known}"))
    };
    arguments.chunks(2).map(machine).collect()
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let wanted = wanted(arguments)?;
    let workspace = workspace::load()?;
    build_all(&workspace, &wanted, &workspace.target.join("dist"))
}

/// Packages a binary that was built before, and checks that it can be installed.
pub(crate) fn package_of(workspace: &Workspace, binary: &Path) -> Result<(), String> {
    let machine = MACHINES.iter().find(|machine| machine.is_this());
    let machine = machine.ok_or("no package is made on this machine")?;
    let out = workspace.target.join("ci/dist");
    let made = package(workspace, machine, binary, (machine, binary), &out)?;
    check::check(&made, machine, false)
}

fn build_all(workspace: &Workspace, machines: &[&Machine], out: &Path) -> Result<(), String> {
    let mut built = Vec::new();
    for machine in machines {
        say(&format!("building for {}", machine.target));
        built.push((*machine, build(workspace, machine)?));
    }
    // Pages and completions are the same for all machines; one of the binaries must run here.
    let teller = built.iter().find(|(machine, _)| machine.running(Path::new("true")).is_some());
    let Some((with, teller)) = teller else {
        return Err("none of these runs here, so nothing can print the pages of the manual:\n  \
                    install qemu-user, or add a --target of this machine"
            .to_string());
    };
    let mut sums = String::new();
    for (machine, binary) in &built {
        let made = package(workspace, machine, binary, (with, teller), out)?;
        check::check(&made, machine, true)?;
        for file in [&made.archive, &made.deb, &made.image] {
            sums += &sum_of(file)?;
        }
    }
    write(&out.join("SHA256SUMS"), &sums)?;
    say(&format!("{}\nin {}", sums.trim_end(), out.display()));
    Ok(())
}

/// A static binary: glibc is inside of it, so that it runs whatever a Linux brings.
fn build(workspace: &Workspace, machine: &Machine) -> Result<PathBuf, String> {
    let upper = machine.target.to_uppercase().replace('-', "_");
    let flags = ["rustc", "--locked", "--profile", "dist", "-p", "throng", "--bin", "throng"];
    let mut command = cargo(&workspace.root, &flags);
    command.args(["--target", machine.target]);
    // Of what links alone: at this level the crates are optimised together (`[profile.dist]`). A
    // package with a level of its own loses the profile's `strip`.
    command.args(["--", "-C", "opt-level=3", "-C", "strip=symbols"]);
    command.env(format!("CARGO_TARGET_{upper}_RUSTFLAGS"), rustflags(&linker()?));
    if let Some(linker) = linking(workspace, machine)? {
        command.env(format!("CARGO_TARGET_{upper}_LINKER"), linker);
    }
    programs::finish(&mut command).map_err(|error| {
        format!(
            "{error}\n  it needs `rustup target add {}` and, on another processor, {} (Debian: \
             gcc-{}-linux-gnu and libc6-dev-{}-cross)",
            machine.target,
            machine.linker,
            machine.name.replace('_', "-"),
            machine.debian
        )
    })?;
    Ok(workspace.target.join(machine.target).join("dist/throng"))
}

/// What links for a machine in place of `cc`. Rust itself asks for a static-pie on x86-64 alone; on
/// others a script asks the compiler for one in place of a static binary at a fixed address.
fn linking(workspace: &Workspace, machine: &Machine) -> Result<Option<PathBuf>, String> {
    let compiler = if machine.is_this() { "cc" } else { machine.linker };
    if machine.name == "x86_64" {
        return Ok((!machine.is_this()).then(|| compiler.into()));
    }
    // Rust chooses the linker's flags by the end of its name.
    let script = workspace.target.join(machine.target).join("pie-gcc");
    write(&script, PIE.replace("CC", compiler))?;
    set_mode(&script, 0o755)?;
    Ok(Some(script))
}

const PIE: &str = r#"#!/bin/sh
for word; do
  shift
  case $word in
    -static) set -- "$@" -static-pie ;;
    -no-pie) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec CC "$@"
"#;

/// The folder with the linker that comes with Rust, by the name that a C compiler asks for. It
/// links for every machine.
fn linker() -> Result<PathBuf, String> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let ask = |words: &[&str]| text_of(Command::new(&rustc).args(words));
    let version = ask(&["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not say for which machine it is")?;
    let root = ask(&["--print", "sysroot"])?;
    let folder = Path::new(&root).join("lib/rustlib").join(host).join("bin/gcc-ld");
    match folder.join("ld.lld").exists() {
        true => Ok(folder),
        false => {
            Err(format!("there is no ld.lld in {}: build with rustup's Rust", folder.display()))
        }
    }
}

/// Static, and at an address that is drawn when it starts (static-pie). Of functions that are alike
/// one is kept. Pointers that have to be moved are listed in DT_RELR, by a bit each instead of 24
/// bytes: the start code of glibc 2.36 and later reads that.
fn rustflags(linker: &Path) -> String {
    let linker = linker.display();
    format!(
        "-C target-feature=+crt-static -C link-arg=-fuse-ld=lld -C link-arg=-B{linker} \
         -C link-arg=-Wl,--icf=all -C link-arg=-Wl,-z,pack-relative-relocs"
    )
}

/// The files of one machine.
struct Made {
    /// The root folder of the package.
    tree: PathBuf,
    deb: PathBuf,
    archive: PathBuf,
    image: PathBuf,
}

/// Packages the binary. `teller` is a binary that runs here and prints the manual pages.
fn package(
    workspace: &Workspace,
    machine: &Machine,
    binary: &Path,
    teller: (&Machine, &Path),
    out: &Path,
) -> Result<Made, String> {
    // SAFETY: the call takes a number and sets it. Folders then have the same modes everywhere.
    unsafe { libc::umask(0o022) };
    let folder = out.join(machine.debian);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let tree = folder.join("root");
    fill(workspace, &tree, binary, teller)?;
    let version = version(&workspace.root)?;
    let deb = out.join(format!("throng_{version}_{}.deb", machine.debian));
    deb::write(workspace, machine, &version, &tree, &deb)?;
    let archive = out.join(format!("throng-{version}-linux-{}.tar.gz", machine.name));
    archive_of(workspace, &tree, &format!("throng-{version}"), &archive)?;
    let image = out.join(format!("throng_{version}_{}.oci.tar", machine.debian));
    image::write(workspace, machine, &version, (&tree, &folder), &image)?;
    Ok(Made { tree, deb, archive, image })
}

/// Files where Debian has them; the same paths are right for `/usr/local` and for others.
fn fill(
    workspace: &Workspace,
    tree: &Path,
    binary: &Path,
    teller: (&Machine, &Path),
) -> Result<(), String> {
    let share = tree.join("usr/share");
    copy(binary, &tree.join("usr/bin/throng"), 0o755)?;
    told_by(teller, &["man", &share.join("man/man1").to_string_lossy()])?;
    for (shell, path) in [
        ("bash", "bash-completion/completions/throng"),
        ("zsh", "zsh/vendor-completions/_throng"),
        ("fish", "fish/vendor_completions.d/throng.fish"),
    ] {
        write(&share.join(path), &told_by(teller, &["completions", shell])?)?;
    }
    let doc = share.join("doc/throng");
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
        copy(&workspace.root.join(name), &doc.join(name), 0o644)?;
    }
    write(&doc.join("THIRD-PARTY"), licences::third_party(&workspace.root)?)?;
    write(&doc.join("copyright"), deb::COPYRIGHT)?;
    let packaging = workspace.root.join("packaging");
    let unit = "throng-agent.service";
    copy(&packaging.join(unit), &tree.join("usr/lib/systemd/system").join(unit), 0o644)?;
    for folder in [&workspace.root.join("examples"), &packaging.join("kubernetes")] {
        for entry in listed(folder)? {
            let inside = entry.strip_prefix(folder.parent().unwrap_or(folder));
            copy(&entry, &doc.join(inside.map_err(|error| error.to_string())?), 0o644)?;
        }
    }
    let pages = listed(&share.join("man/man1"))?;
    let long = ["CHANGELOG.md", "THIRD-PARTY"].map(|name| doc.join(name));
    let mut gzip = Command::new("gzip");
    finish(gzip.args(["-9", "--no-name", "--force"]).args(pages).args(long))
}

fn version(root: &Path) -> Result<String, String> {
    let manifest = text(&root.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|line| line.split('"').next());
    version.map(str::to_string).ok_or_else(|| "Cargo.toml names no version".to_string())
}

/// The time of the commit, so that the same commit always gives the same files.
fn epoch(root: &Path) -> String {
    let mut git = Command::new("git");
    let told = text_of(git.args(["log", "-1", "--format=%ct"]).current_dir(root));
    told.ok().filter(|told| !told.is_empty()).unwrap_or_else(|| "0".to_string())
}

/// Packs files so that the same files always give the same bytes.
fn tar(epoch: &str) -> Command {
    let mut tar = Command::new("tar");
    tar.args(["--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{epoch}"));
    tar
}

fn archive_of(
    workspace: &Workspace,
    tree: &Path,
    name: &str,
    archive: &Path,
) -> Result<(), String> {
    let mut tar = tar(&epoch(&workspace.root));
    // Without a name and a time in the header of the compressed file.
    tar.arg("--use-compress-program=gzip -9 --no-name");
    tar.arg("-cf").arg(archive).arg(format!("--transform=s,^\\./usr,{name},"));
    finish(tar.arg("-C").arg(tree).arg("./usr"))
}

fn sum_of(file: &Path) -> Result<String, String> {
    let name = file.file_name().ok_or("a file without a name")?;
    let folder = file.parent().ok_or("a file without a folder")?;
    Ok(text_of(Command::new("sha256sum").arg(name).current_dir(folder))? + "\n")
}

/// What this binary prints, in English.
fn told_by((machine, binary): (&Machine, &Path), words: &[&str]) -> Result<Vec<u8>, String> {
    let mut command = machine.running(binary).ok_or("it does not run here")?;
    output_of(command.args(["--lang", "en"]).args(words))
}

/// Runs a program to its end and discards its output.
fn finish(command: &mut Command) -> Result<(), String> {
    text_of(command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_asked_for_by_its_target() {
        let both = wanted(&["--target", MACHINES[0].target, "--target", MACHINES[1].target]);
        assert_eq!(both.unwrap(), [&MACHINES[0], &MACHINES[1]]);
        for words in [&["--target"][..], &["--target", "sparc"], &["--binry", "x"], &["x"]] {
            assert!(wanted(words).is_err(), "{words:?}");
        }
    }

    /// The release workflow uploads these files by their names.
    #[test]
    fn a_release_asks_for_what_there_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        let workflow = read(".github/workflows/release.yml");
        let lines = workflow.lines().filter_map(|line| line.split_once("cargo xtask dist "));
        let asked: Vec<Vec<&str>> = lines.map(|(_, rest)| rest.split(' ').collect()).collect();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert_eq!(wanted(&asked[0]).unwrap().len(), MACHINES.len());
        for machine in &MACHINES {
            assert!(workflow.contains(machine.target));
        }
        let images = workflow.lines().find_map(|line| line.trim().strip_prefix("for machine in "));
        let images = images.and_then(|line| line.strip_suffix("; do")).unwrap();
        assert_eq!(images, MACHINES.map(|machine| machine.debian).join(" "));
        assert!(workflow.contains("target/dist/throng_${GITHUB_REF_NAME#v}_$machine.oci.tar"));
        for kind in [".deb", ".tar.gz", ".oci.tar"] {
            assert!(workflow.contains(&format!("target/dist/*{kind}")), "{kind}");
        }
        let version = version(&root).unwrap();
        assert!(version.split('.').count() == 3, "{version}");
    }
}
