//! Sources that no module declares: they are not compiled, and nobody sees that they are wrong.

use std::collections::BTreeMap;
use std::path::Path;

use super::Finding;
use super::source::Source;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let texts: BTreeMap<&str, &str> =
        sources.iter().map(|it| (it.file.as_str(), it.text.as_str())).collect();
    let orphans = texts.keys().filter(|file| is_module(file) && !is_declared(file, &texts));
    let finding = |file: &&str| {
        Finding::new(file, 1, "no module declares this file", "delete it, or add `mod`")
    };
    orphans.map(finding).collect()
}

/// Whether it is a part of a crate, and not where one begins.
fn is_module(file: &str) -> bool {
    let inside = file.split_once("/src/").map_or("", |(_, inside)| inside);
    let is_root = matches!(inside, "" | "lib.rs" | "main.rs");
    !is_root && !inside.starts_with("bin/") && file.ends_with(".rs")
}

fn is_declared(file: &str, texts: &BTreeMap<&str, &str>) -> bool {
    let path = Path::new(file);
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem().and_then(|it| it.to_str()))
    else {
        return true;
    };
    // A `mod.rs` is declared where its folder is.
    let (folder, name) = match (stem, folder.parent(), folder.file_name()) {
        ("mod", Some(above), Some(name)) => (above, name.to_string_lossy().into_owned()),
        _ => (folder, stem.to_string()),
    };
    let own = folder.to_string_lossy();
    let parents = ["/lib.rs", "/main.rs", "/mod.rs", ".rs"].map(|end| format!("{own}{end}"));
    let declares = |parent: &String| {
        let declared = format!("mod {name};");
        texts.get(parent.as_str()).is_some_and(|text| text.contains(&declared))
    };
    let by_path = format!("#[path = \"{stem}.rs\"]");
    let beside = |(other, text): (&&str, &&str)| {
        Path::new(other).parent() == path.parent() && text.contains(&by_path)
    };
    parents.iter().any(declares) || texts.iter().any(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_module_declares_is_found() {
        let sources = [
            ("crates/a/src/lib.rs", "mod one;\nmod two;\n"),
            ("crates/a/src/one.rs", "pub(crate) mod inner;\n"),
            ("crates/a/src/one/inner.rs", "#[path = \"apart.rs\"]\nmod tests;\n"),
            ("crates/a/src/one/apart.rs", ""),
            ("crates/a/src/two/mod.rs", ""),
            ("crates/a/src/two/left.rs", ""),
            ("crates/a/src/bin/tool.rs", ""),
            ("crates/a/tests/e2e/run.rs", ""),
        ];
        let sources = sources.map(|(file, text)| Source::new(file, text.to_string()));
        let found = check(&sources);
        let files: Vec<&str> = found.iter().map(|it| it.file.as_str()).collect();
        assert_eq!(files, ["crates/a/src/two/left.rs"]);
    }
}
