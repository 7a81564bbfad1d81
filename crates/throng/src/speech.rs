//! In which language throng speaks: that of `--lang`, or of the locale. The command line speaks it
//! too: its help is translated here, and what clap itself says, which is English only.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _};
use throng_base::diagnostic::did_you_mean;
use throng_base::{Language, language};

use crate::arguments::Arguments;
use crate::fingers;
use crate::screen::{self, Screen};

/// Speaks the language that is asked for, already while the arguments are read: what is wrong with
/// them is said in it too.
pub(crate) fn choose(words: &[OsString]) {
    let locale = || Language::of_locale(|name| std::env::var(name).ok());
    language::speak(asked(words).unwrap_or_else(locale));
}

fn asked(words: &[OsString]) -> Option<Language> {
    let mut words = words.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        match word.strip_prefix("--lang") {
            Some("") => return words.next().and_then(Language::parse),
            Some(rest) if rest.starts_with('=') => return Language::parse(&rest[1..]),
            _ => {}
        }
    }
    None
}

/// The arguments as they are defined, with a help in the spoken language.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command();
    if language::spoken() != Language::English {
        // What clap adds itself is there only then.
        command.build();
        command = translated(command);
    }
    let asked = words.clone();
    let matches = command.try_get_matches_from_mut(words).map_err(|mut error| {
        suggest(&mut error, &command, &asked);
        error
    })?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// What was perhaps meant, found in the way in which it is found for the keys of a scenario.
fn suggest(error: &mut clap::Error, command: &Command, words: &[OsString]) {
    let (asked, _) = fingers::asked(command, words);
    let (wrong, near, candidates) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let all = command.get_subcommands().map(|one| one.get_name().to_string()).collect();
            (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand, all)
        }
        ErrorKind::UnknownArgument => {
            let longs = asked.get_arguments().filter_map(Arg::get_long_and_visible_aliases);
            let all = longs.flatten().map(|name| format!("--{name}"));
            (ContextKind::InvalidArg, ContextKind::SuggestedArg, all.collect())
        }
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(valid)) => {
                (ContextKind::InvalidValue, ContextKind::SuggestedValue, valid.clone())
            }
            _ => return,
        },
        _ => return,
    };
    let candidates: Vec<String> = candidates;
    let Some(ContextValue::String(word)) = error.get(wrong) else { return };
    let meant = did_you_mean(word, candidates.iter().map(String::as_str)).map(str::to_string);
    if let Some(meant) = meant {
        error.insert(near, ContextValue::String(meant));
    }
}

fn translated(command: Command) -> Command {
    let paragraphs = |text: Option<&StyledStr>| {
        let text = text.map(ToString::to_string).unwrap_or_default();
        text.split("\n\n").map(language::say).collect::<Vec<_>>().join("\n\n")
    };
    let about = paragraphs(command.get_about());
    let after = paragraphs(command.get_after_help());
    let command = command.about(about);
    let command = if after.is_empty() { command } else { command.after_help(after) };
    command.mut_args(argument).mut_subcommands(translated)
}

fn argument(mut arg: Arg) -> Arg {
    let say = |text: &StyledStr| language::say(&text.to_string()).into_owned();
    if let Some(heading) = arg.get_help_heading().map(|text| language::say(text).into_owned()) {
        arg = arg.help_heading(heading);
    }
    if let Some(help) = arg.get_help().map(say) {
        arg = arg.help(help);
    }
    if let Some(help) = arg.get_long_help().map(say) {
        arg = arg.long_help(help);
    }
    arg
}

/// What clap writes around texts of ours.
// words
const PARTS: [&str; 10] = [
    "Usage:",
    "Commands:",
    "Arguments:",
    "Options:",
    "Possible values:",
    "[default:",
    "[possible values:",
    "[aliases:",
    "[alias:",
    "[subcommands:",
];

/// What clap says of its own flags and of a mistake, a line each.
// words
#[cfg(test)]
const LINES: [&str; 23] = [
    "Print help",
    "Print help (see more with '--help')",
    "Print help (see a summary with '-h')",
    "Print version",
    "Print this message or the help of the given subcommand(s)",
    "unexpected argument '{}' found",
    "unrecognized subcommand '{}'",
    "the argument '{}' cannot be used multiple times",
    "the argument '{}' cannot be used with '{}'",
    "the argument '{}' cannot be used with:",
    "the following required arguments were not provided:",
    "a value is required for '{}' but none was supplied",
    "invalid value '{}' for '{}'",
    "invalid value '{}' for '{}': {}",
    "unexpected value '{}' for '{}' found; no more were expected",
    "'{}' requires a subcommand but one was not provided",
    "tip: a similar argument exists: '{}'",
    "tip: some similar arguments exist: {}",
    "tip: a similar subcommand exists: '{}'",
    "tip: some similar subcommands exist: {}",
    "tip: a similar value exists: '{}'",
    "tip: to pass '{}' as a value, use '{}'",
    "For more information, try '{}'.",
];

/// Prints the help or the mistake.
pub(crate) fn print(error: &clap::Error) {
    if language::spoken() == Language::English {
        let printed = error.print();
        if !error.use_stderr() {
            let flushed = printed.and_then(|()| io::stdout().flush());
            screen::note_failure(flushed, io::stdout().is_terminal());
        }
        return;
    }
    let screen = if error.use_stderr() { Screen::errors(false) } else { Screen::output(false) };
    let text = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let text = error.render();
            parts(&if screen.style.colour { text.ansi().to_string() } else { text.to_string() })
        }
        _ => mistake(&error.render().to_string()),
    };
    screen.text(&text);
}

fn parts(help: &str) -> String {
    let put = |text: String, part: &str| text.replace(part, &language::say(part));
    PARTS.into_iter().fold(help.to_string(), put)
}

/// Line by line: what is wrong, what may be meant, and how it is written.
fn mistake(text: &str) -> String {
    let line = |line: &str| -> String {
        let content = line.trim_start();
        let (label, rest) = match content.split_once(": ") {
            Some((label @ ("error" | "Usage"), rest)) => (label, rest),
            _ => ("", content),
        };
        let label = match label {
            "error" => format!("{}: ", language::say("error")),
            "Usage" => format!("{} ", language::say("Usage:")),
            _ => String::new(),
        };
        let indent = &line[..line.len() - content.len()];
        format!("{indent}{label}{}\n", parts(&language::say(rest)))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn the_language_is_known_before_the_arguments_are() {
        for (line, language) in [
            ("throng --lang zh bench", Some(Language::Chinese)),
            ("throng bench --lang=en --nonsense", Some(Language::English)),
            ("throng bench --lang klingon", None),
            ("throng bench --language zh", None),
            ("throng bench -- --lang zh", None),
            ("throng --lang", None),
        ] {
            assert_eq!(asked(&words(line)), language, "{line}");
        }
    }

    /// Another version of clap may say things differently.
    #[test]
    fn what_clap_says_of_mistakes_is_known() {
        assert!(LINES.iter().all(|line| language::translate(line).is_some()));
        for line in [
            "throng bench --concurency 5",
            "throng bnech",
            "throng init htpt",
            "throng chekc shop.yaml",
            "throng run",
            "throng bench --rate x",
            "throng bench -c",
            "throng bench --seed 1 --seed 2",
            "throng bench -4 -6",
            "throng init nonsense",
            "throng explain a b",
        ] {
            let error = Arguments::command().try_get_matches_from(words(line)).expect_err(line);
            for said in error.render().to_string().lines() {
                let said = said.trim_start();
                let rest = said.strip_prefix("error: ").unwrap_or(said);
                let is_ours =
                    rest.is_empty() || ["Usage:", "<", "["].iter().any(|it| rest.starts_with(it));
                assert!(is_ours || language::translate(rest).is_some(), "{line}: {rest}");
            }
        }
    }
}
