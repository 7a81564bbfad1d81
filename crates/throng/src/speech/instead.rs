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

/// Advice for this kind of scenario.
pub(crate) fn of_kind(word: &str) -> Option<Said> {
    let is_file = word.ends_with(".yaml") || word.ends_with(".yml");
    is_file.then(|| say!("write the kind first: `throng init http {word}`"))
}
