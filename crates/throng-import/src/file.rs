//! `throng import`: reads a file, or a description from a URL, and writes the scenario and the
//! files that it needs.

use std::fs::OpenOptions;
use std::io::{self, Cursor, Read, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use throng_base::{Diagnostic, Said, plain, system::EEXIST};
use throng_scenario::{Url, whole};

use crate::model::file_name;
use crate::{Format, Imported, LeftOut, Options};

/// Remarks that are printed; the scenario contains all of them.
const REMARKS_SHOWN_MAX: usize = 20;

/// The input, and the scenario to write.
#[derive(Args, Debug)]
pub struct ImportOptions {
    /// File to import; `-` is standard input. For openapi also a URL, for curl also a command
    #[arg(value_name = "FILE")]
    pub file: String,
    /// Scenario file to write; by default named after FILE; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// URL of the service to use instead of the main one in FILE, without a path
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
    /// Keep a recording's images, scripts, styles and fonts, as `parallel` requests
    #[arg(long)]
    pub assets: bool,
    /// Also keep a recording's requests to this host, or to `all` hosts; may be given more than
    /// once
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Accept any certificate of the service
    #[arg(long, short = 'k')]
    pub insecure: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}

/// Makes a scenario of a file; also returns the path to write to, unless it is standard output.
/// `load` loads a URL.
///
/// # Errors
/// The file cannot be imported.
pub fn import_file(
    format: Format,
    given: &ImportOptions,
    load: impl FnOnce(&str) -> Result<Vec<u8>, Said>,
) -> Result<(Imported, Option<PathBuf>), Vec<Diagnostic>> {
    if let Some(target) = &given.target {
        check_target(target).map_err(|error| vec![*error])?;
    }
    let (input, name) = opened(&given.file, format, load).map_err(|error| vec![*error])?;
    let to_output = given.out.as_deref() == Some(Path::new("-"));
    let path = match &given.out {
        Some(path) if !to_output => path.clone(),
        _ => PathBuf::from(format!("{}.yaml", stem_of(&name, format))),
    };
    let origin = is_url(&given.file).then(|| Url::parse(&given.file).ok()).flatten();
    let options = Options {
        stem: scenario_stem(&path),
        assets: given.assets,
        hosts: given.host.iter().map(|host| host.to_ascii_lowercase()).collect(),
        target: given.target.clone(),
        origin: origin.map(|url| url.origin()),
        takes_insecure: given.insecure,
        folder: folder(&given.file, format, &path),
        ..Options::default()
    };
    let imported = crate::import(format, input, &name, &options)?;
    Ok((imported, (!to_output).then_some(path)))
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

/// The file as a stream, and its name.
fn opened(
    file: &str,
    format: Format,
    load: impl FnOnce(&str) -> Result<Vec<u8>, Said>,
) -> Result<(Box<dyn Read>, String), Box<Diagnostic>> {
    if file == "-" {
        return Ok((Box::new(io::stdin()), "standard input".into()));
    }
    if is_url(file) {
        return match format {
            Format::OpenApi => {
                let loaded = load(file).map_err(|reason| {
                    let message = say!("cannot load {}: {}", file, reason);
                    let help = say!("check the URL, or download the file and give its path");
                    Box::new(Diagnostic::error("import-unreadable", message).help(help))
                })?;
                Ok((Box::new(Cursor::new(loaded)), file.into()))
            }
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
        return Ok((Box::new(Cursor::new(file.as_bytes().to_vec())), "command line".into()));
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
    Ok((Box::new(opened.map_err(unreadable)?), file.into()))
}

/// The common prefix of files beside a scenario.
pub fn scenario_stem(path: &Path) -> String {
    path.file_stem().map_or("imported".into(), |stem| stem.to_string_lossy().into_owned())
}

/// `shop` of `recordings/shop.har`.
fn stem_of(name: &str, format: Format) -> String {
    let name = name.split(['?', '#']).next().unwrap_or(name).trim_end_matches('/');
    let own = file_name(name);
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

/// The folder of files that the imported one names, as seen from the scenario.
fn folder(file: &str, format: Format, scenario: &Path) -> PathBuf {
    let of = |path: &Path| path.parent().unwrap_or(Path::new("")).to_path_buf();
    let names_file = file != "-" && !is_url(file);
    // File names in commands are relative to the current directory.
    let own = match names_file && format != Format::Curl {
        true => of(Path::new(file)),
        false => PathBuf::new(),
    };
    match whole(&own) == whole(&of(scenario)) && own.as_os_str().is_empty() {
        true => PathBuf::new(),
        false => whole(&own),
    }
}

/// Writes a scenario and the files beside it, all or none.
///
/// # Errors
/// One of them exists already (without `force`), or cannot be written.
pub fn write(path: &Path, imported: &Imported, force: bool) -> Result<(), Box<Diagnostic>> {
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

pub fn unwritable(path: &Path, error: &io::Error) -> Box<Diagnostic> {
    let message = say!("cannot write `{}`: {error}", path.display(), error = Said::of_error(error));
    let help = say!("give another path with --out, or use --force to overwrite it");
    Box::new(Diagnostic::error("file-unwritable", message).help(help))
}

/// Reports what was written, and everything that was left out.
pub fn written(path: &Path, imported: &Imported, say: &mut dyn FnMut(Said)) {
    let shown = path.display().to_string();
    say(say!("wrote {} · requests: {}", shown, imported.requests));
    let folder = path.parent().unwrap_or(Path::new(""));
    for (name, _) in &imported.files {
        say(say!("wrote {}", folder.join(name).display()));
    }
    let count: usize = imported.left_out.iter().map(|one| one.count).sum();
    say(say!(
        "targets: {} · saved values: {} · left out: {}",
        imported.targets,
        imported.saved,
        count
    ));
    for one in imported.left_out.iter().take(REMARKS_SHOWN_MAX) {
        say(say!("left out: {}", times(one)));
    }
    let more = imported.left_out.len().saturating_sub(REMARKS_SHOWN_MAX);
    if more > 0 {
        say(say!("… and {} more; all are comments in {}", more, shown));
    }
    if !imported.secrets.is_empty() {
        let list = imported.secrets.join(", ");
        say(say!("secrets come from the environment: set {}", list));
    }
    if !imported.unknown.is_empty() {
        say(say!("set these values in `vars`: {}", imported.unknown.join(", ")));
    }
    say(say!("edit it, then run: throng check {shown} · throng try {shown}"));
}

fn times(one: &LeftOut) -> Said {
    match one.count {
        1 => one.said(),
        count => say!("{} × {}", count, one.said()),
    }
}
