//! The questions of `throng init` at a terminal: the kind of service, its address, and the file.
//! Enter accepts the value in brackets.

use std::io::{BufRead, IsTerminal as _, Write};
use std::path::PathBuf;

use clap::ValueEnum as _;
use throng_base::Said;
use throng_terminal::Screen;

use super::target_in;
use crate::arguments::{InitArguments, InitKind};

/// Asks if no arguments were given and input and output are terminals.
pub(super) fn ask(arguments: &mut InitArguments, screen: Screen) {
    let given = arguments.kind.is_some()
        || arguments.file.is_some()
        || arguments.target.is_some()
        || arguments.curl.is_some();
    let is_there = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if given || !is_there {
        return;
    }
    let mut input = std::io::stdin().lock();
    questions(arguments, &mut input, &mut |said| screen.say(said));
}

/// At the end of the input the remaining defaults are used.
fn questions(arguments: &mut InitArguments, input: &mut impl BufRead, say: &mut impl FnMut(Said)) {
    say(say!("Kind of service:"));
    for kind in InitKind::value_variants() {
        let help = kind.to_possible_value().and_then(|value| value.get_help().cloned());
        let help = Said::of_others(help.unwrap_or_default().to_string());
        let (number, word) = (*kind as usize + 1, kind.word());
        say(say!("  {number}  {word}: {help}"));
    }
    let first = InitKind::Http.word();
    say(say!("number or name [{first}]:"));
    let kind = loop {
        match answer(input) {
            None => break InitKind::Http,
            Some(text) => match kind_of(&text) {
                Some(kind) => break kind,
                None => say(say!("`{text}` is not in the list: enter a number or a name")),
            },
        }
    };
    let target = target_in(kind.template());
    say(say!("URL of the service [{target}]:"));
    arguments.target = loop {
        match answer(input) {
            None => break None,
            Some(url) => match super::look_at(&url) {
                Ok(()) => break Some(url),
                Err(diagnostics) => {
                    diagnostics.into_iter().for_each(|one| say(one.message.clone()));
                }
            },
        }
    };
    let name = format!("{}.yaml", kind.word());
    say(say!("file to write [{name}]:"));
    arguments.kind = Some(kind);
    arguments.file = answer(input).map(PathBuf::from);
}

/// A line; None if it is empty or missing.
fn answer(input: &mut impl BufRead) -> Option<String> {
    let _ = std::io::stdout().flush();
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_string())
}

fn kind_of(text: &str) -> Option<InitKind> {
    let all = InitKind::value_variants();
    let number = text.parse::<usize>().ok().and_then(|number| all.get(number.checked_sub(1)?));
    number.or_else(|| all.iter().find(|kind| kind.word() == text)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(
        answers: &str,
    ) -> (Option<&'static str>, Option<String>, Option<PathBuf>, Vec<String>) {
        let mut arguments =
            InitArguments { kind: None, file: None, target: None, curl: None, force: false };
        let mut said = Vec::new();
        let mut say = |one: Said| said.push(one.english());
        questions(&mut arguments, &mut answers.as_bytes(), &mut say);
        (arguments.kind.map(InitKind::word), arguments.target, arguments.file, said)
    }

    #[test]
    fn enter_accepts_the_default() {
        let (kind, target, file, said) = asked("\n\n\n");
        assert_eq!((kind, target, file), (Some("http"), None, None));
        assert!(said.iter().any(|line| line.contains("[http://127.0.0.1:8080]")), "{said:?}");
        assert_eq!(asked("").0, Some("http"), "the input has ended");
    }

    #[test]
    fn numbers_names_and_urls_are_accepted() {
        let (kind, target, file, _) = asked("3\nws://127.0.0.1:9\nmine.yaml\n");
        let expected = (Some("websocket"), Some("ws://127.0.0.1:9".to_string()));
        assert_eq!((kind, target), expected);
        assert_eq!(file, Some(PathBuf::from("mine.yaml")));
        assert_eq!(asked("graphql\n\n\n").0, Some("graphql"));
    }

    #[test]
    fn invalid_answers_are_asked_again() {
        let (kind, target, _, said) = asked("11\nsoap\n2\nnowhere\nhttp://127.0.0.1\n\n");
        assert_eq!((kind, target.as_deref()), (Some("api"), Some("http://127.0.0.1")));
        assert!(said.iter().any(|line| line.contains("`soap` is not in the list")), "{said:?}");
        assert!(
            said.iter().any(|line| line.contains("`nowhere` is not a valid target URL")),
            "{said:?}"
        );
    }
}
