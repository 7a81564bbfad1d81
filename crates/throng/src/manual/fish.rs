//! Completion of positional arguments in fish, which clap's script does not support: choices,
//! scenario files, recorded runs, codes of messages.

use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::explain;

/// Newest first, because the name of a run directory starts with its time. A run directory contains
/// run.json.
const RUNS: &str = "\
function __fish_throng_runs
    set -l found throng-runs/*/run.json
    set -q found[1]
    and string replace -r '/run.json$' '' $found[-1..1]
    __fish_complete_directories
end
";

/// The script of clap without hidden commands, followed by lines for positional arguments; a
/// function of the script returns the current command.
pub(super) fn script(whole: &Command, of_clap: &str) -> String {
    let hidden: Vec<&str> =
        whole.get_subcommands().filter(|it| it.is_hide_set()).map(Command::get_name).collect();
    let proposes = |line: &str, name: &str| line.contains(&format!(" -a \"{name}\" "));
    let is_shown = |line: &&str| !hidden.iter().any(|name| proposes(line, name));
    let lines = of_clap.split_inclusive('\n').filter(is_shown);
    lines.chain([of_words(whole).as_str()]).collect()
}

fn of_words(whole: &Command) -> String {
    let mut script = RUNS.to_string();
    for command in whole.get_subcommands().filter(|command| !command.is_hide_set()) {
        let on = format!("-n \"__fish_throng_using_subcommand {}\"", command.get_name());
        let mut proposals: Vec<String> = command.get_positionals().filter_map(proposed).collect();
        proposals.dedup();
        for words in proposals {
            // Writing to memory does not fail.
            let _ = writeln!(script, "complete -c throng {on} -k -f -a {words}");
        }
    }
    script
}

/// The value for `-a`.
fn proposed(argument: &Arg) -> Option<String> {
    let of_a_few = argument.get_possible_values();
    if !of_a_few.is_empty() {
        let shown = of_a_few.iter().filter(|value| !value.is_hide_set());
        let words = shown.map(|value| match value.get_help() {
            Some(help) => format!("{}\\t{}", value.get_name(), quoted(&help.to_string())),
            None => value.get_name().to_string(),
        });
        return Some(format!("\"{}\"", words.collect::<Vec<_>>().join("\n")));
    }
    match argument.get_id().as_str() {
        "file" => Some("\"(__fish_complete_suffix .yaml)\"".to_string()),
        "run" | "runs" | "baseline" => Some("\"(__fish_throng_runs)\"".to_string()),
        "folder" | "directory" => Some("\"(__fish_complete_directories)\"".to_string()),
        "code" => Some(format!("\"{}\"", explain::all_codes().join(" "))),
        _ => None,
    }
}

/// One word in double quotes; characters with a special meaning in any kind of quotes are removed.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace(['\'', '"', '\\', '$'], ""))
}
