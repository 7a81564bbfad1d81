//! The state of a terminal after a panic. A run cannot be made to panic, so this test panics in a
//! child process: it has the screen, the keys and the panic handler of a run.

use std::process::Command;
use std::time::Duration;

use throng_results::RunInfo;

use super::dashboard::Dashboard;
use super::keys::Keys;
use crate::screen::Screen;

/// What panics in the child process.
const WHO: &str = "THRONG_TEST_PANICS";

#[test]
fn a_panic_gives_the_terminal_back() {
    match std::env::var(WHO) {
        Ok(who) => panics(&who),
        Err(_) => ["a shard", "the desk"].map(looks_on),
    };
}

/// Uses the screen and the keys of a run. If it returns, the run has ended normally.
fn panics(who: &str) -> [(); 2] {
    crate::bug::report_panics(super::restore);
    let run = || {
        let info = RunInfo::new("shop", Duration::ZERO);
        let style = Screen::output(true).style;
        let mut dashboard = Dashboard::open(style, &info).expect("a terminal");
        let (keys, _pressed) = Keys::read(true, true);
        dashboard.draw(throng_base::Time::ZERO, None);
        match who {
            // Nothing of what the controller has is dropped, and the run goes on.
            "a shard" => {
                let shard = std::thread::spawn(|| panic!("on purpose"));
                assert!(shard.join().is_err());
                assert!(keys.keep(), "the keys were not given back");
                dashboard.take_again();
                dashboard.draw(throng_base::Time::ZERO, None);
            }
            _ => panic!("on purpose"),
        }
    };
    let ended = std::panic::catch_unwind(run);
    std::process::exit(if ended.is_ok() { 0 } else { 70 });
}

#[track_caller]
fn looks_on(who: &str) {
    let this = std::env::current_exe().unwrap();
    let line = format!(
        "stty cols 80 rows 24; '{}' --exact terminal::tests::a_panic_gives_the_terminal_back \
         --nocapture; echo code=$?; stty -a | grep -o -e '-*icanon' -e 'susp = [^;]*'",
        this.display()
    );
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env(WHO, who).env("TERM", "xterm-256color");
    let told = script.env("LC_ALL", "C").output().unwrap();
    let out = String::from_utf8_lossy(&told.stdout).into_owned();
    let (taken, given, shown) = ("\u{1b}[?1049h", "\u{1b}[?1049l", "\u{1b}[?25h");
    let (code, times) = if who == "a shard" { ("code=0", 2) } else { ("code=70", 1) };
    assert_eq!(out.matches(taken).count(), times, "{who}: {out:?}");
    assert_eq!(out.matches(given).count(), times, "{who}: {out:?}");
    assert!(out.rfind(taken) < out.rfind(given), "the screen stays: {out:?}");
    assert!(out[out.rfind(given).unwrap()..].contains(shown), "the cursor is away: {out:?}");
    // The message is printed in the shell, not on the screen that is closed.
    let bug = out.find("throng has a bug: on purpose").expect("the bug is not told");
    let behind = out.find(given).expect("the screen is not given back");
    assert!(behind < bug, "told on the screen: {out:?}");
    assert!(!out[behind..bug].contains(taken), "told on the screen: {out:?}");
    assert!(out.contains(code), "{who}: {out:?}");
    for says in ["icanon", "susp = ^Z"] {
        assert!(out.lines().any(|line| line.trim() == says), "{who}: no {says}: {out:?}");
    }
}
