//! Reads `.proto` files and their imports and links them into descriptors. `protox-parse` parses
//! the text, `prost-reflect` links the names; [`mistake`] reports their errors. Callers decide how
//! to use the descriptors.

mod mistake;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;
use throng_base::clean::without_mark;
use throng_base::{Said, Source};
use throng_protocol::protobuf::Schema;

use crate::ast;
use crate::read::Context;
use crate::scope::{Descriptors, FileRole, Named};
use crate::syntax::{Kind, Node, Place};
use crate::words::shorten;

/// Maximum number of `.proto` files, imports included.
pub(crate) const PROTO_FILES_MAX: usize = 256;

/// Maximum size of a `.proto` file.
pub(crate) const PROTO_BYTES_MAX: usize = 1024 * 1024;

/// Maximum size of a descriptor set.
pub(crate) const DESCRIPTORS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// File extensions of descriptor sets.
const DESCRIPTORS: [&str; 5] = ["desc", "protoset", "binpb", "pb", "fds"];

pub(crate) const PROTO_HELP: Said =
    say!("write `proto: shop.proto` or `proto: [shop.proto, user.proto]`");

const PROTO_PATH_HELP: Said = say!("write `proto_path: protos` or `proto_path: [protos, vendor]`");

/// The number of the field for imports in a `FileDescriptorProto`.
const IMPORTS: i32 = 3;

/// The declarations in the files.
pub(crate) struct ProtoFiles {
    pub(crate) pool: DescriptorPool,
    texts: Texts,
    /// Where the files are named.
    place: Place,
}

/// The texts of files by their names among the descriptors.
#[derive(Default)]
struct Texts(HashMap<String, (u16, Arc<Source>)>);

/// Reads `proto` and `proto_path` of a scenario.
pub(crate) fn read_schema(cx: &mut Context<'_>, fields: &ast::Scenario<'_>) -> Descriptors {
    let folders = fields.proto_path.node();
    let files = match folders {
        Some(_) => fields.need(cx, fields.proto, PROTO_HELP),
        None => fields.proto.node(),
    };
    match files.map(|files| read(cx, files, folders)) {
        None => Descriptors::None,
        Some(None) => Descriptors::Unknown,
        Some(Some(files)) => Descriptors::Known(Arc::new(Schema::new(&files.pool))),
    }
}

/// Reads the files of the key `proto`, with the folders of `proto_path` next to it. None if a file
/// cannot be used, which is then reported.
pub(crate) fn read(
    cx: &mut Context<'_>,
    files: &Node,
    folders: Option<&Node>,
) -> Option<ProtoFiles> {
    let mut reading = Reading { is_whole: true, ..Reading::default() };
    if let Some(node) = folders {
        for (place, name) in names(cx, node, say!("the path of a folder"), PROTO_PATH_HELP) {
            reading.folders.push(cx.named_path(place, &name, FileRole::Folder));
        }
    }
    for (place, name) in names(cx, files, say!("the path of a `.proto` file"), PROTO_HELP) {
        reading.read_all(cx, place, &name);
    }
    reading.link(cx, files.place)
}

/// One text or several.
#[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
fn names(cx: &mut Context<'_>, node: &Node, want: Said, help: Said) -> Vec<(Place, String)> {
    let nodes = node.one_or_more();
    let mut names = Vec::new();
    for node in nodes {
        if node.is_null() || !matches!(node.kind, Kind::Scalar { .. }) {
            cx.wrong_type::<()>(node, want.clone(), help.clone());
        } else if let Some(name) = cx.text(node, want.clone()) {
            names.push((node.place, name));
        }
    }
    names
}

impl ProtoFiles {
    /// The place of a declaration: `path` is that of `SourceCodeInfo`.
    pub(crate) fn place(&self, file: &FileDescriptorProto, path: &[i32]) -> Place {
        self.texts.place(file, path).unwrap_or(self.place)
    }
}

impl Texts {
    fn place(&self, file: &FileDescriptorProto, path: &[i32]) -> Option<Place> {
        let (number, source) = self.0.get(file.name())?;
        let locations = &file.source_code_info.as_ref()?.location;
        let span = &locations.iter().find(|location| location.path == path)?.span;
        let (end_line, end_column) = match span[..] {
            [line, _, end_column] => (line, end_column),
            [_, _, end_line, end_column] => (end_line, end_column),
            _ => return None,
        };
        let start = offset(&source.text, *span.first()?, *span.get(1)?)?;
        let end = offset(&source.text, end_line, end_column)?;
        Some(Place::new(*number, start, end.max(start)))
    }
}

/// The byte offset of a line and column, both counted from 0.
fn offset(text: &str, line: i32, column: i32) -> Option<usize> {
    let (line, column) = (usize::try_from(line).ok()?, usize::try_from(column).ok()?);
    let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    Some(text.floor_char_boundary((before + column).min(text.len())))
}

#[derive(Default)]
struct Reading {
    /// The folders that are searched first for imports.
    folders: Vec<PathBuf>,
    files: Vec<FileDescriptorProto>,
    texts: Texts,
    /// Files whose imports are not read yet.
    open: VecDeque<Open>,
    /// True if all imports could be read.
    is_whole: bool,
}

struct Open {
    /// Its index among the files.
    at: usize,
    folder: PathBuf,
    /// The folder of the file that `proto` names.
    root: PathBuf,
}

/// A file to read.
struct Wanted<'w> {
    /// As written, and its place.
    name: &'w str,
    place: Place,
    /// Candidate paths, in this order.
    paths: Vec<PathBuf>,
    root: Option<&'w Path>,
}

impl Reading {
    /// Reads a file and all its imports.
    fn read_all(&mut self, cx: &mut Context<'_>, place: Place, name: &str) {
        let mut paths = vec![cx.path(place, name)];
        paths.extend(self.folders.iter().map(|folder| folder.join(name)));
        self.take(cx, &Wanted { name, place, paths, root: None });
        while let Some(open) = self.open.pop_front() {
            for import in 0..self.files[open.at].dependency.len() {
                let name = self.files[open.at].dependency[import].clone();
                let place = self.place_of_import(open.at, import).unwrap_or(place);
                let folders = self.folders.iter().chain([&open.root, &open.folder]);
                let paths = folders.map(|folder| folder.join(&name)).collect();
                let wanted = Wanted { name: &name, place, paths, root: Some(&open.root) };
                if let Some(known) = self.take(cx, &wanted) {
                    self.files[open.at].dependency[import] = known;
                }
            }
        }
    }

    /// The place of an import, including its quotes.
    fn place_of_import(&self, at: usize, import: usize) -> Option<Place> {
        let file = &self.files[at];
        let place = self.texts.place(file, &[IMPORTS, import as i32])?;
        let written = &self.texts.0.get(file.name())?.1.text[place.start()..place.end()];
        let (open, close) = (written.find(['"', '\''])?, written.rfind(['"', '\''])?);
        Some(place.part(open, close + 1 - open))
    }

    /// Reads a file unless it is known. Returns its name among the descriptors.
    fn take(&mut self, cx: &mut Context<'_>, wanted: &Wanted<'_>) -> Option<String> {
        // Our versions win: those of newer `protoc` releases contain syntax that only its parser
        // reads.
        if let Some(file) = well_known(wanted.name) {
            return Some(match self.has(file.name()) {
                true => wanted.name.to_owned(),
                false => self.add(file, PathBuf::new(), PathBuf::new()),
            });
        }
        // A descriptor set usually contains its imports.
        if self.has(wanted.name) {
            return Some(wanted.name.to_owned());
        }
        let is_set = wanted.root.is_none() && is_set(wanted.name);
        let bytes_max = if is_set { DESCRIPTORS_BYTES_MAX } else { PROTO_BYTES_MAX };
        let mut missing = None;
        for path in &wanted.paths {
            let name = name_of(path);
            if self.has(&name) {
                return Some(name);
            }
            if self.files.len() >= PROTO_FILES_MAX {
                return self.too_many(cx, wanted.place);
            }
            match cx.read(path, bytes_max) {
                Ok(bytes) if bytes.len() > bytes_max => {
                    return self.too_large(cx, wanted.place, bytes_max);
                }
                Ok(bytes) if is_set => return self.take_set(cx, wanted, path, &bytes),
                Ok(bytes) => return self.parse(cx, wanted, path, &name, bytes),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    missing.get_or_insert(error);
                }
                Err(error) => {
                    missing = Some(error);
                    break;
                }
            }
        }
        let reason = missing.map(|error| Said::of_error(&error)).unwrap_or_default();
        let help = match wanted.root {
            None => {
                say!(
                    "write the path relative to the folder of this file, or to a folder of \
                     `proto_path`"
                )
            }
            Some(_) => {
                say!(
                    "add the folder to `proto_path`; imports are searched for there, in the \
                     folder of the `proto` file, and next to the importing file"
                )
            }
        };
        self.unreadable(cx, wanted, reason, help)
    }

    fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name() == name)
    }

    fn parse(
        &mut self,
        cx: &mut Context<'_>,
        wanted: &Wanted<'_>,
        path: &Path,
        name: &str,
        bytes: Vec<u8>,
    ) -> Option<String> {
        let place = wanted.place;
        cx.named_files.push(Named { place, path: path.to_path_buf(), role: FileRole::Protocol });
        let Ok(text) = String::from_utf8(bytes) else {
            return self.unreadable(
                cx,
                wanted,
                say!("it is not UTF-8"),
                say!("save the file as UTF-8"),
            );
        };
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let source = Source::new(wanted.name, without_mark(&text));
        let number = cx.add_source(source.clone(), folder.clone());
        let root = wanted.root.map_or_else(|| folder.clone(), Path::to_path_buf);
        let parsed = protox_parse::parse(name, &source.text);
        let file = parsed.map_err(|error| mistake::parse(cx, number, &source, &error));
        self.texts.0.insert(name.to_owned(), (number, source));
        match file {
            Ok(file) => Some(self.add(file, folder, root)),
            Err(()) => {
                self.is_whole = false;
                None
            }
        }
    }

    /// The files of a descriptor set, which are already parsed. The set itself has no name.
    fn take_set(
        &mut self,
        cx: &mut Context<'_>,
        wanted: &Wanted<'_>,
        path: &Path,
        bytes: &[u8],
    ) -> Option<String> {
        let place = wanted.place;
        cx.named_files.push(Named { place, path: path.to_path_buf(), role: FileRole::Protocol });
        let files = match throng_protocol::protobuf::descriptor_set(bytes) {
            Ok(files) => files,
            Err(reason) => {
                self.is_whole = false;
                let message = say!("`{}` is not a descriptor set", shorten(wanted.name));
                let help = say!(
                    "create it with `protoc --include_imports --descriptor_set_out=shop.desc`"
                );
                return cx.refuse("bad-proto", place, message, reason.shortened(60), help);
            }
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in files {
            if self.files.len() >= PROTO_FILES_MAX {
                return self.too_many(cx, place);
            }
            if !self.has(file.name()) {
                self.add(file, folder.to_path_buf(), folder.to_path_buf());
            }
        }
        None
    }

    fn too_large<T>(&mut self, cx: &mut Context<'_>, place: Place, bytes_max: usize) -> Option<T> {
        self.is_whole = false;
        let message = say!("the `.proto` file is larger than {} MiB", bytes_max >> 20);
        let help = say!("move the messages that you use into a separate file");
        cx.refuse("file-too-large", place, message, say!("too large"), help)
    }

    fn add(&mut self, file: FileDescriptorProto, folder: PathBuf, root: PathBuf) -> String {
        let name = file.name().to_owned();
        self.open.push_back(Open { at: self.files.len(), folder, root });
        self.files.push(file);
        name
    }

    fn too_many<T>(&mut self, cx: &mut Context<'_>, place: Place) -> Option<T> {
        // Reported only once.
        if std::mem::replace(&mut self.is_whole, false) {
            let help = say!("move the messages that you use into one file");
            cx.too_many(place, say!("more than {PROTO_FILES_MAX} `.proto` files are read"), help);
        }
        None
    }

    fn unreadable<T>(
        &mut self,
        cx: &mut Context<'_>,
        wanted: &Wanted<'_>,
        label: Said,
        help: Said,
    ) -> Option<T> {
        self.is_whole = false;
        let message = say!("`{}` cannot be read", shorten(wanted.name));
        cx.refuse("file-unreadable", wanted.place, message, label, help)
    }

    fn link(self, cx: &mut Context<'_>, place: Place) -> Option<ProtoFiles> {
        let Reading { files, texts, .. } = self;
        if !self.is_whole || files.is_empty() {
            return None;
        }
        match throng_protocol::protobuf::link(files) {
            Ok(pool) => Some(ProtoFiles { pool, texts, place }),
            Err(error) => {
                mistake::link(cx, &texts, place, *error);
                None
            }
        }
    }
}

/// The name of a file among the descriptors: the same file always has the same name, as far as its
/// path shows.
fn name_of(path: &Path) -> String {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for part in path.components() {
        match (part, parts.last()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.iter().collect::<PathBuf>().to_string_lossy().into_owned()
}

/// True if the name is that of a descriptor set.
fn is_set(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| DESCRIPTORS.contains(&ending))
}

/// The files that come with Protobuf.
fn well_known(name: &str) -> Option<FileDescriptorProto> {
    let file = DescriptorPool::global().get_file_by_name(name)?;
    Some(file.file_descriptor_proto().clone())
}
