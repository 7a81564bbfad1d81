//! `throng import`: a scenario from what another tool has recorded or describes.

use std::fs::OpenOptions;
use std::io::{self, Cursor, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_base::{Diagnostic, Exit, Said, plain, system::EEXIST};
use throng_import::{FILE_BYTES_MAX, Format, Imported, LeftOut, Options};
use throng_monitor::ask_up_to;
use throng_program::HttpCall;
use throng_scenario::{Url, whole};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::ImportArguments;

/// How long a description may take to load.
const LOAD_TIME_MAX: Duration = Duration::from_secs(60);
/// Remarks that are printed; all of them are in the scenario.
const REMARKS_SHOWN_MAX: usize = 20;

pub(crate) fn import(arguments: &ImportArguments) -> Ended {
    let errors = Screen::errors(false);
    run(arguments, errors).map_err(|told| errors.refused_all(&told))?;
    Ok(Exit::Success)
}

fn run(arguments: &ImportArguments, errors: Screen) -> Result<(), Vec<Diagnostic>> {
    let format = arguments.kind.format();
    if let Some(target) = &arguments.target {
        check_target(target).map_err(|error| vec![*error])?;
    }
    let (input, name) = opened(arguments, format).map_err(|error| vec![*error])?;
    let to_output = arguments.out.as_deref() == Some(Path::new("-"));
    let path = match &arguments.out {
        Some(path) if !to_output => path.clone(),
        _ => PathBuf::from(format!("{}.yaml", stem_of(&name, format))),
    };
    let options = Options {
        stem: scenario_stem(&path),
        assets: arguments.assets,
        hosts: arguments.host.iter().map(|host| host.to_ascii_lowercase()).collect(),
        target: arguments.target.clone(),
        origin: is_url(&arguments.file)
            .then(|| Url::parse(&arguments.file).ok())
            .flatten()
            .map(|url| url.origin()),
        takes_insecure: arguments.insecure,
        folder: folder(arguments, &path),
        ..Options::default()
    };
    let imported = throng_import::import(format, input, &name, &options)?;
    errors.diagnostics(&imported.warnings);
    if to_output {
        Screen::output(false).document(&imported.scenario);
        if !imported.files.is_empty() {
            errors.say(say!("give --out FILE: the scenario needs other files next to it"));
        }
        return Ok(());
    }
    write(&path, &imported, arguments.force).map_err(|error| vec![*error])?;
    tell(&path, &imported);
    Ok(())
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

fn check_target(target: &str) -> Result<(), Box<Diagnostic>> {
    let message = match Url::parse(target) {
        Ok(url) if url.path.trim_end_matches('/').is_empty() => return Ok(()),
        Ok(_) => say!("`{target}` has a path"),
        Err(error) => say!("`{target}` is not a URL: {}", error.message),
    };
    let help = say!("write the scheme, the host and the port: `--target http://127.0.0.1:8080`");
    Err(Box::new(Diagnostic::error("import-unreadable", message).help(help)))
}

/// The file as a stream, and what it is called.
fn opened(
    arguments: &ImportArguments,
    format: Format,
) -> Result<(Box<dyn Read>, String), Box<Diagnostic>> {
    let file = &arguments.file;
    if file == "-" {
        return Ok((Box::new(io::stdin()), "standard input".into()));
    }
    if is_url(file) {
        return match format {
            Format::OpenApi => Ok((Box::new(Cursor::new(loaded(file)?)), file.clone())),
            _ => {
                let message = say!("only OpenAPI descriptions can be loaded from a URL");
                let help = say!("download the file and give its path");
                Err(Box::new(Diagnostic::error("import-unreadable", message).help(help)))
            }
        };
    }
    let path = Path::new(file);
    let is_command = format == Format::Curl && file.trim_start().starts_with("curl ");
    if is_command && !path.exists() {
        return Ok((Box::new(Cursor::new(file.clone().into_bytes())), "command line".into()));
    }
    let unreadable = |error: io::Error| {
        let message = say!("cannot read `{}`: {}", path.display(), Said::of_error(&error));
        Box::new(
            Diagnostic::error("file-unreadable", message).help(say!("check the path and the file")),
        )
    };
    let is_given = file.starts_with("/dev/fd/") || file.starts_with("/proc/self/fd/");
    let opened = match is_given {
        true => std::fs::File::open(path),
        false => plain::open(path),
    };
    Ok((Box::new(opened.map_err(unreadable)?), file.clone()))
}

fn loaded(url: &str) -> Result<Vec<u8>, Box<Diagnostic>> {
    let call = HttpCall {
        method: "GET".into(),
        url: url.into(),
        headers: vec![("Accept".into(), "application/json, application/yaml, */*".into())],
        body: String::new(),
        statuses: Vec::new(),
        timeout: LOAD_TIME_MAX,
    };
    let failed = |reason: Said| {
        let message = say!("cannot load {}: {}", url, reason);
        let help = say!("check the URL, or download the file and give its path");
        Box::new(Diagnostic::error("import-unreadable", message).help(help))
    };
    let answered = ask_up_to(&call, FILE_BYTES_MAX as u64 + 1).map_err(failed)?;
    match answered.status {
        200 => Ok(answered.body.into_bytes()),
        status => Err(failed(say!("the response has the status {status}"))),
    }
}

/// How files beside a scenario begin.
pub(crate) fn scenario_stem(path: &Path) -> String {
    path.file_stem().map_or("imported".into(), |stem| stem.to_string_lossy().into_owned())
}

/// `shop` of `recordings/shop.har`.
fn stem_of(name: &str, format: Format) -> String {
    let name = name.split(['?', '#']).next().unwrap_or(name).trim_end_matches('/');
    let own = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = own.rsplit_once('.').map_or(own, |(stem, _)| stem);
    let stem = stem.trim_end_matches(".postman_collection");
    let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    match stem.is_empty()
        || !stem.chars().all(is_plain) && stem.contains(' ') && format == Format::Curl
    {
        true => format.word().to_string(),
        false => stem.chars().map(|c| if is_plain(c) { c } else { '-' }).collect(),
    }
}

/// Where files that the imported one names are, as the scenario finds them.
fn folder(arguments: &ImportArguments, scenario: &Path) -> PathBuf {
    let of = |path: &Path| path.parent().unwrap_or(Path::new("")).to_path_buf();
    let names_file = arguments.file != "-" && !is_url(&arguments.file);
    let is_curl = arguments.kind.format() == Format::Curl;
    // Commands name files from where they are typed.
    let own = if names_file && !is_curl { of(Path::new(&arguments.file)) } else { PathBuf::new() };
    match whole(&own) == whole(&of(scenario)) && own.as_os_str().is_empty() {
        true => PathBuf::new(),
        false => whole(&own),
    }
}

pub(crate) fn write(path: &Path, imported: &Imported, force: bool) -> Result<(), Box<Diagnostic>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let beside =
        imported.files.iter().map(|(name, content)| (folder.join(name), content.as_slice()));
    let all: Vec<(PathBuf, &[u8])> =
        std::iter::once((path.to_path_buf(), imported.scenario.as_bytes())).chain(beside).collect();
    // All or nothing: a scenario without its files would be worse than none.
    if let Some((path, _)) = all.iter().find(|(path, _)| !force && path.exists()) {
        return Err(unwritable(path, &io::Error::from_raw_os_error(EEXIST)));
    }
    for (path, content) in all {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let written = options.open(&path).and_then(|mut file| file.write_all(content));
        written.map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Box<Diagnostic> {
    let message = say!("cannot write `{}`: {error}", path.display(), error = Said::of_error(error));
    let help = say!("give another path with --out, or use --force to overwrite it");
    Box::new(Diagnostic::error("file-unwritable", message).help(help))
}

/// What was made, and all that was left out.
pub(crate) fn tell(path: &Path, imported: &Imported) {
    let screen = Screen::output(false);
    let shown = path.display().to_string();
    screen.say(say!("wrote {} · requests: {}", shown, imported.requests));
    let folder = path.parent().unwrap_or(Path::new(""));
    for (name, _) in &imported.files {
        screen.say(say!("wrote {}", folder.join(name).display()));
    }
    let count: usize = imported.left_out.iter().map(|one| one.count).sum();
    screen.say(say!(
        "targets: {} · saved values: {} · left out: {}",
        imported.targets,
        imported.saved,
        count
    ));
    for one in imported.left_out.iter().take(REMARKS_SHOWN_MAX) {
        screen.say(say!("left out: {}", times(one)));
    }
    let more = imported.left_out.len().saturating_sub(REMARKS_SHOWN_MAX);
    if more > 0 {
        screen.say(say!("… and {} more; all are comments in {}", more, shown));
    }
    if !imported.secrets.is_empty() {
        let list = imported.secrets.join(", ");
        screen.say(say!("secrets come from the environment: set {}", list));
    }
    if !imported.unknown.is_empty() {
        screen.say(say!("set these values in `vars`: {}", imported.unknown.join(", ")));
    }
    screen.say(say!("edit it, then run: throng check {shown} · throng try {shown}"));
}

fn times(one: &LeftOut) -> Said {
    match one.count {
        1 => one.said(),
        count => say!("{} × {}", count, one.said()),
    }
}
