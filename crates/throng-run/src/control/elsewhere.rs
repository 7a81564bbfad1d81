//! The functions of `system.rs` on other systems, where throng does not generate load.

use std::io;
use std::path::Path;

use throng_base::system::LocalStream;

/// This system does not run loads.
pub(crate) fn in_directory<T>(
    directory: &Path,
    name: &str,
    work: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    work(&directory.join(name))
}

pub(crate) fn is_owner(_: &LocalStream) -> bool {
    false
}
