//! Links the descriptors of files, with prost-reflect.

use std::collections::{BTreeSet, HashMap};

use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{DescriptorError, DescriptorPool};
use throng_base::Said;

/// Why descriptors cannot be linked.
#[derive(Debug)]
pub enum NotLinked {
    /// A file with an unknown syntax, by its name.
    Syntax(String),
    Descriptor(DescriptorError),
}

impl NotLinked {
    pub fn said(&self) -> Said {
        match self {
            NotLinked::Syntax(file) => {
                say!("the syntax of `{file}` is not proto2, proto3 or an edition")
            }
            NotLinked::Descriptor(error) => {
                say!("the descriptors are inconsistent: {error}")
            }
        }
    }
}

/// Links the descriptors of files, in any order.
///
/// # Errors
/// What does not fit together.
pub fn link(mut files: Vec<FileDescriptorProto>) -> Result<DescriptorPool, Box<NotLinked>> {
    // The linker panics at unknown ones.
    let is_known = |file: &&FileDescriptorProto| matches!(file.syntax(), "" | "proto2" | "proto3");
    if let Some(file) = files.iter().find(|file| !is_known(file)) {
        return Err(Box::new(NotLinked::Syntax(file.name().to_owned())));
    }
    for file in &mut files {
        // The linker does not accept an empty syntax.
        file.syntax = file.syntax.take().filter(|syntax| !syntax.is_empty());
    }
    show_public_imports(&mut files);
    let mut pool = DescriptorPool::new();
    let added = pool.add_file_descriptor_protos(files);
    added.map_err(|error| Box::new(NotLinked::Descriptor(error)))?;
    Ok(pool)
}

/// Public imports of a file are visible to its importers, over any number of files. The linker only
/// follows one; so each file gets direct imports of all that it sees.
fn show_public_imports(files: &mut [FileDescriptorProto]) {
    let public: HashMap<String, Vec<String>> =
        files.iter().map(|file| (file.name().to_owned(), public_imports(file))).collect();
    for file in files {
        let mut seen: BTreeSet<&str> = file.dependency.iter().map(String::as_str).collect();
        let mut open: Vec<&str> = seen.iter().copied().collect();
        let mut more = Vec::new();
        while let Some(name) = open.pop() {
            for import in public.get(name).into_iter().flatten() {
                if import != file.name() && seen.insert(import) {
                    open.push(import);
                    more.push(import.clone());
                }
            }
        }
        // After the others, whose indexes are used elsewhere.
        file.dependency.extend(more);
    }
}

fn public_imports(file: &FileDescriptorProto) -> Vec<String> {
    let numbers = file.public_dependency.iter().filter_map(|number| usize::try_from(*number).ok());
    numbers.filter_map(|number| file.dependency.get(number).cloned()).collect()
}
