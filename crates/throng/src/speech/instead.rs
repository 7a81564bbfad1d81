//! Advice for unknown flags and commands: words of other tools, and files in place of a command.

use throng_base::Said;

/// Advice for this flag of a command.
pub(crate) fn of_flag(command: &str, flag: &str) -> Option<Said> {
    let name = flag.split('=').next().unwrap_or(flag);
    let runs = ["run", "try", "check", "rerun", "plan"].contains(&command);
    Some(match name {
        "-t" | "-d" | "--duration" | "--time" if command == "run" => {
            say!("to change the duration, write `--for 30s`")
        }
        "-c" | "-u" | "--vus" | "-n" if command == "run" => {
            say!("to change the number of users, write `--users 10`")
        }
        "--vus" | "--threads" if command == "bench" => {
            say!("to change the number of users, write `-c 10`")
        }
        "--no-progress" | "--silent" if ["run", "rerun", "bench"].contains(&command) => {
            say!("write `--quiet`")
        }
        "--html" if runs && command != "run" => say!("use `throng report --html` after the run"),
        "-e" | "--env" | "--var" if runs => {
            say!("write `--set NAME=VALUE` for a variable of the scenario")
        }
        "-p" | "--port" if ["target", "serve"].contains(&command) => {
            say!("write `--listen 127.0.0.1:8080`")
        }
        "--dry-run" if runs => {
            say!(
                "use `throng check FILE` to check without sending anything, or `throng try FILE` \
                 to run one user"
            )
        }
        "--thresholds" | "--treshold" | "--fail-if" if command == "run" => {
            say!("write `--threshold 'http p95 < 200ms'`, or `thresholds:` in the scenario")
        }
        "--threshold" | "--thresholds" | "--treshold" | "--fail-if" if runs => {
            say!("write `thresholds:` in the scenario: `thresholds: [http p95 < 200ms]`")
        }
        _ => return None,
    })
}

/// Advice for this command.
pub(crate) fn of_command(word: &str) -> Option<Said> {
    let lower = word.to_ascii_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| lower.ends_with(end));
    if ends(&[".yaml", ".yml", ".json"]) {
        return Some(say!(
            "write the command before the file: `throng run {word}`, `throng try {word}` or \
             `throng check {word}`"
        ));
    }
    if lower.contains("://") {
        return Some(say!("write `throng bench {word}`"));
    }
    Some(match lower.as_str() {
        "convert" | "har" | "openapi" | "postman" | "jmx" | "k6" | "locust" => {
            say!("write `throng import KIND FILE`, for example `throng import har shop.har`")
        }
        "recorder" | "proxy" => say!("write `throng record --out FILE`"),
        "validate" | "lint" | "verify" | "inspect" => say!("write `throng check FILE`"),
        "test" | "start" | "exec" | "execute" | "load" => {
            say!("write `throng run FILE`, or `throng try FILE` for one user")
        }
        "debug" => say!("write `throng try FILE`"),
        "new" | "create" | "generate" => say!("write `throng init`"),
        _ => return None,
    })
}

/// Advice for this kind of scenario, or of file to import.
pub(crate) fn of_kind(command: &str, word: &str) -> Option<Said> {
    const IMPORTED: [(&str, &str); 3] = [(".har", "har"), (".jmx", "jmx"), (".py", "locust")];
    let is_scenario = word.ends_with(".yaml") || word.ends_with(".yml");
    match command {
        "init" if is_scenario => Some(say!("write the kind first: `throng init http {word}`")),
        "init" => match word {
            "har" | "openapi" | "postman" | "jmx" | "k6" | "locust" | "curl" => {
                Some(say!("write `throng import {word} FILE`"))
            }
            _ => None,
        },
        "import" => {
            let (_, kind) = IMPORTED.iter().find(|(end, _)| word.ends_with(end))?;
            Some(say!("write the kind first: `throng import {kind} {word}`"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_tools_get_advice() {
        let flag = |command, flag| of_flag(command, flag).map(|it| it.spoken());
        assert!(flag("run", "--vus=5").is_some_and(|it| it.contains("--users 10")));
        assert!(flag("bench", "--vus").is_some_and(|it| it.contains("-c 10")));
        assert!(flag("rerun", "--no-progress").is_some_and(|it| it.contains("--quiet")));
        assert_eq!(flag("compare", "--vus"), None);
        let kind = |command, word| of_kind(command, word).map(|it| it.spoken());
        let import = |word| kind("import", word).unwrap_or_default();
        assert!(import("plan.jmx").contains("throng import jmx plan.jmx"));
        assert_eq!(import("plan.txt"), "");
        assert!(kind("init", "k6").is_some_and(|it| it.contains("throng import k6 FILE")));
        assert!(kind("init", "a.yml").is_some_and(|it| it.contains("throng init http a.yml")));
        assert_eq!(kind("target", "a.yml"), None);
    }
}
