//! Completions, in the shells themselves, and the pages of the manual, as mandoc reads them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::throng;

/// What a shell prints for a script on its standard input, after what `throng completions` gave it.
#[track_caller]
fn shell(program: &[&str], script: &str) -> String {
    let mut command = Command::new(program[0]);
    let command = command.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect(program[0]);
    child.stdin.take().expect("its input").write_all(script.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("an end");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{program:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn script(kind: &str) -> String {
    throng(&format!("completions {kind}")).run().exits(0).out
}

/// What is completed, and what must be among what is proposed.
const TYPED: [(&str, &str); 3] = [
    ("throng ben", "bench"),
    ("throng bench --expect-s", "--expect-status"),
    ("throng target --rese", "--resets"),
];
/// Values that are no flag's.
const VALUES: [(&str, &str); 2] =
    [("throng init webs", "websocket"), ("throng completions fi", "fish")];

#[test]
fn bash_completes_commands_flags_and_values() {
    for (line, wanted) in TYPED.into_iter().chain(VALUES) {
        let words: Vec<&str> = line.split(' ').collect();
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let ask = format!(
            "\nCOMP_WORDS=({line}); COMP_CWORD={}; COMP_LINE='{line}'\n\
             _throng throng '{last}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
            words.len() - 1
        );
        let proposed = shell(&["bash", "--norc"], &(script("bash") + &ask));
        assert!(proposed.lines().any(|word| word == wanted), "{line}: {proposed}");
    }
}

/// What fish proposes for this line, in this folder.
fn fish_proposes(script: &str, folder: &Path, line: &str) -> Vec<String> {
    let ask = format!("cd {}\n{script}\ncomplete -C '{line}'\n", folder.display());
    let proposed = shell(&["fish", "--no-config"], &ask);
    proposed.lines().filter_map(|line| line.split('\t').next()).map(String::from).collect()
}

#[test]
fn fish_completes_commands_flags_and_values() {
    let (script, folder) = (script("fish"), tempfile::tempdir().expect("a folder"));
    for (line, wanted) in TYPED.into_iter().chain(VALUES) {
        let words = fish_proposes(&script, folder.path(), line);
        assert!(words.iter().any(|word| word == wanted), "{line}: {words:?}");
    }
    // What `throng run --processes` starts is nothing to type.
    let commands = fish_proposes(&script, folder.path(), "throng ");
    assert!(commands.len() > 15 && !commands.contains(&"post".to_string()), "{commands:?}");
}

#[test]
fn fish_completes_scenarios_records_and_codes() {
    let (script, folder) = (script("fish"), tempfile::tempdir().expect("a folder"));
    let folder = folder.path();
    for file in
        ["shop.yaml", "data.csv", "throng-runs/1-old/run.json", "throng-runs/2-new/run.json"]
    {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, "").expect("a file");
    }
    // Not a record: a folder that is one of none.
    std::fs::create_dir_all(folder.join("throng-runs/3-torn")).expect("a folder");
    for command in ["run", "check", "try", "plan", "doctor"] {
        let words = fish_proposes(&script, folder, &format!("throng {command} "));
        assert_eq!(words.first().map(String::as_str), Some("shop.yaml"), "{command}");
    }
    for line in ["throng report ", "throng rerun ", "throng compare A ", "throng control "] {
        let words = fish_proposes(&script, folder, line);
        let runs = words.iter().position(|word| word == "throng-runs/2-new");
        let old = words.iter().position(|word| word == "throng-runs/1-old");
        assert!(runs.is_some() && runs < old, "{line}: {words:?}");
        let others = ["throng-runs/3-torn", "data.csv", "shop.yaml"];
        assert!(!words.iter().any(|word| others.contains(&word.as_str())), "{line}: {words:?}");
    }
    assert_eq!(fish_proposes(&script, folder, "throng history thr"), ["throng-runs/"]);
    assert_eq!(fish_proposes(&script, folder, "throng explain unknown-k"), ["unknown-key"]);
}

#[test]
fn zsh_loads_the_script_as_a_function() {
    let script = script("zsh");
    assert!(script.starts_with("#compdef throng\n"), "{script}");
    let ask = "autoload -Uz compinit; compinit -D -u\n".to_string() + &script;
    let ask = ask + "\nprint -r -- ${_comps[throng]}\nwhence -w _throng__subcmd__bench_commands\n";
    let told = shell(&["zsh", "-f"], &ask);
    assert_eq!(told, "_throng\n_throng__subcmd__bench_commands: function\n");
    for part in ["'--expect-status=", "websocket", "'--resets="] {
        assert!(script.contains(part), "no {part} in\n{script}");
    }
}

#[test]
fn internal_options_are_not_completed() {
    throng("post --help").run().exits(0);
    let kinds = ["bash", "zsh", "fish"].into_iter();
    for kind in kinds.flat_map(|kind| [kind.to_string(), format!("{kind} --lang zh")]) {
        let script = script(&kind);
        assert!(script.contains("doctor"), "{kind}");
        let word = |part: &str| part == "post" || part.ends_with("__post");
        let words = script.split(|it: char| !it.is_alphanumeric() && it != '_');
        assert!(words.clone().count() > 100 && !words.clone().any(word), "{kind} proposes `post`");
    }
}

#[test]
fn completions_are_described_in_the_spoken_language() {
    let run = throng("completions fish --lang zh").run().exits(0);
    run.says(&["运行场景文件"]);
    throng("completions tcsh").run().exits(2).says(&["tcsh", "bash, fish, zsh"]);
}

#[test]
fn every_command_has_a_valid_manual_page() {
    let help = throng("--help").run().exits(0);
    let (_, commands) = help.out.split_once("Commands:\n").expect("the commands");
    let (commands, _) = commands.split_once("\n\n").expect("an end of them");
    let commands = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = commands.filter(|name| !["", "help"].contains(name)).collect();
    assert!(commands.len() > 15, "{commands:?}");
    let run = throng("man pages/man1").run().exits(0);
    let folder = run.folder().join("pages/man1");
    for name in commands.iter().map(|name| format!("throng-{name}")).chain(["throng".into()]) {
        let page = folder.join(format!("{name}.1"));
        let mut lint = Command::new("mandoc");
        let output = said_by(lint.args(["-T", "lint", "-W", "warning"]).arg(&page));
        let space = |line: &&str| !line.contains("skipping paragraph macro: br ");
        let wrong: Vec<&str> = output.lines().filter(space).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
    let read = |name: &str| {
        let shown = Command::new("mandoc").args(["-T", "utf8"]).arg(folder.join(name)).output();
        let text = String::from_utf8_lossy(&shown.expect("mandoc").stdout).into_owned();
        // Without the letters that are struck twice to be bold.
        let mut out = String::new();
        for letter in text.chars() {
            match letter {
                '\u{8}' => drop(out.pop()),
                letter => out.push(letter),
            }
        }
        out
    };
    let main = read("throng.1");
    for part in ["EXIT STATUS", "THRONG_TARGETS", "./throng-runs/", "throng-bench(1)"] {
        assert!(main.contains(part), "no {part} in\n{main}");
    }
    let bench = read("throng-bench.1");
    for part in
        ["throng bench [OPTIONS] [URL]", "--expect-status", "OPTIONS THAT DIFFER BETWEEN TOOLS"]
    {
        assert!(bench.contains(part), "no {part} in\n{bench}");
    }
    assert!(bench.contains("throng bench http://127.0.0.1:8080/ -c 100 -d 30s\n"), "{bench}");
    let nowhere = throng("man file/man1").file("file", "").run().exits(2);
    nowhere.says(&["file-unwritable", "file/man1"]);
}

/// What mandoc finds; of space between paragraphs it is told in one way and finds it in another.
fn said_by(command: &mut Command) -> String {
    let output = command.output().expect("mandoc; `cargo xtask ci` installs what is missing");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
