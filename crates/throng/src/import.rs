//! `throng import` and `record`: scenarios from files of other tools, and from a browser.

use std::time::Duration;

use throng_base::{Exit, Said};
use throng_import::FILE_BYTES_MAX;
use throng_import::file::{import_file, write, written};
use throng_monitor::ask_up_to;
use throng_program::HttpCall;
use throng_record::command::RecordOptions;
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::ImportArguments;

/// Time limit for loading a description.
const LOAD_TIME_MAX: Duration = Duration::from_secs(60);

pub(crate) fn import(arguments: &ImportArguments) -> Ended {
    let (screen, errors) = (Screen::output(false), Screen::errors(false));
    let imported = import_file(arguments.kind, &arguments.options, loaded);
    let (imported, path) = imported.map_err(|told| errors.refused_all(&told))?;
    errors.diagnostics(&imported.warnings);
    match path {
        Some(path) => {
            write(&path, &imported, arguments.options.force)
                .map_err(|error| errors.refused_all(&[*error]))?;
            written(&path, &imported, &mut |said| screen.say(said));
        }
        None => {
            screen.document(&imported.scenario);
            if !imported.files.is_empty() {
                errors.say(say!("give --out FILE: the scenario needs other files next to it"));
            }
        }
    }
    Ok(Exit::Success)
}

fn loaded(url: &str) -> Result<Vec<u8>, Said> {
    let call = HttpCall {
        method: "GET".into(),
        url: url.into(),
        headers: vec![("Accept".into(), "application/json, application/yaml, */*".into())],
        body: String::new(),
        statuses: Vec::new(),
        timeout: LOAD_TIME_MAX,
    };
    let answered = ask_up_to(&call, FILE_BYTES_MAX as u64 + 1)?;
    match answered.status {
        200 => Ok(answered.body.into_bytes()),
        status => Err(say!("the response has the status {status}")),
    }
}

pub(crate) fn record(options: &RecordOptions) -> Ended {
    let (screen, errors) = (Screen::output(false), Screen::errors(false));
    let tell = move |line: &str| errors.line(line);
    throng_record::command::run(options, &screen, &errors, tell)?;
    Ok(Exit::Success)
}
