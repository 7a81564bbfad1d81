//! Server reflection (github.com/grpc/grpc, `reflection/v1/reflection.proto`): requests and
//! responses as bytes, and the collected descriptors.
//!
//! [`Discovery`] returns the next request for a stream of `ServerReflectionInfo`, one request and
//! one response at a time, until the schema is complete.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;

use throng_base::Said;

use crate::protobuf::wire::{Fields, Wire, Wrong, write_bytes};
use crate::protobuf::{Schema, descriptor};

/// The method, and that of older servers, which has the same messages.
pub const METHOD: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
pub const METHOD_ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

/// Most files of a server, and most bytes of all files.
pub const FILES_MAX: usize = 1_024;
pub const FILES_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A request to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    Services,
    /// The file that declares a service, method or message, with its imports.
    Symbol(String),
    File(String),
}

impl Question {
    /// Appends a `ServerReflectionRequest`.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Question::File(name) => write_bytes(3, name.as_bytes(), out),
            Question::Symbol(name) => write_bytes(4, name.as_bytes(), out),
            // The content is ignored, but servers require the field.
            Question::Services => write_bytes(7, b"*", out),
        }
    }
}

/// The response of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReflectionAnswer {
    Services(Vec<String>),
    /// Each a `FileDescriptorProto`.
    Files(Vec<Vec<u8>>),
    Error {
        code: u32,
        message: Said,
    },
}

impl ReflectionAnswer {
    /// Reads a `ServerReflectionResponse`.
    pub fn read(bytes: &[u8]) -> Result<ReflectionAnswer, Wrong> {
        let mut fields = Fields::new(bytes);
        let mut answer = None;
        while let Some((_, number, wire)) = fields.next()? {
            let Wire::Bytes { start, bytes } = wire else { continue };
            let read = match number {
                4 => files(bytes),
                6 => services(bytes),
                7 => error(bytes),
                _ => continue,
            };
            answer = Some(read.map_err(|wrong| wrong.from(start))?);
        }
        let reason = || say!("the server reflection response is empty");
        answer.ok_or_else(|| Wrong { position: bytes.len(), reason: reason() })
    }
}

fn files(bytes: &[u8]) -> Result<ReflectionAnswer, Wrong> {
    let mut files = Vec::new();
    let mut fields = Fields::new(bytes);
    while let Some((_, number, wire)) = fields.next()? {
        if let (1, Wire::Bytes { bytes, .. }) = (number, wire) {
            files.push(bytes.to_vec());
        }
    }
    Ok(ReflectionAnswer::Files(files))
}

fn services(bytes: &[u8]) -> Result<ReflectionAnswer, Wrong> {
    let mut names = Vec::new();
    let mut fields = Fields::new(bytes);
    while let Some((_, number, wire)) = fields.next()? {
        let (1, Wire::Bytes { start, bytes }) = (number, wire) else { continue };
        let mut fields = Fields::new(bytes);
        while let Some((_, number, wire)) = fields.next().map_err(|wrong| wrong.from(start))? {
            if let (1, Wire::Bytes { bytes, .. }) = (number, wire) {
                names.push(String::from_utf8_lossy(bytes).into_owned());
            }
        }
    }
    Ok(ReflectionAnswer::Services(names))
}

fn error(bytes: &[u8]) -> Result<ReflectionAnswer, Wrong> {
    let (mut code, mut message) = (0, String::new());
    let mut fields = Fields::new(bytes);
    while let Some((_, number, wire)) = fields.next()? {
        match (number, wire) {
            (1, Wire::Varint(raw)) => code = raw as u32,
            (2, Wire::Bytes { bytes, .. }) => message = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
    }
    Ok(ReflectionAnswer::Error { code, message: say!("{message}") })
}

/// Requests descriptors until all imports are resolved.
#[derive(Debug)]
pub struct Discovery {
    open: VecDeque<Question>,
    /// Files that were requested by name.
    asked: BTreeSet<String>,
    files: BTreeMap<String, File>,
    bytes: usize,
}

#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    imports: Vec<String>,
}

impl Discovery {
    /// For these services, or for all of the server if there are none.
    pub fn new<'n>(services: impl IntoIterator<Item = &'n str>) -> Discovery {
        let mut open: VecDeque<Question> =
            services.into_iter().map(|name| Question::Symbol(name.to_owned())).collect();
        if open.is_empty() {
            open.push_back(Question::Services);
        }
        Discovery { open, asked: BTreeSet::new(), files: BTreeMap::new(), bytes: 0 }
    }

    /// The next request; the same until it is answered. `None` when all is complete.
    pub fn question(&self) -> Option<&Question> {
        self.open.front()
    }

    /// Takes the response to [`Discovery::question`]: a `ServerReflectionResponse`.
    ///
    /// # Errors
    /// A sentence: the server's error, or why its descriptors cannot be used.
    pub fn answer(&mut self, bytes: &[u8]) -> Result<(), Said> {
        let Some(question) = self.open.pop_front() else {
            return Err(say!("server reflection sent an unexpected reply"));
        };
        let answer = ReflectionAnswer::read(bytes).map_err(|wrong| {
            say!("server reflection, byte {}: {}", wrong.position, wrong.reason)
        })?;
        match (answer, question) {
            (ReflectionAnswer::Error { message, .. }, Question::Services) => {
                Err(say!("the server does not list its services: {message}"))
            }
            (
                ReflectionAnswer::Error { message, .. },
                Question::Symbol(name) | Question::File(name),
            ) => Err(say!("the server does not describe `{name}`: {message}")),
            (ReflectionAnswer::Services(names), Question::Services) => {
                // The reflection service itself is not needed.
                let others = names.into_iter().filter(|name| !name.starts_with("grpc.reflection."));
                self.open.extend(others.take(FILES_MAX).map(Question::Symbol));
                Ok(())
            }
            (ReflectionAnswer::Files(files), Question::Symbol(_) | Question::File(_)) => {
                files.into_iter().try_for_each(|file| self.add(file))?;
                self.ask_for_imports();
                Ok(())
            }
            _ => Err(say!("server reflection sent an unexpected reply")),
        }
    }

    fn add(&mut self, bytes: Vec<u8>) -> Result<(), Said> {
        let (mut name, mut imports) = (String::new(), Vec::new());
        let mut fields = Fields::new(&bytes);
        let broken =
            |wrong: Wrong| say!("a descriptor from the server is not valid: {}", wrong.reason);
        while let Some((_, number, wire)) = fields.next().map_err(broken)? {
            match (number, wire) {
                (1, Wire::Bytes { bytes, .. }) => name = String::from_utf8_lossy(bytes).into(),
                (3, Wire::Bytes { bytes, .. }) => {
                    imports.push(String::from_utf8_lossy(bytes).into());
                }
                _ => {}
            }
        }
        self.bytes += bytes.len();
        if self.bytes > FILES_BYTES_MAX || self.files.len() >= FILES_MAX {
            return Err(say!(
                "the server has more than {FILES_MAX} descriptor files, or they exceed {} MiB in \
                 total",
                FILES_BYTES_MAX >> 20
            ));
        }
        self.files.entry(name).or_insert(File { bytes, imports });
        Ok(())
    }

    fn ask_for_imports(&mut self) {
        let imports = self.files.values().flat_map(|file| &file.imports);
        let missing = imports.filter(|name| !self.files.contains_key(*name));
        let missing: BTreeSet<String> =
            missing.filter(|name| known(name).is_none()).cloned().collect();
        for name in missing {
            if self.asked.insert(name.clone()) {
                self.open.push_back(Question::File(name));
            }
        }
    }

    /// All descriptors as a `FileDescriptorSet`, each file after those that it imports.
    pub fn descriptor_set(&self) -> Vec<u8> {
        let (mut out, mut written) = (Vec::new(), BTreeSet::new());
        for name in self.files.keys() {
            self.write_file(name, &mut written, &mut out);
        }
        out
    }

    fn write_file(&self, name: &str, written: &mut BTreeSet<String>, out: &mut Vec<u8>) {
        if !written.insert(name.to_owned()) {
            return;
        }
        match self.files.get(name) {
            Some(file) => {
                file.imports.iter().for_each(|import| self.write_file(import, written, out));
                write_bytes(1, &file.bytes, out);
            }
            None => {
                let Some(file) = DescriptorPool::global().get_file_by_name(name) else { return };
                for import in file.dependencies() {
                    self.write_file(import.name(), written, out);
                }
                write_bytes(1, &file.encode_to_vec(), out);
            }
        }
    }

    /// The schema of all descriptors.
    ///
    /// # Errors
    /// A sentence about what does not fit together.
    pub fn finish(self) -> Result<Schema, Said> {
        let mut files: Vec<FileDescriptorProto> = Vec::with_capacity(self.files.len());
        for file in self.files.values() {
            let decoded = descriptor(&file.bytes);
            files.push(
                decoded
                    .map_err(|error| say!("a descriptor from the server is not valid: {error}"))?,
            );
        }
        let imports = self.files.values().flat_map(|file| &file.imports);
        let mut wanted: Vec<String> = imports.cloned().collect();
        while let Some(name) = wanted.pop() {
            let is_there = files.iter().any(|file| file.name() == name);
            if let (false, Some(file)) = (is_there, known(&name)) {
                wanted.extend(file.dependency.iter().cloned());
                files.push(file);
            }
        }
        Schema::link(files)
    }
}

/// The files of protobuf itself; most servers omit them.
fn known(name: &str) -> Option<FileDescriptorProto> {
    let file = DescriptorPool::global().get_file_by_name(name)?;
    Some(file.file_descriptor_proto().clone())
}
