//! Replaces [`system`](crate) on other systems than Linux: throng can read, check, compare and
//! serve runs there; generating load and measuring the host require Linux.

use throng_base::Diagnostic;

use crate::arguments;

/// The error for a command that requires Linux.
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
