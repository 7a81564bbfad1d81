//! `throng man`: a manual page for each command, and `throng completions`: shell completion. Both
//! are generated from the definition of the command line, so that no flag is missing.

mod fish;

use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use throng_base::Exit;
use throng_run::files;
use throng_terminal::screen::{self, Screen};

use crate::Ended;
use crate::arguments::{Arguments, CompletionsArguments, ManArguments, ShellKind};
use crate::{speech, version};

/// Only in the manual of the binary itself.
const ENVIRONMENT: [(&str, &str); 5] = [
    (
        "THRONG_TARGETS",
        "Targets that throng may load: names, addresses and networks, separated by commas. All \
         others are rejected before the first connection.",
    ),
    (
        "THRONG_BUDGET",
        "Maximum users, starts per second and duration of a run, such as `users=1000, rate=500/s, \
         time=10m`. A run that could exceed it sends nothing.",
    ),
    ("NO_COLOR", "If set, output has no colors."),
    (
        "LC_ALL, LC_MESSAGES, LANG",
        "The language of the output: Chinese if the locale is zh, else English.",
    ),
    ("TERM", "If set to dumb, output has no updating status line."),
];

const FILES: [(&str, &str); 3] = [
    ("./throng-runs/", "Run directories. throng report, compare and history read them."),
    (
        "~/.config/throng/targets",
        "Targets that this user may load. If $XDG_CONFIG_HOME is set, it replaces ~/.config.",
    ),
    ("/etc/throng/targets", "Targets that all users of this host, including root, may load."),
];

pub(crate) fn man(arguments: &ManArguments) -> Ended {
    let pages = pages();
    let Some(directory) = &arguments.directory else {
        if let Some((_, page)) = pages.first() {
            screen::output(page);
        }
        return Ok(Exit::Success);
    };
    let written = write_pages(directory, &pages);
    written.map_err(|error| {
        let told = files::unwritable("`throng man`", directory, &error);
        Screen::errors(false).refused(&told)
    })?;
    let (count, path) = (pages.len(), directory.display());
    Screen::output(false).say(say!("wrote {count} manual pages to `{path}`"));
    Ok(Exit::Success)
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> Ended {
    let shell = match arguments.shell {
        ShellKind::Bash => Shell::Bash,
        ShellKind::Fish => Shell::Fish,
        ShellKind::Zsh => Shell::Zsh,
    };
    let mut script = Vec::new();
    let mut whole = shown(&speech::command());
    clap_complete::generate(shell, &mut whole, "throng", &mut script);
    if shell == Shell::Fish {
        script = fish::script(&whole, &String::from_utf8_lossy(&script)).into_bytes();
    }
    screen::output(&script);
    Ok(Exit::Success)
}

/// A command without hidden subcommands, which completion scripts would suggest. Subcommands that
/// clap adds may already be present.
fn shown(whole: &Command) -> Command {
    let has = |id: &str| whole.get_arguments().any(|argument| argument.get_id() == id);
    let below = whole.get_subcommands().filter(|below| !below.is_hide_set());
    let below = below.map(|below| match below.get_subcommands().any(Command::is_hide_set) {
        true => shown(below),
        false => below.clone(),
    });
    let mut shown = Command::new(whole.get_name().to_string())
        .args(whole.get_arguments().cloned())
        .subcommands(below)
        .disable_help_flag(has("help"))
        .disable_version_flag(has("version"))
        .disable_help_subcommand(whole.find_subcommand("help").is_some());
    if let Some(version) = whole.get_version() {
        shown = shown.version(version.to_string());
    }
    if let Some(about) = whole.get_about() {
        shown = shown.about(about.clone());
    }
    shown
}

fn write_pages(directory: &Path, pages: &[(String, Vec<u8>)]) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    pages.iter().try_for_each(|(name, page)| std::fs::write(directory.join(name), page))
}

/// The page of `throng` and those of its commands, with file names. They are in English in any
/// output language: manual pages in other languages have their own folders.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut whole = Arguments::command().disable_help_subcommand(true);
    whole.build();
    let mut pages = Vec::new();
    collect(&whole, None, &mut pages);
    pages
}

fn collect(command: &Command, above: Option<&str>, pages: &mut Vec<(String, Vec<u8>)>) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
    let mut page = Vec::new();
    // Writing to memory does not fail.
    render(command, above, &mut page).unwrap_or_default();
    // A backslash is `\e` (groff(7)); the doubled form is only for bodies of macros.
    let page = String::from_utf8_lossy(&page).replace("\\\\", "\\e");
    pages.push((format!("{name}.1"), page.into_bytes()));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, Some(&name), pages);
    }
}

fn render(command: &Command, above: Option<&str>, page: &mut Vec<u8>) -> io::Result<()> {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    // For a command with sixty flags, a line that lists them all is unreadable.
    let usage = usage.trim_start_matches("Usage:").trim().to_string();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.override_usage(usage))
        .date(version::date())
        .source(format!("throng {}", version::VERSION))
        .manual("throng");
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if above.is_none() {
        man.render_subcommands_section(page)?;
    }
    after.split("\n\n").filter(|part| !part.is_empty()).try_for_each(|part| {
        let mut roff = Roff::default();
        paragraph(&mut roff, part);
        roff.to_writer(page)
    })?;
    let mut roff = Roff::default();
    match above {
        Some(above) => see(&mut roff, above),
        None => {
            table(&mut roff, "ENVIRONMENT", &ENVIRONMENT);
            table(&mut roff, "FILES", &FILES);
        }
    }
    roff.to_writer(page)?;
    page.flush()
}

/// A part of the help after the flags, with its own heading.
fn paragraph(roff: &mut Roff, part: &str) {
    let (first, rest) = part.split_once('\n').unwrap_or((part, ""));
    if let Some(codes) = part.strip_prefix("Exit codes: ") {
        roff.control("SH", ["EXIT STATUS"]);
        roff.text([roman(codes)]);
    } else if let Some(heading) = first.strip_suffix(':').filter(|_| !rest.is_empty()) {
        roff.control("SH", [heading.to_uppercase().as_str()]);
        // Unchanged, line by line.
        roff.control("nf", []);
        roff.text([roman(rest)]);
        roff.control("fi", []);
    } else {
        roff.control("SH", ["NOTES"]);
        roff.text([roman(part)]);
    }
}

fn table(roff: &mut Roff, heading: &str, rows: &[(&str, &str)]) {
    roff.control("SH", [heading]);
    for (name, text) in rows {
        roff.control("TP", []);
        roff.text([bold(*name)]);
        roff.text([roman(*text)]);
    }
}

fn see(roff: &mut Roff, above: &str) {
    roff.control("SH", ["SEE ALSO"]);
    let name: Inline = bold(above);
    roff.text([name, roman("(1)")]);
}
