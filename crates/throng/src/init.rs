//! `throng init`: a commented scenario to begin with, ready to edit.

mod ask;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use throng_base::{Diagnostic, Exit, Said, Source};
use throng_scenario::bench::write_requests;
use throng_scenario::{CompileOptions, compile, curl};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::{InitArguments, InitKind};

/// The URL of the target in a template.
fn target_in(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.strip_prefix("target: "));
    line.and_then(|rest| rest.split(' ').next()).unwrap_or_default()
}

pub(crate) fn init(mut arguments: InitArguments) -> Ended {
    let (screen, errors) = (Screen::output(false), Screen::errors(false));
    ask::ask(&mut arguments, screen);
    let arguments = &arguments;
    let kind = arguments.kind.unwrap_or(InitKind::Http);
    let name = format!("{}.yaml", kind.word());
    let path = arguments.file.clone().unwrap_or_else(|| PathBuf::from(&name));
    let mut text = kind.template().to_string();
    if let Some(curl) = &arguments.curl {
        return init_curl(arguments, curl, &path, screen);
    }
    if let Some(own) = &arguments.target {
        look_at(own).map_err(|told| errors.refused_all(&told))?;
        let target = format!("target: {}", target_in(&text));
        text = text.replacen(&target, &format!("target: {own}"), 1);
    }
    if path == Path::new("-") {
        screen.document(&text);
        return Ok(Exit::Success);
    }
    let shown = path.display().to_string();
    text = text.replace(&format!(" {name}"), &format!(" {shown}"));
    let folder = path.parent().unwrap_or(Path::new(""));
    write(&path, &text, arguments.force).map_err(|told| errors.refused(&told))?;
    screen.say(say!("wrote {shown}"));
    if kind == InitKind::Api {
        // An existing file has the user's own accounts.
        let path = folder.join("accounts.csv");
        match write(&path, include_str!("init/accounts.csv"), arguments.force) {
            Ok(()) => screen.say(say!("wrote {}", path.display())),
            Err(_) if path.exists() => {
                screen.say(say!("{} already exists and was not overwritten", path.display()));
            }
            Err(told) => return Err(errors.refused(&told)),
        }
    }
    screen.say(say!("edit it, then run: throng check {shown} · throng try {shown}"));
    Ok(Exit::Success)
}

/// A session of what a browser has copied.
fn init_curl(arguments: &InitArguments, curl: &Path, path: &Path, screen: Screen) -> Ended {
    let errors = Screen::errors(false);
    if arguments.kind.is_some_and(|kind| kind != InitKind::Http) {
        let message = say!("--curl generates a scenario with HTTP requests");
        let help = say!("write `throng init http my.yaml --curl FILE`");
        return Err(errors.refused(&Diagnostic::error("flag-without-effect", message).help(help)));
    }
    let requests = curl::read(curl)
        .and_then(|source| curl::parse_all(&source))
        .map_err(|told| errors.refused_all(&told))?;
    requests.iter().for_each(|request| errors.diagnostics(&request.warnings));
    let benches: Vec<_> = requests.into_iter().map(|request| request.bench).collect();
    let name = curl.file_stem().map_or("session".into(), |name| name.to_string_lossy());
    let text = write_requests(&benches, &name);
    if path == Path::new("-") {
        screen.document(&text);
        return Ok(Exit::Success);
    }
    write(path, &text, arguments.force).map_err(|told| errors.refused(&told))?;
    let shown = path.display();
    screen.say(say!("wrote {shown}"));
    screen.say(say!("edit it, then run: throng check {shown} · throng try {shown}"));
    Ok(Exit::Success)
}

/// Whether this is a target as a scenario has it.
fn look_at(target: &str) -> Result<(), Vec<Diagnostic>> {
    let rest = "sessions: {a: {steps: [{think: 1s}]}}\nload: [{users: 1, for: 10s}]\n";
    let source = Source::new("--target", format!("target: {target}\n{rest}"));
    compile(&source, &CompileOptions::of_process(Vec::new(), PathBuf::new())).map(drop)
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Box<Diagnostic>> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(!force).create(force).truncate(force);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let message =
            say!("cannot write `{}`: {error}", path.display(), error = Said::of_error(&error));
        let error = Diagnostic::error("file-unwritable", message);
        Box::new(error.help(say!(
            "give another path: `throng init KIND my.yaml`, or use --force to overwrite it"
        )))
    })
}
