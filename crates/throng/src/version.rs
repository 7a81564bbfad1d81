//! The identity of this binary: its version, its commit, and how it was built.

use std::sync::LazyLock;

use throng_results::BuildInfo;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// `108dfbd 2026-11-23`; empty if the build had neither git nor an archive's commit.
const COMMIT: &str = env!("THRONG_COMMIT");

/// For `-V`: `0.1.0 (108dfbd 2026-11-23)`.
pub(crate) fn short() -> &'static str {
    static SHORT: LazyLock<String> = LazyLock::new(|| match COMMIT {
        "" => VERSION.to_string(),
        commit => format!("{VERSION} ({commit})"),
    });
    &SHORT
}

/// For `--version`: includes the build on separate lines, for bug reports.
pub(crate) fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| {
        let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
        format!(
            "{}\nbuild   {}, {linked}, {}\nrustc   {}",
            short(),
            env!("THRONG_BUILD_TARGET"),
            env!("THRONG_BUILD_PROFILE"),
            env!("THRONG_BUILD_RUSTC").trim_start_matches("rustc "),
        )
    });
    &LONG
}

/// `108dfbd41`, with `+changes` if the sources differ from it; for run directories.
pub(crate) fn commit() -> &'static str {
    COMMIT.split_once(' ').map_or(COMMIT, |(commit, _)| commit)
}

/// The day of the commit; empty if unknown.
pub(crate) fn date() -> &'static str {
    COMMIT.split_once(' ').map_or("", |(_, date)| date)
}

/// For run directories, and for the agents of a fleet, which must have the same build.
pub(crate) fn build() -> BuildInfo {
    BuildInfo { version: VERSION.into(), commit: commit().into() }
}
