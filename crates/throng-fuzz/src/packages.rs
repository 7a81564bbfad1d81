//! Where packages are that bring what tests are held against: suites, and programs of others.

use std::path::{Path, PathBuf};

/// The folder of npm's packages: where `NODE_PATH` says, or where `cargo xtask ci` puts it.
///
/// # Panics
/// Where `package` is not in it.
pub fn node_modules(package: &str) -> PathBuf {
    let modules = std::env::var_os("NODE_PATH").map_or(ci("node/node_modules"), PathBuf::from);
    let is_there = modules.join(package).join("package.json").is_file();
    assert!(is_there, "npm's package `{package}` is missing: `cargo xtask ci` installs it");
    modules
}

/// The folder of Python's packages: where `THRONG_PYTHON` says, or where `cargo xtask ci` puts it.
///
/// # Panics
/// Where `package` is not in it.
pub fn python_packages(package: &str) -> PathBuf {
    let packages = std::env::var_os("THRONG_PYTHON").map_or(ci("python"), PathBuf::from);
    let is_there = packages.join(package).is_dir();
    assert!(is_there, "Python's package `{package}` is missing: `cargo xtask ci` installs it");
    packages
}

/// The server of NATS: where `THRONG_NATS_SERVER` says, or where `cargo xtask ci` puts it.
///
/// # Panics
/// Where it is not there.
pub fn nats_server() -> PathBuf {
    let path = std::env::var_os("THRONG_NATS_SERVER");
    let path = path.map_or(ci("nats/nats-server"), PathBuf::from);
    assert!(path.is_file(), "nats-server is missing: `cargo xtask ci` installs it");
    path
}

fn ci(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/ci").join(folder)
}
