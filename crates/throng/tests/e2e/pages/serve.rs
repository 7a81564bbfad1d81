//! `throng serve`: a folder of runs as a page; runs that are started from it; and nobody else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_fuzz::node_modules;

use crate::run::{Child, Run, throng, throng_first};
use crate::servers::{Target, program};

const HOSTILE: &str = "<img src=x onerror=alert(1)><script>window.pwned=1</script>";

struct Link {
    address: SocketAddr,
    token: String,
    url: String,
}

fn link(child: &Child) -> Link {
    let url = child.hears("a link", |_, errors| {
        let line = errors.lines().find_map(|line| line.strip_prefix("runs: "));
        line.map(str::to_string)
    });
    let rest = url.strip_prefix("http://").expect("a link");
    let (address, token) = rest.split_once("/?token=").expect("a token");
    let address = address.parse().expect("an address");
    Link { address, token: token.to_string(), url: url.clone() }
}

impl Link {
    fn says(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("a page");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str, query: &str) -> Value {
        let (host, token) = (self.address, &self.token);
        let head = format!("GET {path}?token={token}{query} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = self.says(&head);
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {answer}"))
    }

    fn start(&self, token: &str, body: &str) -> String {
        let (host, length) = (self.address, body.len());
        let head = format!("POST /start HTTP/1.1\r\nHost: {host}\r\nX-Throng-Token: {token}");
        self.says(&format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}"))
    }
}

/// A folder with runs of several rates, and what is no run.
fn runs(target: &Target) -> Run {
    // Enough users for all starts, even if the target has no processor for a second.
    let line =
        |rate: u64| format!("bench {} -c 200 -d 2s --rate {rate}/s --json", target.http("/"));
    let first = throng_first(&line(50)).run().exits(0);
    let folder = first.folder().join("throng-runs");
    for rate in [100, 150] {
        let out = folder.join(format!("2099-{rate}"));
        throng_first(&line(rate)).arg("--out").arg(&out).run().exits(0);
    }
    let make = |name: &str, text: &str| {
        std::fs::create_dir(folder.join(name)).expect("a folder");
        std::fs::write(folder.join(name).join("run.json"), text).expect("a file");
    };
    make("broken", "{");
    make("newer", r#"{"format":99}"#);
    make(&HOSTILE.replace('/', "-"), "{");
    std::os::unix::fs::symlink("/etc", folder.join("link")).expect("a link");
    let inside = folder.join("leads-out");
    make("leads-out", r#"{"format":99}"#);
    std::os::unix::fs::symlink("/etc/passwd", inside.join("scenario.yaml")).expect("a link");
    first
}

fn scenarios(run: &Run, target: &Target) -> std::path::PathBuf {
    let folder = run.folder().join("scenarios");
    std::fs::create_dir(&folder).expect("a folder");
    let shop = format!(
        "name: shop\nvars: {{rate: 50, password: geheim}}\ntarget: {}\nsessions: {{one: {{steps: \
         [{{http: GET /}}]}}}}\nload: [{{arrivals: \"${{vars.rate}}/s\", for: 4s}}]\n",
        target.http("")
    );
    std::fs::write(folder.join("shop.yaml"), shop).expect("a file");
    std::fs::write(folder.join("wrong.yaml"), "nonsense").expect("a file");
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link.yaml")).expect("a link");
    folder
}

#[test]
fn a_folder_of_runs_is_a_page_from_which_runs_are_started() {
    let target = Target::start("http");
    let first = runs(&target);
    let folder = first.folder().join("throng-runs");
    let serve = throng("serve").arg(&folder).arg("--allow-run").arg(scenarios(&first, &target));
    let child = serve.start();
    let mut command = Command::new(program("node", "nodejs"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/pages/serve.js");
    command.arg(script).arg(link(&child).url).arg(program("chromium", "chromium"));
    command.args(std::env::var_os("THRONG_PICTURES"));
    command.env("NODE_PATH", node_modules("puppeteer-core"));
    let told = Child::start(command).wait().exits(0);
    let told: Value = serde_json::from_str(&told.out).expect("JSON");
    let none = serde_json::json!([]);
    assert_eq!((&told["errors"], &told["violations"]), (&none, &none), "{told}");
    let stick_out = told["widths"].as_object().expect("widths").values();
    assert!(stick_out.into_iter().all(|more| more == 0), "{told}");

    let cells = |value: &Value, at: usize| -> Vec<String> {
        let rows = value.as_array().expect("rows").iter();
        rows.map(|row| row[at].as_str().expect("a cell").to_string()).collect()
    };
    assert_eq!(cells(&told["list"], 0)[..2], ["2099-150", "2099-100"]);
    let verdicts = cells(&told["list"], 1);
    let is_good = |word: &String| word == "no thresholds" || word == "passed";
    assert!(verdicts.iter().all(is_good), "{verdicts:?}");
    assert_eq!(cells(&told["list"], 6), ["300", "200", "100"], "counts of attempts");
    let passed_over = told["passed_over"].to_string();
    for wanted in ["broken", "newer", "link", "leads-out", "<img src=x"] {
        assert!(passed_over.contains(wanted), "{passed_over}");
    }
    assert_eq!(told["pwned"], false);
    assert_eq!(
        told["report"]["total"].as_u64().map(|it| [100, 200, 300].contains(&it)),
        Some(true)
    );
    assert!(told["compare"]["charts"].as_array().expect("charts").len() >= 3, "{told}");
    assert_eq!(told["compare"]["legend"].as_array().expect("a legend").len(), 3, "{told}");
    assert!(told["compare"]["rows"].as_u64() > Some(2), "{told}");
    assert_eq!(told["trends"]["runs"], 3, "{told}");
    let rows = told["baseline"].as_array().expect("rows");
    let of = |row: &Value, cell: usize| row[cell].as_str().expect("a text").to_string();
    let is_held = |row: &&Value| (2..6).any(|cell| of(row, cell).ends_with(" %)"));
    let marked: Vec<&Value> = rows.iter().filter(|row| of(row, 0).ends_with("Baseline")).collect();
    assert_eq!(
        (marked.len(), of(marked[0], 0)),
        (1, format!("{} Baseline", told["baseline_is"].as_str().expect("a name")))
    );
    assert!(rows.iter().filter(is_held).count() >= 1 && !is_held(&marked[0]), "{rows:?}");

    let inputs = serde_json::json!([["rate", "50", "text"], ["password", "", "password"]]);
    assert_eq!(told["inputs"], inputs);
    assert!(told["begun"].as_str().expect("text").ends_with("-shop"), "{told}");
    assert!(
        told["second"]
            .as_str()
            .expect("text")
            .contains("a run is already in progress: wait until it ends, or raise --runs-max"),
        "{told}"
    );
    assert!(told["live"].as_str().expect("text").starts_with("running"), "{told}");
    let refused = told["refused"].as_str().expect("text");
    assert!(refused.contains("invalid value '0' for '--for <DURATION>'"), "{told}");
    assert_eq!(told["count"], 960, "the values of the form were set");
    saves_as_files(&told);
    assert!(told["wrong"].as_str().expect("text").contains("wrong-type"), "{told}");
    let names = std::fs::read_dir(&folder).expect("runs").flatten();
    let names: Vec<_> = names.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|name| name.ends_with("-shop")), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with("-wrong")), "nothing is left of it");
    child.signal(libc::SIGTERM);
    child.wait().exits(0);
}

/// What the links of a report save.
fn saves_as_files(told: &Value) {
    let saves = told["saves"].as_array().expect("files");
    for (file, (ending, begins)) in
        saves.iter().zip([("csv", "second,unix_s"), ("json", "{\"audits\""), ("html", "<!doctype")])
    {
        let name = file[1].as_str().expect("a name");
        assert!(file[0] == 200 && name.ends_with(&format!(".{ending}\"")), "{file}");
        assert!(file[2].as_str().expect("text").starts_with(begins), "{file}");
    }
    assert_eq!(saves.len(), 3, "{told}");
}

#[test]
fn refused_flags_start_nothing() {
    let target = Target::start("http");
    let first = throng(&format!("bench {} -n 5", target.http("/"))).run().exits(0);
    let folder = first.folder().join("throng-runs");
    let serve = throng("serve").arg(&folder).arg("--allow-run").arg(scenarios(&first, &target));
    let child = serve.start();
    let link = link(&child);
    let load = |given: &str| {
        link.start(&link.token, &format!(r#"{{"scenario":"shop.yaml","load":{given}}}"#))
    };
    for (given, why) in [
        (r#"{"users":"0"}"#, "invalid value '0' for '--users <N>': it must be at least 1"),
        (r#"{"users":"5 --out=/x"}"#, "invalid value '5 --out=/x' for '--users <N>'"),
        (r#"{"users":"$(id)"}"#, "invalid value '$(id)' for '--users <N>'"),
        (r#"{"rate":"fast"}"#, "invalid value 'fast' for '--rate <RATE>'"),
        (r#"{"duration":"-1s"}"#, "invalid value '-1s' for '--for <DURATION>'"),
    ] {
        let answer = load(given);
        assert!(answer.contains("\"error\"") && answer.contains(why), "{given}: {answer}");
    }
    for given in [r#"{"nice":"19"}"#, r#"{"users":5}"#, r#"{"users":null}"#] {
        assert!(load(given).starts_with("HTTP/1.1 400"), "{given}");
    }
    assert_eq!(link.get("/runs", "")["started"], serde_json::json!([]));
    child.signal(libc::SIGTERM);
    child.wait().exits(0);
}

#[test]
fn names_do_not_escape_the_folders_and_requests_need_a_token() {
    let target = Target::start("http");
    let first = runs(&target);
    let folder = first.folder().join("throng-runs");
    let child =
        throng("serve").arg(&folder).arg("--allow-run").arg(scenarios(&first, &target)).start();
    let link = link(&child);
    for name in ["..", ".", "", "link", "%2e%2e", "..%2Fthrong-runs", "/etc", "a%00b", "no-such"] {
        let told = link.get("/run", &format!("&name={name}"));
        assert!(told["error"].as_str().expect(name).contains("there is no run"), "{name}: {told}");
    }
    let save = |query: &str| {
        let head = format!("GET /save?token={}&{query} HTTP/1.1\r\n", link.token);
        link.says(&format!("{head}Host: {}\r\n\r\n", link.address))
    };
    for query in ["form=csv&name=..", "form=json&name=link", "form=html&name=%2fetc", "form=csv"] {
        assert!(save(query).starts_with("HTTP/1.1 404"), "{query}");
    }
    assert!(save("form=exe&name=2099-100").starts_with("HTTP/1.1 404"));
    assert!(save("form=csv&name=2099-100").contains("filename=\"2099-100.csv\""));
    let leads_out = link.get("/run", "&name=leads-out");
    assert!(leads_out["error"].to_string().contains("symbolic link"), "{leads_out}");
    for query in ["&run=2099-100", "&run=..&run=.", "&run=2099-100&run=../throng-runs/2099-150"] {
        assert!(link.get("/compare", query)["error"].is_string(), "{query}");
    }
    let history = link.get("/history", "").to_string();
    assert!(!history.contains("link"), "links are not followed: {history}");
    let wrong = [
        r#"{"scenario":"../scenarios/shop.yaml"}"#,
        r#"{"scenario":"/etc/passwd"}"#,
        r#"{"scenario":"link.yaml"}"#,
        r#"{"scenario":"shop.yaml","set":{"users=1 --out":"/x"}}"#,
    ];
    for body in wrong {
        let answer = link.start(&link.token, body);
        assert!(answer.contains("\"error\""), "{answer}");
    }
    assert!(link.start(&link.token, "[]").starts_with("HTTP/1.1 400"));
    let zeros = "0".repeat(32);
    let good = r#"{"scenario":"shop.yaml"}"#;
    assert!(link.start(&zeros, good).starts_with("HTTP/1.1 403"));
    for path in [
        "/",
        "/runs",
        "/save?form=csv&name=2099-100",
        "/run?name=2099-100",
        "/scenarios",
        "/history?token=0",
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", link.address);
        let answer = link.says(&head);
        assert!(answer.starts_with("HTTP/1.1 403") && !answer.contains("2099"), "{answer}");
    }
    assert_eq!(link.get("/runs", "")["started"], serde_json::json!([]), "nothing was started");
    // What goes on is told to stop when the page is closed.
    let begun = link.start(&link.token, r#"{"scenario":"shop.yaml","set":{"rate":"20"}}"#);
    assert!(begun.contains("-shop"), "{begun}");
    let name = begun.split('"').find(|word| word.ends_with("-shop")).expect("a name").to_string();
    child.until("the run", || folder.join(&name).join("control.sock").exists());
    child.signal(libc::SIGTERM);
    child.wait().exits(0);
    let record = std::fs::read_to_string(folder.join(&name).join("run.json")).expect("a record");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    assert_eq!(record["interrupted"], true, "{record}");
}

#[test]
fn runs_are_started_only_if_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = throng("serve").arg(folder.path()).start();
    let link = link(&child);
    let answer = link.start(&link.token, r#"{"scenario":"shop.yaml"}"#);
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("--allow-run"), "{answer}");
    assert_eq!(link.get("/scenarios", ""), serde_json::json!([]));
    assert_eq!(link.get("/runs", "")["runs"], serde_json::json!([]));
    throng("serve /no/such/folder").run().exits(2).says(&["/no/such/folder", "is not a folder"]);
    let line = format!("serve {} --listen {}", folder.path().display(), link.address);
    throng(&line).run().exits(2).says(&["live-failed", "--listen"]);
    child.signal(libc::SIGTERM);
    child.wait().exits(0);
}

#[test]
fn thousands_of_runs_are_listed_and_bounded() {
    let target = Target::start("http");
    let first = throng(&format!("bench {} -n 5 --out one", target.http("/"))).run().exits(0);
    let folder = first.folder().join("many");
    std::fs::create_dir(&folder).expect("a folder");
    let one = first.folder().join("one");
    for at in 0..5_200 {
        let copy = folder.join(format!("run-{at:05}"));
        std::fs::create_dir(&copy).expect("a folder");
        for file in ["run.json", "intervals.ndjson", "events.ndjson"] {
            std::fs::hard_link(one.join(file), copy.join(file)).expect("a link");
        }
    }
    let child = throng("serve").arg(&folder).start();
    let link = link(&child);
    let list = link.get("/runs", "");
    assert_eq!(list["runs"].as_array().expect("runs").len(), 5_000);
    assert_eq!(list["left_off"], 200);
    assert_eq!(list["runs"][0]["name"], "run-05199", "the newest first");
    child.until("figures", || link.get("/runs", "")["runs"][0]["figures"]["count"] == 5);
    child.signal(libc::SIGTERM);
    child.wait().exits(0);
}
