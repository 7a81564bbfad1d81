//! Reads files from others: received scenarios and run directories. Only regular files are read, up
//! to a size limit, because a pipe can block and a device may never end. All such files must be
//! read here.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

use crate::said::Told;
use crate::system;

/// Paths by which a shell passes open files, which the user wants to read.
const GIVEN: [&str; 3] = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/"];

/// Opens a regular file. Neither opening nor reading it blocks.
pub fn open(path: &Path) -> io::Result<File> {
    // Check before opening, because opening a device can have effects.
    fit(&std::fs::metadata(path)?)?;
    let file = system::without_waiting(OpenOptions::new().read(true)).open(path)?;
    // Check again, because it may have been replaced.
    fit(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file; fails if it exceeds `bytes_max`.
pub fn read(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    // Do not read a file that is too large. Kernel files have size 0.
    if file.metadata()?.len() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    read_all(file, bytes_max)
}

/// Like [`read`], for UTF-8 text.
pub fn read_text(path: &Path, bytes_max: usize) -> io::Result<String> {
    text(read(path, bytes_max)?)
}

/// Like [`read`], for a path on the command line, which can be a pipe passed by a shell, as in
/// `throng run <(make-scenario)`.
pub fn read_given(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let given = if is_given(path) { system::handed_over(path)? } else { None };
    match given {
        Some(given) => read_all(given, bytes_max),
        None => read(path, bytes_max),
    }
}

/// Whether a shell passes an open file by this path.
pub fn is_given(path: &Path) -> bool {
    path.to_str().is_some_and(|path| GIVEN.iter().any(|it| path.starts_with(it)))
}

/// Like [`read_given`], for UTF-8 text.
pub fn read_given_text(path: &Path, bytes_max: usize) -> io::Result<String> {
    text(read_given(path, bytes_max)?)
}

fn read_all(file: impl io::Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take((bytes_max as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() > bytes_max {
        true => Err(too_large(bytes_max)),
        false => Ok(bytes),
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, Told(say!("it is not UTF-8 text"))))
}

fn too_large(bytes_max: usize) -> io::Error {
    const MIB: usize = 1 << 20;
    let said = match bytes_max >= MIB && bytes_max.is_multiple_of(MIB) {
        true => say!("it is larger than {} MiB", bytes_max / MIB),
        false => say!("it is larger than {bytes_max} bytes"),
    };
    io::Error::new(io::ErrorKind::FileTooLarge, Told(said))
}

fn fit(data: &std::fs::Metadata) -> io::Result<()> {
    let kind = data.file_type();
    match () {
        () if kind.is_file() => Ok(()),
        // The error of reading a directory.
        () if kind.is_dir() => Err(io::Error::from_raw_os_error(system::EISDIR)),
        () => Err(io::Error::new(io::ErrorKind::InvalidInput, Told(system::unreadable(kind)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Said;

    fn refused(path: &Path) -> String {
        Said::of_error(&read(path, 100).unwrap_err()).english()
    }

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let folder = std::env::temp_dir().join(format!("throng-plain-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, pipe, sparse) = (folder.join("a"), folder.join("pipe"), folder.join("sparse"));
        std::fs::write(&file, [b'a'; 100]).unwrap();
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();

        assert_eq!(read(&file, 100).unwrap(), [b'a'; 100]);
        assert_eq!(read_given(&file, 100).unwrap(), [b'a'; 100]);
        let told = Said::of_error(&read(&file, 99).unwrap_err()).english();
        assert_eq!(told, "it is larger than 99 bytes");
        assert_eq!(refused(&sparse), "it is larger than 100 bytes");
        assert_eq!(refused(&pipe), "it is a pipe, not a file");
        assert_eq!(refused(&folder.join("socket")), "it is a socket, not a file");
        assert_eq!(refused(Path::new("/dev/zero")), "it is a device, not a file");
        assert_eq!(refused(&folder), "Is a directory (os error 21)");
        assert!(refused(&folder.join("no")).starts_with("No such file"));
        // Also through a symbolic link, and for paths that no shell passed.
        std::os::unix::fs::symlink(&pipe, folder.join("link")).unwrap();
        assert_eq!(refused(&folder.join("link")), "it is a pipe, not a file");
        assert!(read_given(&pipe, 100).is_err());
        // Kernel files do not report their size.
        assert!(!read(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
        assert!(read(Path::new("/proc/self/status"), 10).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
