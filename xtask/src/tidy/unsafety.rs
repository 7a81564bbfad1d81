//! Unsafe code stands where ARCHITECTURE.md says, and nowhere else: its invariant names the files.

use std::collections::BTreeSet;

use super::Finding;
use super::source::Source;

pub(super) const FILE: &str = "ARCHITECTURE.md";
/// What the invariant begins with; it ends with a full stop at the end of a line.
const BEGIN: &str = "Unsafe code exists only in ";

/// Compares the files that the page names with those that have unsafe code.
pub(super) fn check(page: &str, sources: &[Source]) -> Vec<Finding> {
    let Some((line, named)) = named(page) else {
        let cure = format!("write the invariant: `{BEGIN}…`, with the files in backticks");
        return vec![Finding::new(FILE, 1, "no list of files with unsafe code", cure)];
    };
    let mut findings = Vec::new();
    let mut found = BTreeSet::new();
    for source in sources.iter().filter(|source| is_shipped(&source.file)) {
        let file = source.file.as_str();
        let Some(at) = source.lines.iter().position(|line| is_unsafe(&line.code)) else { continue };
        let short = file.strip_prefix("crates/").unwrap_or(file);
        if !named.contains(short) {
            let what = format!("unsafe code, and {FILE} does not name `{short}`");
            findings.push(Finding::new(file, at + 1, what, "do without, or name the file there"));
        }
        found.insert(short.to_string());
    }
    for name in named.difference(&found) {
        let what = format!("`{name}` has no unsafe code");
        findings.push(Finding::new(FILE, line, what, "remove it from the invariant"));
    }
    findings
}

/// Tests and xtask may call the system where they need it.
fn is_shipped(file: &str) -> bool {
    file.starts_with("crates/") && file.contains("/src/")
}

fn is_unsafe(code: &str) -> bool {
    let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    words.contains(&"unsafe")
}

/// The line of the invariant, and the paths below `crates/` that it names.
fn named(page: &str) -> Option<(usize, BTreeSet<String>)> {
    let begin = page.find(BEGIN)?;
    let rest = &page[begin..];
    let end = rest.find(".\n").unwrap_or(rest.len());
    let names = rest[..end].split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs"));
    let line = page[..begin].lines().count().max(1);
    Some((line, names.map(str::to_string).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "1. One.\n2. Unsafe code exists only in `a/src/system.rs`,\n   \
                        `b/src/lib.rs` and in `xtask`.\n3. `c/src/x.rs`.\n";

    fn told(sources: &[(&str, &str)]) -> Vec<String> {
        let read = |(file, text): &(&str, &str)| Source::new(file, text.to_string());
        let sources: Vec<_> = sources.iter().map(read).collect();
        check(PAGE, &sources)
            .iter()
            .map(|it| format!("{}:{}: {}", it.file, it.line, it.what))
            .collect()
    }

    #[test]
    fn the_page_names_the_files_with_unsafe_code() {
        let system = ("crates/a/src/system.rs", "\nfn f() { unsafe { g() } }\n");
        let lib = ("crates/b/src/lib.rs", "unsafe fn g() {}\n");
        let chore = ("xtask/src/main.rs", "unsafe { g() }\n");
        assert_eq!(told(&[system, lib, chore]), [""; 0]);
        let words =
            ("crates/c/src/x.rs", "// unsafe\n#![forbid(unsafe_code)]\nlet s = \"unsafe\";\n");
        assert_eq!(told(&[system, lib, words]), [""; 0]);
        let more = ("crates/c/src/y.rs", "fn f() {\n    unsafe { g() }\n}\n");
        let what = "unsafe code, and ARCHITECTURE.md does not name `c/src/y.rs`";
        assert_eq!(told(&[system, lib, more]), [format!("crates/c/src/y.rs:2: {what}")]);
        let gone = "ARCHITECTURE.md:2: `b/src/lib.rs` has no unsafe code";
        assert_eq!(told(&[system]), [gone]);
    }
}
