//! The allow-list of targets: what it does not name hears of nothing, whatever command would have
//! connected. Loopback addresses stand for strangers here.

use std::os::unix::fs::PermissionsExt as _;

use crate::run::{Throng, throng};
use crate::scenarios::{one_session, times};
use crate::scribe::{Scribe, answer};

/// Without the lists of whoever runs the tests.
fn without_lists(line: &str) -> Throng {
    let run = throng(line);
    let folder = run.folder().join("config").display().to_string();
    run.env("XDG_CONFIG_HOME", &folder).env("THRONG_TARGETS", "")
}

fn lists(run: &Throng, text: &str) {
    let folder = run.folder().join("config/throng");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("targets"), text).expect("a list");
}

#[test]
fn unlisted_targets_receive_nothing() {
    let scribe = Scribe::start();
    let text = one_session(&scribe.target(), &times(2, 1), "- http: GET /");
    let bench = format!("bench {}/ -n 2 -c 1", scribe.target());
    for line in [bench.as_str(), "run it.yaml", "try it.yaml"] {
        let refused = || without_lists(line).file("it.yaml", &text);
        let said = ["error[target-not-allowed]", "`127.0.0.1`", "help", "nothing was sent"];
        let run = refused().env("THRONG_TARGETS", "127.0.0.2/32, example.test").run().exits(2);
        run.says(&said);
        run.says(&["THRONG_TARGETS"]);
        run.check(
            !run.folder().join("throng-runs").read_dir().is_ok_and(|mut it| it.next().is_some()),
            "a record was made of nothing",
        );
        let run = refused();
        lists(&run, "# ours\n10.0.0.0/8\n");
        let run = run.env("THRONG_TARGETS", "127.0.0.0/8").run().exits(2);
        run.says(&said);
        run.says(&["config/throng/targets"]);
    }
    assert_eq!(scribe.accepted(), 0, "not even a connection");
}

#[test]
fn targets_in_all_lists_are_loaded() {
    let scribe = Scribe::start();
    let url = scribe.target().replace("127.0.0.1", "localhost");
    let bench = || without_lists(&format!("bench {url}/ -n 2 -c 1 -4 --json"));
    let run = bench();
    lists(&run, "localhost");
    run.env("THRONG_TARGETS", "127.0.0.1").run().succeeds(2);
    let run = bench().run().succeeds(2);
    run.check(!run.err.contains("public"), "loopback is nobody else's");
}

/// A list that cannot be understood or read is no permission.
#[test]
fn a_broken_list_allows_nothing() {
    let scribe = Scribe::start();
    let bench = || without_lists(&format!("bench {}/ -n 2 -c 1", scribe.target()));
    let run = bench().env("THRONG_TARGETS", "127.0.0.1:80").run().exits(2);
    run.says(&[
        "target-not-allowed",
        "`127.0.0.1:80`",
        "is not a name, address or network",
        "help",
    ]);
    let run = bench();
    lists(&run, "127.0.0.1");
    let file = run.folder().join("config/throng/targets");
    std::fs::remove_file(&file).expect("a list");
    std::fs::create_dir(&file).expect("no file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).expect("readable");
    run.run().exits(2).says(&["file-unreadable", "config/throng/targets", "nothing was sent"]);
    assert_eq!(scribe.accepted(), 0);
}

#[test]
fn a_redirect_does_not_leave_the_list() {
    let stranger = Scribe::start();
    let elsewhere = stranger.target().replace("127.0.0.1", "127.0.0.3");
    let scribe = Scribe::answering(move |_, _| {
        answer("302 Found", &format!("Location: {elsewhere}/\r\n"), "")
    });
    let line = format!("bench {}/ -n 2 -c 1 --follow", scribe.target());
    without_lists(&line).env("THRONG_TARGETS", "127.0.0.1").run();
    assert_eq!((scribe.accepted() > 0, stranger.accepted()), (true, 0));
}
