//! `throng init`: what it writes is checked, tried and run as it is, but for address and time.

use tempfile::TempDir;

use crate::protocols::redis::Server as Redis;
use crate::protocols::sql::Postgres;
use crate::run::{Throng, throng};
use crate::servers::Target;

struct Kind {
    word: &'static str,
    target: &'static str,
    scheme: &'static str,
    /// So that the load of a test is over soon.
    changes: &'static [(&'static str, &'static str)],
    /// Steps of `try`, at least.
    steps: u64,
    /// Answers of `run`, at least.
    ok: f64,
}

impl Kind {
    fn url(&self, address: &str) -> String {
        let user = if self.word == "sql" { "ann:word@" } else { "" };
        format!("{}://{user}{address}", self.scheme)
    }
}

const KINDS: &[Kind] = &[
    Kind {
        word: "http",
        target: "http",
        scheme: "http",
        changes: &[
            ("rate: 10/s}, for: 10s", "rate: 50/s}, for: 1s"),
            ("for: 30s", "for: 2s"),
            ("1s..5s", "100ms..500ms"),
            ("exponential: 3s", "exponential: 300ms"),
            ("users: 50", "users: 10"),
            ("time: < 500ms", "time: < 10s"),
            ("p95 < 200ms", "p95 < 10s"),
            ("p99 < 500ms", "p99 < 10s"),
        ],
        steps: 4,
        ok: 40.0,
    },
    Kind {
        word: "api",
        target: "http",
        scheme: "http",
        changes: &[
            ("rate: 10/s", "rate: 50/s"),
            ("for: 30s", "for: 2s"),
            ("1s..3s", "100ms..200ms"),
            ("1s..5s", "100ms..200ms"),
            ("buy p95 < 1s", "buy p95 < 10s"),
        ],
        steps: 4,
        ok: 60.0,
    },
    Kind {
        word: "websocket",
        target: "im",
        scheme: "ws",
        changes: &[
            ("for: 20s", "for: 2s"),
            ("1s..3s", "100ms..300ms"),
            ("users: 100", "users: 20"),
            ("connect p99 < 1s", "connect p99 < 10s"),
            ("heartbeat p99 < 100ms", "heartbeat p99 < 10s"),
        ],
        steps: 3,
        ok: 60.0,
    },
    Kind {
        word: "mqtt",
        target: "mqtt",
        scheme: "mqtt",
        changes: &[
            ("for: 20s", "for: 2s"),
            ("1s..3s", "100ms..300ms"),
            ("users: 100", "users: 20"),
            ("connect p99 < 1s", "connect p99 < 10s"),
            ("state p99 < 100ms", "state p99 < 10s"),
        ],
        steps: 3,
        ok: 60.0,
    },
    Kind {
        word: "redis",
        target: "redis",
        scheme: "redis",
        changes: &[
            ("for: 20s", "for: 2s"),
            ("1s..3s", "100ms..300ms"),
            ("users: 100", "users: 20"),
            ("read cart p99 < 20ms", "read cart p99 < 10s"),
            ("change cart p99 < 20ms", "change cart p99 < 10s"),
        ],
        steps: 3,
        ok: 60.0,
    },
    Kind {
        word: "sql",
        target: "sql",
        scheme: "postgres",
        changes: &[
            ("for: 30s", "for: 2s"),
            ("1s..3s", "100ms..300ms"),
            ("users: 50", "users: 10"),
            ("find item p99 < 50ms", "find item p99 < 10s"),
            ("order p99 < 200ms", "order p99 < 10s"),
        ],
        steps: 5,
        ok: 60.0,
    },
    Kind {
        word: "tcp",
        target: "echo",
        scheme: "tcp",
        changes: &[
            ("users: 100, for: 20s", "users: 20, for: 2s"),
            ("500ms..1s", "100ms..200ms"),
            ("hello p99 < 50ms", "hello p99 < 10s"),
        ],
        steps: 3,
        ok: 80.0,
    },
];

/// A server for a kind of service: a reference target, or the real one.
enum Service {
    Reference(Target),
    Redis { server: Redis, _folder: TempDir },
    Database(Postgres),
}

impl Service {
    #[track_caller]
    fn start(kind: &Kind) -> Service {
        match kind.target {
            "redis" => {
                let folder = tempfile::tempdir().expect("a temporary folder");
                let server = Redis::start(folder.path(), "");
                Service::Redis { server, _folder: folder }
            }
            "sql" => {
                let server = Postgres::start();
                // The comment of the template has the tables.
                let text = throng("init sql -").run().exits(0).out;
                let tables = text.lines().filter_map(|line| line.strip_prefix("#   "));
                let tables = tables.filter(|line| line.ends_with(';')).collect::<String>();
                server.value(&format!("{tables} grant all on items, orders, orders_id_seq to ann"));
                Service::Database(server)
            }
            name => Service::Reference(Target::start(name)),
        }
    }

    fn address(&self) -> String {
        match self {
            Service::Reference(target) => target.address.to_string(),
            Service::Redis { server, .. } => format!("127.0.0.1:{}", server.port),
            Service::Database(server) => format!("127.0.0.1:{}/postgres", server.port),
        }
    }
}

/// The command in a folder that has what `init` wrote, with the address of the target and the
/// times of a test.
#[track_caller]
fn written(kind: &Kind, address: &str, line: &str) -> Throng {
    let url = kind.url(address);
    let init = throng(&format!("init {} my.yaml --target {url}", kind.word)).run().exits(0);
    init.says(&["wrote my.yaml", "throng check my.yaml"]);
    init.check(init.err.is_empty(), "it complains");
    let read = |name: &str| std::fs::read_to_string(init.folder().join(name));
    let text = read("my.yaml").expect("a scenario");
    init.check(text.contains(&format!("target: {url} ")), "the address");
    init.check(text.contains("throng run my.yaml "), "the commands in its head");
    let change = |text: String, (old, new): &(&str, &str)| {
        init.check(text.contains(old), &format!("no `{old}` in it:\n{text}"));
        text.replace(old, new)
    };
    let small = kind.changes.iter().fold(text.clone(), change);
    let command = throng(line).file("my.yaml", text).file("small.yaml", small);
    match read("accounts.csv") {
        Ok(rows) => command.file("accounts.csv", rows),
        Err(_) => command,
    }
}

#[test]
fn what_is_written_is_good() {
    for kind in KINDS {
        // Nobody listens there, and nobody has to.
        let run = written(kind, "127.0.0.1:1", "check my.yaml").run().exits(0);
        run.says(&["the scenario is valid; nothing was sent", "session ", "thresholds"]);
        run.check(run.err.is_empty(), "there are warnings");
    }
}

/// Services that no reference target speaks for.
#[test]
fn what_is_written_for_others_is_good() {
    for kind in ["socketio", "graphql", "llm"] {
        let init = throng(&format!("init {kind} my.yaml")).run().exits(0);
        let text = std::fs::read_to_string(init.folder().join("my.yaml")).expect("a scenario");
        let run = throng("check my.yaml").file("my.yaml", text).run().exits(0);
        run.says(&["the scenario is valid; nothing was sent", "session ", "thresholds"]);
        run.check(run.err.is_empty(), "there are warnings");
    }
}

#[test]
fn what_is_written_can_be_tried() {
    for kind in KINDS {
        let service = Service::start(kind);
        let run = written(kind, &service.address(), "try my.yaml --pause 50ms").run().exits(0);
        let last = run.out.lines().last().unwrap_or_default();
        let steps = last.strip_suffix(" steps, all ok").and_then(|it| it.parse().ok());
        run.check(steps.is_some_and(|steps: u64| steps >= kind.steps), "all is ok");
        run.says(&["✓ ", "→ ", "← ", "paused"]);
        run.check(!run.out.contains('✗'), "something failed");
        run.check(run.err.is_empty(), "it complains");
    }
}

#[test]
fn what_is_written_meets_its_thresholds() {
    for kind in KINDS {
        let service = Service::start(kind);
        let run = written(kind, &service.address(), "run small.yaml --json").run().exits(0);
        run.within("/total/ok", kind.ok, f64::MAX);
        run.has("/total/failed", 0);
        let thresholds = run.json()["thresholds"].as_array().cloned().unwrap_or_default();
        run.check(thresholds.len() > 1, "there are thresholds");
        run.check(thresholds.iter().all(|threshold| threshold["verdict"] == "met"), "they are met");
        if kind.word == "api"
            && let Service::Reference(target) = &service
        {
            // Everybody has an account of his own, and keeps it.
            assert_eq!(target.counts("/accounts"), 20, "{run}");
            run.check(target.counts("/accounts_again") > 0, "they come again");
        }
    }
}

#[test]
fn a_file_that_is_there_is_kept() {
    let own = |line: &str| throng(line).file("http.yaml", "mine").file("accounts.csv", "also mine");
    let run = own("init").run().exits(2);
    run.says(&["error[file-unwritable]", "`http.yaml`", "--force"]);
    run.check(run.out.is_empty(), "it says that it has written");
    let read = |run: &crate::run::Run, name| {
        std::fs::read_to_string(run.folder().join(name)).expect("a file")
    };
    assert_eq!(read(&run, "http.yaml"), "mine");

    let run = own("init http --force").run().exits(0);
    run.check(read(&run, "http.yaml").contains("sessions:"), "it is written over");

    // The accounts are the person's own, with a scenario beside them that is new.
    let run = own("init api").run().exits(0);
    run.says(&["wrote api.yaml", "accounts.csv already exists and was not overwritten"]);
    assert_eq!(read(&run, "accounts.csv"), "also mine");
    let run = own("init api --force").run().exits(0);
    run.check(read(&run, "accounts.csv").starts_with("user,password\n"), "rows of the template");
}

#[test]
fn the_output_may_be_the_file() {
    for kind in KINDS {
        let url = kind.url("h:1");
        let run = throng(&format!("init {} - --target {url}", kind.word));
        let run = run.run().exits(0);
        run.check(run.err.is_empty(), "it complains");
        let line = format!("target: {url}");
        run.check(run.out.starts_with("# ") && run.out.contains(&line), "a scenario");
        let there = run.folder().read_dir().expect("a folder").count();
        run.check(there == 0, "nothing is written");
    }
}

#[test]
fn files_lie_where_they_are_asked_for() {
    let command = throng("init api load/shop.yaml");
    std::fs::create_dir(command.folder().join("load")).expect("a folder");
    let run = command.run().exits(0);
    let names = ["load/shop.yaml", "load/accounts.csv"];
    run.says(&names);
    run.check(names.iter().all(|name| run.folder().join(name).is_file()), "the files");
    let run = throng("init http no/such/folder.yaml").run().exits(2);
    run.says(&["error[file-unwritable]", "`no/such/folder.yaml`"]);
    throng("init gopher").run().exits(2).says(&["gopher", "http"]);
}
