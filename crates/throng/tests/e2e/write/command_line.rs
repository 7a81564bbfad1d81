//! Mistakes: each ends with exit code 2, says what, where and the cure, and nothing is sent.

use std::path::Path;
use std::process::Command;

use crate::run::throng;
use crate::servers::Target;

/// `URL` in the line is that of a target, which must hear of nothing.
#[track_caller]
fn refused(cases: &[(&str, &[&str])]) {
    let target = Target::start("http");
    for (line, said) in cases {
        let line = line.replace("URL", &target.http("/"));
        let run = throng(&line).run().exits(2);
        run.says(said);
        run.says(&["error"]);
        let cure = ["help", "tip:", "--help"].iter().any(|word| run.err.contains(word));
        run.check(cure, "it does not say what to do");
        run.check(run.out.is_empty(), "a mistake belongs on standard error");
    }
    assert_eq!(target.counts("/connections/accepted"), 0);
}

#[test]
fn impossible_flags() {
    refused(&[
        ("bench URL -c 0", &["-c", "at least 1"]),
        ("bench URL -n many", &["many"]),
        ("bench URL -d soon", &["soon"]),
        ("bench URL --rate -5", &["-5"]),
        ("bench URL --bodyy x", &["--bodyy", "'--body'"]),
        ("bench URL -t 4", &["-t", "--shards"]),
        ("bench URL -p 4", &["-p", "--curl"]),
        ("bench URL --http-version 3", &["3", "`auto`"]),
        ("bench URL --http2 --http-version auto", &["--http2", "--http-version"]),
        ("bench URL --http3", &["--http3", "--http2"]),
        ("bench URL -4 -6", &["--ipv4", "--ipv6"]),
        ("bench URL --out a --no-record", &["--out", "--no-record"]),
        ("bench URL --body a --hex 00", &["two-bodies"]),
        ("bench URL --expect-status 99", &["99", "valid statuses are 100 to 599"]),
        ("bench URL --expect-json =1", &["=1"]),
        ("bench URL -H nocolon", &["nocolon", "Name: value"]),
        ("bench URL -a nocolon", &["nocolon", "user:password"]),
        ("bench URL --threshold fast", &["fast", "comparison"]),
        ("bench URL --abort-when fast", &["fast", "comparison"]),
        ("bench URL URL", &["URL"]),
        ("bench URL -u URL", &["two-urls"]),
        ("bench URL --key a.pem", &["--cert"]),
        ("bonch URL", &["bonch", "bench"]),
        ("chekc shop.yaml", &["chekc", "'check'"]),
        ("bench URL --taget x", &["--taget", "unexpected"]),
        ("bench URL --rtae 5", &["--rtae", "'--rate'"]),
        ("init htpt", &["htpt", "'http'"]),
        ("run shop.yaml --jsno", &["--jsno", "'--json'"]),
    ]);
}

#[test]
fn words_of_other_tools_are_answered_with_what_to_write() {
    refused(&[
        ("run shop.yaml -t 2s", &["'-t'", "--for 30s"]),
        ("try shop.yaml --html x.html", &["--html", "throng report --html"]),
        ("run shop.yaml --env X=1", &["--env", "--set NAME=VALUE"]),
        ("run shop.yaml --dry-run", &["--dry-run", "throng check FILE"]),
        ("run shop.yaml --treshold x", &["--treshold", "--threshold 'http p95 < 200ms'"]),
        ("try shop.yaml --threshold x", &["--threshold", "`thresholds:`"]),
        ("run shop.yaml --no-record --html x.html", &["--no-record", "--html"]),
        ("try shop.yaml --env X=1", &["--env", "--set NAME=VALUE"]),
        ("compare a b --html", &["--html", "<FILE>"]),
        ("recorder http://127.0.0.1/", &["recorder", "throng record --out FILE"]),
        ("convert x.jmx", &["convert", "throng import KIND FILE"]),
        ("shop.yaml", &["throng run shop.yaml", "throng check shop.yaml"]),
        ("test shop.yaml", &["throng run FILE", "throng try FILE"]),
        ("validate shop.yaml", &["throng check FILE"]),
        ("http://127.0.0.1/", &["throng bench http://127.0.0.1/"]),
        ("init shop.yaml", &["throng init http shop.yaml"]),
        ("target http --port 8080", &["--port", "--listen 127.0.0.1:8080"]),
    ]);
    let run = throng("recorder x").run().exits(2);
    run.check(!run.err.contains("'report'"), "it means another command");
}

/// Flags of hey that begin with the letter of the help.
#[test]
fn unknown_flags_never_end_well() {
    refused(&[
        ("bench URL -h2", &["-h2", "--http2"]),
        ("bench URL -host example.com", &["-host", "-H 'Host: example.com'"]),
        ("--lang en bench -host example.com URL", &["-host"]),
        ("run -host", &["--host"]),
        ("check -Vx", &["-V"]),
        ("-hx", &["--hx"]),
    ]);
}

#[test]
fn flags_that_mean_nothing_for_the_scheme() {
    refused(&[
        ("bench URL --delimiter x -n 1", &["--delimiter"]),
        ("bench URL --length 5 -n 1", &["--length"]),
        ("bench URL --pattern x -n 1", &["--pattern"]),
        ("bench URL --hex 00 -n 1", &["--hex"]),
        ("bench URL --subprotocol x -n 1", &["--subprotocol"]),
        ("bench URL --deflate -n 1", &["--deflate"]),
        ("bench tcp://127.0.0.1:9 --follow -n 1", &["--follow"]),
        ("bench tcp://127.0.0.1:9 -H a:b -n 1", &["header"]),
        ("bench tcp://127.0.0.1:9 --body x --pattern ( -n 1", &["("]),
    ]);
}

#[test]
fn bad_urls() {
    refused(&[
        ("bench", &["the URL is missing"]),
        ("bench ftp://127.0.0.1/", &["ftp", "scheme", "`http`"]),
        ("bench http://127.0.0.1:99999/", &["99999", "65535"]),
        ("bench http://", &["host"]),
        ("bench http:///path", &["host"]),
        ("bench tcp://127.0.0.1 --body x", &["port"]),
        ("bench http://[::1/", &["[::1"]),
        ("bench http://user@host:port:port/", &["port"]),
    ]);
}

#[test]
fn unreadable_files() {
    refused(&[
        ("bench URL --body @missing.txt", &["missing.txt", "No such file"]),
        ("bench URL -D missing.txt", &["missing.txt", "No such file"]),
        ("bench --curl missing.txt", &["missing.txt", "No such file"]),
        ("bench --curl /", &["/"]),
        ("run missing.yaml", &["missing.yaml", "No such file"]),
        ("run /", &["/"]),
        ("report missing", &["missing"]),
        ("report /", &["/"]),
    ]);
}

const GOOD: &str = "\
target: URL
sessions:
  reader:
    steps:
      - http: GET /
        check: {status: 200}
load:
  - {users: 1, for: 1s}
";

#[test]
fn wrong_scenarios() {
    let target = Target::start("http");
    let good = GOOD.replace("URL", &target.http(""));
    for (old, new, said) in [
        ("check:", "chek:", &["6:9", "chek", "did you mean `check`"][..]),
        ("sessions:", "session:", &["2:1", "did you mean `sessions`"]),
        ("status: 200", "status: soon", &["6:25", "soon"]),
        ("users: 1,", "users: none,", &["8:13", "none"]),
        ("for: 1s", "for: long", &["8:21", "long"]),
        ("GET /", "GET nowhere", &["5:", "nowhere"]),
        ("  reader:", "  reader: [", &["yaml-syntax"]),
        ("    steps:", "\tsteps:", &["4:", "yaml-syntax"]),
        ("target:", "# target:", &["target"]),
        ("http: GET /", "dance: a polka", &["5:", "dance"]),
    ] {
        assert!(good.contains(old), "{old}");
        let run = throng("run bad.yaml").file("bad.yaml", good.replacen(old, new, 1));
        let run = run.run().exits(2);
        run.says(said);
        run.says(&["error[", "bad.yaml:", "help", "nothing was sent"]);
        let left = run.folder().read_dir().expect("a folder").count();
        run.check(left == 1, "a record was made of nothing");
    }
    for (line, said) in [("nothing", "nothing"), ("no-such-name=5", "no-such-name")] {
        let run = throng("run good.yaml --set").arg(line).file("good.yaml", &good);
        run.run().exits(2).says(&[said, "help"]);
    }
    assert_eq!(target.counts("/connections/accepted"), 0);
}

#[test]
fn bytes_that_are_no_text() {
    let target = Target::start("http");
    let line = format!("bench {} --curl", target.http("/"));
    let run = throng(&line).arg("x").file("x", b"curl \xff\xfe\x00").run().exits(2);
    run.says(&["UTF-8", "nothing was sent"]);
    throng("run x").file("x", b"\x00\xff\xfe").run().exits(2).says(&["UTF-8"]);
    assert_eq!(target.counts("/connections/accepted"), 0);
}

#[test]
fn the_printed_scenario_does_the_same() {
    let target = Target::start("http");
    let line = format!(
        "bench {} -n 60 -c 6 -H X-A:b -T text/plain -b c=d --timeout 5s --expect-status 200",
        target.http("/echo?a=b")
    );
    let body = "--body=two: lines\n# {not} yaml '\" é";
    let printed = throng(&line).arg(body).arg("--print-scenario").run().exits(0);
    assert_eq!(target.counts("/requests"), 0, "{printed}");
    let direct = throng(&line).arg(body).arg("--json").run().succeeds(60);
    let ran = throng("run printed.yaml --json").file("printed.yaml", &printed.out).run();
    let ran = ran.succeeds(60);
    for figure in ["/total/count", "/connections/opened", "/sent_bytes", "/received_bytes"] {
        assert_eq!(direct.figure(figure), ran.figure(figure), "{figure}\n{direct}\n{ran}");
    }
    assert_eq!(target.counts("/requests"), 120);
}

/// As users of k6 and Locust type it.
#[test]
fn the_load_is_changed_for_once() {
    let target = Target::start("http");
    let good =
        GOOD.replace("URL", &target.http("")).replace("users: 1, for: 1s", "users: 100, for: 1h");
    let line = "it.yaml --users 2 --for 1s";
    let run = throng(&format!("run {line} --json --out record")).file("it.yaml", &good).run();
    let run = run.exits(0);
    run.within("/run/users_planned", 2.0, 2.0);
    run.check(
        run.err.contains("--users: at most 2 users instead of 100"),
        "it is said at the begin",
    );
    let changes = ["--users: at most 2 users instead of 100", "--for: 1s in total instead of 1h"];
    assert_eq!(run.json()["run"]["changes"], serde_json::json!(changes));
    let record = std::fs::read_to_string(run.folder().join("record/run.json")).expect("run.json");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let kept = serde_json::json!([
        ["--users: at most {} users instead of {}", "2", "100"],
        ["--for: {} in total instead of {}", "1s", "1h"]
    ]);
    assert_eq!(record["changes"], kept);
    assert_eq!(record["phases"][0]["planned_ns"], 1_000_000_000);
    let check = throng(&format!("check {line}")).file("it.yaml", &good).run().exits(0);
    check.says(&changes);
    let zh = throng(&format!("check {line} --lang zh")).file("it.yaml", &good).run().exits(0);
    zh.check(zh.out.contains("最多 2 个用户"), "it is said in Chinese");
    let before = target.counts("/requests");
    let refused = throng("run it.yaml --rate 5").file("it.yaml", &good).run().exits(2);
    refused.says(&["flag-without-effect", "`--rate` has no effect", "iterations: 50/s"]);
    refused.says(&["nothing was sent"]);
    assert_eq!(target.counts("/requests"), before);
}

#[test]
fn help_names_every_command() {
    let run = throng("--help").run().exits(0);
    run.says(&["bench", "run", "report", "target", "Exit codes"]);
    throng("bench -help").run().exits(0).says(&["--expect-status"]);
    throng("bench --help").run().exits(0).says(&["--expect-status", "Options that differ"]);
}

/// A report of a bug names the commit, whichever way the binary was built.
#[test]
fn the_version_says_what_was_built() {
    let short = throng("-V").run().exits(0);
    let long = throng("--version").run().exits(0);
    let lines: Vec<&str> = long.out.lines().collect();
    long.check(lines.first() == short.out.lines().next().as_ref(), "one version, twice");
    long.check(lines.len() == 3 && short.out.lines().count() == 1, "one line and three");
    long.says(&["throng 0.", "build   ", "-linux-", "rustc   1."]);
    let git = |words: &[&str]| {
        let git = Command::new("git").args(words).output().ok()?;
        git.status.success().then(|| String::from_utf8_lossy(&git.stdout).trim().to_string())
    };
    // A commit may come between a build and its test; what is told is one of this history.
    let Some(commit) = long.out.split_once('(').and_then(|it| it.1.split_once([' ', '+'])) else {
        long.check(git(&["rev-parse", "HEAD"]).is_none(), "built in a repository, it has a commit");
        return;
    };
    let date = git(&["log", "-1", "--format=%cs", commit.0]);
    long.check(date.is_none_or(|date| lines[0].ends_with(&format!("{date})"))), "its date");
}

/// The commit that the build script finds for sources in a folder.
fn found_commit(sources: &Path) -> String {
    let crate_folder = sources.join("crates/throng");
    let script = sources.join("script");
    let built = Command::new("rustc")
        .args(["--edition", "2024", "-o"])
        .arg(&script)
        .arg(crate_folder.join("build.rs"))
        .output()
        .expect("rustc");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let told = Command::new(&script)
        .current_dir(&crate_folder)
        .env("CARGO_MANIFEST_DIR", &crate_folder)
        .output()
        .expect("the script");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let line = told.lines().find_map(|line| line.strip_prefix("cargo:rustc-env=THRONG_COMMIT="));
    line.expect(&told).to_string()
}

#[test]
fn the_commit_is_known_from_a_source_archive_and_missing_without_harm() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let packed = Command::new("git")
        .args(["archive", "HEAD", "crates/throng/build.rs", "crates/throng/src/commit.txt"])
        .current_dir(&root)
        .output()
        .expect("git");
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    std::fs::write(folder.path().join("it.tar"), packed.stdout).expect("a file");
    let unpacked = Command::new("tar").args(["-xf", "it.tar"]).current_dir(&folder).status();
    assert!(unpacked.expect("tar").success());
    let head = Command::new("git").args(["log", "-1", "--format=%cs"]).current_dir(&root).output();
    let date = String::from_utf8_lossy(&head.expect("git").stdout).trim().to_string();
    let commit = found_commit(folder.path());
    let (hash, day) = commit.split_once(' ').expect(&commit);
    assert!(hash.len() >= 7 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{commit}");
    assert_eq!(day, date);
    // A copy of a work tree, into no repository: the placeholder is no commit.
    let copy = root.join("crates/throng/src/commit.txt");
    std::fs::copy(copy, folder.path().join("crates/throng/src/commit.txt")).expect("a file");
    assert_eq!(found_commit(folder.path()), "");
}
