//! What [`system`](crate) is on Linux, for other systems: throng reads, checks, compares and serves
//! records there; load, and measurements of the host, need Linux.

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

pub(crate) fn reserve_no_address_space() {}

pub(crate) fn hide_argument(_: &str) {}
