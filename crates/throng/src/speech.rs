//! The output language: that of `--lang` or of the locale. It applies to the command line too: help
//! texts are keys of the catalog, and clap's errors are replaced by our own messages.

pub(crate) mod fingers;
mod instead;

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _};
use throng_base::diagnostic::did_you_mean;
use throng_base::{Language, Said, language};
use throng_terminal::Screen;

use crate::arguments::Arguments;

/// Selects the requested language before the arguments are parsed, so that parse errors use it too.
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

/// The command line with its help in the output language.
pub(crate) fn command() -> Command {
    let mut command = Arguments::command();
    if language::spoken() != Language::English {
        // This adds clap's own subcommands and flags.
        command.build();
        command = translated(command);
    }
    command
}

pub(crate) fn parse(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let asked = words.clone();
    let matches = command.try_get_matches_from_mut(words).map_err(|mut error| {
        suggest(&mut error, &command, &asked);
        error
    })?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Adds suggestions, found like those for the keys of a scenario.
fn suggest(error: &mut clap::Error, command: &Command, words: &[OsString]) {
    let (asked, _) = fingers::asked(command, words);
    // clap recommends `--` before any unknown flag, but no value of ours begins with a hyphen.
    error.remove(ContextKind::Suggested);
    if let Some(instead) = instead_of(error, asked) {
        // Similar spelling alone is not a good suggestion.
        for kind in [
            ContextKind::SuggestedSubcommand,
            ContextKind::SuggestedArg,
            ContextKind::SuggestedValue,
        ] {
            error.remove(kind);
        }
        let tips = vec![StyledStr::from(instead.spoken())];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        return;
    }
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

/// Advice for known words of other tools.
fn instead_of(error: &clap::Error, asked: &Command) -> Option<Said> {
    match error.kind() {
        ErrorKind::UnknownArgument => {
            instead::of_flag(asked.get_name(), one(error, ContextKind::InvalidArg)?)
        }
        ErrorKind::InvalidSubcommand => {
            instead::of_command(one(error, ContextKind::InvalidSubcommand)?)
        }
        ErrorKind::InvalidValue => {
            instead::of_kind(asked.get_name(), one(error, ContextKind::InvalidValue)?)
        }
        _ => None,
    }
}

/// A complete text of the help, in the output language.
fn text(english: &(impl ToString + ?Sized)) -> String {
    Said::of_others(english.to_string()).spoken()
}

fn translated(command: Command) -> Command {
    let paragraphs = |whole: Option<&StyledStr>| {
        let whole = whole.map(ToString::to_string).unwrap_or_default();
        whole.split("\n\n").map(text).collect::<Vec<_>>().join("\n\n")
    };
    let about = paragraphs(command.get_about());
    let after = paragraphs(command.get_after_help());
    let command = command.about(about);
    let command = if after.is_empty() { command } else { command.after_help(after) };
    command.mut_args(argument).mut_subcommands(translated)
}

fn argument(mut arg: Arg) -> Arg {
    if let Some(heading) = arg.get_help_heading().map(text) {
        arg = arg.help_heading(heading);
    }
    if let Some(help) = arg.get_help().map(text) {
        arg = arg.help(help);
    }
    if let Some(help) = arg.get_long_help().map(text) {
        arg = arg.long_help(help);
    }
    arg
}

/// Texts that clap adds around ours.
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

/// Clap's descriptions of its own flags.
#[cfg(test)]
const OF_CLAP: [&str; 5] = [
    "Print help",
    "Print help (see more with '--help')",
    "Print help (see a summary with '-h')",
    "Print version",
    "Print this message or the help of the given subcommand(s)",
];

/// Prints the help or the error.
pub(crate) fn print(error: &clap::Error) {
    let screen = if error.use_stderr() { Screen::errors(false) } else { Screen::output(false) };
    let shown = |text: &StyledStr| match screen.style.colour {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    let text = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            parts(&shown(&error.render()))
        }
        ErrorKind::DisplayVersion => shown(&error.render()),
        _ => mistake(error, shown),
    };
    // With clap's colors and the words that the user has typed.
    screen.write(&text);
}

fn parts(help: &str) -> String {
    PARTS.into_iter().fold(help.to_string(), |help, part| help.replace(part, &text(part)))
}

/// The error, a suggestion, and the usage.
fn mistake(error: &clap::Error, shown: impl Fn(&StyledStr) -> String) -> String {
    let mut wrong = StyledStr::new();
    let red = clap::builder::Styles::styled().get_error().to_owned();
    let _ = write!(wrong, "{red}{}:{red:#} {}", tell!("error"), wrong_in(error).spoken());
    let list = listed(error).into_iter().map(|line| format!("\n  {line}"));
    let mut blocks = vec![shown(&wrong) + &list.collect::<String>()];
    let tips: Vec<String> = tips(error).iter().map(|tip| format!("  {}", tip.spoken())).collect();
    if !tips.is_empty() {
        blocks.push(tips.join("\n"));
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        blocks.push(parts(&shown(usage)));
    }
    blocks.push(tell!("For more information, try '{}'.", "--help"));
    blocks.join("\n\n") + "\n"
}

/// A context of the error with a single text.
fn one(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// A context of the error with several texts.
fn several(error: &clap::Error, kind: ContextKind) -> &[String] {
    match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts,
        _ => &[],
    }
}

/// The error as one sentence.
pub(crate) fn wrong_in(error: &clap::Error) -> Said {
    let arg = one(error, ContextKind::InvalidArg).unwrap_or_default();
    let command = one(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let value = one(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => say!("unexpected argument '{arg}' found"),
        ErrorKind::InvalidSubcommand => say!("unrecognized subcommand '{command}'"),
        ErrorKind::ArgumentConflict => match one(error, ContextKind::PriorArg) {
            Some(prior) if prior == arg => {
                say!("the argument '{arg}' cannot be used multiple times")
            }
            Some(prior) => say!("the argument '{arg}' cannot be used with '{prior}'"),
            None => say!("the argument '{arg}' cannot be used with:"),
        },
        ErrorKind::MissingRequiredArgument => {
            say!("the following required arguments were not provided:")
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            say!("a value is required for '{arg}' but none was supplied")
        }
        ErrorKind::InvalidValue => say!("invalid value '{value}' for '{arg}'"),
        ErrorKind::ValueValidation => match std::error::Error::source(error) {
            Some(reason) => say!("invalid value '{value}' for '{arg}': {reason}"),
            None => say!("invalid value '{value}' for '{arg}'"),
        },
        ErrorKind::TooManyValues => {
            say!("unexpected value '{value}' for '{arg}' found; no more were expected")
        }
        ErrorKind::MissingSubcommand => {
            say!("'{command}' requires a subcommand but one was not provided")
        }
        ErrorKind::InvalidUtf8 => say!("invalid UTF-8 was detected in one or more arguments"),
        // Our arguments cause no other kinds of errors.
        kind => Said::of_others(kind.to_string()),
    }
}

/// The lines below the sentence.
fn listed(error: &clap::Error) -> Vec<String> {
    let within = |part: &str, texts: &[String]| match texts.is_empty() {
        true => Vec::new(),
        false => vec![format!("{} {}]", text(part), texts.join(", "))],
    };
    match error.kind() {
        ErrorKind::ArgumentConflict => several(error, ContextKind::PriorArg).to_vec(),
        ErrorKind::MissingRequiredArgument => several(error, ContextKind::InvalidArg).to_vec(),
        ErrorKind::InvalidValue => {
            within("[possible values:", several(error, ContextKind::ValidValue))
        }
        ErrorKind::MissingSubcommand => {
            within("[subcommands:", several(error, ContextKind::ValidSubcommand))
        }
        _ => Vec::new(),
    }
}

fn tips(error: &clap::Error) -> Vec<Said> {
    let mut tips = Vec::new();
    if let Some(near) = one(error, ContextKind::SuggestedSubcommand) {
        tips.push(say!("tip: a similar subcommand exists: '{near}'"));
    }
    let near: Vec<String> = several(error, ContextKind::SuggestedSubcommand)
        .iter()
        .map(|near| format!("'{near}'"))
        .collect();
    if !near.is_empty() {
        tips.push(say!("tip: some similar subcommands exist: {}", near.join(", ")));
    }
    if let Some(near) = one(error, ContextKind::SuggestedArg) {
        tips.push(say!("tip: a similar argument exists: '{near}'"));
    }
    if let Some(near) = one(error, ContextKind::SuggestedValue) {
        tips.push(say!("tip: a similar value exists: '{near}'"));
    }
    if let Some(ContextValue::StyledStrs(suggested)) = error.get(ContextKind::Suggested) {
        tips.extend(suggested.iter().map(|tip| say!("tip: {tip}")));
    }
    tips
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn the_language_is_known_before_parsing() {
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

    /// Errors of clap have the same meaning in our words, also in Chinese.
    #[test]
    fn errors_match_those_of_clap() {
        for line in [
            "throng bench --concurency 5",
            "throng bnech",
            "throng init htpt",
            "throng chekc shop.yaml",
            "throng run",
            "throng run -- a b",
            "throng run --nonsense",
            "throng bench --rate x",
            "throng bench -c",
            "throng bench --seed 1 --seed 2",
            "throng bench -4 -6",
            "throng bench --hold 1m -d 10s -n 5 u",
            "throng bench --quiet=yes u",
            "throng init nonsense",
            "throng explain a b",
        ] {
            let parsed = Arguments::command().try_get_matches_from(words(line));
            let mut error = parsed.expect_err(line);
            error.remove(ContextKind::Suggested);
            let told = mistake(&error, ToString::to_string);
            assert_eq!(told, error.render().to_string(), "{line}");
            for said in tips(&error).into_iter().chain([wrong_in(&error)]) {
                assert_ne!(said.render(Language::Chinese), said.english(), "{line}");
            }
        }
    }

    /// Checks the texts of a command and of those below it.
    fn check_help(command: &Command, check: &mut impl FnMut(String)) {
        let whole = [command.get_about(), command.get_after_help()].into_iter().flatten();
        for whole in whole.map(ToString::to_string) {
            whole.split("\n\n").for_each(|paragraph| check(paragraph.to_string()));
        }
        for arg in command.get_arguments() {
            check(arg.get_help_heading().unwrap_or_default().to_string());
            let helps = [arg.get_help(), arg.get_long_help()].into_iter().flatten();
            helps.for_each(|help| check(help.to_string()));
            let values = arg.get_possible_values().into_iter();
            values
                .filter_map(|value| value.get_help().cloned())
                .for_each(|it| check(it.to_string()));
        }
        command.get_subcommands().for_each(|below| check_help(below, check));
    }

    #[test]
    fn every_help_text_has_a_translation() {
        let mut command = Arguments::command();
        command.build();
        let mut missing = Vec::new();
        let mut check = |english: String| {
            let said = Said::of_others(english.clone());
            let is_name =
                ["", "gRPC", "HTTP/1.1", "MQTT", "Redis", "SQL"].contains(&english.as_str());
            if !is_name && said.render(Language::Chinese) == english {
                missing.push(english);
            }
        };
        PARTS.into_iter().chain(OF_CLAP).for_each(|part| check(part.to_string()));
        check_help(&command, &mut check);
        assert!(missing.is_empty(), "no rendering of\n{}", missing.join("\n"));
    }
}
