//! What a person sees: lines of 80 columns, colours only where they belong, progress at a terminal.

use std::process::Command;

use crate::run::{Run, Throng, binary, throng};
use crate::servers::{Target, program};

const ESCAPE: char = '\u{1b}';

#[track_caller]
fn fits(run: &Run) {
    for line in run.out.lines() {
        let width = line.chars().count();
        run.check(width <= 80, &format!("{width} columns: {line}"));
    }
}

#[test]
fn piped_output_is_plain_and_fits() {
    let target = Target::start("http --errors 10% --resets 5%");
    let url = target.http("/status/503?with=a-very-long-path-that-goes-on-and-on-and-on");
    for line in ["-c 20", "-c 20 --expect-status 200", "--rate 2000 -c 400 --no-keepalive"] {
        let run = throng(&format!("bench {url} -d 2s {line}")).run();
        run.check(!run.out.contains(ESCAPE) && !run.err.contains(ESCAPE), "it is coloured");
        run.check(!run.out.contains('\r'), "a line moves");
        fits(&run);
        run.says(&["  time   users", "\n    1s ", "response time", "503"]);
    }
}

#[test]
fn quiet_runs_print_no_progress() {
    let target = Target::start("http");
    let line = format!("bench {} -c 2 -d 1500ms --quiet", target.http("/"));
    let run = throng(&line).run().exits(0);
    run.check(!run.out.contains("  time   users"), "it is not quiet");
    run.says(&["response time"]);
    let run = throng(&line).arg("--json").run().exits(0);
    run.check(run.err.is_empty(), "it is not quiet");
    run.within("/total/ok", 1.0, f64::MAX);
}

/// At a terminal of 80 columns.
fn terminal(line: &str) -> Throng {
    let mut command = Command::new(program("script", "bsdutils"));
    let line = format!("stty cols 80 rows 24; exec {} {line}", binary().display());
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color");
    Throng::new(command)
}

#[test]
fn a_terminal_shows_progress_in_colours() {
    let target = Target::start("http --errors 50%");
    let line = format!("bench {} -c 2 -d 2s --no-record", target.http("/"));
    let run = terminal(&line).run();
    run.check(run.out.contains("\r\u{1b}[K"), "there is no progress line");
    run.check(run.out.contains("\u{1b}[3") || run.out.contains("\u{1b}[1"), "no colours");
    let plain = |run: &Run| {
        run.check(run.out.contains("response time"), "there is no summary");
        run.check(!run.out.contains(ESCAPE), "there are codes of a terminal");
    };
    plain(&terminal(&format!("{line} --no-color")).run());
    plain(&terminal(&line).env("NO_COLOR", "1").run());
    let dumb = terminal(&line).env("TERM", "dumb").run();
    plain(&dumb);
    let moves = dumb.out.replace("\r\n", "\n").contains('\r');
    dumb.check(!moves, "a line moves where none can");
}

#[test]
fn text_of_the_target_cannot_move_the_cursor() {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}";
    let server = crate::faulty::Faulty::says(format!("HTTP/1.1 200 {evil}\r\n{evil}\r\n\r\n"));
    let run = throng(&format!("bench {} -n 4 -c 2", server.url("http"))).run();
    run.check(!run.out.contains(ESCAPE) && !run.err.contains(ESCAPE), "it is not cleaned");
    let again = throng(&format!("report {}", record(&run))).run();
    again.check(!again.out.contains(ESCAPE), "it is not cleaned");
}

fn record(run: &Run) -> String {
    let mut records = run.folder().join("throng-runs").read_dir().expect("records");
    records.next().expect("a record").expect("an entry").path().display().to_string()
}

#[test]
fn a_closed_output_is_not_a_bug() {
    let target = Target::start("http");
    let mut command = Command::new("sh");
    let line = format!("{} bench {} -n 50 -c 2; echo $? >&2", binary().display(), target.http("/"));
    command.args(["-c", &format!("({line}) | true")]);
    let run = Throng::new(command).run();
    run.check(run.err.trim() == "0", "it does not end well");
}

#[test]
fn messages_are_in_the_language_of_the_user() {
    let target = Target::start("http");
    let line = format!("bench {} -n 50 -c 2 --threshold errors<1%", target.http("/"));
    let chinese = throng(&line).env("LC_ALL", "zh_CN.UTF-8").run().exits(0);
    chinese.check(chinese.out.contains("通过"), "it does not speak the locale's language");
    let english = throng(&format!("{line} --lang en")).env("LC_ALL", "zh_CN.UTF-8").run().exits(0);
    english.check(english.out.contains("PASSED"), "it does not speak the language asked for");
    let json = throng(&format!("{line} --lang zh --json")).run().exits(0);
    json.check(!json.out.contains("阈值"), "what a program reads is not translated");
    let help = throng("bench --help --lang zh").run().exits(0);
    help.check(help.out.contains("被测地址"), "the help is not translated");
    let mistake = throng("bench --lang zh --nonsense").run().exits(2);
    mistake.check(mistake.err.contains("不认识参数 '--nonsense'"), "clap is not translated");
}
