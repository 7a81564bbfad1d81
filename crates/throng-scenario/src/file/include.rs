//! `include`: other files whose parts, variables, data and defaults the scenario uses. The
//! including file wins; two included files must not define the same thing.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use throng_base::{Said, Source};

use crate::ast;
use crate::keys::INCLUDED;
use crate::read::Context;
use crate::scope::{FileRole, Named};
use crate::syntax::{Key, Kind, Node, SOURCE_BYTES_MAX};
use crate::words::{self, shorten};

/// Maximum number of files that a scenario includes, directly or indirectly.
pub const INCLUDES_MAX: usize = 64;

/// Maximum depth of includes.
const DEPTH_MAX: usize = 8;

const HELP: Said = say!("write `include: common.yaml` or `include: [login.yaml, data.yaml]`");

/// Merges the included files into the map of the scenario.
pub(crate) fn read_includes(cx: &mut Context<'_>, root: Node) -> Node {
    let Kind::Map(entries) = root.kind else { return root };
    if !entries.iter().any(|(key, _)| key.text == "include") {
        return Node { place: root.place, kind: Kind::Map(entries) };
    }
    let mut reader = IncludeReader { open: Vec::new(), read: Vec::new(), lent: Vec::new() };
    reader.read_entries(cx, &entries);
    let mut entries = entries;
    for (key, value) in reader.lent {
        merge(&mut entries, "", key, value);
    }
    Node { place: root.place, kind: Kind::Map(entries) }
}

/// True if the value of a key in a map (`""` is the whole file) is itself a map whose entries are
/// merged one by one.
fn is_open(map: &str, key: &str) -> bool {
    match map {
        "" => matches!(key, "parts" | "vars" | "data" | "defaults"),
        "defaults" => matches!(key, "headers" | "cookies"),
        _ => false,
    }
}

/// The name that [`is_open`] uses for a map inside another.
fn inner<'k>(map: &str, key: &'k str) -> &'k str {
    if map.is_empty() { key } else { "names" }
}

/// Adds an entry if it is missing.
fn merge(entries: &mut Vec<(Key, Node)>, map: &str, key: Key, value: Node) {
    let Some((_, own)) = entries.iter_mut().find(|(own, _)| own.text == key.text) else {
        entries.push((key, value));
        return;
    };
    if let (Kind::Map(own), Kind::Map(lent)) = (&mut own.kind, value.kind)
        && is_open(map, &key.text)
    {
        let map = inner(map, &key.text);
        lent.into_iter().for_each(|(key, value)| merge(own, map, key, value));
    }
}

struct IncludeReader {
    /// The files on the current include path, without the scenario itself.
    open: Vec<PathBuf>,
    read: Vec<PathBuf>,
    /// The merged entries of all included files, one for each key.
    lent: Vec<(Key, Node)>,
}

impl IncludeReader {
    fn read_entries(&mut self, cx: &mut Context<'_>, entries: &[(Key, Node)]) {
        let Some((_, node)) = entries.iter().find(|(key, _)| key.text == "include") else { return };
        let nodes = node.one_or_more();
        for node in nodes {
            self.include(cx, node);
        }
    }

    fn include(&mut self, cx: &mut Context<'_>, node: &Node) {
        let Some((name, path)) = file_name(cx, node) else { return };
        if self.open.contains(&path) {
            let message = say!("`{}` includes itself", shorten(&name));
            let label = say!("this file is already being read");
            let help = say!("remove one `include` from the cycle");
            return cx.report("include-circle", node.place, message, label, help);
        }
        if self.read.contains(&path) {
            return;
        }
        if self.read.len() >= INCLUDES_MAX || self.open.len() >= DEPTH_MAX {
            let message = match self.open.len() >= DEPTH_MAX {
                true => say!("included files are nested more than {DEPTH_MAX} levels deep"),
                false => say!("more than {INCLUDES_MAX} files are included"),
            };
            return cx.too_many(node.place, message, say!("combine related files into one"));
        }
        self.read.push(path.clone());
        let place = node.place;
        cx.named_files.push(Named { place, path: path.clone(), role: FileRole::Include });
        let Some(source) = read_source(cx, node, &name, &path) else { return };
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let root = match cx.parse_file(&source, folder, &INCLUDED) {
            Ok(Some(root)) => root,
            Ok(None) => return warn_empty(cx, node, &name),
            Err(error) => return cx.note(*error),
        };
        self.open.push(path);
        self.take(cx, root);
        self.open.pop();
    }

    /// Merges an included file.
    fn take(&mut self, cx: &mut Context<'_>, root: Node) {
        if ast::Included::read(cx, &root).is_none() {
            return;
        }
        let Kind::Map(entries) = root.kind else { return };
        // The file's own entries win over those of its includes.
        let outer = std::mem::take(&mut self.lent);
        self.read_entries(cx, &entries);
        let mut own: Vec<(Key, Node)> = Vec::new();
        for (key, value) in entries {
            let known = INCLUDED.find(&key.text).is_some() && key.text != "include";
            if known && !own.iter().any(|(other, _)| other.text == key.text) {
                own.push((key, value));
            }
        }
        for (key, value) in std::mem::replace(&mut self.lent, outer) {
            merge(&mut own, "", key, value);
        }
        for (key, value) in own {
            lend(cx, &mut self.lent, "", key, value);
        }
    }
}

/// Merges one file with the others that the same file includes.
fn lend(cx: &mut Context<'_>, lent: &mut Vec<(Key, Node)>, map: &str, key: Key, value: Node) {
    let Some((first, there)) = lent.iter_mut().find(|(other, _)| other.text == key.text) else {
        lent.push((key, value));
        return;
    };
    if let (Kind::Map(there), Kind::Map(more)) = (&mut there.kind, value.kind)
        && is_open(map, &key.text)
    {
        let map = inner(map, &key.text);
        more.into_iter().for_each(|(key, value)| lend(cx, there, map, key, value));
        return;
    }
    let place = first.place;
    // Duplicates within a file are reported where its map is read.
    if place.file == key.place.file {
        return;
    }
    let name = cx.source(place).name.clone();
    let message = say!("two included files define `{}`", shorten(&key.text));
    let label = say!("`{}` also defines it", shorten(&name));
    let help = say!("rename one of them, or add a definition to the scenario: it takes precedence");
    cx.report("duplicate-name", key.place, message, label, help);
}

/// The name as written, and the path of the file.
fn file_name(cx: &mut Context<'_>, node: &Node) -> Option<(String, PathBuf)> {
    let Kind::Scalar { text, .. } = &node.kind else {
        return cx.wrong_type(node, say!("the path of a file"), HELP);
    };
    if node.is_null() {
        return cx.wrong_type(node, say!("the path of a file"), HELP);
    }
    if text.contains("${") {
        let message = say!("the path of an included file cannot contain expressions");
        let label = say!("`vars` is read after the included files");
        return cx.refuse("expression-place", node.place, message, label, HELP);
    }
    Some((text.clone(), tidy(&cx.path(node.place, text))))
}

/// Removes `.` and redundant `..` from a path, so that each file has one path.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(out.components().next_back(), Some(Component::Normal(_))) =>
            {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn read_source(cx: &mut Context<'_>, node: &Node, name: &str, path: &Path) -> Option<Arc<Source>> {
    let unreadable = |cx: &mut Context<'_>, label: Said, help: Said| {
        let message = say!("`{}` cannot be read", shorten(name));
        cx.refuse("file-unreadable", node.place, message, label, help)
    };
    let sum: usize = cx.sources().map(|source| source.text.len()).sum();
    let bytes = match cx.read(path, SOURCE_BYTES_MAX.saturating_sub(sum)) {
        Ok(bytes) => bytes,
        Err(reason) => {
            let help =
                say!("the path of an included file is relative to the file that includes it");
            return unreadable(cx, Said::of_error(&reason), help);
        }
    };
    if sum + bytes.len() > SOURCE_BYTES_MAX {
        let message = say!("the scenario and its included files are larger than 16 MiB in total");
        let label = say!("this exceeds the limit");
        let help = say!("put long text into separate files: `body: {{file: a.json}}`");
        return cx.refuse("file-too-large", node.place, message, label, help);
    }
    match String::from_utf8(bytes) {
        // Named relative to the including file, so that users find it.
        Ok(text) => Some(Source::new(beside(&cx.source(node.place).name, name), text)),
        Err(_) => unreadable(cx, say!("it is not UTF-8"), say!("save the file as UTF-8")),
    }
}

/// The name of a file, relative to the file that includes it.
fn beside(own: &str, name: &str) -> String {
    match Path::new(own).parent() {
        Some(folder) if !folder.as_os_str().is_empty() => {
            tidy(&folder.join(name)).to_string_lossy().into_owned()
        }
        _ => name.to_string(),
    }
}

fn warn_empty(cx: &mut Context<'_>, node: &Node, name: &str) {
    let message = say!("the included file `{}` is empty", shorten(name));
    let help = say!("an included file can contain {}", words::names(INCLUDED.names()));
    cx.warn("unused-include", node.place, message, say!("it is empty"), help);
}
