//! The scenario as it was run, for the run directory: one file, with includes merged and values
//! from the command line, that can run from where it is recorded. The files that it names are
//! copied with it; the writer of the run directory decides which ones.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use throng_base::{Secrets, Source};
use throng_expression::Value;
use throng_extract::Digest;

use crate::RunOptions;
use crate::load::LoadChanges;
use crate::quote::{is_special, quoted};
use crate::read::{ReadFile, ReadVariable};
use crate::scope::{FileRole, Named};
use crate::syntax::{Key, Kind, Node};

/// The folder for copies of files, next to the recorded scenario.
const FOLDER: &str = "files";
/// Maximum size of file contents kept for recording; larger files are read again.
const KEPT_BYTES_MAX: usize = 64 << 20;
const TITLE: &str = "# The scenario as it was run, with the files it includes and the values of the command line.\n";

/// A scenario to be recorded, and what is needed to compile it again.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// With absolute paths of all files.
    text: String,
    /// The positions of paths in `text`, and their replacements if the files are copied.
    paths: Vec<WrittenPath>,
    pub files: Vec<RecordedFile>,
    /// The file of the scenario itself; empty for a command line.
    pub path: PathBuf,
    /// Its size when it was read.
    pub bytes: u64,
    pub sha256: String,
    /// Variables from the command line.
    pub set: Vec<(String, String)>,
    pub load: LoadChanges,
    /// Environment variables that were read.
    pub environment: Vec<RecordedVariable>,
}

/// A path in the text of a recorded scenario.
#[derive(Clone, Debug)]
struct WrittenPath {
    range: Range<usize>,
    /// The index of the file; a folder is copied with the files in it.
    file: Option<usize>,
    copy: PathBuf,
}

/// A file that the scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFile {
    /// Its path when the scenario was read.
    pub path: PathBuf,
    /// For a copy in a run directory: the original path.
    pub origin: Option<PathBuf>,
    pub role: FileRole,
    /// Its path next to the recorded scenario, if it is copied; includes are merged into the
    /// scenario.
    pub copy: Option<PathBuf>,
    /// Its content, if known.
    pub read: Option<Arc<[u8]>>,
}

/// An environment variable that the scenario reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedVariable {
    pub name: String,
    pub state: VariableState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableState {
    Unset,
    /// Only its name is recorded: a digest would reveal a short value.
    Secret,
    /// The SHA-256 of its value.
    Known(String),
}

impl VariableState {
    pub fn of(value: Option<&str>) -> VariableState {
        value.map_or(VariableState::Unset, |value| {
            VariableState::Known(Digest::Sha256.of(value.as_bytes()))
        })
    }
}

impl Recorded {
    /// The text of the scenario if the files with these numbers are copied next to it.
    pub fn text(&self, copied: &[bool]) -> String {
        let (mut text, mut at) = (String::new(), 0);
        for place in &self.paths {
            let is_copied = match place.file {
                Some(file) => copied.get(file).copied().unwrap_or(false),
                None => true,
            };
            if is_copied {
                text.push_str(&self.text[at..place.range.start]);
                text.push_str(&quoted(&place.copy.to_string_lossy()));
                at = place.range.end;
            }
        }
        text.push_str(&self.text[at..]);
        let users = self.load.users.map(|users| format!(" --users {users}"));
        let time = self.load.time.map(|time| format!(" --for {}ms", time.as_millis()));
        let rate = self.load.rate.map(|rate| format!(" --rate {rate}/s"));
        let flags: String = [users, time, rate].into_iter().flatten().collect();
        let says_how = format!("# It was run with{flags}: add these flags to rerun it.\n");
        if !flags.is_empty() && !text.starts_with(&says_how) {
            text.insert_str(0, &says_how);
        }
        text
    }
}

/// The inputs of compiling a scenario, collected for recording.
#[derive(Default)]
pub(crate) struct SeenInputs {
    files: RefCell<HashMap<PathBuf, Arc<[u8]>>>,
    variables: RefCell<BTreeMap<String, Option<String>>>,
}

impl SeenInputs {
    pub(crate) fn read(
        &self,
        read_file: ReadFile<'_>,
        path: &Path,
        bytes_max: usize,
    ) -> io::Result<Vec<u8>> {
        let bytes = read_file(path, bytes_max)?;
        let mut files = self.files.borrow_mut();
        let kept: usize = files.values().map(|bytes| bytes.len()).sum();
        if bytes.len() <= bytes_max.min(KEPT_BYTES_MAX.saturating_sub(kept)) {
            files.entry(path.to_path_buf()).or_insert_with(|| bytes.as_slice().into());
        }
        Ok(bytes)
    }

    pub(crate) fn variable(&self, env: ReadVariable<'_>, name: &str) -> Option<String> {
        let value = env(name);
        self.variables.borrow_mut().insert(name.to_string(), value.clone());
        value
    }

    fn environment(&self, secrets: &Secrets) -> Vec<RecordedVariable> {
        let variables = self.variables.borrow();
        let recorded = variables.iter().map(|(name, value)| {
            let is_secret =
                value.as_ref().is_some_and(|value| *secrets.mask_variable(name, value) != **value);
            let state = match is_secret {
                true => VariableState::Secret,
                false => VariableState::of(value.as_deref()),
            };
            RecordedVariable { name: name.clone(), state }
        });
        recorded.collect()
    }
}

/// Records the scenario with the merged tree `root`. A scenario without other inputs is recorded
/// unchanged.
pub(crate) fn recorded(
    source: &Source,
    root: &Node,
    named: &[Named],
    (set, run): (&[(String, String)], &RunOptions),
    (seen, secrets): (&SeenInputs, &Secrets),
) -> Recorded {
    let recorded = Recorded {
        bytes: source.text.len() as u64,
        sha256: Digest::Sha256.of(source.text.as_bytes()),
        set: set.to_vec(),
        load: run.load,
        environment: seen.environment(secrets),
        ..Recorded::default()
    };
    let includes = matches!(&root.kind, Kind::Map(entries)
        if entries.iter().any(|(key, _)| key.text == "include"));
    if named.is_empty() && set.is_empty() && run.thresholds.is_empty() && !includes {
        return Recorded { text: source.text.clone(), ..recorded };
    }
    let files = files(named, seen);
    let mut paths = HashMap::new();
    let shared = shared(&files);
    for one in named {
        let path = whole(&one.path);
        let file = files.iter().position(|file| file.path == path);
        let copy = match file {
            Some(file) => files[file].copy.clone(),
            None => shared
                .and_then(|shared| path.strip_prefix(shared).ok())
                .filter(|_| one.role == FileRole::Folder)
                .map(|path| Path::new(FOLDER).join(path)),
        };
        let written = Written { path: path.to_string_lossy().into_owned(), file, copy };
        paths.insert((one.place.file, one.place.start()), written);
    }
    let mut writer = Writer { out: TITLE.to_string(), paths, places: Vec::new() };
    writer.root(root, set);
    Recorded { text: writer.out, paths: writer.places, files, ..recorded }
}

/// Each file once, with the path of its copy. Files refer to each other by relative paths, so these
/// are preserved.
fn files(named: &[Named], seen: &SeenInputs) -> Vec<RecordedFile> {
    let mut files: Vec<RecordedFile> = Vec::new();
    for file in named.iter().filter(|file| file.role.is_file()) {
        let path = whole(&file.path);
        if !files.iter().any(|other| other.path == path) {
            let read = seen.files.borrow().get(&file.path).cloned();
            files.push(RecordedFile { path, origin: None, role: file.role, copy: None, read });
        }
    }
    let shared = shared(&files).map(Path::to_path_buf);
    for file in files.iter_mut().filter(|file| is_copied(file)) {
        let path = shared.as_ref().and_then(|shared| file.path.strip_prefix(shared).ok());
        file.copy = path.map(|path| Path::new(FOLDER).join(path));
    }
    files
}

fn is_copied(file: &RecordedFile) -> bool {
    !matches!(file.role, FileRole::Include | FileRole::Key)
}

/// The common folder of all files that can be copied.
fn shared(files: &[RecordedFile]) -> Option<&Path> {
    let copied = files.iter().filter(|file| is_copied(file));
    copied.map(|file| file.path.parent().unwrap_or(Path::new(""))).reduce(common)
}

/// An absolute path without `.` and `..`; symbolic links are not resolved.
pub fn whole(path: &Path) -> PathBuf {
    tidy(&std::path::absolute(path).unwrap_or_else(|_| path.into()))
}

/// The common parent of two folders.
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
    /// The replacements for scalars that name files, by their places.
    paths: HashMap<(u16, usize), Written>,
    places: Vec<WrittenPath>,
}

/// The path of a file, and that of its copy.
#[derive(Clone)]
struct Written {
    path: String,
    file: Option<usize>,
    copy: Option<PathBuf>,
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
            // The last one wins.
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

    /// A map or list starts on its own line, with this indent.
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
                    Some(written) => self.path(written),
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
        // Its first line continues after the dash.
        let lead = self.out[start..].bytes().take_while(|byte| *byte == b' ').count();
        self.out.replace_range(start..start + lead, "");
        for place in self.places.iter_mut().filter(|place| place.range.start >= start) {
            place.range = place.range.start - lead..place.range.end - lead;
        }
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

    fn path(&mut self, Written { path, file, copy }: Written) {
        let start = self.out.len();
        self.out.push_str(&quoted(&path));
        let range = start..self.out.len();
        self.places.extend(copy.map(|copy| WrittenPath { range, file, copy }));
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

/// True for several lines that a literal block can contain unchanged.
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
    use crate::syntax::{Place, parse};

    fn shape(node: &Node) -> String {
        match &node.kind {
            // Null has several spellings.
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
        let (paths, places) = (HashMap::new(), Vec::new());
        let mut writer = Writer { out: TITLE.to_string(), paths, places };
        writer.root(root, set);
        writer.out
    }

    fn tree(text: &str) -> Option<Node> {
        parse(&Source::new("test.yaml", text), 0).ok().flatten()
    }

    #[test]
    fn written_trees_are_read_back_unchanged() {
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
    fn a_changed_load_is_noted_once() {
        let time = Some(std::time::Duration::from_secs(2));
        let load = LoadChanges { users: Some(5), time, ..LoadChanges::default() };
        let recorded = Recorded { text: "target: a\n".into(), load, ..Recorded::default() };
        let text = recorded.text(&[]);
        assert_eq!(
            text,
            "# It was run with --users 5 --for 2000ms: add these flags to rerun it.\ntarget: a\n"
        );
        assert_eq!(Recorded { text: text.clone(), ..recorded }.text(&[]), text);
        assert_eq!(Recorded { text: "x".into(), ..Recorded::default() }.text(&[]), "x");
    }

    #[test]
    fn values_from_the_command_line_are_recorded_as_variables() {
        let root = tree("vars: {users: 1, host: a, code: 007, kept: [1]}\n").unwrap();
        let set = [("users", "500"), ("host", "b: c"), ("code", "008"), ("users", "7")];
        let set = set.map(|(name, value)| (name.to_string(), value.to_string()));
        let want = "vars:\n  users: 7\n  host: \"b: c\"\n  code: \"008\"\n  kept:\n    - 1\n";
        assert_eq!(written(&root, &set), format!("{TITLE}{want}"));
    }

    #[test]
    fn related_files_keep_their_relative_paths() {
        let root = tree("protocol: ../wire/chat.yaml\ndata: accounts.csv\n").unwrap();
        let Kind::Map(entries) = &root.kind else { panic!() };
        let (protocol, data) = (entries[0].1.place, entries[1].1.place);
        let other = Place::new(3, 10, 20);
        let named = [
            (protocol, "/a/tests/../wire/chat.yaml", FileRole::Protocol),
            (other, "/a/shared/x.proto", FileRole::Protocol),
            (data, "/a/tests/accounts.csv", FileRole::Data),
            (Place::new(3, 30, 40), "/etc/client.key", FileRole::Key),
            (Place::new(3, 50, 60), "/a/shared", FileRole::Folder),
        ];
        let named = named.map(|(place, path, role)| Named { place, path: path.into(), role });
        let source = Source::new("test.yaml", "");
        let nothing = (&SeenInputs::default(), &Secrets::default());
        let recorded = recorded(&source, &root, &named, (&[], &RunOptions::default()), nothing);
        let want = "protocol: \"files/wire/chat.yaml\"\ndata: \"/a/tests/accounts.csv\"\n";
        assert_eq!(recorded.text(&[true, true, false, false]), format!("{TITLE}{want}"));
        let want = want.replace("/a/tests", "files/tests");
        assert_eq!(recorded.text(&[true; 4]), format!("{TITLE}{want}"));
        let copies: Vec<_> = recorded.files.iter().map(|file| file.copy.as_deref()).collect();
        let copied = |name: &'static str| Some(Path::new(name));
        let want = ["files/wire/chat.yaml", "files/shared/x.proto", "files/tests/accounts.csv"];
        assert_eq!(copies[..3], want.map(copied));
        assert_eq!(copies[3], None, "a key");
    }

    #[test]
    fn environment_variables_are_recorded_by_name_and_digest() {
        let seen = SeenInputs::default();
        let env = |name: &str| (name != "GONE").then(|| format!("value of {name}"));
        for name in ["ZONE", "GONE", "API_TOKEN", "OTHER"] {
            seen.variable(&env, name);
        }
        let mut secrets = Secrets::default();
        secrets.add("value of OTHER");
        let told = seen.environment(&secrets).into_iter().map(|it| (it.name, it.state));
        let zone = VariableState::Known(Digest::Sha256.of(b"value of ZONE"));
        let want = [
            ("API_TOKEN", VariableState::Secret),
            ("GONE", VariableState::Unset),
            ("OTHER", VariableState::Secret),
            ("ZONE", zone),
        ];
        assert!(told.eq(want.map(|(name, state)| (name.to_string(), state))));
    }

    #[test]
    fn file_contents_are_kept_up_to_a_limit() {
        let seen = SeenInputs::default();
        let read = |_: &Path, _: usize| Ok(b"12345".to_vec());
        seen.read(&read, Path::new("a"), 5).unwrap();
        seen.read(&read, Path::new("b"), 4).unwrap();
        assert_eq!(seen.files.borrow().keys().collect::<Vec<_>>(), [Path::new("a")]);
    }
}
