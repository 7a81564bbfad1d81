//! Writes files in addition to the run directory: the HTML page, and reports for a CI server and a
//! pull request.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use throng_base::private::Private as _;
use throng_base::{Diagnostic, Said};
use throng_results::markdown::summary_markdown;
use throng_results::page::{html, report_data};
use throng_results::{Run, Summary, junit};

use crate::Settings;

const JUNIT: &str = "--junit";
const MARKDOWN: &str = "--markdown";
const HTML: &str = "--html";
/// Path in the run directory.
pub const PAGE_FILE: &str = "report.html";

/// Writes the page of a recorded run, by default into its directory, and returns its data.
pub fn write_page(summary: &Summary, path: Option<&Path>) -> Result<Value, Box<Diagnostic>> {
    let directory = summary.directory.clone().unwrap_or_default();
    let own = directory.join(PAGE_FILE);
    let path = path.unwrap_or(&own);
    let data = report_data(&Run::open(&directory)?, summary)?;
    write_html(&data, path).map(|()| data)
}

/// Writes a page from its data.
pub fn write_html(data: &Value, path: &Path) -> Result<(), Box<Diagnostic>> {
    let page = html(data);
    // Results are readable only by the owner, like the run directory.
    let written =
        write_whole(path, OpenOptions::new().private(), |file| file.write_all(page.as_bytes()));
    written.map_err(|error| unwritable(HTML, path, &error))
}

/// Checks that all outputs can be written before the run produces results. Existing files stay
/// unchanged, and no new file remains. Pipes and devices are not opened, because that can block.
pub(crate) fn tried(output: &Settings) -> Result<(), Box<Diagnostic>> {
    for (flag, path) in [(JUNIT, &output.junit), (MARKDOWN, &output.markdown), (HTML, &output.html)]
    {
        path.as_ref().map_or(Ok(()), |path| try_file(flag, path))?;
    }
    Ok(())
}

fn try_file(flag: &'static str, path: &Path) -> Result<(), Box<Diagnostic>> {
    let mut open = OpenOptions::new();
    let tried = match fs::metadata(path) {
        Ok(there) if there.is_file() || there.is_dir() => open.append(true).open(path).map(drop),
        Ok(_) => Ok(()),
        Err(_) => open.write(true).create_new(true).open(path).and_then(|_| fs::remove_file(path)),
    };
    tried.map_err(|error| unwritable(flag, path, &error))
}

/// Writes the result for a CI server and the summary for a pull request, and reports failures.
pub fn write_files(
    junit_path: Option<&Path>,
    markdown_path: Option<&Path>,
    summary: &Summary,
) -> Vec<Diagnostic> {
    let mut failed = Vec::new();
    let mut write = |flag, path: &Path, text: String| {
        let written =
            write_whole(path, &mut OpenOptions::new(), |file| file.write_all(text.as_bytes()));
        let written = written.map_err(|error| unwritable(flag, path, &error));
        failed.extend(written.err().map(|told| *told));
    };
    if let Some(path) = junit_path {
        write(JUNIT, path, junit(summary));
    }
    if let Some(path) = markdown_path {
        write(MARKDOWN, path, summary_markdown(summary));
    }
    failed
}

pub fn unwritable(flag: &'static str, path: &Path, error: &io::Error) -> Box<Diagnostic> {
    let message = say!("cannot write `{}`: {error}", path.display(), error = Said::of_error(error));
    let error = Diagnostic::error("file-unwritable", message);
    Box::new(error.help(say!("set {flag} to a writable path")))
}

/// Writes a temporary file and renames it when it is complete, so that no reader sees half a file.
/// An existing file is kept until then. Pipes and devices are written directly. `options` sets the
/// permissions of a new file.
pub fn write_whole(
    path: &Path,
    options: &mut OpenOptions,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    // Keep a symbolic link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return write(&mut OpenOptions::new().write(true).open(path)?);
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    // A killed process with the same ID may have left this file.
    let _ = fs::remove_file(&beside);
    let whole = || {
        let open = options.write(true).create_new(true).open(&beside);
        let mut file = match open {
            Ok(file) => file,
            // A directory that accepts no new files may contain a writable one.
            Err(_) if there.is_some() => {
                return write(&mut OpenOptions::new().write(true).truncate(true).open(path)?);
            }
            Err(error) => return Err(error),
        };
        if let Some(there) = &there {
            fs::set_permissions(&beside, there.permissions())?;
        }
        write(&mut file)?;
        fs::rename(&beside, path)
    };
    let written = whole();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A path inside a directory; `None` if it leads out of it.
pub fn inside(directory: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    (is_inside && path.components().next().is_some()).then(|| directory.join(path))
}

/// Creates a directory and its parents, accessible only to the owner.
pub fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).private().create(path)
}

/// Creates a file and its parent directories, accessible only to the owner.
pub fn private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        private_directory(parent)?;
    }
    let mut file = File::options().create(true).write(true).truncate(true).private().open(path)?;
    file.write_all(bytes)
}
