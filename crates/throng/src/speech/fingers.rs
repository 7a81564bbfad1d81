//! Habits from other tools: long flags with one dash, and short flags with a different meaning in
//! each tool.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory as _};
use throng_base::{Diagnostic, Said};

use crate::arguments::Arguments;

/// Flags that vegeta, hey and go-stress-testing write with one dash.
const ONE_DASH: [&str; 17] = [
    "-body",
    "-code",
    "-connections",
    "-cert",
    "-data",
    "-disable-keepalive",
    "-duration",
    "-header",
    "-http2",
    "-insecure",
    "-keepalive",
    "-key",
    "-method",
    "-rate",
    "-redirect",
    "-timeout",
    "-version",
];

/// Unsupported flags: why, and what to write instead.
const REFUSED: [(&str, Said, Said); 8] = [
    (
        "-t",
        say!(
            "`-t` means threads in wrk, a time limit in ab, and a timeout in hey and \
             go-stress-testing"
        ),
        say!("write --shards, --duration or --timeout"),
    ),
    (
        "-p",
        say!(
            "`-p` means the body in ab, a cURL file in go-stress-testing, and HTTP/2 streams in \
             oha"
        ),
        say!("write --body-file (-D), --curl or --streams"),
    ),
    (
        "-A",
        say!("`-A` means Accept in hey and Basic authentication in ab"),
        say!("write -H 'Accept: …' or --auth"),
    ),
    ("-i", say!("`-i` means HEAD in ab and headers in curl"), say!("write --method HEAD")),
    (
        "-w",
        say!("`-w` is not supported here"),
        say!("write --shards for threads, or --json for another output format"),
    ),
    ("--host", say!("in hey, `-host` sets the Host header"), say!("write -H 'Host: example.com'")),
    ("--h2", say!("in hey, `-h2` enables HTTP/2"), say!("write --http2")),
    (
        "--http3",
        say!("`--http3` requires HTTP/3, which this version does not support"),
        say!("remove it, or use --http2"),
    ),
];

/// The arguments in our syntax, or why one of them is refused.
pub(crate) fn understood(words: Vec<OsString>) -> Result<Vec<OsString>, Box<Diagnostic>> {
    let mut command = Arguments::command();
    command.build();
    let (command, begin) = asked(&command, &words);
    let is_bench = command.get_name() == "bench";
    let known = Known::of(command);
    let mut words = words.into_iter();
    let mut out: Vec<OsString> = words.by_ref().take(begin).collect();
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else {
            out.push(word);
            continue;
        };
        let name = text.split('=').next().unwrap_or(text);
        let meant = match is_bench && ONE_DASH.contains(&name) || known.hides_help(text) {
            true => format!("-{text}"),
            false => text.to_string(),
        };
        let name = meant.split('=').next().unwrap_or(&meant);
        let mut refused = REFUSED.into_iter().filter(|_| is_bench);
        if let Some((_, why, cure)) = refused.find(|(flag, _, _)| name == *flag) {
            return Err(Box::new(Diagnostic::error("ambiguous-flag", why).help(cure)));
        }
        let ends_flags = meant == "--";
        let has_value_next = known.is_value_next(&meant);
        out.push(meant.into());
        if ends_flags {
            out.extend(words);
            break;
        }
        if has_value_next {
            out.extend(words.next());
        }
    }
    Ok(out)
}

/// The command on the command line, and where its own words start; without one, `throng` itself.
pub(crate) fn asked<'c>(command: &'c Command, words: &[OsString]) -> (&'c Command, usize) {
    let known = Known::of(command);
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        if let Some(command) = command.find_subcommand(word) {
            return (command, at + 1);
        }
        if !word.starts_with('-') || word == "--" {
            break;
        }
        at += if known.is_value_next(word) { 2 } else { 1 };
    }
    (command, 1)
}

/// The flags of a command, from the definition of the command line.
struct Known {
    /// Flags with a value.
    longs: Vec<String>,
    shorts: Vec<char>,
    /// Flags that print something and exit.
    ends: Vec<char>,
}

impl Known {
    fn of(command: &Command) -> Known {
        let flags = || {
            let all = command.get_arguments();
            all.filter(|arg| arg.get_action().takes_values() && !arg.is_positional())
        };
        let longs = |arg: &Arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long().into_iter().chain(aliases).map(str::to_string).collect::<Vec<_>>()
        };
        let shorts = |arg: &Arg| {
            let aliases = arg.get_all_short_aliases().unwrap_or_default();
            arg.get_short().into_iter().chain(aliases).collect::<Vec<_>>()
        };
        let ends = |arg: &&Arg| {
            use clap::ArgAction::{Help, HelpLong, HelpShort, Version};
            matches!(arg.get_action(), Help | HelpLong | HelpShort | Version)
        };
        Known {
            longs: flags().flat_map(longs).collect(),
            shorts: flags().flat_map(shorts).collect(),
            ends: command.get_arguments().filter(ends).filter_map(Arg::get_short).collect(),
        }
    }

    /// True if the next word is a value, whatever it looks like.
    fn is_value_next(&self, word: &str) -> bool {
        if let Some(name) = word.strip_prefix("--") {
            return self.longs.iter().any(|long| long == name);
        }
        let Some(flags) = word.strip_prefix('-') else { return false };
        // Several short flags can share a word; the text after one with a value is the value.
        let valued = flags.char_indices().find(|(_, flag)| self.shorts.contains(flag));
        valued.is_some_and(|(at, flag)| at + flag.len_utf8() == flags.len())
    }

    /// `-host` is not `-h` with more flags: an unknown flag must not succeed because it contains
    /// such a letter. It is a long flag of a tool that writes them with one dash.
    fn hides_help(&self, word: &str) -> bool {
        let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.starts_with('-')) else {
            return false;
        };
        let mut letters = flags.chars().take_while(|flag| !self.shorts.contains(flag));
        flags.chars().nth(1).is_some() && letters.any(|flag| self.ends.contains(&flag))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn one_dash_becomes_two_and_values_are_kept() {
        let got = understood(words("throng bench -rate=5 -d30s --body -rat")).unwrap();
        assert_eq!(got, words("throng bench --rate=5 -d30s --body -rat"));
        assert_eq!(understood(words("throng run -t")).unwrap(), words("throng run -t"));
    }

    #[test]
    fn only_help_flags_print_help() {
        for (line, meant) in [
            ("throng run -host x", "throng run --host x"),
            ("throng -Version", "throng --Version"),
            ("throng --lang zh report -help", "throng --lang zh report --help"),
            ("throng bench -kh", "throng bench --kh"),
            ("throng bench -Hhost:a -ch -h", "throng bench -Hhost:a -ch -h"),
            ("throng bench -- -host", "throng bench -- -host"),
        ] {
            assert_eq!(understood(words(line)).unwrap(), words(meant), "{line}");
        }
        for line in ["throng bench u -h2", "throng --lang zh bench -host a u"] {
            assert!(understood(words(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn values_may_look_like_anything() {
        for line in [
            "throng bench u --body -A",
            "throng bench u -data -t",
            "throng bench u -H -t -c 5",
            "throng bench u -kH -p",
            "throng bench -X -i -- -t",
            "throng bench u -T -w --cookie --http2",
        ] {
            let want = words(&line.replace(" -data", " --data"));
            assert_eq!(understood(words(line)).unwrap(), want, "{line}");
        }
        for line in ["throng bench u -k -t", "throng bench u --body=x -A", "throng bench -d5s -p"] {
            assert!(understood(words(line)).is_err(), "{line}");
        }
        let parsed = Arguments::try_parse_from(words("throng bench u --body -A -H -t:x --auth -u"));
        assert!(parsed.is_ok(), "{parsed:?}");
    }

    #[test]
    fn flags_that_differ_between_tools_are_refused_with_advice() {
        for flag in ["-t", "-p", "-h2"] {
            let error = understood(words(&format!("throng bench u {flag} 4"))).unwrap_err();
            assert!(error.help.is_some(), "{error:?}");
        }
    }
}
