//! `bench language`: what the language costs. The transaction of `examples/open-platform-api.yaml`
//! beside the same three requests sent raw; what an expression costs; how long compiling takes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::contest::Spread;
use super::report::{self, Gate};
use super::server::{self, Server};
use super::tool::{Places, Tool};
use super::{Options, TOOL_CORE, child, duel, machine, throng};

/// Expressions that are timed: what they are called, and what stands in `set`.
const EXPRESSIONS: [(&str, &str); 9] = [
    ("a constant", "constant"),
    ("`${user.id}`", "${user.id}"),
    ("`u${user.id}-${iteration}`", "u${user.id}-${iteration}"),
    ("`${saved.before}`", "${saved.before}"),
    ("`${random.int(1, 9)}`", "${random.int(1, 9)}"),
    ("`${user.id % 10 == 0 ? 'a' : 'b'}`", "${user.id % 10 == 0 ? 'a' : 'b'}"),
    ("`${random.uuid()}`", "${random.uuid()}"),
    ("`${sha256(saved.before)}`", "${sha256(saved.before)}"),
    ("`${[1, 2, 3].filter(x, x > 1).size()}`", "${[1, 2, 3].filter(x, x > 1).size()}"),
];
/// How often each is evaluated in a run.
const EVALUATIONS: u32 = 2_000_000;
const SESSIONS: u32 = 1_000;
const STEPS: u32 = 100;
const COMPILE_SECONDS_MAX: f64 = 1.0;
const GRACE: Duration = Duration::from_secs(60);

pub(super) fn run(options: &Options, places: &Places) -> Result<String, String> {
    let program = Tool::Throng.program(places)?;
    let mut text = machine::facts(options, places);
    let mut gates = Vec::new();
    gates.extend(duel::hold(options, places, &mut text)?);
    if options.wants("expressions") {
        expressions(options, places, &program, &mut text)?;
    }
    if options.wants("compile") {
        compiling(options, places, &program, &mut text, &mut gates)?;
    }
    text.push_str(&report::thresholds(&gates));
    Ok(text)
}

fn expressions(
    options: &Options,
    places: &Places,
    program: &Path,
    text: &mut String,
) -> Result<(), String> {
    let target = server::throng_target(program, &places.folder, &["http"])?;
    let file = places.folder.join("expression.yaml");
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); EXPRESSIONS.len()];
    for round in 0..options.rounds {
        for (costs, (name, value)) in costs.iter_mut().zip(EXPRESSIONS) {
            write(&file, &expression_scenario(&target, value))?;
            let mut command = Command::new(program);
            command.arg("run").arg(&file).args(["--quiet", "--json", "--no-record"]);
            let running = child::start(command, TOOL_CORE, &places.folder, "language")?;
            let ended = running.wait(GRACE)?;
            if !throng::has_figures(ended.status) {
                return Err(format!("{name}: {}", ended.complaint()));
            }
            let each = ended.cpu.as_secs_f64() * 1e9 / f64::from(EVALUATIONS);
            crate::say(&format!("round {}: {name}: {each:.0} ns", round + 1));
            costs.push(each);
        }
    }
    let _ = writeln!(
        text,
        "## Cost of an expression\n\n{EVALUATIONS} `set` steps in a loop: CPU time of the whole \
         process per step. The first row is the cost of a step and its loop.\n\n\
         | value of `set` | CPU per step |\n| --- | ---: |"
    );
    for (costs, (name, _)) in costs.iter().zip(EXPRESSIONS) {
        let spread = Spread::of(costs.iter().copied());
        let cell = spread.map_or_else(String::new, |spread| {
            format!("{:.0} ns ({:.0}–{:.0})", spread.median, spread.min, spread.max)
        });
        let _ = writeln!(text, "| {} | {cell} |", name.replace('|', "\\|"));
    }
    text.push('\n');
    Ok(())
}

fn expression_scenario(target: &Server, value: &str) -> String {
    let url = target.url("http", 1);
    let (inner, outer) = (10_000, EVALUATIONS / 10_000);
    format!(
        "target: {}\nsessions:\n  a:\n    before:\n      - set: {{before: some saved text}}\n    \
         steps:\n      - http: GET /\n      - repeat: {inner}\n        steps:\n          \
         - set: {{x: \"{value}\"}}\n      - set: {{before: \"some saved text${{''}}\"}}\n\
         load: [{{iterations: {outer}, users: 1}}]\n",
        url.trim_end_matches('/')
    )
}

fn compiling(
    options: &Options,
    places: &Places,
    program: &Path,
    text: &mut String,
    gates: &mut Vec<Gate>,
) -> Result<(), String> {
    let file = places.folder.join("large.yaml");
    write(&file, &large_scenario())?;
    let mut seconds = Vec::new();
    for round in 0..options.rounds {
        let mut command = Command::new(program);
        command.arg("check").arg(&file);
        let ended = child::start(command, TOOL_CORE, &places.folder, "compile")?.wait(GRACE)?;
        if !ended.status.success() {
            return Err(format!("{SESSIONS} sessions: {}", ended.complaint()));
        }
        seconds.push(ended.cpu.as_secs_f64());
        crate::say(&format!("round {}: check: {:.2} s", round + 1, ended.cpu.as_secs_f64()));
    }
    let spread = Spread::of(seconds.into_iter());
    if let Some(spread) = spread {
        let size = fs::metadata(&file).map_or(0, |facts| facts.len());
        let _ = writeln!(
            text,
            "## Compile time\n\n`throng check` of {SESSIONS} sessions with {STEPS} steps each ({:.1} \
             MiB; templates, checks, extractors): {:.2} s of CPU ({:.2}–{:.2}).\n",
            size as f64 / (1024.0 * 1024.0),
            spread.median,
            spread.min,
            spread.max
        );
    }
    gates.push(Gate {
        threshold: format!(
            "{SESSIONS} sessions of {STEPS} steps compile in at most {COMPILE_SECONDS_MAX} s"
        ),
        measured: spread.map(|spread| spread.median),
        max: COMPILE_SECONDS_MAX,
        unit: "s",
    });
    Ok(())
}

fn large_scenario() -> String {
    let mut text = String::from("target: http://127.0.0.1:8080\nsessions:\n");
    for session in 0..SESSIONS {
        let _ = writeln!(text, "  session {session}:\n    steps:");
        for step in 0..STEPS / 4 {
            let _ = write!(
                text,
                "      - http: GET /products/${{user.id}}/{step}\n        check: {{status: 200}}\n\
                 \x20     - http: POST /cart\n        json: {{product: \"${{iteration}}\", n: 1}}\n\
                 \x20       check: {{status: 201, json.code: 0}}\n\
                 \x20       save: {{order: json.data.order}}\n\
                 \x20     - http: GET /orders/${{saved.order}}\n\
                 \x20     - think: 1s..5s\n"
            );
        }
    }
    text.push_str("load: [{users: 1000, for: 1m}]\n");
    text
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
