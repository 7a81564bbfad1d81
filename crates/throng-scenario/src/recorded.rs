//! The scenario as it was run, for its record: one file with what it includes and with what the
//! command line set, that runs again from where it is recorded. Protocol files go with it; other
//! files stay where they are, named by their whole path and known by their digest.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

use throng_base::Source;
use throng_expression::Value;
use throng_extract::Digest;

use crate::load::LoadChanges;
use crate::quote::{is_special, quoted};
use crate::scope::Named;
use crate::syntax::{Key, Kind, Node};

/// Where the copies of files are, beside the recorded scenario.
const FOLDER: &str = "files";
/// A larger file is known by its size only: a digest of it would delay the run.
const DIGEST_BYTES_MAX: u64 = 64 << 20;
const TITLE: &str = "# As it was run: with the files it includes and with what --set gave.\n";

/// A scenario to be recorded.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    pub text: String,
    pub files: Vec<RecordedFile>,
}

/// A file that the scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFile {
    /// Where it was when the scenario was read.
    pub path: PathBuf,
    /// Its path beside the recorded scenario, where it is to be copied to.
    pub copy: Option<PathBuf>,
}

impl Recorded {
    /// A scenario that names no files.
    pub fn plain(text: impl Into<String>) -> Recorded {
        Recorded { text: text.into(), files: Vec::new() }
    }

    /// A comment at the top: how the load was changed for once.
    pub(crate) fn changed(mut self, changes: LoadChanges) -> Recorded {
        let users = changes.users.map(|users| format!(" --users {users}"));
        let time = changes.time.map(|time| format!(" --for {}ms", time.as_millis()));
        let rate = changes.rate.map(|rate| format!(" --rate {rate}/s"));
        let flags: String = [users, time, rate].into_iter().flatten().collect();
        if !flags.is_empty() {
            self.text.insert_str(0, &format!("# It was run with{flags}: give them again.\n"));
        }
        self
    }
}

/// How large a file is, and its SHA-256 where it is not too large for that.
pub fn digest_of(path: &Path) -> std::io::Result<(u64, Option<String>)> {
    let bytes = std::fs::metadata(path)?.len();
    let digest = match bytes <= DIGEST_BYTES_MAX {
        true => Some(Digest::Sha256.of(&std::fs::read(path)?)),
        false => None,
    };
    Ok((bytes, digest))
}

/// The scenario whose tree, included files merged, is `root`. One that is whole in itself is
/// recorded as it was written.
pub(crate) fn recorded(
    source: &Source,
    root: &Node,
    named: &[Named],
    set: &[(String, String)],
) -> Recorded {
    let includes = matches!(&root.kind, Kind::Map(entries)
        if entries.iter().any(|(key, _)| key.text == "include"));
    if named.is_empty() && set.is_empty() && !includes {
        return Recorded::plain(source.text.as_str());
    }
    let whole = |path: &Path| tidy(&std::path::absolute(path).unwrap_or_else(|_| path.into()));
    let copied: BTreeSet<PathBuf> =
        named.iter().filter(|file| file.is_protocol).map(|file| whole(&file.path)).collect();
    // Protocol files name each other by paths: these stay what they are.
    let shared = copied.iter().map(|path| path.parent().unwrap_or(Path::new(""))).reduce(common);
    let copy = |path: &Path| {
        let shared = shared.filter(|_| copied.contains(path))?;
        Some(Path::new(FOLDER).join(path.strip_prefix(shared).ok()?))
    };
    let mut paths = HashMap::new();
    let mut files: Vec<RecordedFile> = Vec::new();
    for file in named {
        let path = whole(&file.path);
        let copy = copy(&path);
        let written = copy.as_deref().unwrap_or(&path).to_string_lossy().into_owned();
        paths.insert((file.place.file, file.place.start()), written);
        if !files.iter().any(|other| other.path == path) {
            files.push(RecordedFile { path, copy });
        }
    }
    let mut writer = Writer { out: TITLE.to_string(), paths };
    writer.root(root, set);
    Recorded { text: writer.out, files }
}

/// The folder that two folders are in.
fn common<'p>(one: &'p Path, other: &Path) -> &'p Path {
    one.ancestors().find(|folder| other.starts_with(folder)).unwrap_or(one)
}

/// A path without `.` and `..`.
fn tidy(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut out, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
        out
    })
}

/// Writes a tree as YAML in block style.
struct Writer {
    out: String,
    /// What is written in place of a scalar that names a file, by the place of the scalar.
    paths: HashMap<(u16, usize), String>,
}

impl Writer {
    fn root(&mut self, root: &Node, set: &[(String, String)]) {
        let Kind::Map(entries) = &root.kind else { return };
        for (key, value) in entries.iter().filter(|(key, _)| key.text != "include") {
            match &value.kind {
                Kind::Map(vars) if key.text == "vars" => {
                    self.key(key, 0);
                    self.out.push('\n');
                    self.vars(vars, set);
                }
                _ => self.entry(key, value, 0),
            }
        }
    }

    fn vars(&mut self, vars: &[(Key, Node)], set: &[(String, String)]) {
        for (key, value) in vars {
            // The last one counts.
            match set.iter().rfind(|(name, _)| *name == key.text) {
                Some((_, text)) => {
                    self.key(key, 2);
                    let is_text = matches!(Value::parse_plain(text), Value::Text(_));
                    self.out.push(' ');
                    self.scalar(text, !is_text, 2);
                }
                None => self.entry(key, value, 2),
            }
        }
    }

    fn key(&mut self, key: &Key, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
        let is_plain = key.text.starts_with(|c: char| c.is_ascii_alphabetic())
            && key.text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        match is_plain {
            true => self.out.push_str(&key.text),
            false => self.out.push_str(&quoted(&key.text)),
        }
        self.out.push(':');
    }

    fn entry(&mut self, key: &Key, value: &Node, indent: usize) {
        self.key(key, indent);
        let is_open = match &value.kind {
            Kind::List(items) => !items.is_empty(),
            Kind::Map(entries) => !entries.is_empty(),
            Kind::Scalar { .. } => false,
        };
        self.out.push(if is_open { '\n' } else { ' ' });
        self.node(value, indent + 2);
    }

    /// A map or a list begins a line of its own, at this indent.
    fn node(&mut self, node: &Node, indent: usize) {
        match &node.kind {
            Kind::Map(entries) if entries.is_empty() => self.out.push_str("{}\n"),
            Kind::List(items) if items.is_empty() => self.out.push_str("[]\n"),
            Kind::Map(entries) => {
                entries.iter().for_each(|(key, value)| self.entry(key, value, indent));
            }
            Kind::List(items) => items.iter().for_each(|item| self.item(item, indent)),
            Kind::Scalar { text, plain } => {
                match self.paths.get(&(node.place.file, node.place.start())).cloned() {
                    Some(path) => self.scalar(&path, false, indent),
                    None => self.scalar(text, *plain, indent),
                }
            }
        }
    }

    fn item(&mut self, item: &Node, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.out.push_str("- ");
        let start = self.out.len();
        self.node(item, indent + 2);
        // What begins a line of its own begins behind the dash.
        let lead = self.out[start..].bytes().take_while(|byte| *byte == b' ').count();
        self.out.replace_range(start..start + lead, "");
    }

    fn scalar(&mut self, text: &str, plain: bool, indent: usize) {
        match plain && !text.contains(|c: char| c.is_control() || is_special(c)) {
            true if text.is_empty() => self.out.push_str("null"),
            true => self.out.push_str(text),
            false if is_literal(text) => return self.literal(text, indent),
            false => self.out.push_str(&quoted(text)),
        }
        self.out.push('\n');
    }

    fn literal(&mut self, text: &str, indent: usize) {
        let (header, lines) = match text.strip_suffix('\n') {
            Some(lines) => ("|\n", lines),
            None => ("|-\n", text),
        };
        self.out.push_str(header);
        for line in lines.split('\n') {
            if !line.is_empty() {
                self.out.extend(std::iter::repeat_n(' ', indent.max(2)));
            }
            self.out.push_str(line);
            self.out.push('\n');
        }
    }
}

/// Several lines that a literal block can hold as they are.
fn is_literal(text: &str) -> bool {
    let is_plain = |c: char| c == '\n' || !c.is_control() && !is_special(c);
    text.contains('\n')
        && text.chars().all(is_plain)
        && !text.starts_with([' ', '\n'])
        && !text.ends_with("\n\n")
        && text.lines().all(|line| line.is_empty() || !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use throng_base::Source;

    use super::*;
    use crate::syntax::Place;
    use crate::syntax::parse;

    fn shape(node: &Node) -> String {
        match &node.kind {
            // What is nothing is so in any spelling.
            _ if node.is_null() => "nothing".into(),
            Kind::Scalar { text, plain } => {
                let is_text = !plain || matches!(Value::parse_plain(text), Value::Text(_));
                format!("{text:?}{is_text}")
            }
            Kind::List(items) => format!("{:?}", items.iter().map(shape).collect::<Vec<_>>()),
            Kind::Map(entries) => {
                let entries = entries.iter().map(|(key, node)| (&key.text, shape(node)));
                format!("{:?}", entries.collect::<Vec<_>>())
            }
        }
    }

    fn written(root: &Node, set: &[(String, String)]) -> String {
        let mut writer = Writer { out: TITLE.to_string(), paths: HashMap::new() };
        writer.root(root, set);
        writer.out
    }

    fn tree(text: &str) -> Option<Node> {
        parse(&Source::new("test.yaml", text), 0).ok().flatten()
    }

    #[test]
    fn what_is_written_is_read_as_the_same_tree() {
        let own = "a: 5\nb: \"5\"\nc: {}\nd: []\ne: [[1, [2]], {f: {g: ~}}, [{h: i, j: [k]}], '']\n\
                   \"odd key: #\": 'it''s'\nl: |\n  two\n    lines\nm: |-\n  no\n\n  end\n\
                   n: \"tab\\tand \\u0001\"\no: >\n  folded\n  text\np: a plain\n  of two lines\n\
                   q: \"\\n begins\"\nr: null\ns: -x\nt: '- x'\nu: 'true'\nv: [a, 'b: c', \"#\"]\n";
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests-md");
        let mut texts = vec![own.to_string()];
        for entry in std::fs::read_dir(folder).unwrap() {
            let Ok(text) = std::fs::read_to_string(entry.unwrap().path()) else { continue };
            texts.extend(text.split("```yaml\n").skip(1).map(|rest| {
                let end = rest.find("\n```").unwrap();
                rest[..end].to_string() + "\n"
            }));
        }
        let mut count = 0;
        for text in &texts {
            let Some(root) = tree(text).filter(|root| matches!(root.kind, Kind::Map(_))) else {
                continue;
            };
            let Kind::Map(entries) = &root.kind else { continue };
            if entries.iter().any(|(key, _)| key.text == "include") {
                continue;
            }
            let out = written(&root, &[]);
            let back = tree(&out).unwrap_or_else(|| panic!("{text}\n{out}"));
            assert_eq!(shape(&back), shape(&root), "{text}\n{out}");
            count += 1;
        }
        assert!(count > 100, "{count}");
    }

    #[test]
    fn a_load_that_was_changed_for_once_says_how() {
        let time = Some(std::time::Duration::from_secs(2));
        let changes = LoadChanges { users: Some(5), time, ..LoadChanges::default() };
        let text = Recorded::plain("target: a\n").changed(changes).text;
        assert_eq!(text, "# It was run with --users 5 --for 2000ms: give them again.\ntarget: a\n");
        assert_eq!(Recorded::plain("x").changed(LoadChanges::default()).text, "x");
    }

    #[test]
    fn what_is_set_stands_in_the_variables() {
        let root = tree("vars: {users: 1, host: a, code: 007, kept: [1]}\n").unwrap();
        let set = [("users", "500"), ("host", "b: c"), ("code", "008"), ("users", "7")];
        let set = set.map(|(name, value)| (name.to_string(), value.to_string()));
        let want = "vars:\n  users: 7\n  host: \"b: c\"\n  code: \"008\"\n  kept:\n    - 1\n";
        assert_eq!(written(&root, &set), format!("{TITLE}{want}"));
    }

    #[test]
    fn files_that_go_together_keep_their_paths_to_each_other() {
        let root = tree("protocol: ../wire/chat.yaml\ndata: accounts.csv\n").unwrap();
        let Kind::Map(entries) = &root.kind else { panic!() };
        let (protocol, data) = (entries[0].1.place, entries[1].1.place);
        let other = Place::new(3, 10, 20);
        let named = [
            (protocol, "/a/tests/../wire/chat.yaml", true),
            (other, "/a/shared/x.proto", true),
            (data, "/a/tests/accounts.csv", false),
        ];
        let named =
            named.map(|(place, path, is_protocol)| Named { place, path: path.into(), is_protocol });
        let source = Source::new("test.yaml", "");
        let Recorded { text, files } = recorded(&source, &root, &named, &[]);
        let want = "protocol: \"files/wire/chat.yaml\"\ndata: \"/a/tests/accounts.csv\"\n";
        assert_eq!(text, format!("{TITLE}{want}"));
        let copies: Vec<_> = files.iter().map(|file| file.copy.as_deref()).collect();
        let copied = |name: &'static str| Some(Path::new(name));
        assert_eq!(copies, [copied("files/wire/chat.yaml"), copied("files/shared/x.proto"), None]);
    }
}
