//! Names of one operating system stand in files that are compiled for it alone: a `cargo check` for
//! macOS and Windows takes minutes; this check takes no time.

use super::Finding;
use super::source::Source;

const FILES: [&str; 3] = ["system.rs", "unix.rs", "windows.rs"];
const NAMES: [&str; 3] = ["std::os::", "tokio::signal::unix", "tokio::io::unix"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let name = source.file.rsplit('/').next().unwrap_or_default();
    if FILES.contains(&name) || !source.is_product() {
        return Vec::new();
    }
    // Modules of tests are the last of a file.
    let product = source.text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = source.lines.iter().take(product.lines().count()).enumerate();
    let has = |code: &str| NAMES.into_iter().find(|name| code.contains(name));
    let found = lines.filter_map(|(number, line)| has(&line.code).map(|name| (number + 1, name)));
    let cure = "use `throng_base::system`, or `crate::system`, which other systems have, too";
    let finding = |(line, name)| {
        Finding::new(&source.file, line, format!("`{name}` outside of {FILES:?}"), cure)
    };
    found.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_unix_are_only_in_files_of_unix() {
        let text = "use std::io;\nuse std::os::unix::fs::FileExt;\n";
        let lines = |file: &str, text: &str| {
            check(&Source::new(file, text.to_string()))
                .iter()
                .map(|finding| finding.line)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines("crates/a/src/file.rs", text), [2]);
        for file in ["crates/a/src/unix.rs", "crates/a/tests/it/x.rs", "xtask/src/x.rs"] {
            assert_eq!(lines(file, text), [0; 0], "{file}");
        }
        let test = format!("fn f() {{}}\n\n#[cfg(test)]\nmod tests {{\n    {text}}}\n");
        assert_eq!(lines("crates/a/src/file.rs", &test), [0; 0]);
    }
}
