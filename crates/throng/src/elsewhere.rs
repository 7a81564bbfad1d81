//! What [`system`](crate) is on Linux, for other systems: throng reads, checks, compares and serves
//! records there; load, and measurements of the host, need Linux.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use throng_base::Diagnostic;

use crate::arguments;

/// Of a command that needs Linux.
pub(crate) fn refusal(command: &arguments::Command) -> Option<Diagnostic> {
    if !command.needs_linux() {
        return None;
    }
    let told = Diagnostic::error("host-unfit", say!("this command requires Linux"));
    Some(told.help(say!(
        "run it in a container: `docker run --rm -v \"$PWD:/load\" throng:VERSION run shop.yaml`"
    )))
}

pub(crate) fn use_no_huge_pages() {}

/// Children that are left behind end by themselves, or are told to.
pub(crate) fn end_with_parent(_: &mut Command) {}

/// No run goes on here.
pub(crate) fn in_directory<T>(
    directory: &Path,
    name: &str,
    work: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    work(&directory.join(name))
}

pub(crate) fn is_owner(_: &UnixStream) -> bool {
    false
}
