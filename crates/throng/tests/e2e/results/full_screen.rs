//! `--tui`: a run on a full screen, in a pseudo-terminal of 80 columns.

use std::process::Command;

use crate::run::{Child, Run, Throng, binary, throng};
use crate::servers::{Target, program};

const TAKEN: &str = "\u{1b}[?1049h";
const GIVEN_BACK: &str = "\u{1b}[?1049l";
const SHOWN: &str = "\u{1b}[?25h";

/// Says after the run whether keys are shown again, and whether they stop a process.
fn terminal(line: &str, size: (u16, u16)) -> Throng {
    let mut command = Command::new(program("script", "bsdutils"));
    let (columns, rows) = size;
    // Ctrl-C is sent to the shell as well, which must outlive it (bash would, dash would not).
    let line = format!(
        "trap : INT; stty cols {columns} rows {rows}; {} {line}; echo code=$?; \
         stty -a | grep -o -e '-*icanon' -e 'susp = [^;]*'",
        binary().display()
    );
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color");
    Throng::new(command).listens()
}

/// The screen was taken and given back, and the ordinary summary stands behind it.
#[track_caller]
fn is_whole_again(run: &Run) {
    let (taken, given) = (run.out.find(TAKEN), run.out.rfind(GIVEN_BACK));
    run.check(taken.is_some() && taken < given, "the screen is not given back");
    let behind = &run.out[given.unwrap_or_default()..];
    run.check(behind.contains(SHOWN), "the cursor is away");
    run.check(behind.contains("response time") && behind.contains("exit "), "no summary");
    let says = |wanted: &str| behind.lines().any(|line| line.trim() == wanted);
    run.check(says("icanon"), "keys are not as they were");
    run.check(says("susp = ^Z"), "Ctrl-Z is not as it was");
}

/// What the shell in the terminal says of it. A machine that is busy may have been late: then the
/// result is invalid for that.
#[track_caller]
fn exits(run: &Run, code: i32) {
    let was_late = run.out.contains("code=5") && run.out.contains("generator-late");
    let says = format!("code={code}");
    run.check(run.out.contains(&says) || was_late, &format!("it is not {says}"));
}

#[test]
fn a_full_screen_shows_curves_and_handles_keys() {
    let target = Target::start("http --errors 20%");
    let url = target.http("/");
    let line = format!("bench {url} --rate 200/s -d 60s --out record --expect-status 200 --tui");
    let mut child = terminal(&line, (80, 24)).start();
    for part in ["per second", "steps", "events", "status-unexpected"] {
        child.hears(part, |out, _| out.contains(part).then_some(()));
    }
    child.types("?");
    // Only what has changed is written: words come one by one.
    child.hears("help", |out, _| out.contains("resume").then_some(()));
    child.types("?+pgm");
    child.hears("the mark", |out, _| out.contains("marked:").then_some(()));
    // What would put it into the background does nothing here.
    child.types("\u{1a}q");
    child.hears("the end", |out, _| out.contains("icanon").then_some(()));
    let run = child.wait();
    is_whole_again(&run);
    run.check(run.out.contains("code=130"), "the exit code");
    let behind = &run.out[run.out.rfind(GIVEN_BACK).unwrap_or_default()..];
    run.check(behind.contains("times 1.1") && behind.contains("marked"), "what was said");
    run.check(!run.out.contains("bytes/s codes"), "lines are printed as well");
    let events = run.folder().join("record/events.ndjson");
    let events = std::fs::read_to_string(events).expect("events");
    for event in ["\"amended\"", "\"marked\"", "\"interrupted\""] {
        assert!(events.contains(event), "{event}: {run}");
    }
}

#[test]
fn the_screen_is_restored_however_a_run_ends() {
    let target = Target::start("http");
    let line = |more: &str| format!("bench {} -c 2 {more} --no-record --tui", target.http("/"));
    // By itself.
    let run = terminal(&line("-d 2s"), (60, 15)).run();
    is_whole_again(&run);
    exits(&run, 0);
    // By Ctrl-C.
    let mut child = terminal(&line("-d 60s"), (200, 60)).start();
    // Once requests have been answered: a run without any has no response times to sum up.
    let requests = target.counts("/requests");
    child.hears("the screen", |out, _| out.contains("GET").then_some(()));
    child.until("answers", || target.counts("/requests") > requests + 100);
    child.types("\u{3}");
    let run = child.wait();
    is_whole_again(&run);
    // The target is not there.
    let run = terminal("bench http://127.0.0.1:1/ -c 2 -d 60s --no-record --tui", (80, 24)).run();
    run.check(run.out.rfind(TAKEN) < run.out.rfind(GIVEN_BACK), "the screen is not given back");
    exits(&run, 4);
}

/// The program that a shell in the terminal runs, however many are between.
fn throng_below(process: u32) -> Option<i32> {
    let read = |what: &str| std::fs::read_to_string(format!("/proc/{process}/{what}")).ok();
    if read("comm")?.trim() == "throng" {
        return i32::try_from(process).ok();
    }
    let children = read(&format!("task/{process}/children"))?;
    children.split_whitespace().find_map(|child| throng_below(child.parse().ok()?))
}

fn is_stopped(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
}

/// The output from the last time on that this text stands in it.
fn since<'a>(out: &'a str, text: &str) -> &'a str {
    out.rfind(text).map_or("", |at| &out[at..])
}

fn long(target: &Target) -> String {
    format!("bench {} --rate 200/s -d 60s --no-record --tui", target.http("/"))
}

/// A shell with jobs runs this line in the terminal.
fn shell(line: &str) -> Child {
    let mut command = Command::new(program("script", "bsdutils"));
    command.args(["-qec", "stty cols 80 rows 24; exec bash --norc --noediting -i", "/dev/null"]);
    command.env("TERM", "xterm-256color").env("HISTFILE", "/dev/null");
    let mut child = Throng::new(command).listens().start();
    child.types(&format!("{} {line}\n", binary().display()));
    child
}

/// What a shell says of a job that is stopped stands where the screen was; `fg` brings it back.
#[test]
fn a_run_that_is_stopped_gives_its_screen_back_and_takes_it_again() {
    let target = Target::start("http");
    let mut child = shell(&long(&target));
    child.hears("the screen", |out, _| out.contains("events").then_some(()));
    let process = throng_below(child.id()).expect("throng");
    // SAFETY: the call takes two numbers; the process lives, as its screen is there.
    unsafe { libc::kill(process, libc::SIGTSTP) };
    let told = child.hears("the shell", |out, _| {
        let behind = since(out, GIVEN_BACK);
        behind.contains("Stopped").then(|| behind.to_string())
    });
    assert!(told.contains(SHOWN), "the cursor is away: {told:?}");
    assert!(is_stopped(process), "it goes on");
    let requests = target.counts("/requests");
    // Behind the shell it goes on, and leaves the screen to it.
    child.types("bg\n");
    child.until("requests", || target.counts("/requests") > requests + 200);
    let out = child.output();
    assert_eq!(out.rfind(GIVEN_BACK), out.find(GIVEN_BACK), "it is drawn over the shell: {out:?}");
    assert!(!since(&out, GIVEN_BACK).contains(TAKEN), "it is drawn over the shell: {out:?}");
    child.types("fg; echo code=$?\n");
    // All of it is drawn, not what has changed alone.
    child.hears("the screen again", |out, _| {
        let drawn = since(out, TAKEN);
        let all = out.rfind(GIVEN_BACK) < out.rfind(TAKEN) && drawn.contains("events");
        (all && drawn.contains("steps")).then_some(())
    });
    child.types("m");
    child.hears("the mark", |out, _| since(out, TAKEN).contains("marked:").then_some(()));
    child.types("q");
    child.hears("the end", |out, _| since(out, GIVEN_BACK).contains("code=130").then_some(()));
    child.types("echo; stty -a | grep -o -e '-*icanon' -e 'susp = [^;]*'; exit\n");
    let run = child.wait();
    is_whole_again(&run);
    // The terminal was asked for nothing: the answer would have come as keys.
    run.check(!run.out.contains("\u{1b}[6n"), "the terminal is asked for its cursor");
}

/// Where lines of the screen begin that were drawn: the highest of them.
fn lowest_line(drawn: &str) -> u16 {
    let places = drawn.split("\u{1b}[").filter_map(|code| {
        let end = code.find(|it: char| it.is_ascii_alphabetic())?;
        let (line, _) = code[..end].split_once(';').filter(|_| code[end..].starts_with('H'))?;
        line.parse().ok()
    });
    places.max().unwrap_or(0)
}

#[test]
fn a_terminal_that_changes_its_size_is_filled_again() {
    let target = Target::start("http");
    let mut child = shell(&format!("{}; echo code=$?", long(&target)));
    child.hears("the screen", |out, _| out.contains("events").then_some(()));
    let process = throng_below(child.id()).expect("throng");
    let terminal = std::fs::read_link(format!("/proc/{process}/fd/0")).expect("a terminal");
    assert_eq!(lowest_line(&child.output()), 24);
    for (columns, lines) in [(132, 50), (60, 15), (100, 30), (20, 4), (80, 24)] {
        let before = child.output().len();
        let size = [format!("{columns}"), format!("{lines}")];
        let mut stty = Command::new("stty");
        stty.arg("-F").arg(&terminal).args(["cols", &size[0], "rows", &size[1]]);
        assert!(stty.status().expect("stty").success());
        // The old size is drawn until the next look.
        let clear = "\u{1b}[2J";
        child.hears("another size", |out, _| {
            let drawn = out.get(before..)?.split_once(clear)?.1;
            (lowest_line(drawn) == lines).then_some(())
        });
    }
    child.types("q");
    child.hears("the end", |out, _| since(out, GIVEN_BACK).contains("code=130").then_some(()));
    child.types("echo; stty -a | grep -o -e '-*icanon' -e 'susp = [^;]*'; exit\n");
    is_whole_again(&child.wait());
}

#[test]
fn a_screen_is_not_taken_from_the_background() {
    let target = Target::start("http");
    let mut child = shell(&format!("bench {} -n 50 -c 2 --no-record --tui &", target.http("/")));
    let run = |out: &str| {
        out.contains(
            "`--tui` requires a terminal for input and output; throng prints progress lines \
             instead",
        ) && out.contains("response time")
    };
    child.hears("the summary", |out, _| run(out).then_some(()));
    assert!(!child.output().contains(TAKEN), "the screen is taken");
    child.types("exit\n");
    child.wait();
}

#[test]
fn without_a_terminal_lines_are_printed_and_it_is_said() {
    let target = Target::start("http");
    let line = format!("bench {} -n 50 -c 2 --no-record --tui", target.http("/"));
    let piped = throng(&line).run().exits(0);
    piped.says(&[
        "`--tui` requires a terminal for input and output; throng prints progress lines instead",
        "response time",
    ]);
    piped.check(!piped.out.contains('\u{1b}'), "codes of a terminal");
    let dumb = terminal(&line, (80, 24)).env("TERM", "dumb").run();
    dumb.says(&[
        "`--tui` requires a terminal for input and output; throng prints progress lines instead",
        "response time",
    ]);
    dumb.check(!dumb.out.contains(TAKEN), "the screen is taken");
    for other in ["--json", "--quiet"] {
        throng(&format!("{line} {other}")).run().exits(2).says(&["--tui", other]);
    }
}
