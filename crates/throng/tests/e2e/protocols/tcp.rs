//! `throng bench` over raw TCP: where an answer ends, and what is no answer.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::faulty::Faulty;
use crate::run::throng;
use crate::servers::Target;

#[test]
fn a_response_ends_at_the_given_delimiter() {
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
fn invalid_responses_are_counted_by_cause() {
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

/// A server that counts lines by their first letter. It reads nothing until the run is over, so
/// that receive windows are full.
struct Lines {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    counts: Mutex<[u64; 3]>,
    readers: Mutex<Vec<thread::JoinHandle<()>>>,
    is_over: Mutex<bool>,
    over: Condvar,
}

impl Lines {
    fn start() -> Lines {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = Lines { port, shared: Arc::default() };
        let shared = Arc::clone(&server.shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let its = Arc::clone(&shared);
                let reader = thread::spawn(move || its.read(stream));
                shared.readers.lock().expect("readers").push(reader);
            }
        });
        server
    }

    /// What all connections sent.
    fn counted(&self) -> [u64; 3] {
        *self.shared.is_over.lock().expect("a flag") = true;
        self.shared.over.notify_all();
        for reader in std::mem::take(&mut *self.shared.readers.lock().expect("readers")) {
            reader.join().expect("a reader");
        }
        *self.shared.counts.lock().expect("counts")
    }
}

impl Shared {
    fn read(&self, stream: TcpStream) {
        let is_over = self.is_over.lock().expect("a flag");
        drop(self.over.wait_while(is_over, |is_over| !*is_over).expect("a flag"));
        let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
        for line in lines.filter(|line| line.ends_with(b".")) {
            self.counts.lock().expect("counts")[usize::from(line[0] - b'a')] += 1;
        }
    }
}

/// Three messages go out in one write, which the socket takes in part when its peer does not read.
#[test]
fn messages_that_go_out_together_are_counted_one_by_one() {
    for (size, then) in [(10, "disconnect"), (30_000, "disconnect: reset"), (30_000, "think: 1ms")]
    {
        let server = Lines::start();
        let send = |name| {
            format!(
                "    - {{send: {{text: \"{name}${{random.string({size})}}.\\n\"}}, name: {name}}}\n"
            )
        };
        let scenario = format!(
            "target: tcp://127.0.0.1:{}\ngraceful_stop: 10ms\nload: [{{users: 4, for: 1500ms}}]\n\
             sessions:\n  user:\n    before: [connect]\n    steps:\n{}    - think: 1ms\n    \
             after: [{then}]\n",
            server.port,
            ["a", "b", "c"].map(send).concat(),
        );
        let run = throng("run it.yaml --json").file("it.yaml", &scenario).run();
        let received = server.counted();
        for (name, received) in ["a", "b", "c"].into_iter().zip(received) {
            let row = run.row("steps", name);
            let of = |count: &str| row[count].as_u64().unwrap_or_default();
            let (begun, ok) = (of("begun"), of("ok"));
            run.check(begun == ok + of("failed") + of("interrupted"), name);
            run.check(received <= begun, &format!("{name}: {received} received, {begun} begun"));
            let is_lost = then.ends_with("reset");
            run.check(
                ok > 20 && (is_lost || received >= ok),
                &format!("{name}: {received} of {ok}"),
            );
        }
    }
}
