//! `throng bench` over raw TCP: where an answer ends, and what is no answer.

use crate::faulty::Faulty;
use crate::run::throng;
use crate::servers::Target;

#[test]
fn an_answer_ends_where_the_line_says() {
    let echo = Target::start("echo");
    let line = format!("bench {} -n 200 -c 10 --json", echo.url("tcp", ""));
    for until in ["--delimiter=\\r\\n", "--length=6", "--pattern=N[G]\\r\\n", "--expect-text=PING"]
    {
        let run = throng(&line).arg("--body=PING\\r\\n").arg(until).run().succeeds(200);
        run.has("/sent_bytes", 1200);
        run.has("/received_bytes", 1200);
        run.has("/connections/opened", 10);
    }
    let run = throng(&line).arg("--hex=deadbeef00").arg("--delimiter=\\x00").run().succeeds(200);
    run.has("/received_bytes", 1000);
}

#[test]
fn idle_users_are_held() {
    let echo = Target::start("echo");
    let line = format!("bench {} -c 100 -d 1500ms --json", echo.url("tcp", ""));
    let run = throng(&line).run().exits(0);
    run.has("/users/online_max", 100);
    run.has("/connections/opened", 100);
    echo.comes_to("/connections/open", 0);
    assert_eq!(echo.counts("/connections/accepted"), 100, "{run}");
}

#[test]
fn every_message_may_have_a_connection() {
    let echo = Target::start("echo");
    let line = format!("bench {} -n 100 -c 5 --no-keepalive --json", echo.url("tcp", ""));
    let run = throng(&line).arg("--body=x\n").arg("--delimiter=\\n").run().succeeds(100);
    run.has("/connections/opened", 100);
    assert_eq!(echo.counts("/connections/accepted"), 100, "{run}");
}

#[test]
fn what_is_no_answer_is_counted_by_its_cause() {
    let fails = |server: Faulty, cause: &str| {
        let url = server.url("tcp");
        let line = format!("bench {url} -n 6 -c 3 --timeout 1s --delimiter END --json");
        let run = throng(line.trim()).arg("--body=x").run();
        run.fails(cause, "target", Some(6));
        run.check(run.took.as_secs() < 20, "it took too long");
    };
    fails(Faulty::says("half of an EN"), "closed-early");
    fails(Faulty::start(|peer| peer.closes()), "closed-early");
    fails(Faulty::start(|peer| peer.waits()), "timeout");
    let resets = |mut peer: crate::faulty::Peer| {
        peer.hears();
        peer.says(b"half");
        peer.resets();
    };
    fails(Faulty::start(resets), "reset");
    fails(Faulty::start(|mut peer| while peer.says(&[b'x'; 65536]) {}), "too-large");
}
