//! Files that are made of a run beside its record: the page, and the verdict for a CI server.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use throng_base::{Diagnostic, Said};
use throng_results::{Run, Summary, junit, report_html};

/// In the directory of a run.
const PAGE_FILE: &str = "report.html";

/// Writes the page of a recorded run, where nothing else is said into its directory.
pub(crate) fn write_page(summary: &Summary, path: Option<&Path>) -> Result<(), Box<Diagnostic>> {
    let directory = summary.directory.clone().unwrap_or_default();
    let own = directory.join(PAGE_FILE);
    let path = path.unwrap_or(&own);
    let page = report_html(&Run::open(&directory)?, summary)?;
    // What a run has heard is for who started it, as its record is.
    let mut open = OpenOptions::new();
    let open = open.write(true).create(true).truncate(true).mode(0o600).open(path);
    open.and_then(|mut file| file.write_all(page.as_bytes())).map_err(|error| {
        let error = Said::of_error(&error);
        let message = say!("cannot write `{}`: {error}", path.display(), error = error);
        let help = say!("give `--html` a path you may write to");
        Box::new(Diagnostic::error("file-unwritable", message).help(help))
    })
}

/// The verdict for a CI server.
pub(crate) fn write_junit(path: &Path, summary: &Summary) -> Result<(), Box<Diagnostic>> {
    std::fs::write(path, junit(summary)).map_err(|error| junit_unwritable(path, &error))
}

/// Whether the verdict can be written there, before it is known. What the file holds stays, and
/// none is left that was not there; pipes and devices are not tried, as opening one may wait.
pub(crate) fn try_junit(path: &Path) -> Result<(), Box<Diagnostic>> {
    let mut open = OpenOptions::new();
    let tried = match std::fs::metadata(path) {
        Ok(there) if there.is_file() || there.is_dir() => open.append(true).open(path).map(drop),
        Ok(_) => Ok(()),
        Err(_) => {
            open.write(true).create_new(true).open(path).and_then(|_| std::fs::remove_file(path))
        }
    };
    tried.map_err(|error| junit_unwritable(path, &error))
}

fn junit_unwritable(path: &Path, error: &std::io::Error) -> Box<Diagnostic> {
    let message = say!("cannot write `{}`: {error}", path.display(), error = Said::of_error(error));
    let error = Diagnostic::error("file-unwritable", message);
    Box::new(error.help(say!("give --junit a path you may write to")))
}
